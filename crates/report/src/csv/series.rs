//! `series.csv`: each column with its cell.

use throng_observation::run::{RunData, SeriesRow};
use throng_observation::{
    CaptureBasis, Counter, Counters as _, Distribution, OneWayDelay, TrackCounters,
};

use super::{cohort, number, sum};

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
    fn of_packets(&self, figure: impl Fn(&TrackCounters) -> String) -> String {
        let counters = &self.row.counters;
        if counters.has_packets() { figure(counters) } else { String::new() }
    }

    fn one_way(&self, quantile: f64) -> String {
        number(self.one_way_delay.quantile_ms(quantile))
    }
}

/// A column: its name, which ends with the unit, and its cell.
type Column = (&'static str, fn(&Second<'_>) -> String);

/// The columns before those of sums that declare one. Delays are relative unless they say
/// `one_way`.
const CELLS: &[Column] = &[
    ("second", |of| of.row.second.to_string()),
    ("cohort", |of| cohort(of.run, of.row.cohort.0)),
    ("kind", |of| of.row.kind.map_or_else(String::new, |kind| kind.key().into())),
    ("tracks", |of| of.row.tracks.to_string()),
    ("tracks_below_source_fps", |of| of.row.tracks_below_source_fps.to_string()),
    ("source_fps", |of| number(of.row.source_fps.mean_milli().map(|fps| f64::from(fps) / 1e3))),
    ("received_bps", |of| of.of_packets(|c| c.wire_bytes.saturating_mul(8).to_string())),
    ("packets_original", |of| of.of_packets(|c| c.packets_original.to_string())),
    ("packets_lost", |of| of.of_packets(|c| c.packets_lost.to_string())),
    ("loss_ratio", |of| number(of.row.counters.loss_ratio())),
    ("fps_p5", |of| thousandth(&of.row.fps_milli, 0.05)),
    ("fps_p50", |of| thousandth(&of.row.fps_milli, 0.50)),
    ("delay_ms_p50", |of| thousandth(&of.row.relative_delay_us, 0.50)),
    ("delay_ms_p95", |of| thousandth(&of.row.relative_delay_us, 0.95)),
    ("delay_ms_p99", |of| thousandth(&of.row.relative_delay_us, 0.99)),
    ("one_way_delay_ms_p50", |of| of.one_way(0.50)),
    ("one_way_delay_ms_p95", |of| of.one_way(0.95)),
    ("one_way_delay_basis", |of| {
        of.one_way_delay.basis().map_or_else(String::new, |basis| basis.key().into())
    }),
    ("jitter_ms_p95", |of| thousandth(&of.row.jitter_us, 0.95)),
    ("freeze_count", |of| of.of_packets(|c| c.freeze_count.to_string())),
    ("freeze_ms", |of| of.of_packets(|c| number(Some(c.freeze_us as f64 / 1e3)))),
];

pub(super) fn columns() -> Vec<&'static str> {
    let sums = TrackCounters::COUNTERS.iter().filter_map(Counter::declared_csv);
    CELLS.iter().map(|(name, _)| *name).chain(sums).collect()
}

pub(super) fn cells(run: &RunData, row: &SeriesRow) -> Vec<String> {
    let of = Second::of(run, row);
    let sums = row.counters.sums().filter(|(counter, _)| counter.declared_csv().is_some());
    let sums = sums.map(|(counter, value)| of.of_packets(|_| sum(counter, value)));
    CELLS.iter().map(|(_, cell)| cell(&of)).chain(sums).collect()
}

fn thousandth(samples: &Distribution, quantile: f64) -> String {
    number(samples.quantile_in(quantile, 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_below_its_name_and_none_of_packets_where_there_are_none() {
        let (run, mut row) = (RunData::default(), SeriesRow::default());
        let cell = |row: &SeriesRow, name: &str| {
            let at = columns().iter().position(|known| *known == name).unwrap();
            cells(&run, row)[at].clone()
        };
        (row.second, row.tracks, row.counters.payload_bytes) = (7, 3, 900);
        assert_eq!(["second", "tracks", "nack_sent"].map(|name| cell(&row, name)), ["7", "3", ""]);
        (row.counters.packets_original, row.counters.nack_sent) = (12, 5);
        row.counters.freeze_us = 1_500;
        let names = ["packets_original", "nack_sent", "freeze_count", "freeze_ms"];
        assert_eq!(names.map(|name| cell(&row, name)), ["12", "5", "0", "1.5"]);
    }
}
