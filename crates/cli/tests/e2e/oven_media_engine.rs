//! OvenMediaEngine's signalling, end to end, against a conformance server with a real media side; its TCP relay
//! against the real coturn.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use throng_sim::coturn::{self, Coturn};
use throng_sim::ome::{Behaviour, Server};

use crate::throng::{Ran, Running, figure, run};

mod keys;
mod peer;
use peer::{FPS, Manner, Peer};

const STREAM: &str = "/app/stream";

fn speaking() -> Behaviour {
    Behaviour { stream: STREAM.into(), ..Behaviour::default() }
}

/// A server whose senders listen only to `ports`, and the count of datagrams from elsewhere.
fn start(behaviour: Behaviour, ports: Option<RangeInclusive<u16>>) -> (Server, Arc<AtomicU64>) {
    start_as(behaviour, Manner { listens_to: ports, ..Manner::default() })
}

fn start_as(behaviour: Behaviour, manner: Manner) -> (Server, Arc<AtomicU64>) {
    let heard_elsewhere = Arc::new(AtomicU64::new(0));
    let count = heard_elsewhere.clone();
    let peers = Arc::new(move || -> Box<dyn throng_sim::ome::MediaPeer> {
        Box::new(Peer::new(manner.clone(), count.clone()))
    });
    (Server::start(Ipv4Addr::LOCALHOST, behaviour, peers).unwrap(), heard_elsewhere)
}

fn start_viewing(server: &Server, path: &str) -> Running {
    let url = format!("ws://{}{path}", server.address());
    Running::start(None, &["view", &url, "-n", "5", "--every", "100ms", "--for", "6s", "--warm-up", "2s"])
}

fn view(server: &Server, path: &str) -> Ran {
    start_viewing(server, path).wait()
}

/// Five viewers played, and said what the protocol wants said; at most `loss_max` of the packets was lost.
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

#[test]
fn viewers_play_and_keep_to_the_protocol() {
    for chatter in [false, true] {
        let (server, _) = start(Behaviour { chatter, ..speaking() }, None);
        let ran = view(&server, STREAM).expect_code(0);
        expect_play(&server, &ran, 0.0);
    }
}

#[test]
fn media_comes_through_the_relay_when_nothing_else_works() {
    for transport in ["tcp", "udp"] {
        let coturn = Coturn::start().unwrap();
        let relay = (coturn.uri(transport), coturn::USER.to_owned(), coturn::PASSWORD.to_owned());
        let behaviour = Behaviour { relay: Some(relay), ..speaking() };
        let (server, heard_elsewhere) = start(behaviour, Some(coturn::RELAYED_PORTS));
        let mut running = start_viewing(&server, &format!("{STREAM}?transport=tcp"));
        running.when_playing(5);
        let while_playing = coturn.allocations().unwrap();
        let ran = running.wait().expect_code(0);
        assert_eq!(while_playing, 5, "one allocation a viewer\n{ran}");
        // coturn's sockets have the kernel's usual buffers: when it waits long for a CPU, they overflow.
        expect_play(&server, &ran, 0.02);
        let direct = heard_elsewhere.load(Ordering::Relaxed);
        assert!(direct > 0, "viewers try the direct way too\n{ran}");
        let given_up_at = Instant::now() + Duration::from_secs(3);
        while coturn.allocations().unwrap() > 0 {
            assert!(Instant::now() < given_up_at, "{transport}: allocations are not given back\n{ran}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_relay_that_refuses_does_not_keep_viewers_from_the_direct_way() {
    let coturn = Coturn::start().unwrap();
    let relay = (coturn.uri("tcp"), coturn::USER.to_owned(), "wrong".to_owned());
    let (server, _) = start(Behaviour { relay: Some(relay), ..speaking() }, None);
    let ran = view(&server, &format!("{STREAM}?transport=tcp")).expect_code(0);
    expect_play(&server, &ran, 0.0);
}

/// As a real OvenMediaEngine 0.20 was seen to: it offers its relay, is not ready for the first connectivity checks, and its sender
/// reports say the media's time.
#[test]
fn viewers_play_from_a_server_that_is_ready_late_and_reports_media_time() {
    let coturn = Coturn::start().unwrap();
    let relay = (coturn.uri("tcp"), coturn::USER.to_owned(), coturn::PASSWORD.to_owned());
    let late =
        Manner { ready_after: Duration::from_millis(300), reports_media_time: true, ..Manner::default() };
    let (server, _) = start_as(Behaviour { relay: Some(relay), ..speaking() }, late);
    let ran = view(&server, &format!("{STREAM}?transport=tcp")).expect_code(0);
    expect_play(&server, &ran, 0.0);
    let summary = ran.summary();
    assert!(figure(&summary, "connect.ms_p50") >= 250.0, "nobody is heard before it is ready\n{ran}");
    assert!(ran.stdout.starts_with("5 viewers played cleanly"), "{ran}");
    assert!(summary["events"].get("odd_rtcp").is_none(), "its reports are RTCP\n{ran}");
}

fn check(behaviour: Behaviour, path: &str, reason: &str) {
    let said = format!("{behaviour:?}");
    let (server, _) = start(behaviour, None);
    let url = format!("ws://{}{path}", server.address());
    let ran = run(None, &["view", &url, "-n", "3", "--every", "50ms", "--for", "15s"]).expect_code(3);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 3.0, "{said}: {ran}");
    assert_eq!(summary["failures"][reason], 3, "{said}: {ran}");
}

#[test]
fn servers_that_refuse_or_misbehave_are_named() {
    check(Behaviour { refuse_upgrade: Some(401), ..speaking() }, STREAM, "http_401");
    check(speaking(), "/app/other", "refused");
    check(Behaviour { silent: true, ..speaking() }, STREAM, "signalling_timeout");
    check(Behaviour { garbage: Some("{\"command\":".into()), ..speaking() }, STREAM, "protocol");
}
