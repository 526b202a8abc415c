//! What is known of each load in one repeat of the search.

use std::collections::BTreeMap;

use throng_observation::{Goal, HoldRow, Passed, Purpose};

/// A load and what it came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) users: u32,
    has_passed: bool,
    /// Held for as long as a load of the bracket is.
    pub(crate) is_whole: bool,
    /// Held again after it had failed.
    pub(crate) is_confirmed: bool,
    /// More than half of its seconds were bad.
    pub(crate) is_mostly_bad: bool,
}

/// The loads of one repeat; what a load came to last counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    loads: BTreeMap<u32, Load>,
    has_ever_failed: bool,
}

impl Bounds {
    /// Takes in a hold that has ended.
    pub(crate) fn note(&mut self, hold: &HoldRow, goal: Goal, whole_s: u32) {
        let passed = hold.passed(goal);
        if passed == Passed::Undecided || hold.purpose == Purpose::Soak {
            return;
        }
        let has_passed = passed == Passed::Yes;
        self.has_ever_failed |= !has_passed;
        let bad = hold.bad_seconds[goal as usize];
        self.loads.insert(
            hold.users,
            Load {
                users: hold.users,
                has_passed,
                is_whole: f64::from(hold.seconds) >= f64::from(whole_s) * (1.0 - goal.exceed_ratio()),
                is_confirmed: hold.purpose == Purpose::Confirm,
                is_mostly_bad: bad * 2 > hold.seconds || hold.seconds == 0,
            },
        );
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    pub(crate) fn has_ever_failed(&self) -> bool {
        self.has_ever_failed
    }

    /// The smallest load that failed.
    pub(crate) fn failing(&self) -> Option<Load> {
        self.loads.values().find(|load| !load.has_passed).copied()
    }

    /// The largest load that passed below every one that failed (RFC 9971's Relevant Lower Bound).
    pub(crate) fn passing(&self) -> Option<Load> {
        let below = self.failing().map_or(u32::MAX, |load| load.users);
        self.loads.range(..below).next_back().map(|(_, load)| *load)
    }

    /// The passing and the failing load, where both are known.
    pub(crate) fn bracket(&self) -> Option<(u32, u32)> {
        Some((self.passing()?.users, self.failing()?.users))
    }
}
