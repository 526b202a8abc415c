//! `series.csv`, `participants.csv`, `playback.csv`, `players.csv`, `conference.csv` and
//! `hosts.csv` (RFC 4180): a header line, then a line a row. Absent figures are empty.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use throng_observation::host::{HostId, HostSeries, SeriesId, Unit};
use throng_observation::run::{ParticipantId, ParticipantRow, RunData, SeriesRow};
use throng_observation::untrusted;
use throng_observation::{Counter, MediaKind, Outcome, Phase, RunTime, SumUnit};

use crate::conference::{Cell, Matrix};
use crate::requests::{LogComparison, RequestReport};

mod players;
pub use players::{playback_columns, playback_line, player_columns, player_line};
mod series;

/// The columns of [`series_line`].
#[must_use]
pub fn series_columns() -> Vec<&'static str> {
    series::columns()
}

/// The columns of [`participant_line`]; every `_s` is seconds since the run's first intended join.
#[must_use]
pub fn participant_columns() -> Vec<String> {
    let begin = ["participant", "cohort", "intended_s"].map(str::to_owned);
    let phases = Phase::ALL.map(|phase| format!("{}_s", phase.key()));
    let end = ["ended_s", "outcome", "failure_reason", "failure_detail", "local_address"];
    begin.into_iter().chain(phases).chain(end.map(str::to_owned)).collect()
}

/// The first line of a table.
#[must_use]
pub fn header(columns: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
    table(&names, std::iter::empty())
}

/// A line of `series.csv`: a second, cohort and kind; see [`series_columns`].
#[must_use]
pub fn series_line(run: &RunData, row: &SeriesRow) -> String {
    line(&series::cells(run, row))
}

/// A line of `participants.csv`; see [`participant_columns`].
#[must_use]
pub fn participant_line(run: &RunData, row: &ParticipantRow) -> String {
    line(&participant_row(run, row))
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
pub fn requests_beside_log(beside: &LogComparison) -> String {
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

/// Between whom a stream is.
type Pair = (MediaKind, ParticipantId, ParticipantId);

/// What stands in a column of the streams of a conference.
type OfPair = fn(&Pair, &Cell<'_>) -> String;

/// The columns of [`conference`], each with its cell.
const OF_PAIR: &[(&str, OfPair)] = &[
    ("from", |(_, from, _), _| from.0.to_string()),
    ("to", |(_, _, to), _| to.0.to_string()),
    ("kind", |(kind, ..), _| kind.key().into()),
    ("expected", |_, cell| cell.is_expected.to_string()),
    ("plays", |_, cell| cell.plays().to_string()),
    ("first_frame_ms", |_, cell| number(cell.first_frame_ms())),
    ("packets_original", |_, cell| cell.counters().packets_original.to_string()),
    ("packets_lost", |_, cell| cell.counters().packets_lost.to_string()),
    ("loss_ratio", |_, cell| number(cell.loss_ratio())),
    ("delay_ms_p95", |_, cell| number(cell.delay_ms_p95())),
    ("freeze_count", |_, cell| cell.freeze_count().to_string()),
    ("freeze_ratio", |_, cell| number(cell.freeze_ratio())),
    ("planned", |_, cell| cell.is_planned.to_string()),
];

/// The columns of [`conference`].
#[must_use]
pub fn pair_columns() -> Vec<&'static str> {
    OF_PAIR.iter().map(|(name, _)| *name).collect()
}

/// A line for each stream from one participant to another; see [`pair_columns`]. `None` for a run
/// that was no conference.
#[must_use]
pub fn conference(run: &RunData) -> Option<String> {
    let matrix = Matrix::of(run)?;
    let rows = matrix
        .cells
        .iter()
        .map(|(pair, cell)| OF_PAIR.iter().map(|(_, of)| of(pair, cell)).collect());
    Some(table(&pair_columns(), rows))
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

/// A sum; times are in seconds.
fn sum(counter: &Counter, sum: i64) -> String {
    match counter.unit {
        SumUnit::Microseconds => number(Some(sum as f64 / 1e6)),
        SumUnit::Count | SumUnit::Bytes => sum.to_string(),
    }
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
        let columns = participant_columns();
        let participants = Some(columns.len());
        let first = participant_line(&run, &run.participants[0]);
        assert_eq!([header(&columns), first].map(cells), [participants; 2]);
    }
}
