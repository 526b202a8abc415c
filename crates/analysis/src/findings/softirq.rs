//! One CPU handles the soft interrupts of the network card and is saturated.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::Context;
use crate::demand::Resource;

pub(super) const KEY: &str = "softirq";
/// Share of a CPU's time: at four fifths too little is left for ksoftirqd's share of a burst.
const SOFTIRQ_MIN: f64 = 0.80;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let core = context.top_grown(&metric::CORE_SOFTIRQ);
    let dropped = context.rate(&metric::SOFTNET_DROPPED);
    let squeezed = context.rate(&metric::SOFTNET_TIME_SQUEEZE);
    let (series, share) = core.ok_or(NoFinding::NotMonitored("soft interrupts of each CPU"))?;
    let refuses = dropped.begins() && dropped.fail() >= 1.0;
    let is_full = share.fail() >= super::score::USED_FROM;
    if !is_full && !refuses {
        return ruled_out(format!(
            "Soft interrupts: {} of the busiest CPU, {:.0} packets dropped a second",
            percent(share.fail()),
            dropped.fail()
        ));
    }
    let cpu = series.label("cpu");
    let crossed = context
        .crossed(&[series], SOFTIRQ_MIN)
        .or(context.crossed_metric(&metric::SOFTNET_DROPPED, 1.0));
    Ok(Candidate {
        // 0.8 here counts as 0.95 of a thread: the rest of the CPU belongs to other tasks.
        used: used_up(share.fail() / SOFTIRQ_MIN * 0.95),
        queue: squeezed.growth(1.0).into_iter().chain(context.backlog()).reduce(f64::max),
        refuses,
        demand: context.demand_of(Resource::SoftirqCore, cpu).cloned(),
        crossed_at_s: crossed,
        series: vec![series.series.id],
        evidence: vec![
            Evidence::ratio(format!("core.softirq of CPU {cpu}"), share)
                .limit(1.0)
                .crossed(crossed)
                .decides_if(!refuses || is_full),
            Evidence::per_second("softnet.dropped", dropped)
                .limit(0.0)
                .decides_if(refuses && !is_full),
            Evidence::per_second("softnet.time_squeeze", squeezed),
        ],
        change: "Spread packets over CPUs: more queues of the card (ethtool -L) with their \
                 interrupts on different CPUs, or RPS (rps_cpus); net.core.netdev_max_backlog for \
                 bursts"
            .into(),
        eases: |demand, _| demand.resource == Resource::SoftirqCore,
        ..Candidate::new(
            KEY,
            format!("CPU {cpu} handles the soft interrupts of all packets and is saturated"),
            format!("soft interrupts of CPU {cpu}"),
        )
    })
}
