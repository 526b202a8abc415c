//! The capacity, from the holds of a search alone, so that it can be computed again from the run
//! folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throng_observation::units::count;
use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose};

use crate::search::criterion;
use crate::search::loads::{Criterion, Loads};

mod caveats;
use caveats::HoldsSummary;

mod goals;
pub use goals::GoalLoads;

#[cfg(test)]
mod law_tests;

/// The verdict of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityVerdict {
    /// A load passed, and one above it failed.
    Found,
    /// Every load that was tried passed.
    AtLeast,
    /// A load passed, but a smaller crowd failed the soak: the capacity does not hold for long.
    NotSustained,
    /// No load passed.
    NeverPasses,
    /// Seconds were bad at any load: this host is too noisy.
    Undecidable,
    /// The generator was the limit.
    Invalid,
}

impl CapacityVerdict {
    /// Its key in files and tables.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::AtLeast => "at_least",
            Self::NotSustained => "not_sustained",
            Self::NeverPasses => "never_passes",
            Self::Undecidable => "undecidable",
            Self::Invalid => "invalid",
        }
    }
}

/// Between which loads a goal's limit lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bracket {
    /// The largest load that passes, below every one that fails; `None` if none passes.
    pub passing: Option<u32>,
    /// The smallest load that fails, above the passing one; `None` if none fails.
    pub failing: Option<u32>,
}

/// The long hold of a crowd below the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Soak {
    /// The size of the crowd.
    pub users: u32,
    /// Its result.
    pub passed: HoldOutcome,
    /// Judged seconds.
    pub seconds: u32,
    /// Bad seconds among them.
    pub bad_seconds: u32,
    /// Seconds from the first judged second to the first bad one.
    pub broke_after_s: Option<f64>,
}

/// The largest crowd with good service, and how certain that is.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The verdict of the search.
    pub verdict: CapacityVerdict,
    /// The goal of the search.
    pub goal: Goal,
    /// The largest crowd that passes, by the model of all holds of all repeats: isotonic regression
    /// (docs/find.md).
    pub users: Option<u32>,
    /// The smallest crowd that fails by the same model: always above [`Self::users`].
    pub first_failing: Option<u32>,
    /// The bracket of each repeat that found one.
    pub runs: Vec<Bracket>,
    /// The loads of each goal from the same holds, in the order of [`Goal::ALL`].
    pub goals: [GoalLoads; 3],
    /// The soak, if there was one.
    pub soak: Option<Soak>,
    /// The longest recovery of the server after a load that failed, milliseconds.
    pub recovery_ms: Option<u64>,
    /// Judged seconds of all holds.
    pub judged_s: u32,
    /// The values that the loads number, if a value of the scenario was varied and not the number
    /// of users.
    pub values: BTreeMap<u32, String>,
    /// Why the number is uncertain, as clauses about it: seconds that were bad at any load, repeats
    /// that disagree, an early end.
    pub caveats: Vec<String>,
    /// Further remarks, as sentences.
    pub notes: Vec<String>,
}

impl Capacity {
    /// From the holds of a search for `goal`; `None` without a completed hold.
    #[must_use]
    pub fn of(holds: &[HoldRow], goal: Goal) -> Option<Self> {
        let ended: Vec<HoldRow> =
            HoldRow::judged_alike(holds).filter(|hold| hold.until.is_some()).cloned().collect();
        let first = ended.first()?.users;
        let judged_by = criterion(&ended, goal);
        let loads = Loads::of(ended.iter(), judged_by, 0);
        let bracket = bracket(&loads);
        let repeats = ended.iter().map(|hold| hold.repeat).max().unwrap_or(1);
        let of_repeat = |repeat| {
            Loads::of(ended.iter().filter(move |hold| hold.repeat == repeat), judged_by, 0)
        };
        let soak = soak(&ended, goal);
        let is_sustained = soak.is_none_or(|soak| soak.passed != HoldOutcome::No);
        let is_limited = is_limited(&ended, goal);
        let verdict = match (bracket.passing, bracket.failing) {
            (Some(_), _) if !is_sustained => CapacityVerdict::NotSustained,
            (Some(_), Some(_)) => CapacityVerdict::Found,
            _ if is_limited => CapacityVerdict::Invalid,
            (Some(_), None)
                if ended.iter().all(|hold| hold.users == first && is_noisy(hold, goal)) =>
            {
                CapacityVerdict::Undecidable
            }
            (Some(_), None) => CapacityVerdict::AtLeast,
            (None, Some(_)) => never(&ended, judged_by),
            (None, None) => CapacityVerdict::Undecidable,
        };
        let runs: Vec<Bracket> = (1..=repeats)
            .map(|repeat| self::bracket(&of_repeat(repeat)))
            .filter(|bracket| bracket.passing.is_some())
            .collect();
        let goals = Goal::ALL.map(|goal| GoalLoads::of(&ended, judged_by.of(goal)));
        let recovery_ms = ended.iter().filter_map(|hold| hold.recovery_ms).max();
        let seen = HoldsSummary { ended: &ended, goal, loads: &loads, runs: &runs };
        Some(Self {
            verdict,
            goal,
            users: bracket.passing,
            first_failing: bracket.failing,
            goals,
            soak,
            judged_s: ended.iter().map(|hold| hold.seconds).sum(),
            values: ended
                .iter()
                .filter_map(|hold| Some((hold.users, hold.value.clone()?)))
                .collect(),
            caveats: seen.caveats(),
            notes: seen.notes(recovery_ms, is_limited),
            recovery_ms,
            runs,
        })
    }

    /// The same if the generator caused the failure: then nothing is known of the server above the
    /// loads that passed.
    #[must_use]
    pub fn invalidated(mut self) -> Self {
        self.verdict = CapacityVerdict::Invalid;
        self.first_failing = None;
        for goal in &mut self.goals {
            goal.undecided = goal.failing.take().or(goal.undecided);
            goal.failed_at_times.clear();
        }
        self.caveats.clear();
        self
    }

    /// The answer as a sentence with the load that failed: "25 participants (3 runs 24–25, first
    /// failing load 27)". Why it is uncertain is said below it, in [`Self::caveats`].
    #[must_use]
    pub fn statement(&self, noun: &str) -> String {
        let whole =
            |load: u32| self.values.get(&load).cloned().unwrap_or_else(|| count(load.into(), noun));
        let users = self.users.map_or_else(|| format!("no {noun}"), whole);
        match (self.verdict, self.first_failing) {
            (CapacityVerdict::Found, Some(failing)) => {
                format!("{users} ({}first failing load {})", self.runs(), self.load(failing))
            }
            (CapacityVerdict::NotSustained, _) => {
                format!("{users}, not sustained: {}", self.soaked(noun))
            }
            (CapacityVerdict::AtLeast, _)
                if self.caveats.is_empty() && self.goals[self.goal as usize].none_failed() =>
            {
                format!("at least {users} (no load that was tried failed)")
            }
            (CapacityVerdict::AtLeast, _) => format!("at least {users}"),
            (CapacityVerdict::Invalid, _) => match self.users {
                Some(users) => {
                    format!("invalid: the generator was the limit above {}", whole(users))
                }
                None => "invalid: the generator was the limit".to_owned(),
            },
            (CapacityVerdict::NeverPasses, Some(failing)) => match self.values.get(&failing) {
                Some(value) => format!("none: {value} had bad service"),
                None => format!("none: a crowd of {failing} had bad service"),
            },
            _ => "undecidable here: seconds were bad independently of the load".to_owned(),
        }
    }

    /// A load as text: a number of users, or the value that it numbers.
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

    fn soaked(&self, noun: &str) -> String {
        let Some(soak) = self.soak else { return String::new() };
        let of =
            self.values.get(&soak.users).cloned().unwrap_or_else(|| count(soak.users.into(), noun));
        if soak.seconds == 0 {
            return format!("in the soak, {of} had bad service while the crowd settled");
        }
        let when = soak.broke_after_s.map_or_else(String::new, |s| format!(" after {s:.0} s"));
        format!(
            "in the soak, {of} had bad service{when} ({} of {} s bad)",
            soak.bad_seconds, soak.seconds
        )
    }
}

/// The loads between which the limit lies.
fn bracket(loads: &Loads) -> Bracket {
    let users = |load: Option<crate::search::loads::Load>| load.map(|load| load.users);
    Bracket { passing: users(loads.passing()), failing: users(loads.failing()) }
}

/// The last soak.
fn soak(ended: &[HoldRow], goal: Goal) -> Option<Soak> {
    let hold = ended.iter().rfind(|hold| hold.purpose == Purpose::Soak)?;
    let since = |at: throng_observation::RunTime| {
        (at.0 - hold.judged_from.unwrap_or(hold.from).0) as f64 / 1e6
    };
    Some(Soak {
        users: hold.users,
        passed: hold.passed(goal),
        seconds: hold.seconds,
        bad_seconds: hold.bad_seconds[goal as usize],
        // `broke_at` is the end of the first bad second.
        broke_after_s: hold.broke_at.map(|at| (since(at) - 1.0).max(0.0)),
    })
}

/// Whether the generator limited a load that no later hold decided.
fn is_limited(ended: &[HoldRow], goal: Goal) -> bool {
    let undecided =
        |hold: &&HoldRow| hold.passed(goal) == HoldOutcome::Undecided && hold.limited_seconds > 0;
    // A load that a later hold decided was not too large for the generator.
    let is_decided_since = |limited: &HoldRow| {
        ended.iter().any(|hold| {
            hold.number > limited.number
                && hold.users >= limited.users
                && hold.passed(goal) != HoldOutcome::Undecided
        })
    };
    ended.iter().filter(undecided).any(|hold| !is_decided_since(hold))
}

/// Whether a hold of the baseline has more than half of the bad seconds that the goal allows.
fn is_noisy(hold: &HoldRow, goal: Goal) -> bool {
    let bad = f64::from(hold.bad_seconds[goal as usize]);
    bad / f64::from(hold.seconds.max(1)) >= goal.exceed_ratio() / 2.0
}

/// The verdict if no load passes: the server is too slow, or noise makes seconds bad at any load.
/// If a larger crowd had good service, capacity is not the reason.
fn never(ended: &[HoldRow], judged_by: Criterion) -> CapacityVerdict {
    let smallest = ended.iter().min_by_key(|hold| hold.users);
    let is_overloaded = smallest.is_some_and(|hold| hold.is_overloaded(judged_by.goal()));
    let has_passed = ended.iter().any(|hold| judged_by.failed(hold) == Some(false));
    if is_overloaded && !has_passed {
        CapacityVerdict::NeverPasses
    } else {
        CapacityVerdict::Undecidable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::RunTime;

    fn hold(repeat: u32, purpose: Purpose, users: u32, passed: HoldOutcome) -> HoldRow {
        let bad = if passed == HoldOutcome::No { 30 } else { 0 };
        HoldRow {
            repeat,
            purpose,
            users,
            passed: [passed; 3],
            bad_seconds: [bad; 3],
            bad_to_the_end: bad > 0,
            seconds: 30,
            until: Some(RunTime(1)),
            ..HoldRow::default()
        }
    }

    #[test]
    fn the_answer_names_its_runs_and_the_load_that_failed() {
        use HoldOutcome::{No, Yes};
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
        let clean = capacity.goals[0].statement(|load| load.to_string());
        assert_eq!(clean.as_deref(), Some("25 passed, 27 failed"));
    }

    #[test]
    fn a_search_that_ended_before_it_looked_between_two_loads_reports_it() {
        use HoldOutcome::{No, Yes};
        let search = |step| {
            let held = [
                hold(1, Purpose::Demand, 10, Yes),
                hold(1, Purpose::Demand, 15, No),
                hold(1, Purpose::Confirm, 15, No),
            ];
            let holds = held.map(|hold| HoldRow { step, ..hold });
            Capacity::of(&holds, Goal::Acceptable).unwrap().caveats
        };
        let wide = |caveats: &[String]| {
            caveats.iter().any(|doubt| doubt == "nothing between 10 and 15 was decided")
        };
        assert!(wide(&search(1)), "{:?}", search(1));
        assert!(!wide(&search(5)), "rooms of five: there is nothing between: {:?}", search(5));
    }

    #[test]
    fn a_load_that_failed_once_and_then_passed_for_longer_has_passed() {
        let holds = [
            hold(1, Purpose::Demand, 10, HoldOutcome::Yes),
            hold(1, Purpose::Demand, 15, HoldOutcome::No),
            hold(1, Purpose::Confirm, 15, HoldOutcome::Yes),
            hold(1, Purpose::Retest, 15, HoldOutcome::Yes),
        ];
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!((capacity.verdict, capacity.users), (CapacityVerdict::AtLeast, Some(15)));
        assert_eq!(capacity.statement("viewers"), "at least 15 viewers");
        assert_eq!(capacity.caveats, ["15 failed in 1 of 3 holds"]);
    }

    #[test]
    fn a_soak_that_fails_is_in_the_answer() {
        let mut holds = vec![
            hold(1, Purpose::Demand, 20, HoldOutcome::Yes),
            hold(1, Purpose::Bisect, 21, HoldOutcome::No),
            hold(1, Purpose::Confirm, 21, HoldOutcome::No),
            HoldRow {
                seconds: 600,
                bad_seconds: [580; 3],
                from: RunTime(0),
                judged_from: Some(RunTime(10_000_000)),
                broke_at: Some(RunTime(30_000_000)),
                ..hold(1, Purpose::Soak, 18, HoldOutcome::No)
            },
        ];
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!(capacity.verdict, CapacityVerdict::NotSustained);
        assert_eq!(
            capacity.statement("viewers"),
            "20 viewers, not sustained: in the soak, 18 viewers had bad service after 19 s (580 of 600 s bad)"
        );
        holds[3].passed = [HoldOutcome::Yes; 3];
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!(capacity.statement("viewers"), "20 viewers (first failing load 21)");
        holds[3] = HoldRow {
            seconds: 0,
            bad_seconds: [0; 3],
            passed: [HoldOutcome::No; 3],
            ..holds[3].clone()
        };
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!(
            capacity.statement("viewers"),
            "20 viewers, not sustained: in the soak, 18 viewers had bad service while the crowd \
             settled"
        );
    }

    #[test]
    fn an_early_end_is_a_caveat_of_the_number() {
        let holds = [
            hold(1, Purpose::Demand, 15, HoldOutcome::Yes),
            hold(1, Purpose::Demand, 27, HoldOutcome::No),
        ];
        let caveats = Capacity::of(&holds, Goal::Acceptable).unwrap().caveats;
        let has = |caveat: &str| caveats.iter().any(|one| one.starts_with(caveat));
        assert!(has("nothing between 15 and 27 was decided"), "{caveats:?}");
        assert!(
            has("unconfirmed: the search ended before the failing load was held a second time"),
            "{caveats:?}"
        );
    }

    #[test]
    fn a_load_that_passed_and_then_failed_is_stated_as_a_decline() {
        let mut holds = vec![
            hold(1, Purpose::Demand, 10, HoldOutcome::Yes),
            hold(1, Purpose::Demand, 15, HoldOutcome::Yes),
            hold(1, Purpose::Demand, 22, HoldOutcome::No),
            hold(1, Purpose::Verify, 15, HoldOutcome::No),
            hold(1, Purpose::Retest, 15, HoldOutcome::No),
        ];
        (0..).zip(&mut holds).for_each(|(number, hold)| hold.number = number);
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!((capacity.users, capacity.first_failing), (Some(10), Some(15)));
        assert!(
            capacity.caveats.iter().any(|doubt| doubt.contains("degraded with time")),
            "{capacity:?}"
        );
    }

    #[test]
    fn without_a_load_that_passed_the_answer_is_none_or_noise() {
        let mut all_bad = hold(1, Purpose::Baseline, 1, HoldOutcome::No);
        let capacity = Capacity::of(std::slice::from_ref(&all_bad), Goal::Acceptable).unwrap();
        assert_eq!(capacity.verdict, CapacityVerdict::NeverPasses);
        let statement = capacity.statement("viewers");
        assert_eq!(statement, "none: a crowd of 1 had bad service");
        assert!(capacity.caveats[0].starts_with("unconfirmed:"), "{:?}", capacity.caveats);
        let twice = [all_bad.clone(), HoldRow { number: 1, ..all_bad.clone() }];
        let statement = Capacity::of(&twice, Goal::Acceptable).unwrap().statement("viewers");
        assert_eq!(statement, "none: a crowd of 1 had bad service");
        // A larger crowd was served well, so capacity is not the reason.
        let larger = HoldRow { number: 2, ..hold(1, Purpose::Demand, 5, HoldOutcome::Yes) };
        let statement =
            Capacity::of(&[twice.to_vec(), vec![larger]].concat(), Goal::Acceptable).unwrap();
        assert_eq!(statement.verdict, CapacityVerdict::Undecidable);
        all_bad.bad_seconds = [3; 3];
        assert_eq!(
            Capacity::of(&[all_bad], Goal::Acceptable).unwrap().verdict,
            CapacityVerdict::Undecidable
        );
        assert_eq!(Capacity::of(&[], Goal::Acceptable), None);
    }

    #[test]
    fn a_generator_that_was_the_limit_is_no_capacity() {
        let mut limited = hold(1, Purpose::Demand, 15, HoldOutcome::Undecided);
        limited.limited_seconds = 4;
        let holds = [hold(1, Purpose::Baseline, 10, HoldOutcome::Yes), limited];
        let capacity = Capacity::of(&holds, Goal::Acceptable).unwrap();
        assert_eq!(capacity.verdict, CapacityVerdict::Invalid);
        assert_eq!(
            capacity.statement("viewers"),
            "invalid: the generator was the limit above 10 viewers"
        );
    }
}
