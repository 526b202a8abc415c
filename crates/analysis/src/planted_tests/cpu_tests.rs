//! Limits of the CPU that look alike on a small host: which of them it is, and what is advised.

use throng_observation::host::Unit;

use super::simulated_run::{FAIL, Moment, SimulatedRun};
use super::{check, explained, plant_of};
use crate::bottleneck::BottleneckVerdict;
use crate::demand::Resource;

/// A thread of a server on two cores that runs and waits for these shares of the time under the
/// load that fails, while the host is busy by that share.
fn on_two_cores(sim: &mut SimulatedRun, (cpu, wait, busy): (f64, f64, f64)) {
    let part = |m: Moment| m.users / f64::from(FAIL);
    sim.without("thread.cpu").without("thread.run_queue_wait");
    sim.thread("media", "worker-0", 11, move |m| cpu * part(m), move |m| wait * part(m));
    sim.process("media", move |m| (cpu + 0.02) * part(m));
    sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), move |m| 2.0 * busy * part(m));
}

/// How many CPUs the workers may run on.
fn may_run_on(sim: &mut SimulatedRun, cpus: f64) {
    for (tid, thread) in [("11", "worker-0"), ("12", "worker-1")] {
        let labels = [("process", "media"), ("pid", "7"), ("tid", tid), ("thread", thread)];
        sim.put("thread.cpus_allowed", &labels, Unit::Count, None, move |_| cpus);
    }
}

/// One full thread on two cores, as it is measured in ten runs: it runs for less of the time the
/// more others run, and waits for what it would use.
#[test]
fn one_plant_has_one_name() {
    for row in [
        (0.95, 0.02, 0.70),
        (0.93, 0.04, 0.80),
        (0.90, 0.07, 0.78),
        (0.88, 0.09, 0.84),
        (0.85, 0.12, 0.82),
        (0.83, 0.14, 0.90),
        (0.80, 0.17, 0.88),
        (0.78, 0.19, 0.85),
        (0.74, 0.23, 0.86),
        (0.69, 0.28, 0.84),
    ] {
        check("one_thread_full", |sim| on_two_cores(sim, row));
        // Bursts of a thread that is full are no other cause.
        let mut sim = SimulatedRun::new();
        on_two_cores(&mut sim, row);
        let found = explained(&mut sim).bottleneck;
        assert!(found.other_findings.is_empty(), "{row:?}: {found:#?}");
    }
}

#[test]
fn a_thread_that_waits_for_others_is_told_with_who_they_are() {
    let mut sim = SimulatedRun::new();
    on_two_cores(&mut sim, (0.74, 0.23, 0.86));
    sim.generator_cpu = 0.02;
    let found = explained(&mut sim).bottleneck;
    assert!(
        found.title.contains("of the time (") && found.title.contains("other processes"),
        "{}",
        found.title
    );
    // Where nothing is left for it, the host is the name.
    let mut sim = SimulatedRun::new();
    on_two_cores(&mut sim, (0.55, 0.42, 0.97));
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("cpu_full"), "{found:#?}");
    assert!(found.title.contains("by other processes"), "{}", found.title);
}

/// A thread that wakes often on a host that others use by half waits a little each time, and is
/// bound nowhere.
#[test]
fn a_thread_that_wakes_on_a_half_busy_host_is_not_pinned() {
    for (cpu, wait) in [(0.23, 0.15), (0.30, 0.22)] {
        for allowed in [None, Some(2.0)] {
            let mut sim = SimulatedRun::new();
            on_two_cores(&mut sim, (cpu, wait, 0.62));
            allowed.into_iter().for_each(|cpus| may_run_on(&mut sim, cpus));
            let found = explained(&mut sim).bottleneck;
            assert_eq!(
                (found.verdict, &found.finding),
                (BottleneckVerdict::Unattributed, &None),
                "{found:#?}"
            );
        }
    }
}

#[test]
fn a_thread_that_is_bound_is_said_to_be_so_and_no_other() {
    let waits = |cpus: Option<f64>, nice: Option<&str>| {
        let mut sim = SimulatedRun::new();
        plant_of("run_queue")(&mut sim);
        cpus.into_iter().for_each(|cpus| may_run_on(&mut sim, cpus));
        sim.facts.extend(nice.map(|nice| ("media.nice".to_owned(), nice.to_owned())));
        let found = explained(&mut sim).bottleneck;
        assert_eq!(found.finding.as_deref(), Some("run_queue"), "{found:#?}");
        (found.title, found.change.unwrap_or_default())
    };
    let (title, change) = waits(Some(1.0), None);
    assert!(
        title.ends_with("it may run on 1 of 8") && change.contains("taskset"),
        "{title}: {change}"
    );
    let (title, change) = waits(Some(8.0), Some("10"));
    assert!(title.ends_with("lowered priority") && change.contains("nice"), "{title}: {change}");
    let (title, change) = waits(Some(8.0), Some("0"));
    assert!(!change.contains("taskset") && !change.contains("nice"), "{title}: {change}");
}

/// A host that is nearly full, and a thread for which the rest is not enough: bound to a CPU, that
/// is why.
#[test]
fn a_bound_thread_on_a_host_that_is_not_full_is_bound_and_one_that_is_not_lacks_the_host() {
    for (allowed, key, title) in [
        (None, "cpu_full", "The host leaves thread worker-0 (11) too little CPU time: "),
        (
            Some(1.0),
            "run_queue",
            "Thread worker-0 (11) waits for a CPU though other CPUs are idle: it may run on 1 of 2",
        ),
    ] {
        let mut sim = SimulatedRun::new();
        on_two_cores(&mut sim, (0.50, 0.30, 0.90));
        allowed.into_iter().for_each(|cpus| may_run_on(&mut sim, cpus));
        let found = explained(&mut sim).bottleneck;
        assert_eq!(found.finding.as_deref(), Some(key), "{found:#?}");
        assert!(found.title.starts_with(title), "{}", found.title);
    }
    // On a full host no CPU is left for it anyhow.
    let mut sim = SimulatedRun::new();
    on_two_cores(&mut sim, (0.55, 0.42, 0.97));
    may_run_on(&mut sim, 1.0);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("cpu_full"), "{found:#?}");
    assert!(found.title.starts_with("All 2 cores of the host are busy"), "{}", found.title);
}

/// Three quarters of a core in the mean are no full thread, and a fifth of its moments is
/// saturated.
#[test]
fn a_thread_with_room_in_its_seconds_is_short_of_what_its_bursts_take() {
    check("cpu_bursts", |sim| {
        sim.without("thread.cpu").without("thread.run_queue_wait");
        sim.bursty_thread("media", "worker-0", 11, |m| match (m.over, m.tenth) {
            (true, 0 | 1) => 0.99,
            (true, _) => 0.69,
            (false, _) => 0.016 * m.users,
        });
        sim.process("media", |m| 0.018 * m.users);
    });
}

/// What is sent grows no further while a thread waits for a CPU, or its group is throttled: a user
/// costs no less there.
#[test]
fn a_use_that_flattens_while_the_server_is_starved_is_no_cheaper_user() {
    let is_short = |m: Moment| m.users > 23.5;
    for is_throttled in [false, true] {
        let mut sim = SimulatedRun::new();
        sim.put("nic.tx_bytes", &[("interface", "eth0")], Unit::BytesPerSecond, Some(125e6), |m| {
            125e3 * (m.users.min(22.0) + 0.3 * (m.users - 22.0).max(0.0))
        });
        if is_throttled {
            sim.put(
                "cgroup.throttled_periods",
                &[("cgroup", "/media")],
                Unit::Ratio,
                None,
                move |m| {
                    if is_short(m) { 0.3 } else { 0.0 }
                },
            );
        } else {
            let wait = move |m: Moment| if is_short(m) { 0.5 } else { 0.01 };
            sim.thread("media", "worker-0", 11, |m| 0.02 * m.users.min(24.0), wait);
        }
        let demand = explained(&mut sim).demand;
        let sent = demand.iter().find(|demand| demand.resource == Resource::NicSent).unwrap();
        assert!((sent.per_user / 125e3 - 1.0).abs() < 0.05, "{is_throttled}: {sent:?}");
    }
}
