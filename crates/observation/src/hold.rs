//! The steps of a search for the limit: a load that was held, for how long, and its outcome.

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;
use crate::{RunTime, Unloaded};

keyed! {
    /// The purpose of a hold.
    #[derive(Default)]
    Purpose {
        /// A small crowd: the floor of delay and load, and whether this host is quiet enough to
        /// decide anything.
        #[default]
        Baseline = "baseline",
        /// A step of the ramp, from which the demand of a user is estimated.
        Demand = "demand",
        /// Between a load that passed and one that failed.
        Bisect = "bisect",
        /// A load again, because its holds disagree, or because a single bad stretch decided.
        Retest = "retest",
        /// The failing load again, for longer, so that a single bad stretch does not decide.
        Confirm = "confirm",
        /// The passing load again after the failing one was confirmed, so that it did not pass by
        /// chance, or only early.
        Verify = "verify",
        /// A low and a high load in turns: do bad seconds depend on the load at all?
        DependenceTest = "dependence_test",
        /// Below the limit for a long time: shows leaks and drift.
        Soak = "soak",
    }
}

keyed! {
    /// The quality that the crowd is to be served with.
    #[derive(Default)]
    Goal {
        /// Unnoticed by users: at most 0.1 % of users have a bad second.
        Clean = "clean",
        /// At most 1 % of users have a bad second: the headline figure.
        #[default]
        Acceptable = "acceptable",
        /// Beyond it more than 20 % of users have bad seconds: the service has broken down.
        Broken = "broken",
    }
}

impl Goal {
    /// A second is bad for this goal when the share of its users with a bad second is larger than
    /// this.
    #[must_use]
    pub fn bad_ratio_max(self) -> f64 {
        match self {
            Self::Clean => 0.001,
            Self::Acceptable => 0.01,
            Self::Broken => 0.20,
        }
    }

    /// The exceed ratio (RFC 9971): the share of seconds that may be bad.
    #[must_use]
    pub fn exceed_ratio(self) -> f64 {
        match self {
            Self::Clean | Self::Acceptable => 0.05,
            Self::Broken => 0.5,
        }
    }
}

keyed! {
    /// The outcome of a load for one goal.
    #[derive(Default)]
    HoldOutcome {
        /// Not held long enough to decide.
        #[default]
        Undecided = "undecided",
        /// It met the goal.
        Yes = "yes",
        /// It missed the goal.
        No = "no",
    }
}

/// One hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HoldRow {
    /// Holds are numbered from 0 in order of time; a later row of the same number replaces it.
    pub number: u32,
    /// The repetition of the search, from 1.
    pub repeat: u32,
    /// Its purpose.
    pub purpose: Purpose,
    /// The load: the participants that the search requested; or, where it varied a value of the
    /// scenario, its place in the list, from 1.
    pub users: u32,
    /// The smallest difference of two loads: 1, or the participants of a room where rooms are
    /// varied.
    pub step: u32,
    /// Where a value of the scenario is varied: the value, such as `crowd.publish.video = 360p`.
    pub value: Option<String>,
    /// When the load was requested.
    pub from: RunTime,
    /// When judged seconds begin: the joins are over and queues are steady.
    pub judged_from: Option<RunTime>,
    /// When it ended.
    pub until: Option<RunTime>,
    /// Seconds that were judged.
    pub seconds: u32,
    /// Seconds that were bad, by [`Goal`] in the order of [`Goal::ALL`].
    pub bad_seconds: [u32; 3],
    /// Stretches of bad seconds for [`Goal::Acceptable`], those less than 3 good seconds apart
    /// counted as one: how often service was bad; [`Self::bad_seconds`] is for how long.
    pub bad_stretches: u32,
    /// Whether its last second was bad: a disturbance ends while the load lasts, an overload does
    /// not.
    pub bad_to_the_end: bool,
    /// The end of the first second that was bad for [`Goal::Acceptable`].
    pub broke_at: Option<RunTime>,
    /// Its outcome by [`Goal`], in the order of [`Goal::ALL`].
    pub passed: [HoldOutcome; 3],
    /// Participants × seconds that were judged.
    pub user_seconds: u64,
    /// Those of them that were bad.
    pub bad_user_seconds: u64,
    /// Seconds in which the generator exceeded its own limits.
    pub limited_seconds: u32,
    /// After a failed load: the time until the server served a smaller crowd well again,
    /// milliseconds.
    pub recovery_ms: Option<u64>,
    /// Why it ended, in a sentence; `None` when its time was over.
    pub why: Option<String>,
    /// What users see without load, beyond which it was judged; `None`: by the bounds alone.
    #[serde(default)]
    pub unloaded: Option<Unloaded>,
}

impl HoldRow {
    /// Those that were judged as the last one that ended: the others say nothing beside it.
    pub fn judged_alike(holds: &[Self]) -> impl Iterator<Item = &Self> {
        let ended = holds.iter().filter(|hold| hold.until.is_some());
        let unloaded = ended.max_by_key(|hold| hold.number).and_then(|last| last.unloaded);
        holds.iter().filter(move |hold| hold.unloaded == unloaded)
    }

    /// Its outcome for `goal`.
    #[must_use]
    pub fn passed(&self, goal: Goal) -> HoldOutcome {
        self.passed[goal as usize]
    }

    /// When it ended if no second of it was judged, in words: `after 12 s, while the crowd
    /// settled`.
    #[must_use]
    pub fn ended_settling(&self) -> Option<String> {
        let until = self.until.filter(|_| self.seconds == 0)?;
        let after_s = until.millis_since(self.from) / 1e3;
        Some(format!("after {after_s:.0} s, while the crowd settled"))
    }

    /// Whether more than half of its seconds were bad for `goal`.
    #[must_use]
    pub fn is_mostly_bad(&self, goal: Goal) -> bool {
        self.bad_seconds[goal as usize] * 2 > self.seconds || self.seconds == 0
    }

    /// Whether it was mostly bad, and to the end: an overload lasts as long as the load.
    #[must_use]
    pub fn is_overloaded(&self, goal: Goal) -> bool {
        self.is_mostly_bad(goal) && self.bad_to_the_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_without_a_judged_second_ended_while_the_crowd_settled() {
        let hold = |seconds, until: Option<i64>| HoldRow {
            seconds,
            from: RunTime(42_000_000),
            until: until.map(RunTime),
            ..HoldRow::default()
        };
        let ended = |seconds, until| hold(seconds, until).ended_settling();
        let words = "after 12 s, while the crowd settled";
        assert_eq!(ended(0, Some(54_100_000)).as_deref(), Some(words));
        assert_eq!(ended(0, None), None, "it goes on");
        assert_eq!(ended(1, Some(54_100_000)), None);
    }

    #[test]
    fn holds_of_other_bounds_than_the_last_that_ended_are_left_out() {
        let hold = |number, delay_us: Option<u32>, has_ended: bool| HoldRow {
            number,
            unloaded: delay_us.map(|delay_us| Unloaded { delay_us, ..Unloaded::default() }),
            until: has_ended.then_some(RunTime(1)),
            ..HoldRow::default()
        };
        let numbers = |holds: &[HoldRow]| -> Vec<u32> {
            HoldRow::judged_alike(holds).map(|hold| hold.number).collect()
        };
        let begun = [hold(0, None, true), hold(1, None, true), hold(2, Some(9), false)];
        assert_eq!(numbers(&begun), [0, 1]);
        let ended = [
            hold(0, None, true),
            hold(1, None, true),
            hold(2, Some(9), true),
            hold(3, Some(9), false),
        ];
        assert_eq!(numbers(&ended), [2, 3]);
    }
}
