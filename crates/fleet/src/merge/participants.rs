//! Which worker plays which participant, and those that have not ended: when a worker is lost, they
//! are lost with it.

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
    /// When it is to leave; `None`: at the end of the run.
    pub leave_at: Option<RunTime>,
}

/// The participants that were seen.
#[derive(Debug, Default)]
pub(super) struct Participants(HashMap<ParticipantId, Known>);

#[derive(Debug)]
struct Known {
    worker: u16,
    /// Its last row; `None` once it has ended.
    current: Option<Box<ParticipantRow>>,
    /// When it ended.
    ended_at: Option<RunTime>,
    /// Whether it ended because it failed.
    has_failed: bool,
}

impl Participants {
    /// Whether a row of `worker` about `participant` is not about another worker's.
    pub(super) fn may_tell(&self, worker: u16, participant: ParticipantId) -> bool {
        self.0.get(&participant).is_none_or(|known| known.worker == worker)
    }

    /// Takes note of a row.
    pub(super) fn seen(&mut self, worker: u16, row: &ParticipantRow) {
        let current = row.outcome.is_none().then(|| Box::new(row.clone()));
        let ended_at = row.outcome.as_ref().map(|_| row.ended_at.unwrap_or(row.intended_at));
        let has_failed = row.failure().is_some();
        self.0.insert(row.participant, Known { worker, current, ended_at, has_failed });
    }

    /// The participants of a worker that had ended before a moment.
    pub(super) fn ended(
        &self,
        worker: u16,
        before: RunTime,
    ) -> impl Iterator<Item = ParticipantId> {
        let has_ended = move |known: &Known| {
            known.worker == worker && known.ended_at.is_some_and(|at| at < before)
        };
        self.0
            .iter()
            .filter_map(move |(participant, known)| has_ended(known).then_some(*participant))
    }

    /// Those of `joins` that failed.
    pub(super) fn failed(
        &self,
        joins: impl IntoIterator<Item = PlannedJoin>,
    ) -> impl Iterator<Item = PlannedJoin> {
        let has_failed = |join: &PlannedJoin| {
            self.0.get(&join.participant).is_some_and(|known| known.has_failed)
        };
        joins.into_iter().filter(has_failed)
    }

    /// The last rows of the participants of a worker that was lost at `at`: those that have not
    /// ended, and those of `joins` that were to join by `due` and were never heard of. Another
    /// worker may play them from here on.
    pub(super) fn lost(
        &mut self,
        worker: u16,
        (at, due): (RunTime, RunTime),
        why: &str,
        joins: impl IntoIterator<Item = PlannedJoin>,
    ) -> impl Iterator<Item = ParticipantRow> {
        let due = joins.into_iter().filter(move |join| join.intended_at <= due);
        let unheard =
            due.filter(|join| !self.0.contains_key(&join.participant)).map(|join| ParticipantRow {
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
