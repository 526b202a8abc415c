//! OvenMediaEngine's signalling, end to end, where the real server (`real/oven_media_engine.rs`)
//! cannot be made to be late, to refuse or to misbehave: against a conformance server with a real
//! media side; its TCP relay against the real coturn.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use throng_observation::Phase;
use throng_sim::coturn::{self, Coturn};
use throng_sim::ome::{Behaviour, Server};
use throng_store::RunFolder;

use crate::throng::{Ran, Running, figure, run};

mod keys;
mod peer;
use peer::{FPS, Manner, Peer};

const STREAM: &str = "/app/stream";

fn speaking() -> Behaviour {
    Behaviour { stream: STREAM.into(), ..Behaviour::default() }
}

/// A server whose senders behave like `manner`, and the count of datagrams from ports that they do
/// not listen to.
fn start(behaviour: Behaviour, manner: Manner) -> (Server, Arc<AtomicU64>) {
    let heard_elsewhere = Arc::new(AtomicU64::new(0));
    let count = heard_elsewhere.clone();
    let peers = Arc::new(move || -> Box<dyn throng_sim::ome::MediaPeer> {
        Box::new(Peer::new(manner.clone(), count.clone()))
    });
    (Server::start(Ipv4Addr::LOCALHOST, behaviour, peers).unwrap(), heard_elsewhere)
}

fn start_viewing(server: &Server, path: &str, more: &[&str]) -> Running {
    let url = format!("ws://{}{path}", server.address());
    let view = ["view", &url, "-n", "5", "--every", "100ms", "--for", "6s", "--warm-up", "2s"];
    Running::start(None, &[&view[..], more].concat())
}

fn view(server: &Server, path: &str) -> Ran {
    start_viewing(server, path, &[]).wait()
}

/// Five viewers played and sent all messages that the protocol needs; at most `loss_max` of the
/// packets were lost.
fn expect_play(server: &Server, ran: &Ran, loss_max: f64) {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), 5.0, "{ran}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert!(figure(&summary, "video.loss_ratio") <= loss_max, "{ran}");
    assert!(figure(&summary, "audio.loss_ratio") <= loss_max, "{ran}");
    let fps = figure(&summary, "video.fps_p50");
    assert!((fps - f64::from(FPS)).abs() < 1.0, "{fps} fps\n{ran}");
    assert_eq!(server.violations(), Vec::<String>::new(), "{ran}");
    assert_eq!(server.sessions(), (5, 5), "every session is stopped\n{ran}");
}

/// The server announces coturn, with this password.
fn with_relay(coturn: &Coturn, transport: &str, password: &str) -> Behaviour {
    let relay = (coturn.uri(transport), coturn::USER.to_owned(), password.to_owned());
    Behaviour { relay: Some(relay), ..speaking() }
}

#[test]
fn with_policy_relay_all_media_passes_the_relay() {
    // The URL requests the relay as OvenPlayer does, or the scenario does.
    for (transport, query, more) in [
        ("tcp", "?transport=tcp", &[][..]),
        ("udp", "", &["--set", "target.ice_transport_policy=relay"]),
    ] {
        let coturn = Coturn::start().unwrap();
        let manner = Manner { listens_to: Some(coturn::RELAYED_PORTS), ..Manner::default() };
        let (server, heard_elsewhere) =
            start(with_relay(&coturn, transport, coturn::PASSWORD), manner);
        let mut running = start_viewing(&server, &format!("{STREAM}{query}"), more);
        running.when_playing(5);
        let while_playing = coturn.allocations().unwrap();
        let ran = running.wait().expect_code(0);
        assert_eq!(while_playing, 5, "one allocation a viewer\n{ran}");
        // coturn's sockets have default buffers, which overflow when it waits long for a CPU.
        expect_play(&server, &ran, 0.02);
        assert_eq!(
            heard_elsewhere.load(Ordering::Relaxed),
            0,
            "nothing goes the direct way\n{ran}"
        );
        assert_eq!(
            ran.summary()["media_paths"],
            json!({ format!("relay_{transport}"): 5 }),
            "{ran}"
        );
        let expected_line =
            format!("path         5 through a relay over {}", transport.to_uppercase());
        assert!(ran.stdout.contains(&expected_line), "{ran}");
        let given_up_at = Instant::now() + Duration::from_secs(3);
        while coturn.allocations().unwrap() > 0 {
            assert!(
                Instant::now() < given_up_at,
                "{transport}: allocations are not released\n{ran}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn an_announced_relay_is_one_of_two_paths() {
    let coturn = Coturn::start().unwrap();
    // A relay and a direct path, which ICE prefers; a relay that refuses; a relay as the only path.
    let only_relayed = Manner { listens_to: Some(coturn::RELAYED_PORTS), ..Manner::default() };
    for (password, manner, path, loss_max) in [
        (coturn::PASSWORD, Manner::default(), "host", 0.0),
        ("wrong", Manner::default(), "host", 0.0),
        (coturn::PASSWORD, only_relayed, "relay_tcp", 0.02),
    ] {
        let (server, _) = start(with_relay(&coturn, "tcp", password), manner);
        let ran = view(&server, STREAM).expect_code(0);
        expect_play(&server, &ran, loss_max);
        assert_eq!(ran.summary()["media_paths"], json!({ path: 5 }), "{ran}");
    }
}

#[test]
fn without_the_requested_relay_no_participant_plays() {
    let coturn = Coturn::start().unwrap();
    for (behaviour, why) in [
        (
            with_relay(&coturn, "tcp", "wrong"),
            "the relay, the only path allowed: no allocation: 401",
        ),
        (speaking(), "the server announced none that is usable"),
    ] {
        let (server, _) = start(behaviour, Manner::default());
        let url = format!("ws://{}{STREAM}?transport=tcp", server.address());
        let ran =
            run(None, &["view", &url, "-n", "3", "--every", "50ms", "--for", "14s"]).expect_code(3);
        expect_failure(&ran, "ice", why);
    }
}

/// All three viewers failed for this reason, with these words in the message.
fn expect_failure(ran: &Ran, reason: &str, words: &str) {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 3.0, "{ran}");
    assert_eq!(summary["failures"][reason], 3, "{ran}");
    let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
    assert!(detail.contains(words), "{detail}\n{ran}");
}

#[test]
fn a_server_that_answers_from_another_address_plays_to_no_viewer() {
    // As in browsers (RFC 8445 section 7.2.5.2.1).
    let manner = Manner { sends_from: Some(Ipv4Addr::new(127, 0, 0, 2)), ..Manner::default() };
    let (server, _) = start(speaking(), manner);
    let url = format!("ws://{}{STREAM}", server.address());
    let ran =
        run(None, &["view", &url, "-n", "3", "--every", "50ms", "--for", "14s"]).expect_code(3);
    expect_failure(&ran, "ice", "answered from another address, 127.0.0.2:");
}

#[test]
fn a_server_that_is_ready_late_is_found_within_a_twentieth_of_a_second() {
    let ready_after = Duration::from_millis(120);
    // It says meanwhile what a viewer passes over.
    let chatting = Behaviour { chatter: true, ..speaking() };
    let (server, _) = start(chatting, Manner { ready_after, ..Manner::default() });
    let ran = view(&server, STREAM).expect_code(0);
    expect_play(&server, &ran, 0.0);
    let rows = RunFolder::read(ran.folder()).unwrap();
    let ice_ms = rows.participants.iter().map(|row| {
        let at = row.reached[&Phase::IceConnected];
        let (_, before) = row.reached.range(..Phase::IceConnected).next_back().unwrap();
        at.as_millis_f64() - before.as_millis_f64()
    });
    // Of five, one had no wait for a CPU. Checks are sent each 50 ms; a first retransmission after
    // 250 ms would show here.
    let ms = ice_ms.fold(f64::INFINITY, f64::min);
    assert!((100.0..220.0).contains(&ms), "{ms} ms\n{ran}");
}

/// Behaviour of a real OvenMediaEngine 0.20: it offers its relay, is not ready for the first
/// connectivity checks, and its sender reports contain media time.
#[test]
fn viewers_play_from_a_server_that_is_ready_late_and_reports_media_time() {
    let coturn = Coturn::start().unwrap();
    let relay = (coturn.uri("tcp"), coturn::USER.to_owned(), coturn::PASSWORD.to_owned());
    let late = Manner {
        ready_after: Duration::from_millis(300),
        reports_media_time: true,
        ..Manner::default()
    };
    let (server, _) = start(Behaviour { relay: Some(relay), ..speaking() }, late);
    let ran = view(&server, &format!("{STREAM}?transport=tcp")).expect_code(0);
    expect_play(&server, &ran, 0.0);
    let summary = ran.summary();
    assert!(
        figure(&summary, "connect.ms_p50") >= 250.0,
        "no check is answered before the peer is ready\n{ran}"
    );
    assert!(ran.stdout.starts_with("5 viewers played cleanly"), "{ran}");
    assert!(
        summary["events"].get("protocol_anomaly_rtcp").is_none(),
        "its reports are RTCP\n{ran}"
    );
}

fn check(behaviour: Behaviour, path: &str, reason: &str) {
    let said = format!("{behaviour:?}");
    let (server, _) = start(behaviour, Manner::default());
    let url = format!("ws://{}{path}", server.address());
    let ran =
        run(None, &["view", &url, "-n", "3", "--every", "50ms", "--for", "15s"]).expect_code(3);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 3.0, "{said}: {ran}");
    assert_eq!(summary["failures"][reason], 3, "{said}: {ran}");
}

#[test]
fn servers_that_refuse_or_misbehave_are_named() {
    check(Behaviour { refuse_upgrade: Some(401), ..speaking() }, STREAM, "http_401");
    check(speaking(), "/app/other", "no_such_room");
    check(Behaviour { silent: true, ..speaking() }, STREAM, "signalling_timeout");
    check(Behaviour { garbage: Some("{\"command\":".into()), ..speaking() }, STREAM, "protocol");
}
