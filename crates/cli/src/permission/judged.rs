//! The judgement on each address of a target, before anything is sent.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use throng_engine::TlsOptions;
use throng_observation::untrusted;
use throng_scenario::{
    AddressPolicy, Caps, ConsentProof, ConsentSecret, PermitReason, Plan, Refusal,
};

use super::Permission;
use super::demand::Demand;
use super::names::JudgedNames;
use super::others::{Other, origins, others};
use super::proof::{ProofRequest, ProvenAddress};
use super::refusal::{no_load, refused};
use crate::console::{CliError, Exit};
use crate::secrets;
use crate::watchers::{Agents, Agreement};

/// How many addresses of one name are queried for a proof. A name may point at many addresses of
/// other owners, which should receive no requests because of it.
const ADDRESSES_ASKED_MAX: usize = 8;

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
pub(super) fn judged(
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
pub(super) fn named_policy<'a>(
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
    let of_name = request.ask_name().map_err(|lost| CliError::target(lost.detail))?;
    *caps = caps.lowered_by(&of_name);
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

/// Reads the secret of a consent proof, given as itself, `env:NAME` or `file:PATH`.
fn consent_secret_of(text: &str) -> Result<ConsentSecret, CliError> {
    let digits = secrets::secret(text)?;
    digits
        .expose()
        .trim()
        .parse()
        .map_err(|error| CliError::usage(format!("--consent-secret: {error}")))
}
