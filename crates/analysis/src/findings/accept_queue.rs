//! Connections wait to be accepted, and no more fit into the queue.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;

use super::descriptors::connections;
use super::{Candidate, CheckResult, Evidence};
use crate::context::Context;

pub(super) const KEY: &str = "accept_queue";
/// A second. Each is a connection attempt that waits for its client's next try, a second or more later.
const OVERFLOWS_MIN: f64 = 0.1;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let overflows = context.rate(&metric::TCP_LISTEN_OVERFLOWS);
    let drops = context.rate(&metric::TCP_LISTEN_DROPS);
    let syn = context.rate(&metric::TCP_SYN_QUEUE_DROPS);
    if overflows.fail.is_none() && drops.fail.is_none() {
        return CheckResult::NotMonitored("overflows of accept queues");
    }
    let most = overflows.fail().max(drops.fail()).max(syn.fail());
    let fullest = context.fullest(&metric::SOCKET_ACCEPT_QUEUE);
    if most < OVERFLOWS_MIN {
        return CheckResult::RuledOut(format!("Accept queues: {most:.1} connections refused a second"));
    }
    let crossed = context
        .crossed_metric(&metric::TCP_LISTEN_OVERFLOWS, OVERFLOWS_MIN)
        .or(context.crossed_metric(&metric::TCP_LISTEN_DROPS, OVERFLOWS_MIN));
    let mut evidence = vec![
        Evidence::new("tcp.listen_overflows", Unit::PerSecond, overflows)
            .limit(Some(0.0))
            .crossed(crossed)
            .decides(),
        Evidence::new("tcp.listen_drops", Unit::PerSecond, drops).limit(Some(0.0)).decides(),
        Evidence::new("tcp.syn_queue_drops", Unit::PerSecond, syn).decides(),
        Evidence::new("tcp.established", Unit::Count, connections(context)),
    ];
    let mut backlog = String::new();
    if let Some((series, reading, limit)) = &fullest {
        let port = series.label("port");
        backlog = format!(" beyond {limit:.0} (port {port})");
        let name = format!("socket.accept_queue of port {port}, the most");
        evidence.push(Evidence::new(name, Unit::Count, *reading).limit(Some(*limit)));
    }
    let somaxconn = context.host.info.and_then(|info| info.facts.get("net.core.somaxconn"));
    let somaxconn = somaxconn.map_or_else(String::new, |max| format!(" (it is {max})"));
    Candidate {
        used: 1.0,
        queue: fullest.map(|(_, reading, limit)| (reading.fail() / limit).clamp(0.0, 1.0)).or(Some(1.0)),
        refuses: overflows.begins() || drops.begins() || syn.begins(),
        crossed_at_s: crossed,
        series: context.ids(&metric::TCP_LISTEN_OVERFLOWS),
        evidence,
        change: format!(
            "A longer backlog{backlog}: the server's listen() backlog and net.core.somaxconn{somaxconn}; more or faster accepting threads where it is full all the time"
        ),
        // Who is being served and suffers does not suffer from this.
        at_most: if context.users.not_served.fail() >= 0.5 { 100.0 } else { super::score::CAP_COMPANY },
        ..Candidate::new(KEY, "The accept queue is full: connections are refused before the server sees them", "accept queue")
    }
    .suspect()
}
