//! A process of the server was stopped: SIGSTOP, a debugger, a shell's job control. It serves no
//! user then, and that is no limit of the server.

use std::collections::BTreeSet;

use throng_observation::Goal;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{MeasuredSeries, Window};

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, seconds};
use crate::windows::{quality_by_second, second_range};

pub(super) const KEY: &str = "process_stopped";
/// Share of a second spent stopped from which the process did not run in it.
const STOPPED_MIN: f64 = 0.5;
/// Seconds after a stop in which service is bad, until the backlog is worked off.
const FELT_S: i64 = 5;
/// Least share of the bad seconds that lie in a stop or just after one.
const EXPLAINED_MIN: f64 = 0.5;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let list = context.host.metric(metric::PROCESS_STOPPED.name);
    if list.is_empty() {
        return Err(NoFinding::NotMonitored("whether the server's processes were stopped"));
    }
    let span = Window {
        from_us: context.onset.from_us.min(context.fail.window.from_us),
        until_us: context.onset.until_us.max(context.fail.window.until_us),
    };
    let stops = |series: &MeasuredSeries<'_>| -> BTreeSet<i64> {
        let values = series.on(seconds(span)).into_iter().zip(second_range(span).start..);
        values
            .filter(|(value, _)| value.is_some_and(|v| v >= STOPPED_MIN))
            .map(|(_, second)| second)
            .collect()
    };
    let stopped =
        list.iter().map(|series| (series, stops(series))).max_by_key(|(_, stops)| stops.len());
    let Some((series, stops)) = stopped.filter(|(_, stops)| !stops.is_empty()) else {
        return ruled_out("No watched process was stopped");
    };
    let process = format!("{} (PID {})", series.label("process"), series.label("pid"));
    let share = explained(context, span, &stops);
    if share < EXPLAINED_MIN {
        return ruled_out(format!(
            "{process} was stopped for {} s, but most bad seconds have no stop near them",
            stops.len()
        ));
    }
    let at_s = stops.first().map(|second| *second as f64);
    let at = at_s.unwrap_or(0.0);
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: at_s,
        series: vec![series.series.id],
        evidence: vec![
            Evidence::ratio(
                format!("process.stopped of {process}, share of the time"),
                context.rate(&metric::PROCESS_STOPPED),
            )
            .limit(1.0)
            .crossed(at_s),
            Evidence::ratio("process.cpu", context.sum(&metric::PROCESS_CPU)),
        ],
        change: format!(
            "Find out what stopped it around second {at:.0}: a debugger, kill -STOP, job control \
             of a shell, a snapshot or backup that stops what it copies. It says nothing about \
             the capacity of the server"
        ),
        ends_service: true,
        ..Candidate::new(
            KEY,
            format!("{process} was stopped for {} s from second {at:.0} on (state T)", stops.len()),
            format!("process {process}"),
        )
    })
}

/// The share of the bad seconds of `span` that lie in a stop or just after one.
fn explained(context: &Context<'_>, span: Window, stops: &BTreeSet<i64>) -> f64 {
    let quality_by_second = quality_by_second(context.run);
    let bad: Vec<i64> = quality_by_second
        .range(second_range(span))
        .filter(|(_, quality)| quality.is_bad(Goal::Acceptable))
        .map(|(second, _)| *second)
        .collect();
    // Both clocks count whole seconds, and a process is read once a second.
    let near =
        bad.iter().filter(|second| stops.range(*second - FELT_S..=*second + 1).next().is_some());
    near.count() as f64 / bad.len().max(1) as f64
}
