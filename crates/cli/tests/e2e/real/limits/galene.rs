//! Galène with a room for a few clients.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::galene::{self, PORT, PROGRAM};

use super::super::can_run;
use super::Limit;
use crate::throng::figure;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 84, 5, 1);

/// Of a room that has as many clients as it may.
const FULL: Limit = Limit {
    log: Some(("too many users", "connection_limit")),
    finding: Some("configured_ceiling"),
    failure: Some("http_500"),
};

/// 17 s: 5 s of the idle server, and 10 s of publishers.
#[test]
fn galene_with_a_maximum_of_clients_is_named_with_its_configuration() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("galenemax", ADDRESS).unwrap();
    let server = galene::start_with(&namespace, ADDRESS, 5).unwrap();
    let whip = format!("whip+http://{ADDRESS}:{PORT}/group/room/.whip");
    let crowd = ["view", &whip, "--set", "crowd.subscribe=none", "-n", "8", "--every", "300ms"];
    let ran = FULL.is_met(&server, &[&crowd[..], &["--for", "10s"]].concat());
    assert_eq!(figure(&ran.summary(), "participants.failed"), 3.0, "{ran}\n{}", server.log());
}
