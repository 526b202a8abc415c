//! Sent tracks.

use throng_observation::MediaKind;
use throng_observation::run::{CohortId, SentRow};

use super::family::{Adds, add};

impl Adds for SentRow {
    type Key = (CohortId, MediaKind);

    fn key(&self) -> Self::Key {
        (self.cohort, self.kind)
    }

    fn add(&mut self, other: Self) {
        add(&mut self.tracks, other.tracks);
        self.counters += other.counters;
    }
}
