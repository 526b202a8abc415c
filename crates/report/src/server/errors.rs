//! Answers 5xx by URI group and minute, as access logs have them.

use std::collections::BTreeMap;

use throng_observation::host::catalogue::ACCESS_SERVER_ERRORS;

use super::Host;

/// A minute of the run, microseconds.
const MINUTE_US: i64 = 60_000_000;

/// The answers of one URI group with one status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ErrorsOfUri {
    pub(crate) uri_group: String,
    /// `502`.
    pub(crate) status: String,
    /// By minute of the run, from its start; the last one ends with the run.
    pub(crate) by_minute: Vec<u64>,
}

impl ErrorsOfUri {
    /// Answers of the whole run.
    pub(crate) fn answers(&self) -> u64 {
        self.by_minute.iter().sum()
    }

    /// The most in a minute, and that minute, from 0; the first of equal ones.
    pub(crate) fn worst(&self) -> (u64, usize) {
        let worst =
            self.by_minute.iter().enumerate().max_by_key(|(at, count)| (**count, usize::MAX - at));
        worst.map_or((0, 0), |(at, count)| (*count, at))
    }
}

/// Minutes that are counted: a month and more. A damaged run may claim to have lasted for ever.
const MINUTES_MAX: i64 = 50_000;

/// The answers 5xx of the run, the most first; those of several logs are added up.
pub(crate) fn of(host: &Host<'_>) -> Vec<ErrorsOfUri> {
    let (from, until) = (host.window.from_us, host.window.until_us);
    let lasted_us = until.saturating_sub(from).clamp(0, MINUTES_MAX * MINUTE_US);
    let minutes = (lasted_us + MINUTE_US - 1) / MINUTE_US;
    let mut all: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for series in host.metric(ACCESS_SERVER_ERRORS) {
        let by_minute = all.entry((series.label("uri_group"), series.label("status"))).or_default();
        by_minute.resize(minutes as usize, 0);
        // A sum may begin before the run.
        let mut before = series.value_at(from).unwrap_or(0.0);
        for (minute, count) in (1..).zip(by_minute) {
            let sum = series
                .value_at(from.saturating_add(minute * MINUTE_US).min(until))
                .unwrap_or(before);
            *count += (sum - before).max(0.0).round() as u64;
            before = sum;
        }
    }
    let mut all: Vec<ErrorsOfUri> = all
        .into_iter()
        .map(|((group, status), by_minute)| ErrorsOfUri {
            uri_group: if group.is_empty() { "all" } else { group }.to_owned(),
            status: status.to_owned(),
            by_minute,
        })
        .filter(|errors| errors.answers() > 0)
        .collect();
    all.sort_by_key(|errors| std::cmp::Reverse(errors.answers()));
    all
}
