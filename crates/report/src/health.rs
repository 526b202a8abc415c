//! Was it us? A run whose generator was the limit says nothing about the server, so it is invalid, not failed.
//!
//! Limits of CPU, lag and steal must be broken for a share of the run's seconds, because one slow second in an hour
//! (a page fault storm, a cron job) spoils less than one user-second in a thousand. Drops of our own need no share:
//! each is a packet that the meters blame on the server.

use throng_observation::FailureReason;
use throng_observation::limits::{
    BAD_SECONDS_MIN, BAD_SECONDS_RATIO_MIN, LAG_P99_MS_MAX, STEAL_RATIO_MAX, WORKER_CPU_RATIO_MAX,
};
use throng_observation::run::{GeneratorRow, RunData};

use crate::summary::Generator;

/// The first seconds of a run, left out: threads start, sockets are opened, caches are cold.
const START_S: i64 = 1;

/// Judges the generator.
pub(crate) fn examine(run: &RunData, participant_seconds: u64, connected_max: u64) -> Generator {
    let workers = || run.generator.iter().filter(|row| row.worker.is_some());
    let process = || run.generator.iter().filter(|row| row.worker.is_none());
    let sum = |field: fn(&GeneratorRow) -> u64| run.generator.iter().map(field).sum::<u64>();
    let cpu_us: u64 = if process().next().is_some() {
        process().map(|row| row.cpu_us).sum()
    } else {
        workers().map(|row| row.cpu_us).sum()
    };
    let rss_bytes_max = run.generator.iter().map(|row| row.rss_bytes).max().filter(|bytes| *bytes > 0);
    let worst = |rows: &mut dyn Iterator<Item = f64>| rows.max_by(f64::total_cmp);
    let mut health = Generator {
        cpu_ms_per_participant_s: (participant_seconds > 0 && cpu_us > 0)
            .then(|| cpu_us as f64 / 1e3 / participant_seconds as f64),
        rss_bytes_per_participant: rss_bytes_max
            .filter(|_| connected_max > 0)
            .map(|bytes| bytes as f64 / connected_max as f64),
        rss_bytes_max,
        workers: workers().filter_map(|row| row.worker).max().map_or(0, |last| u64::from(last) + 1),
        worker_cpu_ratio_max: worst(&mut workers().map(cpu_ratio)),
        lag_ms_p99_max: worst(&mut run.generator.iter().map(lag_ms)),
        // Workers count their own sockets; the process row may repeat their sum.
        socket_drops: workers()
            .map(|row| row.socket_drops)
            .sum::<u64>()
            .max(process().map(|r| r.socket_drops).sum()),
        send_drops: workers()
            .map(|row| row.send_drops)
            .sum::<u64>()
            .max(process().map(|r| r.send_drops).sum()),
        observations_dropped: sum(|row| row.observations_dropped),
        rows_lost: run.rows_lost,
        steal_ratio_max: worst(&mut process().map(|row| row.steal_ratio)),
        ..Generator::default()
    };
    health.reasons = reasons(run, &health);
    health.limited = !health.reasons.is_empty();
    health
}

/// CPU of a worker's second as a share of one core.
pub(crate) fn cpu_ratio(row: &GeneratorRow) -> f64 {
    row.cpu_us as f64 / 1e6
}

/// A second's 99th percentile of lateness, milliseconds.
pub(crate) fn lag_ms(row: &GeneratorRow) -> f64 {
    row.lag_p99_us as f64 / 1e3
}

fn reasons(run: &RunData, health: &Generator) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut sustained =
        |limit: f64, of_workers: bool, figure: fn(&GeneratorRow) -> f64, say: &dyn Fn(f64) -> String| {
            if let Some((worst, bad, all)) = sustained_seconds(run, limit, of_workers, figure) {
                reasons.push(format!("{} ({bad} of {all} s over the limit)", say(worst)));
            }
        };
    sustained(WORKER_CPU_RATIO_MAX, true, cpu_ratio, &|worst| {
        format!(
            "a worker used up to {:.0} % of its core, more than {:.0} %",
            worst * 1e2,
            WORKER_CPU_RATIO_MAX * 1e2
        )
    });
    sustained(LAG_P99_MS_MAX, true, lag_ms, &|worst| {
        format!("a worker's loop ran up to {worst:.0} ms late (p99), more than {LAG_P99_MS_MAX:.0} ms")
    });
    sustained(STEAL_RATIO_MAX, false, |row| row.steal_ratio, &|worst| {
        format!(
            "the hypervisor took up to {:.1} % of the CPU, more than {:.0} %",
            worst * 1e2,
            STEAL_RATIO_MAX * 1e2
        )
    });
    for (count, what) in [
        (health.socket_drops, "datagrams were dropped by our own sockets"),
        (health.observations_dropped, "observations were dropped by our own collector"),
    ] {
        if count > 0 {
            reasons.push(format!("{count} {what}"));
        }
    }
    let failed =
        run.participants.iter().filter(|row| row.failure() == Some(&FailureReason::Generator)).count();
    if failed > 0 {
        reasons
            .push(format!("{failed} participants failed for want of our own descriptors, ports or memory"));
    }
    reasons
}

/// The worst value, the seconds over `limit` and all seconds, when enough seconds are over it.
fn sustained_seconds(
    run: &RunData,
    limit: f64,
    of_workers: bool,
    figure: fn(&GeneratorRow) -> f64,
) -> Option<(f64, usize, usize)> {
    let mut worst_by_second = std::collections::BTreeMap::new();
    for row in run.generator.iter().filter(|row| row.worker.is_some() == of_workers && row.second >= START_S)
    {
        let worst: &mut f64 = worst_by_second.entry(row.second).or_insert(0.0);
        *worst = worst.max(figure(row));
    }
    let bad: Vec<f64> = worst_by_second.values().copied().filter(|value| *value > limit).collect();
    let worst = bad.iter().copied().max_by(f64::total_cmp)?;
    let is_sustained = bad.len() >= BAD_SECONDS_MIN
        && bad.len() as f64 >= BAD_SECONDS_RATIO_MIN * worst_by_second.len() as f64;
    is_sustained.then_some((worst, bad.len(), worst_by_second.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rows: impl IntoIterator<Item = GeneratorRow>) -> RunData {
        RunData { generator: rows.into_iter().collect(), ..RunData::default() }
    }

    fn worker(second: i64, cpu_us: u64, lag_p99_us: u64) -> GeneratorRow {
        GeneratorRow { second, worker: Some(0), cpu_us, lag_p99_us, ..GeneratorRow::default() }
    }

    #[test]
    fn one_slow_second_in_a_minute_is_forgiven_and_five_percent_are_not() {
        let with_bad = |bad: i64| {
            run((0..61).map(|s| worker(s, if (1..=bad).contains(&s) { 900_000 } else { 300_000 }, 100)))
        };
        assert!(!examine(&with_bad(2), 1, 1).limited);
        let limited = examine(&with_bad(3), 1, 1);
        assert!(limited.limited && limited.reasons[0].contains("90 %"), "{limited:?}");
    }

    #[test]
    fn a_late_loop_limits_and_the_start_is_left_out() {
        assert!(examine(&run((0..20).map(|s| worker(s, 1, 21_000))), 1, 1).limited);
        assert!(
            !examine(&run((0..20).map(|s| worker(s, 1, if s == 0 { 90_000 } else { 9_000 }))), 1, 1).limited
        );
    }

    #[test]
    fn a_single_own_drop_is_too_many() {
        for row in [
            GeneratorRow { socket_drops: 1, ..worker(5, 0, 0) },
            GeneratorRow { observations_dropped: 1, ..worker(5, 0, 0) },
        ] {
            assert!(examine(&run([row]), 1, 1).limited);
        }
    }

    #[test]
    fn cost_is_counted_by_connected_participant_seconds() {
        let process = GeneratorRow { cpu_us: 50_000, rss_bytes: 1_000_000, ..GeneratorRow::default() };
        let health = examine(&run([process]), 100, 10);
        assert_eq!(health.cpu_ms_per_participant_s, Some(0.5));
        assert_eq!(health.rss_bytes_per_participant, Some(100_000.0));
    }
}
