//! The memory of all TCP sockets is short: the kernel holds sending up, shrinks windows and ends
//! connections, of whichever process.

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::units::bytes;

use super::descriptors::connections;
use super::score::CAP_COMPANY;
use super::{CONNECTED, Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::Context;

pub(super) const KEY: &str = "tcp_memory";

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let events = |metric: &Metric| context.events(context.host.metric(metric.name));
    // It is recorded wherever TCP is.
    let (_, used, limit) = context.fullest(&metric::TCP_MEMORY).ok_or(NoFinding::NotApplicable)?;
    // The kernel counts when it begins to be short, and is so until less is used: one is enough.
    let shortages = events(&metric::TCP_MEMORY_PRESSURES);
    if !shortages.begins() {
        let used = bytes(used.fail());
        return ruled_out(format!("Memory of TCP sockets: {used} of {}", bytes(limit)));
    }
    let crossed = context.crossed_metric(&metric::TCP_MEMORY_PRESSURES, f64::MIN_POSITIVE);
    let allowed = context.host.info.and_then(|info| info.facts.get("net.ipv4.tcp_mem"));
    let allowed = allowed.map_or_else(String::new, |pages| format!(" (it is {pages})"));
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: crossed,
        series: context.ids(&metric::TCP_MEMORY_PRESSURES),
        evidence: vec![
            Evidence::count("tcp.memory_pressures, times that memory became short", shortages)
                .of_events()
                .crossed(crossed)
                .decides(),
            Evidence::bytes("tcp.memory, the most", used).limit(limit),
            Evidence::count(
                "tcp.aborts_on_memory, connections ended",
                events(&metric::TCP_ABORTS_ON_MEMORY),
            ),
            Evidence::count("tcp.established", connections(context)),
            Evidence::count(CONNECTED, context.users.connected),
        ],
        change: format!(
            "Raise net.ipv4.tcp_mem{allowed}, in pages, or let each connection keep less: smaller \
             send buffers (SO_SNDBUF, net.ipv4.tcp_wmem), net.ipv4.tcp_notsent_lowat; find the \
             receivers that read slowly"
        ),
        at_most: if sends_by_udp(context) { CAP_COMPANY } else { 100.0 },
        ..Candidate::new(
            KEY,
            "Memory of TCP sockets is short on the host (net.ipv4.tcp_mem)",
            "memory of TCP sockets",
        )
    })
}

/// Whether the media go by UDP, which this memory does not hold up.
fn sends_by_udp(context: &Context<'_>) -> bool {
    let datagrams = context.rate(&metric::UDP_OUT_DATAGRAMS);
    datagrams.fail() > context.rate(&metric::TCP_SEGMENTS_OUT).fail()
}
