//! The protobuf format of Prometheus. Names are those of the text format 0.0.4; nothing is escaped.

mod messages;

use prost::Message as _;

use super::exposition::{Exposition, Labels, Value};
use super::family::{Family, Kind};
use super::histogram::Buckets;
use super::native::{NativeBuckets, SCHEMA, ZERO_SECONDS};
use messages::{
    Bucket, BucketSpan, Histogram, LabelPair, Metric, MetricFamily, MetricType, Number,
};

impl Exposition {
    /// All of it as messages, each with its length before it.
    pub(super) fn protobuf(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (family, series) in self.families() {
            let metrics = series.iter().map(|(labels, value)| metric(family.kind, labels, value));
            let message = message(family, metrics.collect());
            out.extend(message.encode_length_delimited_to_vec());
        }
        out
    }
}

fn message(family: &Family, metrics: Vec<Metric>) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        // There is no information.
        Kind::Gauge | Kind::Info => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    MetricFamily {
        name: family.called(),
        help: family.help.clone(),
        kind: kind.into(),
        metrics,
        unit: family.unit.to_owned(),
    }
}

fn metric(kind: Kind, labels: &Labels, value: &Value) -> Metric {
    let label = |(name, value): &(&'static str, String)| LabelPair {
        name: (*name).to_owned(),
        value: value.clone(),
    };
    let metric = Metric { labels: labels.iter().map(label).collect(), ..Metric::default() };
    match value {
        Value::Histogram(times) => Metric { histogram: Some(histogram(times)), ..metric },
        Value::Number(value) => {
            let number = Some(Number { value: *value });
            match kind {
                Kind::Counter => Metric { counter: number, ..metric },
                Kind::Gauge | Kind::Info | Kind::Histogram => Metric { gauge: number, ..metric },
            }
        }
    }
}

fn histogram(times: &Buckets) -> Histogram {
    let bucket = |(upper_bound, _, cumulative_count)| Bucket { cumulative_count, upper_bound };
    Histogram {
        sample_count: times.count,
        sample_sum: times.sum_us / 1e6,
        buckets: times.up_to_each().map(bucket).collect(),
        schema: SCHEMA,
        zero_threshold: ZERO_SECONDS,
        zero_count: times.native.zero,
        positive_spans: spans(&times.native),
        positive_deltas: deltas(&times.native),
    }
}

/// Where there are buckets.
fn spans(times: &NativeBuckets) -> Vec<BucketSpan> {
    let mut spans: Vec<BucketSpan> = Vec::new();
    // The bucket after the one before.
    let mut next = 0;
    for index in times.by_index.keys().copied() {
        match spans.last_mut() {
            Some(span) if index == next => span.length += 1,
            _ => spans.push(BucketSpan { offset: index - next, length: 1 }),
        }
        next = index + 1;
    }
    spans
}

/// What is in them, each less the one before.
fn deltas(times: &NativeBuckets) -> Vec<i64> {
    let mut before = 0;
    let counts = times.by_index.values().map(|count| i64::try_from(*count).unwrap_or(i64::MAX));
    let deltas = counts.map(|count| count - std::mem::replace(&mut before, count));
    deltas.collect()
}
