//! The traces of a run, from its rows: spans that are over wait, a bounded number of them, until
//! they are taken to be sent.

use std::collections::VecDeque;

use serde_json::Value;
use throng_observation::RunTime;
use throng_observation::run::{ParticipantId, Row, RunInfo};
use throng_observation::untrusted;

use super::resource::Resource;
use super::run_span::RunSpan;
use super::span::Span;
use super::trace_ids::TraceContext;
use super::traced_joins::TracedJoins;
use crate::Summary;

/// The most spans that wait; the oldest are dropped for newer ones.
const WAITING_MAX: usize = 2_048;
/// The most spans of a request.
const BATCH_MAX: usize = 512;

/// All that is traced of a run.
#[derive(Debug)]
pub struct Traces {
    cohorts: Vec<String>,
    target: String,
    joins: TracedJoins,
    run: RunSpan,
    started_at_unix_us: Option<i64>,
    waiting: VecDeque<Span>,
    dropped: u64,
}

impl Traces {
    /// Of the run of this seed that is about to begin. Of the joins that are intended in one second
    /// so many at most are traced.
    #[must_use]
    pub fn new(info: &RunInfo, seed: u64, joins_per_second_max: u32) -> Self {
        let cohorts = info.cohorts.iter().map(|name| untrusted::name(name).into_owned());
        Self {
            cohorts: cohorts.collect(),
            target: info.target.clone(),
            joins: TracedJoins::new(seed, joins_per_second_max),
            run: RunSpan::new(seed),
            started_at_unix_us: None,
            waiting: VecDeque::new(),
            dropped: 0,
        }
    }

    /// The name of the scenario, that of the run's folder, and the wall clock of RunTime 0,
    /// microseconds since the Unix epoch. Until it is known, no span can be sent.
    pub fn begin(&mut self, scenario: &str, run: &str, started_at_unix_us: i64) {
        self.run.set_subject(scenario, run);
        self.started_at_unix_us = Some(started_at_unix_us);
    }

    /// The trace of a join that is to begin; `None` if it has none. Whoever asks first decides for
    /// all who ask later.
    pub fn join(
        &mut self,
        participant: ParticipantId,
        intended_at: RunTime,
    ) -> Option<TraceContext> {
        self.joins.trace(participant, intended_at)
    }

    /// Takes a row on its way to the store.
    pub fn take(&mut self, row: &Row) {
        match row {
            Row::Participant(row) => {
                row.ended_at.iter().for_each(|at| self.run.reach(*at));
                let cohort = self.cohorts.get(usize::from(row.cohort.0));
                let spans = self.joins.spans(row, cohort.map_or("", String::as_str));
                spans.into_iter().for_each(|span| self.add(span));
            }
            Row::Hold(row) => {
                let span = self.run.hold(row);
                span.into_iter().for_each(|span| self.add(span));
            }
            Row::SecondClosed(row) => {
                self.run.reach(RunTime(row.second.saturating_add(1).saturating_mul(1_000_000)));
            }
            Row::Event(row) => self.run.event(row),
            Row::Host(row) => self.run.host(row),
            // Metrics have what is of seconds; of single tracks and requests there are no spans.
            Row::Crowd(_)
            | Row::Series(_)
            | Row::Sent(_)
            | Row::Playback(_)
            | Row::Chat(_)
            | Row::Track(_)
            | Row::Player(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::Generator(_)
            | Row::Canary(_) => {}
        }
    }

    /// The run is over; `summary` is what came of it, if that is known.
    pub fn end(&mut self, summary: Option<&Summary>) {
        let span = self.run.end(&self.target, summary);
        self.add(span);
    }

    /// The oldest spans that wait, taken out to be sent; `None` if there are none.
    pub fn next_batch(&mut self) -> Option<Batch> {
        let started_at_unix_us = self.started_at_unix_us?;
        let count = self.waiting.len().min(BATCH_MAX);
        let spans: Vec<Span> = self.waiting.drain(..count).collect();
        (!spans.is_empty()).then_some(Batch { spans, started_at_unix_us })
    }

    /// Spans that were dropped because too many waited.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn add(&mut self, span: Span) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
        self.waiting.push_back(span);
    }
}

/// Spans that are sent together.
#[derive(Clone, Debug)]
pub struct Batch {
    spans: Vec<Span>,
    started_at_unix_us: i64,
}

impl Batch {
    /// How many they are.
    #[must_use]
    pub fn spans(&self) -> usize {
        self.spans.len()
    }

    /// The body of a request to `/v1/traces`.
    #[must_use]
    pub fn body(&self, resource: &Resource) -> String {
        let spans = self.spans.iter().map(|span| span.json(self.started_at_unix_us));
        let spans: Vec<Value> = spans.collect();
        resource.document("resourceSpans", "scopeSpans", ("spans", spans))
    }
}
