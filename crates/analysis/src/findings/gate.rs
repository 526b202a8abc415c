//! The rule for every finding: a counter that does not change with the load explains nothing.
//!
//! A thread that polls, a host that other processes keep busy, an error counter that always
//! increases: each looks like a limit if only the failing load is examined. Each finding marks the
//! evidence that it depends on ([`Evidence::decides`]; the first line if it marks none). One of
//! these lines must be higher under the failing load than at the baseline and than under every load
//! that passed. Errors that grew from nothing evenly through the limit count if users were worse
//! where they were counted (`context/user_impact.rs`); where that cannot be told, they make a
//! suspect at most.

use super::{Candidate, Evidence, GENERATOR};
use crate::context::Change;

/// The result of the rule for one candidate.
pub(crate) enum Gate {
    /// Decisive evidence grew.
    Open,
    /// There is no measurement before the failing load, so growth cannot be shown.
    Unproven,
    /// Errors grew evenly through the limit, and whether users felt them cannot be told.
    Untold,
    /// The evidence was as high before; the sentence says why it explains nothing.
    Shut(String),
}

pub(crate) fn gate(candidate: &Candidate) -> Gate {
    // Whether the generator offered the load is no question of growth.
    if candidate.key == GENERATOR {
        return Gate::Open;
    }
    let lines = decisive(&candidate.evidence);
    let changes: Vec<Change> = lines.iter().map(|line| line.change()).collect();
    match lines.first() {
        _ if changes.contains(&Change::Grew) => Gate::Open,
        _ if lines.iter().any(|line| line.is_untold()) => Gate::Untold,
        Some(line) if !changes.contains(&Change::Unknown) => Gate::Shut(said(line)),
        _ => Gate::Unproven,
    }
}

fn decisive(evidence: &[Evidence]) -> Vec<&Evidence> {
    let marked: Vec<&Evidence> = evidence.iter().filter(|line| line.decides).collect();
    let mut lines = if marked.is_empty() { evidence.first().into_iter().collect() } else { marked };
    // A counter without a value under the failing load decides nothing.
    lines.retain(|line| line.fail.is_some());
    lines
}

/// `thread.cpu of victim (7) does not grow with the load (98 % at the baseline, 98 % under the one
/// that failed): …`
fn said(line: &Evidence) -> String {
    if !line.surpasses() && line.begins() && line.most <= line.fail && line.felt == Some(false) {
        return format!(
            "{} grew evenly through the limit ({} at the baseline, up to {} under loads that were \
             served well, {} under the one that failed), and users were not worse in its seconds: \
             it is not the cause",
            line.counter,
            line.show(line.baseline),
            line.show(line.most),
            line.show(line.fail)
        );
    }
    if !line.surpasses() {
        return format!(
            "{} was as much under a load that was served well ({}, {} under the one that failed): \
             it is not the cause",
            line.counter,
            line.show(line.most),
            line.show(line.fail)
        );
    }
    let (value, place) = match line.baseline {
        Some(_) => (line.baseline, "at the baseline"),
        None => (line.pass, "under the load that passed"),
    };
    format!(
        "{} does not grow with the load ({} {place}, {} under the one that failed): what does not \
         change with the load is not the cause",
        line.counter,
        line.show(value),
        line.show(line.fail)
    )
}
