//! Limits of the CPU that look alike on a small host: which of them it is, and what is advised.

use throng_observation::host::Unit;

use super::simulated_run::{FAIL, Moment, SimulatedRun};
use super::{check, explained, plant_of};
use crate::bottleneck::BottleneckVerdict;

/// A thread of a server on two cores that runs and waits for these shares of the time under the load that fails, while the
/// host is busy by that share.
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

/// One full thread on two cores, as it is measured in ten runs: it runs for less of the time the more others run, and waits for
/// what it would use.
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

/// A thread that wakes often on a host that others use by half waits a little each time, and is bound nowhere.
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
    assert!(title.ends_with("it may run on 1 of 8") && change.contains("taskset"), "{title}: {change}");
    let (title, change) = waits(Some(8.0), Some("10"));
    assert!(title.ends_with("lowered priority") && change.contains("nice"), "{title}: {change}");
    let (title, change) = waits(Some(8.0), Some("0"));
    assert!(!change.contains("taskset") && !change.contains("nice"), "{title}: {change}");
}
