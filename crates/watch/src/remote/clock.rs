//! How far the agent's clock is from the run's: by the fastest of the round trips, whose half is the error.

use std::collections::VecDeque;

/// Round trips that are kept: at one a second, half a minute, in which clocks part by less than a round trip.
const TRIPS_MAX: usize = 30;

/// The agent's clock as seen from here.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentClock {
    trips: VecDeque<Trip>,
}

#[derive(Clone, Copy, Debug)]
struct Trip {
    /// Ours minus the agent's, microseconds.
    offset_us: i64,
    round_trip_us: i64,
}

impl AgentClock {
    /// A question left at `sent_us` and its answer, the agent's time, came at `received_us`.
    pub(crate) fn heard(&mut self, sent_us: i64, agent_us: i64, received_us: i64) {
        let round_trip_us = received_us.saturating_sub(sent_us).max(0);
        let middle = sent_us.saturating_add(round_trip_us / 2);
        if self.trips.len() >= TRIPS_MAX {
            self.trips.pop_front();
        }
        self.trips.push_back(Trip { offset_us: middle.saturating_sub(agent_us), round_trip_us });
    }

    fn best(&self) -> Option<&Trip> {
        self.trips.iter().min_by_key(|trip| trip.round_trip_us)
    }

    /// Our time of a moment of the agent's.
    pub(crate) fn ours_us(&self, agent_us: i64) -> i64 {
        self.best().map_or(agent_us, |trip| agent_us.saturating_add(trip.offset_us))
    }

    /// How far that may be off: half of the round trip, and the microsecond that was rounded away.
    pub(crate) fn error_us(&self) -> u64 {
        self.best().map_or(u64::MAX, |trip| trip.round_trip_us.unsigned_abs().div_ceil(2) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_lies_within_the_stated_error_however_the_ways_differ() {
        for (there, back) in [(100, 100), (0, 5_000), (5_000, 0), (20, 90_000)] {
            let mut clock = AgentClock::default();
            let offset = 77_000_000; // ours = agent's + offset
            clock.heard(1_000, 1_000 + there - offset, 1_000 + there + back);
            let told = clock.ours_us(0);
            assert!(told.abs_diff(offset) <= clock.error_us(), "{there} there, {back} back: {told}");
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
        clock.heard(i64::MIN, i64::MAX, i64::MAX); // a clock that lies
    }
}
