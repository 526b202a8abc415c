//! What a user costs of each resource, which resource ends first, and what would be next after that one.
//!
//! The service demand law (Denning & Buzen): what is used grows with the users, and the smallest N at which a
//! resource meets its limit bounds the crowd. One point a load that passed; see `fit.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::measured::Host;

use crate::knowledge::Knowledge;
use crate::windows::{LoadWindow, Windows};

mod fit;
mod joins;
mod resources;

pub use joins::{JoinCost, joins};
pub(crate) use resources::memory_limit;

use fit::{Fit, Point};

/// A prediction from data that stop below this share of the limit is an extrapolation: what bends later, it cannot see.
pub const EXTRAPOLATED_BELOW: f64 = 0.70;

/// A resource of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The CPUs of the host together, cores.
    HostCpu,
    /// One thread, of its one core.
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
    /// The same in packets a second.
    NicSentPackets,
    /// What it receives, bytes a second.
    NicReceived,
    /// The same in packets a second.
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

/// What a user costs of a resource, and how far the resource reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// Which resource.
    pub resource: Resource,
    /// Of whom: the thread, the process, the interface; empty for the host as a whole.
    pub instance: String,
    /// The pool of a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What it is counted in: `ratio` (1 = a core), `B/s`, `B`, `1/s`, `count`.
    pub unit: String,
    /// The cost of one more user at the largest load that passed.
    pub per_user: f64,
    /// Half its 95 % interval.
    pub per_user_error: f64,
    /// What is used with nobody there, by the fit.
    pub idle: f64,
    /// The quadratic term, where the points insist on one: the cost of a user grows with their number.
    pub curve: Option<f64>,
    /// What was used at the largest load that passed.
    pub used: f64,
    /// What cannot be passed, in the same unit; `null` where no limit is known.
    pub limit: Option<f64>,
    /// At how many users the resource ends; `null` without a limit, or where it is never met.
    pub users: Option<f64>,
    /// The lower end of its 95 % interval.
    pub users_low: Option<f64>,
    /// The upper end.
    pub users_high: Option<f64>,
    /// Whether the data stop below 70 % of the limit: the prediction is then an optimistic one.
    pub extrapolated: bool,
    /// Loads that it was learned from.
    pub loads: u32,
}

impl Demand {
    /// What it is called in a table.
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

/// What a resource used at each load.
pub(crate) struct Used {
    pub(crate) resource: Resource,
    pub(crate) of: String,
    pub(crate) group: Option<String>,
    pub(crate) unit: &'static str,
    pub(crate) limit: Option<f64>,
    /// The share of the limit up to which it serves well.
    pub(crate) reach: f64,
    /// In the order of the loads.
    pub(crate) values: Vec<Option<f64>>,
}

/// What a user costs of each resource of a host, the resource that ends first first; those without a known end after
/// them. Empty where fewer than three loads passed.
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
    // A cost that may as well be none predicts nothing.
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
    };
    [demand.per_user, demand.per_user_error, demand.idle, demand.used]
        .iter()
        .all(|v| v.is_finite())
        .then_some(demand)
}

/// What a change would give: the crowd at which the next resource ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Users at which the next resource ends; where `users_high` is `null`, more than these.
    pub users: f64,
    /// The lower end of its 95 % interval.
    pub users_low: f64,
    /// The upper end; `null` where the end lies so far beyond what was tried that nothing is known of it.
    pub users_high: Option<f64>,
    /// The resource that ends then.
    pub next_resource: String,
    /// Whether that is an extrapolation, and so an optimistic one.
    pub extrapolated: bool,
}

/// Beyond so many times the largest load that was tried nothing is predicted: something that nobody met ends before.
const REACH_MAX: f64 = 4.0;
/// Half of an interval is no less than this share of its middle: a server is never known better than by its own wandering.
const WIDTH_MIN: f64 = 0.02;

/// The first resource to end among those that a change does not `ease`, of a server that was tried with up to `tried` users.
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
