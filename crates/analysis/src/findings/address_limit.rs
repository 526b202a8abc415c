//! The server limits how often one address may ask (HTTP 429): a crowd behind one address meets
//! that rule long before the server's capacity, and says nothing about it.
//!
//! Detected from the participants' failures alone.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use throng_observation::run::ParticipantRow;
use throng_observation::{FailureReason, RefusalKind};

use super::configured_ceiling::failed;
use super::score::CAP_COMPANY;
use super::{Candidate, CheckResult, Evidence, NOT_SERVED, NoFinding};
use crate::context::{Context, Reading};

pub(super) const KEY: &str = "address_limit";
/// Least share of the bad user-seconds that are of users that were not served, and of the failures
/// that are such refusals: below it other failures explain more.
const MOST_MIN: f64 = 0.5;

/// Whether the server refused a participant by a rule for each address.
pub(super) fn is_refused(row: &ParticipantRow) -> bool {
    row.failure().and_then(FailureReason::refusal) == Some(RefusalKind::RatePerAddress)
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let (refused, last) = failed(context, is_refused);
    if refused.fail() == 0.0 {
        return Err(NoFinding::NotApplicable);
    }
    let (failures, _) =
        failed(context, |row| row.failure().is_some_and(|reason| !reason.is_ours()));
    let not_served = context.users.not_served;
    let is_most = not_served.fail() >= MOST_MIN && refused.fail() >= MOST_MIN * failures.fail();
    let hint = last.map_or_else(String::new, |said| format!(" (it said: {said})"));
    let mut evidence = vec![
        Evidence::count("participants refused for their rate of requests (HTTP 429)", refused)
            .decides(),
        Evidence::ratio(NOT_SERVED, not_served),
        Evidence::count("participants that failed", failures),
    ];
    let all = addresses(context, |_| true);
    if all > 0 {
        let of = Reading::at_failure(all as f64);
        evidence.push(Evidence::count("local addresses of the crowd's media", of));
    }
    // A limit that several addresses meet may be of each of them, of a token or account, or of all
    // requests.
    let is_of_several = addresses(context, is_refused) > 1;
    let title = if is_of_several {
        "The server limits the rate of requests (HTTP 429), per address, per user or in total"
    } else {
        "The server limits the rate of requests per address (HTTP 429), which is not its capacity"
    };
    Ok(Candidate {
        used: 1.0,
        refuses: refused.begins(),
        crossed_at_s: context.first_bad_s(),
        evidence,
        change: format!(
            "Give the crowd more addresses (--source-ip, source_ips of a cohort), let users join \
             more slowly, or raise the server's rate limit for the generator's address{hint}: how \
             many users the server can serve is not known from this run"
        ),
        at_most: if is_most && !is_of_several { 100.0 } else { CAP_COMPANY },
        ..Candidate::new(KEY, title, "rate limit per address")
    })
}

/// Distinct local addresses of such participants; 0 where none is known.
fn addresses(context: &Context<'_>, is_such: impl Fn(&ParticipantRow) -> bool) -> usize {
    let address = |row: &ParticipantRow| row.local_address.as_ref()?.parse::<SocketAddr>().ok();
    let rows = context.run.participants.iter().filter(|row| is_such(row));
    let all = rows.filter_map(address).map(|address| address.ip());
    all.collect::<BTreeSet<_>>().len()
}
