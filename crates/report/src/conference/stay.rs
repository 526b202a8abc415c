//! When a participant was connected, and when it was planned to be.

use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::{Phase, RunPlan, RunTime};

/// A stream between two participants that were connected together for less than this is not
/// expected.
const OVERLAP_MIN_US: i64 = 5_000_000;

/// A time in which a participant, or two of them, are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) from: RunTime,
    pub(super) until: RunTime,
}

impl Stay {
    /// From its connection to its end; `None` when it never connected.
    pub(super) fn observed(run: &RunData, row: &ParticipantRow) -> Option<Self> {
        let from = *row.reached.get(&Phase::DtlsConnected)?;
        let planned_end = RunTime(run.info.planned_duration_us);
        Some(Self { from, until: row.ended_at.or(run.ended_at).unwrap_or(planned_end) })
    }

    /// The time in which both are connected.
    pub(super) fn and(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.min(other.until) }
    }

    /// Long enough for a stream to be expected.
    pub(super) fn is_long(self) -> bool {
        self.until.0.saturating_sub(self.from.0) >= OVERLAP_MIN_US
    }
}

/// The planned stays of all participants.
pub(super) struct PlannedStays<'a> {
    plan: &'a RunPlan,
    end: RunTime,
}

impl<'a> PlannedStays<'a> {
    /// `None` where the plan is not known, and for a search: it starts and ends participants as it
    /// goes, without a plan.
    pub(super) fn of(run: &'a RunData) -> Option<Self> {
        if !run.holds.is_empty() {
            return None;
        }
        let planned_end = RunTime(run.info.planned_duration_us);
        Some(Self {
            plan: run.info.plan.as_ref()?,
            end: run.ended_at.map_or(planned_end, |ended_at| ended_at.min(planned_end)),
        })
    }

    /// From its intended join to its planned leave, or to the run's end.
    pub(super) fn stay(&self, row: &ParticipantRow) -> Stay {
        let join = self.plan.join_of(row.participant, row.cohort);
        let leaves = join.and_then(|join| join.leave_at);
        Stay { from: row.intended_at, until: leaves.map_or(self.end, |at| self.end.min(at)) }
    }
}
