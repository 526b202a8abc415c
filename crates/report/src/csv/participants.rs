//! `participants.csv`: a row for each participant. Every `_s` is seconds since the run's first
//! intended join.

use throng_observation::CellType::{Integer, Number, Text};
use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::{Outcome, Phase, RunTime, TableCell, TableColumn};

use super::{cohort, named};

/// The columns of [`participant_row`].
#[must_use]
pub fn participant_columns() -> Vec<TableColumn> {
    let mut columns = named(&[("participant", Integer), ("cohort", Text), ("intended_s", Number)]);
    columns.extend(Phase::ALL.map(|phase| TableColumn::new(format!("{}_s", phase.key()), Number)));
    columns.extend(named(&[
        ("ended_s", Number),
        ("outcome", Text),
        ("failure_reason", Text),
        ("failure_detail", Text),
        ("local_address", Text),
    ]));
    columns
}

/// A row of `participants.csv`; see [`participant_columns`].
#[must_use]
pub fn participant_row(run: &RunData, row: &ParticipantRow) -> Vec<TableCell> {
    let mut cells: Vec<TableCell> = vec![
        row.participant.0.into(),
        cohort(run, row.cohort),
        row.intended_at.as_secs_f64().into(),
    ];
    cells.extend(Phase::ALL.iter().map(|phase| at(row.reached.get(phase).copied())));
    cells.push(at(row.ended_at));
    cells.extend(match &row.outcome {
        None => [TableCell::Absent, TableCell::Absent, TableCell::Absent],
        Some(Outcome::Completed) => ["completed".into(), TableCell::Absent, TableCell::Absent],
        Some(Outcome::Failed(failure)) => {
            ["failed".into(), failure.reason.key().into(), failure.detail.to_string().into()]
        }
    });
    cells.push(row.local_address.clone().into());
    cells
}

fn at(time: Option<RunTime>) -> TableCell {
    time.map(RunTime::as_secs_f64).into()
}
