//! The server stood still because somebody stopped it: SIGSTOP, a debugger, a shell's job control. Nobody is served by a
//! process that does not run, and it is no limit of the server.

use std::collections::BTreeSet;

use throng_observation::Goal;
use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{Measured, Window};

use super::{Candidate, Evidence, Seen};
use crate::scene::{Scene, seconds};
use crate::windows::fares;

pub(super) const KEY: &str = "process_stopped";
/// A second of which so much was spent stopped is one in which the process did not run.
const STOPPED_MIN: f64 = 0.5;
/// Users feel a stop until what gathered meanwhile is worked off.
const FELT_S: i64 = 5;
/// Of the bad seconds, so many have to lie beside a stop for it to be why they were bad.
const EXPLAINED_MIN: f64 = 0.5;

pub(super) fn check(scene: &Scene<'_>) -> Seen {
    let list = scene.host.metric(metric::PROCESS_STOPPED.name);
    if list.is_empty() {
        return Seen::Unseen("whether the server's processes were stopped");
    }
    let span = Window {
        from_us: scene.knee.from_us.min(scene.fail.window.from_us),
        until_us: scene.knee.until_us.max(scene.fail.window.until_us),
    };
    let stops = |series: &Measured<'_>| -> BTreeSet<i64> {
        let first = span.from_us.div_euclid(1_000_000);
        let values = series.on(seconds(span)).into_iter().zip(first..);
        values
            .filter(|(value, _)| value.is_some_and(|v| v >= STOPPED_MIN))
            .map(|(_, second)| second)
            .collect()
    };
    let stopped = list.iter().map(|series| (series, stops(series))).max_by_key(|(_, stops)| stops.len());
    let Some((series, stops)) = stopped.filter(|(_, stops)| !stops.is_empty()) else {
        return Seen::Fine("No watched process was stopped".into());
    };
    let process = format!("{} (PID {})", series.label("process"), series.label("pid"));
    let share = explained(scene, span, &stops);
    if share < EXPLAINED_MIN {
        return Seen::Fine(format!(
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
                scene.rate(&metric::PROCESS_STOPPED),
            )
            .limit(Some(1.0))
            .crossed(at_s),
            Evidence::new("process.cpu", Unit::Ratio, scene.sum(&metric::PROCESS_CPU)),
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
    .seen()
}

/// The share of the bad seconds of `span` that lie in a stop or just after one.
fn explained(scene: &Scene<'_>, span: Window, stops: &BTreeSet<i64>) -> f64 {
    let (from, until) = (span.from_us.div_euclid(1_000_000), span.until_us.div_euclid(1_000_000));
    let fares = fares(scene.run);
    let bad: Vec<i64> = fares
        .range(from..until.max(from))
        .filter(|(_, fare)| fare.bad_ratio() > Goal::Acceptable.bad_ratio_max())
        .map(|(second, _)| *second)
        .collect();
    // Both clocks count whole seconds, and a process is read once in one.
    let beside = bad.iter().filter(|second| stops.range(*second - FELT_S..=*second + 1).next().is_some());
    beside.count() as f64 / bad.len().max(1) as f64
}
