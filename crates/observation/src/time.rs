use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A moment of a run: microseconds since the run's first intended join (negative before it).
///
/// Every row of a run has this instead of a wall clock, so that rows of one run compare without a
/// time zone and without clock steps. The run's `started_at_unix_us` converts it to wall time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RunTime(pub i64);

impl RunTime {
    /// The moment `after` the start of the run.
    #[must_use]
    pub fn after_start(after: Duration) -> Self {
        Self(i64::try_from(after.as_micros()).unwrap_or(i64::MAX))
    }

    /// Microseconds since the start.
    #[must_use]
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since the start, with fraction.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Seconds since the start, with fraction.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The whole second this moment lies in (floor).
    #[must_use]
    pub fn second(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Milliseconds from `earlier` to this moment; negative when `earlier` is later.
    #[must_use]
    pub fn millis_since(self, earlier: Self) -> f64 {
        (self.0 - earlier.0) as f64 / 1e3
    }
}
