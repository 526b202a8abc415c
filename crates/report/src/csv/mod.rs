//! `series.csv`, `participants.csv`, `playback.csv`, `players.csv`, `conference.csv` and
//! `hosts.csv`: the columns and rows of each, which other formats have too, and how rows are
//! written as CSV (RFC 4180): a header line, then a line a row. Absent figures are empty.

use throng_observation::run::{CohortId, RunData, SeriesRow};
use throng_observation::{
    CellType, Counter, Counters as _, SumUnit, TableCell, TableColumn, untrusted,
};

use crate::requests::{LogComparison, RequestReport};

mod conference;
pub use conference::{conference, pair_columns, pair_rows};
mod hosts;
pub use hosts::{HostRows, host_columns, hosts};
mod participants;
pub use participants::{participant_columns, participant_row};
mod players;
pub use players::{playback_columns, playback_row, player_columns, player_row};
mod run;
pub use run::{run_columns, run_row};
mod series;

/// The columns of [`series_row`].
#[must_use]
pub fn series_columns() -> Vec<TableColumn> {
    series::columns()
}

/// A row of `series.csv`: a second, cohort and kind; see [`series_columns`].
#[must_use]
pub fn series_row(run: &RunData, row: &SeriesRow) -> Vec<TableCell> {
    series::cells(run, row)
}

/// The first line of a table.
#[must_use]
pub fn header(columns: &[TableColumn]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    table(&names, std::iter::empty())
}

/// A line of a table.
#[must_use]
pub fn line(cells: &[TableCell]) -> String {
    let cells: Vec<_> = cells.iter().map(text).collect();
    cells.join(",") + "\r\n"
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
        let names = [&uri.host, &uri.path, &uri.method, &uri.status];
        let mut cells = names.map(|name| TableCell::from(name.as_str())).to_vec();
        cells.push(uri.http_version.into());
        cells.extend(uri.counters.sums().map(|(counter, value)| sum(counter, value)));
        cells.extend([uri.first_s, uri.last_s].map(TableCell::from));
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
        let names = [&uri.method, &uri.path, &uri.status];
        let mut cells = names.map(|name| TableCell::from(name.as_str())).to_vec();
        cells.extend([TableCell::from(uri.ours), uri.theirs.into(), uri.cut_off.into()]);
        cells
    });
    table(&COMPARED_REQUEST_COLUMNS, rows)
}

fn named(columns: &[(&str, CellType)]) -> Vec<TableColumn> {
    columns.iter().map(|(name, holds)| TableColumn::new(*name, *holds)).collect()
}

fn cohort(run: &RunData, id: CohortId) -> TableCell {
    let name = run.info.cohorts.get(usize::from(id.0)).cloned();
    name.unwrap_or_else(|| id.0.to_string()).into()
}

/// A sum; times are in seconds.
fn sum(counter: &Counter, sum: i64) -> TableCell {
    match counter.unit {
        SumUnit::Microseconds => TableCell::from(sum as f64 / 1e6),
        SumUnit::Count | SumUnit::Bytes => sum.into(),
    }
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<TableCell>>) -> String {
    let mut out = columns.join(",");
    out.push_str("\r\n");
    rows.for_each(|row| out.push_str(&line(&row)));
    out
}

/// A cell; an absent one is empty.
fn text(cell: &TableCell) -> String {
    match cell {
        TableCell::Absent => String::new(),
        TableCell::Integer(number) => number.to_string(),
        TableCell::Number(number) => number.to_string(),
        TableCell::Text(text) => quoted(text),
        TableCell::Flag(flag) => flag.to_string(),
    }
}

/// Quotes what RFC 4180 wants quoted. Failure details hold what a server said, so no spreadsheet
/// may run them as formulas, and what would do something to a terminal is written out: a row is
/// always one line.
fn quoted(cell: &str) -> String {
    let cell = no_formula(&untrusted::escaped(cell, usize::MAX));
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

/// What begins a formula; the wide forms some spreadsheets read as the same.
const FORMULAS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A text with an apostrophe before what a spreadsheet would run, also behind blanks and quotes. In
/// countries that write numbers with a comma, spreadsheets split at `;`, in quoted cells too: to
/// them a quote is one only where the line or a cell of theirs begins.
fn no_formula(cell: &str) -> String {
    let begins = cell.trim_start();
    if begins.starts_with('-') && begins.parse::<f64>().is_ok() {
        return cell.to_owned();
    }
    let mut out = String::with_capacity(cell.len());
    for (at, part) in cell.split(';').enumerate() {
        out.push_str(if at > 0 { ";" } else { "" });
        let begins = part.trim_start_matches(|c: char| c.is_whitespace() || c == '"');
        out.push_str(if begins.starts_with(FORMULAS) { "'" } else { "" });
        out.push_str(part);
    }
    out
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
            ("x;=HYPERLINK(A1);y", "x;'=HYPERLINK(A1);y"),
            ("x; -1;;@y;-1", "x;' -1;;'@y;'-1"),
            ("x;\"=A1;y", "\"x;'\"\"=A1;y\""),
            ("pid=7;thread=-x;", "pid=7;thread=-x;"),
            ("\t=1\r\n\u{1b}[2J", "\\t=1\\r\\n\\u{1b}[2J"),
        ] {
            assert_eq!(quoted(cell), expect);
        }
    }

    #[test]
    fn every_row_has_every_column_and_cells_of_its_kind() {
        let run = crate::example::degraded();
        let check = |columns: Vec<TableColumn>, cells: Vec<TableCell>| {
            assert_eq!(cells.len(), columns.len());
            for (column, cell) in columns.iter().zip(cells) {
                let holds = cell.holds();
                assert!(holds.is_none_or(|holds| holds == column.holds), "{column:?} {cell:?}");
            }
            assert_eq!(header(&columns).split(',').count(), columns.len());
        };
        check(series_columns(), series_row(&run, &run.series[0]));
        check(participant_columns(), participant_row(&run, &run.participants[0]));
        check(run_columns(), run_row(&run));
        let watched = crate::server::tests::watched();
        let sample = HostRows::of(&watched.host).sample(&watched.host.samples[0]);
        check(host_columns(), sample.unwrap());
        let lesson = crate::conference::tests::lesson(4, 20, |_| 1.0);
        pair_rows(&lesson).unwrap().into_iter().for_each(|row| check(pair_columns(), row));
        let players = crate::playback::tests::players(20);
        let basis = throng_observation::LatencyBasis::PlaylistEdge;
        check(playback_columns(), playback_row(&players, basis, &players.playback[12]));
    }
}
