//! What an access log has in the run's time by kind of URI, whoever asked: bytes, and answers 5xx
//! by minute.

use std::collections::BTreeMap;

use serde::Serialize;

use super::LogLine;

/// Seconds of a minute.
const MINUTE_S: i64 = 60;

/// The answers of a log by kind of URI.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LogAccounts {
    /// Answers of all user agents.
    pub answers: u64,
    /// Bytes of them, as the log counts them.
    pub bytes: u64,
    /// By kind of URI, the most bytes first.
    pub kinds: Vec<KindOfUri>,
    /// Answers 5xx by minute, kind and status, in order of time; only of lines with a time.
    pub errors_by_minute: Vec<ErrorsOfMinute>,
}

/// The answers of one kind of URI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindOfUri {
    /// The kind, as a knowledge pack names it.
    pub uris: String,
    /// Answers.
    pub answers: u64,
    /// Those of them with a status of 500 and more.
    pub errors: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The answers of a minute to one kind of URI with one status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorsOfMinute {
    /// The beginning of the minute, seconds since 1970.
    pub minute_unix_s: i64,
    /// The kind of URI.
    pub uris: String,
    /// The status.
    pub status: u16,
    /// Answers.
    pub answers: u64,
}

/// Counts lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    kinds: BTreeMap<String, KindOfUri>,
    errors: BTreeMap<(i64, String, u16), u64>,
}

impl Accounts {
    pub(super) fn add(&mut self, line: &LogLine<'_>) {
        let is_error = line.status >= 500;
        if !self.kinds.contains_key(line.kind) {
            self.kinds.insert(
                line.kind.to_owned(),
                KindOfUri { uris: line.kind.to_owned(), ..KindOfUri::default() },
            );
        }
        if let Some(kind) = self.kinds.get_mut(line.kind) {
            kind.answers += 1;
            kind.errors += u64::from(is_error);
            kind.bytes = kind.bytes.saturating_add(line.bytes);
        }
        if let Some(at) = line.at_unix_s.filter(|_| is_error) {
            let minute = (at as i64).div_euclid(MINUTE_S) * MINUTE_S;
            *self.errors.entry((minute, line.kind.to_owned(), line.status)).or_default() += 1;
        }
    }

    pub(super) fn finish(&self) -> LogAccounts {
        let mut kinds: Vec<KindOfUri> = self.kinds.values().cloned().collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse((kind.bytes, kind.answers)));
        let errors_by_minute =
            self.errors.iter().map(|((minute_unix_s, uris, status), answers)| ErrorsOfMinute {
                minute_unix_s: *minute_unix_s,
                uris: uris.clone(),
                status: *status,
                answers: *answers,
            });
        LogAccounts {
            answers: kinds.iter().map(|kind| kind.answers).sum(),
            bytes: kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.bytes)),
            errors_by_minute: errors_by_minute.collect(),
            kinds,
        }
    }
}
