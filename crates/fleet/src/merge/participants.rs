//! Which worker plays which participant, and those that have not ended: when a worker is lost, they are lost with it.

use std::collections::{BTreeMap, HashMap};

use throng_observation::run::{CohortId, ParticipantId, ParticipantRow};
use throng_observation::{Failure, FailureReason, Outcome, RunTime};

/// A join of a worker's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedJoin {
    /// The participant.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// When it was to join.
    pub intended_at: RunTime,
}

/// The participants that were seen.
#[derive(Debug, Default)]
pub(super) struct Participants(HashMap<ParticipantId, Known>);

#[derive(Debug)]
struct Known {
    worker: u16,
    /// Its last row; `None` once it has ended.
    current: Option<Box<ParticipantRow>>,
}

impl Participants {
    /// Whether a row of `worker` about `participant` is not about another worker's.
    pub(super) fn may_tell(&self, worker: u16, participant: ParticipantId) -> bool {
        self.0.get(&participant).is_none_or(|known| known.worker == worker)
    }

    /// Takes note of a row.
    pub(super) fn seen(&mut self, worker: u16, row: &ParticipantRow) {
        let current = row.outcome.is_none().then(|| Box::new(row.clone()));
        self.0.insert(row.participant, Known { worker, current });
    }

    /// The last rows of the participants of a worker that was lost: those that have not ended, and those of `joins` that were
    /// due and were never heard of. Another worker may play them from here on.
    pub(super) fn lost(
        &mut self,
        worker: u16,
        at: RunTime,
        why: &str,
        joins: impl IntoIterator<Item = PlannedJoin>,
    ) -> impl Iterator<Item = ParticipantRow> {
        let due = joins.into_iter().filter(|join| join.intended_at <= at);
        let unheard = due.filter(|join| !self.0.contains_key(&join.participant)).map(|join| ParticipantRow {
            participant: join.participant,
            cohort: join.cohort,
            intended_at: join.intended_at,
            reached: BTreeMap::new(),
            ended_at: None,
            outcome: None,
            local_address: None,
        });
        let mut rows: BTreeMap<_, _> = unheard.map(|row| (row.participant, row)).collect();
        self.0.retain(|_, known| {
            let is_its = known.worker == worker;
            rows.extend(known.current.take_if(|_| is_its).map(|row| (row.participant, *row)));
            !is_its
        });
        let outcome = Outcome::Failed(Failure::new(FailureReason::WorkerLost, why));
        rows.into_values().map(move |row| ParticipantRow {
            ended_at: Some(at.max(row.intended_at)),
            outcome: Some(outcome.clone()),
            ..row
        })
    }
}
