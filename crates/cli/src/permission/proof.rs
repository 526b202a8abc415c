//! Fetches the consent proof of a public target's owner from each of the target's addresses.
//!
//! A name proves nothing about the addresses that it points to, because its owner can point it at
//! any address. So each address itself is asked; a proof in DNS can only lower the limits.

use std::fmt;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use throng_engine::consent::{ConsentError, fetch_file, fetch_txt};
use throng_engine::{ConsentEnd, ConsentLost, TlsOptions};
use throng_observation::untrusted;
use throng_scenario::consent::{DNS_LABEL, WELL_KNOWN_PATH};
use throng_scenario::{Caps, ConsentProof, ConsentSecret, Target};

use super::demand::Demand;

/// What a proof must cover, and how it is fetched.
#[derive(Clone)]
pub(super) struct ProofRequest {
    host: String,
    port: u16,
    is_secure: bool,
    secret: ConsentSecret,
    tls: TlsOptions,
    pub(super) demand: Demand,
}

/// A public address with a proof, and the location of the proof, so that it can be fetched again.
#[derive(Clone)]
pub(super) struct ProvenAddress {
    request: ProofRequest,
    pub(super) address: IpAddr,
    places: Vec<ProofLocation>,
}

/// Where on an address a proof may be published: `http(s)://AUTHORITY/.well-known/throng-consent`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProofLocation {
    secure: bool,
    authority: String,
}

impl fmt::Display for ProofLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secure, authority } = self;
        write!(f, "http{}://{authority}{WELL_KNOWN_PATH}", if *secure { "s" } else { "" })
    }
}

impl ProofLocation {
    /// The locations in the order in which they are tried: the signalling port, then the host's web
    /// server, because a WebSocket server publishes no files.
    fn all(host: &str, port: u16, is_secure: bool) -> Vec<Self> {
        let host = bare(host);
        let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let mut places = vec![Self { secure: is_secure, authority: format!("{name}:{port}") }];
        for (secure, usual) in [(true, 443), (false, 80)] {
            if (is_secure, port) != (secure, usual) {
                places.push(Self { secure, authority: name.clone() });
            }
        }
        places
    }
}

impl ProofRequest {
    pub(super) fn new(
        target: &Target,
        secret: ConsentSecret,
        tls: TlsOptions,
        demand: Demand,
    ) -> Self {
        let (host, port) = target.host_and_port();
        let is_secure = matches!(target.url().scheme(), "https" | "wss");
        Self { host, port, is_secure, secret, tls, demand }
    }

    /// Fetches the proof from the first location of `address` that has a valid one. Only that
    /// location counts from then on: removing the file there withdraws the consent.
    pub(super) fn ask(&self, address: IpAddr) -> Result<(ProvenAddress, ConsentProof), String> {
        let places = ProofLocation::all(&self.host, self.port, self.is_secure);
        ProvenAddress { request: self.clone(), address, places }.fetch_proof()
    }

    /// The limits that DNS sets for the name: none where it has no TXT record, else those of the
    /// first record that is a valid proof. A name all of whose records are proofs for others does
    /// not agree.
    pub(super) fn ask_name(&self) -> Result<Caps, ConsentLost> {
        if bare(&self.host).parse::<IpAddr>().is_ok() {
            return Ok(Caps::NONE);
        }
        let name = format!("{DNS_LABEL}.{}", self.host);
        // No answer counts as no record: the addresses themselves have agreed.
        let records = fetch_txt(&name).unwrap_or_default();
        if records.is_empty() {
            return Ok(Caps::NONE);
        }
        self.valid(&format!("TXT {name}"), records).map(|proof| proof.caps)
    }

    /// Whether the owner of the name still agrees to the load.
    pub(super) fn name_still_agrees(&self) -> Result<(), ConsentLost> {
        self.demand.within(&self.ask_name()?).map_err(changed)
    }

    /// The first of `texts` that is a valid proof for this run.
    fn valid(&self, place: &str, texts: Vec<String>) -> Result<ConsentProof, ConsentLost> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut lost = ConsentLost::new(ConsentEnd::Withdrawn, format!("{place}: nothing there"));
        for text in texts {
            let proof = ConsentProof::parse(&text).and_then(|proof| {
                proof.validate(&self.secret, &self.host, self.port, now).map(|()| proof)
            });
            match proof {
                Ok(proof) => return Ok(proof),
                Err(error) => lost = changed(format!("{place}: {error}")),
            }
        }
        Err(lost)
    }
}

impl ProvenAddress {
    /// Fetches the proof before the run. Nothing was given yet that could be lost, so that an error
    /// is what to tell the user.
    pub(super) fn fetch_proof(self) -> Result<(Self, ConsentProof), String> {
        let address = self.address;
        self.first_proof().map_err(|failures| {
            let tried: Vec<String> = failures.into_iter().map(|lost| lost.detail).collect();
            let tried = tried.join("; ");
            format!("{address} publishes no consent proof for this run; tried {tried}")
        })
    }

    /// The proof of the first location that has one, which is its only one from then on; or what
    /// each said.
    fn first_proof(mut self) -> Result<(Self, ConsentProof), Vec<ConsentLost>> {
        let mut failures = Vec::new();
        for place in std::mem::take(&mut self.places) {
            match self.proof_at(&place) {
                Ok(proof) => {
                    self.places = vec![place];
                    return Ok((self, proof));
                }
                Err(lost) => failures.push(lost),
            }
        }
        Err(failures)
    }

    /// Whether the address still agrees to the load within `caps`, and to all ports of the proof
    /// that was `given` before the run, which has them until its end.
    pub(super) fn still_gives(&self, given: &ConsentProof, caps: &Caps) -> Result<(), ConsentLost> {
        let address = self.address;
        let (_, proof) = self.clone().first_proof().map_err(|failures| {
            // There is one: of the location where the proof was found.
            let first = failures.into_iter().next();
            let how = first.as_ref().map_or(ConsentEnd::Unanswered, |lost| lost.how);
            let said = first.map_or_else(|| "it was not asked".to_owned(), |lost| lost.detail);
            ConsentLost::new(how, format!("{address}: {said}"))
        })?;
        if !proof.opens_all_of(given) {
            return Err(changed(format!("{address} has withdrawn ports from its consent proof")));
        }
        self.request.demand.within(&caps.lowered_by(&proof.caps)).map_err(changed)
    }

    fn proof_at(&self, place: &ProofLocation) -> Result<ConsentProof, ConsentLost> {
        let ProofRequest { tls, .. } = &self.request;
        let lost = |error: ConsentError| {
            ConsentLost::new(error.end(), untrusted::line(&error.to_string()))
        };
        let text = fetch_file(place.secure, &place.authority, self.address, tls).map_err(lost)?;
        self.request.valid(&place.to_string(), vec![text])
    }
}

fn changed(detail: String) -> ConsentLost {
    ConsentLost::new(ConsentEnd::Changed, detail)
}

/// A host without the brackets of IPv6.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
