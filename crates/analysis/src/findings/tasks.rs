//! The control group may have no more tasks: the next thread or process of the server cannot be
//! made.

use throng_observation::host::catalogue as metric;

use super::{CONNECTED, Candidate, CheckResult, Evidence, NOT_SERVED, NoFinding, ruled_out};
use crate::context::Context;

pub(super) const KEY: &str = "task_limit";
/// Least share of the bad user-seconds that are of users that were not served: a server that cannot
/// make a thread for a user refuses that user. What else forks in the group is none of the users'
/// concern.
const NOT_SERVED_MIN: f64 = 0.5;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let hits = context.host.metric(metric::CGROUP_PIDS_LIMIT_HITS.name);
    // A server without a control group has no such limit.
    if hits.is_empty() {
        return Err(NoFinding::NotApplicable);
    }
    let refused = context.events(hits);
    let joins = context.users.not_served;
    if !refused.begins() || joins.fail() < NOT_SERVED_MIN {
        return ruled_out(format!("Tasks: {:.0} could not be created", refused.fail()));
    }
    let fullest = context.fullest(&metric::CGROUP_PIDS);
    let group = fullest
        .as_ref()
        .map_or_else(String::new, |(series, ..)| series.label("cgroup").to_owned() + " ");
    let (tasks, limit) = fullest
        .as_ref()
        .map_or_else(Default::default, |(_, reading, limit)| (*reading, Some(*limit)));
    let crossed = context.crossed_metric(&metric::CGROUP_PIDS_LIMIT_HITS, f64::MIN_POSITIVE);
    let beyond = limit.map_or_else(String::new, |limit| format!(" beyond {limit:.0}"));
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: crossed,
        series: context.ids(&metric::CGROUP_PIDS_LIMIT_HITS),
        evidence: vec![
            Evidence::count("cgroup.pids.limit_hits, tasks that could not be created", refused)
                .of_events()
                .crossed(crossed)
                .decides(),
            Evidence::count("cgroup.pids, the most", tasks).limit(limit),
            Evidence::ratio(NOT_SERVED, joins),
            Evidence::count(CONNECTED, context.users.connected),
        ],
        change: format!(
            "Raise the limit of threads and processes of the server's control group{beyond}: \
             TasksMax= of its unit, --pids-limit of its container, pids.max"
        ),
        ..Candidate::new(
            KEY,
            format!("Control group {group}has reached its limit of threads and processes"),
            "tasks of the control group",
        )
    })
}
