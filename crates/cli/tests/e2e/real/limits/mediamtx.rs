//! MediaMTX: a stream with a maximum of readers, and readers behind a line that is too slow.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::mediamtx::{self, Options, PROGRAM, RTSP_PORT};

use super::super::{by, can_run};
use super::Limit;
use crate::throng::figure;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 84, 0, 1);

/// Of a stream that has as many readers as it may.
const FULL: Limit = Limit {
    log: Some(("maximum reader count reached", "connection_limit")),
    finding: Some("configured_ceiling"),
    // The answer to SETUP.
    failure: Some("rtsp_400"),
};

/// 17 s: 5 s of the idle server, and 10 s of viewers.
#[test]
fn mediamtx_with_a_maximum_of_readers_is_named_with_its_configuration() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("mtxmax", ADDRESS).unwrap();
    let options = Options { readers_max: 6, ..Options::default() };
    let server = mediamtx::start_with(&namespace, ADDRESS, options).unwrap();
    let _feed = mediamtx::feed(&server).unwrap();
    let rtsp = format!("rtsp://{ADDRESS}:{RTSP_PORT}/live");
    let crowd = ["view", &rtsp, "-n", "10", "--every", "300ms", "--for", "10s"];
    let ran = FULL.is_met(&server, &[&crowd[..], &["--set", &by("tcp")]].concat());
    assert_eq!(figure(&ran.summary(), "participants.playing"), 6.0, "{ran}");
}

/// Of readers that take less than is sent to them. It is the line that is named.
const SLOW: Limit = Limit {
    log: Some(("reader is too slow, discarding ", "reader_too_slow")),
    finding: Some("line_rate"),
    failure: None,
};

/// 18 s: 5 s of the idle server, and 12 s of six viewers on a line for two.
#[test]
fn mediamtx_says_that_readers_behind_a_slow_line_are_too_slow() {
    if !can_run(PROGRAM) {
        return;
    }
    let own = Ipv4Addr::new(10, 84, 0, 2);
    let (namespace, viewers) = Namespace::pair("mtxslow", ADDRESS, own).unwrap();
    let options = Options { write_queue_packets: 8, ..Options::default() };
    let server = mediamtx::start_with(&namespace, ADDRESS, options).unwrap();
    let _feed = mediamtx::feed(&server).unwrap();
    let shaper = "qdisc add dev v0 root tbf rate 1mbit burst 16kb latency 200ms";
    assert!(namespace.command("tc").args(shaper.split(' ')).status().unwrap().success());
    let rtsp = format!("rtsp://{ADDRESS}:{RTSP_PORT}/live");
    let crowd = ["view", &rtsp, "-n", "6", "--every", "100ms", "--for", "12s"];
    let reached = ["--set", &by("tcp"), "--allow-target", "10.84.0.0/24"];
    SLOW.is_met_from(&viewers, &server, &[&crowd[..], &reached].concat());
}
