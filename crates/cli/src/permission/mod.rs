//! The consent guard: which ports of which addresses a run may send to, checked before anything is
//! sent and again during the run.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use throng_engine::{Consent, ConsentCheck, TlsOptions};
use throng_observation::run::ClockError;
use throng_observation::{units, untrusted};
use throng_scenario::{
    AddressPolicy, Caps, ConsentProof, ConsentSecret, ExpectedLoad, IpProtocol, MayReach,
    NamedPlace, PermitReason, Plan, Refusal,
};

use url::Url;

use crate::console::{CliError, Exit};
use crate::secrets;
use crate::watchers::{Agents, Agreement};

mod proof;
use proof::{ProofRequest, ProvenAddress};

/// Error of a delay whose ends were both read from one clock: that of the two readings.
const SAME_CLOCK_ERROR_US: u64 = 100;

/// How often a published proof is fetched again.
const PROOF_INTERVAL: Duration = Duration::from_secs(60);

/// How often the presence of an agent is checked.
const PRESENCE_INTERVAL: Duration = Duration::from_millis(500);

/// How many addresses of one name are queried for a proof. A name may point at many addresses of
/// other owners, which should receive no requests because of it.
const ADDRESSES_ASKED_MAX: usize = 8;

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

/// Hosts that the scenario names, each resolved once: the run connects to the addresses that were
/// judged, and to no later answer of DNS.
#[derive(Default)]
struct JudgedNames(Vec<(String, Vec<IpAddr>)>);

impl JudgedNames {
    fn resolve(&mut self, host: &str, port: u16) -> Result<Vec<IpAddr>, CliError> {
        if let Some(addresses) = self.get(host) {
            return Ok(addresses.to_vec());
        }
        let addresses = resolve(host, port)?;
        self.0.push((host.to_owned(), addresses.clone()));
        Ok(addresses)
    }

    fn get(&self, host: &str) -> Option<&[IpAddr]> {
        let (_, addresses) = self.0.iter().find(|(name, _)| name == host)?;
        Some(addresses)
    }
}

/// The load that a plan puts on its target.
#[derive(Clone)]
struct Demand {
    expected: ExpectedLoad,
    duration: Duration,
}

/// Judges every address of the target, and notes which of them get no load.
///
/// An agent that agrees to load opens its own address, within its limits and as long as it runs.
/// This applies to every address: where no consent was needed, the owner can still end the run by
/// ending the agent. A public address without a proof gets no load, whatever proof another address
/// of the same name has; so it is with every other address that is not allowed. The run is refused
/// where none is.
pub(crate) fn permission(
    plan: &Plan,
    consent_secret: Option<&str>,
    tls: &TlsOptions,
    agents: &Agents,
) -> Result<Permission, CliError> {
    let own = throng_engine::preflight::own_addresses();
    judged(plan, consent_secret, tls, agents, (own, JudgedNames::default()))
}

/// The same on a host with the addresses `own`. `names`: those that are resolved already.
fn judged(
    plan: &Plan,
    consent_secret: Option<&str>,
    tls: &TlsOptions,
    agents: &Agents,
    (own, mut names): (Vec<IpAddr>, JudgedNames),
) -> Result<Permission, CliError> {
    let (host, port) = plan.target.host_and_port();
    let protocol = plan.target.ip_protocol();
    let addresses = names.resolve(&host, port)?;
    let (others, origins) = (others(plan, &mut names)?, origins(plan, &mut names));
    let mut policy = named_policy(plan, own, &addresses, others.iter().chain(&origins));
    let covers = |agreement: &Agreement| {
        let places = others
            .iter()
            .flat_map(|other| other.addresses.iter().map(|address| (*address, other.place.port)));
        let mut all = addresses.iter().map(|address| (*address, port)).chain(places);
        all.any(|(address, port)| agreement.covers(address, port))
    };
    let agreements: Vec<Agreement> = agents.agreements().into_iter().filter(covers).collect();
    let demand = Demand { expected: plan.expected, duration: plan.duration };
    let (mut proven, mut request, mut caps) = (Vec::new(), None, plan.caps.clone());
    for agreement in &agreements {
        policy.prove_by_agent(&agreement.proof);
        caps = caps.lowered_by(&agreement.proof.caps);
        demand.within(&agreement.proof.caps).map_err(CliError::target)?;
    }
    let refusals: Vec<Refusal> = addresses
        .iter()
        .filter_map(|address| policy.permits(protocol, SocketAddr::new(*address, port)).err())
        .collect();
    let has_allowed = refusals.len() < addresses.len();
    let (unproven, others_refused): (Vec<Refusal>, Vec<Refusal>) =
        refusals.into_iter().partition(|refusal| refusal.needs_proof());
    let asked = match consent_secret {
        Some(secret) if !unproven.is_empty() => Some(consent_secret_of(secret)?),
        Some(_) | None => None,
    };
    if !has_allowed && asked.is_none() {
        if let Some(refusal) = others_refused.first() {
            return Err(CliError::new(Exit::Target, refused(*refusal, port, agents)));
        }
        if let Some(refusal) = unproven.first() {
            let refused = refused(*refusal, port, agents);
            return Err(CliError::target(format!(
                "{refused}; give the secret of that proof with --consent-secret"
            )));
        }
    }
    let refused_one = |refusal: &Refusal| no_load(*refusal, port, agents);
    let mut left_out: Vec<String> = others_refused.iter().map(refused_one).collect();
    if let Some(secret) = asked {
        let asked = ProofRequest::new(&plan.target, secret, tls.clone(), demand);
        let is_only_address = addresses.len() == 1;
        let opened = (&mut policy, &mut caps);
        proven = prove(&asked, &unproven, is_only_address, opened, &mut left_out)?;
        request = Some(asked);
    } else {
        left_out.extend(unproven.iter().map(refused_one));
    }
    for other in &others {
        left_out.extend(other.judge(&policy, agents)?);
    }
    let permits: Vec<(IpAddr, PermitReason)> = addresses
        .iter()
        .filter_map(|address| {
            let permit = policy.permits(protocol, SocketAddr::new(*address, port));
            Some((*address, permit.ok()?))
        })
        .collect();
    if permits.is_empty() {
        let none = unproven.first().map_or_else(
            || "it has no address".to_owned(),
            |refusal| format!("{refusal}; {}", left_out.join("; ")),
        );
        return Err(CliError::target(format!("{host}: no address agreed to load: {none}")));
    }
    let is_own_host = permits
        .iter()
        .all(|(_, permit)| matches!(permit, PermitReason::Loopback | PermitReason::OwnAddress));
    let servers = permits.iter().map(|(address, _)| SocketAddr::new(*address, port)).collect();
    Ok(Permission {
        of_sources: Arc::new(policy.clone().with_this_host()),
        policy: Arc::new(policy),
        proven,
        request,
        agreements,
        caps,
        servers,
        target_addresses: addresses.len(),
        names,
        is_own_host,
        left_out: left_out.iter().map(|why| untrusted::line(why).into_owned()).collect(),
    })
}

/// The policy before anybody is asked: what the scenario allows, and what of this host, which has
/// the addresses `own`, it names.
fn named_policy<'a>(
    plan: &Plan,
    own: Vec<IpAddr>,
    addresses: &[IpAddr],
    beside: impl Iterator<Item = &'a Other>,
) -> AddressPolicy {
    let mut policy = AddressPolicy::new(own, plan.target.allow.iter().copied());
    policy.name_target(addresses);
    for other in beside {
        policy.name_server(&other.addresses, other.place.port);
    }
    for server in plan.named_ice_servers() {
        policy.name_server(&[server.ip()], server.port());
    }
    if plan.has_peers_over_channels() {
        policy.name_peers();
    }
    policy
}

/// A server that the scenario names beside the target, with all its addresses.
struct Other {
    place: NamedPlace,
    addresses: Vec<IpAddr>,
}

/// Those of a plan.
fn others(plan: &Plan, names: &mut JudgedNames) -> Result<Vec<Other>, CliError> {
    let other = |place: NamedPlace| {
        let addresses = names.resolve(&place.host, place.port);
        let addresses = addresses.map_err(|error| named(&error, &place))?;
        Ok(Other { place, addresses })
    };
    plan.named_places().into_iter().map(other).collect()
}

/// The origins of recorded pages. What one that is not resolved would get is left out of the run
/// ([`Permission::host`]).
fn origins(plan: &Plan, names: &mut JudgedNames) -> Vec<Other> {
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
    fn judge(&self, policy: &AddressPolicy, agents: &Agents) -> Result<Vec<String>, CliError> {
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

/// Asks addresses for their proofs. Each proof opens its address and lowers `caps`. An address
/// without a proof is `left_out`, which is an error if it is the only one.
fn prove(
    request: &ProofRequest,
    unproven: &[Refusal],
    is_only_address: bool,
    (policy, caps): (&mut AddressPolicy, &mut Caps),
    left_out: &mut Vec<String>,
) -> Result<Vec<(ProvenAddress, ConsentProof)>, CliError> {
    let mut proven = Vec::new();
    for (refusal, answer) in unproven.iter().zip(ask(request, unproven)) {
        match answer {
            Ok((address, proof)) => {
                *caps = caps.lowered_by(&proof.caps);
                policy.prove(&proof, address.address);
                proven.push((address, proof));
            }
            Err(why) if is_only_address => {
                return Err(CliError::target(format!("{refusal}; {why}")));
            }
            Err(why) => left_out.push(format!("{} gets no load: {why}", refusal.address())),
        }
    }
    *caps = caps.lowered_by(&request.ask_name().map_err(CliError::target)?);
    request.demand.within(caps).map_err(CliError::target)?;
    Ok(proven)
}

/// Queries all addresses in parallel, so that those that do not answer cost one timeout together.
fn ask(
    request: &ProofRequest,
    unproven: &[Refusal],
) -> Vec<Result<(ProvenAddress, ConsentProof), String>> {
    std::thread::scope(|scope| {
        let addresses = unproven.iter().take(ADDRESSES_ASKED_MAX).map(|refusal| refusal.address());
        let asked: Vec<_> =
            addresses.map(|address| scope.spawn(move || request.ask(address))).collect();
        let fault =
            |_| Err("a fault of throng: the thread that requested its proof panicked".to_owned());
        let answers = asked.into_iter().map(|asked| asked.join().unwrap_or_else(fault));
        let too_many =
            || Err(format!("at most {ADDRESSES_ASKED_MAX} addresses of a name are queried"));
        answers.chain(std::iter::repeat_with(too_many)).take(unproven.len()).collect()
    })
}

/// A refusal, with the reasons why no agent's agreement lifts it.
fn refused(refusal: Refusal, port: u16, agents: &Agents) -> anyhow::Error {
    let complaints: Vec<&str> = agents.complaints().collect();
    let elsewhere = agents.agreements().into_iter().filter_map(|agreement| {
        agreement.proof.validate(refusal.address(), port).err().map(|error| error.to_string())
    });
    let said: Vec<String> = complaints.into_iter().map(str::to_owned).chain(elsewhere).collect();
    if said.is_empty() { refusal.into() } else { anyhow!("{refusal}; {}", said.join("; ")) }
}

/// That a refused address gets no load, and why.
fn no_load(refusal: Refusal, port: u16, agents: &Agents) -> String {
    format!("{} gets no load: {}", refusal.address(), refused(refusal, port, agents))
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
            let check: ConsentCheck = Arc::new(move || request.demand.within(&request.ask_name()?));
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

fn resolve(host: &str, port: u16) -> Result<Vec<IpAddr>, CliError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port)
        .to_socket_addrs()
        .map_err(|error| CliError::target(format!("cannot resolve {host}: {error}")))?;
    let mut addresses = Vec::new();
    for address in found.map(|address| address.ip().to_canonical()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

impl Demand {
    /// Whether the load is within `caps`. A plan that is not is refused, never reduced.
    fn within(&self, caps: &Caps) -> Result<(), String> {
        let (expected, duration) = (&self.expected, self.duration);
        let mbit_per_s = expected.server_in_mbit_per_s + expected.server_out_mbit_per_s;
        let too_much = [
            caps.users
                .is_some_and(|max| expected.users > max)
                .then(|| format!("{} users", expected.users)),
            caps.joins_per_s
                .is_some_and(|max| f64::from(expected.joins_per_s) > max.max(1.0))
                .then(|| format!("{} joins per second", expected.joins_per_s)),
            caps.mbit_per_s
                .is_some_and(|max| mbit_per_s > max)
                .then(|| format!("{mbit_per_s:.0} Mbit/s")),
            caps.duration.is_some_and(|max| duration > max).then(|| units::duration(duration)),
        ];
        match too_much.into_iter().flatten().next() {
            Some(what) => Err(format!(
                "the owner's consent does not cover {what}; ask for less, or for another proof"
            )),
            None => Ok(()),
        }
    }
}

/// Reads the secret of a consent proof, given as itself, `env:NAME` or `file:PATH`.
fn consent_secret_of(text: &str) -> Result<ConsentSecret, CliError> {
    let digits = secrets::secret(text)?;
    digits
        .expose()
        .trim()
        .parse()
        .map_err(|error| CliError::usage(format!("--consent-secret: {error}")))
}

#[cfg(test)]
mod tests;
