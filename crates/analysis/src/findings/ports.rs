//! All local ports toward one peer are in use: the next connection to it cannot be opened.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::Context;
use crate::demand::Resource;

pub(super) const KEY: &str = "local_ports";
/// Share of the port range. The kernel searches for a free port at random
/// (net/ipv4/inet_hashtables.c); at nine tenths the search is long and often fails.
const FULL_MIN: f64 = 0.90;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let refused = context.log_lines(&["no_ports"]);
    let fullest = context.fullest(&metric::TCP_EPHEMERAL_PORTS);
    let share = fullest.as_ref().map_or(0.0, |(_, reading, limit)| reading.fail() / limit);
    if share < FULL_MIN && !refused.begins() {
        return match fullest {
            None => Err(NoFinding::NotMonitored("local ports")),
            Some((_, reading, limit)) => ruled_out(format!(
                "Local ports: {:.0} of {limit:.0} toward one peer ({})",
                reading.fail(),
                percent(share)
            )),
        };
    }
    let (reading, limit) =
        fullest.map(|(_, reading, limit)| (reading, Some(limit))).unwrap_or_default();
    let crossed = limit
        .and_then(|limit| context.crossed_metric(&metric::TCP_EPHEMERAL_PORTS, FULL_MIN * limit));
    let waiting = context.sum(&metric::TCP_TIME_WAIT);
    Ok(Candidate {
        used: if share >= FULL_MIN { 1.0 } else { 0.6 },
        queue: Some(context.users.not_served.fail()),
        refuses: refused.begins() || share >= 0.99,
        demand: context.demand_of(Resource::Ports, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::TCP_EPHEMERAL_PORTS),
        evidence: vec![
            Evidence::count("tcp.ephemeral_ports toward one peer, the most", reading)
                .limit(limit)
                .crossed(crossed)
                .decides(),
            Evidence::count("log lines \"cannot assign requested address\"", refused)
                .of_events()
                .decides(),
            Evidence::count("tcp.time_wait", waiting),
        ],
        change: "Keep connections to the peer open (keepalive), a wider \
                 net.ipv4.ip_local_port_range, net.ipv4.tcp_tw_reuse, or more addresses"
            .into(),
        eases: |demand, _| demand.resource == Resource::Ports,
        ..Candidate::new(KEY, "No local port is left for connections to one peer", "local ports")
    })
}
