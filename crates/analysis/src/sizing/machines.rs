//! How many machines of a type hold a crowd, and which resource of the machine decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured_server::count;
use super::{Estimate, SizeRequest, SizedResource, is_of_process};
use crate::demand::Demand;
use crate::demand::growth::Growth;

/// A machine that can be rented or bought.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineType {
    /// Its name.
    pub name: String,
    /// Its CPUs, as Linux counts them.
    pub vcpus: f64,
    /// How fast one is, as a multiple of a CPU of the measured host.
    pub cpu_speed: f64,
    /// Its memory, bytes.
    pub memory_bytes: f64,
    /// Its line in each direction, bytes a second.
    pub network_bytes_per_s: f64,
}

impl MachineType {
    /// How much it has of a resource; `None` of one that its table does not say.
    fn has(&self, resource: SizedResource) -> Option<f64> {
        match resource {
            SizedResource::Cpu => Some(self.vcpus * self.cpu_speed),
            SizedResource::Memory => Some(self.memory_bytes),
            SizedResource::NicSent | SizedResource::NicReceived => Some(self.network_bytes_per_s),
            _ => None,
        }
    }
}

/// A thread or pool that is full before the machine is: one process of the measured configuration
/// does not fill it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessesEach {
    /// How many processes, or how many times the workers, on each machine.
    pub count: u64,
    /// The thread or pool.
    pub because_of: String,
    /// Users at which it is used to the target.
    pub users_each: f64,
}

/// Machines of a type for a crowd.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachinePlan {
    /// The type.
    pub machine: String,
    /// How many.
    pub count: u64,
    /// At least.
    pub count_low: u64,
    /// At most; `null` if the upper end of the use leaves no room on such a machine.
    pub count_high: Option<u64>,
    /// Users on each, if the crowd is spread evenly.
    pub users_each: f64,
    /// The most users that one holds at the target utilisation, with the interval of that figure.
    pub users_each_max: Estimate,
    /// The resource of the machine that decides; `null` if the measurement does not reach as far as
    /// the machine.
    pub decided_by: Option<SizedResource>,
    /// Users on each ÷ the largest load that was measured, at least 1.
    pub extrapolated: f64,
    /// The use of each resource with `users_each` users, as a share of what the machine has.
    pub used: Vec<(SizedResource, f64)>,
    /// How many processes each needs; `null` if one as configured is enough.
    pub processes_each: Option<ProcessesEach>,
}

pub(super) fn plan(
    grown: &[(SizedResource, Growth)],
    demands: &[Demand],
    machine: &MachineType,
    request: &SizeRequest,
) -> Result<MachinePlan, String> {
    let sized: Vec<(SizedResource, &Growth, f64)> = grown
        .iter()
        .filter_map(|(resource, growth)| Some((*resource, growth, machine.has(*resource)?)))
        .collect();
    if !sized.iter().any(|(resource, growth, _)| *resource == SizedResource::Cpu && growth.grows())
    {
        return Err("how much of the server's CPU a user costs is not known".into());
    }
    // No machine is planned with so many users that their use were a guess.
    let reach = sized.iter().map(|(_, growth, _)| growth.reach()).fold(request.users, f64::min);
    let within =
        |has: f64, growth: &Growth| growth.users_within(has * request.target_utilisation, reach);
    let least = sized
        .iter()
        .map(|(resource, growth, has)| (*resource, within(*has, growth)))
        .min_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let Some((resource, each)) = least else { return Err("nothing was measured".into()) };
    // The ends of the interval may be those of another resource.
    let end = |of: fn(&Estimate) -> f64| {
        sized.iter().map(|(_, growth, has)| of(&within(*has, growth))).fold(f64::INFINITY, f64::min)
    };
    let each =
        Estimate { value: each.value, low: end(|each| each.low), high: end(|each| each.high) };
    if each.value < 1.0 {
        return Err(format!(
            "its {} does not suffice for one user at this utilisation",
            resource.name()
        ));
    }
    let Some(count_of) = count(request.users, each.value) else {
        return Err("the number of machines is too large to count".into());
    };
    let users_each = request.users / count_of as f64;
    let extrapolated = sized
        .iter()
        .map(|(_, growth, _)| growth.extrapolation(users_each).factor)
        .fold(1.0, f64::max);
    let used =
        sized.iter().map(|(resource, growth, has)| (*resource, growth.at(users_each).value / has));
    Ok(MachinePlan {
        machine: machine.name.clone(),
        count: count_of,
        count_low: count(request.users, each.high.max(each.value)).unwrap_or(count_of),
        count_high: count(request.users, each.low.min(each.value)),
        users_each,
        users_each_max: each,
        decided_by: (each.value < reach).then_some(resource),
        extrapolated,
        used: used.collect(),
        processes_each: processes_each(demands, users_each, machine, request),
    })
}

/// The thread or pool that is full with the fewest users, if one process does not hold
/// `users_each`.
fn processes_each(
    demands: &[Demand],
    users_each: f64,
    machine: &MachineType,
    request: &SizeRequest,
) -> Option<ProcessesEach> {
    let holds = |demand: &Demand| {
        let growth = Growth::of(&[demand]).filter(Growth::grows)?;
        let level = demand.limit? * machine.cpu_speed * request.target_utilisation;
        Some((growth.users_within(level, growth.reach()).value, demand.name()))
    };
    let threads = demands.iter().filter(|demand| is_of_process(demand.resource)).filter_map(holds);
    let (users, because_of) = threads.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let count = count(users_each, users).filter(|count| *count > 1)?;
    Some(ProcessesEach { count, because_of, users_each: users })
}
