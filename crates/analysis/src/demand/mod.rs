//! The service demand of a user on each resource, which resource saturates first, and which would be next.
//!
//! Service demand law (Denning & Buzen): use grows with the number of users, and the smallest number at which a resource reaches its
//! limit bounds the capacity. One point for each load that passed; see `fit.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::measured::Host;

use crate::knowledge::Knowledge;
use crate::windows::{LoadWindow, Windows};

mod additive;
mod chat;
mod fit;
mod joins;
mod resources;

#[cfg(test)]
pub(crate) use chat::tests::{chatted, of_chat};
pub use chat::{ChatCost, ChatWork, ChatWorkCost};
pub use joins::{JoinCost, joins};
pub(crate) use resources::memory_limit;

pub use fit::FittedUse;
pub(crate) use fit::t_975;
use fit::{Fit, Point};

/// A prediction from data below this share of the limit is an extrapolation: it cannot include a later bend.
pub const EXTRAPOLATED_BELOW: f64 = 0.70;

/// A resource of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The CPUs of the host together, cores.
    HostCpu,
    /// One thread, cores.
    Thread,
    /// Threads that share the same work, cores.
    ThreadGroup,
    /// A process, cores.
    ProcessCpu,
    /// The CPU quota of the control group, cores.
    Quota,
    /// The CPU that serves most soft interrupts.
    SoftirqCore,
    /// What the busiest interface sends, bytes a second.
    NicSent,
    /// What it sends, packets a second.
    NicSentPackets,
    /// What it receives, bytes a second.
    NicReceived,
    /// What it receives, packets a second.
    NicReceivedPackets,
    /// Open file descriptors of a process.
    Descriptors,
    /// Resident memory of a process, bytes.
    Memory,
    /// What is read from the busiest disk, bytes a second.
    DiskRead,
    /// UDP sockets.
    UdpSockets,
    /// TCP connections.
    TcpConnections,
    /// Local ports toward one peer.
    Ports,
    /// Tracked connections.
    Conntrack,
}

/// The demand of a user on a resource, and the number of users at which it saturates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// The kind of resource.
    pub resource: Resource,
    /// The thread, process or interface; empty for the host as a whole.
    pub instance: String,
    /// The pool of a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The unit: `ratio` (1 = a core), `B/s`, `B`, `1/s`, `count`.
    pub unit: String,
    /// The demand of one more user at the largest load that passed.
    pub per_user: f64,
    /// Half its 95 % interval.
    pub per_user_error: f64,
    /// The use without users, by the fit.
    pub idle: f64,
    /// The quadratic term, if significant: the demand of a user grows with their number.
    pub curve: Option<f64>,
    /// The use at the largest load that passed.
    pub used: f64,
    /// The hard limit in the same unit; `null` if unknown.
    pub limit: Option<f64>,
    /// The number of users at which the resource saturates; `null` without a limit, or if it is never reached.
    pub users: Option<f64>,
    /// The lower end of its 95 % interval.
    pub users_low: Option<f64>,
    /// The upper end of its 95 % interval.
    pub users_high: Option<f64>,
    /// Whether the data end below 70 % of the limit: the prediction is then optimistic.
    pub extrapolated: bool,
    /// Number of loads in the fit.
    pub loads: u32,
    /// The fitted curve with its errors, to size other crowds by; `null` in summaries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<FittedUse>,
}

impl Resource {
    /// Whether it is of the machine and not of a process, a control group or a network namespace: all watches of one
    /// machine see the same.
    #[must_use]
    pub fn is_of_machine(self) -> bool {
        match self {
            Self::HostCpu | Self::SoftirqCore | Self::DiskRead => true,
            Self::Thread
            | Self::ThreadGroup
            | Self::ProcessCpu
            | Self::Quota
            | Self::NicSent
            | Self::NicSentPackets
            | Self::NicReceived
            | Self::NicReceivedPackets
            | Self::Descriptors
            | Self::Memory
            | Self::UdpSockets
            | Self::TcpConnections
            | Self::Ports
            | Self::Conntrack => false,
        }
    }
}

impl Demand {
    /// Whether it grows significantly with the number of users; otherwise it predicts nothing.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.per_user > 0.0 && (self.curve.is_some() || self.per_user > self.per_user_error)
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> String {
        let of = &self.instance;
        match self.resource {
            Resource::HostCpu => "CPU of the host".into(),
            Resource::Thread => format!("thread {of}"),
            Resource::ThreadGroup => format!("threads {of}"),
            Resource::ProcessCpu => format!("CPU of {of}"),
            Resource::Quota => "CPU quota".into(),
            Resource::SoftirqCore => "soft interrupts of one CPU".into(),
            Resource::NicSent => format!("sent by {of}"),
            Resource::NicSentPackets => format!("packets sent by {of}"),
            Resource::NicReceived => format!("received by {of}"),
            Resource::NicReceivedPackets => format!("packets received by {of}"),
            Resource::Descriptors => format!("file descriptors of {of}"),
            Resource::Memory => format!("memory of {of}"),
            Resource::DiskRead => format!("read from {of}"),
            Resource::UdpSockets => "UDP sockets".into(),
            Resource::TcpConnections => "TCP connections".into(),
            Resource::Ports => "local ports".into(),
            Resource::Conntrack => "tracked connections".into(),
        }
    }
}

/// The use of a resource at each load.
pub(crate) struct Used {
    pub(crate) resource: Resource,
    pub(crate) of: String,
    pub(crate) group: Option<String>,
    pub(crate) unit: &'static str,
    pub(crate) limit: Option<f64>,
    /// The usable share of the limit.
    pub(crate) reach: f64,
    /// In the order of the loads.
    pub(crate) values: Vec<Option<f64>>,
}

/// The demand of a user on each resource of a host, the resource that saturates first first, those without a known limit last. Empty
/// if fewer than three loads passed.
#[must_use]
pub fn of(host: &Host<'_>, knowledge: &Knowledge, windows: &Windows) -> Vec<Demand> {
    let mut loads: Vec<LoadWindow> = windows.passed.iter().filter(|load| load.users > 0.0).copied().collect();
    loads.sort_by(|a, b| a.users.total_cmp(&b.users));
    let mut demands: Vec<Demand> =
        resources::used(host, knowledge, &loads).iter().filter_map(|used| demand(used, &loads)).collect();
    demands.sort_by(|a, b| {
        let end = |demand: &Demand| demand.users.unwrap_or(f64::INFINITY);
        end(a).total_cmp(&end(b)).then(a.resource.cmp(&b.resource))
    });
    demands
}

fn demand(used: &Used, loads: &[LoadWindow]) -> Option<Demand> {
    let points: Vec<Point> = used
        .values
        .iter()
        .zip(loads)
        .filter_map(|(value, load)| Some(Point { users: load.users, y: (*value)? }))
        .collect();
    let fit = Fit::of(&points)?;
    let last = points.last()?;
    // A demand that is not significantly above 0 predicts nothing.
    let (per_user, error) = (fit.cost_at(last.users), fit.cost_error());
    let is_cost = per_user > 0.0 && (fit.is_curved || per_user > error);
    let meeting = used
        .limit
        .filter(|limit| is_cost && *limit > 0.0)
        .and_then(|limit| fit.meets(limit * used.reach, &points));
    let demand = Demand {
        resource: used.resource,
        instance: used.of.clone(),
        group: used.group.clone(),
        unit: used.unit.into(),
        per_user,
        per_user_error: error,
        idle: fit.coefficients[0],
        curve: fit.is_curved.then_some(fit.coefficients[2]),
        used: last.y,
        limit: used.limit,
        users: meeting.map(|meeting| meeting.users),
        users_low: meeting.map(|meeting| meeting.low),
        users_high: meeting.map(|meeting| meeting.high),
        extrapolated: used.limit.is_some_and(|limit| last.y < EXTRAPOLATED_BELOW * limit),
        loads: u32::try_from(points.len()).unwrap_or(u32::MAX),
        fit: fit.fitted(&points),
    };
    [demand.per_user, demand.per_user_error, demand.idle, demand.used]
        .iter()
        .all(|v| v.is_finite())
        .then_some(demand)
}

/// The demand of loads `(users, use)`, for tests of what is made of it.
#[cfg(test)]
pub(crate) fn of_points(resource: Resource, limit: Option<f64>, points: &[(f64, f64)]) -> Option<Demand> {
    let window = throng_observation::host::measured::Window { from_us: 0, until_us: 1 };
    let loads: Vec<LoadWindow> =
        points.iter().map(|(users, _)| LoadWindow { window, users: *users }).collect();
    let values = points.iter().map(|(_, y)| Some(*y)).collect();
    let used = Used { resource, of: "media".into(), group: None, unit: "ratio", limit, reach: 0.95, values };
    demand(&used, &loads)
}

/// The predicted effect of a change: the crowd at which the next resource saturates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Users at which the next resource saturates; more than these if `users_high` is `null`.
    pub users: f64,
    /// The lower end of its 95 % interval.
    pub users_low: f64,
    /// The upper end; `null` if saturation lies too far beyond the loads that were tried.
    pub users_high: Option<f64>,
    /// The resource that saturates then.
    pub next_resource: String,
    /// Whether that is an extrapolation, which is optimistic.
    pub extrapolated: bool,
}

/// Furthest prediction, as a multiple of the largest load that was tried: beyond it an unknown limit comes first.
const REACH_MAX: f64 = 4.0;
/// Least half interval, as a share of its middle: the variation of a server from run to run.
const WIDTH_MIN: f64 = 0.02;

/// The first resource to saturate among those that a change does not `ease`, on a server that was tried with up to `tried` users.
#[must_use]
pub fn after(demands: &[Demand], tried: f64, ease: impl Fn(&Demand) -> bool) -> Option<Prediction> {
    let next = demands.iter().find(|demand| demand.users.is_some() && !ease(demand))?;
    let (next_resource, extrapolated) = (next.name(), next.extrapolated);
    let (users, reach) = (next.users?, REACH_MAX * tried);
    if users > reach {
        return Some(Prediction {
            users: reach,
            users_low: reach,
            users_high: None,
            next_resource,
            extrapolated: true,
        });
    }
    let half = (users * WIDTH_MIN).max(1.0);
    Some(Prediction {
        users,
        users_low: next.users_low?.min(users - half).max(0.0),
        users_high: Some(next.users_high?.max(users + half)),
        next_resource,
        extrapolated,
    })
}
