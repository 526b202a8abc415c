//! When a search profiles the server: under the failing load, and near the limit while service is
//! still good. The difference between the two shows the cause; a profile of the idle server shows
//! little.

use std::time::Duration;

use throng_analysis::search::{Progress, Schedule};
use throng_observation::Purpose;

/// How long the server is profiled under the failing load, and at most near the limit.
pub(super) const PROFILE: Duration = Duration::from_secs(8);
/// The shortest profile: one second has too few samples.
const PROFILE_S_MIN: u32 = 4;

/// The triggers of profiles, updated with each closed second.
#[derive(Clone, Debug)]
pub(super) struct ProfileTriggers {
    profile_s: u32,
    /// The current hold: repeat, purpose, load.
    hold: Option<(u32, Purpose, u32)>,
    judged_s: u32,
    bad_s: u32,
    /// A load near the limit is held, and service has been good for long enough that it will
    /// probably pass.
    pub(super) is_near_limit: bool,
    /// Users are badly served while the failing load is confirmed: a profile shows most then.
    pub(super) has_failed: bool,
}

/// How long the server is profiled near the limit: at most half of a hold, so that the profile ends
/// before it does.
pub(super) fn near_limit(schedule: &Schedule) -> Duration {
    Duration::from_secs(u64::from((schedule.hold_s / 2).max(PROFILE_S_MIN))).min(PROFILE)
}

impl ProfileTriggers {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let profile_s = u32::try_from(near_limit(schedule).as_secs()).unwrap_or(PROFILE_S_MIN);
        let (hold, judged_s, bad_s) = (None, 0, 0);
        Self { profile_s, hold, judged_s, bad_s, is_near_limit: false, has_failed: false }
    }

    /// Called when a second has closed. `before` is the progress of the search without it;
    /// `is_complete`: the crowd had its size throughout.
    pub(super) fn on_second(&mut self, before: &Progress, is_complete: bool, is_bad: bool) {
        // The failing load is held longest when it is confirmed.
        self.has_failed |= before.purpose == Some(Purpose::Confirm) && is_complete && is_bad;
        let hold = before.purpose.map(|purpose| (before.repeat.0, purpose, before.users));
        let (judged_s, whole_s) = before.judged_s;
        if self.hold != hold || judged_s < self.judged_s {
            (self.hold, self.bad_s) = (hold, 0);
        }
        self.judged_s = judged_s;
        self.is_near_limit = false;
        if before.is_settling || !is_complete {
            return;
        }
        self.bad_s += u32::from(is_bad);
        let now_s = judged_s + 1;
        // A load passes with up to a twentieth of bad seconds.
        let does_well = self.bad_s * 20 <= now_s;
        let fits = now_s + self.profile_s <= whole_s && now_s * 2 + self.profile_s >= whole_s;
        self.is_near_limit = is_near(before) && does_well && fits;
    }
}

/// Whether the load is between the largest that passed and the smallest that failed, or is that of
/// the soak.
fn is_near(progress: &Progress) -> bool {
    let is_between = || {
        progress.passing.is_some_and(|passing| progress.users >= passing)
            && progress.failing.is_some_and(|failing| progress.users < failing)
    };
    progress.purpose == Some(Purpose::Soak) || is_between()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(
        purpose: Purpose,
        users: u32,
        judged_s: (u32, u32),
        bounds: (u32, u32),
    ) -> Progress {
        let known = |load: u32| (load > 0).then_some(load);
        Progress {
            purpose: Some(purpose),
            users,
            judged_s,
            is_settling: false,
            passing: known(bounds.0),
            failing: known(bounds.1),
            repeat: (1, 1),
            found: Vec::new(),
            values: Vec::new(),
            end: None,
        }
    }

    /// The judged seconds of a hold of `whole_s` at which a profile near the limit may start.
    fn due(
        purpose: Purpose,
        users: u32,
        bounds: (u32, u32),
        whole_s: u32,
        bad: &[u32],
    ) -> Vec<u32> {
        let mut triggers =
            ProfileTriggers::new(&Schedule { hold_s: whole_s, ..Schedule::default() });
        let seconds = (0..whole_s).filter(|second| {
            triggers.on_second(
                &progress(purpose, users, (*second, whole_s), bounds),
                true,
                bad.contains(second),
            );
            triggers.is_near_limit
        });
        seconds.collect()
    }

    #[test]
    fn a_hold_between_what_passed_and_what_failed_is_near_the_limit_in_its_middle() {
        // 120 s, of which the profile takes 8: it ends before the hold does.
        let seconds = due(Purpose::Bisect, 41, (40, 44), 120, &[]);
        assert_eq!((seconds.first(), seconds.last()), (Some(&55), Some(&111)));
        // The shortest hold, 8 s, has room for 4.
        assert_eq!(due(Purpose::Bisect, 41, (40, 44), 8, &[]), [1, 2, 3]);
        // The confirmation of the passing load, and the soak below the limit.
        assert!(!due(Purpose::Bisect, 40, (40, 44), 60, &[]).is_empty());
        assert!(!due(Purpose::Soak, 36, (40, 44), 600, &[]).is_empty());
    }

    #[test]
    fn what_fails_or_is_far_from_the_limit_is_not_near_it() {
        for (purpose, users, bounds) in [
            (Purpose::Baseline, 5, (0, 0)),
            (Purpose::Demand, 20, (10, 0)),
            (Purpose::Bisect, 1, (0, 44)),
            (Purpose::Confirm, 44, (40, 44)),
        ] {
            assert_eq!(due(purpose, users, bounds, 60, &[]), [0_u32; 0], "{purpose:?}");
        }
        // Three bad seconds in sixty are allowed, but not in the first thirty.
        assert!(!due(Purpose::Bisect, 41, (40, 44), 60, &[3]).is_empty());
        assert!(due(Purpose::Bisect, 41, (40, 44), 60, &[3, 4, 5, 6]).is_empty());
        // No profile while the crowd gathers either.
        let mut triggers = ProfileTriggers::new(&Schedule::default());
        triggers.on_second(&progress(Purpose::Bisect, 41, (70, 120), (40, 44)), false, false);
        assert!(!triggers.is_near_limit && !triggers.has_failed);
    }

    #[test]
    fn the_failing_load_counts_when_it_is_held_again() {
        let mut triggers = ProfileTriggers::new(&Schedule::default());
        triggers.on_second(&progress(Purpose::Bisect, 44, (1, 120), (40, 0)), true, true);
        assert!(!triggers.has_failed);
        triggers.on_second(&progress(Purpose::Confirm, 44, (0, 240), (40, 44)), true, true);
        triggers.on_second(&progress(Purpose::Soak, 40, (0, 600), (40, 44)), true, false);
        assert!(triggers.has_failed, "and stays so");
    }
}
