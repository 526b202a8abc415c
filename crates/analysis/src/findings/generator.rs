//! The generator was the limit: a load that was not offered says nothing about the server.

use std::collections::BTreeSet;

use throng_observation::host::measured::Window;
use throng_observation::limits::{Limit, is_sustained};
use throng_observation::run::{GeneratorRow, ParticipantRow};
use throng_observation::{FailureReason, Goal};

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading};
use crate::search::LIMITED_FELT_S;
use crate::windows::{quality_by_second, second_range};

pub(super) const KEY: &str = "generator_limited";

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if rows(context, context.fail.window).next().is_none() {
        return Err(NoFinding::NotMonitored("the generator's own health"));
    }
    let worst = |limit: Limit| {
        context.reading(|window| {
            rows(context, window).filter_map(|row| limit.figure(row)).reduce(f64::max)
        })
    };
    let (cpu, lag) = (worst(Limit::ThreadCpu), worst(Limit::Lag));
    let drops = context.reading(|window| rows(context, window).map(dropped).reduce(f64::max));
    let past_limit = seconds_past_limit(context);
    let failed = failed_participants(context).count();
    let is_limited = if context.windows.is_search {
        !is_servers_failure(context)
    } else {
        is_sustained(past_limit.len(), context.fail.window.seconds())
            || drops.fail() > 0.0
            || failed > 0
    };
    if !is_limited {
        let (cpu, lag) = (cpu.fail() * 100.0, lag.fail());
        return ruled_out(format!(
            "The generator kept up: its busiest thread used {cpu:.0} % of a core, {lag:.0} ms \
             late at worst"
        ));
    }
    let failed = Reading::at_failure(failed as f64);
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: past_limit
            .first()
            .or(context.windows.first_bad_s.as_ref())
            .map(|second| *second as f64),
        evidence: vec![
            Evidence::ratio("busiest thread of the generator, of a core", cpu)
                .limit(Limit::ThreadCpu.max()),
            Evidence::milliseconds(
                "lateness of the generator's loop (p99 of a second, the worst)",
                lag,
            )
            .limit(Limit::Lag.max()),
            Evidence::count(
                "packets and observations that the generator dropped, in a second",
                drops,
            )
            .limit(0.0),
            Evidence::count(
                "participants that failed for lack of the generator's own resources",
                failed,
            ),
        ],
        change: "Give the generator more cores or another machine, or use fewer users: the \
                 figures of this load say nothing about the server"
            .into(),
        ..Candidate::new(KEY, "The generator was the limit, not the server", "generator")
    })
}

fn rows<'a>(context: &Context<'a>, window: Window) -> impl Iterator<Item = &'a GeneratorRow> {
    let seconds = second_range(window);
    context.run.generator.iter().filter(move |row| seconds.contains(&row.second))
}

/// What the generator itself dropped in a second.
fn dropped(row: &GeneratorRow) -> f64 {
    let limits = Limit::ALL.iter().filter(|limit| !limit.is_allowed_when_brief());
    limits.filter_map(|limit| limit.figure(row)).sum()
}

/// Seconds of the failing load in which the generator was past a limit of CPU, lateness or steal.
fn seconds_past_limit(context: &Context<'_>) -> BTreeSet<i64> {
    let is_past = |row: &&GeneratorRow| {
        Limit::ALL.iter().any(|limit| limit.is_allowed_when_brief() && limit.is_passed(row))
    };
    rows(context, context.fail.window).filter(is_past).map(|row| row.second).collect()
}

/// Participants that failed near the failing load for lack of the generator's own resources.
fn failed_participants<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a ParticipantRow> {
    let own = context.run.participants.iter();
    own.filter(|row| row.failure() == Some(&FailureReason::Generator))
        .filter(move |row| row.ended_at.is_some_and(|at| context.is_near_failure(at)))
}

/// Whether the failing load of a search has bad seconds in which the generator had no part. The
/// search requires such seconds of each load that fails; a participant that failed for lack of the
/// generator's resources is a bad user from then on.
fn is_servers_failure(context: &Context<'_>) -> bool {
    let window = context.fail.window;
    let is_past = |row: &&GeneratorRow| Limit::ALL.iter().any(|limit| limit.is_passed(row));
    let limited: BTreeSet<i64> =
        rows(context, window).filter(is_past).map(|row| row.second).collect();
    let failed_at = failed_participants(context).filter_map(|row| row.ended_at).min();
    if limited.is_empty() && failed_at.is_none() {
        return true;
    }
    let own_from = failed_at.map_or(i64::MAX, throng_observation::RunTime::second);
    let felt_s = i64::from(LIMITED_FELT_S);
    let is_sure = |second: i64| {
        second < own_from && limited.range(second - felt_s..=second + 1).next().is_none()
    };
    quality_by_second(context.run)
        .range(second_range(window))
        .any(|(second, quality)| quality.is_bad(Goal::Acceptable) && is_sure(*second))
}
