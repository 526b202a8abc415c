//! The model of all holds: whether each load passes, and between which loads the limit lies. The
//! search uses it to choose the next hold, the answer is read from it.
//!
//! Each hold of a load failed or did not. The probability of failure can only grow with the load,
//! so the shares of failed holds are made monotone by isotonic regression (pool adjacent violators;
//! Barlow et al., *Statistical inference under order restrictions*, 1972). The limit lies between
//! the largest load that fails in less than half of its holds and the next one: the passing load is
//! always below the failing one.

use std::collections::BTreeMap;

use throng_observation::{Goal, HoldOutcome, HoldRow, Purpose};

/// Most holds of a load; then the majority decides.
const HOLDS_MAX: u32 = 5;
/// A load below one that passed counts as failed after this many holds …
const AGAINST_ORDER: u32 = 4;
/// … and this many of the load above it.
const AGAINST_ORDER_ABOVE: u32 = 2;
/// Two loads within this factor are near: an overload of the higher one explains bad seconds at the
/// lower one.
const NEAR: f64 = 1.1;

/// The criterion by which a load fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Criterion {
    /// It misses the goal.
    Goal(Goal),
    /// Most of its seconds are bad, and the last ones: the criterion if seconds are bad at any
    /// load.
    Collapse(Goal),
}

impl Criterion {
    /// Whether a hold failed; `None` if it is undecided.
    pub(crate) fn failed(self, hold: &HoldRow) -> Option<bool> {
        match self {
            Self::Goal(goal) => match hold.passed(goal) {
                HoldOutcome::Undecided => None,
                passed => Some(passed == HoldOutcome::No),
            },
            Self::Collapse(goal) if hold.passed(goal) != HoldOutcome::Undecided => {
                Some(hold.passed(goal) == HoldOutcome::No && hold.is_overloaded(goal))
            }
            Self::Collapse(_) => None,
        }
    }

    pub(crate) fn goal(self) -> Goal {
        match self {
            Self::Goal(goal) | Self::Collapse(goal) => goal,
        }
    }

    /// The same criterion for another goal.
    pub(crate) fn of(self, goal: Goal) -> Self {
        match self {
            Self::Goal(_) => Self::Goal(goal),
            Self::Collapse(_) => Self::Collapse(goal),
        }
    }
}

/// A load and the results of its holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) users: u32,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// Holds that were mostly bad and bad at their end.
    pub(crate) collapsed: u32,
    /// It passed a hold of full length.
    pub(crate) is_whole: bool,
    /// It was held again, for longer, to confirm that it fails.
    pub(crate) was_confirmed: bool,
    /// The numbers of the last hold that passed and of the last that failed.
    pub(crate) last_passed: Option<u32>,
    pub(crate) last_failed: Option<u32>,
    /// Share of failed holds after isotonic regression.
    fit: f64,
}

impl Load {
    fn holds(&self) -> u32 {
        self.passed + self.failed
    }

    /// Whether each of its holds was mostly bad and bad at its end.
    pub(crate) fn is_collapsed(&self) -> bool {
        self.collapsed == self.holds()
    }

    /// The number of failed holds and of all holds, if they do not agree.
    pub(crate) fn is_contested(&self) -> Option<(u32, u32)> {
        (self.failed > 0 && self.passed > 0).then_some((self.failed, self.holds()))
    }

    /// Whether its own holds do not decide it: as many passed as failed, or its only hold failed by
    /// a disturbance.
    fn is_open(&self) -> bool {
        let is_one_moment = self.holds() == 1 && self.failed == 1 && self.collapsed == 0;
        (is_one_moment || self.passed == self.failed) && self.holds() < HOLDS_MAX
    }
}

/// The loads that were held, the smallest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads(Vec<Load>);

impl Loads {
    /// The loads of those `holds` that test a load, judged by `criterion`; a full hold has
    /// `whole_s` seconds.
    pub(crate) fn of<'a>(
        holds: impl Iterator<Item = &'a HoldRow>,
        criterion: Criterion,
        whole_s: u32,
    ) -> Self {
        let mut loads: BTreeMap<u32, Load> = BTreeMap::new();
        let goal = criterion.goal();
        for hold in holds.filter(|hold| hold.until.is_some() && tests_its_load(hold)) {
            let Some(failed) = criterion.failed(hold) else { continue };
            let load = loads.entry(hold.users).or_default();
            load.users = hold.users;
            load.was_confirmed |= hold.purpose == Purpose::Confirm;
            if failed {
                load.failed += 1;
                load.collapsed += u32::from(hold.is_overloaded(goal));
                load.last_failed = Some(hold.number);
            } else {
                load.passed += 1;
                load.last_passed = Some(hold.number);
                // A hold that missed the goal without an overload ended early.
                let is_whole =
                    f64::from(hold.seconds) >= f64::from(whole_s) * (1.0 - goal.exceed_ratio());
                load.is_whole |= is_whole || matches!(criterion, Criterion::Collapse(_));
            }
        }
        let mut loads: Vec<Load> = loads.into_values().collect();
        isotonic(&mut loads);
        Self(loads)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest load that fails.
    pub(crate) fn failing(&self) -> Option<Load> {
        self.0.iter().find(|load| load.fit >= 0.5).copied()
    }

    /// The largest load that passes: the one below the smallest that fails.
    pub(crate) fn passing(&self) -> Option<Load> {
        self.0.iter().rfind(|load| load.fit < 0.5).copied()
    }

    /// The smallest load that is overloaded throughout its holds.
    pub(crate) fn collapsing(&self) -> Option<Load> {
        let failing = self.failing()?.users;
        self.0.iter().find(|load| load.users >= failing && load.is_collapsed()).copied()
    }

    /// The largest load that was held below `above`.
    pub(crate) fn largest_below(&self, above: u32) -> Option<Load> {
        self.0.iter().rfind(|load| load.users < above).copied()
    }

    /// The largest load that was held.
    pub(crate) fn largest(&self) -> Option<Load> {
        self.0.last().copied()
    }

    /// The passing and the failing load, where both are known.
    pub(crate) fn bracket(&self) -> Option<(u32, u32)> {
        Some((self.passing()?.users, self.failing()?.users))
    }

    /// A load that has to be held again before a conclusion: its own holds disagree, or a larger
    /// load passed.
    pub(crate) fn open(&self) -> Option<Load> {
        let open = self.0.iter().find(|load| load.is_open());
        open.copied().or_else(|| self.never_passed()).or_else(|| self.against_order())
    }

    /// A load that failed once while none has passed: the server may have to warm up.
    fn never_passed(&self) -> Option<Load> {
        let has_passed = self.0.iter().any(|load| load.passed > 0);
        self.0.iter().find(|load| !has_passed && load.holds() == 1).copied()
    }

    /// Of a load that mostly failed and one above it that mostly passed, the one to hold again.
    fn against_order(&self) -> Option<Load> {
        let failed = self.0.iter().find(|load| load.failed > load.passed)?;
        let above =
            self.0.iter().find(|load| load.users > failed.users && load.passed > load.failed)?;
        if failed.holds() < AGAINST_ORDER {
            Some(*failed)
        } else {
            (above.holds() < AGAINST_ORDER_ABOVE).then_some(*above)
        }
    }

    /// The failing load or one just above it, if it is overloaded throughout: then seconds are bad
    /// for lack of capacity and not by a disturbance at any load. `step` is the smallest step of
    /// the search.
    pub(crate) fn overload(&self, step: u32) -> Option<Load> {
        let (failing, collapsing) = (self.failing()?, self.collapsing()?);
        is_near(failing.users, collapsing.users, step).then_some(collapsing)
    }

    /// Whether any hold failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.iter().any(|load| load.failed > 0)
    }

    /// The loads that pass though a hold of them failed.
    pub(crate) fn failed_at_times(&self) -> Vec<u32> {
        self.0
            .iter()
            .filter(|load| load.fit < 0.5 && load.failed > 0)
            .map(|load| load.users)
            .collect()
    }
}

/// Whether two loads are near enough to have the same cause of bad seconds.
pub(crate) fn is_near(low: u32, high: u32, step: u32) -> bool {
    f64::from(high) <= f64::from(low) * NEAR || high <= low.saturating_add(2 * step)
}

/// Dependence tests and soaks answer other questions.
fn tests_its_load(hold: &HoldRow) -> bool {
    !matches!(hold.purpose, Purpose::DependenceTest | Purpose::Soak)
}

/// Pool adjacent violators: adjacent loads of which the smaller fails more often form a block with
/// their common share.
fn isotonic(loads: &mut [Load]) {
    // Failed holds, holds and loads of each block.
    let mut blocks: Vec<(u32, u32, usize)> = Vec::new();
    for load in loads.iter() {
        let mut block = (load.failed, load.holds(), 1);
        while let Some(before) = blocks.last()
            && u64::from(before.0) * u64::from(block.1) >= u64::from(block.0) * u64::from(before.1)
        {
            block = (block.0 + before.0, block.1 + before.1, block.2 + before.2);
            blocks.pop();
        }
        blocks.push(block);
    }
    let fits = blocks.iter().flat_map(|(failed, holds, count)| {
        std::iter::repeat_n(f64::from(*failed) / f64::from((*holds).max(1)), *count)
    });
    loads.iter_mut().zip(fits).for_each(|(load, fit)| load.fit = fit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::RunTime;

    /// Loads and what each of their holds came to: `p`assed, `f`ailed in some seconds, `c`ollapsed.
    fn loads(of: &[(u32, &str)]) -> Loads {
        let row = |users: u32, came_to: char| HoldRow {
            users,
            until: Some(RunTime(1)),
            seconds: 20,
            bad_seconds: [match came_to {
                'p' => 0,
                'f' => 3,
                _ => 20,
            }; 3],
            bad_to_the_end: came_to != 'p',
            passed: [if came_to == 'p' { HoldOutcome::Yes } else { HoldOutcome::No }; 3],
            ..HoldRow::default()
        };
        let rows: Vec<HoldRow> = of
            .iter()
            .flat_map(|(users, holds)| holds.chars().map(|came_to| row(*users, came_to)))
            .collect();
        Loads::of(rows.iter(), Criterion::Goal(Goal::Acceptable), 20)
    }

    #[test]
    fn the_passing_load_is_always_below_the_failing_one() {
        for (of, bracket) in [
            (&[(10, "p"), (15, "c")][..], Some((10, 15))),
            (&[(10, "p"), (15, "cp"), (20, "c")], Some((10, 15))),
            (&[(10, "p"), (15, "cpp"), (20, "c")], Some((15, 20))),
            // One that failed by chance, and larger ones that did not.
            (&[(10, "p"), (15, "ff"), (20, "pp"), (30, "p"), (40, "c")], Some((30, 40))),
            (&[(10, "ff"), (15, "p")], None),
            (&[(10, "p")], None),
        ] {
            assert_eq!(loads(of).bracket(), bracket, "{of:?}");
        }
        assert_eq!(loads(&[(10, "ff"), (15, "p")]).failing().map(|load| load.users), Some(10));
    }

    #[test]
    fn what_one_moment_failed_or_its_holds_disagree_on_is_held_again() {
        for (of, open) in [
            (&[(10, "p"), (15, "f")][..], Some(15)),
            (&[(10, "p"), (15, "fp")], Some(15)),
            (&[(10, "p"), (15, "ff")], None),
            (&[(10, "p"), (15, "c")], None),
            (&[(10, "p"), (15, "cp")], Some(15)),
            (&[(10, "p"), (15, "ff"), (20, "p")], Some(15)),
            (&[(10, "p"), (15, "fffp"), (20, "p")], Some(20)),
            (&[(10, "p"), (15, "fffp"), (20, "pp")], None),
            (&[(10, "c")], Some(10)),
            (&[(10, "cc")], None),
        ] {
            assert_eq!(loads(of).open().map(|load| load.users), open, "{of:?}");
        }
    }

    #[test]
    fn an_overload_just_above_explains_bad_seconds_and_one_far_above_does_not() {
        assert!(loads(&[(100, "p"), (105, "ff"), (110, "c")]).overload(1).is_some());
        assert!(loads(&[(100, "p"), (105, "ff"), (150, "c")]).overload(1).is_none());
        assert!(loads(&[(7, "p"), (8, "ff"), (10, "c")]).overload(1).is_some());
        assert!(loads(&[(100, "p"), (105, "ff")]).overload(1).is_none());
    }
}
