//! The ends of watched processes: which of them is the server's, and which was for lack of memory.
//!
//! Processes come and go on a busy host: a transcoder ends with its job, beside a bad second or not. The server is what was
//! there when the crowd was small, and what took its place.

use std::collections::BTreeSet;

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::Window;
use throng_observation::host::{Culprit, HostEventKind, HowEnded, Life};
use throng_observation::{Goal, RunTime};

use crate::context::Context;
use crate::windows::quality_by_second;

/// Between the end of a process and the first bad second: the watcher sees it within a second or two, users a little later.
const SLACK_US: i64 = 3_000_000;
/// The same in the whole seconds of the users.
const SLACK_S: i64 = 3;
/// Where there is no baseline, the server is what is found as soon as the first process: its parts are within a pass or two.
const TOGETHER_US: i64 = 2_000_000;
/// The longest time in which a supervisor starts a server again.
const RESTART_US_MAX: i64 = 60_000_000;
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

/// The lives of the server's processes that ended near the failing load, in the order in which they were found.
pub(super) fn of_server(context: &Context<'_>) -> Vec<Life> {
    let lives = context.host.lives();
    let own = are_own(context, &lives);
    let bad = bad_seconds(context);
    let its = lives
        .iter()
        .zip(own)
        .filter(|(life, is_own)| *is_own && is_near_failure(context, life) && !is_job(life, &lives, &bad));
    its.map(|(life, _)| life.clone()).collect()
}

/// Who ended it, by the lines of watched logs around its end.
pub(super) fn as_logged(context: &Context<'_>, life: &Life) -> Option<Culprit> {
    let (at, end) = (life.ended?, life.end()?);
    let around_us = at.0.saturating_sub(KILL_US)..=at.0.saturating_add(SLACK_US);
    let lines = context.host.events_of(HostEventKind::LogLine);
    let lines = lines.filter(|event| around_us.contains(&event.at.0)).map(|event| event.detail.clone());
    Culprit::of(end.how, &lines.collect::<Vec<_>>())
}

/// How many processes of others ended near the failing load.
pub(super) fn of_others(context: &Context<'_>) -> usize {
    context.host.lives().iter().filter(|life| is_near_failure(context, life)).count()
}

/// The first watched process that the kernel killed for lack of memory near the failing load.
pub(super) fn killed_for_memory(context: &Context<'_>) -> Option<Life> {
    let is_killed = |life: &Life| {
        let ended = life.end().zip(life.ended);
        ended.is_some_and(|(end, at)| end.is_out_of_memory() || is_counted_kill(context, end.how, at))
    };
    context.host.lives().into_iter().find(|life| is_near_failure(context, life) && is_killed(life))
}

/// Whether the kernel counted a kill for lack of memory around the end of a process that may be it.
fn is_counted_kill(context: &Context<'_>, how: HowEnded, at: RunTime) -> bool {
    let window = Window { from_us: at.0.saturating_sub(KILL_US), until_us: at.0.saturating_add(SLACK_US) };
    let is_counted = |metric: &Metric| {
        let kills = context.host.metric(metric.name).iter().filter_map(|series| series.integral(window));
        kills.sum::<f64>() >= KILLS_MIN
    };
    match how {
        HowEnded::Signal { .. } => {
            how.is_kill()
                && (is_counted(&metric::CGROUP_MEMORY_OOM_KILLS)
                    || is_counted(&metric::HOST_MEMORY_OOM_KILLS))
        }
        // The host counts the kills of all; the server's group only its own.
        HowEnded::Unknown => is_counted(&metric::CGROUP_MEMORY_OOM_KILLS),
        HowEnded::Exit { .. } | HowEnded::Replaced => false,
    }
}

/// Which lives are the server's: those that were found by the end of the baseline, and their successors.
fn are_own(context: &Context<'_>, lives: &[Life]) -> Vec<bool> {
    let first_us = lives.iter().filter_map(|life| life.found).map(|at| at.0).min();
    let baseline = context.windows.base.map(|base| base.window.until_us);
    let known_by_us = baseline.or(first_us.map(|at| at.saturating_add(TOGETHER_US)));
    let mut own: Vec<bool> = Vec::with_capacity(lives.len());
    for (place, life) in lives.iter().enumerate() {
        let was_there = life.found.zip(known_by_us).is_none_or(|(found, known_by_us)| found.0 <= known_by_us);
        let before = lives.iter().zip(&own).take(place);
        let is_successor = before.filter(|(_, is_own)| **is_own).any(|(other, _)| succeeds(life, other));
        own.push(was_there || is_successor);
    }
    own
}

/// Whether `life` took the place of `other`, which ended.
fn succeeds(life: &Life, other: &Life) -> bool {
    let (Some(found), Some(ended), Some(end)) = (life.found, other.ended, other.end()) else { return false };
    let is_it = match end.how {
        HowEnded::Replaced => life.process.pid == other.process.pid,
        HowEnded::Exit { .. } | HowEnded::Signal { .. } | HowEnded::Unknown => life.is_same_kind(other),
    };
    // One pass of the watcher may find the next one before it sees that the last one ended.
    let after_us = found.0.saturating_sub(ended.0);
    is_it && (-SLACK_US..=RESTART_US_MAX).contains(&after_us)
}

/// Whether it ended near the failing load, and not by executing another program or with the run.
fn is_near_failure(context: &Context<'_>, life: &Life) -> bool {
    let (Some(at), Some(end)) = (life.ended, life.end()) else { return false };
    let moments = [at, RunTime(at.0.saturating_sub(SLACK_US))];
    let is_near = moments.into_iter().any(|moment| context.is_near_failure(moment));
    let until_us = context.run.ended_at.map_or(i64::MAX, |end| end.0.saturating_sub(RUN_ENDS_US));
    is_near && end.how != HowEnded::Replaced && (at.0 < until_us || has_lost_users(context, at))
}

/// Whether participants failed around this moment: a process that ends with the run takes nobody from it.
fn has_lost_users(context: &Context<'_>, at: RunTime) -> bool {
    let lost = context.run.participants.iter().filter(|row| row.failure().is_some_and(|why| !why.is_ours()));
    lost.filter_map(|row| row.ended_at).any(|ended| ended.0.abs_diff(at.0) <= SLACK_US.unsigned_abs())
}

/// Whether it ended as its kind does: after a short life, as others did in good seconds.
fn is_job(life: &Life, lives: &[Life], bad: &BTreeSet<i64>) -> bool {
    let is_unfelt = |other: &&Life| {
        let second = other.ended.map(RunTime::second);
        second.is_some_and(|at| bad.range(at - SLACK_S..=at + SLACK_S).next().is_none())
    };
    let is_other = |other: &&Life| !std::ptr::eq(*other, life) && other.is_same_kind(life);
    let jobs = lives.iter().filter(is_other).filter(|other| is_short(other)).filter(is_unfelt);
    is_short(life) && jobs.count() >= JOBS_MIN
}

fn is_short(life: &Life) -> bool {
    life.length_us().is_some_and(|us| us <= JOB_US_MAX)
}

fn bad_seconds(context: &Context<'_>) -> BTreeSet<i64> {
    let seconds = quality_by_second(context.run).into_iter();
    seconds.filter(|(_, quality)| quality.is_bad(Goal::Acceptable)).map(|(second, _)| second).collect()
}

/// Whether the watcher found any process.
pub(super) fn is_any_found(context: &Context<'_>) -> bool {
    context.host.events_of(HostEventKind::ProcessFound).any(|_| true)
}
