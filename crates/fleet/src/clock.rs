//! The offset of the coordinator's clock to a worker's, with a bound that holds.
//!
//! An exchange has the four times of NTP (RFC 5905 section 8, figure 15): sent and received by the
//! worker's clock, received and sent by the coordinator's. Messages do not arrive before they are
//! sent, so that the offset lies between `t3 − t4` and `t2 − t1`, whatever the two ways took: the
//! middle is right to within half the round trip, also when all of it was spent on one way. Of the
//! last exchanges the one with the smallest bound counts, as in NTP's clock filter (section 10),
//! where the bound of an older one has grown by what the clocks may have drifted since.
//!
//! What the bound takes for granted: neither clock runs off by more than [`DRIFT_PPM_MAX`] against
//! the other, and a clock that was set in mid-run was set by more than the bound. A larger step
//! contradicts the exchanges before it and is told.

use std::collections::VecDeque;

/// Most drift of one clock against the other, parts per million. NTP corrects no more (RFC 5905
/// section 11.3), and crystals of computers are within 100.
pub const DRIFT_PPM_MAX: f64 = 500.0;

/// How much the drift itself may change, parts per million: PHI of RFC 5905 (section 7.1), what
/// temperature does to a crystal.
const WANDER_PPM: f64 = 15.0;

/// Exchanges that are kept: a minute of them at one per second.
const WINDOW: usize = 64;

/// Largest time that is taken for one, microseconds: some 285 years after 1970.
const TIME_US_MAX: i64 = 1 << 53;

/// The four times of an exchange, microseconds, each by the clock of its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the worker sent its message.
    pub t1: i64,
    /// When the coordinator received it.
    pub t2: i64,
    /// When the coordinator sent the answer.
    pub t3: i64,
    /// When the worker received it.
    pub t4: i64,
}

/// What an exchange was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// It agrees with those before it.
    Sample,
    /// It contradicts them: one of the clocks was set. The filter begins again with it.
    Step {
        /// By how much the offset changed, microseconds, to within the bounds before and after.
        by_us: i64,
    },
    /// Its times cannot be: the answer took less than no time, or no clock shows such a time. It
    /// was ignored.
    Impossible,
}

/// The offset at a moment: coordinator's clock minus worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Microseconds to add to the worker's time to get the coordinator's.
    pub offset_us: i64,
    /// The true offset is no further away than this, microseconds.
    pub bound_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The worker's time in the middle of the exchange.
    at_us: f64,
    /// The offset lies between these at that time.
    low_us: f64,
    high_us: f64,
}

/// The last exchanges with one worker.
#[derive(Clone, Debug, Default)]
pub struct ClockFilter {
    samples: VecDeque<Sample>,
    /// Drift and its bound, parts per million.
    drift_ppm: (f64, f64),
}

impl ClockFilter {
    /// A filter without exchanges.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an exchange; they come in the order in which they were made.
    pub fn add(&mut self, exchange: Exchange) -> ExchangeOutcome {
        let Some(sample) = Sample::of(exchange) else { return ExchangeOutcome::Impossible };
        let before = self.samples.back().map(Sample::middle_us);
        let agrees = self.samples.iter().all(|kept| kept.agrees_with(&sample));
        if !agrees {
            self.samples.clear();
        }
        if self.samples.len() == WINDOW {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.drift_ppm = self.drift();
        match before {
            Some(before) if !agrees => {
                ExchangeOutcome::Step { by_us: (sample.middle_us() - before) as i64 }
            }
            _ => ExchangeOutcome::Sample,
        }
    }

    /// The offset at `worker_us` by the worker's clock; `None` before the first exchange.
    #[must_use]
    pub fn offset_at(&self, worker_us: i64) -> Option<Offset> {
        let (drift, drift_bound) = self.drift_ppm;
        let estimate = |sample: &Sample| {
            let age_us = worker_us as f64 - sample.at_us;
            let bound_us = sample.half_us() + age_us.abs() * drift_bound / 1e6;
            (sample.middle_us() + age_us * drift / 1e6, bound_us)
        };
        let best = self.samples.iter().map(estimate).min_by(|a, b| a.1.total_cmp(&b.1));
        // Two microseconds for rounding to whole ones, here and in the times of the exchange.
        best.map(|(offset_us, bound_us)| Offset {
            offset_us: offset_us.round() as i64,
            bound_us: bound_us.ceil() as u64 + 2,
        })
    }

    /// The shortest round trip of the exchanges that are kept, microseconds.
    #[must_use]
    pub fn round_trip_us_min(&self) -> Option<u64> {
        self.samples.iter().map(|sample| (2.0 * sample.half_us()) as u64).min()
    }

    /// The drifts that all pairs of exchanges allow, as their middle and half their width.
    fn drift(&self) -> (f64, f64) {
        let (mut low, mut high) = (-DRIFT_PPM_MAX, DRIFT_PPM_MAX);
        for (later, sample) in self.samples.iter().enumerate() {
            for earlier in self.samples.iter().take(later) {
                let apart_s = (sample.at_us - earlier.at_us) / 1e6;
                // The wander widens what a pair allows, since the drift of its time may not be that
                // of another.
                if apart_s > 0.0 {
                    low = low.max((sample.low_us - earlier.high_us) / apart_s - WANDER_PPM);
                    high = high.min((sample.high_us - earlier.low_us) / apart_s + WANDER_PPM);
                }
            }
        }
        if low > high {
            return (0.0, DRIFT_PPM_MAX);
        }
        (f64::midpoint(low, high), (high - low) / 2.0)
    }
}

impl Sample {
    /// `None` when the times cannot be.
    fn of(exchange: Exchange) -> Option<Self> {
        let Exchange { t1, t2, t3, t4 } = exchange;
        let is_time =
            [t1, t2, t3, t4].into_iter().all(|time| (-TIME_US_MAX..=TIME_US_MAX).contains(&time));
        let is_possible = is_time && t1 <= t4 && t2 <= t3 && t3 - t2 <= t4 - t1;
        // All differences are below 2^54: in units of a microsecond f64 is off by two at most, and
        // by none for clocks that show this century.
        is_possible.then(|| Self {
            at_us: t1 as f64 + (t4 - t1) as f64 / 2.0,
            // While the messages were on their way, the clocks drifted too.
            low_us: (t3 - t4) as f64 - (t4 - t1) as f64 * DRIFT_PPM_MAX / 1e6,
            high_us: (t2 - t1) as f64 + (t4 - t1) as f64 * DRIFT_PPM_MAX / 1e6,
        })
    }

    fn middle_us(&self) -> f64 {
        f64::midpoint(self.low_us, self.high_us)
    }

    fn half_us(&self) -> f64 {
        (self.high_us - self.low_us) / 2.0
    }

    /// Whether one offset, drifting, can have given both.
    fn agrees_with(&self, later: &Self) -> bool {
        let drifted_us = (later.at_us - self.at_us).abs() * DRIFT_PPM_MAX / 1e6;
        later.low_us <= self.high_us + drifted_us && later.high_us >= self.low_us - drifted_us
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
