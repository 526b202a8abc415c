//! A cliff: so many are served, well, and nobody more. The server says no by its configuration, or by a fault.

use throng_observation::host::Unit;
use throng_observation::units::percent;
use throng_observation::{FailureReason, Outcome, RunTime};

use super::line::sent_text;
use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};

pub(super) const KEY: &str = "configured_ceiling";
/// Nearly all who have a bad second are not served at all.
const NOT_SERVED_MIN: f64 = 0.90;

/// What a server says that is full by its own rules.
fn is_refusal(reason: &FailureReason) -> bool {
    matches!(
        reason,
        FailureReason::Refused
            | FailureReason::RoomFull
            | FailureReason::SignallingClosed
            | FailureReason::HttpStatus(400..=599)
    )
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let users = &context.users;
    if users.bad_ratio.fail.is_none() {
        return CheckResult::NotMonitored("how users fared");
    }
    if users.not_served.fail() < NOT_SERVED_MIN {
        return CheckResult::RuledOut(format!(
            "Refusals: {} of the bad seconds are of users who were not served at all",
            percent(users.not_served.fail())
        ));
    }
    let (refused, said) = failed(context, is_refusal);
    let connected = users.connected.fail();
    let served = Evidence::new(
        format!("delay of those who are served, median ({})", sent_text(context)),
        Unit::Milliseconds,
        users.delay_ms,
    );
    let left_out =
        Evidence::new("bad user-seconds of those who were not served at all", Unit::Ratio, users.not_served);
    let there = Evidence::new("connected participants", Unit::Count, users.connected);
    let candidate = Candidate {
        // Nothing queues at a ceiling.
        queue: None,
        crossed_at_s: context.windows.first_bad_s.map(|second| second as f64),
        ..Candidate::new(KEY, String::new(), "configuration of the server")
    };
    if refused.fail() > 0.0 {
        let hint = said.map_or_else(String::new, |said| format!(" (it said: {said})"));
        return Candidate {
            title: format!("The server takes {connected:.0} users and refuses more, with resources to spare"),
            used: 1.0,
            refuses: refused.begins(),
            evidence: vec![
                Evidence::new("participants whom the server refused", Unit::Count, refused).decides(),
                left_out,
                there,
                served,
            ],
            change: format!(
                "Look for a maximum of about {connected:.0} users, rooms or ports in the server's configuration and licence{hint}"
            ),
            ..candidate
        }
        .suspect();
    }
    // Nobody said no. Who fails all the same at the same number may have met a ceiling that is silent.
    let (others, said) = failed(context, |reason| !reason.is_ours());
    if others.fail() == 0.0 {
        return CheckResult::RuledOut("Refusals: the server refused nobody".into());
    }
    let hint = said.map_or_else(String::new, |said| format!(" (the last: {said})"));
    Candidate {
        title: format!("{connected:.0} users are served, and who comes on top of them fails; the server refused nobody"),
        used: 0.6,
        evidence: vec![
            Evidence::new("participants who failed", Unit::Count, others).decides(),
            Evidence::new("participants whom the server refused", Unit::Count, refused),
            left_out,
            there,
            served,
        ],
        change: format!(
            "Look at why they failed{hint}: a maximum of about {connected:.0} that does not say so (ports, sessions), or a way that is closed"
        ),
        at_most: super::score::CAP_COMPANY,
        ..candidate
    }
    .suspect()
}

/// How many participants failed for such a reason in each window, those of the onset with the failing load's; and what was said
/// to the last of them.
fn failed(context: &Context<'_>, is_such: impl Fn(&FailureReason) -> bool) -> (Reading, Option<String>) {
    let such = || context.run.participants.iter().filter(|row| row.failure().is_some_and(&is_such));
    let within = context.reading(|window| {
        let within = |at: &RunTime| (window.from_us..=window.until_us).contains(&at.0);
        Some(such().filter(|row| row.ended_at.as_ref().is_some_and(within)).count() as f64)
    });
    let near = || such().filter(|row| row.ended_at.is_some_and(|at| context.is_near_failure(at)));
    let said = near().last().and_then(|row| match &row.outcome {
        Some(Outcome::Failed(failure)) => Some(failure.detail.clone()),
        _ => None,
    });
    (Reading { fail: Some(within.fail().max(near().count() as f64)), ..within }, said)
}
