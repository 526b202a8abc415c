//! Metrics of endpoints and logs outside the catalogue, such as a server's own counters: those that
//! changed, as charts on the shared axis; all of them in a table.

use std::collections::BTreeMap;

use super::super::chart::{Line, Scale};
use super::super::markup::table;
use super::charts::{COLOURS, ServerCharts};
use crate::server::MeasuredSeries;

/// Rows of the table.
const FURTHER_MAX: usize = 100;
/// Charts: an endpoint may report thousands of metrics.
const CHARTS_MAX: usize = 8;
/// Lines of each.
const SERIES_MAX: usize = 3;

/// Prefixes of the catalogue: its metrics have their own charts.
const OURS: [&str; 16] = [
    "thread.",
    "process.",
    "host.",
    "core.",
    "disk.",
    "nic.",
    "qdisc.",
    "softnet.",
    "udp.",
    "tcp.",
    "socket.",
    "conntrack.",
    "cgroup.",
    "watcher.",
    "log.",
    "access.",
];

/// Metrics of a language's client library, which every program has: the server's own metrics come
/// first.
const RUNTIMES: [&str; 7] =
    ["go_", "process_", "promhttp_", "python_", "jvm_", "nodejs_", "scrape_"];

/// The metrics that are not of the catalogue.
fn metrics<'s>(
    charts: &'s ServerCharts<'_>,
) -> impl Iterator<Item = (&'s str, &'s [MeasuredSeries<'s>])> {
    let is_ours = |metric: &str| {
        throng_observation::host::catalogue::find(metric).is_some()
            || OURS.iter().any(|room| metric.starts_with(room))
    };
    charts.host.metrics().into_iter().filter(move |(metric, _)| !is_ours(metric))
}

/// A metric that changed: its series, the highest first, and its change as a share of the highest
/// value.
struct Moved<'a> {
    metric: &'a str,
    is_runtime: bool,
    share: f64,
    series: Vec<(f64, MeasuredSeries<'a>, Vec<Option<f64>>)>,
}

/// A chart for each of the metrics that changed most.
pub(super) fn render(charts: &ServerCharts<'_>) -> String {
    let mut moved: Vec<Moved<'_>> =
        metrics(charts).filter_map(|(metric, list)| moved(charts, metric, list)).collect();
    moved.sort_by(|a, b| a.is_runtime.cmp(&b.is_runtime).then(b.share.total_cmp(&a.share)));
    moved
        .into_iter()
        .take(CHARTS_MAX)
        .map(|of| {
            let labels: Vec<_> =
                of.series.iter().map(|(_, series, _)| &series.series.labels).collect();
            let unit = of.series.first().map_or("", |(_, series, _)| series.series.unit.symbol());
            let lines = of.series.iter().zip(COLOURS).map(|((_, series, values), colour)| {
                let name = told_apart(&series.series.labels, &labels)
                    .unwrap_or_else(|| of.metric.to_owned());
                Line::solid(name, colour, values.clone())
            });
            charts.chart(of.metric, unit, Scale::Plain, "", lines.collect())
        })
        .collect()
}

fn moved<'a>(
    charts: &ServerCharts<'_>,
    metric: &'a str,
    list: &[MeasuredSeries<'a>],
) -> Option<Moved<'a>> {
    let window = charts.host.window;
    // Of a thousand label values those with most are looked at: each costs a pass over its samples.
    let mut list: Vec<(f64, MeasuredSeries<'a>)> =
        list.iter().filter_map(|series| Some((series.max(window)?, *series))).collect();
    list.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    list.truncate(SERIES_MAX);
    let series: Vec<_> =
        list.into_iter().map(|(max, series)| (max, series, series.on(charts.grid))).collect();
    let share = series.iter().map(|(.., values)| change(values)).fold(0.0, f64::max);
    let is_runtime = RUNTIMES.iter().any(|runtime| metric.starts_with(runtime));
    (share > 0.0).then_some(Moved { metric, is_runtime, share, series })
}

/// Highest less lowest value, as a share of the one that is farther from 0.
fn change(values: &[Option<f64>]) -> f64 {
    let known = || values.iter().flatten().copied();
    let (Some(low), Some(high)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return 0.0;
    };
    let far = low.abs().max(high.abs());
    if far > 0.0 { (high - low) / far } else { 0.0 }
}

/// The labels of a series that differ from those of the other series in its chart; `None` if none
/// differs.
fn told_apart(own: &BTreeMap<String, String>, all: &[&BTreeMap<String, String>]) -> Option<String> {
    let differs = |name: &String| all.iter().any(|other| other.get(name) != own.get(name));
    let parts: Vec<_> = own
        .iter()
        .filter(|(name, _)| differs(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// All of it, as means and highest values.
pub(super) fn listed(charts: &ServerCharts<'_>) -> String {
    let window = charts.host.window;
    let further: Vec<_> = metrics(charts)
        .flat_map(|(_, list)| list.iter())
        .filter_map(|series| Some((series, series.mean(window)?, series.max(window)?)))
        .collect();
    let figure = |value: f64| Scale::Plain.show(value);
    let rows: Vec<Vec<String>> = further
        .iter()
        .take(FURTHER_MAX)
        .map(|(series, mean, max)| {
            let labels: Vec<_> = series
                .series
                .labels
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            vec![series.series.metric.clone(), labels.join(" "), figure(*mean), figure(*max)]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let left = further.len().saturating_sub(FURTHER_MAX);
    let more = if left > 0 {
        format!("<p class=\"over\">{left} more are in run.db.</p>")
    } else {
        String::new()
    };
    format!(
        "<details><summary>Further series of the server ({})</summary>{}{more}</details>",
        further.len(),
        table(&["metric", "of", "mean", "max"], &rows)
    )
}
