//! What comes into the server from its sources: by its own counters that a knowledge pack names, or
//! by the interfaces of its host. What came in before the crowd did comes no longer where the
//! source stopped. What comes in with the crowd are its own packets, and end with the media. What a
//! server that hangs counts stops as well, but not what comes in on the interface.

use std::collections::HashMap;

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{Grid, MeasuredSeries, Window};

use crate::context::{Context, Reading, at_share, seconds};

/// Less than this share of what came in without viewers comes in: the source is not there.
const INGEST_MAX: f64 = 0.5;
/// Bytes a second; less coming in before shows nothing.
const INGEST_BYTES_MIN: f64 = 10_000.0;
/// An endpoint is read every few seconds, and a series that it has no longer ends some readings
/// later: that in the lower quarter of the seconds nothing comes in is enough.
const LOWER: f64 = 0.25;
const LOOPBACK: &str = "lo";
/// The label of scraped series that names their endpoint.
const ENDPOINT: &str = "endpoint";

/// What comes in, by one counter.
pub(super) struct Ingest {
    /// The counter and its owner.
    pub(super) counter: String,
    /// Bytes a second.
    pub(super) received: Reading,
    /// Bytes a second that came in before the crowd did, and did until it lost its media.
    source: Option<f64>,
}

impl Ingest {
    /// That of the counter that fell most from `second` on; of the interface, where as much as
    /// the server counted still comes in: a server that hangs counts nothing.
    pub(super) fn of(context: &Context<'_>, second: i64) -> Self {
        let interface = of_interface(context);
        let goes_on = interface.left().is_finite() && !interface.has_stopped();
        let refutes = |counter: &Self| goes_on && interface.source >= counter.source;
        let least = |a: Self, b: Self| if b.left() < a.left() { b } else { a };
        match counted(context, second).into_iter().reduce(least) {
            Some(counter) if !refutes(&counter) => least(interface, counter),
            _ => interface,
        }
    }

    /// Whether less than half of what came in without viewers still comes in.
    pub(super) fn has_stopped(&self) -> bool {
        self.left() < INGEST_MAX
    }

    /// The share of what came in that still does; endless where that is not known.
    fn left(&self) -> f64 {
        let source = self.source.filter(|source| *source >= INGEST_BYTES_MIN);
        source.zip(self.received.fail).map_or(f64::INFINITY, |(source, fail)| fail / source)
    }
}

/// What comes in on the interface on which most came in at the baseline. On the loopback interface
/// what the server sends comes in too.
fn of_interface(context: &Context<'_>) -> Ingest {
    let all = context.host.metric(metric::NIC_RX_BYTES.name).iter();
    let others = all.filter(|series| series.label("interface") != LOOPBACK);
    let readings = others.map(|series| (series.label("interface"), context.median(series)));
    let most = |reading: &Reading| reading.base.unwrap_or(0.0);
    let (interface, received) =
        readings.max_by(|a, b| most(&a.1).total_cmp(&most(&b.1))).unwrap_or_default();
    Ingest {
        counter: format!("{} of {interface}", metric::NIC_RX_BYTES.name),
        received,
        source: without_viewers(context, received),
    }
}

/// What the server itself counts, by each series that a knowledge pack names.
fn counted(context: &Context<'_>, second: i64) -> Vec<Ingest> {
    let fail = context.fail.window;
    let from_us = second.saturating_mul(1_000_000).max(fail.from_us);
    let grid = seconds(Window { from_us, ..fail });
    let metrics = context.host.metrics();
    let named = metrics.iter().filter(|(name, _)| context.knowledge.is_ingest(name));
    let series: Vec<&MeasuredSeries<'_>> = named
        .flat_map(|(_, list)| list.iter())
        .filter(|series| series.series.unit == Unit::BytesPerSecond)
        .collect();
    if series.is_empty() {
        return Vec::new();
    }
    let answers = answers(context, grid);
    let of_series = |series: &MeasuredSeries<'_>| {
        let fail = still(series, grid, answers.get(series.label(ENDPOINT)).map(Vec::as_slice));
        let received = Reading { fail, ..context.median(series) };
        // A source that ended long before did not stop now.
        let did_until_now =
            |source: &f64| received.pass.is_some_and(|pass| pass >= INGEST_MAX * source);
        Ingest {
            counter: name(series),
            received,
            source: without_viewers(context, received).filter(did_until_now),
        }
    };
    series.into_iter().map(of_series).collect()
}

/// `paths_bytes_received of live`, by the first of its labels that the server gives it.
fn name(series: &MeasuredSeries<'_>) -> String {
    let mut labels = series.series.labels.iter().filter(|(label, _)| *label != ENDPOINT);
    let of = labels.next().map_or_else(String::new, |(_, value)| format!(" of {value}"));
    format!("{}{of}", series.series.metric)
}

/// What a series still counts: 0 where it has ended and its endpoint answers.
fn still(series: &MeasuredSeries<'_>, grid: Grid, answers: Option<&[bool]>) -> Option<f64> {
    let has_answered = |second: usize| {
        answers.and_then(|answers| answers.get(second)).is_some_and(|answers| *answers)
    };
    let values = series.on(grid).into_iter().enumerate();
    let values =
        values.filter_map(|(second, value)| value.or_else(|| has_answered(second).then_some(0.0)));
    at_share(values.collect(), LOWER)
}

/// In which seconds each endpoint had any value.
fn answers<'a>(context: &Context<'a>, grid: Grid) -> HashMap<&'a str, Vec<bool>> {
    let mut answers: HashMap<&str, Vec<bool>> = HashMap::new();
    for (_, list) in context.host.metrics() {
        for series in list.iter().filter(|series| !series.label(ENDPOINT).is_empty()) {
            let known =
                answers.entry(series.label(ENDPOINT)).or_insert_with(|| vec![false; grid.count]);
            for (known, value) in known.iter_mut().zip(series.on(grid)) {
                *known |= value.is_some();
            }
        }
    }
    answers
}

/// Bytes a second that came in before the crowd did: at the baseline, less what its viewers send,
/// which grows with them.
fn without_viewers(context: &Context<'_>, received: Reading) -> Option<f64> {
    let (base, at_base) = (context.windows.base?.users, received.base?);
    if base <= 0.0 {
        return Some(at_base);
    }
    let (pass, at_pass) = (context.windows.pass?.users, received.pass?);
    let of_a_viewer = ((at_pass - at_base) / (pass - base)).max(0.0);
    (pass > base).then_some(at_base - of_a_viewer * base)
}
