//! Players.

use throng_observation::PlaybackRow;
use throng_observation::run::CohortId;

use super::family::{Adds, add};

impl Adds for PlaybackRow {
    type Key = CohortId;

    fn key(&self) -> CohortId {
        self.cohort
    }

    fn add(&mut self, other: Self) {
        add(&mut self.players, other.players);
        add(&mut self.stalled, other.stalled);
        add(&mut self.starting, other.starting);
        if let Some(ahead) = other.dates_ahead {
            add(self.dates_ahead.get_or_insert(0), ahead);
        }
        self.counters += other.counters;
        self.add_samples(&other);
    }
}
