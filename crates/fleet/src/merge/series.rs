//! Received tracks. A track belongs to one worker, so that numbers of tracks add up too.

use throng_observation::MediaKind;
use throng_observation::run::{CohortId, SeriesRow};

use super::family::{Adds, add};

impl Adds for SeriesRow {
    type Key = (CohortId, Option<MediaKind>);

    fn key(&self) -> Self::Key {
        (self.cohort, self.kind)
    }

    fn add(&mut self, other: Self) {
        add(&mut self.tracks, other.tracks);
        add(&mut self.tracks_below_source_fps, other.tracks_below_source_fps);
        self.counters += other.counters;
        self.add_samples(&other);
        self.source_fps += other.source_fps;
    }
}
