//! The messages of Prometheus's protobuf format, by the field numbers of its public definition
//! (`io.prometheus.client` of `metrics.proto`): those fields that throng has values for. By its
//! syntax, proto2, zeros are written, too, and repeated numbers are not packed.

use prost::{Enumeration, Message};

/// What a family counts or measures by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    #[prost(string, required, tag = "2")]
    pub(super) help: String,
    #[prost(enumeration = "MetricType", required, tag = "3")]
    pub(super) kind: i32,
    #[prost(message, repeated, tag = "4")]
    pub(super) metrics: Vec<Metric>,
    /// Not written where there is none.
    #[prost(string, tag = "5")]
    pub(super) unit: String,
}

/// A series, or all series of a histogram.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    #[prost(string, required, tag = "2")]
    pub(super) value: String,
}

/// `Gauge` and `Counter`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Number {
    #[prost(double, required, tag = "1")]
    pub(super) value: f64,
}

/// A classic histogram and the native one of the same times.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(uint64, required, tag = "1")]
    pub(super) sample_count: u64,
    /// Seconds.
    #[prost(double, required, tag = "2")]
    pub(super) sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    pub(super) buckets: Vec<Bucket>,
    #[prost(sint32, required, tag = "5")]
    pub(super) schema: i32,
    /// Seconds.
    #[prost(double, required, tag = "6")]
    pub(super) zero_threshold: f64,
    #[prost(uint64, required, tag = "7")]
    pub(super) zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_spans: Vec<BucketSpan>,
    /// The count of each bucket in the spans less that of the one before.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(super) positive_deltas: Vec<i64>,
}

/// A bucket of the classic histogram.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Bucket {
    #[prost(uint64, required, tag = "1")]
    pub(super) cumulative_count: u64,
    /// Seconds.
    #[prost(double, required, tag = "2")]
    pub(super) upper_bound: f64,
}

/// Buckets of the native histogram that follow each other.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BucketSpan {
    /// How many buckets are between it and the span before; of the first the index of its bucket.
    #[prost(sint32, required, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, required, tag = "2")]
    pub(super) length: u32,
}
