//! Chooses the next hold from all holds so far, so that a search that was cut off can continue.
//!
//! ```text
//! baseline -> up until a load is overloaded -> bisection -> the failing load again, longer
//!          -> does it depend on the load?
//!          -> the passing load again -> (once more from near by) -> soak
//! ```

use throng_observation::{HoldOutcome, HoldRow, Purpose};

use super::dependence_test::{Dependence, DependenceTest};
use super::loads::{Criterion, Load, Loads, is_near};
use super::{End, Settings};

/// First step, as a share, of the ramp after a load that seemed to fail and did not; the steps
/// double.
const GALLOP_FROM: f64 = 0.05;
/// Holds bad to their end that are no coincidence.
const SURE_HOLDS: u32 = 2;
/// First load of a repeat, as a share of the limit that the one before found.
const REPEAT_FROM: f64 = 0.85;
/// Load of the soak, as a share of the limit.
const SOAK_AT: f64 = 0.9;
/// A load that failed in the first minute is held again later: a server that was just started
/// compiles, fills caches, opens pools.
const WARM_UP_S: f64 = 60.0;
/// The low load of a dependence test, as a share of the passing one.
const CONTRAST_LOW: f64 = 0.5;

/// The next step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Hold a number of users for a number of seconds.
    Hold(Purpose, u32, u32),
    /// The limit is found: search it again, starting with a number of users.
    Repeat(u32),
    Over(End),
}

/// The state from which the next step is chosen.
pub(super) struct Known<'a> {
    pub(super) settings: &'a Settings,
    /// The completed holds of all repeats.
    pub(super) holds: &'a [HoldRow],
    pub(super) repeat: u32,
}

impl Known<'_> {
    fn of_repeat(&self) -> impl Iterator<Item = &HoldRow> + Clone {
        self.holds.iter().filter(|hold| hold.repeat == self.repeat)
    }

    /// The criterion by which a load fails.
    pub(super) fn criterion(&self) -> Criterion {
        criterion(self.holds, self.settings.goal)
    }

    /// The loads of this repeat.
    pub(super) fn loads(&self) -> Loads {
        Loads::of(self.of_repeat(), self.criterion(), self.settings.schedule.hold_s)
    }

    /// The next step.
    pub(super) fn next(&self) -> Next {
        let goal = self.settings.goal;
        let soak = self.of_repeat().find(|hold| {
            hold.purpose == Purpose::Soak
                && hold.until.is_some()
                && hold.passed(goal) != HoldOutcome::Undecided
        });
        match soak.map(|soak| soak.passed(goal)) {
            Some(HoldOutcome::No) => return Next::Over(End::NotSustained),
            Some(_) => return Next::Over(self.end()),
            None => {}
        }
        let loads = self.loads();
        if loads.is_empty() {
            return self.first();
        }
        if let Some(next) = self.noise() {
            return next;
        }
        if let Some(open) = loads.open() {
            return self.hold(Purpose::Retest, open.users);
        }
        match (loads.passing(), loads.failing()) {
            (Some(passing), failing) => self
                .upwards(&loads, passing)
                .or_else(|| self.between(&passing, failing.as_ref()?))
                .or_else(|| self.confirm(failing.as_ref()?))
                .or_else(|| self.warmed_up(failing.as_ref()?))
                .or_else(|| self.dependence(&loads, &passing, failing.as_ref()?))
                .or_else(|| self.verify(&passing, failing.as_ref()))
                .unwrap_or_else(|| self.known(&passing, failing.as_ref())),
            (None, Some(failing)) => self.nothing_passes(&failing),
            (None, None) => self.hold(Purpose::Baseline, self.settings.start),
        }
    }

    /// The first hold of a repeat.
    fn first(&self) -> Next {
        let before = Known { repeat: self.repeat.saturating_sub(1), ..*self };
        match before.loads().passing().filter(|_| self.repeat > 1) {
            Some(passing) => self.hold(Purpose::Bisect, before.near(&passing, REPEAT_FROM)),
            None => self.hold(Purpose::Baseline, self.settings.start),
        }
    }

    fn near(&self, passing: &Load, share: f64) -> u32 {
        self.settings.nearest(f64::from(passing.users) * share)
    }

    fn hold(&self, purpose: Purpose, users: u32) -> Next {
        let schedule = &self.settings.schedule;
        let seconds = match purpose {
            Purpose::Baseline => (schedule.hold_s / 2).max(schedule.demand_s),
            Purpose::Demand => schedule.demand_s,
            Purpose::Confirm => schedule.hold_s.saturating_mul(schedule.confirm_factor.max(1)),
            Purpose::Soak => schedule.soak_s,
            Purpose::Retest | Purpose::Bisect | Purpose::Verify | Purpose::DependenceTest => {
                schedule.hold_s
            }
        };
        Next::Hold(purpose, users, seconds)
    }

    /// The next step if each hold of the baseline passes with bad seconds: more than half of the
    /// allowed ones is too many. If the second hold has none, the server was warming up.
    fn noise(&self) -> Option<Next> {
        let baseline = self.of_repeat().take_while(|hold| hold.users == self.settings.start);
        if baseline.clone().count() < self.of_repeat().count() || self.repeat > 1 {
            return None; // The search is past the baseline.
        }
        let goal = self.settings.goal;
        let is_noisy = |hold: &HoldRow| {
            let ratio = f64::from(hold.bad_seconds[goal as usize]) / f64::from(hold.seconds.max(1));
            hold.passed(goal) == HoldOutcome::Yes && ratio >= goal.exceed_ratio() / 2.0
        };
        if !baseline.clone().all(is_noisy) {
            return None;
        }
        let is_first = baseline.count() == 1;
        Some(if is_first {
            self.hold(Purpose::Retest, self.settings.start)
        } else {
            Next::Over(End::TooNoisy)
        })
    }

    /// The next step if no load passes: the smallest crowd shows whether the load is the reason.
    fn nothing_passes(&self, failing: &Load) -> Next {
        if failing.users > self.settings.floor {
            return self.hold(Purpose::Bisect, self.settings.floor);
        }
        if let Some(again) = self.warmed_up(failing) {
            return again;
        }
        if failing.collapsed == 1 && failing.failed == 1 {
            return self.hold(Purpose::Retest, failing.users);
        }
        Next::Over(if failing.is_collapsed() { End::NeverPasses } else { End::TooNoisy })
    }

    /// The ramp, until a load is overloaded throughout its hold: occasional bad seconds below it
    /// may have another reason.
    fn upwards(&self, loads: &Loads, passing: Load) -> Option<Next> {
        let Settings { step, ceiling, schedule, .. } = self.settings;
        let largest = loads.largest()?;
        if let Some(failing) = loads.failing()
            && loads.collapsing().is_none()
            && !is_near(failing.users, largest.users, *step)
        {
            // A larger crowd was not overloaded: first find out whether the bad seconds depend on
            // the load.
            return self.dependence_test(&passing, &failing);
        }
        if loads.collapsing().is_some() || largest.users >= *ceiling {
            let is_ceiling = loads.failing().is_none() && !passing.is_whole;
            return is_ceiling.then(|| self.hold(Purpose::Bisect, *ceiling));
        }
        let is_first_way_up = self.repeat == 1 && !loads.has_failed();
        let (purpose, growth) = if is_first_way_up {
            (Purpose::Demand, schedule.growth)
        } else {
            (Purpose::Bisect, self.gallop().min(schedule.growth))
        };
        let next = (f64::from(largest.users) * growth / f64::from(*step)).ceil() as u32 * step;
        Some(self.hold(purpose, next.max(largest.users + step).min(*ceiling)))
    }

    /// The factor of the next step: each step is twice as large as the one before.
    fn gallop(&self) -> f64 {
        let mut above = u32::MAX;
        let steps = self.holds.iter().rev().take_while(|hold| {
            let is_up =
                hold.repeat == self.repeat && hold.purpose == Purpose::Bisect && hold.users < above;
            above = hold.users;
            is_up
        });
        1.0 + GALLOP_FROM * 2_f64.powi(steps.count().min(10) as i32)
    }

    /// A load between the two, while they are further apart than the goal width.
    fn between(&self, passing: &Load, failing: &Load) -> Option<Next> {
        self.middle(passing.users, failing.users, self.settings.schedule.width_ratio)
    }

    /// The geometric mean of two loads if they are further apart than `ratio` of the higher one.
    fn middle(&self, low: u32, high: u32, ratio: f64) -> Option<Next> {
        let step = self.settings.step;
        let apart = high.saturating_sub(low);
        if apart < 2 * step || f64::from(apart) <= ratio * f64::from(high) {
            return None;
        }
        let middle = self.settings.nearest((f64::from(low) * f64::from(high)).sqrt());
        Some(self.hold(Purpose::Bisect, middle.clamp(low + step, high - step)))
    }

    /// The failing load again, if it only failed while the server may have been warming up.
    fn warmed_up(&self, failing: &Load) -> Option<Next> {
        let began = self.holds.iter().map(|hold| hold.from).min()?;
        let last = self.holds.iter().find(|hold| Some(hold.number) == failing.last_failed)?;
        let is_early = (last.until?.0 - began.0) as f64 / 1e6 < WARM_UP_S;
        is_early.then(|| self.hold(Purpose::Retest, failing.users))
    }

    fn confirm(&self, failing: &Load) -> Option<Next> {
        (!failing.was_confirmed).then(|| self.hold(Purpose::Confirm, failing.users))
    }

    /// For occasional bad seconds far below the overload: do they depend on the load?
    fn dependence(&self, loads: &Loads, passing: &Load, failing: &Load) -> Option<Next> {
        let Settings { step, schedule, .. } = self.settings;
        if let Some(overloaded) = loads.overload(*step) {
            // A single hold of a higher load may be a disturbance as well.
            let is_sure = overloaded.users == failing.users || overloaded.collapsed >= SURE_HOLDS;
            return (!is_sure).then(|| self.hold(Purpose::Retest, overloaded.users));
        }
        if let Some(overloaded) = loads.collapsing()
            && let Some(below) = loads.largest_below(overloaded.users)
            && !is_near(below.users, overloaded.users, *step)
            && let Some(next) = self.middle(below.users, overloaded.users, schedule.width_ratio)
        {
            return Some(next);
        }
        self.dependence_test(passing, failing)
    }

    /// The next turn of the dependence test, until it is decided.
    fn dependence_test(&self, passing: &Load, failing: &Load) -> Option<Next> {
        let low = self.near(passing, CONTRAST_LOW);
        let dependence_test = DependenceTest::of(self.holds.iter())
            .unwrap_or(DependenceTest::new(low, failing.users))
            .against(low);
        dependence_test.dependence().is_none().then(|| {
            let (users, seconds) = dependence_test.turn(self.settings.schedule.hold_s);
            Next::Hold(Purpose::DependenceTest, users, seconds)
        })
    }

    /// The passing load for a full hold, and again after the last failure of the failing load.
    fn verify(&self, passing: &Load, failing: Option<&Load>) -> Option<Next> {
        let is_since = failing.is_none_or(|failing| passing.last_passed > failing.last_failed);
        (!passing.is_whole || !is_since).then(|| self.hold(Purpose::Verify, passing.users))
    }

    /// The limit is found: a repeat, a soak, or the end.
    fn known(&self, passing: &Load, failing: Option<&Load>) -> Next {
        if failing.is_some() && self.repeat < self.settings.schedule.repeats {
            Next::Repeat(self.near(passing, REPEAT_FROM))
        } else if self.settings.schedule.soak_s > 0 {
            self.hold(Purpose::Soak, self.near(passing, SOAK_AT))
        } else {
            Next::Over(self.end())
        }
    }

    fn end(&self) -> End {
        let has_limit = |repeat| {
            let of_it = self.holds.iter().filter(|hold| hold.repeat == repeat);
            Loads::of(of_it, self.criterion(), 0).failing().is_some()
        };
        if (1..=self.repeat).any(has_limit) { End::Found } else { End::Ceiling }
    }
}

/// The criterion by which loads fail, from the dependence test among `holds`.
pub(crate) fn criterion(holds: &[HoldRow], goal: throng_observation::Goal) -> Criterion {
    match DependenceTest::of(holds.iter()).and_then(|dependence_test| dependence_test.dependence())
    {
        Some(Dependence::None) => Criterion::Collapse(goal),
        _ => Criterion::Goal(goal),
    }
}
