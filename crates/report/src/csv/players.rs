//! `playback.csv`, a line for each second and cohort of players, and `players.csv`, one for each
//! player: what they have of their own, ratios, then the sums of the catalogue.

use throng_observation::run::RunData;
use throng_observation::{
    Counter, Counters as _, LatencyBasis, PlaybackCounters, PlaybackRow, PlayerRow,
};

use super::{cohort, line, number, sum};

const OF_SECOND: [&str; 11] = [
    "second",
    "cohort",
    "players",
    "stalled",
    "starting",
    "buffer_s_p5",
    "buffer_s_p50",
    "delivery_ratio_p5",
    "delivery_ratio_p50",
    "latency_s_p50",
    "latency_s_p95",
];

const OF_LIFE: [&str; 4] = ["participant", "startup_s", "buffer_s", "delivery_ratio_min"];

const RATIOS: [&str; 3] = ["stall_ratio", "delivery_ratio", "segment_ratio"];

/// The columns of [`playback_line`].
#[must_use]
pub fn playback_columns() -> Vec<String> {
    columns(&OF_SECOND)
}

/// The columns of [`player_line`].
#[must_use]
pub fn player_columns() -> Vec<String> {
    columns(&OF_LIFE)
}

fn columns(own: &[&str]) -> Vec<String> {
    let own = own.iter().chain(&RATIOS).map(|name| (*name).to_owned());
    own.chain(PlaybackCounters::COUNTERS.iter().map(Counter::csv)).collect()
}

/// A line of `playback.csv`: the players of a second and cohort, with latencies by the basis of the
/// run; see [`playback_columns`].
#[must_use]
pub fn playback_line(run: &RunData, basis: LatencyBasis, row: &PlaybackRow) -> String {
    let seconds = |quantile| number(row.buffer_us.quantile_in(quantile, 1e6));
    let delivery = |quantile| number(row.delivery_ratio(quantile));
    let mut cells = vec![row.second.to_string(), cohort(run, row.cohort.0)];
    cells.extend([row.players, row.stalled, row.starting].map(|count| count.to_string()));
    cells.extend([seconds(0.05), seconds(0.50), delivery(0.05), delivery(0.50)]);
    let latency_us = row.latency_us_by(basis);
    cells.extend([0.50, 0.95].map(|q| number(latency_us.quantile_in(q, 1e6))));
    cells.extend(of_sums(&row.counters));
    line(&cells)
}

/// A line of `players.csv`: a player over its life; see [`player_columns`].
#[must_use]
pub fn player_line(row: &PlayerRow) -> String {
    let mut cells = vec![
        row.participant.0.to_string(),
        number(row.startup_us.map(|us| us as f64 / 1e6)),
        number(Some(row.buffer_us as f64 / 1e6)),
        number(row.delivery_ppm_min.map(|ppm| f64::from(ppm) / 1e6)),
    ];
    cells.extend(of_sums(&row.counters));
    line(&cells)
}

/// Ratios and sums.
fn of_sums(counters: &PlaybackCounters) -> Vec<String> {
    let ratios = [counters.stall_ratio(), counters.delivery_ratio(), counters.segment_ratio()];
    let sums = counters.sums().map(|(counter, value)| sum(counter, value));
    ratios.map(number).into_iter().chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::{header, series_line};

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
        let second = playback_line(&run, LatencyBasis::PlaylistEdge, &run.playback[12]);
        assert!(second.starts_with("12,viewers,100,20,0,0,"), "{second}");
        assert_eq!([header(&playback_columns()), second].map(cells), [playback; 2]);
        let life = player_line(&player);
        assert!(life.starts_with("4,0.4,0,0.985,0.25,,,4,0,1,0,0,0,0,"), "{life}");
        assert_eq!([header(&player_columns()), life].map(cells), [players; 2]);
        let series = series_line(&run, &run.series[0]);
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
            cells.get(heads.iter().position(|head| head == name)?).map(String::as_str)
        };
        assert_eq!([of("stalled_s"), of("stalls")], [Some("1.5"), Some("3")]);
        assert_eq!([of("channels_s"), of("seeks")], [Some("0.25"), Some("0")]);
    }
}
