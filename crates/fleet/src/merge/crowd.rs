//! The crowd: counts of participants add up.

use throng_observation::IceState;
use throng_observation::run::{CohortId, CrowdRow};

use super::family::{Adds, add};

impl Adds for CrowdRow {
    type Key = CohortId;

    fn key(&self) -> CohortId {
        self.cohort
    }

    fn add(&mut self, other: Self) {
        add(&mut self.intended, other.intended);
        add(&mut self.started, other.started);
        add(&mut self.connected, other.connected);
        add(&mut self.playing, other.playing);
        add(&mut self.failed, other.failed);
        add(&mut self.left, other.left);
        self.ice.iter_mut().zip(other.ice).for_each(|(sum, count)| add(sum, count));
    }
}

/// A worker's crowd in a second that it did not close and in which its participants may go on.
pub(super) fn unchanged(last: CrowdRow, second: i64) -> CrowdRow {
    CrowdRow { second, ..last }
}

/// A worker's crowd after its end: what it counted so far remains, nobody is connected, and
/// connections are closed unless ICE had failed, as one machine counts participants that ended.
pub(super) fn ended(last: CrowdRow, second: i64) -> CrowdRow {
    let (closed, failed) =
        (CrowdRow::ice_index(IceState::Closed), CrowdRow::ice_index(IceState::Failed));
    let mut ice = [0; 6];
    for (state, count) in last.ice.into_iter().enumerate() {
        let into = if state == failed { failed } else { closed };
        ice.get_mut(into).into_iter().for_each(|sum| add(sum, count));
    }
    CrowdRow { second, connected: 0, playing: 0, ice, ..last }
}
