//! One CPU takes all packets off the network card and has no time for more.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence};
use crate::context::Context;
use crate::demand::Resource;

pub(super) const KEY: &str = "softirq";
/// A CPU that serves interrupts four fifths of its time leaves too little for ksoftirqd's share of a burst.
const SOFTIRQ_MIN: f64 = 0.80;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let core = context.top_grown(&metric::CORE_SOFTIRQ);
    let dropped = context.rate(&metric::SOFTNET_DROPPED);
    let squeezed = context.rate(&metric::SOFTNET_TIME_SQUEEZE);
    let Some((series, share)) = core else {
        return CheckResult::NotMonitored("soft interrupts of each CPU");
    };
    let refuses = dropped.begins() && dropped.fail() >= 1.0;
    let is_full = share.fail() >= super::score::USED_FROM;
    if !is_full && !refuses {
        return CheckResult::RuledOut(format!(
            "Soft interrupts: {} of the busiest CPU, {:.0} packets dropped a second",
            percent(share.fail()),
            dropped.fail()
        ));
    }
    let cpu = series.label("cpu");
    let crossed =
        context.crossed(&[series], SOFTIRQ_MIN).or(context.crossed_metric(&metric::SOFTNET_DROPPED, 1.0));
    Candidate {
        // At 0.8 it is as full as a thread at 0.95: the rest belongs to whoever else runs there.
        used: used_up(share.fail() / SOFTIRQ_MIN * 0.95),
        queue: squeezed.growth(1.0).into_iter().chain(context.backlog()).reduce(f64::max),
        refuses,
        demand: context.demand_of(Resource::SoftirqCore, cpu).cloned(),
        crossed_at_s: crossed,
        series: vec![series.series.id],
        evidence: vec![
            Evidence::new(format!("core.softirq of CPU {cpu}"), Unit::Ratio, share).limit(Some(1.0)).crossed(crossed).decides_if(!refuses || is_full),
            Evidence::new("softnet.dropped", Unit::PerSecond, dropped).limit(Some(0.0)).decides_if(refuses && !is_full),
            Evidence::new("softnet.time_squeeze", Unit::PerSecond, squeezed),
        ],
        change: "Spread packets over CPUs: more queues of the card (ethtool -L), their interrupts on different CPUs, or RPS (rps_cpus); net.core.netdev_max_backlog for bursts".into(),
        eases: |demand, _| demand.resource == Resource::SoftirqCore,
        ..Candidate::new(KEY, format!("CPU {cpu} takes the packets of all and has no time for more"), format!("soft interrupts of CPU {cpu}"))
    }
    .suspect()
}
