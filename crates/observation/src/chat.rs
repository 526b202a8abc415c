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
    /// Whether it was in the room at the end of the interval.
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
