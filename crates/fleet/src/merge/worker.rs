//! What the merge knows of one worker.

use std::collections::BTreeMap;
use std::fmt;

use throng_observation::RunTime;
use throng_observation::run::{CohortId, CrowdRow, Row};

use super::crowd;
use super::unserved::Unserved;

/// A worker, numbered from 0 in the order of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

/// The name of a worker, as reports and events show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerName(pub String);

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What of a worker's rows is not in the merged ones. All are 0 in a run without trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that came after their second was closed, or after their worker was finished or lost.
    pub late_rows: u64,
    /// Rows that cannot be: see [`Refusal`](super::Refusal).
    pub refused_rows: u64,
    /// Rows of a second that the worker did not close before its end.
    pub unclosed_rows: u64,
    /// Seconds that were sealed without it, although it was to play in them. They count as limited
    /// by the generator.
    pub missing_seconds: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Live,
    Finished,
    Lost(RunTime),
}

/// How a worker that did not close a second stands to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// It had ended.
    Ended,
    /// Its rows are missing, and its participants were there.
    Missing,
    /// Its rows are missing because it was lost.
    Lost,
}

#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) name: WorkerName,
    pub(super) state: State,
    /// The last second that it closed.
    pub(super) watermark: Option<i64>,
    /// Rows of seconds that it has not closed.
    pub(super) staged: Vec<Row>,
    pub(super) events: u32,
    pub(super) counts: Counts,
    /// Its failed participants, once it has finished.
    pub(super) unserved: Unserved,
    /// Its crowd in the last sealed second.
    crowd: BTreeMap<CohortId, CrowdRow>,
}

impl Worker {
    pub(super) fn new(name: &WorkerName) -> Self {
        Self { name: name.clone(), ..Self::default() }
    }

    pub(super) fn is_live(&self) -> bool {
        self.state == State::Live
    }

    /// Whether it has closed `second`.
    pub(super) fn has_passed(&self, second: i64) -> bool {
        self.watermark.is_some_and(|watermark| watermark >= second)
    }

    /// It ends: what it had not closed is not counted.
    pub(super) fn end(&mut self, state: State) {
        self.state = state;
        self.counts.unclosed_rows += std::mem::take(&mut self.staged).len() as u64;
    }

    /// Why it did not close `second`, which is sealed.
    pub(super) fn absence(&self, second: i64) -> Absence {
        match self.state {
            _ if self.has_passed(second) => Absence::Missing,
            State::Live => Absence::Missing,
            State::Finished => Absence::Ended,
            State::Lost(at) if second > at.second() => Absence::Ended,
            State::Lost(_) => Absence::Lost,
        }
    }

    /// Its crowd in a second that it did not close.
    pub(super) fn crowd_without_it(
        &self,
        second: i64,
        absence: Absence,
    ) -> impl Iterator<Item = CrowdRow> {
        self.crowd.values().map(move |last| match absence {
            Absence::Missing => crowd::unchanged(*last, second),
            Absence::Ended | Absence::Lost => crowd::ended(*last, second),
        })
    }

    /// Its participants that played in the last sealed second.
    pub(super) fn playing(&self) -> u32 {
        self.crowd.values().map(|row| row.playing).fold(0, u32::saturating_add)
    }

    pub(super) fn sealed(&mut self, crowd: BTreeMap<CohortId, CrowdRow>) {
        self.crowd = crowd;
    }
}
