//! A whole viewer against a whole stage over loopback: the statuses of WHEP, media, retransmission,
//! leaving.

mod client;

use std::time::{Duration, Instant};

use client::{Viewer, http, offer, publishers_offer};
use throng_stage::{Card, EmulatedServer, Stage, StageConfig};

const SDP: &str = "Content-Type: application/sdp\r\n";

fn stage(config: StageConfig) -> Stage {
    Stage::start(StageConfig { http_listen: "127.0.0.1:0".parse().unwrap(), ..config }).unwrap()
}

/// Waits for the stage to count what it was given: its threads run by themselves.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn statuses_say_what_is_wrong() {
    let stage =
        stage(StageConfig { bearer_token: Some("sesame".into()), ..StageConfig::default() });
    let token = "Authorization: Bearer sesame\r\n";
    let post = format!("{SDP}{token}");
    for (method, path, headers, body, expect) in [
        ("GET", "/", "", "", 200),
        ("GET", "/player", "", "", 200),
        ("GET", "/stats", "", "", 200),
        ("POST", "/stats", "", "", 405),
        ("GET", "/whep", "", "", 405),
        ("OPTIONS", "/whep", "", "", 204),
        ("POST", "/elsewhere", post.as_str(), "", 404),
        ("POST", "/whep", SDP, "", 401),
        ("POST", "/whep", "Authorization: Bearer wrong\r\n", "", 401),
        ("POST", "/whep", token, "", 415),
        ("POST", "/whep", &post, "", 400),
        ("POST", "/whep", &post, "v=0\r\nrubbish", 400),
        ("POST", "/whep?card=huge", &post, "", 400),
        ("POST", "/whep", &post, &"x".repeat(70_000), 413),
        ("DELETE", "/whep/0123", token, "", 404),
        ("PATCH", "/whep/0123", token, "", 404),
        ("GET", "/whep/0123", "", "", 404),
    ] {
        let reply = http(stage.http_addr(), method, path, headers, body);
        assert_eq!(reply.status, expect, "{method} {path}: {}", reply.body);
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{method} {path}");
    }
    assert_eq!(stage.stats().viewers, 0);
    stage.stop();
}

#[test]
fn a_session_is_made_patched_and_freed() {
    let stage = stage(StageConfig { max_viewers: 1, ..StageConfig::default() });
    let address = stage.http_addr();
    let made = http(address, "POST", "/whep", SDP, &offer());
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(made.body.contains("a=ice-lite") && made.body.contains("a=sendonly"), "{}", made.body);
    let (session, etag) = (made.header("location").unwrap(), made.header("etag").unwrap());
    assert_eq!(http(address, "POST", "/whep", SDP, &offer()).status, 503);
    assert_eq!(stage.stats().viewers_refused, 1);

    let fragment = "Content-Type: application/trickle-ice-sdpfrag\r\n";
    let candidate = "a=ice-ufrag:x\r\na=candidate:1 1 udp 2130706431 127.0.0.1 40000 typ host\r\n";
    let patch = |headers: &str, body| {
        http(address, "PATCH", session, &format!("{fragment}{headers}"), body).status
    };
    assert_eq!(patch(&format!("If-Match: {etag}\r\n"), candidate), 204);
    assert_eq!(patch("", candidate), 204);
    assert_eq!(patch("If-Match: \"other\"\r\n", candidate), 412);
    assert_eq!(patch("", "a=candidate:rubbish\r\n"), 400);
    assert_eq!(http(address, "PATCH", session, SDP, candidate).status, 415);
    assert_eq!(http(address, "GET", session, "", "").status, 405);

    assert_eq!(http(address, "DELETE", session, "", "").status, 200);
    assert_eq!(http(address, "DELETE", session, "", "").status, 404);
    assert_eq!(stage.stats().viewers, 0);
    assert_eq!(http(address, "POST", "/whep", SDP, &offer()).status, 201);
}

#[test]
fn a_viewer_sees_the_card_and_what_it_misses_is_sent_again() {
    let stage = stage(StageConfig { card: Card::Low, ..StageConfig::default() });
    let mut viewer = Viewer::join(stage.http_addr(), "/whep");
    // The sixth packet is made to be lost; str0m then sends a NACK by itself.
    viewer.lose_video_packet(6);
    viewer.watch_until("90 packets of video", |seen| {
        seen.video_packets >= 90 && seen.audio_packets >= 150
    });
    let seen = viewer.seen();
    assert!(seen.first_is_key, "the picture begins with a key frame");
    assert!(seen.repaired, "the lost packet came as a retransmission");
    assert_eq!(seen.gaps, 0, "after repair every sequence number was there");
    assert!(seen.sender_reports >= 2, "{}", seen.sender_reports);
    let stats = stage.stats();
    assert_eq!((stats.viewers, stats.viewers_connected), (1, 1));
    assert!(
        stats.nacks_received >= 1 && stats.packets_resent >= 1 && stats.receiver_reports >= 1,
        "{stats:?}"
    );
    assert!(
        stats.packets_sent >= 240 && stats.send_errors == 0 && stats.worker_frame_drops == 0,
        "{stats:?}"
    );

    viewer.leave();
    eventually("the place is free", || stage.stats().viewers == 0);
    eventually("nothing is sent without a viewer", || stage.stats().viewers_connected == 0);
}

#[test]
fn a_link_that_is_too_narrow_drops() {
    // 150 kbit/s are offered (video and audio) where 60 pass.
    let stage = stage(StageConfig {
        card: Card::Low,
        egress_bps: Some(60_000),
        egress_queue_ms: 300,
        ..StageConfig::default()
    });
    let mut viewer = Viewer::join(stage.http_addr(), "/whep");
    viewer.watch_until("audio", |seen| seen.audio_packets >= 60);
    let stats = stage.stats();
    assert!(stats.link_drops > 0, "{stats:?}");
    assert_eq!(stats.send_errors, 0);
}

#[test]
fn as_srs_it_takes_one_publisher_a_stream_and_h264_alone_and_reports_it() {
    let stage = stage(StageConfig { emulates: EmulatedServer::Srs, ..StageConfig::default() });
    let address = stage.http_addr();
    let publish = |stream: &str, offer: &str| {
        http(address, "POST", &format!("/rtc/v1/whip/?app=live&stream={stream}"), SDP, offer)
    };
    let made = publish("a", &publishers_offer("H264"));
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(!made.body.contains("rtx/"), "{}", made.body);
    let location = made.header("location").unwrap();
    assert!(location.starts_with("/rtc/v1/whip/?action=delete&token="), "{location}");
    let busy = publish("a", &publishers_offer("H264"));
    assert_eq!((busy.status, busy.body.as_str()), (409, "1028: StreamBusy"));
    assert_eq!(publish("b", &publishers_offer("H264")).status, 201);
    let vp8 = publish("c", &publishers_offer("VP8"));
    assert_eq!((vp8.status, vp8.body.as_str()), (400, "5018: RtcSdpExchange"));
    assert_eq!(publish("c", "rubbish").body, "5012: RtcSdpDecode");
    let played = http(address, "POST", "/rtc/v1/whep/?app=live&stream=nobody", SDP, &offer());
    assert_eq!(played.status, 201, "{}", played.body);
    // Its place is free again when it has gone.
    assert_eq!(http(address, "DELETE", location, "", "").status, 200);
    assert_eq!(publish("a", &publishers_offer("H264")).status, 201);
}

#[test]
fn streams_of_a_stage_have_a_publisher_each() {
    let stage = stage(StageConfig::default());
    let publish =
        |path: &str| http(stage.http_addr(), "POST", path, SDP, &publishers_offer("VP8")).status;
    assert_eq!((publish("/whip"), publish("/whip")), (201, 409));
    assert_eq!(
        (publish("/whip?stream=a"), publish("/whip?stream=b"), publish("/whip?stream=a")),
        (201, 201, 409)
    );
}
