//! Which interface and which CPU of several is the limit.

use throng_observation::host::Unit;

use super::planted_limits::{full, hot_worker};
use super::simulated_run::{Moment, SimulatedRun};
use super::{explained, plant_of};
use crate::demand::Resource;

/// A thread is the limit, and an interface looks like one: no line is suspected.
#[track_caller]
fn assert_no_line_is_suspected(look_alike: impl Fn(&mut SimulatedRun)) {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    look_alike(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{found:#?}");
    assert!(found.other_findings.iter().all(|other| other.finding != "line_rate"), "{found:#?}");
}

/// What watches the server tells more of a larger crowd, by an interface with a small shaper.
#[test]
fn a_shaper_of_what_is_not_the_load_is_no_limit() {
    assert_no_line_is_suspected(|sim| {
        let tunnel = [("interface", "wg0")];
        sim.put("nic.tx_bytes", &tunnel, Unit::BytesPerSecond, None, |m| 2e3 * m.users);
        sim.put("nic.tx_packets", &tunnel, Unit::PerSecond, None, |m| 2.0 * m.users);
        let if_over = |many: f64| {
            move |m: Moment| {
                if m.over { many } else { 0.0 }
            }
        };
        sim.put("qdisc.drops", &tunnel, Unit::PerSecond, None, if_over(20.0));
        sim.put("qdisc.overlimits", &tunnel, Unit::PerSecond, None, if_over(500.0));
        sim.put("qdisc.backlog_packets", &tunnel, Unit::Count, None, if_over(90.0));
    });
}

#[test]
fn what_sends_more_than_its_speed_has_none() {
    assert_no_line_is_suspected(|sim| {
        let tunnel = [("interface", "tun0")];
        let says = Some(10e6 / 8.0);
        sim.put("nic.tx_bytes", &tunnel, Unit::BytesPerSecond, says, |m| 6e4 * m.users);
    });
}

/// What a container sends by its `eth0` waits at that of the host.
#[test]
fn a_queue_is_that_of_the_interface_in_its_network_namespace() {
    let mut sim = SimulatedRun::new();
    plant_of("line_rate")(&mut sim);
    sim.put("qdisc.drops", &[("interface", "eth0")], Unit::PerSecond, None, |m| {
        if m.over { 400.0 } else { 0.0 }
    });
    let inside = [("interface", "eth0"), ("netns", "4000")];
    sim.put("nic.tx_bytes", &inside, Unit::BytesPerSecond, None, |m| 2e5 * m.users);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("line_rate"), "{found:#?}");
    assert!(found.title.starts_with("eth0 is full"), "{}", found.title);
}

/// A tunnel to somewhere else that drops what it is sent.
#[test]
fn a_path_that_loses_is_named_though_another_interface_drops_packets() {
    let mut sim = SimulatedRun::new();
    plant_of("path_loss")(&mut sim);
    sim.put("qdisc.drops", &[("interface", "eth1")], Unit::PerSecond, None, |_| 10.0);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("path_loss"), "{found:#?}");
}

/// Packets of more users come to other CPUs too; the one that is full is the limit.
#[test]
fn the_cpu_that_is_full_is_named_beside_one_whose_soft_interrupts_grow_more() {
    let mut sim = SimulatedRun::new();
    plant_of("softirq")(&mut sim);
    sim.put("core.softirq", &[("cpu", "0")], Unit::Ratio, None, |m| 0.12 + 0.73 * full(m));
    sim.put("core.softirq", &[("cpu", "1")], Unit::Ratio, None, |m| 0.78 * full(m));
    let explained = explained(&mut sim);
    let found = explained.bottleneck;
    assert_eq!(found.finding.as_deref(), Some("softirq"), "{found:#?}");
    assert!(found.title.contains("CPU 0"), "{}", found.title);
    let of_core = explained.demand.iter().find(|one| one.resource == Resource::SoftirqCore);
    assert_eq!(of_core.map(|core| core.instance.as_str()), Some("0"), "{of_core:?}");
}
