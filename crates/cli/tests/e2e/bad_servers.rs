//! Servers that misbehave: each becomes a counted, named outcome, and the run continues to its end.

use std::net::Ipv4Addr;

use throng_sim::whep::{Behaviour, Server};

use crate::throng::{figure, run};

fn check(behaviour: Behaviour, reason: &str) {
    let said = format!("{behaviour:?}");
    let server = Server::start(Ipv4Addr::LOCALHOST, behaviour).unwrap();
    let url = format!("whep+http://{}/whep", server.address());
    let ran =
        run(None, &["view", &url, "-n", "3", "--every", "50ms", "--for", "15s"]).expect_code(3);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.intended"), 3.0, "{said}: {ran}");
    assert_eq!(figure(&summary, "participants.failed"), 3.0, "{said}: {ran}");
    assert_eq!(summary["failures"][reason], 3, "{said}: {ran}");
}

#[test]
fn statuses_are_named_by_their_number() {
    for status in [401, 404, 409, 503] {
        check(Behaviour::Status(status, Vec::new(), "no".into()), &format!("http_{status}"));
    }
}

#[test]
fn answers_that_are_no_answers_are_protocol_failures() {
    check(Behaviour::Garbage, "protocol");
    check(
        Behaviour::Answer("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n".into()),
        "protocol",
    );
}

#[test]
fn connections_that_break_or_stay_silent_are_named() {
    check(Behaviour::Silent, "signalling_timeout");
    check(Behaviour::Close, "signalling_closed");
    check(Behaviour::CloseMidBody, "signalling_closed");
}

#[test]
fn a_redirect_to_a_host_without_consent_is_refused_and_not_followed() {
    check(Behaviour::Redirect("http://192.0.2.55/whep".into()), "not_allowed");
}
