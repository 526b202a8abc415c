//! The kernel killed a watched process for lack of memory: one event, and the whole cause.

use throng_observation::RunTime;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::host::{Culprit, SeriesId};
use throng_observation::units::{bytes, count};

use super::super::ended::Killed;
use super::super::score::CAP_COMPANY;
use super::super::{Candidate, Evidence};
use super::KEY;
use crate::context::{Context, Reading};
use crate::demand::{Demand, Resource, memory_limit};

/// The candidate for the end of a process; `rss` is the resident memory of all watched processes,
/// the most.
pub(super) fn candidate(context: &Context<'_>, killed: &Killed<'_>, rss: Reading) -> Candidate {
    let life = killed.life;
    let label = life.process.label();
    let at_s = life.ended.map(RunTime::as_secs_f64);
    let (group, group_limit) = match life.end().and_then(|end| end.by.as_ref()) {
        Some(Culprit::OutOfMemory { group, limit_bytes, .. }) => (Some(group), *limit_bytes),
        Some(
            Culprit::Fault { .. }
            | Culprit::ResourceLimit { .. }
            | Culprit::Assertion { .. }
            | Culprit::Service { .. },
        )
        | None => (None, None),
    };
    let limit = group_limit.map(|limit| limit as f64).or(memory_limit(context.host));
    let of = match (group.filter(|_| group_limit.is_some()), limit) {
        (Some(group), Some(limit)) => format!(": control group {group} may use {}", bytes(limit)),
        (None, Some(limit)) => format!(": {} at most", bytes(limit)),
        (_, None) => String::new(),
    };
    let demand = context.demand_of(Resource::Memory, &life.process.name);
    let rss = Evidence::bytes("process.rss, all watched processes, the most", rss).limit(limit);
    let (mut evidence, series) = match of_group(context, group.map(String::as_str)) {
        Some((line, series)) => (vec![line, rss], vec![series]),
        None => (vec![rss], context.ids(&metric::PROCESS_RSS)),
    };
    let once = Reading { base: Some(0.0), pass: Some(0.0), fail: Some(1.0), ..Reading::default() };
    let probably = if killed.is_certain { "" } else { "probably " };
    let event = Evidence::count(format!("{label} {probably}killed for lack of memory"), once);
    evidence.push(event.of_events().crossed(at_s).decides());
    let is_alone = is_alone(context);
    Candidate {
        used: 1.0,
        queue: Some(1.0),
        refuses: true,
        demand: demand.cloned(),
        crossed_at_s: at_s,
        series,
        evidence,
        change: format!(
            "{}Use more memory (memory.max of the control group, MemoryMax= of the unit, the \
             container's or the host's memory), or less of it for each user (buffers, queues, \
             caches); check for a leak: does it grow while the crowd does not?",
            demand.map_or_else(String::new, |demand| of_a_user(demand, limit, is_alone))
        ),
        eases: |demand, _| demand.resource == Resource::Memory,
        // The count of the host alone does not say which of its processes it killed.
        at_most: if killed.is_certain { 100.0 } else { CAP_COMPANY },
        ends_service: killed.is_of_server,
        ..Candidate::new(
            KEY,
            format!("The kernel {probably}killed {label} for lack of memory{of}"),
            "memory",
        )
    }
}

/// The use of the control group whose limit left no memory, and its series: that use is what the
/// kernel compares with the limit. The group that the kernel named, else the fullest; `None` where
/// none with a limit was watched.
fn of_group(context: &Context<'_>, named: Option<&str>) -> Option<(Evidence, SeriesId)> {
    let is_named = |series: &MeasuredSeries<'_>| Some(series.label("cgroup")) == named;
    let group = context.fullest_of(&metric::CGROUP_MEMORY, is_named);
    let (series, used, limit) = group.or_else(|| context.fullest(&metric::CGROUP_MEMORY))?;
    let counter = format!("cgroup.memory of {}, the most", series.label("cgroup"));
    Some((Evidence::bytes(counter, used).limit(limit), series.series.id))
}

/// Whether it is the only watched process that had memory then: others take a part of the limit.
fn is_alone(context: &Context<'_>) -> bool {
    let all = context.host.metric(metric::PROCESS_RSS.name).iter();
    all.filter(|rss| rss.max(context.onset).is_some_and(|bytes| bytes > 0.0)).count() < 2
}

/// What a user takes, and how many fit: "A user takes 12.0 MB, so that 256 MB fit 21 users. ".
/// Nothing where that cannot be told from noise.
fn of_a_user(demand: &Demand, limit: Option<f64>, is_alone: bool) -> String {
    let Some(fit) = demand.fit.filter(|_| demand.grows()) else { return String::new() };
    let users = limit.and_then(|limit| Some((limit, fit.root(limit)?.floor())));
    let fits = users.map_or_else(String::new, |(limit, users)| {
        let alone = if is_alone { "" } else { " if this process alone uses the limit" };
        format!(", so that {} fit {}{alone}", bytes(limit), count(users as u64, "users"))
    });
    format!("A user takes {}{fits}. ", bytes(demand.per_user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::of_points;

    #[test]
    fn how_many_fit_is_what_the_demand_model_says() {
        let said = |is_alone, bytes_by: fn(f64) -> f64| {
            let points: Vec<(f64, f64)> = [4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 34.0]
                .map(|users| (users, bytes_by(users)))
                .to_vec();
            of_a_user(
                &of_points(Resource::Memory, Some(4.96e8), &points).unwrap(),
                Some(4.96e8),
                is_alone,
            )
        };
        let line = |users: f64| 1e7 + 1.2e7 * users + 1e4 * (users * 1.3).sin();
        assert!(said(true, line).ends_with(" fit 40 users. "), "{}", said(true, line));
        assert!(
            said(false, line).ends_with(" fit 40 users if this process alone uses the limit. ")
        );
        // 1 MB + 10 kB · N²: one more user of 34 takes 680 kB, and the next ones more.
        let curve = |users: f64| 1e6 + 1e4 * users * users + 1e1 * (users * 1.3).sin();
        assert!(said(true, curve).ends_with(" fit 222 users. "), "{}", said(true, curve));
        // What is as much at any load tells nothing of a user.
        assert_eq!(said(true, |users| 2e8 + 1e7 * (users * 1.3).sin()), "");
    }
}
