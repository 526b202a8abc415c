//! `series.csv`, `participants.csv`, `playback.csv`, `players.csv`, `conference.csv` and
//! `hosts.csv` (RFC 4180): a header line, then a line a row. Absent figures are empty.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use throng_observation::host::{HostId, HostSeries, SeriesId, Unit};
use throng_observation::run::{ParticipantRow, RunData, SeriesRow};
use throng_observation::untrusted;
use throng_observation::{
    CaptureBasis, Distribution, LatencyBasis, Outcome, Phase, PlaybackCounters, PlaybackRow,
    PlayerRow, RunTime,
};

use crate::conference::Matrix;
use crate::requests::{Beside, RequestReport};

/// The columns of [`series_line`]; names end with the unit, delays are relative unless they say
/// `one_way`.
pub const SERIES_COLUMNS: [&str; 22] = [
    "second",
    "cohort",
    "kind",
    "tracks",
    "tracks_below_source_fps",
    "source_fps",
    "received_bps",
    "packets_received",
    "packets_lost",
    "loss_ratio",
    "fps_p5",
    "fps_p50",
    "delay_ms_p50",
    "delay_ms_p95",
    "delay_ms_p99",
    "one_way_delay_ms_p50",
    "one_way_delay_ms_p95",
    "one_way_delay_basis",
    "jitter_ms_p95",
    "freeze_count",
    "freeze_ms",
    "nack_sent",
];

/// The columns of [`participant_line`]; every `_s` is seconds since the run's first intended join.
pub const PARTICIPANT_COLUMNS: [&str; 22] = [
    "participant",
    "cohort",
    "intended_s",
    "started_s",
    "resolved_s",
    "connected_s",
    "secured_s",
    "page_loaded_s",
    "described_s",
    "negotiated_s",
    "ice_connected_s",
    "dtls_connected_s",
    "playing_s",
    "first_packet_s",
    "first_frame_s",
    "playback_started_s",
    "joined_s",
    "ended_s",
    "outcome",
    "failure_reason",
    "failure_detail",
    "local_address",
];

/// The first line of a table.
#[must_use]
pub fn header(columns: &[&str]) -> String {
    table(columns, std::iter::empty())
}

/// A line of `series.csv`: a second, cohort and kind; see [`SERIES_COLUMNS`].
#[must_use]
pub fn series_line(run: &RunData, row: &SeriesRow) -> String {
    line(&series_row(run, row))
}

/// A line of `participants.csv`; see [`PARTICIPANT_COLUMNS`].
#[must_use]
pub fn participant_line(run: &RunData, row: &ParticipantRow) -> String {
    line(&participant_row(run, row))
}

/// The counters of a player, in the last columns of `playback.csv` and `players.csv`.
macro_rules! with_player_counters {
    ($($own:literal),* $(,)?) => {
        [
            $($own,)*
            "active_s",
            "waited_to_start_s",
            "stalled_s",
            "played_s",
            "paused_s",
            "media_s",
            "wanted_s",
            "stall_ratio",
            "delivery_ratio",
            "stalls",
            "seeks",
            "media_bytes",
            "other_bytes",
            "requests",
            "requests_failed",
            "connections",
            "retransmitted",
            "received_out_of_order",
            "switches",
            "skipped_s",
            "responses_http1",
            "responses_http2",
            "responses_http3",
            "missed",
            "segments",
            "segment_ratio",
            "page_requests",
            "page_requests_failed",
            "page_bytes",
            "peer_bytes",
            "peer_segments",
            "peer_failures",
            "hash_reloads",
            "uploaded_bytes",
            "peers_s",
            "announces",
            "offers_received",
            "answers_received",
            "tracker_bytes_sent",
            "tracker_bytes_received",
            "tracker_reconnects",
            "channel_received_bytes",
            "channel_sent_bytes",
            "channels_s",
        ]
    };
}

/// The columns of [`playback_line`].
pub const PLAYBACK_COLUMNS: [&str; 55] = with_player_counters![
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

/// The columns of [`player_line`].
pub const PLAYER_COLUMNS: [&str; 48] =
    with_player_counters!["participant", "startup_s", "buffer_s", "delivery_ratio_min"];

/// A line of `playback.csv`: the players of a second and cohort, with latencies by the basis of the
/// run; see [`PLAYBACK_COLUMNS`].
#[must_use]
pub fn playback_line(run: &RunData, basis: LatencyBasis, row: &PlaybackRow) -> String {
    line(&playback_row(run, basis, row))
}

/// A line of `players.csv`: a player over its life; see [`PLAYER_COLUMNS`].
#[must_use]
pub fn player_line(row: &PlayerRow) -> String {
    line(&player_row(row))
}

/// The columns of [`requests`].
pub const REQUEST_COLUMNS: [&str; 11] = [
    "host",
    "path",
    "method",
    "status",
    "http_version",
    "requests",
    "body_bytes",
    "cut_off",
    "broken_off",
    "first_s",
    "last_s",
];

/// A line for each URI, method, status and version of HTTP; see [`REQUEST_COLUMNS`].
#[must_use]
pub fn requests(report: &RequestReport) -> String {
    let rows = report.uris.iter().map(|uri| {
        let mut cells =
            vec![uri.host.clone(), uri.path.clone(), uri.method.clone(), uri.status.clone()];
        let counts =
            [uri.http_version.into(), uri.requests, uri.body_bytes, uri.cut_off, uri.broken_off];
        cells.extend(counts.map(|count: u64| count.to_string()));
        cells.extend([uri.first_s, uri.last_s].map(|second| number(Some(second))));
        cells
    });
    table(&REQUEST_COLUMNS, rows)
}

/// The columns of [`requests_beside_log`].
pub const COMPARED_REQUEST_COLUMNS: [&str; 6] =
    ["method", "path", "status", "run", "log", "cut_off"];

/// A line for each method, path and status of the run or the log; see [`COMPARED_REQUEST_COLUMNS`].
/// Without a response `log` is empty.
#[must_use]
pub fn requests_beside_log(beside: &Beside) -> String {
    let rows = beside.uris.iter().map(|uri| {
        let theirs = uri.theirs.map_or_else(String::new, |theirs| theirs.to_string());
        let names = [&uri.method, &uri.path, &uri.status].map(Clone::clone);
        names.into_iter().chain([uri.ours.to_string(), theirs, uri.cut_off.to_string()]).collect()
    });
    table(&COMPARED_REQUEST_COLUMNS, rows)
}

/// The columns of [`hosts`]; labels are `name=value` with `;` between them.
pub const SERVER_COLUMNS: [&str; 6] = ["at_s", "host", "metric", "labels", "unit", "value"];

/// A line for every sample of every series of the watched hosts; see [`SERVER_COLUMNS`]. An empty
/// value ends a series.
#[must_use]
pub fn hosts(run: &RunData) -> String {
    let names: BTreeMap<HostId, &str> =
        run.host.hosts.iter().map(|info| (info.host, info.name.as_str())).collect();
    let series: HashMap<SeriesId, &HostSeries> =
        run.host.series.iter().map(|series| (series.id, series)).collect();
    let mut out = header(&SERVER_COLUMNS);
    // A series may have millions of samples; its name and labels are formatted once.
    for samples in run.host.samples.chunk_by(|a, b| a.series == b.series) {
        let Some(of) = samples.first().and_then(|first| series.get(&first.series)) else {
            continue;
        };
        let labels: Vec<_> =
            of.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let host =
            names.get(&of.host).map_or_else(|| of.host.0.to_string(), |name| (*name).to_owned());
        let fixed: Vec<_> =
            [&host, &of.metric, &labels.join(";")].into_iter().map(|cell| quoted(cell)).collect();
        let fixed = fixed.join(",");
        let unit = unit(of.unit);
        for sample in samples {
            let at_s = sample.at.as_secs_f64();
            let value = number(Some(sample.value).filter(|value| value.is_finite()));
            // Writing to a String cannot fail.
            let _ = write!(out, "{at_s},{fixed},{unit},{value}\r\n");
        }
    }
    out
}

/// The columns of [`conference`].
pub const PAIR_COLUMNS: [&str; 13] = [
    "from",
    "to",
    "kind",
    "expected",
    "plays",
    "first_frame_ms",
    "packets_received",
    "packets_lost",
    "loss_ratio",
    "delay_ms_p95",
    "freeze_count",
    "freeze_ratio",
    "planned",
];

/// A line for each stream from one participant to another; see [`PAIR_COLUMNS`]. `None` for a run
/// that was no conference.
#[must_use]
pub fn conference(run: &RunData) -> Option<String> {
    let matrix = Matrix::of(run)?;
    let rows = matrix.cells.iter().map(|((kind, from, to), cell)| {
        let counters = cell.track.map(|track| track.counters).unwrap_or_default();
        vec![
            from.0.to_string(),
            to.0.to_string(),
            kind.key().into(),
            cell.is_expected.to_string(),
            cell.plays().to_string(),
            number(cell.first_frame_ms()),
            counters.packets_received.to_string(),
            counters.packets_lost.to_string(),
            number(cell.loss_ratio()),
            number(cell.delay_ms_p95()),
            counters.freeze_count.to_string(),
            number(cell.freeze_ratio()),
            cell.is_planned.to_string(),
        ]
    });
    Some(table(&PAIR_COLUMNS, rows))
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::PerSecond => "per_second",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes_per_second",
        Unit::Ratio => "ratio",
        Unit::Milliseconds => "milliseconds",
    }
}

fn series_row(run: &RunData, row: &SeriesRow) -> Vec<String> {
    let at =
        |d: &Distribution, q, scale: f64| number(d.quantile(q).map(|value| value as f64 / scale));
    let mut one_way_delay = row.absolute_delay.clone();
    if run.has_wrong_sender_clock() {
        one_way_delay.withdraw(CaptureBasis::SenderReport);
    }
    let one_way = |q| number(one_way_delay.quantile_us(q).map(|us| us as f64 / 1e3));
    let c = &row.counters;
    // Media that does not come as packets has no figures of packets.
    let of_packets = |text: String| if c.has_packets() { text } else { String::new() };
    vec![
        row.second.to_string(),
        cohort(run, row.cohort.0),
        row.kind.map_or_else(String::new, |kind| kind.key().into()),
        row.tracks.to_string(),
        row.tracks_below_source_fps.to_string(),
        number(row.source_fps.mean_milli().map(|milli| f64::from(milli) / 1e3)),
        of_packets(c.wire_bytes.saturating_mul(8).to_string()),
        of_packets(c.packets_received.to_string()),
        of_packets(c.packets_lost.to_string()),
        number(c.loss_ratio()),
        at(&row.fps_milli, 0.05, 1e3),
        at(&row.fps_milli, 0.50, 1e3),
        at(&row.relative_delay_us, 0.50, 1e3),
        at(&row.relative_delay_us, 0.95, 1e3),
        at(&row.relative_delay_us, 0.99, 1e3),
        one_way(0.50),
        one_way(0.95),
        one_way_delay.basis().map_or_else(String::new, |basis| basis.key().into()),
        at(&row.jitter_us, 0.95, 1e3),
        of_packets(c.freeze_count.to_string()),
        of_packets(number(Some(c.freeze_us as f64 / 1e3))),
        of_packets(c.nack_sent.to_string()),
    ]
}

fn playback_cells(counters: &PlaybackCounters) -> Vec<String> {
    let c = counters;
    let mut cells: Vec<String> =
        [c.active_us, c.startup_us, c.stall_us, c.played_us, c.paused_us, c.media_us, c.wanted_us]
            .map(|us| number(Some(us as f64 / 1e6)))
            .into();
    cells.extend([number(c.stall_ratio()), number(c.delivery_ratio())]);
    let counts = [
        c.stall_count,
        c.seek_count,
        c.media_bytes,
        c.other_bytes,
        c.requests,
        c.requests_failed,
        c.connections,
        c.retransmitted,
        c.received_out_of_order,
        c.switches,
    ];
    cells.extend(counts.map(|count| count.to_string()));
    cells.push(number(Some(c.skipped_us as f64 / 1e6)));
    let of_versions =
        [c.responses_http1, c.responses_http2, c.responses_http3, c.missed, c.segments];
    cells.extend(of_versions.map(|count| count.to_string()));
    cells.push(number(c.segment_ratio()));
    cells.extend(
        [c.page_requests, c.page_requests_failed, c.page_bytes].map(|count| count.to_string()),
    );
    cells.extend(
        [c.peer_bytes, c.peer_segments, c.peer_failures, c.hash_reloads, c.uploaded_bytes]
            .map(|count| count.to_string()),
    );
    cells.push(number(Some(c.peers_us as f64 / 1e6)));
    let of_tracker = [
        c.announces,
        c.offers_received,
        c.answers_received,
        c.tracker_bytes_sent,
        c.tracker_bytes_received,
        c.tracker_reconnects,
    ];
    cells.extend(of_tracker.map(|count| count.to_string()));
    cells.extend([c.channel_received_bytes, c.channel_sent_bytes].map(|count| count.to_string()));
    cells.push(number(Some(c.channels_us as f64 / 1e6)));
    cells
}

fn playback_row(run: &RunData, basis: LatencyBasis, row: &PlaybackRow) -> Vec<String> {
    let seconds = |quantile| number(row.buffer_us.quantile(quantile).map(|us| us as f64 / 1e6));
    let delivery = |quantile: f64| {
        number(row.shortfall_ppm.quantile(1.0 - quantile).map(|ppm| 1.0 - ppm as f64 / 1e6))
    };
    let mut cells = vec![row.second.to_string(), cohort(run, row.cohort.0)];
    cells.extend([row.players, row.stalled, row.starting].map(|count| count.to_string()));
    cells.extend([seconds(0.05), seconds(0.50), delivery(0.05), delivery(0.50)]);
    let latency_us = row.latency_us_by(basis);
    cells.extend([0.50, 0.95].map(|q| number(latency_us.quantile(q).map(|us| us as f64 / 1e6))));
    cells.extend(playback_cells(&row.counters));
    cells
}

fn player_row(row: &PlayerRow) -> Vec<String> {
    let mut cells = vec![
        row.participant.0.to_string(),
        number(row.startup_us.map(|us| us as f64 / 1e6)),
        number(Some(row.buffer_us as f64 / 1e6)),
        number(row.delivery_ppm_min.map(|ppm| f64::from(ppm) / 1e6)),
    ];
    cells.extend(playback_cells(&row.counters));
    cells
}

fn participant_row(run: &RunData, row: &ParticipantRow) -> Vec<String> {
    let mut cells = vec![
        row.participant.0.to_string(),
        cohort(run, row.cohort.0),
        number(Some(row.intended_at.as_secs_f64())),
    ];
    cells.extend(
        Phase::ALL.iter().map(|phase| number(row.reached.get(phase).map(|at| at.as_secs_f64()))),
    );
    cells.push(number(row.ended_at.map(RunTime::as_secs_f64)));
    cells.extend(match &row.outcome {
        None => [String::new(), String::new(), String::new()],
        Some(Outcome::Completed) => ["completed".into(), String::new(), String::new()],
        Some(Outcome::Failed(failure)) => {
            ["failed".into(), failure.reason.key(), failure.detail.to_string()]
        }
    });
    cells.push(row.local_address.clone().unwrap_or_default());
    cells
}

fn cohort(run: &RunData, id: u16) -> String {
    run.info.cohorts.get(usize::from(id)).cloned().unwrap_or_else(|| id.to_string())
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value}"))
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = columns.join(",");
    out.push_str("\r\n");
    rows.for_each(|row| out.push_str(&line(&row)));
    out
}

fn line(cells: &[String]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| quoted(cell)).collect();
    cells.join(",") + "\r\n"
}

/// Quotes what RFC 4180 wants quoted. Failure details hold what a server said, so a text that a
/// spreadsheet would run as a formula gets an apostrophe (also behind blanks, and in the wide forms
/// that some read as the same), and what would do something to a terminal is written out: a row is
/// always one line.
fn quoted(cell: &str) -> String {
    let cell = untrusted::escaped(cell, usize::MAX);
    let begins = cell.trim_start();
    let is_formula = begins.starts_with(['=', '+', '@', '＝', '＋', '＠', '－'])
        || begins.starts_with('-') && begins.parse::<f64>().is_err();
    let cell = if is_formula { format!("'{cell}") } else { cell.into_owned() };
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_run_as_formulas() {
        for (cell, expect) in [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "'=1+1"),
            ("-5", "-5"),
            ("-x", "'-x"),
            (" =1", "' =1"),
            ("＝1", "'＝1"),
            ("=cmd|' /C calc'!A1", "'=cmd|' /C calc'!A1"),
            ("\t=1\r\n\u{1b}[2J", "\\t=1\\r\\n\\u{1b}[2J"),
        ] {
            assert_eq!(quoted(cell), expect);
        }
    }

    #[test]
    fn a_server_has_a_line_for_each_sample() {
        let run = crate::server::tests::watched();
        let csv = hosts(&run);
        assert_eq!(csv.lines().count(), run.host.samples.len() + 1);
        let line = csv.lines().nth(1).unwrap();
        assert_eq!(
            line,
            "-3.97,media one,thread.cpu,pid=4000;process=janus;thread=hloop 1;tid=4012,ratio,0"
        );
    }

    #[test]
    fn a_conference_has_a_line_for_each_stream_and_other_runs_no_table() {
        let csv = conference(&crate::conference::tests::lesson(4, 20, |_| 1.0)).unwrap();
        assert_eq!(csv.lines().count(), 1 + 4 * 3 * 2);
        assert!(csv.contains("\r\n0,1,video,true,true,"), "{csv}");
        assert!(conference(&crate::example::healthy(4, 20)).is_none());
    }

    #[test]
    fn every_line_has_every_column() {
        let run = crate::example::degraded();
        let cells = |line: String| line.strip_suffix("\r\n").map(|line| line.split(',').count());
        let (series, participants) = (Some(SERIES_COLUMNS.len()), Some(PARTICIPANT_COLUMNS.len()));
        assert_eq!(
            [header(&SERIES_COLUMNS), series_line(&run, &run.series[0])].map(cells),
            [series; 2]
        );
        let first = participant_line(&run, &run.participants[0]);
        assert_eq!([header(&PARTICIPANT_COLUMNS), first].map(cells), [participants; 2]);
    }

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
        let (playback, players) = (Some(PLAYBACK_COLUMNS.len()), Some(PLAYER_COLUMNS.len()));
        let second = playback_line(&run, LatencyBasis::PlaylistEdge, &run.playback[12]);
        assert!(second.starts_with("12,viewers,100,20,0,0,"), "{second}");
        assert_eq!([header(&PLAYBACK_COLUMNS), second].map(cells), [playback; 2]);
        let life = player_line(&player);
        assert!(life.starts_with("4,0.4,0,0.985,4,0,1,0,0,0,0,0.25,,0,"), "{life}");
        assert_eq!([header(&PLAYER_COLUMNS), life].map(cells), [players; 2]);
        let series = series_line(&run, &run.series[0]);
        assert_eq!(series.split(',').nth(6), Some(""), "{series}");
    }
}
