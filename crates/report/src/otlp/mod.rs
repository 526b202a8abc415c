//! What an OpenTelemetry collector gets of a command in progress: OTLP 1.x in its JSON encoding
//! (the JSON mapping of Protobuf with ids as hexadecimal digits and enums as numbers).
//!
//! ```text
//! Exposition (crate::openmetrics) -> metrics()        -> POST /v1/metrics
//! rows, summary -> Traces -> Batch (finished spans)   -> POST /v1/traces
//! ```
//! Metrics are those of `crate::openmetrics`, by the same names, units and meanings. A join is a
//! trace of its own, with a span for each phase; the run is one, with a span for each hold of a
//! search.

mod attribute;
mod metrics;
mod resource;
mod run_span;
mod span;
#[cfg(test)]
mod tests;
mod trace_ids;
mod traced_joins;
mod traces;

pub use metrics::{HistogramForm, TimeWindow, metrics};
pub use resource::Resource;
pub use trace_ids::TraceContext;
pub use traces::{Batch, Traces};
