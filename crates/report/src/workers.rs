//! The workers of a run that several machines played: what each had to do, and whether it was its
//! own limit.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::fleet::{
    COORDINATOR_GONE_EVENT, WORKER_ENDED_EVENT, WORKER_LOST_EVENT, WORKER_REASSIGNED_EVENT,
    WORKER_ROWS_MISSING_EVENT, WorkerInfo, of_two_us,
};
use throng_observation::limits::Limit;
use throng_observation::run::{GeneratorRow, RunData};

use crate::health::{START_S, cpu_ratio, lag_ms};

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerHealth {
    /// Its name.
    pub name: String,
    /// Cores that it could use.
    pub cores: u32,
    /// Its share of the crowd, relative to the others.
    pub weight: u32,
    /// Participants of its share; of a search those that it could have had.
    pub participants: u32,
    /// The coordinator's clock less its own at the start, milliseconds. Its rows are in the
    /// coordinator's time.
    pub clock_offset_ms: f64,
    /// The offset was right within so much, see `clock_basis`.
    pub clock_bound_ms: f64,
    /// What that comes from: half the shortest round trip of an exchange, or what the hosts' time
    /// services say. Empty for runs of earlier versions.
    #[serde(default)]
    pub clock_basis: String,
    /// The offset at the end of the run; `null` where it is not known.
    #[serde(default)]
    pub clock_end_offset_ms: Option<f64>,
    /// Its rows' times are right within so much at the end: by what the offset differs from that of
    /// the start, which they have, and what the offset at the end is right within.
    #[serde(default)]
    pub clock_end_bound_ms: Option<f64>,
    /// Seconds of which it sent its rows.
    pub seconds: u64,
    /// Seconds in which it was its own limit.
    pub limited_seconds: u64,
    /// The busiest second of one of its threads: CPU ÷ one core.
    pub thread_cpu_ratio_max: Option<f64>,
    /// The worst second's 99th percentile of lateness of a thread's loop, milliseconds.
    pub lag_ms_p99_max: Option<f64>,
    /// Largest resident memory, bytes.
    pub rss_bytes_max: Option<u64>,
}

impl WorkerHealth {
    /// `±0.4 ms, at the end ±0.9 ms`.
    pub(crate) fn clock_bounds(&self) -> String {
        let end = |ms: f64| format!(", at the end ±{ms:.1} ms");
        let end = self.clock_end_bound_ms.map(end).unwrap_or_default();
        format!("±{:.1} ms{end}", self.clock_bound_ms)
    }
}

/// All workers of a run, by number; none where one machine played it.
pub(crate) fn workers(run: &RunData) -> Vec<WorkerHealth> {
    (0..).zip(&run.info.workers).map(|(number, info)| worker(run, number, info)).collect()
}

fn worker(run: &RunData, number: u16, info: &WorkerInfo) -> WorkerHealth {
    let rows = || run.generator.iter().filter(move |row| row.worker == number);
    let threads = || rows().filter(|row| row.thread.is_some());
    let is_limited = |row: &&GeneratorRow| {
        row.second >= START_S && Limit::ALL.into_iter().any(|limit| limit.is_passed(row))
    };
    let seconds = |rows: &mut dyn Iterator<Item = &GeneratorRow>| {
        rows.map(|row| row.second).collect::<BTreeSet<_>>().len() as u64
    };
    WorkerHealth {
        name: info.name.clone(),
        cores: info.cores,
        weight: info.weight,
        participants: info.participants,
        clock_offset_ms: info.clock_offset_us as f64 / 1e3,
        clock_bound_ms: info.clock_bound_us as f64 / 1e3,
        clock_basis: info.clock_basis.clone(),
        clock_end_offset_ms: info.clock_end.map(|end| end.offset_us as f64 / 1e3),
        clock_end_bound_ms: info.clock_end_error_us().map(|us| us as f64 / 1e3),
        seconds: seconds(&mut rows()),
        limited_seconds: seconds(&mut rows().filter(is_limited)),
        thread_cpu_ratio_max: threads().map(cpu_ratio).max_by(f64::total_cmp),
        lag_ms_p99_max: rows().map(lag_ms).max_by(f64::total_cmp),
        rss_bytes_max: rows().map(|row| row.rss_bytes).max().filter(|bytes| *bytes > 0),
    }
}

/// By how much the error of delays between workers grew since the start, microseconds.
pub(crate) fn clock_growth_us(run: &RunData) -> u64 {
    let workers = &run.info.workers;
    let at_start = of_two_us(workers.iter().map(|worker| worker.clock_bound_us));
    of_two_us(workers.iter().map(WorkerInfo::clock_error_us_max)).saturating_sub(at_start)
}

/// The name of a worker in a sentence, with a space after it; empty where one machine played the
/// run.
pub(crate) fn named(run: &RunData, number: u16) -> String {
    run.info
        .workers
        .get(usize::from(number))
        .map_or_else(String::new, |info| format!("worker {}: ", info.name))
}

/// Workers that were lost or ended early, from when on the crowd was not the one that was asked
/// for, from when on others played their participants, and rows that are missing; and a coordinator
/// that was gone, where it measured something itself: those figures end with it.
pub(crate) fn losses(run: &RunData) -> impl Iterator<Item = String> {
    let kinds =
        [WORKER_LOST_EVENT, WORKER_ENDED_EVENT, WORKER_REASSIGNED_EVENT, WORKER_ROWS_MISSING_EVENT];
    let is_measured_there = !run.host.hosts.is_empty() || !run.canary.browsers.is_empty();
    run.events
        .iter()
        .filter(move |event| {
            kinds.contains(&event.kind.as_str())
                || (is_measured_there && event.kind == COORDINATOR_GONE_EVENT)
        })
        .map(|event| format!("at {:.0} s {}", event.at.as_secs_f64(), event.detail))
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::fleet::EndClock;
    use throng_observation::host::{HostData, HostInfo};
    use throng_observation::run::{EventRow, RunInfo};

    use super::*;

    #[test]
    fn the_worker_that_was_its_own_limit_is_named() {
        let info = |name: &str| WorkerInfo {
            name: name.into(),
            clock_bound_us: 1_500,
            ..WorkerInfo::default()
        };
        let row = |worker: u16, second: i64, cpu_us: u64| GeneratorRow {
            second,
            thread: Some(0),
            worker,
            cpu_us,
            rss_bytes: 1 << 20,
            ..GeneratorRow::default()
        };
        let detail = "b was lost: 4 participants".into();
        let at = RunTime(5_000_000);
        let run = RunData {
            info: RunInfo { workers: vec![info("a"), info("b")], ..RunInfo::default() },
            generator: (0..10).flat_map(|s| [row(0, s, 100_000), row(1, s, 990_000)]).collect(),
            events: vec![EventRow {
                at,
                participant: None,
                kind: WORKER_LOST_EVENT.into(),
                count: 4,
                detail,
            }],
            ..RunData::default()
        };
        let [a, b] = workers(&run).try_into().expect("two workers");
        assert_eq!((a.seconds, a.limited_seconds, a.thread_cpu_ratio_max), (10, 0, Some(0.1)));
        assert_eq!((b.seconds, b.limited_seconds, b.clock_bound_ms), (10, 9, 1.5));
        let reasons = crate::health::examine(&run, 10, 10).reasons;
        assert!(
            reasons.iter().any(|reason| reason.starts_with("worker b: an engine thread used")),
            "{reasons:?}"
        );
        assert!(reasons.contains(&"at 5 s b was lost: 4 participants".to_owned()), "{reasons:?}");
        assert_eq!(crate::health::examine(&run, 10, 10).rss_bytes_max, Some(2 << 20));
    }

    #[test]
    fn the_bound_at_the_end_contains_what_the_clocks_drifted() {
        let end = |offset_us| EndClock { offset_us, bound_us: 400 };
        let info = |clock_end| WorkerInfo {
            clock_offset_us: 1_000,
            clock_bound_us: 300,
            clock_basis: "half of the round trip".into(),
            clock_end,
            ..WorkerInfo::default()
        };
        let workers_of = |workers: Vec<WorkerInfo>| {
            let info = RunInfo { workers, ..RunInfo::default() };
            RunData { info, ..RunData::default() }
        };
        let run = workers_of(vec![info(Some(end(1_500))), info(None)]);
        let [drifted, unknown] = workers(&run).try_into().expect("two workers");
        assert_eq!(drifted.clock_bounds(), "±0.3 ms, at the end ±0.9 ms");
        assert_eq!(
            (drifted.clock_end_offset_ms, drifted.clock_end_bound_ms),
            (Some(1.5), Some(0.9))
        );
        assert_eq!(
            (unknown.clock_bounds().as_str(), unknown.clock_end_bound_ms),
            ("±0.3 ms", None)
        );
        assert_eq!(unknown.clock_basis, "half of the round trip");
        assert_eq!(
            clock_growth_us(&run),
            600,
            "±0.3 and ±0.3 at the start, ±0.9 and ±0.3 at the end"
        );
        assert_eq!(clock_growth_us(&workers_of(vec![info(Some(end(1_000)))])), 100);
        assert_eq!(clock_growth_us(&RunData::default()), 0);
    }

    #[test]
    fn a_coordinator_that_was_gone_is_a_reason_where_it_watched_hosts() {
        let event = EventRow {
            at: RunTime(12_000_000),
            participant: None,
            kind: COORDINATOR_GONE_EVENT.into(),
            count: 1,
            detail: "the coordinator was gone from about here on".into(),
        };
        let mut run = RunData { events: vec![event], ..RunData::default() };
        assert_eq!(losses(&run).count(), 0, "the crowd was as it should be");
        run.host = HostData { hosts: vec![HostInfo::default()], ..HostData::default() };
        let reasons: Vec<String> = losses(&run).collect();
        assert_eq!(reasons, ["at 12 s the coordinator was gone from about here on"]);
    }
}
