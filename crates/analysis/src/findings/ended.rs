//! The ends of watched processes: which of them is the server's, and which was for lack of memory.
//!
//! What is the server's, [`Lives`](crate::context::Lives) knows.

use std::collections::{BTreeSet, HashMap};

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::Window;
use throng_observation::host::{Culprit, HostEventKind, HowEnded, Life};
use throng_observation::{Goal, RunTime};

use crate::context::Context;
use crate::windows::quality_by_second;

/// Between the end of a process and the first bad second: the watcher sees it within a second or
/// two, users a little later.
const SLACK_US: i64 = 3_000_000;
/// The same in the whole seconds of the users.
const SLACK_S: i64 = 3;
/// A life no longer than this may be a job.
const JOB_US_MAX: i64 = 60_000_000;
/// So many other jobs of the kind ended where nobody felt it: such ends are nothing special.
const JOBS_MIN: usize = 2;
/// The last moments of a run, in which processes may end with it.
const RUN_ENDS_US: i64 = 500_000;
/// The counters of kills are read once a second, and a kill takes its time.
const KILL_US: i64 = 5_000_000;
/// Half a kill: the window may cut the second in which it was counted.
const KILLS_MIN: f64 = 0.5;
/// Share of its limit that a control group uses in the seconds before the kernel kills in it.
const GROUP_FULL_MIN: f64 = 0.9;

/// A watched process that the kernel killed for lack of memory.
pub(super) struct Killed<'a> {
    pub(super) life: &'a Life,
    /// Whether it is the server's, so that the service ended with it.
    pub(super) is_of_server: bool,
    /// Whether it is certain: the host counts the kills of all its processes.
    pub(super) is_certain: bool,
}

/// The lives of the server's processes that ended near the failing load, in the order in which they
/// were found.
pub(super) fn of_server<'a>(context: &'a Context<'_>) -> Vec<&'a Life> {
    let jobs = Jobs::of(context.lives.all(), bad_seconds(context));
    let its = context.lives.own().filter(|life| is_near_failure(context, life));
    its.filter(|life| !is_replaceable(context, life) && !jobs.have(life)).collect()
}

/// Who ended it, by the lines of watched logs around its end.
pub(super) fn as_logged(context: &Context<'_>, life: &Life) -> Option<Culprit> {
    let (at, end) = (life.ended?, life.end()?);
    let around_us = at.0.saturating_sub(KILL_US)..=at.0.saturating_add(SLACK_US);
    let lines = context.host.events_of(HostEventKind::LogLine);
    let lines =
        lines.filter(|event| around_us.contains(&event.at.0)).map(|event| event.detail.clone());
    Culprit::of(end.how, &lines.collect::<Vec<_>>())
}

/// How many processes of others ended near the failing load.
pub(super) fn of_others(context: &Context<'_>) -> usize {
    context.lives.all().iter().filter(|life| is_near_failure(context, life)).count()
}

/// The watched process that the kernel killed for lack of memory near the failing load: of several
/// one of the server's, one of which the signal is known, and one of which it is certain.
pub(super) fn killed_for_memory<'a>(context: &'a Context<'_>) -> Option<Killed<'a>> {
    let own = of_server(context);
    let ends = context.lives.all().iter().filter(|life| is_near_failure(context, life));
    let killed = ends.filter_map(|life| {
        let is_certain = is_killed_for_memory(context, life)?;
        Some(Killed {
            life,
            is_of_server: own.iter().any(|its| std::ptr::eq(*its, life)),
            is_certain,
        })
    });
    killed.min_by_key(|killed| {
        let is_kill = killed.life.end().is_some_and(|end| end.how.is_kill());
        (!killed.is_of_server, !is_kill, !killed.is_certain)
    })
}

/// Whether the kernel killed it for lack of memory: certainly, or probably (`false`).
fn is_killed_for_memory(context: &Context<'_>, life: &Life) -> Option<bool> {
    let (end, at) = (life.end()?, life.ended?);
    if end.is_out_of_memory() {
        return Some(true);
    }
    let window =
        Window { from_us: at.0.saturating_sub(KILL_US), until_us: at.0.saturating_add(SLACK_US) };
    let is_counted = |metric: &Metric| {
        let kills =
            context.host.metric(metric.name).iter().filter_map(|series| series.integral(window));
        kills.sum::<f64>() >= KILLS_MIN
    };
    // A kernel before 6.15 takes the counter of a group away with the group, and what it used is
    // left.
    let is_group_full = || {
        context.host.metric(metric::CGROUP_MEMORY.name).iter().any(|group| {
            let used = group.max(window).zip(group.limit().filter(|limit| *limit > 0.0));
            used.is_some_and(|(used, limit)| used >= GROUP_FULL_MIN * limit)
        })
    };
    let is_unknown = match end.how {
        HowEnded::Signal { .. } if end.how.is_kill() => false,
        HowEnded::Unknown => true,
        HowEnded::Signal { .. } | HowEnded::Exit { .. } | HowEnded::Replaced => return None,
    };
    if is_counted(&metric::CGROUP_MEMORY_OOM_KILLS) {
        return Some(true);
    }
    // The host counts the kills of all; the server's group only its own.
    match (is_counted(&metric::HOST_MEMORY_OOM_KILLS), is_group_full()) {
        (true, true) => Some(true),
        (true, false) if !is_unknown => Some(false),
        (true | false, _) => None,
    }
}

/// Whether it ended near the failing load, and not by executing another program or with the run.
fn is_near_failure(context: &Context<'_>, life: &Life) -> bool {
    let (Some(at), Some(end)) = (life.ended, life.end()) else { return false };
    let moments = [at, RunTime(at.0.saturating_sub(SLACK_US))];
    let is_near = moments.into_iter().any(|moment| context.is_near_failure(moment));
    let until_us = context.run.ended_at.map_or(i64::MAX, |end| end.0.saturating_sub(RUN_ENDS_US));
    is_near && end.how != HowEnded::Replaced && (at.0 < until_us || has_lost_users(context, at))
}

/// Whether participants failed around this moment: a process that ends with the run takes nobody
/// from it.
fn has_lost_users(context: &Context<'_>, at: RunTime) -> bool {
    let lost = context
        .run
        .participants
        .iter()
        .filter(|row| row.failure().is_some_and(|why| !why.is_ours()));
    lost.filter_map(|row| row.ended_at)
        .any(|ended| ended.0.abs_diff(at.0) <= SLACK_US.unsigned_abs())
}

/// Whether the service goes on without it: it ended in order beside another process of the server,
/// which was there before and after. A worker that is replaced after so many requests, or at a
/// reload, ends so.
fn is_replaceable(context: &Context<'_>, life: &Life) -> bool {
    let (Some(at), Some(end)) = (life.ended, life.end()) else { return false };
    let stays = |other: &&Life| {
        other.process.target == life.process.target
            && !std::ptr::eq(*other, life)
            && other.found.is_none_or(|found| found.0 <= at.0.saturating_sub(SLACK_US))
            && other.ended.is_none_or(|ended| ended.0 > at.0.saturating_add(SLACK_US))
    };
    end.how.exit_code() == Some(0) && context.lives.own().any(|other| stays(&other))
}

/// The short lives that ended in good seconds, counted once for all.
struct Jobs<'a> {
    /// How many, by their kind.
    unfelt: HashMap<(u32, &'a str), usize>,
    /// The bad seconds.
    bad: BTreeSet<i64>,
}

impl<'a> Jobs<'a> {
    fn of(lives: &'a [Life], bad: BTreeSet<i64>) -> Self {
        let mut jobs = Self { unfelt: HashMap::new(), bad };
        for life in lives {
            if jobs.is_unfelt(life) {
                *jobs.unfelt.entry(life.kind()).or_default() += 1;
            }
        }
        jobs
    }

    /// Whether `life` ended as its kind does: after a short life, as others did in good seconds.
    fn have(&self, life: &Life) -> bool {
        let all = self.unfelt.get(&life.kind()).copied().unwrap_or(0);
        is_short(life) && all - usize::from(self.is_unfelt(life)).min(all) >= JOBS_MIN
    }

    fn is_unfelt(&self, life: &Life) -> bool {
        let second = life.ended.map(RunTime::second).filter(|_| is_short(life));
        second.is_some_and(|at| self.bad.range(at - SLACK_S..=at + SLACK_S).next().is_none())
    }
}

fn is_short(life: &Life) -> bool {
    life.length_us().is_some_and(|us| us <= JOB_US_MAX)
}

fn bad_seconds(context: &Context<'_>) -> BTreeSet<i64> {
    let seconds = quality_by_second(context.run).into_iter();
    seconds
        .filter(|(_, quality)| quality.is_bad(Goal::Acceptable))
        .map(|(second, _)| second)
        .collect()
}

/// Whether the watcher found any process.
pub(super) fn is_any_found(context: &Context<'_>) -> bool {
    context.host.events_of(HostEventKind::ProcessFound).any(|_| true)
}

#[cfg(test)]
mod tests {
    use throng_observation::host::{ProcessEnd, ProcessEvent};

    use super::*;

    /// A life of `seconds` that ended at `at_s`.
    fn life(name: &str, at_s: i64, seconds: i64) -> Life {
        let at = |s: i64| RunTime(s * 1_000_000);
        let end = Some(ProcessEnd::new(HowEnded::Exit { code: 0 }));
        let process = ProcessEvent { target: 0, name: name.into(), pid: 7, end };
        Life { process, found: Some(at(at_s - seconds)), ended: Some(at(at_s)) }
    }

    #[test]
    fn a_job_is_one_of_three_of_its_kind_of_which_two_were_not_felt() {
        let lives = [
            life("job", 10, 1),
            life("job", 20, 1),
            life("job", 31, 1),
            life("other", 31, 1),
            life("job", 31, 61),
        ];
        let jobs = Jobs::of(&lives, BTreeSet::from([30]));
        let have: Vec<bool> = lives.iter().map(|life| jobs.have(life)).collect();
        // Of the two that were not felt each has one other.
        assert_eq!(have, [false, false, true, false, false]);
    }

    #[test]
    fn many_ends_of_one_kind_are_told_in_a_moment() {
        let lives: Vec<Life> = (0..50_000).map(|at_s| life("job", at_s, 1)).collect();
        // All are felt but the first two, so that each would have to look at all others.
        let jobs = Jobs::of(&lives, (5..50_010).collect());
        assert_eq!(lives.iter().filter(|life| jobs.have(life)).count(), 49_998);
    }
}
