//! The law that every finding is held to: what does not change with the load explains nothing.
//!
//! A thread that polls, a host that others keep full, a counter that always counted: each looks like a limit when only the
//! failing load is looked at. So a finding says with which of its lines it stands or falls ([`Evidence::decides`]; the first,
//! where it marks none), and one of them has to be more in the failing load than it was at the floor, and than under any load
//! that was served well.

use super::{Candidate, Evidence, GENERATOR};
use crate::context::Change;

/// What the law says of a candidate.
pub(crate) enum Gate {
    /// Something that it stands on grew.
    Open,
    /// Nothing was seen of it before the load that failed: it may have been as much.
    Unproven,
    /// It was as much before: why it explains nothing, in a sentence.
    Shut(String),
}

pub(crate) fn gate(candidate: &Candidate) -> Gate {
    // It says nothing about the server, and whether a load was offered is no matter of growth.
    if candidate.key == GENERATOR {
        return Gate::Open;
    }
    let lines = decisive(&candidate.evidence);
    let changes: Vec<Change> = lines.iter().map(|line| line.change()).collect();
    match lines.first() {
        _ if changes.contains(&Change::Grew) => Gate::Open,
        Some(line) if !changes.contains(&Change::Unknown) => Gate::Shut(said(line)),
        _ => Gate::Unproven,
    }
}

fn decisive(evidence: &[Evidence]) -> Vec<&Evidence> {
    let marked: Vec<&Evidence> = evidence.iter().filter(|line| line.decides).collect();
    let mut lines = if marked.is_empty() { evidence.first().into_iter().collect() } else { marked };
    // What nobody counts under the failing load says neither yes nor no.
    lines.retain(|line| line.fail.is_some());
    lines
}

/// `thread.cpu of victim (7) does not grow with the load (98 % at the floor, 98 % at the failing load): …`
fn said(line: &Evidence) -> String {
    if !line.surpasses() {
        return format!(
            "{} was as much under a load that was served well ({}, {} under the one that failed): it explains nothing",
            line.counter,
            line.show(line.most),
            line.show(line.fail)
        );
    }
    let (value, place) = match line.baseline {
        Some(_) => (line.baseline, "at the floor"),
        None => (line.pass, "under the load that passed"),
    };
    format!(
        "{} does not grow with the load ({} {place}, {} under the one that failed): what does not change with the load explains nothing",
        line.counter,
        line.show(value),
        line.show(line.fail)
    )
}
