//! Maps the monotonic clock to wall time, so that arrivals can be compared with capture times of
//! another machine.

use std::time::Instant;

/// One moment read on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    /// On the monotonic clock.
    pub at: Instant,
    /// On the wall clock, nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

impl WallClock {
    /// Nanoseconds since the Unix epoch at `moment`, before or after the reading.
    #[must_use]
    pub fn unix_ns(&self, moment: Instant) -> u64 {
        let ns = |d: std::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        match moment.checked_duration_since(self.at) {
            Some(after) => self.unix_ns.saturating_add(ns(after)),
            None => self.unix_ns.saturating_sub(ns(self.at.saturating_duration_since(moment))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_before_and_after_the_reading_map_to_wall_time() {
        let at = Instant::now() + Duration::from_secs(10);
        let clock = WallClock { at, unix_ns: 5_000_000_000 };
        assert_eq!(clock.unix_ns(at), 5_000_000_000);
        assert_eq!(clock.unix_ns(at + Duration::from_millis(3)), 5_003_000_000);
        assert_eq!(clock.unix_ns(at - Duration::from_secs(2)), 3_000_000_000);
        assert_eq!(clock.unix_ns(at - Duration::from_secs(9)), 0, "never before the epoch");
    }
}
