//! The control group has used its CPU quota and is throttled until the next period.

use throng_observation::host::catalogue as metric;
use throng_observation::host::catalogue::Metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading, THROTTLED_MIN};
use crate::demand::Resource;

pub(super) const KEY: &str = "cpu_quota";
/// Throttled in every second period means used up, whatever the mean use: work comes in bursts of
/// frames.
const THROTTLED_FULL: f64 = 0.50;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let throttled = context.throttled();
    let Some((quota, used)) = context.quota() else {
        let is_seen = context.is_seen(&metric::CGROUP_CPU) || throttled.fail.is_some();
        return if is_seen {
            ruled_out("The server has no CPU quota")
        } else {
            Err(NoFinding::NotMonitored("the CPU quota of the control group"))
        };
    };
    if throttled.fail() < THROTTLED_MIN {
        return ruled_out(format!(
            "CPU quota: {} used, throttled in {} of its periods",
            percent(used.fail()),
            percent(throttled.fail())
        ));
    }
    let crossed = context.crossed_metric(&metric::CGROUP_THROTTLED_PERIODS, THROTTLED_MIN);
    let lost = context.sum(&metric::CGROUP_THROTTLED);
    let held_back: Reading = throttled;
    Ok(Candidate {
        used: used_up(used.fail()).max((throttled.fail() / THROTTLED_FULL).clamp(0.0, 1.0)),
        queue: held_back.growth(0.02),
        demand: context.demand_of(Resource::Quota, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::CGROUP_THROTTLED_PERIODS),
        evidence: vec![
            Evidence::ratio("cgroup.cpu, of its quota", used).limit(1.0),
            Evidence::ratio("cgroup.throttled_periods", throttled).crossed(crossed).decides(),
            Evidence::ratio("cgroup.throttled, cores withheld", lost),
        ],
        change: format!(
            "Raise the CPU quota of {} above {quota:.2} cores (cpu.max, docker --cpus, systemd \
             CPUQuota)",
            group(context)
        ),
        eases: |demand, _| demand.resource == Resource::Quota,
        ..Candidate::new(
            KEY,
            format!("The CPU quota of {quota:.2} cores is used up"),
            format!("CPU quota of {}", group(context)),
        )
    })
}

/// The name of the group that has the quota.
fn group<'a>(context: &Context<'a>) -> &'a str {
    let of = |metric: &Metric| {
        context.host.metric(metric.name).first().map(|series| series.label("cgroup"))
    };
    of(&metric::CGROUP_CPU_QUOTA).or_else(|| of(&metric::CGROUP_CPU)).unwrap_or("the control group")
}
