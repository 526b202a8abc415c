//! Local ports: each viewer has one toward the server.

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let (first, last) = facts.limits.ports;
    Check {
        name: "local-ports",
        found: format!("{first} to {last} of each source address"),
        verdict: Verdict::Limits { viewers: facts.limits.by_ports(&facts.needs) },
        change: "`sysctl net.ipv4.ip_local_port_range=\"10000 65000\"`, or more source addresses \
                 (--source-ip)"
            .to_owned(),
    }
}
