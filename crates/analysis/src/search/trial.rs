//! Whether a load passes, by RFC 9971 (MLRsearch): trials of one second are added up until more of
//! them cannot change the result.

use throng_observation::{Goal, HoldOutcome};

/// The seconds of one load, judged for one goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trials {
    goal: Goal,
    /// Seconds after which the load is decided (RFC 9971's Goal Duration Sum).
    pub(crate) whole_s: u32,
    pub(crate) bad: u32,
    pub(crate) good: u32,
    /// Users × seconds since one user alone was badly served for a second.
    since_lone: Option<u64>,
}

impl Trials {
    pub(crate) fn new(goal: Goal, whole_s: u32) -> Self {
        Self { goal, whole_s: whole_s.max(1), bad: 0, good: 0, since_lone: None }
    }

    /// Counts a second in which `bad` of `users` had bad service; true if it was a bad second.
    pub(crate) fn add(&mut self, users: u32, bad: f64) -> bool {
        let is_bad = self.is_bad(users, bad);
        if is_bad {
            self.bad += 1;
        } else {
            self.good += 1;
        }
        is_bad
    }

    /// The goal allows one bad user in a hundred, which a small crowd cannot express: there a
    /// single user's bad second is excused, unless it and the one before exceed the goal's share of
    /// all user-seconds since then.
    fn is_bad(&mut self, users: u32, bad: f64) -> bool {
        let allowed = self.goal.bad_ratio_max();
        let since = self.since_lone.map(|user_seconds| user_seconds + u64::from(users));
        if bad <= allowed * f64::from(users) {
            self.since_lone = since;
            return false;
        }
        self.since_lone = Some(0);
        let is_repeated = since.is_some_and(|user_seconds| 2.0 / user_seconds as f64 > allowed);
        bad > 1.0 || is_repeated
    }

    /// The number of seconds that may be bad.
    fn allowed(&self) -> f64 {
        f64::from(self.whole_s.max(self.bad + self.good)) * self.goal.exceed_ratio()
    }

    /// The result so far: the load has failed once too many seconds were bad, and passed once all
    /// remaining seconds may be bad.
    pub(crate) fn passed(&self) -> HoldOutcome {
        let whole = self.whole_s.max(self.bad + self.good);
        if f64::from(self.bad) > self.allowed() {
            HoldOutcome::No
        } else if f64::from(whole - self.good) <= self.allowed() {
            HoldOutcome::Yes
        } else {
            HoldOutcome::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(goal: Goal, whole_s: u32, seconds: &[(u32, u32)]) -> HoldOutcome {
        let mut trials = Trials::new(goal, whole_s);
        for (users, bad) in seconds {
            trials.add(*users, f64::from(*bad));
        }
        trials.passed()
    }

    #[test]
    fn a_load_fails_after_seven_bad_seconds_of_two_minutes_and_passes_after_a_hundred_and_fourteen_good_ones()
     {
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 2); 6]), HoldOutcome::Undecided);
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 2); 7]), HoldOutcome::No);
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 1); 113]), HoldOutcome::Undecided);
        assert_eq!(after(Goal::Acceptable, 120, &[(100, 1); 114]), HoldOutcome::Yes);
    }

    #[test]
    fn goals_differ_in_how_many_users_may_suffer_and_for_how_long() {
        let five_percent = [(100, 5); 20];
        assert_eq!(after(Goal::Clean, 20, &five_percent), HoldOutcome::No);
        assert_eq!(after(Goal::Acceptable, 20, &five_percent), HoldOutcome::No);
        assert_eq!(after(Goal::Broken, 20, &five_percent), HoldOutcome::Yes);
        let one_in_a_thousand = [(1000, 1); 20];
        assert_eq!(after(Goal::Clean, 20, &one_in_a_thousand), HoldOutcome::Yes);
    }

    #[test]
    fn a_lone_users_bad_second_is_excused_in_a_small_crowd_and_a_steady_one_is_not() {
        let bad_of = |users: u32, seconds: &[u32]| {
            let mut trials = Trials::new(Goal::Acceptable, 60);
            seconds.iter().filter(|bad| trials.add(users, f64::from(**bad))).count()
        };
        assert_eq!(bad_of(20, &[0, 1, 0, 0, 0]), 0, "a hiccup of one of twenty");
        assert_eq!(bad_of(20, &[1; 10]), 9, "one user with bad service all the time");
        let every = |period: usize| (0..60).map(|s| u32::from(s % period == 0)).collect::<Vec<_>>();
        assert_eq!(bad_of(20, &every(10)), 0, "one user-second of two hundred");
        assert_eq!(bad_of(20, &every(5)), 11, "one of a hundred, and the one before");
        assert_eq!(bad_of(20, &[2]), 1, "two at once are no lone user");
    }

    #[test]
    fn a_second_without_users_is_no_bad_one() {
        assert_eq!(after(Goal::Clean, 1, &[(0, 0)]), HoldOutcome::Yes);
    }
}
