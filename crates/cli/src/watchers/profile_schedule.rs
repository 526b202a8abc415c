//! When a run takes its profiles.

use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_scenario::{Moment, Plan, ProfileRequest};

use super::Watchers;

impl Watchers {
    /// Sets whether the crowd counts as full in a search, whose joins are not those of the plan: a
    /// load near the limit is held, and service is good.
    pub(crate) fn is_full(&mut self, is_full: bool) {
        self.full_at = if is_full { Duration::ZERO } else { Duration::MAX };
    }
}

/// Whether the plan has a profile that waits for a missed objective.
pub(crate) fn wait_for_failure(plan: &Plan) -> bool {
    plan.watch.iter().flat_map(|watch| &watch.profile).any(|wish| wish.moment == Moment::Fail)
}

/// Time since the intended time of the first join, in seconds; negative before.
pub(super) fn since(zero: Instant) -> f64 {
    let now = Instant::now();
    match now.checked_duration_since(zero) {
        Some(after) => after.as_secs_f64(),
        None => -zero.duration_since(now).as_secs_f64(),
    }
}

/// Seconds since time zero as run time.
pub(super) fn run_time(at_s: f64) -> RunTime {
    RunTime((at_s * 1e6) as i64)
}

/// Whether a profile starts `at_s` into the run. `full_at`: when the last join is planned.
pub(super) fn is_due(
    wish: &ProfileRequest,
    at_s: f64,
    full_at: Duration,
    has_failed: bool,
) -> bool {
    match &wish.moment {
        Moment::Baseline => true,
        Moment::Full => at_s >= full_at.as_secs_f64(),
        Moment::Fail => has_failed,
        Moment::At(at) => at_s >= at.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_due_at_their_moments() {
        let full_at = Duration::from_secs(10);
        for (moment, at_s, has_failed, expect) in [
            (Moment::Baseline, -4.0, false, true),
            (Moment::Full, 9.9, false, false),
            (Moment::Full, 10.0, false, true),
            (Moment::Fail, 30.0, false, false),
            (Moment::Fail, 3.0, true, true),
            (Moment::At(Duration::from_secs(5)), 4.9, true, false),
            (Moment::At(Duration::from_secs(5)), 5.0, false, true),
        ] {
            let wish = ProfileRequest { duration: moment.usual_duration(), moment };
            assert_eq!(is_due(&wish, at_s, full_at, has_failed), expect, "{wish:?} at {at_s}");
        }
    }
}
