//! go2rtc with few open files.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::go2rtc::{self, API_PORT, PROGRAM};

use super::super::can_run;
use super::Limit;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 84, 4, 1);

/// The HTTP server of Go accepts nobody until a descriptor is free, and says so. Of WebRTC it
/// answers with the error of the system.
const NO_FILES: Limit = Limit {
    log: Some(("too many open files", "too_many_open_files")),
    finding: Some("file_descriptors"),
    failure: Some("http_500"),
};

/// 17 s: 5 s of the idle server, and 10 s of viewers.
#[test]
fn go2rtc_without_a_free_descriptor_is_named_with_its_limit() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("go2rtcmax", ADDRESS).unwrap();
    let server = go2rtc::start(&namespace, ADDRESS).unwrap();
    let _feed = go2rtc::feed(&server).unwrap();
    server.allow_more_files(8).unwrap();
    let whep = format!("whep+http://{ADDRESS}:{API_PORT}/api/webrtc?src=live");
    NO_FILES.is_met(&server, &["view", &whep, "-n", "14", "--every", "200ms", "--for", "10s"]);
}
