//! The control group has used up its CPU time for this period and is held back until the next.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::catalogue::Metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "cpu_quota";
/// Of the quota's periods (100 ms each by default, kernel/sched/fair.c): once in two seconds, for up to 100 ms.
pub(super) const THROTTLED_MIN: f64 = 0.05;
/// Held back in every second period it is used up, however the mean looks: work comes in bursts of frames.
const THROTTLED_FULL: f64 = 0.50;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let throttled = context.throttled();
    let Some((quota, used)) = context.quota() else {
        let is_seen = context.is_seen(&metric::CGROUP_CPU) || throttled.fail.is_some();
        return if is_seen {
            CheckResult::RuledOut("The server has no CPU quota".into())
        } else {
            CheckResult::NotMonitored("the CPU quota of the control group")
        };
    };
    if throttled.fail() < THROTTLED_MIN {
        return CheckResult::RuledOut(format!(
            "CPU quota: {} used, held back in {} of its periods",
            percent(used.fail()),
            percent(throttled.fail())
        ));
    }
    let crossed = context.crossed_metric(&metric::CGROUP_THROTTLED_PERIODS, THROTTLED_MIN);
    let lost = context.sum(&metric::CGROUP_THROTTLED);
    let held_back: Reading = throttled;
    Candidate {
        used: used_up(used.fail()).max((throttled.fail() / THROTTLED_FULL).clamp(0.0, 1.0)),
        queue: held_back.growth(0.02),
        demand: context.demand_of(Resource::Quota, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::CGROUP_THROTTLED_PERIODS),
        evidence: vec![
            Evidence::new("cgroup.cpu, of its quota", Unit::Ratio, used).limit(Some(1.0)),
            Evidence::new("cgroup.throttled_periods", Unit::Ratio, throttled).crossed(crossed).decides(),
            Evidence::new("cgroup.throttled, cores held back", Unit::Ratio, lost),
        ],
        change: format!(
            "A larger CPU quota than {quota:.2} cores for {} (cpu.max, docker --cpus, systemd CPUQuota)",
            group(context)
        ),
        eases: |demand, _| demand.resource == Resource::Quota,
        ..Candidate::new(KEY, format!("The CPU quota of {quota:.2} cores is used up"), "CPU quota")
    }
    .suspect()
}

/// The name of the group that has the quota.
fn group<'a>(context: &Context<'a>) -> &'a str {
    let of = |metric: &Metric| context.host.metric(metric.name).first().map(|series| series.label("cgroup"));
    of(&metric::CGROUP_CPU_QUOTA).or_else(|| of(&metric::CGROUP_CPU)).unwrap_or("the control group")
}
