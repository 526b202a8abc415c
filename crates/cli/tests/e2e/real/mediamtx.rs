//! MediaMTX: RTSP over UDP and TCP, WHEP, low-latency HLS, publishers by WHIP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::mediamtx::{
    self, HLS_PORT, METRICS_PORT, PROGRAM, RTSP_PORT, WEBRTC_PORT, metric,
};

use super::{View, by, can_run, source_fps, table, takes_a_publisher};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);

/// 45 s: runs of 6 s by each way, 5 s of the idle server before one of them, 10 s of HLS.
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
    rows.push(View::of_segments("LL-HLS", hls).plays(&namespace, fps).row);
    let whip = format!("whip+http://{ADDRESS}:{WEBRTC_PORT}/mine/whip");
    rows.push(takes_a_publisher(&server, &whip));
    table::has("MediaMTX", &rows);
}
