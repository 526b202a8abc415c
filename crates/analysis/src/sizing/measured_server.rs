//! The measured server as a unit: how many like it a crowd needs, with its own limits and as it is
//! configured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Estimate, SizeRequest};
use crate::demand::growth::Growth;
use crate::demand::{Demand, Resource};

/// The capacity that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredCapacity {
    /// The largest crowd that was served well.
    pub users: f64,
    /// The smallest that was not; `None` if none failed.
    pub first_failing: Option<f64>,
}

/// How many servers like the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredServer {
    /// Users that one serves at the target utilisation, with the interval of that figure.
    pub users_each: Estimate,
    /// What bounds it: a resource, or `measured capacity`.
    pub decided_by: String,
    /// How many servers.
    pub servers: u64,
    /// At least.
    pub servers_low: u64,
    /// At most; `null` if the lower end of `users_each` is 0.
    pub servers_high: Option<u64>,
}

/// The name of a bound by the search itself.
const CAPACITY: &str = "measured capacity";

/// The smallest of the measured capacity and of the loads at which a resource is used to the
/// target; `None` without either.
pub(super) fn of(
    demands: &[Demand],
    capacity: Option<&MeasuredCapacity>,
    request: &SizeRequest,
) -> Option<MeasuredServer> {
    let target = request.target_utilisation;
    let has_processes = demands.iter().any(|demand| demand.resource == Resource::ProcessCpu);
    // The CPU of a host that the generator shares is not the server's alone.
    let counts = |demand: &&Demand| {
        demand.resource != Resource::HostCpu || !request.shares_host_with_crowd || !has_processes
    };
    let bound = |demand: &Demand| {
        let limit = demand.limit.filter(|limit| limit.is_finite() && *limit > 0.0)?;
        let growth = Growth::of(&[demand]).filter(Growth::grows)?;
        let within = growth.users_within(limit * target, growth.reach());
        // A resource that holds more than can be extrapolated to does not decide.
        (within.value < growth.reach()).then(|| (within, demand.name()))
    };
    let of_capacity = capacity.map(|capacity| {
        let high = capacity.first_failing.unwrap_or(capacity.users).max(capacity.users);
        let each = Estimate { value: capacity.users, low: capacity.users, high };
        (each.times(target), CAPACITY.to_owned())
    });
    let bounds = demands.iter().filter(counts).filter_map(bound).chain(of_capacity);
    let (users_each, decided_by) = bounds
        .filter(|(each, _)| each.value > 0.0 && each.value.is_finite())
        .min_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    Some(MeasuredServer {
        users_each,
        decided_by,
        servers: count(request.users, users_each.value)?,
        servers_low: count(request.users, users_each.high)?,
        servers_high: count(request.users, users_each.low),
    })
}

/// How many of `each` hold `users`; `None` if the number is not one.
pub(super) fn count(users: f64, each: f64) -> Option<u64> {
    let count = (users / each - 1e-9).ceil().max(1.0);
    (each > 0.0 && count.is_finite() && count < 1e15).then_some(count as u64)
}
