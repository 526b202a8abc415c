//! The trace of the run: a span for each hold of a search as it ends, and in the end that of the
//! whole run, with its events and what limited the server.

use std::collections::BTreeSet;

use serde_json::Value;
use throng_observation::host::{HostEventKind, HostRow};
use throng_observation::run::EventRow;
use throng_observation::{Goal, HoldRow, RunTime};

use super::attribute::{number, plain, shown, text, whole};
use super::span::{Events, Span};
use super::trace_ids::TraceContext;
use crate::{RunOutcome, Summary};

/// What is known of a run until its end.
#[derive(Debug)]
pub(super) struct RunSpan {
    trace: TraceContext,
    /// Scenario and run folder.
    subject: (String, String),
    events: Events,
    holds: BTreeSet<u32>,
    /// The latest moment that any row told of.
    latest: RunTime,
}

impl RunSpan {
    pub(super) fn new(seed: u64) -> Self {
        let trace = TraceContext::of_run(seed);
        let (events, holds) = (Events::default(), BTreeSet::new());
        Self { trace, subject: (String::new(), String::new()), events, holds, latest: RunTime(0) }
    }

    pub(super) fn set_subject(&mut self, scenario: &str, run: &str) {
        self.subject = (scenario.to_owned(), run.to_owned());
    }

    /// The run has come so far.
    pub(super) fn reach(&mut self, at: RunTime) {
        self.latest = self.latest.max(at);
    }

    /// An event of the run as a whole; those of participants are too many.
    pub(super) fn event(&mut self, row: &EventRow) {
        if row.participant.is_none() {
            let attributes =
                vec![text("throng.detail", row.detail.as_str()), whole("throng.count", row.count)];
            self.events.add(row.at, &row.kind, attributes);
        }
    }

    /// A mark of the run on a watched host, or a process of it that ended.
    pub(super) fn host(&mut self, row: &HostRow) {
        let HostRow::Event(event) = row else { return };
        let name = match event.kind {
            HostEventKind::Mark => "mark",
            HostEventKind::ProcessEnded => "process_ended",
            HostEventKind::ProcessFound
            | HostEventKind::Unreadable
            | HostEventKind::RateLowered
            | HostEventKind::Watcher
            | HostEventKind::LogLine => return,
        };
        let attributes =
            vec![text("throng.detail", &event.detail), whole("throng.host", event.host.0)];
        self.events.add(event.at, name, attributes);
    }

    /// The span of a hold that has ended, once.
    pub(super) fn hold(&mut self, row: &HoldRow) -> Option<Span> {
        let until = row.until.filter(|_| self.holds.insert(row.number))?;
        self.reach(until);
        let mut attributes = vec![
            whole("throng.load", row.users),
            plain("throng.purpose", row.purpose.key()),
            plain("throng.acceptable", row.passed(Goal::Acceptable).key()),
            whole("throng.repeat", row.repeat),
            whole("throng.judged_seconds", row.seconds),
        ];
        attributes.extend(row.value.as_deref().map(|value| text("throng.value", value)));
        attributes.extend(row.why.as_deref().map(|why| text("throng.why", why)));
        let place = row.number.saturating_add(1);
        let span = Span::part(self.trace, place, "hold", (row.from, until));
        Some(span.with_attributes(attributes))
    }

    /// The span of the run, which is over; `summary` is what came of it, if that is known.
    pub(super) fn end(&mut self, target: &str, summary: Option<&Summary>) -> Span {
        let (scenario, run) = &self.subject;
        let mut attributes = vec![
            text("throng.scenario", scenario),
            text("throng.run", run),
            text("throng.target", target),
        ];
        let mut events = std::mem::take(&mut self.events);
        let mut error = None;
        if let Some(summary) = summary {
            attributes.extend(of_summary(summary));
            for (finding, of_finding) in findings(summary) {
                events.keep(self.latest, &finding, of_finding);
            }
            let is_bad = matches!(summary.outcome, RunOutcome::Missed | RunOutcome::Error);
            error = is_bad.then(|| shown(&summary.headline));
        }
        let times = (RunTime(0), self.latest);
        Span::first(self.trace, "run", times, attributes).with_events(events).with_error(error)
    }
}

fn of_summary(summary: &Summary) -> Vec<Value> {
    let outcome = match summary.outcome {
        RunOutcome::Met => "met",
        RunOutcome::Missed => "missed",
        RunOutcome::Disputed => "disputed",
        RunOutcome::Invalid => "invalid",
        RunOutcome::Error => "error",
    };
    let mut attributes = vec![
        plain("throng.outcome", outcome),
        text("throng.headline", &summary.headline),
        text("throng.ending", &summary.ending),
    ];
    if let Some(capacity) = &summary.capacity {
        attributes.push(text("throng.capacity.verdict", &capacity.verdict));
        attributes.extend(capacity.users.map(|users| whole("throng.capacity", users)));
    }
    attributes
}

/// What limited the server, or may have: the key of each finding, and what it says.
fn findings(summary: &Summary) -> Vec<(String, Vec<Value>)> {
    let Some(found) = &summary.bottleneck else { return Vec::new() };
    let mut all = Vec::new();
    if let Some(finding) = &found.finding {
        let mut attributes = vec![text("throng.title", &found.title)];
        attributes.extend(found.score.map(|score| number("throng.score", score)));
        attributes.extend(found.change.as_deref().map(|change| text("throng.change", change)));
        all.push((finding.clone(), attributes));
    }
    all.extend(found.other_findings.iter().map(|other| {
        let attributes = vec![
            text("throng.title", &other.title),
            number("throng.score", other.score),
            text("throng.change", &other.change),
        ];
        (other.finding.clone(), attributes)
    }));
    all
}
