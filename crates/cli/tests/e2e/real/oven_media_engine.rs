//! OvenMediaEngine: its signalling, straight and through its relay, LL-HLS and HLS of a stream that
//! comes by RTMP; publishers by RTMP, SRT and WHIP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::oven_media_engine::{
    self, PORT, PROGRAM, RTMP_PORT, SRT_PORT, received_bytes, sent_bytes,
};

use super::publishing::{Published, all_are_played};
use super::{View, can_run, source_fps, table};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 2, 1);

/// A minute: runs of 6 s, 5 s of the idle server before one of them, 10 s of LL-HLS and of HLS, and
/// until the first segments are there.
#[test]
fn oven_media_engine_plays_by_each_of_its_protocols() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("ome", ADDRESS).unwrap();
    let server = oven_media_engine::start(&namespace, ADDRESS).unwrap();
    let _feed = oven_media_engine::feed(&server).unwrap();
    // It plays no RTMP: what it makes of the stream is probed. Its first segments come after a
    // while.
    std::thread::sleep(std::time::Duration::from_secs(8));
    let (web, webrtc) = (format!("http://{ADDRESS}:{PORT}"), format!("ws://{ADDRESS}:{PORT}"));
    let (hls, ll_hls) =
        (format!("{web}/app/live/ts:playlist.m3u8"), format!("{web}/app/live/llhls.m3u8"));
    let fps = source_fps(&namespace, &hls);
    let sent = || sent_bytes(&server).unwrap();
    let mut rows = Vec::new();
    for view in [
        View::of("WebRTC", format!("{webrtc}/app/live")).watching(&server),
        View::of("WebRTC through its relay", format!("{webrtc}/app/live?transport=tcp")),
        View::of_segments("LL-HLS", ll_hls),
        View::of_segments("HLS", hls),
    ] {
        rows.push(view.plays_as_counted(&namespace, fps, sent));
    }
    table::has("OvenMediaEngine", table::Part::Main, &rows);
}

/// 16 s: a stream is offered after some seconds, and counters are read for 8 s.
#[test]
fn oven_media_engine_takes_what_throng_publishes_and_passes_it_on() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("omepub", ADDRESS).unwrap();
    let server = oven_media_engine::start(&namespace, ADDRESS).unwrap();
    let of = &server;
    let received =
        |stream: &'static str| Box::new(move || received_bytes(of, stream).unwrap_or(0.0));
    let by_webrtc = |stream: &str| View::of("WebRTC", format!("ws://{ADDRESS}:{PORT}/{stream}"));
    let streams = [
        Published {
            protocol: "publishing by RTMP",
            url: format!("publish+rtmp://{ADDRESS}:{RTMP_PORT}/app/fromrtmp"),
            viewers: by_webrtc("app/fromrtmp"),
            received: received("app/streams/fromrtmp"),
        },
        Published {
            protocol: "publishing by SRT",
            url: format!("publish+srt://{ADDRESS}:{SRT_PORT}?streamid=default/app/fromsrt"),
            viewers: by_webrtc("app/fromsrt"),
            received: received("app/streams/fromsrt"),
        },
        Published {
            protocol: "publishing by WHIP",
            url: format!("whip+http://{ADDRESS}:{PORT}/browsers/fromwhip?direction=whip"),
            viewers: by_webrtc("browsers/fromwhip"),
            received: received("browsers/streams/fromwhip"),
        },
    ];
    table::has("OvenMediaEngine", table::Part::Published, &all_are_played(&server, &streams));
}
