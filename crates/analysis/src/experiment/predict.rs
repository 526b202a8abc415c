//! What the demand model says about a variant before it is tried: the resource that limits the
//! baseline has a higher limit, all others stay, and the first to be exhausted is the new capacity.
//! What is not known of a resource ends the prediction, as in `demand/next.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::Relief;
use throng_observation::pack::thread_name_matches;

use super::{resource_of, resource_of_relief};
use crate::demand::{Demand, End, REACH_MAX, Resource, without_limit};

/// The capacity of a variant, predicted from the demand of a user in the baseline's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityPrediction {
    /// Users.
    pub users: f64,
    /// The lower end: from the largest crowd of the baseline that was served well, or that of the
    /// 95 % interval of a limit that stays as it is.
    pub users_low: f64,
    /// The upper end: from the first crowd that was not; `null` if no known limit is near, or the
    /// demand cannot be told from noise.
    pub users_high: Option<f64>,
    /// The resource that is exhausted then, with its setting where one is known.
    pub resource: String,
    /// Runs of the baseline that it is from.
    pub runs: usize,
    /// Resources that grow with the users and have no known limit: any of them may end before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Whether what was measured lies within the interval; `null` without a valid run of the
    /// variant.
    pub held: Option<bool>,
}

/// The prediction from the demands of each run of the baseline, if its limit (the finding, else
/// what the variant relieves) becomes `more` times as high; without `more` it is no limit at all.
/// `capacity` is that of the baseline: the largest crowd that was served well, and the first that
/// was not.
///
/// What the resource carried at this capacity is taken for its limit: a line ends below its rate
/// because frames come in bursts, and does so again when it is twice as fast.
#[must_use]
pub fn predict(
    runs: &[Vec<Demand>],
    finding: Option<&str>,
    relief: &Relief,
    more: Option<f64>,
    capacity: [f64; 2],
) -> Option<CapacityPrediction> {
    predicted(runs, finding, relief, more, capacity, |_| true)
}

/// The same by those resources alone of which both ends are known: the first limit that is sure to
/// come, whatever is known of others.
#[must_use]
pub fn predict_known(
    runs: &[Vec<Demand>],
    finding: Option<&str>,
    relief: &Relief,
    more: Option<f64>,
    capacity: [f64; 2],
) -> Option<CapacityPrediction> {
    let known = predicted(runs, finding, relief, more, capacity, |end| end.high.is_some());
    known.filter(|known| known.users_high.is_some())
}

fn predicted(
    runs: &[Vec<Demand>],
    finding: Option<&str>,
    relief: &Relief,
    more: Option<f64>,
    capacity: [f64; 2],
    counts: impl Fn(&End) -> bool,
) -> Option<CapacityPrediction> {
    let most = REACH_MAX * capacity[0];
    let of_run = |demands: &Vec<Demand>| {
        let is_relieved = relieved(demands, finding, relief);
        let ends = demands.iter().filter_map(|demand| {
            let end = if is_relieved(demand) {
                scaled(demand, more?, capacity)?.at_least(0.0)
            } else {
                demand.end(most)?.at_least(capacity[0])
            };
            Some((demand.name_and_setting(), end))
        });
        let ends = ends.filter(|(_, end)| counts(end));
        ends.min_by(|(_, a), (_, b)| a.users.total_cmp(&b.users))
    };
    let ends: Vec<(String, End)> = runs.iter().filter_map(of_run).collect();
    let median = |of: fn(&End) -> f64| {
        let mut values: Vec<f64> = ends.iter().map(|(_, end)| of(end)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let (low, users) = (median(|end| end.low)?, median(|end| end.users)?);
    let high = median(|end| end.high.unwrap_or(f64::INFINITY)).filter(|high| high.is_finite());
    let resource =
        ends.iter().min_by(|(_, a), (_, b)| a.users.total_cmp(&b.users)).map(|(name, _)| name)?;
    let is_far = users > most;
    Some(CapacityPrediction {
        users: users.min(most),
        users_low: low.min(most),
        users_high: high.filter(|_| !is_far),
        resource: resource.clone(),
        runs: ends.len(),
        unknown: runs.first().map_or_else(Vec::new, |demands| {
            let is_relieved = relieved(demands, finding, relief);
            without_limit(demands.iter().filter(|demand| !is_relieved(demand)))
        }),
        held: None,
    })
}

impl CapacityPrediction {
    /// Judges it by a measured capacity: the largest crowd that was served well, and the first that
    /// was not. The limit is between them.
    #[must_use]
    pub fn judged(self, passing: f64, failing: f64) -> Self {
        let is_within =
            failing >= self.users_low && self.users_high.is_none_or(|high| passing <= high);
        Self { held: Some(is_within), ..self }
    }
}

/// Which demands have a higher limit in the variant: those of the threads that it relieves; else
/// those of the kind that the finding names, where they are measured; else all of the resource.
fn relieved(
    demands: &[Demand],
    finding: Option<&str>,
    relief: &Relief,
) -> impl Fn(&Demand) -> bool + use<> {
    let resource = resource_of_relief(relief);
    let all = kinds(resource.unwrap_or_default());
    let named = finding
        .filter(|finding| resource_of(finding) == resource)
        .map(of_finding)
        .filter(|named| demands.iter().any(|demand| named.contains(&demand.resource)))
        .unwrap_or(all);
    let pools = pools(demands, relief);
    move |demand| {
        if pools.is_empty() {
            return named.contains(&demand.resource);
        }
        matches!(demand.resource, Resource::Thread | Resource::ThreadGroup)
            && demand.group.as_ref().is_some_and(|pool| pools.contains(pool))
    }
}

/// The pools of the threads that `relief` names, by thread or by setting; empty if it names none
/// that was measured.
fn pools(demands: &[Demand], relief: &Relief) -> Vec<String> {
    let is_named = |demand: &&Demand| {
        // `SW-WebRTC (4711)`
        let name = demand.instance.split(" (").next().unwrap_or_default();
        match (&relief.thread, &relief.setting) {
            (Some(glob), _) => {
                demand.resource == Resource::Thread && thread_name_matches(glob, name)
            }
            (None, Some(setting)) => demand.setting.as_ref() == Some(setting),
            (None, None) => false,
        }
    };
    demands.iter().filter(is_named).filter_map(|demand| demand.group.clone()).collect()
}

/// The demands of a resource.
fn kinds(resource: &str) -> &'static [Resource] {
    use Resource::{
        Conntrack, Descriptors, DiskRead, HostCpu, Memory, NicReceived, NicReceivedPackets,
        NicSent, NicSentPackets, Ports, ProcessCpu, Quota, SoftirqCore, TcpConnections, Thread,
        ThreadGroup, UdpSockets,
    };
    match resource {
        "cpu" => &[HostCpu, Thread, ThreadGroup, ProcessCpu, Quota],
        "disk" => &[DiskRead],
        "memory" => &[Memory],
        "network" => &[NicSent, NicSentPackets, NicReceived, NicReceivedPackets, SoftirqCore],
        "sockets" => &[Descriptors, UdpSockets, TcpConnections, Ports, Conntrack],
        _ => &[],
    }
}

/// The demands whose exhaustion a finding names.
fn of_finding(finding: &str) -> &'static [Resource] {
    use Resource::{
        Conntrack, Descriptors, HostCpu, NicSent, Ports, ProcessCpu, Quota, SoftirqCore, Thread,
        ThreadGroup,
    };
    match finding {
        "one_thread_full" | "single_threaded" | "uneven_threads" | "gil" | "lock_contention" => {
            &[Thread, ThreadGroup]
        }
        "runtime_parallelism" => &[Thread, ThreadGroup, ProcessCpu],
        "cpu_quota" => &[Quota],
        "cpu_full" => &[HostCpu, ProcessCpu],
        "line_rate" => &[NicSent],
        "softirq" => &[SoftirqCore],
        "file_descriptors" => &[Descriptors],
        "local_ports" => &[Ports],
        "conntrack" => &[Conntrack],
        _ => &[],
    }
}

/// Users at which the resource carries `more` times what it carries at the `capacity` that was
/// measured: at the crowd that was served well, between the two, and at the first that was not.
fn scaled(demand: &Demand, more: f64, [passing, failing]: [f64; 2]) -> Option<End> {
    let fitted = demand.fit?;
    let users = |users: f64| fitted.root(more * fitted.use_by(users));
    let ends = [users(passing), users((passing * failing).sqrt()), users(failing)];
    let [Some(low), Some(users), Some(high)] = ends else {
        // Where more of it is reached cannot be told, so that only what was served is known.
        return demand.grows().then(|| End::known_to(passing));
    };
    Some(End { users, low, high: Some(high) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::FittedUse;

    fn demand(resource: Resource, idle: f64, per_user: f64, limit: f64) -> Demand {
        let users = (limit - idle) / per_user;
        Demand {
            resource,
            instance: "w".into(),
            group: None,
            setting: None,
            unit: "ratio".into(),
            per_user,
            per_user_error: 0.0,
            idle,
            curve: None,
            used: idle + per_user * users * 0.9,
            limit: Some(limit),
            users: Some(users),
            users_low: Some(users * 0.95),
            users_high: Some(users * 1.05),
            extrapolated: false,
            loads: 6,
            fit: Some(fitted([idle, per_user, 0.0], users * 0.9)),
        }
    }

    fn fitted(coefficients: [f64; 3], users_max: f64) -> FittedUse {
        FittedUse { coefficients, freedom: 4, users_min: 1.0, users_max, ..FittedUse::default() }
    }

    #[test]
    fn twice_the_limit_is_twice_the_crowd_until_the_next_limit() {
        let thread = demand(Resource::Thread, 0.1, 0.009, 1.0);
        let line = demand(Resource::NicSent, 0.0, 125_000.0, 20e6);
        let runs = vec![vec![thread.clone(), line.clone()]; 3];
        let predicted =
            |more| predict(&runs, Some("one_thread_full"), &cpu(), more, [100.0; 2]).unwrap();
        let twice = predicted(Some(1.5));
        assert!((twice.users - 155.6).abs() < 0.1 && twice.resource == "thread w", "{twice:?}");
        let four = predicted(Some(4.0));
        assert_eq!(
            (four.users.round(), four.resource.as_str()),
            (160.0, "bytes sent by w"),
            "{four:?}"
        );
        assert_eq!(predicted(None).users.round(), 160.0, "without a factor it is no limit");
        assert!(four.users_low < 153.0 && four.users_high.unwrap() > 167.0);
    }

    fn cpu() -> Relief {
        Relief::of_resource("cpu")
    }

    #[test]
    fn only_the_threads_that_are_named_are_relieved() {
        // The packetiser's thread is full at 150 users, and no more StreamWorkers give it room.
        let of = |instance: &str, group: &str, setting: &str, per_user: f64| Demand {
            instance: instance.into(),
            group: Some(group.into()),
            setting: Some(setting.into()),
            ..demand(Resource::Thread, 0.0, per_user, 1.0)
        };
        let runs = vec![vec![
            of("SW-WebRTC (11)", "StreamWorker", "StreamWorkerCount", 0.0095),
            of("AW-WebRTC0 (12)", "AppWorker", "AppWorkerCount", 1.0 / 150.0),
        ]];
        let named = |relief: &Relief| {
            let found =
                predict(&runs, Some("one_thread_full"), relief, Some(4.0), [100.0; 2]).unwrap();
            (found.users.round(), found.resource)
        };
        let thread = Relief { thread: Some("SW-*".into()), ..cpu() };
        let setting = Relief { setting: Some("StreamWorkerCount".into()), ..cpu() };
        for relief in [&thread, &setting] {
            let (users, resource) = named(relief);
            assert!(
                users == 150.0 && resource.starts_with("thread AW-WebRTC0"),
                "{users} {resource}"
            );
        }
        assert_eq!(named(&cpu()).0, 400.0, "all threads, where none is named");
        let other = Relief { thread: Some("other".into()), ..cpu() };
        assert_eq!(named(&other).0, 400.0, "all threads, where it was not measured");
    }

    #[test]
    fn only_what_the_finding_names_is_relieved() {
        // Four workers are not more CPUs: the host's stay the limit.
        let runs = vec![vec![
            demand(Resource::Thread, 0.0, 0.01, 1.0),
            demand(Resource::HostCpu, 0.0, 0.0125, 2.0),
        ]];
        let named = predict(&runs, Some("one_thread_full"), &cpu(), Some(4.0), [100.0; 2]).unwrap();
        assert_eq!((named.users.round(), named.resource.as_str()), (160.0, "CPU of the host"));
        let unnamed = predict(&runs, None, &cpu(), Some(4.0), [100.0; 2]).unwrap();
        assert_eq!((unnamed.users.round(), unnamed.resource.as_str()), (400.0, "thread w"));
    }

    #[test]
    fn a_curve_bends_the_prediction() {
        let (b, c, idle, limit) = (0.001, 0.000_1, 0.0, 1.0);
        let users = (-b + f64::sqrt(b * b + 4.0 * c * (limit - idle))) / (2.0 * c);
        let n = 0.8 * users;
        let curved = Demand {
            curve: Some(c),
            per_user: b + 2.0 * c * n,
            used: idle + b * n + c * n * n,
            users: Some(users),
            users_low: Some(users - 2.0),
            users_high: Some(users + 2.0),
            fit: Some(fitted([idle, b, c], n)),
            ..demand(Resource::Quota, idle, b, limit)
        };
        let twice =
            predict(&[vec![curved]], Some("cpu_quota"), &cpu(), Some(2.0), [users; 2]).unwrap();
        let expect = (-b + f64::sqrt(b * b + 4.0 * c * 2.0 * limit)) / (2.0 * c);
        assert!((twice.users - expect).abs() < 0.5, "{twice:?} {expect}");
    }

    #[test]
    fn a_line_that_ends_below_its_rate_does_so_again() {
        // A conference of which 16 % of the line stay unused, and whose rate nobody knows.
        let line = Demand {
            limit: None,
            users: None,
            users_low: None,
            users_high: None,
            curve: Some(1.0),
            per_user: 2.0 * 40.0,
            used: 1_600.0,
            fit: Some(fitted([0.0, 0.0, 1.0], 40.0)),
            ..demand(Resource::NicSent, 0.0, 1.0, 1.0)
        };
        let twice = predict(
            &[vec![line]],
            Some("line_rate"),
            &Relief::of_resource("network"),
            Some(2.0),
            [40.0, 44.0],
        )
        .unwrap();
        assert!(
            (twice.users_low - 56.6).abs() < 0.1 && (twice.users_high.unwrap() - 62.2).abs() < 0.1,
            "{twice:?}"
        );
        assert_eq!(twice.clone().judged(55.0, 58.0).held, Some(true));
        assert_eq!(twice.judged(48.0, 52.0).held, Some(false));
    }

    #[test]
    fn beyond_four_times_the_crowd_there_is_no_upper_end() {
        let runs = vec![vec![demand(Resource::Thread, 0.0, 0.01, 1.0)]];
        let far = predict(&runs, Some("one_thread_full"), &cpu(), Some(8.0), [100.0; 2]).unwrap();
        assert_eq!((far.users, far.users_high), (400.0, None));
        assert_eq!(far.clone().judged(500.0, 550.0).held, Some(true));
        assert_eq!(far.judged(100.0, 105.0).held, Some(false));
        assert_eq!(
            predict(&runs, Some("one_thread_full"), &cpu(), None, [100.0; 2]),
            None,
            "no other limit is known"
        );
        assert_eq!(predict(&[], None, &cpu(), Some(2.0), [100.0; 2]), None);
    }

    #[test]
    fn what_is_not_known_of_a_resource_ends_the_prediction() {
        // The host's use cannot be told from noise, which may fill it from 121 users on.
        let covariance = [[0.0; 3], [0.0, 4e-4 / 7.84, 0.0], [0.0; 3]];
        let host = Demand {
            per_user_error: 0.02,
            used: 0.5,
            users: None,
            users_low: None,
            users_high: None,
            fit: Some(FittedUse { covariance, ..fitted([0.4, 0.001, 0.0], 100.0) }),
            ..demand(Resource::HostCpu, 0.4, 0.001, 1.0)
        };
        let thread = demand(Resource::Thread, 0.0, 0.01, 1.0);
        let line = Demand {
            limit: None,
            users: None,
            users_low: None,
            users_high: None,
            ..demand(Resource::NicSent, 0.0, 125_000.0, 20e6)
        };
        let runs = [vec![thread, host, line]];
        let twice = predict(&runs, Some("one_thread_full"), &cpu(), Some(2.0), [100.0; 2]).unwrap();
        assert_eq!(
            (twice.resource.as_str(), twice.users_high),
            ("CPU of the host", None),
            "{twice:?}"
        );
        assert!((twice.users - 121.0).abs() < 1.0, "{twice:?}");
        assert_eq!(twice.unknown, ["bytes sent by w"]);
        assert_eq!(twice.judged(150.0, 160.0).held, Some(true), "more is no contradiction");
    }

    #[test]
    fn a_curve_that_bends_down_is_followed_along_its_tangent() {
        // 0.02 N − 0.0001 N² is 0.75 at 50 users, where one more costs 0.01, and never more than 1.
        let curved = Demand {
            curve: Some(-0.000_1),
            used: 0.75,
            fit: Some(fitted([0.0, 0.02, -0.000_1], 50.0)),
            ..demand(Resource::Quota, 0.0, 0.01, 1.0)
        };
        let twice =
            predict(&[vec![curved]], Some("cpu_quota"), &cpu(), Some(2.0), [50.0; 2]).unwrap();
        assert!((twice.users - 125.0).abs() < 0.1, "{twice:?}");
    }

    #[test]
    fn a_prediction_holds_if_the_limit_can_lie_within_it() {
        let runs = vec![vec![demand(Resource::Thread, 0.0, 0.01, 1.0)]];
        let twice =
            predict(&runs, Some("one_thread_full"), &cpu(), Some(2.0), [95.0, 105.0]).unwrap();
        // 190 to 210.
        for (passing, failing, expect) in [
            (200.0, 205.0, true),
            (180.0, 195.0, true),
            (205.0, 220.0, true),
            (150.0, 165.0, false),
            (220.0, 230.0, false),
        ] {
            assert_eq!(
                twice.clone().judged(passing, failing).held,
                Some(expect),
                "{passing} {failing}"
            );
        }
    }

    #[test]
    fn every_finding_of_a_resource_with_a_demand_names_it() {
        let none = crate::findings::keys().filter(|key| of_finding(key).is_empty());
        let expect = [
            "generator_limited",
            "server_crashed",
            "process_stopped",
            "never_connected",
            "never_served",
            "source_stopped",
            "cpu_steal",
            "run_queue",
            "cpu_bursts",
            "copy_dominated",
            "hot_function",
            "crypto",
            "system_calls",
            "disk_read",
            "page_cache",
            "memory",
            "udp_receive_buffer",
            "backpressure",
            "path_loss",
            "accept_queue",
            "tcp_memory",
            "task_limit",
            "signalling_serialised",
            "address_limit",
            "configured_ceiling",
        ];
        assert_eq!(none.collect::<Vec<_>>(), expect);
    }
}
