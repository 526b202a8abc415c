//! The service demand of a user on each resource, which resource saturates first, and which would
//! be next.
//!
//! Service demand law (Denning & Buzen): use grows with the number of users, and the smallest
//! number at which a resource reaches its limit bounds the capacity. One point for each load that
//! passed; see `fit.rs`. What is said beyond these loads, here and in sizes and prices (`sizing/`),
//! is said by one curve: `growth.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::measured::Host;

use crate::knowledge::Knowledge;
use crate::windows::{LoadWindow, Windows};

mod additive;
mod chat;
mod fit;
pub(crate) mod growth;
mod joins;
mod next;
mod resources;

#[cfg(test)]
pub(crate) use chat::tests::{chatted, of_chat};
pub use chat::{ChatCost, ChatWork, ChatWorkCost};
pub use joins::{JoinCost, joins};
pub(crate) use resources::memory_limit;

pub use fit::FittedUse;
pub(crate) use fit::t_975;
use fit::{Fit, Point};
pub(crate) use next::{End, REACH_MAX, without_limit};
pub use next::{Prediction, after};

/// A prediction from data below this share of the limit is an extrapolation: it cannot include a
/// later bend.
pub const EXTRAPOLATED_BELOW: f64 = 0.70;

/// From this share of its limit on, a resource that works at a rate is used up in some of its
/// moments, and gives no more in proportion.
const SATURATED_FROM: f64 = 0.92;

/// A resource of the server.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
    /// What the interface that sends the load sends, bytes a second.
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
    /// What is read from the disk that the load reads, bytes a second.
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

impl Resource {
    /// The share of its limit that is usable: CPUs and lines queue before they are full; tables and
    /// descriptors do not.
    #[must_use]
    pub fn usable(self) -> f64 {
        match self {
            Self::HostCpu
            | Self::Thread
            | Self::ThreadGroup
            | Self::ProcessCpu
            | Self::SoftirqCore => 0.95,
            Self::NicSent | Self::NicSentPackets | Self::NicReceived | Self::NicReceivedPackets => {
                0.95
            }
            Self::DiskRead | Self::Ports => 0.95,
            Self::Quota | Self::Conntrack => 0.98,
            Self::Memory => 0.90,
            Self::Descriptors | Self::UdpSockets | Self::TcpConnections => 1.0,
        }
    }

    /// Whether it does work: where it is used up, work waits, and what the work uses elsewhere
    /// grows no further. The others are held, and refuse.
    fn works(self) -> bool {
        match self {
            Self::HostCpu
            | Self::Thread
            | Self::ThreadGroup
            | Self::ProcessCpu
            | Self::SoftirqCore => true,
            Self::NicSent | Self::NicSentPackets | Self::NicReceived | Self::NicReceivedPackets => {
                true
            }
            Self::DiskRead | Self::Quota => true,
            Self::Ports | Self::Conntrack | Self::Memory => false,
            Self::Descriptors | Self::UdpSockets | Self::TcpConnections => false,
        }
    }
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
    /// The name of the setting that gives threads more room; `null` for other resources and where
    /// none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The unit: `ratio` (1 = a core), `B/s`, `B`, `1/s`, `count`.
    pub unit: String,
    /// The demand of one more user at the largest load that passed.
    pub per_user: f64,
    /// Half its 95 % interval.
    pub per_user_error: f64,
    /// The use without users, by the fit.
    pub idle: f64,
    /// The quadratic term, if significant: above 0 each user costs more the more there are, below 0
    /// less.
    pub curve: Option<f64>,
    /// The use at the largest load that passed.
    pub used: f64,
    /// The hard limit in the same unit; `null` if unknown.
    pub limit: Option<f64>,
    /// The number of users at which the resource saturates; `null` without a limit, or if it is
    /// never reached.
    pub users: Option<f64>,
    /// The lower end of its 95 % interval.
    pub users_low: Option<f64>,
    /// The upper end of its 95 % interval.
    pub users_high: Option<f64>,
    /// Whether the data end below 70 % of the limit: the prediction is then optimistic.
    pub extrapolated: bool,
    /// Number of loads in the fit.
    pub loads: u32,
    /// The fitted curve with its errors, to size other crowds by; `null` in summaries of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<FittedUse>,
}

impl Resource {
    /// Whether it is of the machine and not of a process, a control group or a network namespace:
    /// all watches of one machine see the same.
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
        let bends_up = self.curve.is_some_and(|curve| curve > 0.0);
        self.per_user > 0.0 && (bends_up || self.per_user > self.per_user_error)
    }

    /// The use that it may reach; `None` without a known limit.
    pub(crate) fn usable(&self) -> Option<f64> {
        let limit = self.limit.filter(|limit| limit.is_finite() && *limit > 0.0)?;
        Some(limit * self.resource.usable())
    }

    /// The same with another limit.
    pub(crate) fn limited_to(&self, limit: f64) -> Option<Self> {
        let meeting = self.fit.filter(|_| self.grows())?.meets(limit * self.resource.usable())?;
        Some(Self {
            limit: Some(limit),
            users: Some(meeting.users),
            users_low: Some(meeting.low),
            users_high: Some(meeting.high),
            ..self.clone()
        })
    }

    /// Its name in tables: a noun, so that "the limit of" it can be said.
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
            Resource::NicSent => format!("bytes sent by {of}"),
            Resource::NicSentPackets => format!("packets sent by {of}"),
            Resource::NicReceived => format!("bytes received by {of}"),
            Resource::NicReceivedPackets => format!("packets received by {of}"),
            Resource::Descriptors => format!("file descriptors of {of}"),
            Resource::Memory => format!("memory of {of}"),
            Resource::DiskRead => format!("bytes read from {of}"),
            Resource::UdpSockets => "UDP sockets".into(),
            Resource::TcpConnections => "TCP connections".into(),
            Resource::Ports => "local ports".into(),
            Resource::Conntrack => "tracked connections".into(),
        }
    }

    /// Its name with the setting that gives more of it, for predictions: who reads that it is next
    /// wants to know what to change next.
    #[must_use]
    pub fn name_and_setting(&self) -> String {
        match &self.setting {
            Some(setting) => format!("{}, whose setting is {setting}", self.name()),
            None => self.name(),
        }
    }
}

/// The use of a resource at each load.
pub(crate) struct Used {
    pub(crate) resource: Resource,
    pub(crate) of: String,
    pub(crate) group: Option<String>,
    pub(crate) setting: Option<String>,
    pub(crate) unit: &'static str,
    pub(crate) limit: Option<f64>,
    /// In the order of the loads.
    pub(crate) values: Vec<Option<f64>>,
}

impl Used {
    fn is_saturated_at(&self, load: usize) -> bool {
        let used = self.values.get(load).copied().flatten();
        let share =
            used.zip(self.limit.filter(|limit| *limit > 0.0)).map(|(used, limit)| used / limit);
        self.resource.works() && share.is_some_and(|share| share >= SATURATED_FROM)
    }
}

/// The demand of a user on each resource of a host, the resource that saturates first first, those
/// without a known limit last. Empty if fewer than three loads passed.
#[must_use]
pub fn of(host: &Host<'_>, knowledge: &Knowledge, windows: &Windows) -> Vec<Demand> {
    let mut loads: Vec<LoadWindow> =
        windows.passed.iter().filter(|load| load.users > 0.0).copied().collect();
    loads.sort_by(|a, b| a.users.total_cmp(&b.users));
    let starved = resources::starved(host, knowledge, &loads);
    of_used(&resources::used(host, knowledge, &loads), &loads, &starved)
}

/// The demand on each of `all` resources of a host; `starved` are the loads at which the server got
/// too little CPU time.
fn of_used(all: &[Used], loads: &[LoadWindow], starved: &[bool]) -> Vec<Demand> {
    let is_full = |load: usize| all.iter().any(|used| used.is_saturated_at(load));
    let is_saturated: Vec<bool> =
        starved.iter().enumerate().map(|(load, is_starved)| *is_starved || is_full(load)).collect();
    let mut demands: Vec<Demand> =
        all.iter().filter_map(|used| demand(used, loads, &is_saturated)).collect();
    demands.sort_by(|a, b| {
        let end = |demand: &Demand| demand.users.unwrap_or(f64::INFINITY);
        end(a).total_cmp(&end(b)).then(a.resource.cmp(&b.resource))
    });
    demands
}

fn demand(used: &Used, loads: &[LoadWindow], is_saturated: &[bool]) -> Option<Demand> {
    let points: Vec<Point> = used
        .values
        .iter()
        .zip(loads.iter().zip(is_saturated))
        .filter_map(|(value, (load, full))| {
            Some(Point { users: load.users, y: (*value)?, is_saturated: *full })
        })
        .collect();
    let (fit, last) = (Fit::of(&points)?, points.last()?);
    let fitted = fit.fitted;
    let mut demand = Demand {
        resource: used.resource,
        instance: used.of.clone(),
        group: used.group.clone(),
        setting: used.setting.clone(),
        unit: used.unit.into(),
        per_user: fitted.slope_at(fitted.users_max),
        per_user_error: fitted.slope_error(),
        idle: fitted.coefficients[0],
        curve: fitted.is_curved().then_some(fitted.coefficients[2]),
        used: last.y,
        limit: used.limit,
        users: None,
        users_low: None,
        users_high: None,
        extrapolated: used.limit.is_some_and(|limit| last.y < EXTRAPOLATED_BELOW * limit),
        loads: u32::try_from(fit.points.len()).unwrap_or(u32::MAX),
        fit: Some(fitted),
    };
    // A demand that is not significantly above 0 predicts nothing.
    if demand.grows()
        && let Some(meeting) = demand.usable().and_then(|usable| fit.meets(usable))
    {
        demand.users = Some(meeting.users);
        demand.users_low = Some(meeting.low);
        demand.users_high = Some(meeting.high);
    }
    demand.used.is_finite().then_some(demand)
}

/// The demand of loads `(users, use)`, for tests of what is made of it.
#[cfg(test)]
pub(crate) fn of_points(
    resource: Resource,
    limit: Option<f64>,
    points: &[(f64, f64)],
) -> Option<Demand> {
    let (used, loads) = used_at(resource, limit, points);
    demand(&used, &loads, &vec![false; loads.len()])
}

/// The use at loads `(users, use)` by the process or thread `media`.
#[cfg(test)]
fn used_at(
    resource: Resource,
    limit: Option<f64>,
    points: &[(f64, f64)],
) -> (Used, Vec<LoadWindow>) {
    let window = throng_observation::host::measured::Window { from_us: 0, until_us: 1 };
    let loads = points.iter().map(|(users, _)| LoadWindow { window, users: *users }).collect();
    let values = points.iter().map(|(_, y)| Some(*y)).collect();
    (
        Used {
            resource,
            of: "media".into(),
            group: None,
            setting: None,
            unit: "ratio",
            limit,
            values,
        },
        loads,
    )
}
