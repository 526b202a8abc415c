//! `playback.csv`, a line for each second and cohort of players, and `players.csv`, one for each
//! player: what they have of their own, ratios, then the sums of the catalogue.

use throng_observation::CellType::{self, Integer, Number, Text};
use throng_observation::run::RunData;
use throng_observation::{
    Counters as _, LatencyBasis, PlaybackCounters, PlaybackRow, PlayerRow, SumUnit, TableCell,
    TableColumn,
};

use super::{cohort, named, sum};

const OF_SECOND: [(&str, CellType); 11] = [
    ("second", Integer),
    ("cohort", Text),
    ("players", Integer),
    ("stalled", Integer),
    ("starting", Integer),
    ("buffer_s_p5", Number),
    ("buffer_s_p50", Number),
    ("delivery_ratio_p5", Number),
    ("delivery_ratio_p50", Number),
    ("latency_s_p50", Number),
    ("latency_s_p95", Number),
];

const OF_LIFE: [(&str, CellType); 4] = [
    ("participant", Integer),
    ("startup_s", Number),
    ("buffer_s", Number),
    ("delivery_ratio_min", Number),
];

const RATIOS: [(&str, CellType); 3] =
    [("stall_ratio", Number), ("delivery_ratio", Number), ("segment_ratio", Number)];

/// The columns of [`playback_row`].
#[must_use]
pub fn playback_columns() -> Vec<TableColumn> {
    columns(&OF_SECOND)
}

/// The columns of [`player_row`].
#[must_use]
pub fn player_columns() -> Vec<TableColumn> {
    columns(&OF_LIFE)
}

fn columns(own: &[(&str, CellType)]) -> Vec<TableColumn> {
    let mut columns = [named(own), named(&RATIOS)].concat();
    columns.extend(PlaybackCounters::COUNTERS.iter().map(|counter| {
        let is_time = counter.unit == SumUnit::Microseconds;
        TableColumn::new(counter.csv(), if is_time { Number } else { Integer })
    }));
    columns
}

/// A row of `playback.csv`: the players of a second and cohort, with latencies by the basis of the
/// run; see [`playback_columns`].
#[must_use]
pub fn playback_row(run: &RunData, basis: LatencyBasis, row: &PlaybackRow) -> Vec<TableCell> {
    let seconds = |quantile| row.buffer_us.quantile_in(quantile, 1e6);
    let delivery = |quantile| row.delivery_ratio(quantile);
    let mut cells: Vec<TableCell> = vec![row.second.into(), cohort(run, row.cohort)];
    cells.extend([row.players, row.stalled, row.starting].map(TableCell::from));
    let media = [seconds(0.05), seconds(0.50), delivery(0.05), delivery(0.50)];
    cells.extend(media.map(TableCell::from));
    let latency_us = row.latency_us_by(basis);
    cells.extend([0.50, 0.95].map(|q| TableCell::from(latency_us.quantile_in(q, 1e6))));
    cells.extend(of_sums(&row.counters));
    cells
}

/// A row of `players.csv`: a player over its life; see [`player_columns`].
#[must_use]
pub fn player_row(row: &PlayerRow) -> Vec<TableCell> {
    let mut cells: Vec<TableCell> = vec![
        row.participant.0.into(),
        row.startup_us.map(|us| us as f64 / 1e6).into(),
        (row.buffer_us as f64 / 1e6).into(),
        row.delivery_ppm_min.map(|ppm| f64::from(ppm) / 1e6).into(),
    ];
    cells.extend(of_sums(&row.counters));
    cells
}

/// Ratios and sums.
fn of_sums(counters: &PlaybackCounters) -> Vec<TableCell> {
    let ratios = [counters.stall_ratio(), counters.delivery_ratio(), counters.segment_ratio()];
    let sums = counters.sums().map(|(counter, value)| sum(counter, value));
    ratios.map(TableCell::from).into_iter().chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::{header, line, series_row, text};

    #[test]
    fn players_have_a_line_a_second_and_one_each_and_no_figures_of_packets() {
        let run = crate::playback::tests::players(20);
        let cells = |line: String| line.strip_suffix("\r\n").map(|line| line.split(',').count());
        let player = PlayerRow {
            participant: throng_observation::run::ParticipantId(4),
            startup_us: Some(400_000),
            buffer_us: 0,
            delivery_ppm_min: Some(985_000),
            counters: PlaybackCounters {
                active_us: 4_000_000,
                stall_us: 1_000_000,
                ..PlaybackCounters::default()
            },
        };
        let (playback, players) = (Some(playback_columns().len()), Some(player_columns().len()));
        let second = line(&playback_row(&run, LatencyBasis::PlaylistEdge, &run.playback[12]));
        assert!(second.starts_with("12,viewers,100,20,0,0,"), "{second}");
        assert_eq!([header(&playback_columns()), second].map(cells), [playback; 2]);
        let life = line(&player_row(&player));
        assert!(life.starts_with("4,0.4,0,0.985,0.25,,,4,0,1,0,0,0,0,"), "{life}");
        assert_eq!([header(&player_columns()), life].map(cells), [players; 2]);
        let series = line(&series_row(&run, &run.series[0]));
        assert_eq!(series.split(',').nth(6), Some(""), "{series}");
    }

    #[test]
    fn each_sum_is_below_its_name() {
        let counters = PlaybackCounters {
            stall_us: 1_500_000,
            stall_count: 3,
            channels_us: 250_000,
            ..PlaybackCounters::default()
        };
        let cells = of_sums(&counters);
        let of = |name: &str| {
            let heads = columns(&[]);
            cells.get(heads.iter().position(|head| head.name == name)?).map(text)
        };
        let expect = ["1.5", "3", "0.25", "0"].map(|cell| Some(cell.to_owned()));
        assert_eq!(["stalled_s", "stalls", "channels_s", "seeks"].map(of), expect);
    }
}
