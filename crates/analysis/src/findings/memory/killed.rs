//! The kernel killed a watched process for lack of memory: one event, and the whole cause.

use throng_observation::host::catalogue as metric;
use throng_observation::host::{Culprit, Life};
use throng_observation::units::bytes;

use super::super::{Candidate, Evidence};
use super::KEY;
use crate::context::{Context, Reading};
use crate::demand::{Demand, Resource, memory_limit};

/// The candidate for the end of `life`; `rss` is the resident memory of all watched processes, the most.
pub(super) fn candidate(context: &Context<'_>, life: &Life, rss: Reading) -> Candidate {
    let label = life.process.label();
    let at_s = life.ended.map(|at| at.as_secs_f64());
    let (group, group_limit) = match life.end().and_then(|end| end.by.as_ref()) {
        Some(Culprit::OutOfMemory { group, limit_bytes, .. }) => (Some(group), *limit_bytes),
        Some(Culprit::ResourceLimit { .. } | Culprit::Assertion { .. }) | None => (None, None),
    };
    let limit = group_limit.map(|limit| limit as f64).or(memory_limit(context.host));
    let of = match (group.filter(|_| group_limit.is_some()), limit) {
        (Some(group), Some(limit)) => format!(": control group {group} may use {}", bytes(limit)),
        (None, Some(limit)) => format!(": {} at most", bytes(limit)),
        (_, None) => String::new(),
    };
    let demand = context.demand_of(Resource::Memory, &life.process.name);
    let mut evidence =
        vec![Evidence::bytes("process.rss, all watched processes, the most", rss).limit(limit)];
    if let Some((series, used, limit)) = context.fullest(&metric::CGROUP_MEMORY) {
        let counter = format!("cgroup.memory of {}, the most", series.label("cgroup"));
        evidence.push(Evidence::bytes(counter, used).limit(limit));
    }
    let once = Reading { base: Some(0.0), pass: Some(0.0), fail: Some(1.0), ..Reading::default() };
    let killed = Evidence::count(format!("{label} killed for lack of memory"), once);
    evidence.push(killed.of_events().crossed(at_s).decides());
    Candidate {
        used: 1.0,
        queue: Some(1.0),
        refuses: true,
        demand: demand.cloned(),
        crossed_at_s: at_s,
        series: context.ids(&metric::PROCESS_RSS),
        evidence,
        change: format!(
            "{}Use more memory (memory.max of the control group, MemoryMax= of the unit, the container's or the host's memory), or less of it for each user (buffers, queues, caches); check for a leak: does it grow while the crowd does not?",
            demand.map_or_else(String::new, |demand| of_a_user(demand, limit))
        ),
        eases: |demand, _| demand.resource == Resource::Memory,
        ends_service: true,
        ..Candidate::new(KEY, format!("The kernel killed {label} for lack of memory{of}"), "memory")
    }
}

/// What a user takes, and how many fit: "A user takes 12.0 MB, so that 256 MB fit 21 users. ".
fn of_a_user(demand: &Demand, limit: Option<f64>) -> String {
    if demand.per_user <= 0.0 {
        return String::new();
    }
    let fit = limit.map(|limit| (limit, ((limit - demand.idle) / demand.per_user).floor().max(0.0)));
    let fit = fit.map_or_else(String::new, |(limit, users)| {
        format!(", so that {} fit {users:.0} users", bytes(limit))
    });
    format!("A user takes {}{fit}. ", bytes(demand.per_user))
}
