//! The requests of players by URI and status: a table that exists only in runs with players.

use rusqlite::Connection;
use throng_observation::{HttpRequestKey, HttpRequestRow, HttpRequestTotals};

use crate::table::{self, Nested, Stored, Sums, columns};

columns! { HttpRequestKey { host, path, method, outcome = "status", version = "http_version" } }

columns! { HttpRequestRow {
    key as Nested, counters as Sums, first_at = "first_us", last_at = "last_us",
} }

impl Stored for HttpRequestRow {
    const TABLE: &'static str = "http_requests";
    const IS_OF_CROWD: bool = true;
    const KEY: &'static str = "host, path, method, status, http_version";
    const ORDER: &'static str = "requests DESC, host, path, method, status, http_version";
}

/// Adds up all requests.
pub(crate) fn totals(db: &Connection) -> rusqlite::Result<HttpRequestTotals> {
    let mut totals = HttpRequestTotals::default();
    // In the order of the table, which needs no sort.
    table::each(
        db,
        HttpRequestRow::KEY,
        |_| None,
        |row| {
            totals.add(&row);
            true
        },
    )?;
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use throng_observation::run::{Ending, Row, RunInfo};
    use throng_observation::{HttpRequestCounters, NoResponse, RequestOutcome, RunTime};

    use super::*;
    use crate::RunFolder;

    fn row(path: &str, outcome: RequestOutcome, requests: u64) -> HttpRequestRow {
        HttpRequestRow {
            key: HttpRequestKey {
                host: "live.example:8443".into(),
                path: path.into(),
                method: "GET".into(),
                outcome,
                version: if matches!(outcome, RequestOutcome::Status(_)) { 2 } else { 0 },
            },
            counters: HttpRequestCounters {
                requests,
                body_bytes: 1 << 40,
                cut_off: 1,
                broken_off: 0,
            },
            first_at: RunTime(-5),
            last_at: RunTime(7_000_000),
        }
    }

    #[test]
    fn requests_read_back_and_a_later_row_of_a_key_replaces_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut writer = RunFolder::create(&path, &RunInfo::default()).unwrap();
        assert!(RunFolder::http_requests(&path).unwrap().is_empty(), "a run without players");
        let (ok, cancelled) =
            (RequestOutcome::Status(200), RequestOutcome::NoResponse(NoResponse::Cancelled));
        writer.write(Row::HttpRequests(Box::new(row("/a.ts", ok, 3))));
        writer.commit().unwrap();
        for row in [row("/a.ts", ok, 5), row("/b.ts", ok, 9), row("/a.ts", cancelled, 1)] {
            writer.write(Row::HttpRequests(Box::new(row)));
        }
        writer.finish(Ending::Complete, RunTime(1)).unwrap();
        let rows = RunFolder::http_requests(&path).unwrap();
        assert_eq!(rows, [row("/b.ts", ok, 9), row("/a.ts", ok, 5), row("/a.ts", cancelled, 1)]);
        let totals = RunFolder::read(&path).unwrap().http_requests;
        assert_eq!(totals.by_outcome, BTreeMap::from([(ok, 14), (cancelled, 1)]));
        let body_bytes = 3 << 40;
        let sums = HttpRequestCounters { requests: 15, body_bytes, cut_off: 3, broken_off: 0 };
        assert_eq!(totals.counters, sums);
    }
}
