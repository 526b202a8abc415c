//! The limit of one goal from the same holds: between which loads it lies, and which holds
//! disagree.

use std::collections::BTreeSet;

use throng_observation::{HoldRow, Purpose};

use crate::search::loads::{Criterion, Loads};

/// The loads between which a goal's limit lies, and the loads with other results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoalLoads {
    /// The largest load that passes, by the model.
    pub passing: Option<u32>,
    /// The smallest that fails: always larger.
    pub failing: Option<u32>,
    /// Loads below the failing one of which some hold failed.
    pub failed_at_times: Vec<u32>,
    /// Loads above the passing one of which some hold passed.
    pub passed_at_times: Vec<u32>,
    /// The smallest load between the two whose holds are undecided for this goal: they ended when
    /// another goal was decided, or the generator was the limit.
    pub undecided: Option<u32>,
    /// Whether loads are judged by whether most of their seconds were bad, because some are bad at
    /// any load.
    pub is_by_collapse: bool,
}

impl GoalLoads {
    pub(super) fn of(ended: &[HoldRow], judged_by: Criterion) -> Self {
        let loads = Loads::of(ended.iter(), judged_by, 0);
        let (passing, failing) =
            (loads.passing().map(|load| load.users), loads.failing().map(|load| load.users));
        let came_to = |wanted: Option<bool>| -> BTreeSet<u32> {
            let judged = ended.iter().filter(|hold| hold.purpose != Purpose::Soak);
            judged.filter(|hold| judged_by.failed(hold) == wanted).map(|hold| hold.users).collect()
        };
        let is_below = |load: &u32| failing.is_none_or(|failing| *load < failing);
        let is_above = |load: &u32| passing.is_none_or(|passing| *load > passing);
        let (failed, passed) = (came_to(Some(true)), came_to(Some(false)));
        let is_new = |load: &u32| !failed.contains(load) && !passed.contains(load);
        Self {
            passing,
            failing,
            undecided: came_to(None)
                .into_iter()
                .filter(is_new)
                .find(|load| is_below(load) && is_above(load)),
            failed_at_times: failed.into_iter().filter(is_below).collect(),
            passed_at_times: passed.into_iter().filter(is_above).collect(),
            is_by_collapse: matches!(judged_by, Criterion::Collapse(_)),
        }
    }

    /// Whether no hold failed.
    pub(super) fn none_failed(&self) -> bool {
        self.failing.is_none() && self.failed_at_times.is_empty()
    }

    /// `263 passed, 324 failed at times, 396 not decided`; `None` if nothing is known of this goal.
    /// `load` formats a load.
    #[must_use]
    pub fn statement(&self, load: impl Fn(u32) -> String) -> Option<String> {
        let has_any = self.passing.is_some() || self.failing.is_some();
        let (passed, failed) =
            if self.is_by_collapse { ("mostly well", "mostly bad") } else { ("passed", "failed") };
        let list = |loads: &[u32]| {
            let named: Vec<String> = loads.iter().map(|users| load(*users)).collect();
            (!named.is_empty()).then(|| named.join(" and "))
        };
        let known = |users: Option<u32>, others: &[u32], word: &str| match users {
            Some(users) => Some(format!("{} {word}", load(users))),
            None => others.is_empty().then(|| format!("none {word}")),
        };
        let parts = [
            known(self.passing, &self.passed_at_times, passed),
            known(self.failing, &self.failed_at_times, failed)
                .filter(|_| self.failing.is_some() || self.undecided.is_none()),
            list(&self.failed_at_times).map(|loads| format!("{loads} {failed} at times")),
            list(&self.passed_at_times).map(|loads| format!("{loads} {passed} at times")),
            self.undecided.map(|users| format!("{} not decided", load(users))),
        ];
        has_any.then(|| parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::{Goal, HoldOutcome, RunTime};

    use super::*;

    /// Loads and what each of their holds came to: `p`assed, `f`ailed, `u`ndecided.
    fn said(of: &[(u32, &str)]) -> Option<String> {
        let row = |users: u32, came_to: char| {
            let passed = match came_to {
                'p' => HoldOutcome::Yes,
                'f' => HoldOutcome::No,
                _ => HoldOutcome::Undecided,
            };
            HoldRow { users, until: Some(RunTime(1)), passed: [passed; 3], ..HoldRow::default() }
        };
        let rows: Vec<HoldRow> = of
            .iter()
            .flat_map(|(users, holds)| holds.chars().map(|came_to| row(*users, came_to)))
            .collect();
        GoalLoads::of(&rows, Criterion::Goal(Goal::Broken)).statement(|load| load.to_string())
    }

    #[test]
    fn a_line_says_what_the_holds_of_its_goal_came_to() {
        for (of, expect) in [
            (&[(10, "p"), (15, "ff")][..], Some("10 passed, 15 failed")),
            (&[(10, "p")], Some("10 passed, none failed")),
            (&[(10, "ff")], Some("none passed, 10 failed")),
            // The hold ended when another goal was decided.
            (&[(263, "p"), (328, "u")], Some("263 passed, 328 not decided")),
            (
                &[(263, "p"), (300, "u"), (328, "ff")],
                Some("263 passed, 328 failed, 300 not decided"),
            ),
            // It failed, and passed when it was held again.
            (&[(324, "fpp"), (396, "p")], Some("396 passed, 324 failed at times")),
            (&[(10, "ff"), (15, "p")], Some("10 failed, 15 passed at times")),
            (&[(10, "u")], None),
            (&[], None),
        ] {
            assert_eq!(said(of).as_deref(), expect, "{of:?}");
        }
    }
}
