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

/// Of readers that take less than is sent to them. Viewers of the same host see the line as the
/// server does: what is named is not asked for.
const SLOW: Limit = Limit {
    log: Some(("reader is too slow, discarding ", "reader_too_slow")),
    finding: None,
    failure: None,
};

/// 17 s: 5 s of the idle server, and 10 s of three viewers on a line for less than one.
#[test]
fn mediamtx_says_that_readers_behind_a_slow_line_are_too_slow() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("mtxslow", ADDRESS).unwrap();
    let options = Options { write_queue_packets: 8, ..Options::default() };
    let server = mediamtx::start_with(&namespace, ADDRESS, options).unwrap();
    // By RTMP, which the line for RTSP does not slow.
    let _feed = mediamtx::feed_by_rtmp(&server).unwrap();
    slow_down_what_comes_from(&namespace, RTSP_PORT);
    let rtsp = format!("rtsp://{ADDRESS}:{RTSP_PORT}/live");
    let crowd = ["view", &rtsp, "-n", "3", "--every", "100ms", "--for", "10s"];
    SLOW.is_met(&server, &[&crowd[..], &["--set", &by("tcp")]].concat());
}

/// Shapes what a port sends on the loopback device, which packets to an own address take.
fn slow_down_what_comes_from(namespace: &Namespace, port: u16) {
    let of_port = format!("match ip sport {port} 0xffff flowid 1:3");
    let filter = format!("filter add dev lo parent 1: protocol ip prio 1 u32 {of_port}");
    for command in [
        "qdisc add dev lo root handle 1: prio",
        "qdisc add dev lo parent 1:3 tbf rate 600kbit burst 70kb latency 200ms",
        &filter,
    ] {
        let status = namespace.command("tc").args(command.split(' ')).status().unwrap();
        assert!(status.success(), "tc {command}");
    }
}
