//! A run: what makes it doubtful first, then the answer, the objectives, the crowd.

use throng_analysis::findings::Evidence;
use throng_analysis::reasons;
use throng_observation::calendar;
use throng_observation::run::RunData;

use super::document::Document;
use super::over_time;
use crate::cause;
use crate::summary::{ObjectiveResult, RunOutcome, Summary};
use crate::text;

/// Most lines of evidence: those that decide come first.
const EVIDENCE_MAX: usize = 3;

/// The answer of a run.
#[must_use]
pub fn of_run(run: &RunData, summary: &Summary) -> String {
    let mut document = Document::new("throng", summary.outcome.key());
    doubts(&mut document, summary);
    answer(&mut document, summary);
    found(&mut document, summary);
    document.table(&objectives(summary));
    crowd(&mut document, summary);
    if let Some(lines) = over_time::lines(run) {
        document.block(&lines);
    }
    document.finish()
}

/// Why nothing follows from the figures below, or not all of it.
fn doubts(document: &mut Document, summary: &Summary) {
    let label = if summary.in_progress { "So far" } else { "Partial" };
    document.items(label, &summary.partial_reasons);
    let why = match summary.outcome {
        RunOutcome::Met | RunOutcome::Missed => return,
        RunOutcome::Disputed => "real browsers measured otherwise than the crowd",
        RunOutcome::Invalid => "this run decides nothing, and no objective counts as met",
        RunOutcome::Error => "there is nothing to judge",
    };
    document.item("No verdict", why);
}

/// The number, and why it may not be certain.
fn answer(document: &mut Document, summary: &Summary) {
    document.item("Answer", summary.answer.as_ref().unwrap_or(&summary.headline));
    if summary.answer.is_some() {
        document.item("Measured", &summary.headline);
    }
    if let Some(capacity) = &summary.capacity {
        document.items("Caveat", &capacity.caveats);
        let goals = capacity.goals.iter().filter_map(|goal| {
            text::goal_line(capacity, goal).map(|line| format!("{}: {line}", goal.goal))
        });
        document.items("Goal", &goals.collect::<Vec<_>>());
    }
}

/// The cause, its evidence, what to change, and what else was found, a line each.
fn found(document: &mut Document, summary: &Summary) {
    let Some(found) = &summary.bottleneck else { return };
    document.item("Cause", &cause::sentence(found));
    if let Some(change) = &found.change {
        document.item("Change", change);
    }
    if let Some(predicted) = &found.prediction {
        document.item("Then", &cause::prediction(predicted));
    }
    // The loads of a search have theirs with each goal.
    if let Some(words) = reasons::words(&found.reasons).filter(|_| summary.capacity.is_none()) {
        document.item("Bad seconds", &words);
    }
    let evidence = found.evidence.iter().take(EVIDENCE_MAX).map(Evidence::sentence);
    document.items("Evidence", &evidence.collect::<Vec<_>>());
    let others = found.other_findings.iter().map(cause::other_finding);
    document.items("Also found", &others.collect::<Vec<_>>());
}

/// The objectives as rows of a table.
fn objectives(summary: &Summary) -> Vec<Vec<String>> {
    let counts = summary.is_valid();
    let result = |objective: &ObjectiveResult| match (objective.met, counts) {
        (true, true) => "✓ met".to_owned(),
        (true, false) => "– does not count".to_owned(),
        (false, _) => format!("✗ {}", objective.result.replace('_', " ")),
    };
    let head = ["Objective", "Measured", "Result"].map(str::to_owned).to_vec();
    let rows = summary.objectives.iter().map(|objective| {
        vec![objective.text.clone(), objective.measured_text.clone(), result(objective)]
    });
    std::iter::once(head).chain(rows).collect()
}

/// Who played, who failed and why, and where and when.
fn crowd(document: &mut Document, summary: &Summary) {
    document.item("Crowd", &text::crowd_line(summary));
    if !summary.failures.is_empty() {
        document.item("Failures", &text::counts(&summary.failures));
    }
    document.items("Failed", &text::failure_examples(summary));
    document.items("Warning", &summary.warnings);
    let Summary { target, duration_s, throng_version, .. } = summary;
    let when = calendar::shown(summary.started_at_unix_us);
    let played = format!("{target} for {duration_s:.0} s from {when}, by throng {throng_version}");
    document.item("Played", &played);
}
