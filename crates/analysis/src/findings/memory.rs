//! Memory is used up: the kernel takes it back by force, or kills for it.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::{bytes, percent};

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::demand::{Resource, memory_limit};

pub(super) const KEY: &str = "memory";
/// All tasks stood still for memory for this share of the time: a frame's time out of each second.
const STALL_MIN: f64 = 0.02;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::PROCESS_RSS) && !context.is_seen(&metric::HOST_MEMORY_AVAILABLE) {
        return CheckResult::NotMonitored("memory");
    }
    let most = |wanted: &metric::Metric| {
        let list = context.host.metric(wanted.name);
        let sum = |window| list.iter().filter_map(|series| series.max(window)).reduce(|a, b| a + b);
        Reading { fail: sum(context.onset), ..context.reading(sum) }
    };
    let (rss, limit) = (most(&metric::PROCESS_RSS), memory_limit(context.host));
    let share = limit.map_or(0.0, |limit| rss.fail() / limit);
    let available = context.sum(&metric::HOST_MEMORY_AVAILABLE);
    let total = context
        .host
        .metric(metric::HOST_MEMORY_AVAILABLE.name)
        .first()
        .and_then(throng_observation::host::measured::MeasuredSeries::limit);
    let taken =
        total.map_or_else(Reading::default, |total| available.map(|left| 1.0 - left / total.max(1.0)));
    let gone = taken.fail();
    let kills = killed(context);
    let stall = [&metric::HOST_PRESSURE_MEMORY_FULL, &metric::CGROUP_PRESSURE_MEMORY_FULL]
        .map(|metric| context.sum(metric))
        .into_iter()
        .max_by(|a, b| a.fail().total_cmp(&b.fail()))
        .unwrap_or_default();
    let refused = context.log_lines("out_of_memory");
    let used = share.max(gone);
    let of_limit = limit.map_or_else(Reading::default, |limit| rss.map(|rss| rss / limit));
    let in_use = if share >= gone { of_limit } else { taken };
    let is_short = kills.fail() > 0.0 || refused.begins() || stall.fail() >= STALL_MIN;
    if !is_short && used < 0.9 {
        let of = limit.map_or_else(String::new, |limit| format!(" of {}", bytes(limit)));
        return CheckResult::RuledOut(format!(
            "Memory: {}{of}, {} of the host in use",
            bytes(rss.fail()),
            percent(gone)
        ));
    }
    let crossed = context.crossed_metric(&metric::PROCESS_RSS, 0.9 * limit.unwrap_or(f64::INFINITY));
    let crossed = crossed.or(context.crossed_metric(&metric::HOST_PRESSURE_MEMORY_FULL, STALL_MIN));
    let crossed = crossed
        .or(context.crossed_metric(&metric::CGROUP_MEMORY_OOM_KILLS, 1e-6))
        .or(context.crossed_metric(&metric::HOST_MEMORY_OOM_KILLS, 1e-6));
    let limit_hits = context.rate(&metric::CGROUP_MEMORY_LIMIT_HITS);
    let process =
        context.host.metric(metric::PROCESS_RSS.name).first().map_or("", |rss| rss.label("process"));
    Candidate {
        used: used_up(used),
        // A group whose page cache fills its limit is at the limit and well: only stalls and kills tell of want.
        queue: stall.growth(0.002).or(Some(if is_short { 1.0 } else { 0.0 })),
        refuses: kills.begins() || refused.begins(),
        demand: context.demand_of(Resource::Memory, process).cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::PROCESS_RSS),
        evidence: vec![
            Evidence::new("process.rss, all watched processes, the most", Unit::Bytes, rss).limit(limit).crossed(crossed),
            Evidence::new("memory pressure, all tasks stalled", Unit::Ratio, stall).decides_if(is_short),
            Evidence::new("cgroup.memory.limit_hits", Unit::PerSecond, limit_hits),
            Evidence::new("processes killed for want of memory, a second", Unit::PerSecond, kills)
                .decides_if(is_short),
            Evidence::new("log lines \"out of memory\"", Unit::PerSecond, refused).decides_if(is_short),
            Evidence::new("memory in use, of what there is", Unit::Ratio, in_use).decides_if(!is_short),
        ],
        change: "More memory (the host's, or memory.max of the control group), or less of it for each user (buffers, queues, caches); look whether it grows while the crowd does not".into(),
        eases: |demand, _| demand.resource == Resource::Memory,
        at_most: if is_short { 100.0 } else { super::score::CAP_COMPANY },
        ..Candidate::new(KEY, "Memory is used up", "memory")
    }
    .suspect()
}

/// Processes that were killed for want of memory, a second: in the server's group, and on the host.
fn killed(context: &Context<'_>) -> Reading {
    let of =
        [&metric::CGROUP_MEMORY_OOM_KILLS, &metric::HOST_MEMORY_OOM_KILLS].map(|metric| context.rate(metric));
    let seen = of.into_iter().filter(|kills| kills.fail.is_some());
    seen.reduce(|a, b| a.with(b, |a, b| a + b)).unwrap_or_default()
}
