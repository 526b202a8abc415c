//! The HTTP requests of a run's players by URI and status, and beside the server's access log.

mod accounts;
mod comparison;
mod explain;
mod kept_paths;
mod log;
pub mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use throng_observation::masked::masked_request_path;
use throng_observation::run::RunInfo;
use throng_observation::{HttpRequestCounters, HttpRequestRow, HttpRequestTotals};

pub use accounts::{ErrorsOfMinute, KindOfUri, LogAccounts};
pub use comparison::{ComparedUri, LogAnswer, LogComparison};
pub use log::{LogLine, LogRequests, LogSelection};

/// The answer of `throng requests --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequestReport {
    /// The run's target.
    pub target: String,
    /// The sums of all requests, those without a response included.
    #[serde(flatten)]
    pub counters: HttpRequestCounters,
    /// Requests by status, or by why there was no response.
    pub by_status: BTreeMap<String, u64>,
    /// Requests of URIs beyond the limit of distinct ones, which are not listed.
    pub not_listed: u64,
    /// Requests by URI, those with the most first.
    pub uris: Vec<UriRequests>,
    /// The same requests in the server's log, where one was read.
    pub access_log: Option<LogComparison>,
}

/// The requests of one host, path, method, status and version.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UriRequests {
    /// Host, with the port that the URL names.
    pub host: String,
    /// Path without the query.
    pub path: String,
    /// Method.
    pub method: String,
    /// Status, or why there was no response.
    pub status: String,
    /// HTTP 1, 2 or 3; 0 without a response.
    pub http_version: u8,
    /// Their sums.
    #[serde(flatten)]
    pub counters: HttpRequestCounters,
    /// When the first was sent, seconds since the start of the run.
    pub first_s: f64,
    /// When the last ended.
    pub last_s: f64,
}

impl RequestReport {
    /// The requests of `rows`.
    #[must_use]
    pub fn of(info: &RunInfo, rows: &[HttpRequestRow]) -> Self {
        let mut totals = HttpRequestTotals::default();
        rows.iter().for_each(|row| totals.add(row));
        let (others, listed): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.key.is_others());
        Self {
            target: info.target.clone(),
            counters: totals.counters,
            by_status: by_status(&totals),
            not_listed: others.iter().map(|row| row.counters.requests).sum(),
            uris: listed.into_iter().map(UriRequests::of).collect(),
            access_log: None,
        }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

impl UriRequests {
    fn of(row: &HttpRequestRow) -> Self {
        Self {
            host: row.key.host.clone(),
            // Earlier versions kept signatures.
            path: masked_request_path(&row.key.path).into_owned(),
            method: row.key.method.clone(),
            status: row.key.outcome.key(),
            http_version: row.key.version,
            counters: row.counters,
            first_s: row.first_at.as_secs_f64(),
            last_s: row.last_at.as_secs_f64(),
        }
    }
}

/// Requests by the key of their outcome.
pub(crate) fn by_status(totals: &HttpRequestTotals) -> BTreeMap<String, u64> {
    totals.by_outcome.iter().map(|(outcome, requests)| (outcome.key(), *requests)).collect()
}

/// `12,345: 200 ×12,300, 206 ×40, no response (cancelled) ×5`; `None` without requests.
pub(crate) fn status_line(by_status: &BTreeMap<String, u64>) -> Option<String> {
    let mut all: Vec<(&String, u64)> =
        by_status.iter().map(|(key, requests)| (key, *requests)).collect();
    all.sort_by_key(|(_, requests)| std::cmp::Reverse(*requests));
    let parts =
        all.iter().map(|(key, requests)| format!("{} ×{}", status_words(key), grouped(*requests)));
    let parts: Vec<String> = parts.collect();
    let sum = all.iter().map(|(_, requests)| *requests).sum();
    (!parts.is_empty()).then(|| format!("{}: {}", grouped(sum), parts.join(", ")))
}

/// `404`, `no response (timeout)`.
pub(crate) fn status_words(key: &str) -> String {
    let is_status = key.bytes().all(|byte| byte.is_ascii_digit());
    if is_status { key.to_owned() } else { format!("no response ({})", key.replace('_', " ")) }
}

/// `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    throng_observation::units::grouped(number as f64, 0)
}

#[cfg(test)]
mod tests;
