//! The accept queue is full: the kernel refuses connections.

use throng_observation::host::catalogue as metric;

use super::descriptors::connections;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::Context;

pub(super) const KEY: &str = "accept_queue";
/// Overflows a second. Each is a connection attempt that the client repeats a second or more later.
const OVERFLOWS_MIN: f64 = 0.1;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let overflows = context.rate(&metric::TCP_LISTEN_OVERFLOWS);
    let drops = context.rate(&metric::TCP_LISTEN_DROPS);
    let syn = context.rate(&metric::TCP_SYN_QUEUE_DROPS);
    if overflows.fail.is_none() && drops.fail.is_none() {
        return Err(NoFinding::NotMonitored("overflows of accept queues"));
    }
    let most = overflows.fail().max(drops.fail()).max(syn.fail());
    let fullest = context.fullest(&metric::SOCKET_ACCEPT_QUEUE);
    if most < OVERFLOWS_MIN {
        return ruled_out(format!("Accept queues: {most:.1} connections refused a second"));
    }
    let crossed = context
        .crossed_metric(&metric::TCP_LISTEN_OVERFLOWS, OVERFLOWS_MIN)
        .or(context.crossed_metric(&metric::TCP_LISTEN_DROPS, OVERFLOWS_MIN));
    let mut evidence = vec![
        Evidence::per_second("tcp.listen_overflows", overflows)
            .limit(0.0)
            .crossed(crossed)
            .decides(),
        Evidence::per_second("tcp.listen_drops", drops).limit(0.0).decides(),
        Evidence::per_second("tcp.syn_queue_drops", syn).decides(),
        Evidence::count("tcp.established", connections(context)),
    ];
    let mut backlog = String::new();
    if let Some((series, reading, limit)) = &fullest {
        let port = series.label("port");
        backlog = format!(" beyond {limit:.0} (port {port})");
        let name = format!("socket.accept_queue of port {port}, the most");
        evidence.push(Evidence::count(name, *reading).limit(*limit));
    }
    let somaxconn = context.host.info.and_then(|info| info.facts.get("net.core.somaxconn"));
    let somaxconn = somaxconn.map_or_else(String::new, |max| format!(" (it is {max})"));
    Ok(Candidate {
        used: 1.0,
        queue: fullest
            .map(|(_, reading, limit)| (reading.fail() / limit).clamp(0.0, 1.0))
            .or(Some(1.0)),
        refuses: overflows.begins() || drops.begins() || syn.begins(),
        crossed_at_s: crossed,
        series: context.ids(&metric::TCP_LISTEN_OVERFLOWS),
        evidence,
        change: format!(
            "A longer backlog{backlog}: the server's listen() backlog and \
             net.core.somaxconn{somaxconn}; more or faster accepting threads where it is full all \
             the time"
        ),
        // Users that are connected and have bad service do not suffer from refused connections,
        // except for players, which may open one for each segment or seek.
        at_most: if context.users.not_served.fail() >= 0.5 || !context.users.have_packets() {
            100.0
        } else {
            super::score::CAP_COMPANY
        },
        ..Candidate::new(
            KEY,
            "The accept queue is full: connections are refused before the server sees them",
            "accept queue",
        )
    })
}
