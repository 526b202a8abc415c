//! Was it us? A load that the generator could not offer says nothing about the server.

use std::collections::BTreeSet;

use throng_observation::host::Unit;
use throng_observation::limits::{BAD_SECONDS_MIN, BAD_SECONDS_RATIO_MIN, Limit};
use throng_observation::run::GeneratorRow;
use throng_observation::{FailureReason, Goal};

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::windows::quality_by_second;

pub(super) const KEY: &str = "generator_limited";

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let rows = |window: throng_observation::host::measured::Window| {
        let (from, until) = (window.from_us.div_euclid(1_000_000), window.until_us.div_euclid(1_000_000));
        context.run.generator.iter().filter(move |row| (from..until).contains(&row.second))
    };
    if rows(context.fail.window).next().is_none() {
        return CheckResult::NotMonitored("the generator's own health");
    }
    let worst = |limit: Limit| {
        context.reading(|window| rows(window).filter_map(|row| limit.figure(row)).reduce(f64::max))
    };
    let (cpu, lag) = (worst(Limit::ThreadCpu), worst(Limit::Lag));
    let dropped = |row: &GeneratorRow| -> f64 {
        Limit::ALL.iter().filter(|limit| !limit.is_forgiven_when_brief()).filter_map(|l| l.figure(row)).sum()
    };
    let drops = context.reading(|window| rows(window).map(dropped).reduce(f64::max));
    let is_bad = |row: &GeneratorRow| {
        Limit::ALL.iter().any(|limit| limit.is_forgiven_when_brief() && limit.is_passed(row))
    };
    let mut bad: Vec<i64> =
        rows(context.fail.window).filter(|row| is_bad(row)).map(|row| row.second).collect();
    bad.dedup();
    bad.sort_unstable();
    bad.dedup();
    let too_many = (context.fail.window.seconds() * BAD_SECONDS_RATIO_MIN).max(BAD_SECONDS_MIN as f64);
    let refused = context
        .run
        .participants
        .iter()
        .filter(|row| row.failure() == Some(&FailureReason::Generator))
        .filter(|row| row.ended_at.is_some_and(|at| context.is_near_failure(at)))
        .count();
    let is_limited = if context.windows.is_search {
        !was_sure(context)
    } else {
        (bad.len() as f64) >= too_many || drops.fail() > 0.0 || refused > 0
    };
    if !is_limited {
        let (cpu, lag) = (cpu.fail() * 100.0, lag.fail());
        return CheckResult::RuledOut(format!(
            "The generator kept up: its busiest worker used {cpu:.0} % of a core, {lag:.0} ms late at worst"
        ));
    }
    let failed = Reading { fail: Some(refused as f64), ..Reading::default() };
    Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: bad.first().map(|second| *second as f64).or(context.windows.first_bad_s.map(|s| s as f64)),
        evidence: vec![
            Evidence::new("busiest worker of the generator, of a core", Unit::Ratio, cpu)
                .limit(Some(Limit::ThreadCpu.max())),
            Evidence::new("lateness of the generator's loop (p99 of a second, the worst)", Unit::Milliseconds, lag)
                .limit(Some(Limit::Lag.max())),
            Evidence::new("packets and observations that the generator dropped, in a second", Unit::Count, drops)
                .limit(Some(0.0)),
            Evidence::new("participants who failed for want of the generator's own resources", Unit::Count, failed),
        ],
        change: "Give the generator more cores or another machine (or fewer users): the figures of this load say nothing about the server".into(),
        ..Candidate::new(KEY, "The generator was the limit, not the server", "generator")
    }
    .suspect()
}

/// Bad seconds this near one in which the generator was past its limits are taken for its doing (`search/holding.rs`).
const BESIDE_S: std::ops::RangeInclusive<i64> = -2..=1;

/// Of the failing load of a search: whether some of its seconds were bad that the generator has no part in. The search lets no
/// load fail without any; who failed for want of our own resources is a bad user from then on.
fn was_sure(context: &Context<'_>) -> bool {
    let window = context.fail.window;
    let (from, until) = (window.from_us.div_euclid(1_000_000), window.until_us.div_euclid(1_000_000));
    let is_past = |row: &&GeneratorRow| {
        (from..until).contains(&row.second) && Limit::ALL.iter().any(|limit| limit.is_passed(row))
    };
    let limited: BTreeSet<i64> = context.run.generator.iter().filter(is_past).map(|row| row.second).collect();
    let own = context.run.participants.iter().filter(|row| row.failure() == Some(&FailureReason::Generator));
    let refused = own.filter_map(|row| row.ended_at).filter(|at| context.is_near_failure(*at)).min();
    let ours_from = refused.map_or(i64::MAX, throng_observation::RunTime::second);
    if limited.is_empty() && refused.is_none() {
        return true;
    }
    let is_bad =
        |quality: &crate::windows::SecondQuality| quality.bad_ratio() > Goal::Acceptable.bad_ratio_max();
    let quality_by_second = quality_by_second(context.run);
    let mut bad = quality_by_second
        .range(from..until.max(from))
        .filter(|(_, quality)| is_bad(quality))
        .map(|(second, _)| *second);
    let is_sure = |second: i64| {
        let beside = second + BESIDE_S.start()..=second + BESIDE_S.end();
        second < ours_from && limited.range(beside).next().is_none()
    };
    bad.any(is_sure)
}
