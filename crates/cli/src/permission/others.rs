//! Servers that a scenario names beside its target, and origins of its recorded pages.

use std::net::{IpAddr, SocketAddr};

use anyhow::anyhow;
use throng_scenario::{AddressPolicy, IpProtocol, NamedPlace, Plan, Refusal};

use super::names::JudgedNames;
use super::refusal::{no_load, refused};
use crate::console::{CliError, Exit};
use crate::watchers::Agents;

/// A server that the scenario names beside the target, with all its addresses.
pub(super) struct Other {
    pub(super) place: NamedPlace,
    pub(super) addresses: Vec<IpAddr>,
}

/// Those of a plan.
pub(super) fn others(plan: &Plan, names: &mut JudgedNames) -> Result<Vec<Other>, CliError> {
    let other = |place: NamedPlace| {
        let addresses = names.resolve(&place.host, place.port);
        let addresses = addresses.map_err(|error| named(&error, &place))?;
        Ok(Other { place, addresses })
    };
    plan.named_places().into_iter().map(other).collect()
}

/// The origins of recorded pages. What one that is not resolved would get is left out of the run
/// ([`super::Permission::host`]).
pub(super) fn origins(plan: &Plan, names: &mut JudgedNames) -> Vec<Other> {
    let origin = |place: NamedPlace| {
        let addresses = names.resolve(&place.host, place.port).ok()?;
        Some(Other { place, addresses })
    };
    plan.named_origins().into_iter().filter_map(origin).collect()
}

impl Other {
    /// One of its addresses must be allowed, or have agreed for the target: proofs are fetched from
    /// the target's addresses only. Returns why the others get no load. All such servers are
    /// reached by TCP.
    pub(super) fn judge(
        &self,
        policy: &AddressPolicy,
        agents: &Agents,
    ) -> Result<Vec<String>, CliError> {
        let port = self.place.port;
        let refusal = |address: &IpAddr| {
            policy.permits(IpProtocol::Tcp, SocketAddr::new(*address, port)).err()
        };
        let refusals: Vec<Refusal> = self.addresses.iter().filter_map(refusal).collect();
        match refusals.first() {
            Some(refusal) if refusals.len() == self.addresses.len() => {
                let error = CliError::new(Exit::Target, refused(*refusal, port, agents));
                Err(named(&error, &self.place))
            }
            Some(_) | None => {
                let NamedPlace { key, cohort, .. } = &self.place;
                let left_out =
                    |refusal| format!("{key} of {cohort}: {}", no_load(refusal, port, agents));
                Ok(refusals.into_iter().map(left_out).collect())
            }
        }
    }
}

/// The error with the key that names the server.
fn named(error: &CliError, place: &NamedPlace) -> CliError {
    let NamedPlace { key, cohort, host, port } = place;
    CliError::new(error.exit, anyhow!("{key} of {cohort} ({host}:{port}): {}", error.error))
}
