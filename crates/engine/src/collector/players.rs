//! Intervals of players: participants that play from a buffer.

use throng_observation::{PlaybackInterval, RunTime};

use super::Collector;
use super::observed::{middle, within_a_second};
use super::player_record::IntervalTimes;

impl Collector {
    /// Adds an interval of the player of participant `id`.
    pub(super) fn playback(&mut self, id: u32, interval: &PlaybackInterval) {
        let clock = self.config.clock;
        let counters = &interval.counters;
        let ended_at = clock.run_time(interval.ended_at);
        let length_us =
            within_a_second(counters.active_us.saturating_add(counters.paused_us).into());
        let second = middle(ended_at, length_us).max(self.open);
        let Some(record) = self.participants.get_mut(id) else { return };
        self.seconds.add(second, id, record.cohort(), interval);
        let times = IntervalTimes {
            began: RunTime(ended_at.0 - length_us),
            second,
            awaited_since: interval.start_awaited_since.map(|since| clock.run_time(since)),
        };
        record.playback(interval, times, &self.config.bad_if);
        if counters.media_bytes > 0 || counters.played_us > 0 {
            self.mark_played(id, ended_at, length_us);
        }
    }
}
