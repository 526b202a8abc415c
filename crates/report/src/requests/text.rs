//! The requests of a run in the terminal.

use std::fmt::Write as _;

use throng_observation::units::{bytes, percent};

use super::{
    ComparedUri, LogAccounts, LogAnswer, LogComparison, RequestReport, grouped, status_line,
    status_words,
};
use crate::columns::{columns, said};

/// The requests, and beside a log where one was read; at most `rows_max` URIs.
#[must_use]
pub fn summary(report: &RequestReport, rows_max: usize) -> String {
    let Some(statuses) = status_line(&report.by_status) else {
        return "no player has made a request\n".into();
    };
    let sums = &report.counters;
    let mut out = format!("requests  {statuses}; {} of bodies\n", bytes(sums.body_bytes as f64));
    for (count, words) in [
        (sums.cut_off, "cut off by their players: they left, sought, or no longer needed the body"),
        (sums.broken_off, "responses broke or ended early"),
        (report.not_listed, "of URIs beyond the limit of distinct ones, which are not listed"),
    ] {
        if count > 0 {
            let _ = writeln!(out, "          {} {words}", grouped(count));
        }
    }
    match &report.access_log {
        Some(beside) => out += &beside_text(beside, rows_max),
        None => out += &uris(report, rows_max),
    }
    out
}

fn uris(report: &RequestReport, rows_max: usize) -> String {
    let mut rows = vec![head(&["requests", "status", "HTTP", "bytes", "cut off", "URI"])];
    rows.extend(report.uris.iter().take(rows_max).map(|uri| {
        vec![
            grouped(uri.counters.requests),
            status_words(&uri.status),
            if uri.http_version == 0 { "–".into() } else { uri.http_version.to_string() },
            bytes(uri.counters.body_bytes as f64),
            grouped(uri.counters.cut_off),
            format!("{} {}{}", uri.method, uri.host, uri.path),
        ]
    }));
    format!("\n{}{}", columns(&rows), more(report.uris.len(), rows_max))
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn more(all: usize, rows_max: usize) -> String {
    let left = all.saturating_sub(rows_max);
    if left == 0 {
        String::new()
    } else {
        format!("and {} more: --top, --json, --csv\n", grouped(left as u64))
    }
}

fn beside_text(beside: &LogComparison, rows_max: usize) -> String {
    let mut out = format!("log       {}\n", lines(beside));
    let (from, to) = (clock(beside.from_unix_s), clock(beside.to_unix_s));
    let _ = writeln!(
        out,
        "          compared: {from} to {to} UTC, a second more on each side than the requests, as \
         logs have whole seconds"
    );
    let differing: Vec<&ComparedUri> =
        beside.uris.iter().filter(|uri| uri.difference() != 0).collect();
    let _ = writeln!(out, "\n{}", answer(beside, differing.len()));
    said(&mut out, "  ", &beside.remarks);
    let shown: Vec<&ComparedUri> =
        if differing.is_empty() { beside.uris.iter().collect() } else { differing };
    let mut rows = vec![head(&["run", "log", "difference", "status", "URI"])];
    rows.extend(shown.iter().take(rows_max).map(|uri| row(uri)));
    let _ = write!(out, "\n{}{}", columns(&rows), more(shown.len(), rows_max));
    out
}

fn row(uri: &ComparedUri) -> Vec<String> {
    let difference = match (uri.theirs, uri.difference()) {
        (None, _) => String::new(),
        (_, 0) => "0".into(),
        (_, more) if more > 0 => format!("+{}", grouped(more.unsigned_abs())),
        (_, fewer) => format!("−{}", grouped(fewer.unsigned_abs())),
    };
    vec![
        grouped(uri.ours),
        uri.theirs.map_or_else(|| "?".into(), grouped),
        difference,
        status_words(&uri.status),
        format!("{} {}", uri.method, uri.path),
    ]
}

/// `1,200 lines: 980 compared, 180 of other user agents, …`.
fn lines(beside: &LogComparison) -> String {
    let parts = [
        (beside.theirs, "compared"),
        (beside.lines_at_other_times, "at other times"),
        (beside.lines_elsewhere, "of other paths"),
        (beside.lines_of_others, "of other user agents"),
        (beside.lines_unread, "in an unsupported format"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, words)| format!("{} {words}", grouped(count))).collect();
    format!("{} lines: {}", grouped(beside.lines), parts.join(", "))
}

fn answer(beside: &LogComparison, differing: usize) -> String {
    let (ours, theirs) = (grouped(beside.ours), grouped(beside.theirs));
    let uris = beside.uris.iter().filter(|uri| uri.theirs.is_some()).count();
    match beside.answer {
        LogAnswer::Equal => {
            format!(
                "EQUAL     {ours} answered requests in both, the same for each of {uris} URIs and \
                 statuses"
            )
        }
        LogAnswer::EqualButForCutOff => format!(
            "EQUAL     {ours} answered requests, {theirs} in the log; the difference is of \
             requests that players ended"
        ),
        LogAnswer::Differs => format!(
            "DIFFERS   {ours} answered requests, {theirs} in the log; {differing} of {uris} URIs \
             and statuses differ"
        ),
        LogAnswer::NothingToCompare => {
            format!(
                "NOTHING   {ours} answered requests, {theirs} in the log: there is nothing to \
                 compare"
            )
        }
    }
}

/// What the log has by kind of URI, whoever asked; and its answers 5xx by minute.
#[must_use]
pub fn accounts(accounts: &LogAccounts) -> String {
    let LogAccounts { answers, bytes: all, kinds, errors_by_minute } = accounts;
    let of_all =
        |part: u64| if *all > 0 { percent(part as f64 / *all as f64) } else { "–".into() };
    let mut rows = vec![head(&["bytes", "share", "answers", "of them 5xx", "kind of URI"])];
    rows.extend(kinds.iter().map(|kind| {
        let counts = [kind.answers, kind.errors].map(grouped);
        let [answers, errors] = counts;
        vec![bytes(kind.bytes as f64), of_all(kind.bytes), answers, errors, kind.uris.clone()]
    }));
    let mut out = format!(
        "\nin the same time, of all user agents: {} in {} answers\n\n{}",
        bytes(*all as f64),
        grouped(*answers),
        columns(&rows)
    );
    if !errors_by_minute.is_empty() {
        let mut rows = vec![head(&["minute (UTC)", "status", "answers", "kind of URI"])];
        rows.extend(errors_by_minute.iter().map(|errors| {
            let minute = clock(errors.minute_unix_s as f64);
            vec![minute, errors.status.to_string(), grouped(errors.answers), errors.uris.clone()]
        }));
        let _ = write!(out, "\nanswers 5xx a minute\n\n{}", columns(&rows));
    }
    out
}

/// Time of day in UTC.
fn clock(unix_s: f64) -> String {
    let second = (unix_s.max(0.0) as u64) % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}
