//! Metrics: `ExportMetricsServiceRequest`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::attribute::{double, plain};
use super::resource::Resource;
use crate::openmetrics::{BOUNDS, Buckets, Exposition, Family, Kind, Labels, Value as Figure};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: sums since the start, so that what a collector missed is
/// in what comes next.
const CUMULATIVE: u8 = 2;

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
pub fn metrics(resource: &Resource, exposition: &Exposition, window: TimeWindow) -> String {
    let metrics = exposition.families().map(|(family, series)| metric(family, series, window));
    resource.document("resourceMetrics", "scopeMetrics", ("metrics", metrics.collect()))
}

fn metric(family: &Family, series: &BTreeMap<Labels, Figure>, window: TimeWindow) -> Value {
    let points: Vec<Value> =
        series.iter().map(|(labels, figure)| point(family.kind, labels, figure, window)).collect();
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
            ("", "histogram", data)
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

fn point(kind: Kind, labels: &Labels, figure: &Figure, window: TimeWindow) -> Value {
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
            let bounds: Vec<f64> = BOUNDS.iter().map(|(us, _)| *us as f64 / 1e6).collect();
            point.insert("count".into(), times.count.to_string().into());
            point.insert("sum".into(), double(times.sum_us / 1e6));
            point.insert("bucketCounts".into(), bucket_counts(times).into());
            point.insert("explicitBounds".into(), bounds.into());
        }
    }
    point.into()
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
