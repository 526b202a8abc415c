//! Which clauses of `bad_if` made the seconds of a load bad, with their shares: what the users
//! suffered from, which is known whether or not a cause is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::{Clause, Goal, HoldOutcome, HoldRow};

use crate::windows::{BySecond, SecondQuality};

/// Least share of a clause that is named, but for the largest one.
const NAMED_RATIO_MIN: f64 = 0.01;

/// A clause, and how often it was broken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The clause (docs/find.md): `loss`, `delay`, `stall`, …
    #[schemars(with = "String")]
    pub clause: Clause,
    /// Bad user-seconds in which it was broken ÷ all bad user-seconds. One user-second may break
    /// several clauses, so that the shares of all clauses add up to 1 or more.
    pub ratio: f64,
}

impl Reason {
    fn word(&self) -> String {
        self.clause.key().replace('_', " ")
    }

    fn percent(&self) -> String {
        format!("{:.0} %", self.ratio * 100.0)
    }
}

/// The reasons of the seconds that were bad for `goal`, the most frequent first. Where none was,
/// those of the users that had a bad second by themselves.
#[must_use]
pub fn of<'a>(seconds: impl IntoIterator<Item = &'a SecondQuality>, goal: Goal) -> Vec<Reason> {
    let (mut bad, mut all) = (SecondQuality::default(), SecondQuality::default());
    for quality in seconds {
        all += *quality;
        if quality.is_bad(goal) {
            bad += *quality;
        }
    }
    shares(if bad.bad > 0 { bad } else { all })
}

/// The reasons of a hold: of its judged seconds, or of all where it failed before one was judged.
#[must_use]
pub fn of_hold(seconds: &BySecond, hold: &HoldRow, goal: Goal) -> Vec<Reason> {
    of(judged(seconds, hold), goal)
}

/// The reasons of several holds together.
#[must_use]
pub fn of_holds<'a>(
    seconds: &BySecond,
    holds: impl IntoIterator<Item = &'a HoldRow>,
    goal: Goal,
) -> Vec<Reason> {
    of(holds.into_iter().flat_map(|hold| judged(seconds, hold)), goal)
}

/// Why a load failed: the reasons of those of its holds that did.
#[must_use]
pub fn of_load(seconds: &BySecond, holds: &[HoldRow], users: u32, goal: Goal) -> Vec<Reason> {
    let has_failed = |hold: &&HoldRow| hold.users == users && hold.passed(goal) == HoldOutcome::No;
    of_holds(seconds, holds.iter().filter(has_failed), goal)
}

/// In words: `mostly loss (92 %), fps 11 %`, or `loss alone`. `None` without a bad user-second.
#[must_use]
pub fn words(reasons: &[Reason]) -> Option<String> {
    let (first, others) = reasons.split_first()?;
    let others: Vec<String> = others
        .iter()
        .filter(|reason| reason.ratio >= NAMED_RATIO_MIN)
        .map(|reason| format!("{} {}", reason.word(), reason.percent()))
        .collect();
    if others.is_empty() {
        return Some(format!("{} alone", first.word()));
    }
    let how = if first.ratio > 0.5 { "mostly" } else { "most often" };
    Some(format!("{how} {} ({}), {}", first.word(), first.percent(), others.join(", ")))
}

/// The seconds by which a hold was judged.
fn judged<'a>(
    seconds: &'a BySecond,
    hold: &HoldRow,
) -> impl Iterator<Item = &'a SecondQuality> + use<'a> {
    // It may have failed before it settled, without a judged second.
    let from = hold.judged_from.filter(|_| hold.seconds > 0).unwrap_or(hold.from).second();
    let until = hold.until.unwrap_or(hold.from).second();
    seconds.range(from..until.max(from)).map(|(_, quality)| quality)
}

fn shares(sum: SecondQuality) -> Vec<Reason> {
    let broken = Clause::ALL.into_iter().zip(sum.clauses).filter(|(_, users)| *users > 0);
    let ratio = |users: u64| users as f64 / sum.bad.max(1) as f64;
    let mut reasons: Vec<Reason> =
        broken.map(|(clause, users)| Reason { clause, ratio: ratio(users) }).collect();
    // The sort is stable: of equal shares the first in the order of `Clause::ALL` leads.
    reasons.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    reasons
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;

    use super::*;

    /// A second of a hundred users, of which so many broke each clause, and none of them two.
    fn second(broken: &[(Clause, u64)]) -> SecondQuality {
        let mut quality = SecondQuality { users: 100, ..SecondQuality::default() };
        for (clause, users) in broken {
            quality.bad += users;
            quality.clauses[*clause as usize] += users;
        }
        quality
    }

    fn said(seconds: &[SecondQuality]) -> Option<String> {
        words(&of(seconds, Goal::Acceptable))
    }

    #[test]
    fn the_clause_that_was_broken_most_often_is_named_first() {
        use Clause::{Delay, Fps, Loss, NotConnected};
        for (seconds, expect) in [
            (vec![second(&[(Delay, 20)])], Some("delay alone")),
            (vec![second(&[(NotConnected, 20)])], Some("not connected alone")),
            (vec![second(&[(Delay, 2), (Loss, 18)])], Some("mostly loss (90 %), delay 10 %")),
            (
                vec![second(&[(Delay, 9)]), second(&[(Loss, 11)])],
                Some("mostly loss (55 %), delay 45 %"),
            ),
            (
                vec![second(&[(Delay, 8), (Loss, 6), (Fps, 6)])],
                Some("most often delay (40 %), loss 30 %, fps 30 %"),
            ),
            // As rare as noise.
            (vec![second(&[(Loss, 1), (Delay, 99)]), second(&[(Delay, 99)])], Some("delay alone")),
            (vec![second(&[])], None),
            (vec![], None),
        ] {
            assert_eq!(said(&seconds).as_deref(), expect, "{seconds:?}");
        }
    }

    #[test]
    fn a_user_that_breaks_two_clauses_counts_for_both() {
        let mut both = second(&[(Clause::Stall, 10)]);
        both.clauses[Clause::Delivery as usize] = 5;
        assert_eq!(said(&[both]).as_deref(), Some("mostly stall (100 %), delivery 50 %"));
    }

    #[test]
    fn what_one_user_has_all_the_time_does_not_explain_the_bad_seconds_of_all() {
        let quiet = second(&[(Clause::Jitter, 1)]);
        let loud = second(&[(Clause::Jitter, 1), (Clause::Latency, 19)]);
        assert_eq!(
            said(&[quiet, quiet, loud]).as_deref(),
            Some("mostly latency (95 %), jitter 5 %")
        );
        assert_eq!(said(&[quiet, quiet]).as_deref(), Some("jitter alone"), "no second was bad");
    }

    #[test]
    fn the_seconds_of_a_hold_are_those_by_which_it_was_judged() {
        let seconds = BySecond::from([
            (2, second(&[(Clause::NotConnected, 50)])),
            (6, second(&[(Clause::Stall, 20)])),
            (10, second(&[(Clause::Loss, 90)])),
        ]);
        let at = |s: i64| RunTime(s * 1_000_000);
        let hold = HoldRow {
            users: 100,
            from: at(0),
            judged_from: Some(at(4)),
            until: Some(at(10)),
            seconds: 6,
            passed: [HoldOutcome::No; 3],
            ..HoldRow::default()
        };
        let said = |hold: &HoldRow| words(&of_hold(&seconds, hold, Goal::Acceptable));
        assert_eq!(said(&hold).as_deref(), Some("stall alone"));
        let unsettled = HoldRow { judged_from: hold.until, seconds: 0, ..hold.clone() };
        assert_eq!(said(&unsettled).as_deref(), Some("mostly not connected (71 %), stall 29 %"));
        assert_eq!(said(&HoldRow { until: None, ..hold.clone() }), None, "it has not ended");
        let passed = HoldRow {
            passed: [HoldOutcome::Yes; 3],
            from: at(10),
            until: Some(at(11)),
            ..hold.clone()
        };
        let load = of_load(&seconds, &[hold, passed], 100, Goal::Acceptable);
        assert_eq!(words(&load).as_deref(), Some("stall alone"), "only of the holds that failed");
    }
}
