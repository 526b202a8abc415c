//! Local ports: each viewer has one toward the server.

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
        change: "`sysctl net.ipv4.ip_local_port_range=\"10000 65000\"`, or more source addresses \
                 (--source-ip)"
            .to_owned(),
    }
}
