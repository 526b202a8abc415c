//! Joins wait for each other: who comes while others are being answered waits for all of them, though nothing is full.
//!
//! Told from the joins themselves (queueing theory's plainest law): where one is answered at a time, a join takes as many
//! times one answer as there are joins before it. Where many are answered at once it takes as long as one, however many wait.

use throng_observation::host::Unit;
use throng_observation::host::measured::Window;
use throng_observation::units::duration_ms;
use throng_observation::{Phase, RunTime};

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading, at_share};
use crate::windows::LoadWindow;

pub(super) const KEY: &str = "signalling_serialised";
/// Fewer joins, or fewer that waited at once, show no law.
const JOINS_MIN: usize = 6;
const WAITING_MIN: usize = 3;
/// The share of what differs between joins that the number of those before them has to explain (r²).
const EXPLAINED_MIN: f64 = 0.8;
/// Who was answered within this long was not kept waiting.
const WAIT_MS_MIN: f64 = 1_000.0;
/// Of the bad user-seconds, those of users who were not connected: below it the trouble is another.
const NOT_SERVED_MIN: f64 = 0.5;
/// A limit of 3 s for joining is met by joins that took three times as long, whatever the objective says.
const WAIT_MS_FULL: f64 = 3_000.0;

/// A join that was answered.
#[derive(Clone, Copy, Debug)]
struct Join {
    began: RunTime,
    took_ms: f64,
    /// Who had begun before it and was not answered yet.
    before: usize,
}

/// How the time of a join grows with those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Law {
    /// What each of those before it adds, milliseconds.
    each_ms: f64,
    /// What a join takes that meets nobody, milliseconds.
    alone_ms: f64,
    /// How much of what differs between joins it explains.
    explained: f64,
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let joins = joins(context);
    let near: Vec<Join> = joins.iter().filter(|join| context.is_near_failure(join.began)).copied().collect();
    let most = near.iter().map(|join| join.before).max().unwrap_or(0);
    let shown = shown_by(&near, &joins);
    let law = law(shown).filter(|_| shown.len() >= JOINS_MIN && most >= WAITING_MIN);
    let p95 = at_share(near.iter().map(|join| join.took_ms).collect(), 0.95);
    let Some(law) =
        law.filter(|law| law.explained >= EXPLAINED_MIN && law.each_ms * most as f64 >= WAIT_MS_MIN)
    else {
        return match p95 {
            Some(p95) => CheckResult::RuledOut(format!(
                "Signalling: joins are answered within {}, whoever else waits",
                duration_ms(p95)
            )),
            None => CheckResult::NotApplicable,
        };
    };
    let took = |within: &dyn Fn(RunTime) -> bool| {
        at_share(joins.iter().filter(|join| within(join.began)).map(|join| join.took_ms).collect(), 0.95)
    };
    let in_stretch = |stretch: Option<LoadWindow>| {
        let window = joining(context, stretch?);
        took(&|at| (window.from_us..window.until_us).contains(&at.0))
    };
    let alone =
        at_share(joins.iter().filter(|join| join.before == 0).map(|join| join.took_ms).collect(), 0.5);
    let times = Reading { base: alone, pass: in_stretch(context.windows.pass), fail: p95, most: None };
    let waiting = Reading { base: Some(0.0), fail: Some(most as f64), ..Reading::default() };
    let at_once = (law.alone_ms / law.each_ms).round().max(1.0);
    let how = if at_once < 2.0 {
        format!("one after the other, {} each", duration_ms(law.each_ms))
    } else {
        format!("about {at_once:.0} at a time, {} each", duration_ms(law.alone_ms))
    };
    Candidate {
        used: (law.each_ms * most as f64 / WAIT_MS_FULL).clamp(0.0, 1.0),
        queue: times.growth(50.0),
        crossed_at_s: context.windows.first_bad_s.map(|second| second as f64),
        evidence: vec![
            Evidence::new("time until offer and answer are exchanged, p95 (floor: who met nobody waiting)", Unit::Milliseconds, times)
                .decides(),
            Evidence::new("joins that waited for an answer at once, the most", Unit::Count, waiting),
            Evidence::new(
                format!("of what differs between {} joins, explained by how many were before them", shown.len()),
                Unit::Ratio,
                Reading { fail: Some(law.explained), ..Reading::default() },
            ),
            Evidence::new("process.cpu of the server, of all cores", Unit::Ratio, context.own_share()).limit(Some(1.0)),
        ],
        change: format!(
            "What the server does for a join while it holds up the next ({}): a lock, a call to another service, a single thread for signalling; until then, let users come more slowly than {:.1} a second",
            duration_ms(law.each_ms),
            1e3 / law.each_ms
        ),
        at_most: if context.users.not_served.fail() >= NOT_SERVED_MIN { 100.0 } else { super::score::CAP_COMPANY },
        ..Candidate::new(KEY, format!("Signalling is serialised: joins are answered {how}"), "signalling of the server")
    }
    .suspect()
}

/// The joins that the law is read off: those near the failure; where a search adds too few at a time, those of the whole run.
fn shown_by<'a>(near: &'a [Join], all: &'a [Join]) -> &'a [Join] {
    if near.len() < JOINS_MIN { all } else { near }
}

/// The seconds in which a load's users came: those of its hold before it was settled.
fn joining(context: &Context<'_>, stretch: LoadWindow) -> Window {
    let of_it = context
        .run
        .holds
        .iter()
        .find(|hold| hold.until.is_some_and(|until| until.0 == stretch.window.until_us));
    Window { from_us: of_it.map_or(stretch.window.from_us, |hold| hold.from.0), ..stretch.window }
}

/// All joins that were answered, with how many were waiting when each began.
fn joins(context: &Context<'_>) -> Vec<Join> {
    let answered = context.run.participants.iter().filter_map(|row| {
        let (began, ended) = (row.reached.get(&Phase::Started)?, row.reached.get(&Phase::Negotiated)?);
        Some((began.0, ended.0))
    });
    // Who failed waited as well, until he did.
    let failed = context.run.participants.iter().filter(|row| !row.reached.contains_key(&Phase::Negotiated));
    let failed = failed.filter_map(|row| Some((row.reached.get(&Phase::Started)?.0, row.ended_at?.0)));
    let answered: Vec<(i64, i64)> = answered.collect();
    let (mut begins, mut ends): (Vec<i64>, Vec<i64>) = answered.iter().copied().chain(failed).unzip();
    begins.sort_unstable();
    ends.sort_unstable();
    let of = |(began, ended): &(i64, i64)| {
        let came = begins.partition_point(|other| other < began);
        let gone = ends.partition_point(|other| other <= began);
        Join {
            began: RunTime(*began),
            took_ms: (ended - began) as f64 / 1e3,
            before: came.saturating_sub(gone),
        }
    };
    answered.iter().map(of).collect()
}

/// A straight line through time over number before, by least squares; `None` where all met as many.
fn law(joins: &[Join]) -> Option<Law> {
    let n = joins.len() as f64;
    let mean = |of: &dyn Fn(&Join) -> f64| joins.iter().map(of).sum::<f64>() / n;
    let (before, took) = (mean(&|join| join.before as f64), mean(&|join| join.took_ms));
    let with = |a: &dyn Fn(&Join) -> f64, b: &dyn Fn(&Join) -> f64| {
        joins.iter().map(|join| a(join) * b(join)).sum::<f64>()
    };
    let (x, y) = (|join: &Join| join.before as f64 - before, |join: &Join| join.took_ms - took);
    let (xx, xy, yy) = (with(&x, &x), with(&x, &y), with(&y, &y));
    if xx <= 0.0 || yy <= 0.0 || xy <= 0.0 {
        return None;
    }
    let each_ms = xy / xx;
    Some(Law { each_ms, alone_ms: (took - each_ms * before).max(each_ms), explained: xy * xy / (xx * yy) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(before: usize, took_ms: f64) -> Join {
        Join { began: RunTime(0), took_ms, before }
    }

    #[test]
    fn what_each_before_adds_is_told_from_what_all_take() {
        let serial: Vec<Join> = (0..8).map(|before| join(before, 2_000.0 * (before + 1) as f64)).collect();
        let law_of = |joins: &[Join]| law(joins).map(|law| (law.each_ms.round(), law.explained > 0.99));
        assert_eq!(law_of(&serial), Some((2_000.0, true)));
        let parallel: Vec<Join> =
            (0..8).map(|before| join(before, 300.0 + 7.0 * (before % 3) as f64)).collect();
        assert!(law(&parallel).is_none_or(|law| law.explained < EXPLAINED_MIN));
        // A search that adds four: too few to tell by, and yet the law of all.
        let all = [&serial[..5], &serial[..1], &serial[..2], &serial[..4]].concat();
        assert_eq!(law_of(shown_by(&serial[..4], &all)), Some((2_000.0, true)));
        assert_eq!(shown_by(&serial[..4], &all).len(), all.len());
        assert_eq!(shown_by(&serial[..6], &all).len(), 6);
        assert_eq!(law_of(&[join(3, 5.0), join(3, 9.0)]), None, "all met as many");
    }
}
