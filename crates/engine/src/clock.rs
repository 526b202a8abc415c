//! The run's clock: monotonic moments, moments of the run, and the kernel's wall-clock arrival times between them.

use std::time::{Duration, Instant, SystemTime};

use throng_observation::RunTime;

/// Where RunTime 0 lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    pub(crate) start: Instant,
}

impl RunClock {
    /// The moment of the run at which `at` lies.
    pub(crate) fn run_time(self, at: Instant) -> RunTime {
        match at.checked_duration_since(self.start) {
            Some(after) => RunTime::after_start(after),
            None => RunTime(-RunTime::after_start(self.start.saturating_duration_since(at)).0),
        }
    }

    /// The monotonic moment of `at`.
    pub(crate) fn instant(self, at: RunTime) -> Instant {
        let distance = Duration::from_micros(at.0.unsigned_abs());
        let moved =
            if at.0 < 0 { self.start.checked_sub(distance) } else { self.start.checked_add(distance) };
        moved.unwrap_or(self.start)
    }
}

/// One reading of both clocks, by which wall-clock arrival times become monotonic ones. Taken anew each tick, so that
/// a step or slew of the wall clock concerns one tick at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockPair {
    pub(crate) now: Instant,
    unix: Duration,
}

impl ClockPair {
    pub(crate) fn read() -> Self {
        Self { now: Instant::now(), unix: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() }
    }

    /// When a datagram arrived, never later than now; now, when the kernel did not say.
    pub(crate) fn arrival(self, unix: Option<Duration>) -> Instant {
        let age = unix.map(|unix| self.unix.saturating_sub(unix)).unwrap_or_default();
        self.now.checked_sub(age).unwrap_or(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_run_and_of_the_machine_are_the_same_line() {
        let clock = RunClock { start: Instant::now() };
        for us in [-3_000_000, -1, 0, 1, 86_400_000_000] {
            assert_eq!(clock.run_time(clock.instant(RunTime(us))), RunTime(us));
        }
    }

    #[test]
    fn an_arrival_is_as_long_ago_as_the_wall_clock_says_and_never_in_the_future() {
        let pair = ClockPair { now: Instant::now(), unix: Duration::from_secs(1000) };
        let ago = |unix: Option<Duration>| pair.now.duration_since(pair.arrival(unix));
        assert_eq!(ago(Some(Duration::from_millis(999_997))), Duration::from_millis(3));
        assert_eq!(ago(Some(Duration::from_secs(1001))), Duration::ZERO);
        assert_eq!(ago(None), Duration::ZERO);
    }
}
