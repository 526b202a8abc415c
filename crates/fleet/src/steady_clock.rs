//! A clock that never steps: the wall clock as it was once, and the monotonic clock since.

use std::time::{Duration, Instant, SystemTime};

/// Steps of the wall clock that are noticed; slower corrections are drift.
pub(crate) const STEP_US: i64 = 100_000;

/// Wall-clock time that only moves forward, at the rate of the monotonic clock. Runs count by it,
/// so that a corrected wall clock moves no row.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    at: Instant,
    unix_us: i64,
}

impl SteadyClock {
    /// As the wall clock is now.
    #[must_use]
    pub fn now_on() -> Self {
        Self { at: Instant::now(), unix_us: wall_us() }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub fn us(&self) -> i64 {
        self.us_at(Instant::now())
    }

    /// The same at `instant`.
    #[must_use]
    pub fn us_at(&self, instant: Instant) -> i64 {
        let micros = |length: Duration| i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        match instant.checked_duration_since(self.at) {
            Some(after) => self.unix_us.saturating_add(micros(after)),
            None => self.unix_us.saturating_sub(micros(self.at.duration_since(instant))),
        }
    }

    /// When this clock shows `unix_us`.
    #[must_use]
    pub fn instant(&self, unix_us: i64) -> Instant {
        let after_us = unix_us.saturating_sub(self.unix_us);
        let distance = Duration::from_micros(after_us.unsigned_abs());
        if after_us >= 0 {
            self.at + distance
        } else {
            self.at.checked_sub(distance).unwrap_or(self.at)
        }
    }

    /// The wall clock is no further from this one than so many microseconds.
    #[must_use]
    pub fn wall_apart_us(&self) -> u64 {
        let look = || {
            let (before, wall, after) = (self.us(), wall_us(), self.us());
            wall.abs_diff(before).max(wall.abs_diff(after))
        };
        // A thread that is interrupted between the clocks sees them further apart than they are.
        look().min(look()).min(look())
    }

    /// How far the wall clock is ahead of this one, microseconds, if it has stepped.
    #[must_use]
    pub fn wall_step_us(&self) -> Option<i64> {
        let ahead_us = wall_us().saturating_sub(self.us());
        (ahead_us.abs() >= STEP_US).then_some(ahead_us)
    }
}

fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_the_same_both_ways() {
        let clock = SteadyClock::now_on();
        for us in [-3_000_000, 0, 7_000_000] {
            let unix_us = clock.unix_us + us;
            assert_eq!(clock.us_at(clock.instant(unix_us)), unix_us);
        }
        assert_eq!(clock.wall_step_us(), None);
        let off = SteadyClock { unix_us: clock.unix_us - 7_000_000, ..clock };
        // Clocks are read one after the other, and the wall clock may be adjusted meanwhile.
        assert!((6_900_000..8_000_000).contains(&off.wall_apart_us()));
    }
}
