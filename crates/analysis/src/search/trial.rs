//! When a load has passed, by RFC 9971 (MLRsearch): trials of one second, summed up until more of them cannot change the
//! answer.

use throng_observation::{Goal, Passed};

/// The seconds of one load, judged for one goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trials {
    goal: Goal,
    /// Seconds after which the load is decided (RFC 9971's Goal Duration Sum).
    pub(crate) whole_s: u32,
    pub(crate) bad: u32,
    pub(crate) good: u32,
}

impl Trials {
    pub(crate) fn new(goal: Goal, whole_s: u32) -> Self {
        Self { goal, whole_s: whole_s.max(1), bad: 0, good: 0 }
    }

    /// Counts a second in which `bad` of `users` fared badly.
    pub(crate) fn add(&mut self, users: u32, bad: u32) {
        let is_bad = f64::from(bad) > self.goal.bad_ratio_max() * f64::from(users);
        if is_bad {
            self.bad += 1;
        } else {
            self.good += 1;
        }
    }

    /// Seconds that may be bad.
    fn allowed(&self) -> f64 {
        f64::from(self.whole_s.max(self.bad + self.good)) * self.goal.exceed_ratio()
    }

    /// What the load came to so far: it has failed once too many seconds were bad, and passed once the seconds that are
    /// still missing could all be bad.
    pub(crate) fn passed(&self) -> Passed {
        let whole = self.whole_s.max(self.bad + self.good);
        if f64::from(self.bad) > self.allowed() {
            Passed::No
        } else if f64::from(whole - self.good) <= self.allowed() {
            Passed::Yes
        } else {
            Passed::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(goal: Goal, whole_s: u32, seconds: &[(u32, u32)]) -> Passed {
        let mut trials = Trials::new(goal, whole_s);
        seconds.iter().for_each(|(users, bad)| trials.add(*users, *bad));
        trials.passed()
    }

    #[test]
    fn a_load_fails_after_seven_bad_seconds_of_two_minutes_and_passes_after_a_hundred_and_fourteen_good_ones()
    {
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 2); 6]), Passed::Undecided);
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 2); 7]), Passed::No);
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 1); 113]), Passed::Undecided);
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 1); 114]), Passed::Yes);
    }

    #[test]
    fn goals_differ_in_how_many_users_may_suffer_and_for_how_long() {
        let five_percent = [(100, 5); 20];
        assert_eq!(after(Goal::Clean, 20, &five_percent), Passed::No);
        assert_eq!(after(Goal::Acceptable, 20, &five_percent), Passed::No);
        assert_eq!(after(Goal::Broken, 20, &five_percent), Passed::Yes);
        let one_in_a_thousand = [(1000, 1); 20];
        assert_eq!(after(Goal::Clean, 20, &one_in_a_thousand), Passed::Yes);
    }

    #[test]
    fn a_second_without_users_is_no_bad_one() {
        assert_eq!(after(Goal::Clean, 1, &[(0, 0)]), Passed::Yes);
    }
}
