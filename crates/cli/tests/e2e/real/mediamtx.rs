//! MediaMTX: RTSP over UDP and TCP and inside TLS, WHEP, HLS of each form, publishers by RTMP, SRT,
//! RTSP and WHIP.

use std::net::Ipv4Addr;
use std::time::Duration;

use throng_observation::host::{HostSeries, Unit};
use throng_sim::namespace::Namespace;
use throng_sim::real::RealServer;
use throng_sim::real::mediamtx::{
    self, CERTIFICATE, Encryption, HLS_PORT, METRICS_PORT, Options, PROGRAM, RTMP_PORT, RTSP_PORT,
    RTSPS_PORT, SRT_PORT, WEBRTC_PORT, metric, received_bytes,
};
use throng_store::RunFolder;

use super::publishing::{Published, all_are_played};
use super::{View, by, can_run, source_fps, table};
use crate::throng::Running;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
/// Of what ffmpeg publishes; nothing else can probe it inside TLS without trust in the certificate.
const FEED_FPS: f64 = 25.0;

/// 40 s: runs of 6 s by each way, 5 s of the idle server before one of them, 10 s of HLS.
#[test]
fn mediamtx_plays_by_each_of_its_protocols() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("mtx", ADDRESS).unwrap();
    let server = mediamtx::start(&namespace, ADDRESS).unwrap();
    let _feed = mediamtx::feed(&server).unwrap();
    let rtsp = format!("rtsp://{ADDRESS}:{RTSP_PORT}/live");
    let whep = format!("whep+http://{ADDRESS}:{WEBRTC_PORT}/live/whep");
    let hls = format!("http://{ADDRESS}:{HLS_PORT}/live/index.m3u8");
    let fps = source_fps(&namespace, &rtsp);
    let sent = || metric(&server, "paths_outbound_bytes").unwrap();
    let watch = format!("pid={},metrics=http://{ADDRESS}:{METRICS_PORT}/metrics", server.pid());
    let mut rows = Vec::new();
    for view in [
        View::of("RTSP over UDP", rtsp.clone()).with(&["--set", &by("udp")]),
        View::of("RTSP over TCP", rtsp.clone()).with(&["--set", &by("tcp")]),
        View::of("WHEP", whep).with(&["--watch", &watch]),
    ] {
        rows.push(view.plays_as_counted(&namespace, fps, sent));
    }
    let low_latency = View::of_segments("LL-HLS", hls);
    rows.push(low_latency.plays_as_counted(&namespace, fps, || sent_by_hls(&server)));
    table::has("MediaMTX", table::Part::Main, &rows);
}

/// Bytes that it has sent by HLS to those whose sessions it still knows.
fn sent_by_hls(server: &RealServer<'_>) -> f64 {
    metric(server, "hls_sessions_outbound_bytes").unwrap()
}

/// 14 s: both servers at once, 10 s of viewers.
#[test]
fn mediamtx_plays_hls_of_both_containers() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespaces = ["mtxfmp4", "mtxts"].map(|name| Namespace::with_veth(name, ADDRESS).unwrap());
    let [fragments, stream] = &namespaces;
    let servers = [(fragments, "fmp4"), (stream, "mpegts")].map(|(namespace, hls_variant)| {
        let options = Options { hls_variant, ..Options::default() };
        mediamtx::start_with(namespace, ADDRESS, options).unwrap()
    });
    // A transport stream takes no Opus.
    let _feeds = [0, 1].map(|at: usize| mediamtx::feed_by_rtmp(&servers[at]).unwrap());
    let hls = format!("http://{ADDRESS}:{HLS_PORT}/live/index.m3u8");
    let running = [("HLS of fMP4", 0), ("HLS of MPEG-TS", 1)].map(|(protocol, at): (_, usize)| {
        let view = View::of_segments(protocol, hls.clone());
        (at, view.start(servers[at].namespace()), view)
    });
    let rows = running.map(|(at, running, view)| {
        view.played(running.wait(), FEED_FPS).counted_by(|| sent_by_hls(&servers[at]))
    });
    table::has("MediaMTX", table::Part::Segmented, &rows);
}

/// 16 s: a stream is offered after some seconds, and counters are read for 8 s.
#[test]
fn mediamtx_takes_what_throng_publishes_and_passes_it_on() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("mtxpub", ADDRESS).unwrap();
    let options = Options { encryption: Encryption::Optional, ..Options::default() };
    let server = mediamtx::start_with(&namespace, ADDRESS, options).unwrap();
    let of = &server;
    let received =
        |stream: &'static str| Box::new(move || received_bytes(of, stream).unwrap_or(0.0));
    let by_rtsp = |stream: &str| {
        let url = format!("rtsp://{ADDRESS}:{RTSP_PORT}/{stream}");
        View::of("RTSP", url).with(&["--set", &by("tcp")])
    };
    let whep = format!("whep+http://{ADDRESS}:{WEBRTC_PORT}/fromrtsp/whep");
    let streams = [
        Published {
            protocol: "publishing by RTMP",
            url: format!("publish+rtmp://{ADDRESS}:{RTMP_PORT}/fromrtmp"),
            viewers: by_rtsp("fromrtmp"),
            received: received("fromrtmp"),
        },
        Published {
            protocol: "publishing by SRT",
            url: format!("publish+srt://{ADDRESS}:{SRT_PORT}?streamid=publish:fromsrt"),
            viewers: by_rtsp("fromsrt"),
            received: received("fromsrt"),
        },
        Published {
            protocol: "publishing by RTSP",
            url: format!("publish+rtsp://{ADDRESS}:{RTSP_PORT}/fromrtsp"),
            viewers: View::of("WHEP", whep),
            received: received("fromrtsp"),
        },
        Published {
            protocol: "publishing by RTSP over UDP",
            url: format!("publish+rtsp://{ADDRESS}:{RTSP_PORT}/fromudp"),
            viewers: by_rtsp("fromudp"),
            received: received("fromudp"),
        },
        Published {
            protocol: "publishing by RTSPS",
            url: format!("publish+rtsps://{ADDRESS}:{RTSPS_PORT}/fromtls"),
            viewers: by_rtsp("fromtls"),
            received: received("fromtls"),
        },
        Published {
            protocol: "publishing by WHIP",
            url: format!("whip+http://{ADDRESS}:{WEBRTC_PORT}/fromwhip/whip"),
            viewers: by_rtsp("fromwhip"),
            received: received("fromwhip"),
        },
    ];
    table::has("MediaMTX", table::Part::Published, &all_are_played(&server, &streams));
}

/// 12 s: both servers at once, 6 s of viewers.
#[test]
fn mediamtx_plays_rtsp_inside_tls_with_a_certificate_of_its_own() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespaces = ["mtxopt", "mtxtls"].map(|name| Namespace::with_veth(name, ADDRESS).unwrap());
    let [optional, strict] = &namespaces;
    let kinds = [(optional, Encryption::Optional), (strict, Encryption::Strict)];
    let servers = kinds.map(|(namespace, encryption)| {
        let options = Options { encryption, ..Options::default() };
        mediamtx::start_with(namespace, ADDRESS, options).unwrap()
    });
    let _feeds = [0, 1].map(|at: usize| mediamtx::feed_by_rtmp(&servers[at]).unwrap());
    let views = [("RTSPS", 0), ("RTSPS, strict", 1)].map(|(protocol, at): (_, usize)| {
        let certificate = servers[at].file(CERTIFICATE).to_string_lossy().into_owned();
        let url = format!("rtsps://{ADDRESS}:{RTSPS_PORT}/live");
        let view = View::of(protocol, url);
        (at, view.with(&["--set", &by("tcp"), "--tls-ca", &certificate]))
    });
    let sent = |at: usize| metric(&servers[at], "paths_outbound_bytes").unwrap();
    let before = [sent(0), sent(1)];
    let running = views.map(|(at, view)| (at, view.start(servers[at].namespace()), view));
    let rows = running.map(|(at, running, view)| {
        view.played(running.wait(), FEED_FPS).counted_by(|| sent(at) - before[at])
    });
    table::has("MediaMTX", table::Part::Encrypted, &rows);
}

/// 20 s: 5 s of the idle server, and 8 s of viewers until the feed is killed, which ends the run.
#[test]
fn mediamtx_that_disconnects_its_viewers_with_the_feed_is_said_to_have_lost_its_source() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("mtxend", ADDRESS).unwrap();
    let server = mediamtx::start(&namespace, ADDRESS).unwrap();
    let feed = mediamtx::feed(&server).unwrap();
    let rtsp = format!("rtsp://{ADDRESS}:{RTSP_PORT}/live");
    let watch = format!("pid={},metrics=http://{ADDRESS}:{METRICS_PORT}/metrics", server.pid());
    let crowd = ["view", &rtsp, "-n", "4", "--every", "100ms", "--for", "60s"];
    let more = ["--set", &by("tcp"), "--watch", &watch];
    let mut running = Running::start(Some(&namespace), &[&crowd[..], &more].concat());
    running.when_playing(4);
    // Its endpoint is read every 5 s, and a rate needs two readings.
    std::thread::sleep(Duration::from_secs(6));
    feed.kill().unwrap();
    let ran = running.wait();
    let summary = ran.summary();
    let found = &summary["bottleneck"];
    assert_eq!(found["finding"], "source_stopped", "{found:#}\n{ran}\n{}", server.log());
    let title = found["title"].as_str().unwrap_or_default();
    assert!(title.starts_with("All 4 viewers were disconnected within 1 s"), "{title}\n{ran}");
    // What it counts of its sources has the name that its pack knows.
    let run = RunFolder::read(ran.folder()).unwrap();
    let is_ingest =
        |one: &HostSeries| one.metric == "paths_inbound_bytes" && one.unit == Unit::BytesPerSecond;
    assert!(run.host.series.iter().any(is_ingest), "{ran}\n{:?}", run.host.events);
}
