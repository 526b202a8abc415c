//! The caveats of the capacity, from the same holds.

use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose, RunTime};

use super::Bracket;
use crate::search::NEVER_BACK;
use crate::search::dependence_test::{Dependence, DependenceTest};
use crate::search::loads::{Load, Loads, is_near};

/// Largest difference of the results of repeats, as a share of the largest.
const SPREAD_RATIO_MAX: f64 = 0.10;
/// Largest distance of the passing and the failing load, as a share of the failing one.
const WIDTH_RATIO_MAX: f64 = 0.12;
/// A load of at most this share of the passing one is far below it; …
const FAR_BELOW: f64 = 0.8;
/// … this many bad stretches there, and this share of bad seconds, are not caused by the load.
const RESTLESS_MIN: u32 = 2;
const RESTLESS_RATIO: f64 = 0.02;
/// Longest recovery; a server that takes longer has a metastable failure.
const RECOVERY_MS_MAX: u64 = 60_000;

/// The holds from which caveats and notes are derived.
pub(super) struct HoldsSummary<'a> {
    pub(super) ended: &'a [HoldRow],
    pub(super) goal: Goal,
    pub(super) loads: &'a Loads,
    pub(super) runs: &'a [Bracket],
}

impl HoldsSummary<'_> {
    /// The smallest step of the search: one user, the next value, or a whole room.
    fn step(&self) -> u32 {
        self.ended.iter().map(|hold| hold.step).max().unwrap_or_default().max(1)
    }

    /// Why the number is uncertain.
    pub(super) fn caveats(&self) -> Vec<String> {
        let caveats = [
            self.disturbed().or_else(|| self.restless()),
            self.worsened(),
            self.wide(),
            self.unstable(),
            self.unconfirmed(),
            self.contested(),
        ];
        caveats.into_iter().flatten().chain(self.failed_at_times()).collect()
    }

    /// Seconds that were bad at any load, with the result of the dependence test.
    fn disturbed(&self) -> Option<String> {
        let dependence_test = DependenceTest::of(self.ended.iter());
        let of = |dependence_test: DependenceTest| {
            let times = |side: usize, users: u32| {
                format!(
                    "{} times in {} s at {users}",
                    dependence_test.stretches[side], dependence_test.seconds[side]
                )
            };
            format!("{}, {}", times(0, dependence_test.low), times(1, dependence_test.high))
        };
        match dependence_test
            .and_then(|dependence_test| Some((dependence_test, dependence_test.dependence()?)))
        {
            Some((dependence_test, Dependence::None)) => Some(format!(
                "disturbed independently of the load (service was bad {}; likelihood ratio \
                 {:.3}): the limit is where most seconds are bad",
                of(dependence_test),
                dependence_test.likelihood_ratio()
            )),
            Some((_, Dependence::OnLoad)) => None,
            Some((dependence_test, Dependence::Unknown)) => Some(format!(
                "the test whether bad seconds depend on the load is undecided ({})",
                of(dependence_test)
            )),
            // The search ended before the test.
            None if self.loads.failing().is_some()
                && self.loads.overload(self.step()).is_none() =>
            {
                Some(
                    "not tested whether bad seconds depend on the load: no load was overloaded \
                     throughout"
                        .to_owned(),
                )
            }
            None => None,
        }
    }

    /// Bad seconds at loads far below the passing one, though not enough for those loads to fail.
    fn restless(&self) -> Option<String> {
        let passing = f64::from(self.loads.passing()?.users);
        let (mut bad, mut times, mut seconds) = (0, 0, 0);
        for hold in self.ended.iter().filter(|hold| f64::from(hold.users) <= passing * FAR_BELOW) {
            bad += hold.bad_seconds[self.goal as usize];
            times += hold.bad_stretches;
            seconds += hold.seconds;
        }
        let is_often =
            times >= RESTLESS_MIN && f64::from(bad) > RESTLESS_RATIO * f64::from(seconds);
        is_often.then(|| {
            format!("service was bad far below the limit as well, {times} times in {seconds} s")
        })
    }

    /// A load that passed and failed later: the server changed with time.
    fn worsened(&self) -> Option<String> {
        let failing = self.loads.failing()?;
        let came_to = |passed: HoldOutcome| {
            self.ended.iter().filter(move |hold| {
                hold.users == failing.users
                    && hold.passed(self.goal) == passed
                    && !matches!(hold.purpose, Purpose::DependenceTest | Purpose::Soak)
            })
        };
        let passed = came_to(HoldOutcome::Yes).next_back()?;
        let failed = came_to(HoldOutcome::No).map(|hold| hold.number).min()?;
        (passed.number < failed).then(|| {
            let at = |hold: &HoldRow| hold.until.map_or(0.0, RunTime::as_secs_f64);
            format!(
                "the server degraded with time: {} passed at {:.0} s and failed later",
                failing.users,
                at(passed)
            )
        })
    }

    /// The search ended before it tried a load between the two.
    fn wide(&self) -> Option<String> {
        let (passing, failing) = self.loads.bracket()?;
        let apart = failing - passing;
        let is_wide =
            apart > self.step() && f64::from(apart) > WIDTH_RATIO_MAX * f64::from(failing);
        is_wide.then(|| format!("nothing between {passing} and {failing} was decided"))
    }

    fn unstable(&self) -> Option<String> {
        let passing = || self.runs.iter().filter_map(|run| run.passing);
        let (min, max) = (passing().min()?, passing().max()?);
        let is_apart =
            max - min > self.step() && f64::from(max - min) > SPREAD_RATIO_MAX * f64::from(max);
        is_apart.then(|| format!("unstable: the runs found between {min} and {max}"))
    }

    fn unconfirmed(&self) -> Option<String> {
        let failing = self.loads.failing()?;
        (failing.failed < 2).then(|| {
            "unconfirmed: the search ended before the failing load was held a second time"
                .to_owned()
        })
    }

    /// Holds of the passing or of the failing load that disagree with the others.
    fn contested(&self) -> Option<String> {
        let of = |load: Option<Load>| {
            let load = load?;
            let (failed, holds) = load.is_contested()?;
            Some(format!("{} failed in {failed} of {holds} holds", load.users))
        };
        let said: Vec<String> =
            [of(self.loads.passing()), of(self.loads.failing())].into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// Loads that pass, but not in each hold.
    fn failed_at_times(&self) -> Option<String> {
        let largest = self.loads.passing()?.users;
        let mut loads = self.loads.failed_at_times();
        loads.retain(|load| *load != largest);
        let near = loads.iter().filter(|load| is_near(**load, largest, self.step())).count();
        // Some failures just below the limit are normal.
        let is_limit = self.loads.failing().is_some();
        if loads.is_empty() || (is_limit && near == loads.len()) {
            return None;
        }
        let named: Vec<String> = loads.iter().map(u32::to_string).collect();
        Some(format!("loads that failed in their first hold and not again: {}", named.join(", ")))
    }

    /// Further remarks.
    pub(super) fn notes(&self, recovery_ms: Option<u64>, was_limited: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let any_limited = was_limited
            || self.ended.iter().any(|hold| {
                hold.limited_seconds > 0 && hold.passed(self.goal) == HoldOutcome::Undecided
            });
        if any_limited && self.loads.failing().is_some() {
            notes.push(
                "in some holds the generator was the limit; they were not counted".to_owned(),
            );
        }
        if let Some(unloaded) = self.ended.iter().find_map(|hold| hold.unloaded) {
            notes.push(format!(
                "at the smallest crowd already, from the path, the source or the server itself: \
                 {unloaded}; so it is without load, and a load fails by what is far beyond that"
            ));
        }
        if let Some(ms) = recovery_ms.filter(|ms| *ms > RECOVERY_MS_MAX) {
            notes.push(format!(
                "the server takes up to {} s to recover from an overload (metastable failure)",
                ms / 1000
            ));
        }
        let failed = self.ended.iter().filter(|hold| hold.passed.contains(&HoldOutcome::No));
        let never_back =
            failed.filter_map(|hold| hold.why.as_ref()).filter(|why| *why == NEVER_BACK);
        notes.extend(never_back.take(1).cloned());
        notes
    }
}
