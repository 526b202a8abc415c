//! Metrics as they are sent.

use std::collections::BTreeSet;

use serde_json::json;
use throng_observation::run::RunInfo;

use super::{parsed, resource};
use crate::openmetrics::{Buckets, Exposition, Family, Kind, Labels, Metrics, TextFormat, Value};
use crate::otlp::{HistogramForm, TimeWindow, metrics};

const WINDOW: TimeWindow =
    TimeWindow { from_unix_ns: 1_699_999_999_000_000_000, at_unix_ns: 1_700_000_005_000_000_000 };

fn family(name: &str, kind: Kind, unit: &'static str, help: &str) -> Family {
    Family { name: name.to_owned(), kind, unit, help: help.to_owned() }
}

fn of_viewers() -> Labels {
    vec![("cohort", "viewers".to_owned())]
}

#[test]
fn each_kind_of_metric_is_what_the_protocol_says() {
    let mut exposition = Exposition::default();
    let version = vec![("version", "1.2.3".to_owned())];
    let one = Value::Number(1.0);
    exposition.add(family("throng", Kind::Info, "", "About."), [(version, one)]);
    let not_a_number = Value::Number(f64::NAN);
    let bad = family("throng_bad", Kind::Gauge, "ratio", "Bad.");
    exposition.add(bad, [(Labels::new(), not_a_number)]);
    let mut times = Buckets::default();
    [50_000, 500_000, 90_000_000].into_iter().for_each(|us| times.record(us));
    let labels = [of_viewers(), vec![("phase", "first_frame".to_owned())]].concat();
    let joins = family("throng_join_seconds", Kind::Histogram, "seconds", "Joins.");
    exposition.add(joins, [(labels, Value::Histogram(times))]);
    let bytes = family("throng_received_bytes", Kind::Counter, "bytes", "Bytes.");
    exposition.add(bytes, [(of_viewers(), Value::Number(1_500.0))]);
    let sent = parsed(&metrics(&resource(), &exposition, WINDOW, HistogramForm::Explicit));
    assert_eq!(sent, parsed(include_str!("metrics.json")), "{sent:#}");
}

#[test]
fn exponential_histograms_are_what_the_protocol_says() {
    let sent = |times: &[u64]| {
        let (mut exposition, mut of) = (Exposition::default(), Buckets::default());
        times.iter().for_each(|us| of.record(*us));
        let joins = family("throng_join_seconds", Kind::Histogram, "seconds", "Joins.");
        exposition.add(joins, [(of_viewers(), Value::Histogram(of))]);
        let form = HistogramForm::Exponential;
        let sent = parsed(&metrics(&resource(), &exposition, WINDOW, form));
        let metric = &sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
        assert_eq!(metric["unit"], "s");
        metric["exponentialHistogram"].clone()
    };
    let attributes = json!([{ "key": "cohort", "value": { "stringValue": "viewers" } }]);
    // 1 s ends the bucket of index -1, and 2 s that of index 7.
    let expect = json!({
        "aggregationTemporality": 2,
        "dataPoints": [{
            "attributes": attributes,
            "startTimeUnixNano": "1699999999000000000",
            "timeUnixNano": "1700000005000000000",
            "count": "5",
            "sum": 5.0625,
            "scale": 3,
            "zeroCount": "1",
            "zeroThreshold": 0.000_976_562_5,
            "positive": {
                "offset": -1,
                "bucketCounts": ["2", "1", "0", "0", "0", "0", "0", "0", "1"],
            },
        }],
    });
    assert_eq!(sent(&[0, 1_000_000, 1_000_000, 1_062_500, 2_000_000]), expect);
    // The longest times are in the last bucket, so that there are never more than 160.
    let widest = sent(&[977, u64::MAX]);
    let counts = widest["dataPoints"][0]["positive"]["bucketCounts"].as_array().unwrap();
    assert_eq!(counts.len(), 160);
    let none = sent(&[]);
    assert_eq!(none["dataPoints"][0]["positive"], json!({ "offset": 0, "bucketCounts": [] }));
}

/// Both ways out have the same families, so that a dashboard of one is a dashboard of the other.
#[test]
fn names_are_those_that_prometheus_reads() {
    let exposition = Metrics::of_run(&RunInfo::default()).exposition();
    let sent = parsed(&metrics(&resource(), &exposition, WINDOW, HistogramForm::default()));
    let sent = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let sent: BTreeSet<String> =
        sent.iter().map(|metric| metric["name"].as_str().unwrap().to_owned()).collect();
    let text = exposition.text(TextFormat::OpenMetrics);
    let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let read: BTreeSet<String> = heads
        .map(|head| match head.split_once(' ') {
            Some((name, "info")) => format!("{name}_info"),
            Some((name, _)) => name.to_owned(),
            None => panic!("{head}"),
        })
        .collect();
    assert_eq!(sent, read);
    assert!(sent.len() > 2, "{sent:?}");
}
