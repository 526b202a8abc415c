//! What the demand model says about a variant before it is tried: the resource that limits the baseline has a higher limit, all
//! others stay, and the first to be exhausted is the new capacity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resource_of;
use crate::demand::{Demand, Resource};

/// Furthest prediction, as a multiple of the baseline's capacity: beyond it an unknown limit comes first.
const REACH_MAX: f64 = 4.0;
/// Least half interval, as a share of its middle: the variation of a server from run to run.
const WIDTH_MIN: f64 = 0.02;

/// The capacity of a variant, predicted from the demand of a user in the baseline's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityPrediction {
    /// Users.
    pub users: f64,
    /// The lower end: from the largest crowd of the baseline that was served well, or that of the 95 % interval of a limit that
    /// stays as it is.
    pub users_low: f64,
    /// The upper end: from the first crowd that was not; `null` if no known limit is near.
    pub users_high: Option<f64>,
    /// The resource that is exhausted then.
    pub resource: String,
    /// Runs of the baseline that it is from.
    pub runs: usize,
    /// Whether what was measured lies within the interval; `null` without a valid run of the variant.
    pub held: Option<bool>,
}

/// The prediction from the demands of each run of the baseline, if its limit (the finding, else the resource that the variant
/// relieves) becomes `more` times as high; without `more` it is no limit at all. `capacity` is that of the baseline: the largest
/// crowd that was served well, and the first that was not.
///
/// What the resource carried at this capacity is taken for its limit: a line ends below its rate because frames come in bursts,
/// and does so again when it is twice as fast.
#[must_use]
pub fn predict(
    runs: &[Vec<Demand>],
    finding: Option<&str>,
    relieves: &str,
    more: Option<f64>,
    capacity: [f64; 2],
) -> Option<CapacityPrediction> {
    let of_run = |demands: &Vec<Demand>| {
        let is_relieved = relieved(demands, finding, relieves);
        let ends = demands.iter().filter_map(|demand| {
            let end = if is_relieved(demand) { scaled(demand, more?, capacity)? } else { modelled(demand)? };
            Some((demand.name(), end))
        });
        ends.min_by(|(_, a), (_, b)| a[1].total_cmp(&b[1]))
    };
    let ends: Vec<(String, [f64; 3])> = runs.iter().filter_map(of_run).collect();
    let median = |place: usize| {
        let mut values: Vec<f64> = ends.iter().filter_map(|(_, ends)| ends.get(place).copied()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let (low, users, high) = (median(0)?, median(1)?, median(2)?);
    let resource =
        ends.iter().min_by(|(_, a), (_, b)| a[1].total_cmp(&b[1])).map(|(name, _)| name.clone())?;
    let runs = ends.len();
    let reach = REACH_MAX * capacity[0];
    if users > reach {
        let users_low = reach.min(low);
        return Some(CapacityPrediction {
            users: reach,
            users_low,
            users_high: None,
            resource,
            runs,
            held: None,
        });
    }
    let half = (users * WIDTH_MIN).max(1.0);
    let (users_low, users_high) = (low.min(users - half).max(0.0), Some(high.max(users + half)));
    Some(CapacityPrediction { users, users_low, users_high, resource, runs, held: None })
}

impl CapacityPrediction {
    /// Judges it by a measured capacity: the largest crowd that was served well, and the first that was not. The limit is between
    /// them.
    #[must_use]
    pub fn judged(self, passing: f64, failing: f64) -> Self {
        let is_within = failing >= self.users_low && self.users_high.is_none_or(|high| passing <= high);
        Self { held: Some(is_within), ..self }
    }
}

/// Which demands have a higher limit in the variant: those of the kind that the finding names, where it is measured; else
/// all of the resource.
fn relieved(demands: &[Demand], finding: Option<&str>, relieves: &str) -> impl Fn(&Demand) -> bool + use<> {
    let all: Vec<Resource> = kinds(relieves).to_vec();
    let named: Vec<Resource> = finding
        .filter(|finding| resource_of(finding) == Some(relieves))
        .map(|finding| of_finding(finding).to_vec())
        .filter(|named| demands.iter().any(|demand| named.contains(&demand.resource)))
        .unwrap_or(all);
    move |demand| named.contains(&demand.resource)
}

/// The demands of a resource.
fn kinds(resource: &str) -> &'static [Resource] {
    use Resource::{
        Conntrack, Descriptors, DiskRead, HostCpu, Memory, NicReceived, NicReceivedPackets, NicSent,
        NicSentPackets, Ports, ProcessCpu, Quota, SoftirqCore, TcpConnections, Thread, ThreadGroup,
        UdpSockets,
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
        Conntrack, Descriptors, HostCpu, NicSent, Ports, ProcessCpu, Quota, SoftirqCore, Thread, ThreadGroup,
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

/// Users at which the resource is exhausted as it is: low, middle, high.
fn modelled(demand: &Demand) -> Option<[f64; 3]> {
    Some([demand.users_low?, demand.users?, demand.users_high?])
}

/// Users at which the resource carries `more` times what it carries at the `capacity` that was measured, by y = idle + bN + cN²:
/// low, middle, high.
fn scaled(demand: &Demand, more: f64, [passing, failing]: [f64; 2]) -> Option<[f64; 3]> {
    let (c, b) = match demand.curve {
        Some(c) => (c, slope(demand, c)?),
        None => (0.0, demand.per_user),
    };
    let users = |users: f64| {
        let own = (demand.idle + b * users + c * users * users) * more - demand.idle;
        // The form without cancellation for small c; for a line it is own ÷ b.
        let inside = b * b + 4.0 * c * own;
        (inside >= 0.0 && own > 0.0).then(|| 2.0 * own / (b + inside.sqrt()))
    };
    let ends = [users(passing)?, users((passing * failing).sqrt())?, users(failing)?];
    ends.iter().all(|end| end.is_finite()).then_some(ends)
}

/// b of y = idle + bN + cN², from the cost of one more user and the use at the largest load N that was tried.
fn slope(demand: &Demand, c: f64) -> Option<f64> {
    let inside = demand.per_user * demand.per_user - 4.0 * c * (demand.used - demand.idle);
    // N·cost − c·N² = used − idle; the smaller root is the one with a slope that grows from b ≥ 0.
    (inside >= 0.0 && c != 0.0).then(|| inside.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(resource: Resource, idle: f64, per_user: f64, limit: f64) -> Demand {
        let users = (limit - idle) / per_user;
        Demand {
            resource,
            instance: "w".into(),
            group: None,
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
            fit: None,
        }
    }

    #[test]
    fn twice_the_limit_is_twice_the_crowd_until_the_next_limit() {
        let thread = demand(Resource::Thread, 0.1, 0.009, 1.0);
        let line = demand(Resource::NicSent, 0.0, 125_000.0, 20e6);
        let runs = vec![vec![thread.clone(), line.clone()]; 3];
        let predicted = |more| predict(&runs, Some("one_thread_full"), "cpu", more, [100.0; 2]).unwrap();
        let twice = predicted(Some(1.5));
        assert!((twice.users - 155.6).abs() < 0.1 && twice.resource == "thread w", "{twice:?}");
        let four = predicted(Some(4.0));
        assert_eq!((four.users.round(), four.resource.as_str()), (160.0, "sent by w"), "{four:?}");
        assert_eq!(predicted(None).users.round(), 160.0, "without a factor it is no limit");
        assert!(four.users_low < 153.0 && four.users_high.unwrap() > 167.0);
    }

    #[test]
    fn only_what_the_finding_names_is_relieved() {
        // Four workers are not more CPUs: the host's stay the limit.
        let runs =
            vec![vec![demand(Resource::Thread, 0.0, 0.01, 1.0), demand(Resource::HostCpu, 0.0, 0.0125, 2.0)]];
        let named = predict(&runs, Some("one_thread_full"), "cpu", Some(4.0), [100.0; 2]).unwrap();
        assert_eq!((named.users.round(), named.resource.as_str()), (160.0, "CPU of the host"));
        let unnamed = predict(&runs, None, "cpu", Some(4.0), [100.0; 2]).unwrap();
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
            ..demand(Resource::Quota, idle, b, limit)
        };
        let twice = predict(&[vec![curved]], Some("cpu_quota"), "cpu", Some(2.0), [users; 2]).unwrap();
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
            ..demand(Resource::NicSent, 0.0, 1.0, 1.0)
        };
        let twice = predict(&[vec![line]], Some("line_rate"), "network", Some(2.0), [40.0, 44.0]).unwrap();
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
        let far = predict(&runs, Some("one_thread_full"), "cpu", Some(8.0), [100.0; 2]).unwrap();
        assert_eq!((far.users, far.users_high), (400.0, None));
        assert_eq!(far.clone().judged(500.0, 550.0).held, Some(true));
        assert_eq!(far.judged(100.0, 105.0).held, Some(false));
        assert_eq!(
            predict(&runs, Some("one_thread_full"), "cpu", None, [100.0; 2]),
            None,
            "no other limit is known"
        );
        assert_eq!(predict(&[], None, "cpu", Some(2.0), [100.0; 2]), None);
    }

    #[test]
    fn a_prediction_holds_if_the_limit_can_lie_within_it() {
        let runs = vec![vec![demand(Resource::Thread, 0.0, 0.01, 1.0)]];
        let twice = predict(&runs, Some("one_thread_full"), "cpu", Some(2.0), [95.0, 105.0]).unwrap();
        // 190 to 210.
        for (passing, failing, expect) in [
            (200.0, 205.0, true),
            (180.0, 195.0, true),
            (205.0, 220.0, true),
            (150.0, 165.0, false),
            (220.0, 230.0, false),
        ] {
            assert_eq!(twice.clone().judged(passing, failing).held, Some(expect), "{passing} {failing}");
        }
    }
}
