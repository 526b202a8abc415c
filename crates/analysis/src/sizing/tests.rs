use throng_observation::run::{CrowdRow, RunData, SeriesRow};
use throng_observation::{Goal, PlaybackCounters, PlaybackRow, TrackCounters};

use super::*;
use crate::demand::{FittedUse, of_points};

/// xorshift64*: noise that is the same in every run of the test.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of variance 1, near enough to normal: the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Eight loads up to 100 users.
const LOADS: [f64; 8] = [10.0, 20.0, 30.0, 45.0, 60.0, 75.0, 90.0, 100.0];

/// A demand as it is fitted to a planted use with a relative noise.
fn planted(
    resource: Resource,
    limit: Option<f64>,
    noise: (&mut Noise, f64),
    use_of: impl Fn(f64) -> f64,
) -> Demand {
    let (random, size) = noise;
    let points: Vec<(f64, f64)> = LOADS
        .iter()
        .map(|users| (*users, use_of(*users) * (1.0 + size * random.normal())))
        .collect();
    of_points(resource, limit, &points).expect("a fit")
}

/// A straight use without noise, at too few loads for a square that rounding errors make.
fn exact(resource: Resource, limit: Option<f64>, use_of: impl Fn(f64) -> f64) -> Demand {
    let points = [10.0, 30.0, 50.0, 75.0, 100.0].map(|users| (users, use_of(users)));
    of_points(resource, limit, &points).expect("a fit")
}

/// A curved use without noise.
fn exact_curve(use_of: impl Fn(f64) -> f64) -> Demand {
    planted(Resource::HostCpu, None, (&mut Noise(1), 0.0), use_of)
}

fn request(users: f64) -> SizeRequest {
    SizeRequest { users, target_utilisation: 0.75, shares_host_with_crowd: false }
}

/// A server of 20 users per core, 4 Mbit/s and 5 MB each.
fn server() -> Vec<Demand> {
    vec![
        exact(Resource::HostCpu, Some(8.0), |users| 0.1 + 0.05 * users),
        exact(Resource::ProcessCpu, Some(8.0), |users| 0.01 + 0.03 * users),
        exact(Resource::NicSent, Some(125e6), |users| 5e5 * users),
        exact(Resource::Memory, Some(8e9), |users| 1e8 + 5e6 * users),
        exact(Resource::Thread, Some(1.0), |users| 0.005 * users),
    ]
}

fn need_of(demands: &[Demand], resource: SizedResource, users: f64) -> ResourceNeed {
    Sizing::of(demands, None, request(users)).need(resource).expect("a need")
}

fn is_near(got: f64, expect: f64) -> bool {
    (got - expect).abs() <= 1e-6 * expect.abs().max(1.0)
}

fn machine(name: &str, vcpus: f64, memory_gb: f64, gbit_per_s: f64) -> MachineType {
    MachineType {
        name: name.into(),
        vcpus,
        cpu_speed: 1.0,
        memory_bytes: memory_gb * 1e9,
        network_bytes_per_s: gbit_per_s * 125e6,
    }
}

#[test]
fn a_planted_demand_gives_the_planted_need() {
    let demands = server();
    for (resource, expect, per) in [
        (SizedResource::Cpu, 0.1 + 0.05 * 400.0, 20.0),
        (SizedResource::NicSent, 5e5 * 400.0, 250.0),
        (SizedResource::Memory, 1e8 + 5e6 * 400.0, 200.0),
    ] {
        let need = need_of(&demands, resource, 400.0);
        assert!(is_near(need.used.value, expect), "{need:?}");
        assert!(is_near(need.provide.value, expect / 0.75), "{need:?}");
        assert!(need.users_per.is_some_and(|users| is_near(users.value, per)), "{need:?}");
        assert_eq!(
            (need.extrapolation.factor, need.extrapolation.order_of_magnitude_only),
            (4.0, false)
        );
        assert!(!need.is_curved && need.dominant_share > 0.99, "{need:?}");
    }
}

#[test]
fn the_cpu_is_the_hosts_unless_the_generator_is_on_it() {
    let demands = server();
    let apart = need_of(&demands, SizedResource::Cpu, 100.0);
    assert_eq!(apart.dominant, "CPU of the host");
    let together = SizeRequest { shares_host_with_crowd: true, ..request(100.0) };
    let sizing = Sizing::of(&demands, None, together);
    let need = sizing.need(SizedResource::Cpu).unwrap();
    assert!(is_near(need.used.value, 3.01), "{need:?}");
    assert!(sizing.size(None).notes.iter().any(|note| note.contains("ran on the server's host")));
}

#[test]
fn several_processes_add_up_and_the_largest_is_named() {
    let (small, large) = (
        exact(Resource::ProcessCpu, None, |users| 0.01 * users),
        Demand {
            instance: "sfu".into(),
            ..exact(Resource::ProcessCpu, None, |users| 0.03 * users)
        },
    );
    let need = need_of(&[small, large], SizedResource::Cpu, 100.0);
    assert!(is_near(need.used.value, 4.0) && is_near(need.dominant_share, 0.75), "{need:?}");
    assert_eq!(need.dominant, "CPU of sfu");
}

#[test]
fn the_interval_holds_the_truth() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    for (curve, users) in [(0.0, 50.0), (0.0, 300.0), (0.0, 900.0), (0.4, 80.0), (0.4, 200.0)] {
        let use_of = |users: f64| 0.05 + 0.05 * users * (1.0 + curve * users / 100.0);
        let held = (0..400).filter(|_| {
            let demand = planted(Resource::HostCpu, None, (&mut noise, 0.02), use_of);
            let used = need_of(&[demand], SizedResource::Cpu, users).used;
            (used.low..=used.high).contains(&use_of(users))
        });
        let held = held.count();
        assert!(held > 340, "curve {curve}, {users} users: held in {held} of 400");
    }
}

#[test]
fn a_curve_stays_a_curve() {
    let use_of = |users: f64| 0.02 * users + 0.0005 * users * users;
    let demands = [exact_curve(use_of)];
    let need = need_of(&demands, SizedResource::Cpu, 300.0);
    assert!(
        need.is_curved && (need.used.value - use_of(300.0)).abs() < 0.01 * use_of(300.0),
        "{need:?}"
    );
    let straight = 300.0 * use_of(100.0) / 100.0;
    assert!(need.used.value > 2.0 * straight, "{} against {straight}", need.used.value);
    // Bent down: never below what the measurement ended with, and never above the straight line
    // through it.
    let use_of = |users: f64| 0.05 * users - 0.0002 * users * users;
    let demands = [exact_curve(use_of)];
    let need = need_of(&demands, SizedResource::Cpu, 300.0);
    assert!(need.used.value > use_of(100.0) && need.used.value < 3.0 * use_of(100.0), "{need:?}");
}

#[test]
fn more_users_never_need_less() {
    let mut noise = Noise(42);
    let shapes: [fn(f64) -> f64; 4] = [
        |users| 0.1 + 0.05 * users,
        |users| 0.02 * users + 0.0005 * users * users,
        |users| 0.05 * users - 0.0002 * users * users,
        |users| 3.0 - 0.01 * users + 0.0006 * users * users,
    ];
    for use_of in shapes {
        let demands = [
            planted(Resource::HostCpu, Some(8.0), (&mut noise, 0.005), use_of),
            exact(Resource::NicSent, Some(125e6), |users| 5e5 * users),
        ];
        let (mut before, mut machines) = (0.0, 0);
        for users in (1..400).map(|step| f64::from(step) * 7.0) {
            let sizing = Sizing::of(&demands, None, request(users));
            let used = sizing.need(SizedResource::Cpu).unwrap().used;
            assert!(
                used.value >= before && used.low <= used.value && used.value <= used.high,
                "{users}: {used:?}"
            );
            before = used.value;
            let plan = sizing.machines(&machine("m", 16.0, 64.0, 10.0)).unwrap();
            assert!(plan.count >= machines, "{users}: {plan:?}");
            assert!(
                plan.count_low <= plan.count
                    && plan.count_high.is_none_or(|high| high >= plan.count)
            );
            machines = plan.count;
        }
    }
}

#[test]
fn far_beyond_the_measurement_only_the_order_of_magnitude_is_known() {
    let demands = server();
    for (users, is_only) in [(999.0, false), (1_000.0, false), (1_001.0, true), (10_000.0, true)] {
        let need = need_of(&demands, SizedResource::Cpu, users);
        assert_eq!(need.extrapolation.order_of_magnitude_only, is_only, "{users}");
        assert_eq!(need.used.high > 2.9 * need.used.value, is_only, "{need:?}");
    }
    let curved = [exact_curve(|users| 0.02 * users + 0.0005 * users * users)];
    assert!(!need_of(&curved, SizedResource::Cpu, 400.0).extrapolation.order_of_magnitude_only);
    assert!(need_of(&curved, SizedResource::Cpu, 401.0).extrapolation.order_of_magnitude_only);
}

#[test]
fn machines_are_counted_by_the_resource_that_is_used_up_first() {
    let demands = server();
    let sizing = Sizing::of(&demands, None, request(10_000.0));
    // 0.75 × 16 cores: (12 − 0.1) ÷ 0.05 = 238 users.
    let plan = sizing.machines(&machine("cpu", 16.0, 64.0, 10.0)).unwrap();
    assert_eq!((plan.decided_by, plan.count), (Some(SizedResource::Cpu), 43), "{plan:?}");
    assert!(is_near(plan.users_each_max.value, 238.0) && is_near(plan.users_each, 10_000.0 / 43.0));
    // 0.75 of 0.25 Gbit/s: 46.9 users.
    let plan = sizing.machines(&machine("line", 16.0, 64.0, 0.25)).unwrap();
    assert_eq!((plan.decided_by, plan.count), (Some(SizedResource::NicSent), 214), "{plan:?}");
    // (0.75 × 0.5 GB − 100 MB) ÷ 5 MB = 55 users.
    let plan = sizing.machines(&machine("memory", 16.0, 0.5, 10.0)).unwrap();
    assert_eq!((plan.decided_by, plan.count), (Some(SizedResource::Memory), 182), "{plan:?}");
    assert!(sizing.machines(&machine("tiny", 0.1, 64.0, 10.0)).is_err());
    // A machine larger than what the measurement can be drawn out to is not filled.
    let plan = sizing.machines(&machine("huge", 512.0, 4_096.0, 400.0)).unwrap();
    assert_eq!((plan.decided_by, plan.count, plan.extrapolated), (None, 10, 10.0), "{plan:?}");
}

#[test]
fn a_thread_that_is_full_first_asks_for_more_processes() {
    let demands = server();
    let plan = Sizing::of(&demands, None, request(200.0))
        .machines(&machine("m", 16.0, 64.0, 10.0))
        .unwrap();
    // The thread is used to 0.75 by 150 users.
    let processes = plan.processes_each.expect("more than one");
    assert_eq!(
        (processes.count, processes.because_of.as_str()),
        (2, "thread media"),
        "{processes:?}"
    );
    assert!(is_near(processes.users_each, 150.0));
    let few = Sizing::of(&demands, None, request(100.0))
        .machines(&machine("m", 16.0, 64.0, 10.0))
        .unwrap();
    assert_eq!(few.processes_each, None);
}

#[test]
fn servers_like_the_measured_one_are_bounded_by_the_first_limit_or_by_the_search() {
    let demands = server();
    let sizing = Sizing::of(&demands, None, request(1_000.0));
    // The CPU of the host: (6 − 0.1) ÷ 0.05 = 118 users.
    let like = sizing.size(None).like_measured.expect("a limit");
    assert_eq!((like.decided_by.as_str(), like.servers), ("CPU of the host", 9), "{like:?}");
    let capacity = MeasuredCapacity { users: 100.0, first_failing: Some(104.0) };
    let like = sizing.size(Some(&capacity)).like_measured.expect("a limit");
    assert_eq!((like.decided_by.as_str(), like.servers), ("measured capacity", 14), "{like:?}");
    assert_eq!((like.servers_low, like.servers_high), (13, Some(14)));
    assert_eq!(Sizing::of(&[], None, request(10.0)).size(None).like_measured, None);
}

#[test]
fn what_cannot_be_told_from_noise_may_grow_by_the_noise() {
    let mut noise = Noise(7);
    let demands = [
        exact(Resource::HostCpu, Some(8.0), |users| 0.05 * users),
        planted(Resource::Memory, Some(8e9), (&mut noise, 0.01), |_| 2e8),
    ];
    let near = need_of(&demands, SizedResource::Memory, 100.0).used;
    let far = need_of(&demands, SizedResource::Memory, 5_000.0);
    assert!(far.users_per.is_none() && is_near(far.used.value, near.value), "{far:?}");
    assert!(
        near.high < 1.1 * near.value && far.used.high > 1.2 * far.used.value,
        "{near:?} {far:?}"
    );
    assert!(is_near(far.extrapolation.factor, 50.0) && !far.extrapolation.order_of_magnitude_only);
}

#[test]
fn nothing_and_nonsense_are_harmless() {
    let empty = Sizing::of(&[], None, request(100.0));
    assert!(empty.is_empty() && !empty.has_cpu() && empty.size(None).needs.is_empty());
    assert!(empty.machines(&machine("m", 1.0, 1.0, 1.0)).is_err());
    let good = exact(Resource::HostCpu, Some(8.0), |users| 0.05 * users);
    let fit = good.fit.unwrap();
    let wrong = [
        FittedUse { coefficients: [f64::NAN; 3], ..fit },
        FittedUse { covariance: [[f64::INFINITY; 3]; 3], ..fit },
        FittedUse { coefficients: [0.0; 3], ..fit },
        FittedUse { coefficients: [1.0, -2.0, 0.0], ..fit },
        FittedUse { covariance: [[f64::MAX; 3]; 3], ..fit },
        FittedUse { covariance: [[-1.0; 3]; 3], ..fit },
        FittedUse { users_max: 0.0, ..fit },
        FittedUse { users_max: f64::MAX, users_min: -1.0, freedom: 0, ..fit },
    ];
    for fit in wrong {
        for users in [0.0, 1.0, 1e12, f64::MAX, f64::NAN, f64::INFINITY, -5.0] {
            let demands = [
                Demand { fit: Some(fit), ..good.clone() },
                Demand { limit: Some(f64::NAN), fit: Some(fit), ..good.clone() },
            ];
            let capacity = MeasuredCapacity { users: f64::NAN, first_failing: Some(0.0) };
            let sizing = Sizing::of(&demands, None, request(users));
            let _ = (sizing.size(Some(&capacity)), sizing.machines(&machine("m", 4.0, 8.0, 1.0)));
        }
    }
    assert!(
        users_per_unit(&[Demand { fit: None, ..good }], false).is_empty(),
        "a summary of an earlier version"
    );
}

/// So many users for so many seconds, with a rate of bytes each that changes from second to second.
fn streamed(users: u32, seconds: i64, bytes_of: impl Fn(i64) -> u64) -> RunData {
    let mut run = RunData::default();
    for second in 0..seconds {
        run.crowd.push(CrowdRow {
            second,
            connected: users,
            playing: users,
            ..CrowdRow::default()
        });
        let counters = TrackCounters {
            wire_bytes: bytes_of(second) * u64::from(users),
            ..TrackCounters::default()
        };
        run.series.push(SeriesRow { second, tracks: users, counters, ..SeriesRow::default() });
    }
    run
}

#[test]
fn traffic_is_what_a_user_received_each_second() {
    let run = streamed(20, 60, |second| 100_000 + 2_000 * (second as u64 % 7));
    let traffic = Traffic::of(&run, Goal::Acceptable).expect("traffic");
    let received = traffic.received_bytes.per_second;
    assert!((received.value - 106_000.0).abs() < 300.0, "{received:?}");
    assert!(
        received.low < 106_000.0 && received.high > 106_000.0 && received.high < 108_000.0,
        "{received:?}"
    );
    assert_eq!(
        (traffic.received_bytes.blocks, traffic.requests, traffic.users_max),
        (6, None, 20.0)
    );
    // A server whose line was not measured needs at least that.
    let sizing = Sizing::of(&[], Some(&traffic), request(200.0));
    let need = sizing.need(SizedResource::NicSent).expect("a line");
    assert!(is_near(need.used.value, received.value * 200.0), "{need:?}");
    assert!(sizing.size(None).notes.iter().any(|note| note.contains("line was not measured")));
}

#[test]
fn requests_are_those_of_players_and_seconds_without_users_count_for_nothing() {
    let mut run = streamed(10, 40, |_| 0);
    for second in 0..40 {
        let counters = PlaybackCounters {
            media_bytes: 5_000_000,
            requests: 20,
            ..PlaybackCounters::default()
        };
        run.playback.push(PlaybackRow { second, counters, ..PlaybackRow::default() });
    }
    // Bytes that arrive after the last user played are no viewer's.
    run.crowd.iter_mut().skip(30).for_each(|row| row.playing = 0);
    let traffic = Traffic::of(&run, Goal::Acceptable).expect("traffic");
    assert!(is_near(traffic.received_bytes.per_second.value, 500_000.0), "{traffic:?}");
    assert!(is_near(traffic.requests.unwrap().per_second.value, 2.0), "{traffic:?}");
    assert!(is_near(traffic.received_bytes.user_seconds, 300.0), "{traffic:?}");
    assert_eq!(Traffic::of(&RunData::default(), Goal::Acceptable), None);
    assert_eq!(Traffic::of(&streamed(10, 5, |_| 0), Goal::Acceptable), None, "nothing arrived");
}
