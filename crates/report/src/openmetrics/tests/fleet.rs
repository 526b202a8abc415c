//! The workers of a fleet: each by its name, of a large one the rest together, none without one.

use throng_observation::fleet::{EndClock, ReassignedJoins, WorkerFate, WorkerInfo, WorkerNow};
use throng_observation::run::GeneratorRow;

use super::*;

/// A run that workers of these names play, with two cores each.
fn of_workers(names: &[&str]) -> Metrics {
    let worker = |name: &&str| WorkerInfo {
        name: (*name).to_owned(),
        cores: 2,
        clock_offset_us: -1_000,
        clock_bound_us: 300,
        ..WorkerInfo::default()
    };
    let workers = names.iter().map(worker).collect();
    Metrics::of_run(&RunInfo { workers, ..RunInfo::default() })
}

fn now(fate: WorkerFate) -> WorkerNow {
    WorkerNow {
        fate,
        playing: if fate.is_there() { 4 } else { 0 },
        clock: Some(EndClock { offset_us: 500, bound_us: 100 }),
        rows_age_us: 1_500_000,
        silent_us: 250_000,
        spooled_bytes: 1_000,
        given_up_batches: 3,
    }
}

fn set(metrics: &mut Metrics, workers: Vec<WorkerNow>) {
    let reassigned = ReassignedJoins { anew: 2, planned: 5 };
    metrics.set_fleet(FleetNow { workers, reassigned });
}

/// A second of a worker: its process used this, its busiest thread that of a core.
fn second(metrics: &mut Metrics, second: i64, worker: u16, cpu_us: u64, thread_us: u64) {
    for (thread, cpu_us) in [(None, cpu_us), (Some(0), thread_us / 2), (Some(1), thread_us)] {
        let row = GeneratorRow { second, worker, thread, cpu_us, ..GeneratorRow::default() };
        metrics.take(&Row::Generator(row));
    }
}

#[test]
fn each_worker_has_its_figures_and_a_lost_one_keeps_what_it_counted() {
    let mut metrics = of_workers(&["a", "b"]);
    set(&mut metrics, vec![now(WorkerFate::Plays); 2]);
    second(&mut metrics, 0, 0, 600_000, 400_000);
    second(&mut metrics, 0, 1, 1_400_000, 900_000);
    let of = |metrics: &Metrics, name: &str, worker: &str| {
        let series = format!("throng_fleet_worker_{name}{{worker=\"{worker}\"}}");
        read(&text(metrics)).get(&series).copied()
    };
    assert_eq!(of(&metrics, "cpu_ratio", "b"), None, "the second is not whole");
    metrics.take(&rows::closed(0));
    for (name, expect) in [
        ("lost", 0.0),
        ("participants", 4.0),
        ("clock_offset_seconds", 0.000_5),
        // 1.5 ms since the start, and what is not known now.
        ("clock_error_seconds", 0.001_6),
        ("rows_age_seconds", 1.5),
        ("silent_seconds", 0.25),
        ("cpu_ratio", 0.7),
        ("hottest_thread_ratio", 0.9),
        ("limited_seconds_total", 1.0),
        ("spooled_bytes", 1_000.0),
        ("given_up_batches_total", 3.0),
    ] {
        assert_eq!(of(&metrics, name, "b"), Some(expect), "{name}");
    }
    assert_eq!(
        of(&metrics, "limited_seconds_total", "a"),
        Some(0.0),
        "it says that there were none"
    );
    // Its last row is late, and of the same second.
    second(&mut metrics, 1, 0, 100_000, 100_000);
    second(&mut metrics, 0, 1, 0, 900_000);
    metrics.take(&rows::closed(1));
    set(&mut metrics, vec![now(WorkerFate::Plays), now(WorkerFate::Lost)]);
    assert_eq!(of(&metrics, "lost", "b"), Some(1.0));
    assert_eq!(of(&metrics, "participants", "b"), Some(0.0));
    assert_eq!(of(&metrics, "limited_seconds_total", "b"), Some(1.0));
    for name in ["clock_error_seconds", "rows_age_seconds", "cpu_ratio", "spooled_bytes"] {
        assert_eq!(of(&metrics, name, "b"), None, "{name}");
        assert!(of(&metrics, name, "a").is_some(), "{name}");
    }
    let all = read(&text(&metrics));
    for (state, count) in [("playing", 1.0), ("ending", 0.0), ("ended", 0.0), ("lost", 1.0)] {
        assert_eq!(all[&format!("throng_fleet_workers{{state=\"{state}\"}}")], count, "{state}");
    }
    assert_eq!(all["throng_fleet_reassigned_joins_total{join=\"anew\"}"], 2.0);
    assert_eq!(all["throng_fleet_reassigned_joins_total{join=\"planned\"}"], 5.0);
}

#[test]
fn a_clock_that_says_nothing_is_where_it_was_last_known() {
    let mut metrics = of_workers(&["a"]);
    let offset = |metrics: &Metrics| {
        let all = read(&text(metrics));
        ["offset", "error"]
            .map(|name| all[&format!("throng_fleet_worker_clock_{name}_seconds{{worker=\"a\"}}")])
    };
    let silent = WorkerNow { clock: None, ..now(WorkerFate::Plays) };
    set(&mut metrics, vec![silent]);
    assert_eq!(offset(&metrics), [-0.001, 0.000_3], "at the start");
    set(&mut metrics, vec![now(WorkerFate::Plays)]);
    set(&mut metrics, vec![silent]);
    assert_eq!(offset(&metrics), [0.000_5, 0.001_6]);
}

#[test]
fn of_a_large_fleet_the_rest_is_one_worker_and_without_one_there_is_none() {
    let names: Vec<String> = (0..4_096).map(|n| format!("worker {n}")).collect();
    let mut metrics = of_workers(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut workers = vec![now(WorkerFate::Plays); 4_096];
    let clock = Some(EndClock { offset_us: -2_000_000, bound_us: 100 });
    workers[4_000] = WorkerNow { silent_us: 3_000_000, clock, ..now(WorkerFate::Plays) };
    set(&mut metrics, workers);
    let all = read(&text(&metrics));
    let workers: BTreeSet<_> =
        all.keys().filter_map(|series| series.split("worker=\"").nth(1)).collect();
    assert_eq!(workers.len(), 51, "{workers:?}");
    assert_eq!(all["throng_fleet_worker_participants{worker=\"other\"}"], 4.0 * 4_046.0);
    assert_eq!(all["throng_fleet_worker_silent_seconds{worker=\"other\"}"], 3.0);
    assert_eq!(all["throng_fleet_worker_clock_offset_seconds{worker=\"other\"}"], -2.0);
    assert_eq!(all["throng_exporter_left_out_series"], 0.0);

    let mut alone = of_cohorts(&["viewers"]);
    set(&mut alone, vec![now(WorkerFate::Plays)]);
    second(&mut alone, 0, 0, 1, 1);
    alone.take(&rows::closed(0));
    assert!(!text(&alone).contains("throng_fleet"), "this process plays");
}

#[test]
fn whatever_a_worker_is_called_it_stays_a_value_of_a_label() {
    for name in crate::hostile_tests::HOSTILE {
        let mut metrics = of_workers(&[name]);
        set(&mut metrics, vec![now(WorkerFate::Plays)]);
        assert!(read(&text(&metrics)).len() > 10, "{name}");
    }
}
