//! `conference.csv`: a row for each stream from one participant to another.

use throng_observation::CellType::{self, Flag, Integer, Number, Text};
use throng_observation::run::{ParticipantId, RunData};
use throng_observation::{MediaKind, TableCell, TableColumn};

use super::{header, line};
use crate::conference::{Cell, Matrix};

/// Between whom a stream is.
type Pair = (MediaKind, ParticipantId, ParticipantId);

/// A column of the streams of a conference: its name, what its cells are, and its cell.
type OfPair = (&'static str, CellType, fn(&Pair, &Cell<'_>) -> TableCell);

const OF_PAIR: &[OfPair] = &[
    ("from", Integer, |(_, from, _), _| from.0.into()),
    ("to", Integer, |(_, _, to), _| to.0.into()),
    ("kind", Text, |(kind, ..), _| kind.key().into()),
    ("expected", Flag, |_, cell| cell.is_expected.into()),
    ("plays", Flag, |_, cell| cell.plays().into()),
    ("first_frame_ms", Number, |_, cell| cell.first_frame_ms().into()),
    ("packets_original", Integer, |_, cell| cell.counters().packets_original.into()),
    ("packets_lost", Integer, |_, cell| cell.counters().packets_lost.into()),
    ("loss_ratio", Number, |_, cell| cell.loss_ratio().into()),
    ("delay_ms_p95", Number, |_, cell| cell.delay_ms_p95().into()),
    ("freeze_count", Integer, |_, cell| cell.freeze_count().into()),
    ("freeze_ratio", Number, |_, cell| cell.freeze_ratio().into()),
    ("planned", Flag, |_, cell| cell.is_planned.into()),
];

/// The columns of [`pair_rows`].
#[must_use]
pub fn pair_columns() -> Vec<TableColumn> {
    OF_PAIR.iter().map(|(name, holds, _)| TableColumn::new(*name, *holds)).collect()
}

/// A row for each stream from one participant to another; see [`pair_columns`]. `None` for a run
/// that was no conference.
#[must_use]
pub fn pair_rows(run: &RunData) -> Option<Vec<Vec<TableCell>>> {
    let matrix = Matrix::of(run)?;
    let row = |(pair, cell): (&Pair, &Cell<'_>)| {
        OF_PAIR.iter().map(|(.., of)| of(pair, cell)).collect::<Vec<TableCell>>()
    };
    Some(matrix.cells.iter().map(row).collect())
}

/// `conference.csv`; `None` for a run that was no conference.
#[must_use]
pub fn conference(run: &RunData) -> Option<String> {
    let rows = pair_rows(run)?;
    Some(header(&pair_columns()) + &rows.iter().map(|row| line(row)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conference_has_a_line_for_each_stream_and_other_runs_no_table() {
        let csv = conference(&crate::conference::tests::lesson(4, 20, |_| 1.0)).unwrap();
        assert_eq!(csv.lines().count(), 1 + 4 * 3 * 2);
        assert!(csv.contains("\r\n0,1,video,true,true,"), "{csv}");
        assert!(conference(&crate::example::healthy(4, 20)).is_none());
    }
}
