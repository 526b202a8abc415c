//! The law that every finding is held to: what does not change with the load explains nothing, and
//! what it hides it must not hide.

use throng_observation::host::catalogue::{ALL, Metric};
use throng_observation::host::{HostEventKind, Unit};
use throng_observation::{Goal, HoldOutcome};

use super::explained;
use super::planted_limits::{PLANTED_LIMITS, full, hot_worker, send_buffers, slow_reader};
use super::simulated_run::{PASS, SimulatedRun, UserImpact};
use crate::bottleneck::{Bottleneck, BottleneckVerdict, Explanation, explain};
use crate::demand::growth::Growth;
use crate::demand::{Demand, Prediction, Resource};
use crate::findings::RULES;
use crate::sizing::{SizeRequest, SizedResource, Sizing};

/// Findings from events and from the crowd alone: there is no counter that could be constant.
const NOT_OF_COUNTERS: &[&str] = &[
    "generator_limited",
    "server_crashed",
    "never_connected",
    "never_served",
    "source_stopped",
    "signalling_serialised",
    "address_limit",
    "configured_ceiling",
    "path_loss",
];
/// What says what a full CPU is busy with, and is no limit by itself.
const EXPLAINS: &[&str] = &["hot_function", "crypto", "system_calls"];

const HARMS: [UserImpact; 4] =
    [UserImpact::Delay, UserImpact::Loss, UserImpact::NotServed, UserImpact::Stall];

/// All findings, the named one first.
fn said(found: &Bottleneck) -> Vec<&str> {
    found
        .finding
        .iter()
        .chain(found.other_findings.iter().map(|other| &other.finding))
        .map(String::as_str)
        .collect()
}

#[test]
fn every_finding_is_held_to_the_law() {
    for (key, _) in RULES {
        let is_planted = PLANTED_LIMITS.iter().any(|(planted, _)| planted == key);
        let is_told_elsewhere = NOT_OF_COUNTERS.contains(key) || EXPLAINS.contains(key);
        assert!(is_planted || is_told_elsewhere, "{key} has no limit in PLANTED_LIMITS");
    }
}

#[test]
fn what_grows_with_the_load_is_named_and_what_is_always_so_is_not() {
    for (key, plant) in PLANTED_LIMITS {
        super::check(key, plant);
        if NOT_OF_COUNTERS.contains(key) {
            continue;
        }
        for impact in HARMS {
            let mut sim = SimulatedRun::new();
            plant(&mut sim);
            sim.freeze();
            sim.events.retain(|(kind, _)| *kind != HostEventKind::ProcessEnded);
            (sim.impact, sim.refusals, sim.profile) = (impact, None, None);
            let found = explained(&mut sim).bottleneck;
            assert!(!said(&found).contains(key), "{key} was as full before: {found:#?}");
        }
    }
}

/// Every metric of the catalogue as full as it can be, at any load: with all labels that any of
/// them has.
fn fill(sim: &mut SimulatedRun, metric: &'static Metric) {
    let labels = [
        ("process", "media"),
        ("pid", "7"),
        ("tid", "11"),
        ("thread", "worker-0"),
        ("cpu", "0"),
        ("device", "vda"),
        ("interface", "eth0"),
        ("port", "5004"),
        ("protocol", "udp"),
        ("cgroup", "/media"),
    ];
    sim.without(metric.name);
    let most = match metric.unit {
        Unit::Ratio if metric.name.starts_with("host.cpu") => 8.0,
        Unit::Ratio => 1.0,
        Unit::Count | Unit::PerSecond => 1e5,
        Unit::Bytes => 8e9,
        Unit::BytesPerSecond => 125e6,
        Unit::Milliseconds => 500.0,
    };
    let value = if metric.name == "host.memory.available" { 1e6 } else { most };
    sim.put(metric.name, &labels, metric.unit, Some(most), move |_| value);
}

#[test]
fn a_world_in_which_everything_is_always_full_has_no_cause() {
    for impact in HARMS {
        let mut sim = SimulatedRun::new();
        ALL.iter().for_each(|metric| fill(&mut sim, metric));
        sim.impact = impact;
        let found = explained(&mut sim).bottleneck;
        assert_eq!(said(&found), Vec::<&str>::new(), "{found:#?}");
        assert_eq!(found.verdict, BottleneckVerdict::Unattributed);
    }
}

#[test]
fn no_metric_that_is_always_full_is_a_cause() {
    for metric in ALL {
        let mut sim = SimulatedRun::new();
        fill(&mut sim, metric);
        let found = explained(&mut sim).bottleneck;
        assert_eq!(said(&found), Vec::<&str>::new(), "{}: {found:#?}", metric.name);
    }
}

/// A thread that polls, in addition to the limit of the server.
fn victim(sim: &mut SimulatedRun) {
    let labels = [("process", "poller"), ("pid", "66"), ("tid", "66"), ("thread", "poller")];
    sim.put("thread.cpu", &labels, Unit::Ratio, Some(1.0), |_| 0.985);
    sim.put("thread.run_queue_wait", &labels, Unit::Ratio, None, |_| 0.01);
}

#[test]
fn a_thread_that_always_works_is_not_named_and_makes_nothing_its_symptom() {
    let mut sim = SimulatedRun::new();
    victim(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
    let why = &found.ruled_out[0];
    assert!(
        why.starts_with("Thread poller (66) is as busy at every load (98")
            && why.contains("is not the cause"),
        "{why}"
    );
    for (key, plant) in PLANTED_LIMITS {
        super::check(key, |sim| {
            plant(sim);
            victim(sim);
        });
    }
}

#[test]
fn a_host_that_others_keep_full_is_not_the_limit_of_a_server_that_uses_little() {
    let mut sim = SimulatedRun::new();
    sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |_| 2.0);
    sim.thread("media", "worker-0", 11, |m| 0.001 * m.users, |m| 0.002 * m.users);
    sim.process("media", |m| 0.002 * m.users);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
    assert!(
        found.ruled_out[0].contains("100.0 % of 2 cores busy, 100.0 % before"),
        "{:?}",
        found.ruled_out
    );
}

/// Two compilers at nice 19 on two cores: the host is never idle.
fn low_priority(sim: &mut SimulatedRun, own: fn(super::simulated_run::Moment) -> f64) {
    sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |_| 2.0);
    sim.put("host.cpu.nice", &[], Unit::Ratio, Some(2.0), move |m| 2.0 - own(m));
}

#[test]
fn low_priority_work_is_no_full_host() {
    let mut sim = SimulatedRun::new();
    low_priority(&mut sim, |m| 0.1 + 0.01 * m.users);
    // Its threads wait a little longer as they work more, and that is all.
    sim.thread("media", "worker-0", 11, |m| 0.004 * m.users, |m| 0.0025 * m.users);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
    assert!(
        found.ruled_out.iter().any(|said| said.contains("low-priority work of others")),
        "{found:#?}"
    );
    super::check("one_thread_full", |sim| {
        hot_worker(sim);
        low_priority(sim, |m| full(m) + 0.1);
    });
    // Work that does not make way is in the way, whatever its priority: the server's own wait
    // decides.
    let mut sim = SimulatedRun::new();
    low_priority(&mut sim, |m| full(m) + 0.1);
    sim.thread("media", "worker-0", 11, |m| 0.7 * full(m), |m| if m.over { 0.3 } else { 0.02 });
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("cpu_full"), "{found:#?}");
    assert!(found.title.contains("though they run at lower priority"), "{}", found.title);
    // What the server itself runs at low priority is its own.
    super::check("cpu_full", |sim| {
        sim.without("thread.cpu").without("thread.run_queue_wait");
        for (name, tid) in [("worker-0", 11), ("worker-1", 12)] {
            sim.thread("media", name, tid, |m| 0.85 * full(m), |m| if m.over { 0.3 } else { 0.02 });
        }
        sim.process("media", |m| 1.7 * full(m));
        sim.put(
            "process.cpu.user",
            &[("process", "media"), ("pid", "7")],
            Unit::Ratio,
            None,
            |m| 1.6 * full(m),
        );
        sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |m| 2.0 * full(m));
        sim.put("host.cpu.nice", &[], Unit::Ratio, Some(2.0), |m| 1.6 * full(m));
        sim.facts.insert("media.nice".into(), "10".into());
    });
}

#[test]
fn a_server_that_others_leave_too_little_cpu_is_short_of_it() {
    super::check("cpu_full", |sim| {
        sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |_| 2.0);
        sim.without("thread.cpu").without("thread.run_queue_wait");
        for (name, tid) in [("worker-0", 11), ("worker-1", 12)] {
            sim.thread(
                "media",
                name,
                tid,
                |m| 0.45 * full(m),
                |m| if m.over { 0.5 } else { 0.01 * m.users },
            );
        }
        sim.process("media", |m| 0.9 * full(m));
    });
}

#[test]
fn drops_that_begin_are_not_the_doing_of_a_thread_that_polls() {
    for (key, plant) in [
        ("udp_receive_buffer", slow_reader as fn(&mut SimulatedRun)),
        ("backpressure", send_buffers),
    ] {
        let mut sim = SimulatedRun::new();
        plant(&mut sim);
        victim(&mut sim);
        let found = explained(&mut sim).bottleneck;
        assert_eq!(said(&found).first().copied(), Some(key), "{found:#?}");
    }
}

/// What was full at the first load, which failed: nothing shows that it grew, and nothing that it
/// did not.
#[test]
fn a_floor_that_failed_itself_is_no_floor() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    let mut run = sim.freeze().run();
    run.holds.truncate(2);
    for hold in &mut run.holds {
        (hold.users, hold.passed) = (8, [HoldOutcome::No; 3]);
    }
    let found = explain(&run, Goal::Acceptable).bottleneck;
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("one_thread_full")),
        "{found:#?}"
    );
    assert_eq!(found.baseline_s, None);
}

/// Resources of a whole server, what `price` calls them, and the one finding whose change gives
/// more of it.
const KEPT: [(Resource, SizedResource, &str); 7] = [
    (Resource::HostCpu, SizedResource::Cpu, "cpu_full"),
    (Resource::ProcessCpu, SizedResource::Cpu, "cpu_full"),
    (Resource::NicSent, SizedResource::NicSent, "line_rate"),
    (Resource::Memory, SizedResource::Memory, "memory"),
    (Resource::Descriptors, SizedResource::Descriptors, "file_descriptors"),
    (Resource::Ports, SizedResource::Ports, "local_ports"),
    (Resource::Conntrack, SizedResource::Conntrack, "conntrack"),
];

/// The crowd of the prediction uses no more of what the change leaves than there is, by the sizes
/// of `price`.
fn holds_by_price(finding: &str, found: &Explanation, then: &Prediction) {
    let request =
        SizeRequest { users: then.users, target_utilisation: 1.0, shares_host_with_crowd: false };
    let size = Sizing::of(&found.demand, None, request).size(None);
    for (resource, sized, _) in KEPT.into_iter().filter(|(.., relieved_by)| *relieved_by != finding)
    {
        let of_it: Vec<&Demand> = found
            .demand
            .iter()
            .filter(|demand| demand.resource == resource && demand.grows())
            .collect();
        let need = size.needs.iter().find(|need| need.resource == sized);
        // The needs of several processes are added up, and their limits are not.
        if let ([demand], Some(need)) = (of_it.as_slice(), need)
            && let Some(usable) = demand.usable()
        {
            let used = need.used.value;
            assert!(used <= 1.001 * usable, "{finding}: {used} of {usable} of {sized:?}, {then:?}");
        }
    }
}

#[test]
fn what_a_change_would_give_is_what_the_price_says() {
    let mut checked = 0;
    for (key, plant) in PLANTED_LIMITS {
        let mut sim = SimulatedRun::new();
        plant(&mut sim);
        let found = explained(&mut sim);
        let finding = found.bottleneck.finding.clone().unwrap_or_default();
        let served = f64::from(PASS);
        let Some(then) = found.bottleneck.prediction.as_ref().filter(|then| then.users > served)
        else {
            continue;
        };
        holds_by_price(&finding, &found, then);
        let next = found
            .demand
            .iter()
            .find(|demand| demand.name_and_setting() == then.next_resource)
            .unwrap();
        let (usable, growth) = (next.usable().unwrap(), Growth::of(&[next]).unwrap());
        let used = growth.at(then.users);
        if then.users_high.is_some() {
            assert!(
                (used.value / usable - 1.0).abs() < 1e-3,
                "{key}: {used:?} of {usable}, {then:?}"
            );
        } else {
            assert!(used.value <= usable, "{key}: {used:?} of {usable}, {then:?}");
        }
        checked += 1;
    }
    assert!(checked > PLANTED_LIMITS.len() / 2, "{checked} of {}", PLANTED_LIMITS.len());
}
