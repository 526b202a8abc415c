//! go2rtc: RTSP over TCP, WHEP and HLS, publishers by RTSP, WHIP and RTMP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::go2rtc::{
    self, API_PORT, PROGRAM, RTMP_PORT, RTSP_PORT, received_bytes, sent_bytes,
};

use super::publishing::{Published, all_are_played};
use super::table::Row;
use super::{View, by, can_run, source_fps, table};
use crate::throng::{figure, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 4, 1);

/// 50 s: two runs of 6 s, 5 s of the idle server before one of them, twice 10 s of HLS.
#[test]
fn go2rtc_plays_by_each_of_its_protocols() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("go2rtc", ADDRESS).unwrap();
    let server = go2rtc::start(&namespace, ADDRESS).unwrap();
    let _feed = go2rtc::feed(&server).unwrap();
    let rtsp = format!("rtsp://{ADDRESS}:{RTSP_PORT}/live");
    let whep = format!("whep+http://{ADDRESS}:{API_PORT}/api/webrtc?src=live");
    let hls = format!("http://{ADDRESS}:{API_PORT}/api/stream.m3u8?src=live");
    let fps = source_fps(&namespace, &rtsp);
    let mut rows = Vec::new();
    let rtsp = View::of("RTSP over TCP", rtsp).with(&["--set", &by("tcp")]);
    rows.push(rtsp.plays_as_they_grow(&namespace, fps, || sent_bytes(&server).unwrap()));
    rows.push(View::of("WHEP", whep).watching(&server).plays(&namespace, fps).row);
    let seen = View::of_segments("HLS, fMP4", format!("{hls}&mp4")).plays(&namespace, fps);
    // Its segments are shorter than its playlist says.
    assert_eq!(figure(&seen.ran.summary(), "playback.skipped_s"), 0.0, "{}", seen.ran);
    rows.push(seen.row);
    rows.push(is_not_played(&namespace, hls));
    table::has("go2rtc", table::Part::Main, &rows);
}

/// 16 s: a stream is offered after some seconds, and counters are read for 8 s.
#[test]
fn go2rtc_takes_what_throng_publishes_and_passes_it_on() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("go2rtcpub", ADDRESS).unwrap();
    let server = go2rtc::start(&namespace, ADDRESS).unwrap();
    let of = &server;
    let received =
        |stream: &'static str| Box::new(move || received_bytes(of, stream).unwrap_or(0.0));
    let by_rtsp = |stream: &str| {
        let url = format!("rtsp://{ADDRESS}:{RTSP_PORT}/{stream}");
        View::of("RTSP", url).with(&["--set", &by("tcp")])
    };
    let api = format!("http://{ADDRESS}:{API_PORT}/api/webrtc");
    let streams = [
        Published {
            protocol: "publishing by RTSP",
            url: format!("publish+rtsp://{ADDRESS}:{RTSP_PORT}/fromrtsp"),
            viewers: View::of("WHEP", format!("whep+{api}?src=fromrtsp")),
            received: received("fromrtsp"),
        },
        Published {
            protocol: "publishing by WHIP",
            url: format!("whip+{api}?dst=fromwhip"),
            viewers: by_rtsp("fromwhip"),
            received: received("fromwhip"),
        },
        Published {
            protocol: "publishing by RTMP",
            url: format!("publish+rtmp://{ADDRESS}:{RTMP_PORT}/fromrtmp"),
            viewers: by_rtsp("fromrtmp"),
            received: received("fromrtmp"),
        },
    ];
    table::has("go2rtc", table::Part::Published, &all_are_played(&server, &streams));
}

/// The first segment of its transport streams has no tables, and each that is fetched at once after
/// another has nothing else. hls.js 1.6 and 1.7 in Chromium give up, or jump from hole to hole.
#[track_caller]
fn is_not_played(namespace: &Namespace, url: String) -> Row {
    let view = View::of_segments("HLS, MPEG-TS", url);
    let (ran, ()) = valid(|| (view.start(namespace).wait(), ()));
    let summary = ran.summary();
    if figure(&summary, "participants.failed") > 0.0 {
        let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("no audio or video was found in its "), "{detail}\n{ran}");
    } else {
        assert!(figure(&summary, "playback.skipped_s") > 1.0, "{ran}");
    }
    Row::said(view.protocol, "is not played, as by hls.js: segments without media")
}
