//! How close each level came to its limit: connections, socket memory, files, line rate, quota.

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::units::percent;

use super::super::chart::{Line, Scale};
use super::charts::{COLOURS, LINES_MAX, ServerCharts};
use crate::server::MeasuredSeries;

/// Metrics with a chart of their own against their limit: threads have one core each, parts of the
/// host's CPU its cores.
const DRAWN_ELSEWHERE: [&str; 4] = ["thread.", "core.", "host.cpu.", "watcher."];
/// Of the host's memory only swap fills up; available, free and cached memory are better high.
const FILLS_UP: Metric = metric::HOST_MEMORY_SWAP_USED;

/// Every series that has a limit, as a share of it: the worst few by name.
pub(super) fn against_limits(charts: &ServerCharts<'_>) -> String {
    let window = charts.host.window;
    let is_level = |metric: &str| {
        !DRAWN_ELSEWHERE.iter().any(|room| metric.starts_with(room))
            && (!metric.starts_with("host.memory.") || metric == FILLS_UP.name)
    };
    let mut levels: Vec<(f64, MeasuredSeries<'_>, f64)> = charts
        .host
        .metrics()
        .into_iter()
        .filter(|(metric, _)| is_level(metric))
        .flat_map(|(_, list)| list.iter())
        .filter_map(|series| {
            let limit = series.limit().filter(|limit| *limit > 0.0)?;
            Some((series.max(window)? / limit, *series, limit))
        })
        .collect();
    levels.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lines: Vec<Line> = levels
        .iter()
        .zip(COLOURS)
        .map(|((_, series, limit), colour)| {
            let values =
                series.on(charts.grid).into_iter().map(|value| value.map(|value| value / limit));
            Line::solid(name(series), colour, values.collect())
        })
        .collect();
    let note = match levels.get(LINES_MAX) {
        Some((share, next, _)) => format!(
            "The nearest {LINES_MAX} of {}; the next, {}, came to {} of its limit.",
            levels.len(),
            name(next),
            percent(*share)
        ),
        None => String::new(),
    };
    // A limit far above the lines would flatten them; the axis shows how far away it is.
    if levels.first().is_some_and(|(share, ..)| *share > 0.2) {
        lines.extend(charts.level(Some(1.0)).map(|values| Line::dashed("the limit", 6, values)));
    }
    charts.chart("Levels against their limits", "of the limit", Scale::Percent, &note, lines)
}

/// The metric and its object.
fn name(series: &MeasuredSeries<'_>) -> String {
    let labels = ["process", "interface", "protocol", "port", "cgroup", "netns"]
        .map(|name| series.label(name));
    let whose: Vec<&str> = labels.into_iter().filter(|label| !label.is_empty()).collect();
    let metric = &series.series.metric;
    if whose.is_empty() { metric.clone() } else { format!("{metric} of {}", whose.join(" ")) }
}

/// CPU of each core: one may serve all interrupts, or the one thread that matters, while the mean
/// is low.
pub(super) fn each_core(charts: &ServerCharts<'_>) -> String {
    let window = charts.host.window;
    let mut cores: Vec<(f64, &MeasuredSeries<'_>)> = charts
        .host
        .metric(metric::CORE_BUSY)
        .iter()
        .map(|core| (core.integral(window).unwrap_or(0.0), core))
        .collect();
    let count = cores.len();
    if count < 2 {
        return String::new();
    }
    cores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut mean = vec![None; charts.grid.count];
    cores.iter().for_each(|(_, core)| core.add_to(charts.grid, &mut mean));
    let mean = mean.into_iter().map(|sum: Option<f64>| sum.map(|sum| sum / count as f64)).collect();
    let mut lines: Vec<Line> = cores
        .iter()
        .zip(COLOURS)
        .map(|((_, core), colour)| {
            Line::solid(format!("CPU {}", core.label("cpu")), colour, core.on(charts.grid))
        })
        .collect();
    lines.push(Line::dashed(format!("mean of {count}"), 6, mean));
    let note = if count > LINES_MAX { "The busiest cores." } else { "" };
    charts.chart("Each core", "of the core", Scale::Percent, note, lines)
}

/// Where datagrams were dropped: the port shows which part of a server could not keep up.
pub(super) fn socket_drops(charts: &ServerCharts<'_>) -> String {
    let window = charts.host.window;
    let mut sockets: Vec<(f64, &MeasuredSeries<'_>)> = charts
        .host
        .metric(metric::SOCKET_DROPS)
        .iter()
        .map(|socket| (socket.integral(window).unwrap_or(0.0), socket))
        .filter(|(total, _)| *total > 0.0)
        .collect();
    sockets.sort_by(|a, b| b.0.total_cmp(&a.0));
    let lines = sockets.iter().zip(COLOURS).map(|((_, socket), colour)| {
        let [protocol, port, process] =
            ["protocol", "port", "process"].map(|name| socket.label(name));
        Line::solid(format!("{protocol} {port} of {process}"), colour, socket.on(charts.grid))
    });
    let note = match sockets.len().saturating_sub(LINES_MAX) {
        0 => String::new(),
        left => format!("{left} more ports dropped some."),
    };
    charts.chart("Dropped at sockets", "datagrams per second", Scale::Plain, &note, lines.collect())
}

/// Available memory, and the memory of the server's control group against its limit.
pub(super) fn memory_left(charts: &ServerCharts<'_>) -> String {
    let gigabytes = 1e-9;
    let of = |metric: Metric, name: &'static str, colour| {
        let series = charts.host.metric(metric).first()?;
        let values =
            series.on(charts.grid).into_iter().map(|value| value.map(|value| value * gigabytes));
        Some(Line::solid(name, colour, values.collect()))
    };
    let mut lines: Vec<Line> = [
        of(metric::HOST_MEMORY_AVAILABLE, "available on the host", 3),
        of(metric::HOST_MEMORY_CACHED, "page cache", 4),
        of(metric::CGROUP_MEMORY, "of the control group", 1),
    ]
    .into_iter()
    .flatten()
    .collect();
    let limit = charts.host.metric(metric::CGROUP_MEMORY).first().and_then(MeasuredSeries::limit);
    let limit = charts.level(limit.map(|limit| limit * gigabytes));
    lines.extend(limit.map(|values| Line::dashed("the group's limit", 2, values)));
    let total =
        charts.host.metric(metric::HOST_MEMORY_AVAILABLE).first().and_then(MeasuredSeries::limit);
    let note = total
        .map_or_else(String::new, |total| format!("The host has {:.1} GB.", total * gigabytes));
    charts.chart("Memory left", "GB", Scale::Plain, &note, lines)
}
