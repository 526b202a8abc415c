//! Intervals of participants of a chat.

use throng_observation::ChatInterval;

use super::Collector;
use super::observed::{middle, within_a_second};

/// An interval of a chat lasts a second, or the rest of one.
const INTERVAL_US: u128 = 1_000_000;

impl Collector {
    /// Adds an interval of the chat of participant `id`.
    pub(super) fn chat(&mut self, id: u32, interval: &ChatInterval) {
        let ended_at = self.config.clock.run_time(interval.ended_at);
        let second = middle(ended_at, within_a_second(INTERVAL_US)).max(self.open);
        let Some(record) = self.participants.get_mut(id) else { return };
        self.seconds.add(second, id, record.cohort(), interval);
        record.chat(interval, second, &self.config.bad_if);
        if interval.is_joined {
            self.mark_played(id, ended_at, within_a_second(INTERVAL_US));
        }
    }
}
