//! Signalling is serialised: a join waits for all joins that are being answered, though no resource
//! is full.
//!
//! Detected from the joins alone. If the server answers one join at a time, the time of a join
//! grows by one answer with each join before it. If it answers many at once, a join takes the same
//! time however many wait.

use throng_observation::host::measured::Window;
use throng_observation::units::duration_ms;
use throng_observation::{Phase, RunTime};

use super::score::CAP_COMPANY;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading, at_share};
use crate::windows::LoadWindow;

pub(super) const KEY: &str = "signalling_serialised";
/// Least joins, and joins waiting at once, for a regression.
const JOINS_MIN: usize = 6;
const WAITING_MIN: usize = 3;
/// Least r²: the share of the variance of join times that the number of joins before explains.
const EXPLAINED_MIN: f64 = 0.8;
/// Least additional wait of the last join.
const WAIT_MS_MIN: f64 = 1_000.0;
/// Least share of the bad user-seconds that are of users that were not connected.
const NOT_SERVED_MIN: f64 = 0.5;
/// Wait at which the finding is fully used up: the default time to join.
const WAIT_MS_FULL: f64 = 3_000.0;

/// A join that was answered.
#[derive(Clone, Copy, Debug)]
struct Join {
    began: RunTime,
    took_ms: f64,
    /// Joins that had begun before it and were not answered yet.
    before: usize,
}

/// The regression of join time over joins before.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Regression {
    /// Milliseconds that each join before adds.
    each_ms: f64,
    /// Milliseconds of a join with none before.
    alone_ms: f64,
    /// r²: the share of the variance that it explains.
    explained: f64,
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let joins = joins(context);
    let near: Vec<Join> =
        joins.iter().filter(|join| context.is_near_failure(join.began)).copied().collect();
    let most = near.iter().map(|join| join.before).max().unwrap_or(0);
    let shown = shown_by(&near, &joins);
    let law = regression(shown).filter(|_| shown.len() >= JOINS_MIN && most >= WAITING_MIN);
    let p95 = took_ms(near.iter(), 0.95);
    let is_serial = |law: &Regression| {
        law.explained >= EXPLAINED_MIN && law.each_ms * most as f64 >= WAIT_MS_MIN
    };
    let Some(law) = law.filter(is_serial) else {
        return match p95 {
            Some(p95) => ruled_out(format!(
                "Signalling: joins are answered within {}, however many wait",
                duration_ms(p95)
            )),
            None => Err(NoFinding::NotApplicable),
        };
    };
    let of_load = |load: LoadWindow| {
        let window = joining(context, load);
        let is_within = |join: &&Join| (window.from_us..window.until_us).contains(&join.began.0);
        took_ms(joins.iter().filter(is_within), 0.95)
    };
    let alone = took_ms(joins.iter().filter(|join| join.before == 0), 0.5);
    let times = Reading {
        base: alone,
        pass: context.windows.pass.and_then(of_load),
        fail: p95,
        ..Reading::default()
    };
    let waiting = Reading { base: Some(0.0), ..Reading::at_failure(most as f64) };
    Ok(Candidate {
        used: (law.each_ms * most as f64 / WAIT_MS_FULL).clamp(0.0, 1.0),
        queue: times.growth(50.0),
        crossed_at_s: context.first_bad_s(),
        evidence: vec![
            Evidence::milliseconds(
                "time until offer and answer are exchanged, p95 (baseline: joins with none \
                 waiting)",
                times,
            )
            .decides(),
            Evidence::count("joins that waited for an answer at once, the most", waiting),
            Evidence::ratio(
                format!(
                    "r² of the time of {} joins over the number of joins before them",
                    shown.len()
                ),
                Reading::at_failure(law.explained),
            ),
            Evidence::ratio("process.cpu of the server, of all cores", context.own_share())
                .limit(1.0),
        ],
        change: format!(
            "Find what the server does for a join while the next one waits ({}): a lock, a call \
             to another service, a single thread for signalling; until it is fixed, keep the join \
             rate below {:.1} a second",
            duration_ms(law.each_ms),
            1e3 / law.each_ms
        ),
        at_most: if context.users.not_served.fail() >= NOT_SERVED_MIN {
            100.0
        } else {
            CAP_COMPANY
        },
        ..Candidate::new(
            KEY,
            format!("Signalling is serialised: joins are answered {}", law.how()),
            "signalling of the server",
        )
    })
}

impl Regression {
    fn how(&self) -> String {
        match (self.alone_ms / self.each_ms).round().max(1.0) {
            at_once if at_once < 2.0 => {
                format!("one after the other, {} each", duration_ms(self.each_ms))
            }
            at_once => format!("about {at_once:.0} at a time, {} each", duration_ms(self.alone_ms)),
        }
    }
}

/// A quantile of the time of joins, milliseconds.
fn took_ms<'a>(joins: impl Iterator<Item = &'a Join>, share: f64) -> Option<f64> {
    at_share(joins.map(|join| join.took_ms).collect(), share)
}

/// The joins of the regression: those near the failure, or of the whole run if a search adds too
/// few at a time.
fn shown_by<'a>(near: &'a [Join], all: &'a [Join]) -> &'a [Join] {
    if near.len() < JOINS_MIN { all } else { near }
}

/// A load with the seconds in which its users joined, before its hold settled.
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
        let (began, ended) =
            (row.reached.get(&Phase::Started)?, row.reached.get(&Phase::Negotiated)?);
        Some((began.0, ended.0))
    });
    // A failed join waited too, until it failed.
    let failed =
        context.run.participants.iter().filter(|row| !row.reached.contains_key(&Phase::Negotiated));
    let failed =
        failed.filter_map(|row| Some((row.reached.get(&Phase::Started)?.0, row.ended_at?.0)));
    let answered: Vec<(i64, i64)> = answered.collect();
    let (mut begins, mut ends): (Vec<i64>, Vec<i64>) =
        answered.iter().copied().chain(failed).unzip();
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

/// Least squares of join time over joins before; `None` if the number of joins before does not
/// vary.
fn regression(joins: &[Join]) -> Option<Regression> {
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
    Some(Regression {
        each_ms,
        alone_ms: (took - each_ms * before).max(each_ms),
        explained: xy * xy / (xx * yy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(before: usize, took_ms: f64) -> Join {
        Join { began: RunTime(0), took_ms, before }
    }

    #[test]
    fn the_cost_of_each_predecessor_is_separated_from_the_fixed_cost() {
        let serial: Vec<Join> =
            (0..8).map(|before| join(before, 2_000.0 * (before + 1) as f64)).collect();
        let law_of = |joins: &[Join]| {
            regression(joins).map(|law| (law.each_ms.round(), law.explained > 0.99))
        };
        assert_eq!(law_of(&serial), Some((2_000.0, true)));
        let parallel: Vec<Join> =
            (0..8).map(|before| join(before, 300.0 + 7.0 * (before % 3) as f64)).collect();
        assert!(regression(&parallel).is_none_or(|law| law.explained < EXPLAINED_MIN));
        // Four joins at a time are too few for a regression; the joins of the whole search show the
        // same slope.
        let all = [&serial[..5], &serial[..1], &serial[..2], &serial[..4]].concat();
        assert_eq!(law_of(shown_by(&serial[..4], &all)), Some((2_000.0, true)));
        assert_eq!(shown_by(&serial[..4], &all).len(), all.len());
        assert_eq!(shown_by(&serial[..6], &all).len(), 6);
        assert_eq!(law_of(&[join(3, 5.0), join(3, 9.0)]), None, "all met as many");
    }
}
