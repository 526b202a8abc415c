//! A process of the server ended, and its users are no longer served.

use throng_observation::RunTime;
use throng_observation::host::{HostEvent, HostEventKind};

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading};

pub(super) const KEY: &str = "server_crashed";
/// Between the end of a process and the first bad second: the watcher sees it within a second or two, users a little later.
const SLACK_US: i64 = 3_000_000;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    // Processes may end with the run.
    let end_us = context.run.ended_at.map_or(i64::MAX, |end| end.0.saturating_sub(500_000));
    let ended: Vec<&HostEvent> = context
        .host
        .events_of(HostEventKind::ProcessEnded)
        .filter(|event| event.at.0 < end_us)
        .filter(|event| {
            context.is_near_failure(event.at)
                || context.is_near_failure(RunTime(event.at.0.saturating_sub(SLACK_US)))
        })
        .collect();
    let (Some(first), Some(fullest)) = (ended.first(), ended.iter().max_by_key(|event| event.detail.len()))
    else {
        if !context.host.events_of(HostEventKind::ProcessFound).any(|_| true) {
            return Err(NoFinding::NotMonitored("the server's processes"));
        }
        return ruled_out("No watched process ended");
    };
    let at_s = first.at.as_secs_f64();
    let once =
        |count: usize| Reading { base: Some(0.0), pass: Some(0.0), fail: Some(count as f64), most: None };
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: Some(at_s),
        evidence: vec![
            Evidence::count(format!("watched process ended: {}", fullest.detail), once(ended.len()))
                .crossed(Some(at_s)),
        ],
        change: format!(
            "Look at the server's log and core dump at second {at_s:.0}; a crash under load is a bug to report, not a limit to raise"
        ),
        ..Candidate::new(
            KEY,
            format!("The server ended under the load: {}", fullest.detail),
            "server process",
        )
    })
}
