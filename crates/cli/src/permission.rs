//! Whom this run may send to, asked before anything is sent and again while it goes on.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use throng_engine::{Consent, ConsentCheck, TlsOptions};
use throng_observation::run::ClockError;
use throng_observation::units;
use throng_scenario::{
    AddressPolicy, Caps, ConsentProof, ConsentSecret, ExpectedLoad, PermitReason, Plan, Refusal, Secret,
    TokenSource,
};

use crate::exit::Exit;
use crate::watchers::{Agents, Agreement};
use crate::{CliError, say};

mod proof;
use proof::{ProofRequest, ProvenAddress};

/// A clock that serves both ends of a measurement is read at both: what is left is the reading itself.
const SAME_CLOCK_ERROR_US: u64 = 100;

/// How often a published proof is fetched again.
const PROOF_INTERVAL: Duration = Duration::from_secs(60);

/// How often it is asked whether an agent is still there.
const PRESENCE_INTERVAL: Duration = Duration::from_millis(500);

/// How many addresses of one name are asked for a proof: whoever has a name may point it at many that are not his, and
/// none of those should hear of it.
const ADDRESSES_ASKED_MAX: usize = 8;

/// The consent guard's verdict on a plan.
pub(crate) struct Permission {
    reach: Arc<AddressPolicy>,
    asked: Vec<ProvenAddress>,
    question: Option<ProofRequest>,
    agreements: Vec<Agreement>,
    caps: Caps,
    server: SocketAddr,
    is_own_host: bool,
}

/// How much a plan asks of its target.
#[derive(Clone)]
struct Demand {
    expected: ExpectedLoad,
    duration: Duration,
}

/// Judges every address of the target. An agent that agrees to load there opens its own address, within its limits and as
/// long as it runs, wherever that address is: also where no consent was needed, its owner can end the run by it. A public
/// address that gives out no proof is left alone, whatever another address of its name gives out.
pub(crate) fn permission(
    plan: &Plan,
    consent_secret: Option<&str>,
    tls: &TlsOptions,
    agents: &Agents,
) -> Result<Permission, CliError> {
    let (host, port) = plan.target.host_and_port();
    let addresses = resolve(&host, port)?;
    let own = throng_engine::preflight::own_addresses();
    let mut reach = AddressPolicy::new(own, plan.target.allow.iter().copied());
    let covers = |agreement: &Agreement| addresses.iter().any(|address| agreement.covers(*address, port));
    let agreements: Vec<Agreement> = agents.agreements().into_iter().filter(covers).collect();
    let demand = Demand { expected: plan.expected, duration: plan.duration };
    let (mut asked, mut question, mut caps) = (Vec::new(), None, plan.caps.clone());
    for agreement in &agreements {
        reach.prove_by_agent(&agreement.proof);
        caps = caps.lowered_by(&agreement.proof.caps);
        demand.within(&agreement.proof.caps).map_err(|why| CliError::new(Exit::Target, anyhow!(why)))?;
    }
    let mut unproven = Vec::new();
    for address in &addresses {
        match reach.permits(*address) {
            Ok(_) => {}
            Err(refusal @ Refusal::PublicNotProven(_)) => unproven.push(refusal),
            Err(refusal) => return Err(CliError::new(Exit::Target, refused(refusal, port, agents))),
        }
    }
    if let Some(refusal) = unproven.first() {
        let secret = consent_secret.ok_or_else(|| {
            let refused = refused(*refusal, port, agents);
            CliError::new(
                Exit::Target,
                anyhow!("{refused}; give the secret of that proof with --consent-secret"),
            )
        })?;
        let asking = ProofRequest::new(&plan.target, self::consent_secret(secret)?, tls.clone(), demand);
        for (refusal, answer) in unproven.iter().zip(ask(&asking, &unproven)) {
            match answer {
                Ok((again, proof)) => {
                    caps = caps.lowered_by(&proof.caps);
                    reach.prove(&proof, again.address);
                    asked.push(again);
                }
                Err(why) if unproven.len() == 1 && addresses.len() == 1 => {
                    return Err(CliError::new(Exit::Target, anyhow!("{refusal}; {why}")));
                }
                Err(why) => say(&format!("warning: {} is left alone: {why}", refusal.address())),
            }
        }
        caps = caps.lowered_by(&asking.ask_name().map_err(|why| CliError::new(Exit::Target, anyhow!(why)))?);
        asking.demand.within(&caps).map_err(|why| CliError::new(Exit::Target, anyhow!(why)))?;
        question = Some(asking);
    }
    let permits: Vec<(IpAddr, PermitReason)> =
        addresses.iter().filter_map(|address| Some((*address, reach.permits(*address).ok()?))).collect();
    let Some((first, _)) = permits.first() else {
        let none = unproven.first().map_or_else(|| "it has no address".to_owned(), ToString::to_string);
        return Err(CliError::new(Exit::Target, anyhow!("{host}: no address agreed to load: {none}")));
    };
    let is_own_host =
        permits.iter().all(|(_, permit)| matches!(permit, PermitReason::Loopback | PermitReason::OwnAddress));
    let server = SocketAddr::new(*first, port);
    Ok(Permission { reach: Arc::new(reach), asked, question, agreements, caps, server, is_own_host })
}

/// What an address said when it was asked.
type Answer = Result<(ProvenAddress, ConsentProof), String>;

/// Asks all addresses at once, so that those that do not answer cost one wait together.
fn ask(question: &ProofRequest, unproven: &[Refusal]) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let addresses = unproven.iter().take(ADDRESSES_ASKED_MAX).map(|refusal| refusal.address());
        let asked: Vec<_> = addresses.map(|address| scope.spawn(move || question.ask(address))).collect();
        let fault = |_| Err("a fault of this throng: its thread died".to_owned());
        let answers = asked.into_iter().map(|asked| asked.join().unwrap_or_else(fault));
        let too_many = || Err(format!("only {ADDRESSES_ASKED_MAX} addresses of a name are asked"));
        answers.chain(std::iter::repeat_with(too_many)).take(unproven.len()).collect()
    })
}

/// A refusal, with what the agents that might have agreed say.
fn refused(refusal: Refusal, port: u16, agents: &Agents) -> anyhow::Error {
    let complaints: Vec<&str> = agents.complaints().collect();
    let elsewhere = agents.agreements().into_iter().filter_map(|agreement| {
        agreement.proof.validate(refusal.address(), port).err().map(|error| error.to_string())
    });
    let said: Vec<String> = complaints.into_iter().map(str::to_owned).chain(elsewhere).collect();
    if said.is_empty() { refusal.into() } else { anyhow!("{refusal}; {}", said.join("; ")) }
}

impl Permission {
    /// The guard itself, for sockets and candidates.
    pub(crate) fn reach(&self) -> Arc<dyn Fn(IpAddr) -> bool + Send + Sync> {
        let reach = self.reach.clone();
        Arc::new(move |address| reach.permits(address).is_ok())
    }

    /// The same guard for what is asked beside the target: a refusal is a sentence.
    pub(crate) fn address_check(&self) -> Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync> {
        let reach = self.reach.clone();
        Arc::new(move |address| reach.permits(address).map(drop).map_err(|refusal| refusal.to_string()))
    }

    /// The target's signalling address, as resolved.
    pub(crate) fn server(&self) -> Option<SocketAddr> {
        Some(self.server)
    }

    /// What the engine asks again during the run: each address, the name, and the agents.
    pub(crate) fn consents(&self) -> Vec<Consent> {
        let published = self.asked.iter().cloned().map(|asked| {
            let (caps, demand) =
                (self.caps.clone(), self.question.as_ref().map(|asking| asking.demand.clone()));
            let check: ConsentCheck = Arc::new(move || {
                let (_, proof) = asked.clone().again()?;
                demand.iter().try_for_each(|demand| demand.within(&caps.lowered_by(&proof.caps)))
            });
            Consent { check, interval: PROOF_INTERVAL }
        });
        let named = self.question.iter().cloned().map(|question| {
            let check: ConsentCheck = Arc::new(move || question.demand.within(&question.ask_name()?));
            Consent { check, interval: PROOF_INTERVAL }
        });
        let present = self.agreements.iter().cloned().map(|agreement| {
            let check: ConsentCheck = Arc::new(move || agreement.check());
            Consent { check, interval: PRESENCE_INTERVAL }
        });
        published.chain(named).chain(present).collect()
    }

    /// The same guard for where a server may lead a browser, which asks as any page would: this machine only where the target
    /// is on it too, because its other services have not agreed to be asked from without.
    pub(crate) fn browser_address_check(&self) -> Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync> {
        let (reach, is_own_host) = (self.reach.clone(), self.is_own_host);
        Arc::new(move |address| match reach.permits(address) {
            Ok(PermitReason::Loopback | PermitReason::OwnAddress) if !is_own_host => {
                Err(format!("{address} is this machine, and the target is not on it"))
            }
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.to_string()),
        })
    }

    /// The rate that must not be exceeded, received and sent together.
    pub(crate) fn mbit_per_s_max(&self) -> Option<f64> {
        self.caps.mbit_per_s
    }

    /// How far absolute delays of this target's media may be off.
    pub(crate) fn clock_error(&self) -> ClockError {
        if self.is_own_host {
            ClockError {
                bound_us: Some(SAME_CLOCK_ERROR_US),
                basis: "the target is on this host: exact if the media's source is too".into(),
            }
        } else {
            ClockError { bound_us: None, basis: "the clock of the media's source is not known".into() }
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<Vec<IpAddr>, CliError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let each_once = |found: std::vec::IntoIter<SocketAddr>| {
        let mut addresses = Vec::new();
        for address in found.map(|address| address.ip().to_canonical()) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    };
    (bare, port)
        .to_socket_addrs()
        .map(each_once)
        .map_err(|error| CliError::new(Exit::Target, anyhow!("cannot resolve {host}: {error}")))
}

impl Demand {
    /// The owner's limits hold for the plan as it stands; it is not bent to fit.
    fn within(&self, caps: &Caps) -> Result<(), String> {
        let (expected, duration) = (&self.expected, self.duration);
        let mbit_per_s = expected.server_in_mbit_per_s + expected.server_out_mbit_per_s;
        let too_much = [
            caps.users.is_some_and(|max| expected.users > max).then(|| format!("{} users", expected.users)),
            caps.joins_per_s
                .is_some_and(|max| f64::from(expected.joins_per_s) > max.max(1.0))
                .then(|| format!("{} joins per second", expected.joins_per_s)),
            caps.mbit_per_s.is_some_and(|max| mbit_per_s > max).then(|| format!("{mbit_per_s:.0} Mbit/s")),
            caps.duration.is_some_and(|max| duration > max).then(|| units::duration(duration)),
        ];
        match too_much.into_iter().flatten().next() {
            Some(what) => {
                Err(format!("the owner's consent does not cover {what}; ask for less, or for another proof"))
            }
            None => Ok(()),
        }
    }
}

/// Reads the secret of a consent proof, given as itself, `env:NAME` or `file:PATH`.
fn consent_secret(text: &str) -> Result<ConsentSecret, CliError> {
    let digits = secret(text)?;
    digits.expose().trim().parse().map_err(|error| CliError::usage(format!("--consent-secret: {error}")))
}

/// Reads a token given as itself, `env:NAME` or `file:PATH`.
pub(crate) fn secret(text: &str) -> Result<Secret, CliError> {
    token(&TokenSource::parse(text))
}

/// Reads the token that a scenario names.
pub(crate) fn token(source: &TokenSource) -> Result<Secret, CliError> {
    match source {
        TokenSource::Inline(secret) => Ok(secret.clone()),
        TokenSource::Environment(name) => std::env::var(name)
            .map(Secret::new)
            .map_err(|_| CliError::usage(format!("the token is to come from ${name}, which is not set"))),
        TokenSource::File(path) => std::fs::read_to_string(path)
            .map(|text| Secret::new(text.trim()))
            .map_err(|error| CliError::usage(format!("the token is to come from {path}: {error}"))),
    }
}
