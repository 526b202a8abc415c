//! SRS: WHEP, HLS and MPEG-DASH of a stream that comes by RTMP, publishers by RTMP, SRT and WHIP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::srs::{
    self, API_PORT, HTTP_PORT, Options, PROGRAM, RTMP_PORT, SRT_PORT, received_bytes,
};

use super::publishing::{Published, all_are_played};
use super::{View, can_run, source_fps, table};
use crate::throng::{Running, figure};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 1, 1);

/// 25 s: runs of 6 s, 5 s of the idle server before one of them, 10 s of HLS.
#[test]
fn srs_plays_by_each_of_its_protocols() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("srs", ADDRESS).unwrap();
    let server = srs::start(&namespace, ADDRESS).unwrap();
    let _feed = srs::feed(&server).unwrap();
    let fps = source_fps(&namespace, &format!("rtmp://{ADDRESS}:{}/live/cam", RTMP_PORT));
    let whep = format!("whep+http://{ADDRESS}:{API_PORT}/rtc/v1/whep/?app=live&stream=cam");
    let hls = format!("http://{ADDRESS}:{HTTP_PORT}/live/cam.m3u8");
    let view = View::of("WHEP", whep).watching(&server);
    // It counts every few seconds, and never what it sent after that to those who then leave.
    let rows = [view, View::of_segments("HLS", hls)].map(|view| view.plays(&namespace, fps).row);
    table::has("SRS", table::Part::Main, &rows);
}

/// 16 s: a manifest comes after some seconds, and 10 s of viewers.
#[test]
fn srs_plays_by_dash() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("srsdash", ADDRESS).unwrap();
    let options = Options { has_dash: true, ..Options::default() };
    let server = srs::start_with(&namespace, ADDRESS, options).unwrap();
    let _feed = srs::feed(&server).unwrap();
    let fps = source_fps(&namespace, &format!("rtmp://{ADDRESS}:{RTMP_PORT}/live/cam"));
    let dash = format!("http://{ADDRESS}:{HTTP_PORT}/live/cam.mpd");
    let rows = [View::of_segments("MPEG-DASH", dash).plays(&namespace, fps).row];
    table::has("SRS", table::Part::Segmented, &rows);
}

/// SRS answers the source that it heard last. One in twelve viewers failed with `dtls` where that
/// was an address of this machine to which it has no route.
#[test]
fn srs_loses_no_viewer_of_a_machine_with_an_address_that_it_cannot_reach() {
    if !can_run(PROGRAM) {
        return;
    }
    let own = Ipv4Addr::new(10, 83, 1, 2);
    let (namespace, viewers) = Namespace::pair("srsmany", ADDRESS, own).unwrap();
    viewers.add_address(Ipv4Addr::new(192, 0, 2, 7)).unwrap();
    let server = srs::start(&namespace, ADDRESS).unwrap();
    let _feed = srs::feed(&server).unwrap();
    let whep = format!("whep+http://{ADDRESS}:{API_PORT}/rtc/v1/whep/?app=live&stream=cam");
    let crowd = ["-n", "60", "--every", "50ms", "--for", "6s", "--allow-target", "10.83.1.0/24"];
    let ran = Running::start(Some(&viewers), &[&["view", &whep][..], &crowd].concat()).wait();
    let summary = ran.expect_code(0).summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{}", server.log());
    assert_eq!(figure(&summary, "participants.playing"), 60.0, "{}", server.log());
}

/// 16 s: a stream is offered after some seconds, and counters are read for 8 s.
#[test]
fn srs_takes_what_throng_publishes_and_passes_it_on() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("srspub", ADDRESS).unwrap();
    let server = srs::start(&namespace, ADDRESS).unwrap();
    let of = &server;
    let received =
        |stream: &'static str| Box::new(move || received_bytes(of, stream).unwrap_or(0.0));
    let by_whep = |stream: &str| {
        let path = format!("rtc/v1/whep/?app=live&stream={stream}");
        View::of("WHEP", format!("whep+http://{ADDRESS}:{API_PORT}/{path}"))
    };
    let whip = "rtc/v1/whip/?app=live&stream=fromwhip";
    let srt = "streamid=%23!::r=live/fromsrt,m=publish";
    let streams = [
        Published {
            protocol: "publishing by RTMP",
            url: format!("publish+rtmp://{ADDRESS}:{RTMP_PORT}/live/fromrtmp"),
            viewers: by_whep("fromrtmp"),
            received: received("fromrtmp"),
        },
        Published {
            protocol: "publishing by SRT",
            url: format!("publish+srt://{ADDRESS}:{SRT_PORT}?{srt}"),
            viewers: by_whep("fromsrt"),
            received: received("fromsrt"),
        },
        Published {
            protocol: "publishing by WHIP",
            url: format!("whip+http://{ADDRESS}:{API_PORT}/{whip}"),
            viewers: by_whep("fromwhip"),
            received: received("fromwhip"),
        },
    ];
    table::has("SRS", table::Part::Published, &all_are_played(&server, &streams));
}
