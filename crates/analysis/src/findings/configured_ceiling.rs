//! A cliff: so many are served, well, and nobody more. The server says no by its configuration, or by a fault.

use throng_observation::host::Unit;
use throng_observation::units::percent;
use throng_observation::{FailureReason, RunTime};

use super::line::sent_text;
use super::{Candidate, Evidence, Seen};
use crate::scene::{Reading, Scene};

pub(super) const KEY: &str = "configured_ceiling";
/// Nearly all who have a bad second are not served at all.
const NOT_SERVED_MIN: f64 = 0.90;

/// What a server says that is full by its own rules.
fn is_refusal(reason: &FailureReason) -> bool {
    matches!(
        reason,
        FailureReason::Refused | FailureReason::SignallingClosed | FailureReason::HttpStatus(400..=599)
    )
}

pub(super) fn check(scene: &Scene<'_>) -> Seen {
    let users = &scene.users;
    if users.bad_ratio.fail.is_none() {
        return Seen::Unseen("how users fared");
    }
    if users.not_served.fail() < NOT_SERVED_MIN {
        return Seen::Fine(format!(
            "Refusals: {} of the bad seconds are of users who were not served at all",
            percent(users.not_served.fail())
        ));
    }
    let refused = scene.reading(|window| {
        let within = |at: &RunTime| (window.from_us..=window.until_us).contains(&at.0);
        let refused =
            scene.run.participants.iter().filter(|row| {
                row.failure().is_some_and(is_refusal) && row.ended_at.as_ref().is_some_and(within)
            });
        Some(refused.count() as f64)
    });
    let in_knee = scene
        .run
        .participants
        .iter()
        .filter(|row| row.failure().is_some_and(is_refusal))
        .filter(|row| row.ended_at.is_some_and(|at| scene.is_near_failure(at)));
    let in_knee: Vec<_> = in_knee.collect();
    let refused = Reading { fail: Some(refused.fail().max(in_knee.len() as f64)), ..refused };
    let said = in_knee.iter().rev().find_map(|row| match &row.outcome {
        Some(throng_observation::Outcome::Failed(failure)) => Some(failure.detail.clone()),
        _ => None,
    });
    let hint = said.as_ref().map_or_else(String::new, |said| format!(" (it said: {said})"));
    let connected = users.connected.fail();
    Candidate {
        used: if refused.fail() > 0.0 { 1.0 } else { 0.6 },
        // Nothing queues at a ceiling.
        queue: None,
        refuses: refused.begins(),
        crossed_at_s: scene.windows.first_bad_s.map(|second| second as f64),
        evidence: vec![
            Evidence::new("participants whom the server refused", Unit::Count, refused),
            Evidence::new("bad user-seconds of those who were not served at all", Unit::Ratio, users.not_served),
            Evidence::new("connected participants", Unit::Count, users.connected),
            Evidence::new(format!("delay of those who are served, median ({})", sent_text(scene)), Unit::Milliseconds, users.delay_ms),
        ],
        change: format!(
            "Look for a maximum of about {connected:.0} users, rooms or ports in the server's configuration and licence{hint}"
        ),
        ..Candidate::new(KEY, format!("The server takes {connected:.0} users and refuses more, with resources to spare"), "configuration of the server")
    }
    .seen()
}
