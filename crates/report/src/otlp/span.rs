//! Spans: times of a run that have a name, and what happened in them.

use serde_json::{Map, Value, json};
use throng_observation::RunTime;

use super::attribute::shown;
use super::trace_ids::TraceContext;

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `SPAN_KIND_CLIENT`: the other side has spans of the same trace.
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The most events of a span, as OpenTelemetry's own libraries have it; others are counted.
const EVENTS_MAX: usize = 128;

/// A span that is over.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    trace: TraceContext,
    /// Its place in the trace; the others are parts of the first.
    place: u32,
    name: &'static str,
    kind: u8,
    from: RunTime,
    until: RunTime,
    attributes: Vec<Value>,
    events: Events,
    link: Option<TraceContext>,
    error: Option<String>,
}

impl Span {
    /// The first span of a trace.
    pub(super) fn first(
        trace: TraceContext,
        name: &'static str,
        (from, until): (RunTime, RunTime),
        attributes: Vec<Value>,
    ) -> Self {
        Self { attributes, ..Self::part(trace, 0, name, (from, until)) }
    }

    /// A part of it; `place` is from 1.
    pub(super) fn part(
        trace: TraceContext,
        place: u32,
        name: &'static str,
        (from, until): (RunTime, RunTime),
    ) -> Self {
        Self {
            trace,
            place,
            name,
            kind: INTERNAL,
            from,
            // What clocks disagree about has no length.
            until: until.max(from),
            attributes: Vec::new(),
            events: Events::default(),
            link: None,
            error: None,
        }
    }

    pub(super) fn with_attributes(self, attributes: Vec<Value>) -> Self {
        Self { attributes, ..self }
    }

    pub(super) fn with_events(self, events: Events) -> Self {
        Self { events, ..self }
    }

    /// What a participant did with the server, in the run of this trace.
    pub(super) fn of_client_in(self, run: TraceContext) -> Self {
        Self { kind: CLIENT, link: Some(run), ..self }
    }

    /// Failed, and why.
    pub(super) fn with_error(self, error: Option<String>) -> Self {
        Self { error, ..self }
    }

    /// `Span` of the protocol; RunTime 0 is so many microseconds after the Unix epoch.
    pub(super) fn json(&self, started_at_unix_us: i64) -> Value {
        let mut span = Map::new();
        let mut put = |key: &str, value: Value| drop(span.insert(key.to_owned(), value));
        put("traceId", self.trace.to_string().into());
        put("spanId", self.trace.span(self.place).to_string().into());
        if self.place > 0 {
            put("parentSpanId", self.trace.span(0).to_string().into());
        }
        put("name", self.name.into());
        put("kind", self.kind.into());
        put("startTimeUnixNano", nanos(started_at_unix_us, self.from).into());
        put("endTimeUnixNano", nanos(started_at_unix_us, self.until).into());
        put("attributes", self.attributes.clone().into());
        if !self.events.kept.is_empty() {
            put("events", self.events.json(started_at_unix_us));
            put("droppedEventsCount", self.events.dropped.into());
        }
        if let Some(link) = self.link {
            let (trace, first) = (link.to_string(), link.span(0).to_string());
            put("links", json!([{ "traceId": trace, "spanId": first }]));
        }
        if let Some(error) = &self.error {
            put("status", json!({ "code": ERROR, "message": error }));
        }
        span.into()
    }
}

/// What happened at moments of a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Events {
    kept: Vec<(RunTime, String, Vec<Value>)>,
    dropped: u32,
}

impl Events {
    /// Adds one whose name others may have chosen.
    pub(super) fn add(&mut self, at: RunTime, name: &str, attributes: Vec<Value>) {
        if self.kept.len() < EVENTS_MAX {
            self.keep(at, name, attributes);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The same of one that is of few, and is wanted however many there are.
    pub(super) fn keep(&mut self, at: RunTime, name: &str, attributes: Vec<Value>) {
        self.kept.push((at, shown(name), attributes));
    }

    fn json(&self, started_at_unix_us: i64) -> Value {
        let events = self.kept.iter().map(|(at, name, attributes)| {
            let at = nanos(started_at_unix_us, *at);
            json!({ "timeUnixNano": at, "name": name, "attributes": attributes })
        });
        events.collect::<Vec<Value>>().into()
    }
}

/// Nanoseconds since the Unix epoch, a string in the JSON mapping of Protobuf.
fn nanos(started_at_unix_us: i64, at: RunTime) -> String {
    let us = u64::try_from(started_at_unix_us.saturating_add(at.as_micros())).unwrap_or(0);
    us.saturating_mul(1_000).to_string()
}
