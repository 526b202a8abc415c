//! SRS with a maximum of connections, and with a thread that spares itself work.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::srs::{self, API_PORT, Options, PROGRAM, RTMP_PORT};

use super::super::can_run;
use super::Limit;
use crate::throng::figure;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 84, 1, 1);

/// It logs nothing, resets the connection beyond its maximum, and accepts none after it.
const FULL: Limit = Limit { log: None, finding: Some("configured_ceiling"), failure: Some("tcp") };

/// 17 s: 5 s of the idle server, and 10 s of publishers.
#[test]
fn srs_with_a_maximum_of_connections_is_suspected_of_it() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("srsmax", ADDRESS).unwrap();
    let options = Options { connections_max: 8, ..Options::default() };
    let server = srs::start_with(&namespace, ADDRESS, options).unwrap();
    let rtmp = format!("publish+rtmp://{ADDRESS}:{RTMP_PORT}/live/one-{{n}}");
    let crowd = ["view", &rtmp, "-n", "12", "--every", "300ms", "--for", "10s"];
    let ran = FULL.is_met(&server, &crowd);
    let summary = ran.summary();
    assert_eq!(summary["bottleneck"]["verdict"], "suspect", "the server said no word of it\n{ran}");
    assert_eq!(figure(&summary, "participants.connected"), 8.0, "{ran}\n{}", server.log());
}

/// What it says of each second in which it does so.
const SPARING: Limit =
    Limit { log: Some(("CircuitBreaker: cpu=", "circuit_breaker")), finding: None, failure: None };

/// 15 s: 5 s of the idle server, and 8 s of viewers.
#[test]
fn srs_says_that_its_thread_spares_itself_work() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("srsspare", ADDRESS).unwrap();
    let options = Options { spares_above_percent: 2, ..Options::default() };
    let server = srs::start_with(&namespace, ADDRESS, options).unwrap();
    let _feed = srs::feed(&server).unwrap();
    let whep = format!("whep+http://{ADDRESS}:{API_PORT}/rtc/v1/whep/?app=live&stream=cam");
    SPARING.is_met(&server, &["view", &whep, "-n", "12", "--every", "100ms", "--for", "8s"]);
}
