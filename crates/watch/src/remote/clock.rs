//! Estimates the offset between the agent's clock and the run's from ping round trips, as NTP does.
//! The error bound is half the round trip plus the possible drift since.

use std::collections::VecDeque;

/// Round trips that are kept: half a minute at one a second.
const TRIPS_MAX: usize = 30;

/// The agent's clock, relative to the run's.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentClock {
    trips: VecDeque<Trip>,
}

/// Assumed drift between two clocks, microseconds a second: quartz is good to 100 ppm, and NTP
/// slews each a little.
const DRIFT_US_PER_S: i64 = 200;

#[derive(Clone, Copy, Debug)]
struct Trip {
    /// The run's time minus the agent's, microseconds.
    offset_us: i64,
    round_trip_us: i64,
    received_us: i64,
}

impl Trip {
    /// Error bound at `now_us`, microseconds: half the round trip, the possible drift since, and
    /// one microsecond for rounding.
    fn error_us(&self, now_us: i64) -> u64 {
        let age_us = now_us.saturating_sub(self.received_us).max(0);
        let parted_us = age_us.saturating_mul(DRIFT_US_PER_S) / 1_000_000;
        self.round_trip_us
            .unsigned_abs()
            .div_ceil(2)
            .saturating_add(parted_us.unsigned_abs())
            .saturating_add(1)
    }
}

impl AgentClock {
    /// Adds a round trip: the ping was sent at `sent_us`, and the answer with the agent's time
    /// arrived at `received_us`.
    pub(crate) fn heard(&mut self, sent_us: i64, agent_us: i64, received_us: i64) {
        let round_trip_us = received_us.saturating_sub(sent_us).max(0);
        let middle = sent_us.saturating_add(round_trip_us / 2);
        if self.trips.len() >= TRIPS_MAX {
            self.trips.pop_front();
        }
        let offset_us = middle.saturating_sub(agent_us);
        self.trips.push_back(Trip { offset_us, round_trip_us, received_us });
    }

    /// The round trip with the least error bound, and that bound.
    fn best(&self) -> Option<(&Trip, u64)> {
        let now_us = self.trips.back()?.received_us;
        self.trips
            .iter()
            .map(|trip| (trip, trip.error_us(now_us)))
            .min_by_key(|(_, error_us)| *error_us)
    }

    /// Converts the agent's time to the run's, microseconds.
    pub(crate) fn ours_us(&self, agent_us: i64) -> i64 {
        self.best().map_or(agent_us, |(trip, _)| agent_us.saturating_add(trip.offset_us))
    }

    /// Error bound of [`Self::ours_us`], microseconds.
    pub(crate) fn error_us(&self) -> u64 {
        self.best().map_or(u64::MAX, |(_, error_us)| error_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_lies_within_the_error_bound_of_asymmetric_paths() {
        for (there, back) in [(100, 100), (0, 5_000), (5_000, 0), (20, 90_000)] {
            let mut clock = AgentClock::default();
            let offset = 77_000_000; // ours = agent's + offset
            clock.heard(1_000, 1_000 + there - offset, 1_000 + there + back);
            let estimate = clock.ours_us(0);
            assert!(
                estimate.abs_diff(offset) <= clock.error_us(),
                "{there} there, {back} back: {estimate}"
            );
        }
    }

    #[test]
    fn the_fastest_trip_counts_until_it_is_old() {
        let mut clock = AgentClock::default();
        assert_eq!(clock.error_us(), u64::MAX);
        clock.heard(0, 0, 20);
        clock.heard(0, 0, 4_000);
        assert_eq!(clock.error_us(), 11);
        for _ in 0..TRIPS_MAX {
            clock.heard(0, 0, 1_000);
        }
        assert_eq!(clock.error_us(), 501);
        // A fast trip of 20 s ago may be off by 4 ms more than it was.
        clock.heard(30_000_000, 0, 30_000_010);
        assert_eq!(clock.error_us(), 6);
        clock.heard(50_000_000, 0, 50_020_000);
        assert_eq!(clock.error_us(), 6 + 4_003);
        clock.heard(i64::MIN, i64::MAX, i64::MAX); // a clock that lies
    }
}
