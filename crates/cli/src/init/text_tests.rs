//! The scenarios that are written are scenarios, whatever was found.

use clap::Parser;
use throng_observation::run::{Row, TrackRow};
use throng_protocol::recognition::Given;
use throng_scenario::Scenario;

use super::*;
use crate::args::{Arguments, Command};

fn command(more: &[&str]) -> Init {
    let words = [&["throng", "init", "http://h"][..], more].concat();
    match Arguments::try_parse_from(words).unwrap().command {
        Command::Init(init) => init,
        _ => panic!("another command"),
    }
}

fn found(url: &str) -> Found {
    Given::parse(url).unwrap().named().unwrap()
}

/// The text, which must be a scenario of ten.
fn read(found: &Found, played: Option<&Played>, command: &Init) -> String {
    let text = scenario(found, played, command);
    let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(scenario.plan().joins.len(), 10, "{text}");
    assert!(text.starts_with("#:schema scenario.schema.json\n"), "{text}");
    text
}

#[test]
fn each_protocol_has_a_scenario_with_objectives_that_fit_it() {
    for (url, objective) in [
        ("whep+https://h/whep", "video.delay p95"),
        ("janus+ws://h/streaming/1", "video.loss p95"),
        ("janus+ws://h/videoroom/1", "connect p99"),
        ("rtsp://h/cam", "video.freeze p95"),
        ("peertube+https://h/w/x", "stall_ratio p95"),
        ("whip+http://h/whip", "connect p99"),
        ("xmpp+ws://h/x?room=a@b.h", "chat.delivery p95"),
    ] {
        let text = read(&found(url), None, &command(&["--allow-target", "10.0.0.0/8"]));
        for words in [objective, "failed < 1%", url, "allow = [\"10.0.0.0/8\"]"] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}

#[test]
fn live_video_has_an_objective_for_its_latency_and_a_recording_has_none() {
    let of = |is_live| {
        let page = found("peertube+https://h/w/x");
        read(&Found { is_live, ..page }, None, &command(&[]))
    };
    assert!(of(Some(true)).contains("latency p95"));
    assert!(!of(Some(false)).contains("latency p95") && !of(None).contains("latency p95"));
}

#[test]
fn secrets_are_named_and_not_written() {
    let whep = Found { access: Access::Token, ..found("whep+http://h/whep") };
    let text = read(&whep, None, &command(&[]));
    assert!(text.contains("token = \"env:THRONG_TOKEN\""), "{text}");
    let own = read(&whep, None, &command(&["--token", "file:/run/token"]));
    assert!(own.contains("token = \"file:/run/token\"") && !own.contains("\"env:"), "{own}");
    let mut room = found("janus+ws://h/streaming/1");
    room.url = "livekit+ws://h/lesson".to_owned();
    room.protocol = Protocol::LiveKit;
    room.access = Access::ApiKey;
    let text = read(&room, None, &command(&[]));
    assert!(text.contains("api_secret = \"env:LIVEKIT_API_SECRET\""), "{text}");
    let camera = Found { access: Access::Account, ..found("rtsp://h/cam") };
    let text = read(&camera, None, &command(&[]));
    assert!(text.contains("rtsp://USER:PASSWORD@"), "{text}");
}

#[test]
fn the_next_commands_have_the_flags_that_no_scenario_has() {
    let consent = |secret| ["--tls-ca", "my ca.pem", "--consent-secret", secret];
    for (more, expect) in [
        (&[][..], "throng.toml"),
        (
            &consent("file:/run/secret")[..],
            "throng.toml --tls-ca 'my ca.pem' --consent-secret file:/run/secret",
        ),
        (
            &consent("S3CRET"),
            "throng.toml --tls-ca 'my ca.pem' --consent-secret env:THRONG_CONSENT_SECRET",
        ),
        (&["-o", "-"], "FILE"),
    ] {
        let command = command(more);
        assert_eq!(file_and_flags(&command), expect);
        let text = read(&found("whep+https://h/whep"), None, &command);
        for verb in ["run", "find"] {
            assert!(text.contains(&format!("#   throng {verb} {expect}\n")), "{text}");
        }
        assert!(text.contains(&format!("#   throng check {}\n", file(&command))), "{text}");
        assert!(!text.contains("S3CRET"), "{text}");
    }
}

#[test]
fn words_of_a_server_stay_in_their_comment() {
    let mut found = found("whep+http://h/whep");
    found.server = Some("nginx\n[run]\nduration = \"9h\"".to_owned());
    found.offers = vec!["a\u{7}\r\nb".to_owned()];
    found.to_name = Some("the stream");
    let text = read(&found, None, &command(&["-o", "a\nb.toml"]));
    assert!(
        text.contains("# CHANGE: the stream.\nurl = ") && !text.contains("\nduration = \"9h\""),
        "{text}"
    );
}

#[test]
fn what_one_viewer_received_is_in_the_plan() {
    let track = |kind, codec, bytes| {
        let mut track = TrackRow {
            participant: throng_observation::run::ParticipantId(0),
            track: throng_observation::TrackId(u16::from(kind == MediaKind::Audio)),
            kind,
            codec,
            from: None,
            first_frame_at: Some(throng_observation::RunTime(0)),
            counters: throng_observation::TrackCounters::default(),
            relative_delay_us: throng_observation::Distribution::default(),
            absolute_delay: throng_observation::OneWayDelay::default(),
            fps: Some(30.0),
            jitter_us: None,
            oven_rtc_tester_delay_us: None,
        };
        track.counters.payload_bytes = bytes;
        track.counters.active_us = 4_000_000;
        Row::Track(Box::new(track))
    };
    let mut played = Played::default();
    played.add(track(MediaKind::Audio, throng_observation::Codec::Opus, 24_123));
    assert!(played.is_audio_only());
    let whep = found("whep+http://h/whep");
    let sound = read(&whep, Some(&played), &command(&[]));
    assert!(sound.contains("audio.loss") && !sound.contains("video."), "{sound}");
    played.add(track(MediaKind::Video, throng_observation::Codec::H264, 612_345));
    let text = read(&whep, Some(&played), &command(&[]));
    for words in
        ["[stream]", "video = \"1.2Mbit/s\"", "audio = \"48kbit/s\"", "Received: video H264"]
    {
        assert!(text.contains(words), "{words}\n{text}");
    }
}
