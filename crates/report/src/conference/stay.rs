//! When somebody was there, and when they were to be there.

use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::{Phase, RunTime};
use throng_scenario::Join;

/// A stream that two people had less time than this for is not expected to have come.
const OVERLAP_MIN_US: i64 = 5_000_000;

/// A time in which somebody, or two people, are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) from: RunTime,
    pub(super) until: RunTime,
}

impl Stay {
    /// From its connection to its end; `None` for who never connected.
    pub(super) fn seen(run: &RunData, row: &ParticipantRow) -> Option<Self> {
        let from = *row.reached.get(&Phase::DtlsConnected)?;
        let planned_end = RunTime(run.info.planned_duration_us);
        Some(Self { from, until: row.ended_at.or(run.ended_at).unwrap_or(planned_end) })
    }

    /// The time in which both are there.
    pub(super) fn and(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.min(other.until) }
    }

    /// Long enough for a stream to be expected.
    pub(super) fn is_long(self) -> bool {
        self.until.0 - self.from.0 >= OVERLAP_MIN_US
    }
}

/// How long everybody was to stay.
pub(super) struct PlannedStays {
    joins: Vec<Join>,
    end: RunTime,
}

impl PlannedStays {
    /// `None` where the scenario cannot be read any more, and of a search: it calls and dismisses as it goes, so that
    /// nobody's stay was planned.
    pub(super) fn of(run: &RunData) -> Option<Self> {
        if !run.holds.is_empty() {
            return None;
        }
        let joins = super::scenario(run)?.plan().joins;
        let planned_end = RunTime(run.info.planned_duration_us);
        Some(Self { joins, end: run.ended_at.map_or(planned_end, |ended_at| ended_at.min(planned_end)) })
    }

    /// From its intended join to when it was to leave, or to the run's end.
    pub(super) fn stay(&self, row: &ParticipantRow) -> Stay {
        let join = self.joins.get(row.participant.0 as usize).filter(|join| join.cohort == row.cohort);
        let leaves = join.and_then(|join| join.leave_at).and_then(|at| i64::try_from(at.as_micros()).ok());
        Stay { from: row.intended_at, until: leaves.map_or(self.end, |at| self.end.min(RunTime(at))) }
    }
}
