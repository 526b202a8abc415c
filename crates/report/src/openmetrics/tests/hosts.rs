//! Watched hosts: rates are summed over time, states are not added, labels are bounded.

use throng_observation::host::HostEventKind;

use super::*;

/// What is exposed of a machine called `server`.
fn server() -> Metrics {
    let mut metrics = Metrics::of_watch("1.2.3");
    rows::host(0, "server").iter().for_each(|row| metrics.take_host(row));
    metrics
}

/// The values of series, without `throng_host_` and the label of the host.
fn of(metrics: &Metrics, series: &str) -> Option<f64> {
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let comma = if labels == "}" { "" } else { "," };
    let series = format!("throng_host_{name}{{host=\"server\"{comma}{labels}");
    read(&text(metrics)).get(&series).copied()
}

fn begin(metrics: &mut Metrics, id: u32, metric: &str, labels: &[(&str, &str)]) {
    metrics.take_host(&rows::begun(id, 0, metric, labels));
}

fn sample(metrics: &mut Metrics, id: u32, all: &[(i64, f64)]) {
    for (at_ms, value) in all {
        metrics.take_host(&rows::sample(id, *at_ms, *value));
    }
}

#[test]
fn a_burst_between_two_scrapes_is_counted() {
    let (mut metrics, errors) = (server(), "udp_rcvbuf_errors_total");
    begin(&mut metrics, 1, "udp.rcvbuf_errors", &[]);
    assert_eq!(of(&metrics, errors), Some(0.0), "it says that there were none");
    // 100 errors within 100 ms; zeros are repeated unwritten, but for the last before a change.
    sample(
        &mut metrics,
        1,
        &[(0, 0.0), (2_000, 0.0), (2_100, 1_000.0), (2_200, 0.0), (7_000, 0.0)],
    );
    assert!((of(&metrics, errors).unwrap() - 100.0).abs() < 1e-9);
    sample(&mut metrics, 1, &[(8_000, 5.0)]);
    assert!((of(&metrics, errors).unwrap() - 105.0).abs() < 1e-9);
    assert_eq!(of(&metrics, "cpu_busy_seconds_total"), Some(1.5));
}

#[test]
fn what_an_agent_invents_makes_no_counter_fall() {
    let (mut metrics, total) = (server(), "forks_total");
    begin(&mut metrics, 1, "host.forks", &[]);
    let invented = [(0, 1.0), (1_000, 2.0), (500, 9.0), (900, -4.0), (1_100, f64::INFINITY)];
    let mut before = 0.0;
    for (at_ms, value) in invented {
        sample(&mut metrics, 1, &[(at_ms, value)]);
        let now = of(&metrics, total).unwrap();
        assert!(now.is_finite() && now >= before, "{now}");
        before = now;
    }
    assert_eq!(before, 2.0);
}

#[test]
fn a_series_that_ends_leaves_its_sum_until_another_has_its_place() {
    let mut metrics = server();
    rows::threads("media", 8).iter().for_each(|row| metrics.take_host(row));
    let cpu = |metrics: &Metrics, thread: &str| {
        let labels = format!("{{process=\"media\",thread=\"{thread}\"}}");
        of(metrics, &format!("thread_cpu_seconds_total{labels}"))
    };
    let thread = |metrics: &mut Metrics, id: u32, name: &str| {
        let tid = id.to_string();
        let labels = [("process", "media"), ("pid", "7"), ("tid", tid.as_str()), ("thread", name)];
        begin(metrics, id, "thread.cpu", &labels);
        sample(metrics, id, &[(1_000, 1.0), (2_000, 1.0)]);
    };
    metrics.take_host(&rows::sample(1_000, 1_500, f64::NAN));
    assert_eq!(cpu(&metrics, "worker 0"), Some(0.25));
    // Another of the same name goes on.
    thread(&mut metrics, 1, "worker 0");
    assert_eq!(cpu(&metrics, "worker 0"), Some(1.25));
    thread(&mut metrics, 2, "late");
    assert_eq!((cpu(&metrics, "late"), cpu(&metrics, "other")), (None, Some(1.0)));
    metrics.take_host(&rows::sample(1, 2_500, f64::NAN));
    thread(&mut metrics, 3, "later");
    assert_eq!((cpu(&metrics, "later"), cpu(&metrics, "worker 0")), (Some(1.0), None));
    assert_eq!((cpu(&metrics, "worker 1"), cpu(&metrics, "other")), (Some(0.25), Some(1.0)));
}

#[test]
fn states_of_several_objects_are_not_added() {
    let mut metrics = server();
    for (id, metric, value) in [
        (1, "process.stopped", 1.0),
        (3, "process.fds", 10.0),
        (5, "thread.cpus_allowed", 4.0),
        (7, "cgroup.throttled_periods", 0.5),
        (9, "process.cpu", 0.5),
    ] {
        for (id, pid) in [(id, "7"), (id + 1, "8")] {
            let labels = match metric {
                "cgroup.throttled_periods" => vec![("cgroup", "/media"), ("netns", pid)],
                _ => vec![("process", "media"), ("pid", pid)],
            };
            begin(&mut metrics, id, metric, &labels);
            sample(&mut metrics, id, &[(0, value), (1_000, value)]);
        }
    }
    for (series, expect) in [
        ("process_stopped_ratio{process=\"media\"}", 1.0),
        ("process_fds{process=\"media\"}", 20.0),
        ("thread_cpus_allowed{process=\"media\"}", 4.0),
        ("cgroup_throttled_periods_ratio{cgroup=\"/media\"}", 0.5),
        ("process_cpu_seconds_total{process=\"media\"}", 1.0),
    ] {
        assert_eq!(of(&metrics, series), Some(expect), "{series}");
    }
}

#[test]
fn ended_processes_are_counted_from_zero() {
    let (mut metrics, ended) = (server(), "ended_processes_total{process=\"media\"}");
    assert_eq!(of(&metrics, ended), None);
    for (kind, expect) in [
        (HostEventKind::ProcessFound, 0.0),
        (HostEventKind::ProcessEnded, 1.0),
        (HostEventKind::ProcessFound, 1.0),
        (HostEventKind::Mark, 1.0),
        (HostEventKind::ProcessEnded, 2.0),
    ] {
        metrics.take_host(&rows::event(kind, "media"));
        assert_eq!(of(&metrics, ended), Some(expect));
    }
}

#[test]
fn marks_of_a_host_are_counted_from_zero() {
    let mut metrics = server();
    assert_eq!(of(&metrics, "marks_total"), Some(0.0));
    for kind in [HostEventKind::Mark, HostEventKind::LogLine, HostEventKind::Mark] {
        metrics.take_host(&rows::event(kind, "media"));
    }
    assert_eq!(of(&metrics, "marks_total"), Some(2.0));
}

#[test]
fn the_hottest_thread_is_what_it_was_of_late() {
    let (mut metrics, hottest) = (server(), "hottest_thread_ratio{process=\"media\"}");
    let labels = [("process", "media"), ("pid", "7"), ("tid", "7"), ("thread", "loop")];
    begin(&mut metrics, 1, "thread.cpu", &labels);
    let busy: Vec<(i64, f64)> = (0..600).map(|n| (n * 100, 1.0)).collect();
    sample(&mut metrics, 1, &busy);
    assert_eq!(of(&metrics, hottest), Some(1.0));
    // One quiet reading of 100 ms is not the end of it.
    sample(&mut metrics, 1, &[(60_000, 0.0)]);
    assert!(of(&metrics, hottest).unwrap() > 0.95);
    let limit = "limit_used_ratio{metric=\"thread.cpu\",process=\"media\",thread=\"loop\"}";
    assert!(of(&metrics, limit).unwrap() > 0.45, "the limit is 2");
    // It has slept since then, which is not written again, while others go on.
    begin(&mut metrics, 2, "host.forks", &[]);
    sample(&mut metrics, 2, &[(90_000, 1.0)]);
    assert!(of(&metrics, hottest).unwrap() < 0.05);
}

#[test]
fn a_machine_that_is_watched_twice_is_not_added_up() {
    let mut metrics = Metrics::of_watch("1.2.3");
    for host in 0..2 {
        rows::host(host, "server").iter().for_each(|row| metrics.take_host(row));
    }
    let all = read(&text(&metrics));
    for host in ["server 0", "server 1"] {
        assert_eq!(all[&format!("throng_host_cpu_busy_seconds_total{{host=\"{host}\"}}")], 1.5);
    }
}

#[test]
fn threads_beyond_the_first_of_a_process_are_one_series_and_counted() {
    let mut metrics = server();
    rows::threads("media", 30).iter().for_each(|row| metrics.take_host(row));
    let of_media = |name: &str, labels: &str| {
        of(&metrics, &format!("{name}{{process=\"media\"{labels}}}")).unwrap()
    };
    assert_eq!(of_media("other_threads", ""), 22.0);
    assert_eq!(of_media("thread_cpu_seconds_total", ",thread=\"worker 7\""), 0.25);
    assert_eq!(of_media("thread_cpu_seconds_total", ",thread=\"other\""), 22.0 * 0.25);
    assert_eq!(of_media("hottest_thread_ratio", ""), 0.25);
}
