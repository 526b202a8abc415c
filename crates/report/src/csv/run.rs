//! The run itself, in one row: what was run, when, and how it ended.

use throng_observation::CellType::{self, Flag, Integer, Number, Text};
use throng_observation::run::RunData;
use throng_observation::{RunTime, TableCell, TableColumn};

use crate::partial_reasons;

/// A column: its name, what its cells are, and its cell.
type OfRun = (&'static str, CellType, fn(&RunData) -> TableCell);

const OF_RUN: &[OfRun] = &[
    ("throng_version", Text, |run| run.info.throng_version.as_str().into()),
    ("format", Integer, |run| run.info.format.into()),
    ("target", Text, |run| run.info.target.as_str().into()),
    ("started_at_unix_s", Number, |run| (run.info.started_at_unix_us as f64 / 1e6).into()),
    ("planned_duration_s", Number, |run| (run.info.planned_duration_us as f64 / 1e6).into()),
    ("ended_s", Number, |run| run.ended_at.map(RunTime::as_secs_f64).into()),
    ("ending", Text, |run| run.ending.key().into()),
    ("partial", Flag, |run| (!partial_reasons(run).is_empty()).into()),
    ("partial_reasons", Text, |run| {
        let reasons = partial_reasons(run);
        (!reasons.is_empty()).then(|| reasons.join("; ")).into()
    }),
    ("rows_lost", Integer, |run| run.rows_lost.into()),
    ("clock_bound_s", Number, |run| run.info.clock.bound_us.map(|us| us as f64 / 1e6).into()),
    ("clock_basis", Text, |run| run.info.clock.basis.as_str().into()),
];

/// The columns of [`run_row`].
#[must_use]
pub fn run_columns() -> Vec<TableColumn> {
    OF_RUN.iter().map(|(name, holds, _)| TableColumn::new(*name, *holds)).collect()
}

/// What was run, when, and how it ended; see [`run_columns`]. Of its rows it needs the crowd and
/// the events.
#[must_use]
pub fn run_row(run: &RunData) -> Vec<TableCell> {
    OF_RUN.iter().map(|(.., of)| of(run)).collect()
}
