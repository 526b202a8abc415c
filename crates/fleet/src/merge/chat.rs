//! Participants of chats.

use throng_observation::ChatRow;
use throng_observation::run::CohortId;

use super::family::{Adds, add};

impl Adds for ChatRow {
    type Key = CohortId;

    fn key(&self) -> CohortId {
        self.cohort
    }

    fn add(&mut self, other: Self) {
        add(&mut self.members, other.members);
        add(&mut self.joined, other.joined);
        self.occupants_max = self.occupants_max.max(other.occupants_max);
        self.counters += other.counters;
        self.delay_us.merge(&other.delay_us);
    }
}
