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
        add(&mut self.dates_ahead, other.dates_ahead);
        self.counters += other.counters;
        self.add_samples(&other);
    }
}
