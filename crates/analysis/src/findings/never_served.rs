//! Participants connected, and none was served for as long as a second: the server or its source
//! ends, or what it sends cannot be played. No resource had a load then, as where none could
//! connect.

use super::never_connected::{by_reason, change, rest, users, what};
use super::{Candidate, CheckResult, Evidence, NoFinding};
use crate::context::{Context, Reading};
use crate::windows::was_none_served;

pub(super) const KEY: &str = "never_served";

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let all = users(context.run);
    let connected = all.iter().filter(|row| row.was_connected()).count();
    if connected == 0 || !was_none_served(context.run) {
        return Err(NoFinding::NotApplicable);
    }
    let playing = all.iter().filter(|row| row.was_playing()).count();
    let failures = by_reason(&all);
    let failed: usize = failures.iter().map(|(_, list)| list.len()).sum();
    let (reason_text, change) = match failures.first() {
        Some((reason, most)) => {
            let detail = most.first().map_or("", |failure| failure.detail.as_str());
            let text = if detail.is_empty() { what(reason) } else { detail };
            let others = if most.len() == failed {
                String::new()
            } else {
                format!(", the others {}", rest(&failures))
            };
            (format!("{text} ({} of {}{others})", most.len(), all.len()), change(reason))
        }
        None => (
            "none failed before the run ended".to_owned(),
            "Let the run last longer, and look at the server's log: does it have media to send?",
        ),
    };
    let since =
        |count: usize| Reading { base: Some(0.0), fail: Some(count as f64), ..Reading::default() };
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: context.first_bad_s(),
        evidence: vec![
            Evidence::count("participants that began to join", since(all.len())).decides(),
            Evidence::count("participants that connected at any time", since(connected)),
            Evidence::count("participants that received media at any time", since(playing)),
            Evidence::count("participants that failed", since(failed)),
        ],
        change: change.to_owned(),
        ..Candidate::new(
            KEY,
            format!(
                "No participant was served for a whole second: {connected} connected and \
                 {playing} received media at any time; {reason_text}"
            ),
            "service of the server",
        )
    })
}
