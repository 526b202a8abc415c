//! The server stood still because somebody stopped it: SIGSTOP, a debugger, a shell's job control. Nobody is served by a
//! process that does not run, and it is no limit of the server.

use std::collections::BTreeSet;

use throng_observation::Goal;
use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{MeasuredSeries, Window};

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, seconds};
use crate::windows::quality_by_second;

pub(super) const KEY: &str = "process_stopped";
/// A second of which so much was spent stopped is one in which the process did not run.
const STOPPED_MIN: f64 = 0.5;
/// Users feel a stop until what gathered meanwhile is worked off.
const FELT_S: i64 = 5;
/// Of the bad seconds, so many have to lie beside a stop for it to be why they were bad.
const EXPLAINED_MIN: f64 = 0.5;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let list = context.host.metric(metric::PROCESS_STOPPED.name);
    if list.is_empty() {
        return CheckResult::NotMonitored("whether the server's processes were stopped");
    }
    let span = Window {
        from_us: context.onset.from_us.min(context.fail.window.from_us),
        until_us: context.onset.until_us.max(context.fail.window.until_us),
    };
    let stops = |series: &MeasuredSeries<'_>| -> BTreeSet<i64> {
        let first = span.from_us.div_euclid(1_000_000);
        let values = series.on(seconds(span)).into_iter().zip(first..);
        values
            .filter(|(value, _)| value.is_some_and(|v| v >= STOPPED_MIN))
            .map(|(_, second)| second)
            .collect()
    };
    let stopped = list.iter().map(|series| (series, stops(series))).max_by_key(|(_, stops)| stops.len());
    let Some((series, stops)) = stopped.filter(|(_, stops)| !stops.is_empty()) else {
        return CheckResult::RuledOut("No watched process was stopped".into());
    };
    let process = format!("{} (PID {})", series.label("process"), series.label("pid"));
    let share = explained(context, span, &stops);
    if share < EXPLAINED_MIN {
        return CheckResult::RuledOut(format!(
            "{process} was stopped for {} s, and most seconds were bad without that",
            stops.len()
        ));
    }
    let at_s = stops.first().map(|second| *second as f64);
    let at = at_s.unwrap_or(0.0);
    Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: at_s,
        series: vec![series.series.id],
        evidence: vec![
            Evidence::new(
                format!("process.stopped of {process}, share of the time"),
                Unit::Ratio,
                context.rate(&metric::PROCESS_STOPPED),
            )
            .limit(Some(1.0))
            .crossed(at_s),
            Evidence::new("process.cpu", Unit::Ratio, context.sum(&metric::PROCESS_CPU)),
        ],
        change: format!(
            "See who stopped it around second {at:.0}: a debugger, kill -STOP, job control of a shell, a snapshot or backup that \
             stops what it copies. It says nothing about how many the server carries"
        ),
        ..Candidate::new(
            KEY,
            format!("{process} was stopped for {} s from second {at:.0} on (state T)", stops.len()),
            "server process",
        )
    }
    .suspect()
}

/// The share of the bad seconds of `span` that lie in a stop or just after one.
fn explained(context: &Context<'_>, span: Window, stops: &BTreeSet<i64>) -> f64 {
    let (from, until) = (span.from_us.div_euclid(1_000_000), span.until_us.div_euclid(1_000_000));
    let quality_by_second = quality_by_second(context.run);
    let bad: Vec<i64> = quality_by_second
        .range(from..until.max(from))
        .filter(|(_, quality)| quality.bad_ratio() > Goal::Acceptable.bad_ratio_max())
        .map(|(second, _)| *second)
        .collect();
    // Both clocks count whole seconds, and a process is read once in one.
    let beside = bad.iter().filter(|second| stops.range(*second - FELT_S..=*second + 1).next().is_some());
    beside.count() as f64 / bad.len().max(1) as f64
}
