//! The answer: how many, from the holds of a search alone, so that it can be made again from the run folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_observation::{Goal, HoldRow, Passed, Purpose};

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// A load passed, and one above it failed.
    Found,
    /// Every load that was tried passed.
    AtLeast,
    /// No load passed.
    NeverPasses,
    /// Seconds were bad without a reason in the load: this host is too noisy.
    Undecidable,
    /// The generator was the limit.
    Invalid,
}

impl Conclusion {
    /// The word for it in tables and keys.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::AtLeast => "at_least",
            Self::NeverPasses => "never_passes",
            Self::Undecidable => "undecidable",
            Self::Invalid => "invalid",
        }
    }
}

/// Between which loads a goal's limit lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bracket {
    /// The largest load that passed below every one that failed; `None` if none did.
    pub passing: Option<u32>,
    /// The smallest load that failed; `None` if none did.
    pub failing: Option<u32>,
}

/// How large a crowd is served well.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// What the search came to.
    pub conclusion: Conclusion,
    /// The goal that was looked for.
    pub goal: Goal,
    /// The median over the repeats of the largest crowd that passed.
    pub users: Option<u32>,
    /// The smallest crowd that failed in any repeat.
    pub first_failing: Option<u32>,
    /// The bracket of each repeat that came to one.
    pub runs: Vec<Bracket>,
    /// What the same holds say of each goal, in the order of [`Goal::ALL`].
    pub goals: [Bracket; 3],
    /// The longest that the server took to recover after a load that failed, milliseconds.
    pub recovery_ms: Option<u64>,
    /// Seconds that the search judged.
    pub judged_s: u32,
    /// Where a value of the scenario was varied and not the number of users: loads are numbers of values, and this is what
    /// they mean.
    pub values: BTreeMap<u32, String>,
    /// What else has to be said, in sentences: an end before its time, a server that did not come back, runs that disagree.
    pub notes: Vec<String>,
}

/// Results of repeats that are further apart than this share of their median are unstable.
const SPREAD_RATIO_MAX: f64 = 0.10;
/// A server that takes longer than this to recover has got stuck in its overload.
const RECOVERY_MS_MAX: u64 = 60_000;

impl Capacity {
    /// From the holds of a search for `goal`; `None` when nothing was held.
    #[must_use]
    pub fn of(holds: &[HoldRow], goal: Goal) -> Option<Self> {
        let ended: Vec<&HoldRow> = holds.iter().filter(|hold| hold.until.is_some()).collect();
        let last = ended.last()?;
        let repeats = ended.iter().map(|hold| hold.repeat).max().unwrap_or(1);
        let runs: Vec<Bracket> = (1..=repeats)
            .map(|repeat| bracket(ended.iter().filter(|hold| hold.repeat == repeat).copied(), goal))
            .filter(|bracket| bracket.passing.is_some())
            .collect();
        let first_failing = bracket(ended.iter().copied(), goal).failing;
        let mut passing: Vec<u32> = runs.iter().filter_map(|run| run.passing).collect();
        passing.sort_unstable();
        let users = passing.get(passing.len().saturating_sub(1) / 2).copied();
        let limited: Vec<&HoldRow> = ended
            .iter()
            .filter(|hold| hold.passed(goal) == Passed::Undecided && hold.limited_seconds > 0)
            .copied()
            .collect();
        // A load that was held again, and decided, was not beyond the generator.
        let is_decided_since = |limited: &HoldRow| {
            ended.iter().any(|hold| {
                hold.number > limited.number
                    && hold.users >= limited.users
                    && hold.passed(goal) != Passed::Undecided
            })
        };
        let is_limited = limited.iter().any(|hold| !is_decided_since(hold));
        let conclusion = match (users, first_failing) {
            (Some(_), Some(_)) => Conclusion::Found,
            _ if is_limited => Conclusion::Invalid,
            (Some(_), None) if is_noise(last, goal) => Conclusion::Undecidable,
            (Some(_), None) => Conclusion::AtLeast,
            (None, _) => never(&ended, goal),
        };
        let recovery_ms = ended.iter().filter_map(|hold| hold.recovery_ms).max();
        Some(Self {
            conclusion,
            goal,
            users,
            first_failing,
            notes: notes(&ended, &passing, first_failing, recovery_ms, !limited.is_empty()),
            runs,
            goals: Goal::ALL.map(|goal| bracket(ended.iter().copied(), goal)),
            recovery_ms,
            judged_s: ended.iter().map(|hold| hold.seconds).sum(),
            values: holds.iter().filter_map(|hold| Some((hold.users, hold.value.clone()?))).collect(),
        })
    }

    /// The answer in a sentence, never without the load that failed: "25 participants (3 runs 24–25, first failing load 27)".
    #[must_use]
    pub fn statement(&self, noun: &str) -> String {
        let whole = |load: u32| self.values.get(&load).cloned().unwrap_or_else(|| format!("{load} {noun}"));
        let users = self.users.map_or_else(|| format!("no {noun}"), whole);
        match (self.conclusion, self.first_failing) {
            (Conclusion::Found, Some(failing)) => {
                format!("{users} ({}first failing load {})", self.runs(), self.load(failing))
            }
            (Conclusion::AtLeast, _) => format!("at least {users} (no load that was tried failed)"),
            (Conclusion::Invalid, _) => match self.users {
                Some(users) => format!("invalid: the generator was the limit above {}", whole(users)),
                None => "invalid: the generator was the limit".to_owned(),
            },
            (Conclusion::NeverPasses, Some(failing)) => match self.values.get(&failing) {
                Some(value) => format!("none: {value} was not served well"),
                None => format!("not one: a crowd of {failing} was not served well"),
            },
            _ => "undecidable here: seconds were bad without a reason in the load".to_owned(),
        }
    }

    /// A load as people read it: a number of users, or the value that it stands for.
    #[must_use]
    pub fn load(&self, load: u32) -> String {
        self.values.get(&load).cloned().unwrap_or_else(|| load.to_string())
    }

    fn runs(&self) -> String {
        let passing = || self.runs.iter().filter_map(|run| run.passing);
        match (self.runs.len(), passing().min(), passing().max()) {
            (2.., Some(min), Some(max)) if min < max => {
                format!("{} runs {}–{}, ", self.runs.len(), self.load(min), self.load(max))
            }
            (2.., Some(min), _) => format!("{} runs, all {}, ", self.runs.len(), self.load(min)),
            _ => String::new(),
        }
    }
}

/// Between which loads the limit lies; what a load came to last counts.
fn bracket<'a>(holds: impl Iterator<Item = &'a HoldRow>, goal: Goal) -> Bracket {
    let mut loads = std::collections::BTreeMap::new();
    for hold in holds.filter(|hold| hold.purpose != Purpose::Soak && hold.passed(goal) != Passed::Undecided) {
        loads.insert(hold.users, hold.passed(goal));
    }
    let failing = loads.iter().find(|(_, passed)| **passed == Passed::No).map(|(users, _)| *users);
    let passing = loads.range(..failing.unwrap_or(u32::MAX)).next_back().map(|(users, _)| *users);
    Bracket { passing, failing }
}

fn is_noise(hold: &HoldRow, goal: Goal) -> bool {
    let bad = f64::from(hold.bad_seconds[goal as usize]);
    hold.purpose == Purpose::Baseline && bad / f64::from(hold.seconds.max(1)) >= goal.exceed_ratio() / 2.0
}

/// No load passed: because of the server, or because of a noise that spoils some seconds of any load?
fn never(ended: &[&HoldRow], goal: Goal) -> Conclusion {
    let smallest = ended.iter().min_by_key(|hold| hold.users);
    let is_mostly_bad =
        smallest.is_some_and(|hold| hold.bad_seconds[goal as usize] * 2 > hold.seconds || hold.seconds == 0);
    if is_mostly_bad { Conclusion::NeverPasses } else { Conclusion::Undecidable }
}

fn notes(
    ended: &[&HoldRow],
    passing: &[u32],
    first_failing: Option<u32>,
    recovery_ms: Option<u64>,
    was_limited: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    // A value next in the list, or a whole room more, is the smallest step there is, however far it is.
    let step = ended.iter().map(|hold| hold.users).reduce(common_divisor).unwrap_or(1);
    if let (Some(min), Some(max)) = (passing.first(), passing.last())
        && max - min > step
        && f64::from(max - min) > SPREAD_RATIO_MAX * f64::from(*max)
    {
        notes.push(format!("unstable: the runs came to between {min} and {max}"));
    }
    if was_limited && first_failing.is_some() {
        notes.push("in some holds the generator was the limit; they were not counted".to_owned());
    }
    if let Some(ms) = recovery_ms.filter(|ms| *ms > RECOVERY_MS_MAX) {
        notes.push(format!(
            "the server takes up to {} s to recover from too large a crowd: it gets stuck in its overload",
            ms / 1000
        ));
    }
    let never_back =
        ended.iter().filter(|hold| hold.passed.contains(&Passed::No)).filter_map(|hold| hold.why.as_ref());
    notes.extend(never_back.filter(|why| *why == crate::search::NEVER_BACK).take(1).cloned());
    let confirmed = ended.iter().any(|hold| {
        hold.purpose == Purpose::Confirm
            && Some(hold.users) == first_failing
            && hold.passed.contains(&Passed::No)
    });
    if first_failing.is_some() && !passing.is_empty() && !confirmed {
        notes.push("the failing load was not held a second time: the search ended before".to_owned());
    }
    notes
}

/// The largest number that divides both.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::RunTime;

    fn hold(repeat: u32, purpose: Purpose, users: u32, passed: Passed) -> HoldRow {
        let bad = if passed == Passed::No { 30 } else { 0 };
        HoldRow {
            repeat,
            purpose,
            users,
            passed: [passed; 3],
            bad_seconds: [bad; 3],
            seconds: 30,
            until: Some(RunTime(1)),
            ..HoldRow::default()
        }
    }

    #[test]
    fn the_answer_names_its_runs_and_the_load_that_failed() {
        use Passed::{No, Yes};
        let of = |repeat, passing, failing| {
            [
                hold(repeat, Purpose::Bisect, passing, Yes),
                hold(repeat, Purpose::Bisect, failing, No),
                hold(repeat, Purpose::Confirm, failing, No),
            ]
        };
        let holds = [of(1, 24, 27), of(2, 25, 28), of(3, 25, 27)].concat();
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!(
            capacity.statement("participants"),
            "25 participants (3 runs 24–25, first failing load 27)"
        );
        assert!(capacity.notes.is_empty(), "{:?}", capacity.notes);
        assert_eq!(capacity.goals[0], Bracket { passing: Some(25), failing: Some(27) });
    }

    #[test]
    fn a_load_that_failed_once_and_then_passed_for_longer_has_passed() {
        let holds = [
            hold(1, Purpose::Demand, 10, Passed::Yes),
            hold(1, Purpose::Demand, 15, Passed::No),
            hold(1, Purpose::Confirm, 15, Passed::Yes),
        ];
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!((capacity.conclusion, capacity.users), (Conclusion::AtLeast, Some(15)));
        assert!(capacity.statement("viewers").starts_with("at least 15 viewers"));
    }

    #[test]
    fn without_a_load_that_passed_the_answer_is_none_or_noise() {
        let mut all_bad = hold(1, Purpose::Baseline, 1, Passed::No);
        let capacity = Capacity::of(std::slice::from_ref(&all_bad), Goal::Acceptable).unwrap();
        assert_eq!(capacity.conclusion, Conclusion::NeverPasses);
        assert_eq!(capacity.statement("viewers"), "not one: a crowd of 1 was not served well");
        all_bad.bad_seconds = [3; 3];
        assert_eq!(Capacity::of(&[all_bad], Goal::Acceptable).unwrap().conclusion, Conclusion::Undecidable);
        assert_eq!(Capacity::of(&[], Goal::Acceptable), None);
    }

    #[test]
    fn a_generator_that_was_the_limit_is_no_capacity() {
        let mut limited = hold(1, Purpose::Demand, 15, Passed::Undecided);
        limited.limited_seconds = 4;
        let holds = [hold(1, Purpose::Baseline, 10, Passed::Yes), limited];
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!(capacity.conclusion, Conclusion::Invalid);
        assert_eq!(capacity.statement("viewers"), "invalid: the generator was the limit above 10 viewers");
    }
}
