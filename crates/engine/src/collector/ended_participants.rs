//! The figures of participants whose records are dropped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use throng_observation::run::CohortId;
use throng_observation::{Distribution, RunTime};

use super::participant_record::ParticipantRecord;

/// Sums over ended participants.
#[derive(Default)]
pub(super) struct EndedParticipants {
    /// Payload bits per second of each, over its life.
    payload_bps: Distribution,
    /// Participants that failed: each has a bad second every second until its planned leave.
    failed: HashMap<u32, Failed>,
    /// How many of those there are, by cohort.
    counts: Vec<u32>,
    /// Their planned leaves or removals, the soonest first.
    until: BinaryHeap<Reverse<(RunTime, u32)>>,
}

struct Failed {
    cohort: CohortId,
    /// Until when it should have been served; `None`: to the end of the run.
    until: Option<RunTime>,
}

impl EndedParticipants {
    pub(super) fn new(cohorts: usize) -> Self {
        Self { counts: vec![0; cohorts], ..Self::default() }
    }

    /// Adds the record of participant `id` of this engine, which ended.
    pub(super) fn take(&mut self, id: u32, record: &ParticipantRecord) {
        if let Some(bps) = record.payload_bps() {
            self.payload_bps.record(bps as u64);
        }
        if record.has_failed() {
            let until = record.served_until();
            self.failed.insert(id, Failed { cohort: record.cohort(), until });
            self.until.extend(until.map(|at| Reverse((at, id))));
            self.count(record.cohort(), 1);
        }
    }

    /// Participant `id` was removed.
    pub(super) fn removed(&mut self, id: u32, at: RunTime) {
        if let Some(lost) = self.failed.get_mut(&id)
            && lost.until.is_none_or(|until| at < until)
        {
            lost.until = Some(at);
            self.until.push(Reverse((at, id)));
        }
    }

    /// How many failed participants of each cohort should be served throughout the second that ends
    /// at `end`.
    pub(super) fn lost(&mut self, end: RunTime) -> &[u32] {
        while let Some(Reverse((at, id))) =
            self.until.peek().copied().filter(|Reverse((at, _))| *at < end)
        {
            self.until.pop();
            if self.failed.get(&id).is_some_and(|lost| lost.until == Some(at))
                && let Some(lost) = self.failed.remove(&id)
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
