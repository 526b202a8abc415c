//! A hard ceiling: a number of users is served well and no further one is. The server refuses by
//! its configuration, or by a bug.

use throng_observation::host::catalogue::LOG_LINES;
use throng_observation::run::ParticipantRow;
use throng_observation::units::{count, percent};
use throng_observation::{FailureReason, Outcome, RefusalKind, RunTime};

use super::address_limit;
use super::line::sent_text;
use super::never_connected;
use super::{CONNECTED, Candidate, CheckResult, Evidence, NOT_SERVED, NoFinding, ruled_out};
use crate::context::{Context, Reading};

pub(super) const KEY: &str = "configured_ceiling";
const RESOURCE: &str = "configuration of the server";
/// Share of the bad user-seconds that are of users that were not served at all.
const NOT_SERVED_MIN: f64 = 0.90;
/// Share of the failures that must be of what does not exist for that to be why.
const MISSING_MIN: f64 = 0.5;

/// Patterns of knowledge packs for log lines in which a server reports that its limit of
/// connections, or of users, is reached. Some then close connections, or accept none until some end
/// (nginx, lighttpd): no participant is told so.
const LIMIT_LINES: &[&str] = &["worker_connections", "connection_limit"];

/// Whether a server that is full by its configuration may refuse with this reason. A licence that
/// is used up may be told like a wrong key. What does not exist or is never done is not full, and a
/// rate for each address is [`address_limit`].
fn is_refusal(reason: &FailureReason) -> bool {
    match reason.refusal() {
        Some(
            RefusalKind::Full
            | RefusalKind::Credentials
            | RefusalKind::Forbidden
            | RefusalKind::Other,
        ) => true,
        Some(RefusalKind::RatePerAddress | RefusalKind::Missing | RefusalKind::Unsupported)
        | None => false,
    }
}

/// Whether a participant failed before it was served: it met no end of what it had.
fn is_join(row: &ParticipantRow) -> bool {
    !row.was_connected() || !row.was_playing() && row.failure() == Some(&FailureReason::NoMedia)
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let users = &context.users;
    if users.bad_ratio.fail.is_none() {
        return Err(NoFinding::NotMonitored("the users' experience"));
    }
    if users.not_served.fail() < NOT_SERVED_MIN {
        return ruled_out(format!(
            "Refusals: {} of the bad seconds are of users that were not served at all",
            percent(users.not_served.fail())
        ));
    }
    if users.served.fail.is_some_and(|served| served < 1.0) {
        return ruled_out(
            "Refusals: nobody was served while users failed, so the server has reached no maximum",
        );
    }
    let is_refused = |row: &ParticipantRow| is_join(row) && row.failure().is_some_and(is_refusal);
    let (refused, last_refusal) = failed(context, is_refused);
    let reported = context.log_lines(LIMIT_LINES);
    let candidate = if reported.begins() {
        with_log_lines(context, reported, last_refusal)
    } else if refused.fail() > 0.0 {
        with_refusals(context, refused, last_refusal)
    } else {
        // Users that fail at the same number without a refusal may have met a silent ceiling.
        let is_of_server = |reason: &FailureReason| !reason.is_ours();
        let is_such = |row: &ParticipantRow| {
            is_join(row)
                && row.failure().is_some_and(is_of_server)
                && !address_limit::is_refused(row)
        };
        let (failures, last_failure) = failed(context, is_such);
        if failures.fail() == 0.0 {
            let is_limited = failed(context, address_limit::is_refused).0.fail() > 0.0;
            let state = "Refusals: the server refused no participant";
            return if is_limited { Err(NoFinding::NotApplicable) } else { ruled_out(state) };
        }
        without_refusals(context, failures, refused, last_failure)
    };
    let mut evidence = candidate.evidence;
    let delay = format!("delay of the served users' frames, median ({})", sent_text(context));
    evidence.extend([
        Evidence::ratio(NOT_SERVED, users.not_served),
        Evidence::count(CONNECTED, users.connected),
        Evidence::milliseconds(delay, users.delay_ms),
    ]);
    // Nothing queues at a ceiling.
    let crossed_at_s = context.first_bad_s();
    Ok(Candidate { evidence, queue: None, crossed_at_s, ..candidate })
}

fn with_refusals(context: &Context<'_>, refused: Reading, last: Option<String>) -> Candidate {
    let served = context.users.served.fail();
    let hint = it_said(last);
    let title =
        format!("The server takes {} and refuses more, with resources to spare", users(served));
    Candidate {
        used: 1.0,
        refuses: refused.begins(),
        evidence: vec![Evidence::count("participants refused by the server", refused).decides()],
        change: format!(
            "Look for a maximum of about {served:.0} users, rooms or ports in the server's \
             configuration and licence{hint}"
        ),
        ..Candidate::new(KEY, title, RESOURCE)
    }
}

fn it_said(last: Option<String>) -> String {
    last.map_or_else(String::new, |said| format!(" (it said: {said})"))
}

/// `1 user`, `2 users`.
fn users(number: f64) -> String {
    count(number.round() as u64, "users")
}

fn with_log_lines(context: &Context<'_>, reported: Reading, last: Option<String>) -> Candidate {
    let connected = context.users.connected.fail();
    let all = context.host.metric(LOG_LINES).iter();
    let log_lines: Vec<_> =
        all.filter(|series| LIMIT_LINES.contains(&series.label("pattern"))).collect();
    let setting = log_lines.iter().find_map(|lines| {
        context.knowledge.log(lines.label("pattern")).and_then(|known| known.hint.as_deref())
    });
    let setting = setting.map_or_else(String::new, |hint| format!(": {hint}"));
    let title =
        format!("The server's own limit is reached with {}, as its log says", users(connected));
    Candidate {
        used: 1.0,
        refuses: true,
        series: log_lines.iter().map(|series| series.series.id).collect(),
        evidence: vec![
            Evidence::count("log lines that report the limit", reported)
                .limit(0.0)
                .of_events()
                .decides(),
        ],
        change: format!("Raise the limit in the server's configuration{setting}{}", it_said(last)),
        ..Candidate::new(KEY, title, RESOURCE)
    }
}

fn without_refusals(
    context: &Context<'_>,
    failures: Reading,
    refused: Reading,
    last: Option<String>,
) -> Candidate {
    let served = context.users.served.fail();
    let hint = last.map_or_else(String::new, |said| format!(" (the last: {said})"));
    let is_missing = |row: &ParticipantRow| {
        row.failure().and_then(FailureReason::refusal) == Some(RefusalKind::Missing)
    };
    let (missing, _) = failed(context, is_missing);
    let (why, change) = if missing.fail() > MISSING_MIN * failures.fail() {
        let change = never_connected::change(&FailureReason::NoSuchRoom);
        ("because the server does not have what they ask for", format!("{change}{hint}"))
    } else {
        let change = format!(
            "Find out why they failed{hint}: a maximum of about {served:.0} that is not reported \
             (ports, sessions), or a blocked network path"
        );
        ("though the server refused none", change)
    };
    let served = users(served);
    let are = if served.starts_with("1 ") { "is" } else { "are" };
    let title = format!("{served} {are} served and further ones fail, {why}");
    Candidate {
        used: 0.6,
        evidence: vec![
            Evidence::count("participants that failed", failures).decides(),
            Evidence::count("participants refused by the server", refused),
        ],
        change,
        at_most: super::score::CAP_COMPANY,
        ..Candidate::new(KEY, title, RESOURCE)
    }
}

/// Participants that failed in such a way in each window (those of the onset count to the failing
/// load), and the detail of the last failure.
pub(super) fn failed(
    context: &Context<'_>,
    is_such: impl Fn(&ParticipantRow) -> bool,
) -> (Reading, Option<String>) {
    let such = || context.run.participants.iter().filter(|row| is_such(row));
    let within = context.reading(|window| {
        let within = |at: &RunTime| (window.from_us..=window.until_us).contains(&at.0);
        Some(such().filter(|row| row.ended_at.as_ref().is_some_and(within)).count() as f64)
    });
    let near = || such().filter(|row| row.ended_at.is_some_and(|at| context.is_near_failure(at)));
    let said = near().last().and_then(|row| match &row.outcome {
        Some(Outcome::Failed(failure)) => Some(failure.detail.to_string()),
        _ => None,
    });
    (Reading { fail: Some(within.fail().max(near().count() as f64)), ..within }, said)
}
