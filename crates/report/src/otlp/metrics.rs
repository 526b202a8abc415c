//! Metrics: `ExportMetricsServiceRequest`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::attribute::{double, plain};
use super::resource::Resource;
use crate::openmetrics::{
    BOUNDS, Buckets, Exposition, Family, Kind, Labels, NativeBuckets, SCHEMA, Value as Figure,
    ZERO_SECONDS,
};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: sums since the start, so that what a collector missed is
/// in what comes next.
const CUMULATIVE: u8 = 2;

/// By which bounds histograms count times: a metric has one form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistogramForm {
    /// Fixed ones (`Histogram` of the protocol), those of Prometheus's classic histograms.
    #[default]
    Explicit,
    /// Exponential ones (`ExponentialHistogram`), those of its native histograms.
    Exponential,
}

impl HistogramForm {
    /// Its field of a metric.
    fn key(self) -> &'static str {
        match self {
            Self::Explicit => "histogram",
            Self::Exponential => "exponentialHistogram",
        }
    }
}

/// From when sums count, and of which moment the figures are: nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// Since when sums count.
    pub from_unix_ns: u64,
    /// The moment.
    pub at_unix_ns: u64,
}

/// All figures of a moment, as the body of a request to `/v1/metrics`.
#[must_use]
pub fn metrics(
    resource: &Resource,
    exposition: &Exposition,
    window: TimeWindow,
    form: HistogramForm,
) -> String {
    let families = exposition.families();
    let metrics = families.map(|(family, series)| metric(family, series, window, form));
    resource.document("resourceMetrics", "scopeMetrics", ("metrics", metrics.collect()))
}

fn metric(
    family: &Family,
    series: &BTreeMap<Labels, Figure>,
    window: TimeWindow,
    histograms: HistogramForm,
) -> Value {
    let series = series.iter();
    let points = series.map(|(labels, of)| point(family.kind, labels, of, window, histograms));
    let points: Vec<Value> = points.collect();
    // Whoever hands on to Prometheus appends `_total` to a sum; of an information there is none.
    let (ending, form, data) = match family.kind {
        Kind::Counter => {
            let data = json!({
                "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points
            });
            ("", "sum", data)
        }
        Kind::Histogram => {
            let data = json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points });
            ("", histograms.key(), data)
        }
        Kind::Gauge => ("", "gauge", json!({ "dataPoints": points })),
        Kind::Info => ("_info", "gauge", json!({ "dataPoints": points })),
    };
    json!({
        "name": format!("{}{ending}", family.name),
        "description": family.help,
        "unit": family.ucum(),
        form: data,
    })
}

fn point(
    kind: Kind,
    labels: &Labels,
    figure: &Figure,
    window: TimeWindow,
    histograms: HistogramForm,
) -> Value {
    let mut point = Map::new();
    let attributes: Vec<Value> = labels.iter().map(|(name, value)| plain(name, value)).collect();
    point.insert("attributes".into(), attributes.into());
    if matches!(kind, Kind::Counter | Kind::Histogram) {
        point.insert("startTimeUnixNano".into(), window.from_unix_ns.to_string().into());
    }
    point.insert("timeUnixNano".into(), window.at_unix_ns.to_string().into());
    match figure {
        Figure::Number(number) => {
            point.insert("asDouble".into(), double(*number));
        }
        Figure::Histogram(times) => {
            point.insert("count".into(), times.count.to_string().into());
            point.insert("sum".into(), double(times.sum_us / 1e6));
            match histograms {
                HistogramForm::Explicit => explicit(&mut point, times),
                HistogramForm::Exponential => exponential(&mut point, &times.native),
            }
        }
    }
    point.into()
}

fn explicit(point: &mut Map<String, Value>, times: &Buckets) {
    let bounds: Vec<f64> = BOUNDS.iter().map(|(us, _)| *us as f64 / 1e6).collect();
    point.insert("bucketCounts".into(), bucket_counts(times).into());
    point.insert("explicitBounds".into(), bounds.into());
}

/// A bucket has in the protocol the index at which it begins, and in [`NativeBuckets`] that at
/// which it ends; those between the first and the last are written where they are empty, too.
fn exponential(point: &mut Map<String, Value>, times: &NativeBuckets) {
    let ends = times.by_index.first_key_value().zip(times.by_index.last_key_value());
    let (first, last) = ends.map_or((1, 0), |((first, _), (last, _))| (*first, *last));
    let counts = (first..=last).map(|index| times.by_index.get(&index).copied().unwrap_or(0));
    let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
    point.insert("scale".into(), SCHEMA.into());
    point.insert("zeroCount".into(), times.zero.to_string().into());
    point.insert("zeroThreshold".into(), double(ZERO_SECONDS));
    point.insert("positive".into(), json!({ "offset": first - 1, "bucketCounts": counts }));
}

/// How many times are in each bucket alone, that without bound last.
fn bucket_counts(times: &Buckets) -> Vec<String> {
    let mut before = 0;
    let alone = times.up_to.iter().chain([&times.count]).map(|up_to| {
        let alone = up_to.saturating_sub(before);
        before = before.max(*up_to);
        alone.to_string()
    });
    alone.collect()
}
