//! Error counters that grow evenly through the limit, from nothing: the largest load that passes
//! has nearly as many.

use throng_observation::host::Unit;

use super::simulated_run::{Moment, SimulatedRun, UserImpact};
use super::{check, explained};
use crate::bottleneck::BottleneckVerdict;

/// From a third of the crowd on: none with 4 users, 55 a second with 28, 110 with 40, which pass,
/// and 120 with 42, which fail.
fn evenly(moment: Moment) -> f64 {
    (moment.users - 16.0).max(0.0) * 4.6
}

fn send_buffers(sim: &mut SimulatedRun) {
    sim.put("udp.sndbuf_errors", &[], Unit::PerSecond, None, evenly);
}

/// A small send buffer behind a slow queue: only audio loses packets, as many as are refused.
#[test]
fn drops_that_users_miss_are_a_cause_though_the_load_before_had_nearly_as_many() {
    let plant = |sim: &mut SimulatedRun| {
        send_buffers(sim);
        sim.impact = UserImpact::Loss;
        sim.lost_per_s = Some(evenly);
    };
    check("backpressure", plant);
    let mut sim = SimulatedRun::new();
    plant(&mut sim);
    let found = explained(&mut sim).bottleneck;
    let counters: Vec<_> = found.evidence.iter().map(|line| line.counter.as_str()).collect();
    assert!(counters.contains(&"audio packets that users missed at first"), "{counters:?}");
}

/// Packets that are counted lost in one second and come in the next were not missed.
#[test]
fn packets_that_come_a_second_late_leave_the_number_of_those_missed_as_it_is() {
    check("backpressure", |sim| {
        send_buffers(sim);
        sim.impact = UserImpact::Loss;
        sim.lost_per_s = Some(|m| evenly(m) * if m.second % 2 == 0 { 5.0 } else { -3.0 });
    });
}

/// Where each second of the failing load is bad and none before it, no second tells whether drops
/// make it bad.
#[test]
fn drops_of_which_no_second_tells_whether_they_are_felt_are_a_suspect() {
    let mut sim = SimulatedRun::new();
    send_buffers(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::Suspect, Some("backpressure")),
        "{found:#?}"
    );
    assert!(
        found.title.ends_with("whether users had worse service in those seconds is not known"),
        "{}",
        found.title
    );
}

#[test]
fn drops_that_users_do_not_feel_are_none() {
    let mut sim = SimulatedRun::new();
    send_buffers(&mut sim);
    sim.is_bad = Some(each_fourth);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
    let even = "grew evenly through the limit";
    let why = found.ruled_out.iter().find(|said| said.contains(even));
    let why = why.unwrap_or_else(|| panic!("{:#?}", found.ruled_out));
    assert!(
        why.starts_with("udp.sndbuf_errors ")
            && why.contains("users were not worse in its seconds"),
        "{why}"
    );
}

fn each_fourth(moment: Moment) -> bool {
    moment.users > 30.0 && moment.second % 4 == 0
}

/// Datagrams that the server does not receive are missed by nobody one by one, but users are worse
/// in those seconds.
#[test]
fn drops_in_the_bad_seconds_are_a_cause_and_drops_in_all_seconds_are_none() {
    let plant = |sim: &mut SimulatedRun, more: f64| {
        sim.put("udp.rcvbuf_errors", &[], Unit::PerSecond, None, move |m| {
            evenly(m) * if each_fourth(m) { more } else { 1.0 }
        });
        sim.is_bad = Some(each_fourth);
    };
    check("udp_receive_buffer", |sim| plant(sim, 2.0));
    let mut sim = SimulatedRun::new();
    plant(&mut sim, 1.0);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, &found.finding),
        (BottleneckVerdict::Unattributed, &None),
        "{found:#?}"
    );
}
