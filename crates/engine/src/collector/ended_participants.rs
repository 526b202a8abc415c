//! What still counts of participants who are not remembered any more.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use throng_observation::run::CohortId;
use throng_observation::{Distribution, RunTime};

use super::participant_record::ParticipantRecord;

/// What is left of those who have gone.
pub(super) struct EndedParticipants {
    /// Payload bits per second of each, over its life.
    payload_bps: Distribution,
    /// Those who failed: who was to be served and is not has a bad second each second, until it was to leave.
    lost: HashMap<u32, LostDatagrams>,
    /// How many of them there are, by cohort.
    counts: Vec<u32>,
    /// When they were to leave, or were dismissed, the soonest first.
    until: BinaryHeap<Reverse<(RunTime, u32)>>,
}

struct LostDatagrams {
    cohort: CohortId,
    /// Until when it was to be served; `None`: to the end of the run.
    until: Option<RunTime>,
}

impl EndedParticipants {
    pub(super) fn new(cohorts: usize) -> Self {
        Self {
            payload_bps: Distribution::new(),
            lost: HashMap::new(),
            counts: vec![0; cohorts],
            until: BinaryHeap::new(),
        }
    }

    /// Takes in somebody who ended.
    pub(super) fn take(&mut self, record: &ParticipantRecord) {
        if let Some(bps) = record.payload_bps() {
            self.payload_bps.record(bps as u64);
        }
        if record.has_failed() {
            let (id, until) = (record.participant().0, record.served_until());
            self.lost.insert(id, LostDatagrams { cohort: record.cohort(), until });
            self.until.extend(until.map(|at| Reverse((at, id))));
            self.count(record.cohort(), 1);
        }
    }

    /// Nobody wants `who` any more.
    pub(super) fn dismissed(&mut self, id: u32, at: RunTime) {
        if let Some(lost) = self.lost.get_mut(&id)
            && lost.until.is_none_or(|until| at < until)
        {
            lost.until = Some(at);
            self.until.push(Reverse((at, id)));
        }
    }

    /// How many of each cohort were to be served throughout the second that ends at `end`.
    pub(super) fn lost(&mut self, end: RunTime) -> &[u32] {
        while let Some(Reverse((at, id))) = self.until.peek().copied().filter(|Reverse((at, _))| *at < end) {
            self.until.pop();
            if self.lost.get(&id).is_some_and(|lost| lost.until == Some(at))
                && let Some(lost) = self.lost.remove(&id)
            {
                self.count(lost.cohort, -1);
            }
        }
        &self.counts
    }

    fn count(&mut self, cohort: CohortId, change: i32) {
        if let Some(count) = self.counts.get_mut(usize::from(cohort.0)) {
            *count = count.saturating_add_signed(change);
        }
    }

    pub(super) fn payload_bps(&self) -> &Distribution {
        &self.payload_bps
    }
}
