//! `series.csv`: each column with its cell.

use throng_observation::CellType::{self, Integer, Number, Text};
use throng_observation::run::{RunData, SeriesRow};
use throng_observation::{
    CaptureBasis, Counter, Counters as _, Distribution, MediaKind, OneWayDelay, TableCell,
    TableColumn, TrackCounters,
};

use super::{cohort, sum};

/// A row, and what several of its cells need.
pub(super) struct Second<'a> {
    run: &'a RunData,
    row: &'a SeriesRow,
    /// Without delays by the clock of a sender that is known to be wrong.
    one_way_delay: OneWayDelay,
}

impl<'a> Second<'a> {
    fn of(run: &'a RunData, row: &'a SeriesRow) -> Self {
        let mut one_way_delay = row.absolute_delay.clone();
        if run.has_wrong_sender_clock() {
            one_way_delay.withdraw(CaptureBasis::SenderReport);
        }
        Self { run, row, one_way_delay }
    }

    /// A figure of packets: media that does not come as packets has none.
    fn of_packets<T: Into<TableCell>>(&self, figure: impl Fn(&TrackCounters) -> T) -> TableCell {
        let counters = &self.row.counters;
        counters.has_packets().then(|| figure(counters)).into()
    }

    fn one_way(&self, quantile: f64) -> TableCell {
        self.one_way_delay.quantile_ms(quantile).into()
    }
}

/// A column: its name, which ends with the unit, what its cells are, and its cell.
type Column = (&'static str, CellType, fn(&Second<'_>) -> TableCell);

/// The columns before those of sums that declare one. Delays are relative unless they say
/// `one_way`.
const CELLS: &[Column] = &[
    ("second", Integer, |of| of.row.second.into()),
    ("cohort", Text, |of| cohort(of.run, of.row.cohort)),
    ("kind", Text, |of| of.row.kind.map(MediaKind::key).into()),
    ("tracks", Integer, |of| of.row.tracks.into()),
    ("tracks_below_source_fps", Integer, |of| of.row.tracks_below_source_fps.into()),
    ("source_fps", Number, |of| {
        of.row.source_fps.mean_milli().map(|fps| f64::from(fps) / 1e3).into()
    }),
    ("received_bps", Integer, |of| of.of_packets(|c| c.wire_bytes.saturating_mul(8))),
    ("packets_original", Integer, |of| of.of_packets(|c| c.packets_original)),
    ("packets_lost", Integer, |of| of.of_packets(|c| c.packets_lost)),
    ("loss_ratio", Number, |of| of.row.counters.loss_ratio().into()),
    ("fps_p5", Number, |of| thousandth(&of.row.fps_milli, 0.05)),
    ("fps_p50", Number, |of| thousandth(&of.row.fps_milli, 0.50)),
    ("delay_ms_p50", Number, |of| thousandth(&of.row.relative_delay_us, 0.50)),
    ("delay_ms_p95", Number, |of| thousandth(&of.row.relative_delay_us, 0.95)),
    ("delay_ms_p99", Number, |of| thousandth(&of.row.relative_delay_us, 0.99)),
    ("one_way_delay_ms_p50", Number, |of| of.one_way(0.50)),
    ("one_way_delay_ms_p95", Number, |of| of.one_way(0.95)),
    ("one_way_delay_basis", Text, |of| of.one_way_delay.basis().map(CaptureBasis::key).into()),
    ("jitter_ms_p95", Number, |of| thousandth(&of.row.jitter_us, 0.95)),
    ("freeze_count", Integer, |of| of.of_packets(|c| c.freeze_count)),
    ("freeze_ms", Number, |of| of.of_packets(|c| c.freeze_us as f64 / 1e3)),
];

/// The declared sums are those of packets.
pub(super) fn columns() -> Vec<TableColumn> {
    let sums = TrackCounters::COUNTERS.iter().filter_map(Counter::declared_csv);
    let cells = CELLS.iter().map(|(name, holds, _)| TableColumn::new(*name, *holds));
    cells.chain(sums.map(|name| TableColumn::new(name, Integer))).collect()
}

pub(super) fn cells(run: &RunData, row: &SeriesRow) -> Vec<TableCell> {
    let of = Second::of(run, row);
    let sums = row.counters.sums().filter(|(counter, _)| counter.declared_csv().is_some());
    let sums = sums.map(|(counter, value)| of.of_packets(|_| sum(counter, value)));
    CELLS.iter().map(|(_, _, cell)| cell(&of)).chain(sums).collect()
}

fn thousandth(samples: &Distribution, quantile: f64) -> TableCell {
    samples.quantile_in(quantile, 1e3).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::text;

    #[test]
    fn a_sum_is_below_its_name_and_none_of_packets_where_there_are_none() {
        let (run, mut row) = (RunData::default(), SeriesRow::default());
        let cell = |row: &SeriesRow, name: &str| {
            let at = columns().iter().position(|known| known.name == name).unwrap();
            text(&cells(&run, row)[at])
        };
        (row.second, row.tracks, row.counters.payload_bytes) = (7, 3, 900);
        assert_eq!(["second", "tracks", "nack_sent"].map(|name| cell(&row, name)), ["7", "3", ""]);
        (row.counters.packets_original, row.counters.nack_sent) = (12, 5);
        row.counters.freeze_us = 1_500;
        let names = ["packets_original", "nack_sent", "freeze_count", "freeze_ms"];
        assert_eq!(names.map(|name| cell(&row, name)), ["12", "5", "0", "1.5"]);
    }
}
