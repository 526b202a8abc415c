//! The consent guard: which ports of which addresses a run may send to, checked before anything is
//! sent and again during the run.

mod demand;
mod judged;
mod names;
mod others;
mod proof;
mod refusal;
#[cfg(test)]
mod tests;

pub(crate) use judged::permission;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use throng_engine::{Consent, ConsentCheck};
use throng_observation::Url;
use throng_observation::run::ClockError;
use throng_scenario::{AddressPolicy, Caps, ConsentProof, IpProtocol, MayReach};

use self::names::{JudgedNames, resolve};
use self::proof::{ProofRequest, ProvenAddress};
use crate::watchers::Agreement;

/// Error of a delay whose ends were both read from one clock: that of the two readings.
const SAME_CLOCK_ERROR_US: u64 = 100;

/// How often a published proof is fetched again.
const PROOF_INTERVAL: Duration = Duration::from_secs(60);

/// How often the presence of an agent is checked.
const PRESENCE_INTERVAL: Duration = Duration::from_millis(500);

/// What the consent guard allows for a plan.
pub(crate) struct Permission {
    policy: Arc<AddressPolicy>,
    /// The same with all of this host, for what the user names to be read.
    of_sources: Arc<AddressPolicy>,
    /// Each with the proof that opened it.
    proven: Vec<(ProvenAddress, ConsentProof)>,
    request: Option<ProofRequest>,
    agreements: Vec<Agreement>,
    caps: Caps,
    servers: Vec<SocketAddr>,
    /// How many addresses the target has, with those that get no load.
    target_addresses: usize,
    names: JudgedNames,
    is_own_host: bool,
    /// Addresses that get no load, each with the reason, on one line.
    left_out: Vec<String>,
}

impl Permission {
    /// Where sockets may send to, and what ICE candidates may be.
    pub(crate) fn filter(&self) -> MayReach {
        let policy = self.policy.clone();
        Arc::new(move |protocol, to| policy.permits(protocol, to).is_ok())
    }

    /// The check for what the user names to be read beside the target: an address that has agreed,
    /// or one of this host. No server chooses these, and they get one request a second. Returns the
    /// refusal as a sentence.
    pub(crate) fn source_check(&self) -> Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync> {
        let policy = self.of_sources.clone();
        Arc::new(move |address| {
            policy.permits_address(address).map(drop).map_err(|refusal| refusal.to_string())
        })
    }

    /// Whether an origin of recorded pages may get load: all its addresses must have consented.
    pub(crate) fn host(&self, url: &Url) -> Result<(), String> {
        let (host, port) =
            (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0));
        let addresses = match self.names.get(host) {
            Some(addresses) => addresses.to_vec(),
            None => resolve(host, port).map_err(|error| error.error.to_string())?,
        };
        addresses.into_iter().try_for_each(|address| {
            let judged = self.policy.permits(IpProtocol::Tcp, SocketAddr::new(address, port));
            judged.map(drop).map_err(|refusal| refusal.to_string())
        })
    }

    /// Whether all addresses of the target that get load are this host's.
    pub(crate) fn is_own_host(&self) -> bool {
        self.is_own_host
    }

    /// The target's first signalling address, as resolved.
    pub(crate) fn server(&self) -> Option<SocketAddr> {
        self.servers.first().copied()
    }

    /// All its addresses that may get load.
    pub(crate) fn servers(&self) -> Vec<SocketAddr> {
        self.servers.clone()
    }

    /// How many addresses it has, with those that get no load.
    pub(crate) fn target_addresses(&self) -> usize {
        self.target_addresses
    }

    /// Why addresses of the names in the scenario get no load: warnings, each on one line.
    pub(crate) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The hosts that the scenario names, with the addresses that were judged, for the engine to
    /// resolve no other.
    pub(crate) fn names(&self) -> Vec<(String, Vec<IpAddr>)> {
        self.names.0.clone()
    }

    /// What the engine asks again during the run: each address, the name, and the agents.
    pub(crate) fn consents(&self) -> Vec<Consent> {
        let published = self.proven.iter().cloned().map(|(address, given)| {
            let caps = self.caps.clone();
            let check: ConsentCheck = Arc::new(move || address.still_gives(&given, &caps));
            Consent { check, interval: PROOF_INTERVAL }
        });
        let named = self.request.iter().cloned().map(|request| {
            let check: ConsentCheck = Arc::new(move || request.name_still_agrees());
            Consent { check, interval: PROOF_INTERVAL }
        });
        let present = self.agreements.iter().cloned().map(|agreement| {
            let check: ConsentCheck = Arc::new(move || agreement.check());
            Consent { check, interval: PRESENCE_INTERVAL }
        });
        published.chain(named).chain(present).collect()
    }

    /// The check for places to which a server directs a browser; returns the refusal as a sentence.
    pub(crate) fn browser_check(
        &self,
    ) -> Arc<dyn Fn(IpProtocol, SocketAddr) -> Result<(), String> + Send + Sync> {
        let policy = self.policy.clone();
        Arc::new(move |protocol, to| {
            policy.permits(protocol, to).map(drop).map_err(|refusal| refusal.to_string())
        })
    }

    /// The highest rate that is allowed, received and sent together.
    pub(crate) fn mbit_per_s_max(&self) -> Option<f64> {
        self.caps.mbit_per_s
    }

    /// The error bound of absolute (one-way) delays of this target's media.
    pub(crate) fn clock_error(&self) -> ClockError {
        let (bound_us, basis) = if self.is_own_host {
            (
                Some(SAME_CLOCK_ERROR_US),
                "the target is on this host: exact if the media's source is too",
            )
        } else {
            (None, "the clock of the media's source is not known")
        };
        ClockError { bound_us, basis: basis.into() }
    }
}
