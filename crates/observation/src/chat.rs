//! Measurements of a participant of a chat.
//!
//! A message is due to everybody who is in the room when it is said. It counts from its intended
//! time, so that a participant that was late to say it does not hide the wait.

use std::ops::AddAssign;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Distribution;
use crate::run::CohortId;

/// Sums over an interval; all add up over time and over participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCounters {
    /// Messages of this run that were due to it and settled: they came, or count as missing.
    pub messages_due: u64,
    /// Of them, those that did not come in time to count (10 s).
    pub messages_missing: u64,
    /// Messages that came more than once.
    pub duplicates: u64,
    /// Messages that came before one that the same participant had said earlier.
    pub out_of_order: u64,
    /// Messages received, those of others than this run and of the archive included.
    pub messages_received: u64,
    /// Messages said.
    pub messages_sent: u64,
    /// Messages that were to be said while it was not in the room.
    pub messages_unsent: u64,
    /// Frames received and sent.
    pub stanzas_received: u64,
    /// Frames sent.
    pub stanzas_sent: u64,
    /// Of those received, presences.
    pub presences_received: u64,
    /// vCards received.
    pub vcards_received: u64,
    /// Bytes of the frames received, without those of WebSocket and below.
    pub bytes_received: u64,
    /// Bytes of the frames sent.
    pub bytes_sent: u64,
    /// Times that it connected again after a connection broke, or did not come up.
    pub reconnects: u64,
    /// Of them, those after which its stream went on (XEP-0198).
    pub resumes: u64,
    /// Times that its nickname changed in the room.
    pub nick_changes: u64,
}

impl AddAssign for ChatCounters {
    fn add_assign(&mut self, o: Self) {
        self.messages_due = self.messages_due.saturating_add(o.messages_due);
        self.messages_missing = self.messages_missing.saturating_add(o.messages_missing);
        self.duplicates = self.duplicates.saturating_add(o.duplicates);
        self.out_of_order = self.out_of_order.saturating_add(o.out_of_order);
        self.messages_received = self.messages_received.saturating_add(o.messages_received);
        self.messages_sent = self.messages_sent.saturating_add(o.messages_sent);
        self.messages_unsent = self.messages_unsent.saturating_add(o.messages_unsent);
        self.stanzas_received = self.stanzas_received.saturating_add(o.stanzas_received);
        self.stanzas_sent = self.stanzas_sent.saturating_add(o.stanzas_sent);
        self.presences_received = self.presences_received.saturating_add(o.presences_received);
        self.vcards_received = self.vcards_received.saturating_add(o.vcards_received);
        self.bytes_received = self.bytes_received.saturating_add(o.bytes_received);
        self.bytes_sent = self.bytes_sent.saturating_add(o.bytes_sent);
        self.reconnects = self.reconnects.saturating_add(o.reconnects);
        self.resumes = self.resumes.saturating_add(o.resumes);
        self.nick_changes = self.nick_changes.saturating_add(o.nick_changes);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_counters_add_up() {
        let one: ChatCounters = serde_json::from_value(serde_json::Value::Object(
            serde_json::to_value(ChatCounters::default())
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .enumerate()
                .map(|(at, key)| (key.clone(), (at + 1).into()))
                .collect(),
        ))
        .unwrap();
        let mut sum = one;
        sum += one;
        for (key, value) in serde_json::to_value(sum).unwrap().as_object().unwrap() {
            let once = serde_json::to_value(one).unwrap()[key].as_u64().unwrap();
            assert_eq!(value.as_u64(), Some(2 * once), "{key}");
        }
    }
}
