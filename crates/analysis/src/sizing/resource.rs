//! The resources that are sized, and which demands make up each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::units::Unit;

use crate::demand::growth::Growth;
use crate::demand::{Demand, Resource};

/// A resource that a crowd needs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SizedResource {
    /// CPUs, as Linux counts them on the measured host.
    Cpu,
    /// What the interface that sends the load sends, bytes a second.
    NicSent,
    /// What it receives, bytes a second.
    NicReceived,
    /// What it sends, packets a second.
    NicSentPackets,
    /// What it receives, packets a second.
    NicReceivedPackets,
    /// Resident memory, bytes.
    Memory,
    /// What is read from the disk that the load reads, bytes a second.
    DiskRead,
    /// Open file descriptors.
    Descriptors,
    /// UDP sockets.
    UdpSockets,
    /// TCP connections.
    TcpConnections,
    /// Local ports toward one peer.
    Ports,
    /// Tracked connections.
    Conntrack,
}

impl SizedResource {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::NicSent => "line, sent",
            Self::NicReceived => "line, received",
            Self::NicSentPackets => "packets sent",
            Self::NicReceivedPackets => "packets received",
            Self::Memory => "memory",
            Self::DiskRead => "disk, read",
            Self::Descriptors => "file descriptors",
            Self::UdpSockets => "UDP sockets",
            Self::TcpConnections => "TCP connections",
            Self::Ports => "local ports",
            Self::Conntrack => "tracked connections",
        }
    }

    /// The unit of its need.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Cpu => Unit::Cores,
            Self::NicSent | Self::NicReceived => Unit::BytesPerSecond,
            Self::DiskRead => Unit::DiskBytesPerSecond,
            Self::Memory => Unit::Bytes,
            Self::NicSentPackets | Self::NicReceivedPackets => Unit::PerSecond,
            Self::Descriptors
            | Self::UdpSockets
            | Self::TcpConnections
            | Self::Ports
            | Self::Conntrack => Unit::Count,
        }
    }

    /// The amount that users are counted per, in that unit, and its name: a core, a Gbit/s, a GB, a
    /// MB/s, a thousand.
    #[must_use]
    pub fn counted_per(self) -> (f64, &'static str) {
        match self {
            Self::Cpu => (1.0, "core"),
            Self::NicSent | Self::NicReceived => (125e6, "Gbit/s"),
            Self::Memory => (1e9, "GB"),
            Self::DiskRead => (1e6, "MB/s"),
            Self::NicSentPackets | Self::NicReceivedPackets => (1e3, "1,000 packets/s"),
            Self::Descriptors => (1e3, "1,000 descriptors"),
            Self::UdpSockets => (1e3, "1,000 sockets"),
            Self::TcpConnections | Self::Conntrack => (1e3, "1,000 connections"),
            Self::Ports => (1e3, "1,000 ports"),
        }
    }

    /// The resource that a demand is part of; `None` for one that bounds a thread, a pool, a quota
    /// or a CPU of the host.
    fn of(resource: Resource) -> Option<Self> {
        Some(match resource {
            Resource::NicSent => Self::NicSent,
            Resource::NicReceived => Self::NicReceived,
            Resource::NicSentPackets => Self::NicSentPackets,
            Resource::NicReceivedPackets => Self::NicReceivedPackets,
            Resource::Memory => Self::Memory,
            Resource::DiskRead => Self::DiskRead,
            Resource::Descriptors => Self::Descriptors,
            Resource::UdpSockets => Self::UdpSockets,
            Resource::TcpConnections => Self::TcpConnections,
            Resource::Ports => Self::Ports,
            Resource::Conntrack => Self::Conntrack,
            Resource::HostCpu
            | Resource::Thread
            | Resource::ThreadGroup
            | Resource::ProcessCpu
            | Resource::Quota
            | Resource::SoftirqCore => return None,
        })
    }

    /// Whether the demands of several processes and hosts add up. A line, a disk and a table of the
    /// kernel is one resource, of which the hosts have one each: the one with the largest demand
    /// counts.
    fn adds_up(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory | Self::Descriptors)
    }
}

/// The loopback interface: what one end sends the other receives on it.
const LOOPBACK: &str = "lo";

/// The growth of each resource with a fitted demand.
pub(super) fn grown(
    demands: &[Demand],
    shares_host_with_crowd: bool,
    notes: &mut Vec<String>,
) -> Vec<(SizedResource, Growth)> {
    let mut all: Vec<(SizedResource, Vec<&Demand>)> = Vec::new();
    for demand in demands {
        let Some(resource) = SizedResource::of(demand.resource) else { continue };
        match all.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, list)) if resource.adds_up() => list.push(demand),
            Some((_, list)) if list.iter().all(|known| known.per_user < demand.per_user) => {
                *list = vec![demand];
            }
            Some(_) => {}
            None => all.push((resource, vec![demand])),
        }
    }
    let is_loopback = |demand: &&Demand| demand.instance.split(' ').next() == Some(LOOPBACK);
    if all
        .iter()
        .any(|(resource, list)| *resource == SizedResource::NicSent && list.iter().any(is_loopback))
    {
        notes.push(
            "The line is the loopback interface, which carries both directions in each".into(),
        );
    }
    all.push((SizedResource::Cpu, cpu(demands, shares_host_with_crowd, notes)));
    all.into_iter().filter_map(|(resource, list)| Some((resource, Growth::of(&list)?))).collect()
}

/// The CPU of the server: of its host, which also works in the kernel for it; of its processes
/// where the generator is on the same host, or the host's does not grow.
fn cpu<'a>(
    demands: &'a [Demand],
    shares_host_with_crowd: bool,
    notes: &mut Vec<String>,
) -> Vec<&'a Demand> {
    let of = |resource| -> Vec<&'a Demand> {
        demands
            .iter()
            .filter(|demand| demand.resource == resource && demand.fit.is_some())
            .collect()
    };
    let (hosts, processes) = (of(Resource::HostCpu), of(Resource::ProcessCpu));
    if !shares_host_with_crowd && hosts.iter().any(|host| host.grows()) {
        return hosts;
    }
    if processes.is_empty() {
        if shares_host_with_crowd && !hosts.is_empty() {
            notes.push(
                "The CPU is that of the whole host, generator included: no process was watched"
                    .into(),
            );
        }
        return hosts;
    }
    if shares_host_with_crowd {
        notes.push(
            "The generator ran on the server's host: the CPU is that of the watched processes, \
             without the kernel's work in interrupts"
                .into(),
        );
    }
    processes
}
