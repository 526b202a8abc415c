//! SRS: WHEP and HLS of a stream that comes by RTMP, publishers by WHIP.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::srs::{self, API_PORT, HTTP_PORT, PROGRAM};

use super::{View, can_run, source_fps, table, takes_a_publisher};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 1, 1);

/// 45 s: runs of 6 s, 5 s of the idle server before one of them, 10 s of HLS.
#[test]
fn srs_plays_by_each_of_its_protocols() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("srs", ADDRESS).unwrap();
    let server = srs::start(&namespace, ADDRESS).unwrap();
    let _feed = srs::feed(&server).unwrap();
    let fps = source_fps(&namespace, &format!("rtmp://{ADDRESS}:{}/live/cam", srs::RTMP_PORT));
    let whep = format!("whep+http://{ADDRESS}:{API_PORT}/rtc/v1/whep/?app=live&stream=cam");
    let hls = format!("http://{ADDRESS}:{HTTP_PORT}/live/cam.m3u8");
    let view = View::of("WHEP", whep).watching(&server);
    // It counts every few seconds, and never what it sent after that to those who then leave.
    let mut rows = vec![view.plays(&namespace, fps).row];
    rows.push(View::of_segments("HLS", hls).plays(&namespace, fps).row);
    let whip = format!("whip+http://{ADDRESS}:{API_PORT}/rtc/v1/whip/?app=live&stream=mine");
    rows.push(takes_a_publisher(&server, &whip));
    table::has("SRS", &rows);
}
