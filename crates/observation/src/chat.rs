//! Measurements of a participant of a chat.
//!
//! A message is due to everybody who is in the room when it is said. It counts from its intended
//! time, so that a participant that was late to say it does not hide the wait.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::run::CohortId;
use crate::{ChatCounters, Distribution};

/// A participant of a chat over one interval (a second, or the rest of one).
#[derive(Clone, Debug, PartialEq)]
pub struct ChatInterval {
    /// When the interval ended.
    pub ended_at: Instant,
    /// Sums over the interval.
    pub counters: ChatCounters,
    /// From the intended time of each message that came to its arrival, microseconds.
    pub delays_us: Vec<u64>,
    /// Others in the room at the end of the interval.
    pub occupants: u32,
    /// Whether it was in the room at the end of the interval, or until it left.
    pub is_joined: bool,
}

/// All participants of a chat of a cohort in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChatRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Participants that reported in this second.
    pub members: u32,
    /// Of them, those that were in the room at its end.
    pub joined: u32,
    /// Most others that one of them saw in the room.
    pub occupants_max: u32,
    /// Sums over those participants.
    pub counters: ChatCounters,
    /// From the intended time of each message to its arrival, microseconds.
    pub delay_us: Distribution,
}

impl ChatRow {
    /// The delay that a share of the messages due did not exceed, milliseconds; infinite where it
    /// lies among those that are missing, which [`Self::delay_us`] leaves out.
    #[must_use]
    pub fn delivery_ms(&self, quantile: f64) -> Option<f64> {
        let (came, missing) = (self.delay_us.count(), self.counters.messages_missing);
        let due = came.saturating_add(missing);
        if due == 0 {
            return None;
        }
        let of_came = quantile * due as f64 / came.max(1) as f64;
        if of_came > 1.0 || came == 0 {
            return Some(f64::INFINITY);
        }
        self.delay_us.quantile_in(of_came, 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_missing_are_later_than_all_that_came() {
        let mut row = ChatRow::default();
        assert_eq!((row.delivery_ms(0.5), row.counters.missing_ratio()), (None, None));
        (0..8).for_each(|_| row.delay_us.record(1_000));
        (row.counters.messages_due, row.counters.messages_missing) = (10, 2);
        let near_1_ms = |ms: Option<f64>| ms.is_some_and(|ms| (0.99..1.02).contains(&ms));
        assert!(near_1_ms(row.delivery_ms(0.5)) && near_1_ms(row.delivery_ms(0.8)));
        assert_eq!(row.delivery_ms(0.9), Some(f64::INFINITY));
        assert_eq!(row.counters.missing_ratio(), Some(0.2));
    }
}
