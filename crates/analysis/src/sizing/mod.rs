//! What a crowd needs: users per core, per Gbit/s and per GB, the need of N users, and the machines
//! that provide it.
//!
//! From the demand of a user (`demand/`), which is fitted to the loads that passed. A resource
//! grows as it was fitted, never straighter: a curve stays one. Beyond the largest load that was
//! measured a need is an extrapolation and says so; far beyond it only its order of magnitude is
//! given. A machine is never planned with so many users that the plan were such a guess.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod machines;
mod measured_server;
mod need;
mod resource;
mod room;
#[cfg(test)]
mod tests;
mod traffic;

pub use crate::demand::growth::{Bend, CURVED_REACH, Estimate, Extrapolation, LINEAR_REACH};
pub use machines::{MachinePlan, MachineType, ProcessesEach};
pub use measured_server::{MeasuredCapacity, MeasuredServer};
pub use need::{ResourceNeed, UsersPer};
pub use resource::SizedResource;
pub use room::{RoomForecast, RoomPart, RoomRequest, RoomTalk, RoomVerdict};
pub use traffic::{PerUser, Traffic};

use crate::demand::growth::Growth;
use crate::demand::{Demand, Resource};

/// The share of a resource that a plan uses without another wish: CPUs and lines queue above it,
/// and a crowd is never even.
pub const TARGET_UTILISATION: f64 = 0.75;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeRequest {
    /// Users at a time.
    pub users: f64,
    /// The share of each resource that may be used, above 0 and at most 1.
    pub target_utilisation: f64,
    /// Whether the crowd ran on the server's host: the CPU of the host then contains the generator.
    pub shares_host_with_crowd: bool,
}

/// What `users` need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// Users at a time.
    pub users: f64,
    /// The share of each resource that is used.
    pub target_utilisation: f64,
    /// The largest load of the fits; `null` if nothing was fitted.
    pub users_measured_max: Option<f64>,
    /// Each resource: the need of these users on one server, as large as it has to be.
    pub needs: Vec<ResourceNeed>,
    /// How many servers like the measured one; `null` if none of its limits is known.
    pub like_measured: Option<MeasuredServer>,
    /// What a reader must know about these figures.
    pub notes: Vec<String>,
}

/// The resources of a server as they grow with its users.
pub struct Sizing<'a> {
    request: SizeRequest,
    demands: &'a [Demand],
    grown: Vec<(SizedResource, Growth)>,
    notes: Vec<String>,
}

impl<'a> Sizing<'a> {
    /// The growth of each resource that `demands` fits; `traffic` is the line's where the server's
    /// own was not measured.
    #[must_use]
    pub fn of(demands: &'a [Demand], traffic: Option<&Traffic>, request: SizeRequest) -> Self {
        let mut notes = Vec::new();
        let mut grown = resource::grown(demands, request.shares_host_with_crowd, &mut notes);
        if !grown.iter().any(|(resource, _)| *resource == SizedResource::NicSent)
            && let Some(growth) = traffic.and_then(Traffic::growth)
        {
            grown.push((SizedResource::NicSent, growth));
            notes.push(
                "The server's line was not measured: what it sends is what the users received, \
                 without retransmissions"
                    .into(),
            );
        }
        grown.sort_by_key(|(resource, _)| *resource);
        Self { request, demands, grown, notes }
    }

    /// Whether nothing can be sized.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grown.is_empty()
    }

    /// Whether it is known what a user costs of the CPU.
    #[must_use]
    pub fn has_cpu(&self) -> bool {
        self.grown
            .iter()
            .any(|(resource, growth)| *resource == SizedResource::Cpu && growth.grows())
    }

    /// The need of the crowd, on one server and in servers like the measured one.
    #[must_use]
    pub fn size(&self, capacity: Option<&MeasuredCapacity>) -> Size {
        let users_measured_max =
            self.grown.iter().map(|(_, growth)| growth.users_max()).reduce(f64::max);
        Size {
            users: self.request.users,
            target_utilisation: self.request.target_utilisation,
            users_measured_max,
            needs: self
                .grown
                .iter()
                .map(|(resource, growth)| ResourceNeed::of(*resource, growth, &self.request))
                .collect(),
            like_measured: measured_server::of(self.demands, capacity, &self.request),
            notes: self.notes.clone(),
        }
    }

    /// How many machines of a type.
    ///
    /// # Errors
    /// Why it cannot be said, in a sentence.
    pub fn machines(&self, machine: &MachineType) -> Result<MachinePlan, String> {
        machines::plan(&self.grown, self.demands, machine, &self.request)
    }

    /// The need of one resource by the whole crowd, spread evenly over `servers`; `None` if it was
    /// not measured.
    #[must_use]
    pub fn need_over(&self, resource: SizedResource, servers: u64) -> Option<ResourceNeed> {
        let (_, growth) = self.grown.iter().find(|(known, _)| *known == resource)?;
        let servers = servers.max(1) as f64;
        let each = SizeRequest { users: self.request.users / servers, ..self.request };
        let need = ResourceNeed::of(resource, growth, &each);
        Some(ResourceNeed {
            used: need.used.times(servers),
            provide: need.provide.times(servers),
            ..need
        })
    }

    /// The least servers on which the crowd's use is more than a guess.
    #[must_use]
    pub fn servers_within_reach(&self) -> u64 {
        let reach =
            self.grown.iter().map(|(_, growth)| growth.reach()).fold(f64::INFINITY, f64::min);
        measured_server::count(self.request.users, reach).unwrap_or(1)
    }

    /// The need of one resource by the whole crowd; `None` if it was not measured.
    #[must_use]
    pub fn need(&self, resource: SizedResource) -> Option<ResourceNeed> {
        let (_, growth) = self.grown.iter().find(|(known, _)| *known == resource)?;
        Some(ResourceNeed::of(resource, growth, &self.request))
    }
}

/// How many users one more unit of each resource serves, for a page without a question.
#[must_use]
pub fn users_per_unit(
    demands: &[Demand],
    shares_host_with_crowd: bool,
) -> Vec<(SizedResource, UsersPer)> {
    let mut grown = resource::grown(demands, shares_host_with_crowd, &mut Vec::new());
    grown.sort_by_key(|(resource, _)| *resource);
    let per = |(resource, growth): &(SizedResource, Growth)| {
        Some((*resource, UsersPer::of(*resource, growth)?))
    };
    grown.iter().filter_map(per).collect()
}

/// Whether it bounds one process or pool, and not the machine: more of the machine does not help.
fn is_of_process(resource: Resource) -> bool {
    matches!(resource, Resource::Thread | Resource::ThreadGroup)
}
