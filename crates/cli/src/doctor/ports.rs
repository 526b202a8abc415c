//! Local ports: each viewer has one toward the server.

use throng_engine::preflight::MORE_PORTS;

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let (first, last) = facts.limits.ports;
    let addresses = match facts.needs.source_ips {
        0 | 1 => "each source address".to_owned(),
        many => format!("each of {many} source addresses"),
    };
    Check {
        name: "local-ports",
        found: format!("{first} to {last} of {addresses}"),
        verdict: Verdict::Limits { viewers: facts.limits.by_ports(&facts.needs) },
        change: MORE_PORTS.to_owned(),
    }
}
