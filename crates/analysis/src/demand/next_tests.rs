use super::*;
use crate::demand::{Resource, of_points, of_used, used_at};
use crate::sizing::{SizeRequest, SizedResource, Sizing};

/// The loads of a search, all of which passed.
const LOADS: [f64; 9] = [4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0];

fn points(use_of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    LOADS.iter().map(|users| (*users, use_of(*users))).collect()
}

fn demand(resource: Resource, limit: Option<f64>, use_of: impl Fn(f64) -> f64) -> Demand {
    of_points(resource, limit, &points(use_of)).expect("a fit")
}

/// What other things do to a use: up at one load, down at the next.
fn stir(users: f64) -> f64 {
    if (users / 4.0) % 2.0 == 0.0 { 1.0 } else { -1.0 }
}

/// One process in a container of 8 GB.
fn memory() -> Demand {
    demand(Resource::Memory, Some(8e9), |users| 1e8 + 1e6 * users)
}

fn next(demands: &[Demand]) -> Prediction {
    after(demands, 36.0, 36.0, |_| false).expect("a prediction")
}

/// What `price` says that so many users need of it on one server.
fn priced(demands: &[Demand], resource: SizedResource, users: f64) -> f64 {
    let request = SizeRequest { users, target_utilisation: 1.0, shares_host_with_crowd: false };
    Sizing::of(demands, None, request).need(resource).expect("a need").used.value
}

#[test]
fn a_use_that_bends_down_ends_where_the_price_says() {
    // The parabola is never above 1.5 cores. One more user costs 0.0168 cores at 36.
    let cpu = demand(Resource::HostCpu, Some(2.0), |users| 0.06 * users - 0.000_6 * users * users);
    let demands = [memory(), cpu];
    let then = next(&demands);
    assert_eq!(then.next_resource, "CPU of the host", "{then:?}");
    assert!((then.users - 66.81).abs() < 0.1 && then.users_high.is_some(), "{then:?}");
    assert!((priced(&demands, SizedResource::Cpu, then.users) - 1.9).abs() < 0.01, "{then:?}");
}

#[test]
fn a_host_that_flattens_behind_a_full_thread_does_not_have_room_for_ever() {
    // From 24 users on the thread is full, and what it hands to others stays as it is.
    let flat = |users: f64| users.min(24.0);
    let (thread, loads) = used_at(Resource::Thread, Some(1.0), &points(|users| 0.04 * flat(users)));
    let (cpu, _) = used_at(Resource::HostCpu, Some(2.0), &points(|users| 0.05 * flat(users)));
    let demands = of_used(&[thread, cpu], &loads, &vec![false; loads.len()]);
    let relieved = |demand: &Demand| demand.resource == Resource::Thread;
    let then = after(&demands, 36.0, 36.0, relieved).expect("a prediction");
    assert_eq!(then.next_resource, "CPU of the host", "{demands:#?}");
    assert!((then.users - 38.0).abs() < 0.5, "{then:?}");
    assert!((priced(&demands, SizedResource::Cpu, then.users) - 1.9).abs() < 0.01, "{then:?}");
}

#[test]
fn a_crowd_that_was_served_is_no_end() {
    let cpu = demand(Resource::HostCpu, Some(2.0), |users| 0.06 * users);
    let then = after(&[cpu], 34.0, 36.0, |_| false).expect("a prediction");
    assert!(then.users == 34.0 && then.users_high.is_some_and(|high| high >= 35.0), "{then:?}");
}

#[test]
fn what_cannot_be_told_from_noise_is_known_up_to_where_the_noise_may_reach() {
    // A fifth of a core more or less at each load, on two cores: nothing grows measurably.
    let cpu = demand(Resource::HostCpu, Some(2.0), |users| 1.0 + 0.2 * stir(users));
    assert!(!cpu.grows(), "{cpu:?}");
    let then = next(&[memory(), cpu.clone()]);
    assert_eq!(
        (then.next_resource.as_str(), then.users_high),
        ("CPU of the host", None),
        "{then:?}"
    );
    assert!(then.users > 36.0 && then.users < 144.0 && then.extrapolated, "{then:?}");
    let growth = Growth::of(&[&cpu]).expect("a fit");
    assert!((growth.at(then.users).high - 1.9).abs() < 0.01, "{then:?}");
}

#[test]
fn what_is_as_full_at_any_load_ends_nothing() {
    let poller = demand(Resource::Thread, Some(1.0), |users| 0.985 + 0.001 * stir(users));
    let then = next(&[memory(), poller]);
    assert_eq!((then.next_resource.as_str(), then.users), ("memory of media", 144.0), "{then:?}");
}

#[test]
fn what_grows_without_a_known_limit_is_named() {
    let line = demand(Resource::NicSent, None, |users| 1e5 * users);
    let idle = demand(Resource::UdpSockets, None, |users| 7.0 + 0.1 * stir(users));
    let then = next(&[memory(), line.clone(), idle]);
    assert_eq!((then.users, then.users_high), (144.0, None));
    assert_eq!(then.unknown, ["bytes sent by media"]);
    // It is relieved: then nobody needs to know.
    let eased = after(&[memory(), line], 36.0, 36.0, |demand| demand.resource == Resource::NicSent);
    assert_eq!(eased.expect("memory").unknown, Vec::<String>::new());
}

#[test]
fn nothing_is_predicted_where_no_limit_is_known() {
    let line = demand(Resource::NicSent, None, |users| 1e5 * users);
    assert_eq!(after(&[line], 36.0, 36.0, |_| false), None);
    assert_eq!(after(&[], 36.0, 36.0, |_| false), None);
}

#[test]
fn a_curve_is_not_drawn_out_farther_than_the_price_draws_it() {
    let cpu = demand(Resource::HostCpu, Some(64.0), |users| 0.02 * users + 0.000_5 * users * users);
    let then = after(&[cpu], 36.0, 50.0, |_| false).expect("a prediction");
    // Four times the largest load of the fit, though 50 users were tried.
    assert_eq!((then.users, then.users_high), (144.0, None), "{then:?}");
}

#[test]
fn what_has_no_known_limit_is_named_by_a_noun() {
    let names = [
        (Resource::HostCpu, "CPU of the host"),
        (Resource::Thread, "thread media"),
        (Resource::ThreadGroup, "threads media"),
        (Resource::ProcessCpu, "CPU of media"),
        (Resource::Quota, "CPU quota"),
        (Resource::SoftirqCore, "soft interrupts of one CPU"),
        (Resource::NicSent, "bytes sent by media"),
        (Resource::NicSentPackets, "packets sent by media"),
        (Resource::NicReceived, "bytes received by media"),
        (Resource::NicReceivedPackets, "packets received by media"),
        (Resource::Descriptors, "file descriptors of media"),
        (Resource::Memory, "memory of media"),
        (Resource::DiskRead, "bytes read from media"),
        (Resource::UdpSockets, "UDP sockets"),
        (Resource::TcpConnections, "TCP connections"),
        (Resource::Ports, "local ports"),
        (Resource::Conntrack, "tracked connections"),
    ];
    let is_next = |(at, (resource, _)): (usize, &(Resource, &str))| *resource as usize == at;
    assert!(names.iter().enumerate().all(is_next), "one is left out");
    for (resource, name) in names {
        assert_eq!(demand(resource, None, |users| 1e5 * users).name(), name);
        let is_verb = ["sent ", "received ", "read "].iter().any(|verb| name.starts_with(verb));
        assert!(!is_verb, "the limit of {name}");
    }
}
