//! Candidates of both sides, and which of the local ones are kept.

use std::net::SocketAddr;
use std::panic::catch_unwind;

use str0m::Candidate;
use str0m::net::Protocol;
use throng_observation::MediaPath;

use super::{Session, SessionError};

/// A parsed candidate of the peer.
#[derive(Clone, Debug)]
pub struct RemoteCandidate(Candidate);

impl RemoteCandidate {
    /// Parses `candidate:…`, with or without `a=` in front.
    ///
    /// # Errors
    /// [`SessionError::Candidate`] for a malformed candidate or one with a host name instead of an
    /// address (mDNS).
    pub fn parse(text: &str) -> Result<Self, SessionError> {
        let text = text.trim();
        let text = text.strip_prefix("a=").unwrap_or(text);
        catch_unwind(|| Candidate::from_sdp_string(text))
            .map_err(|_| SessionError::Candidate("reader failed".into()))?
            .map(Self)
            .map_err(|error| SessionError::Candidate(error.to_string()))
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.addr()
    }

    pub(in crate::webrtc) fn into_inner(self) -> Candidate {
        self.0
    }

    /// Whether it is UDP; TCP candidates are not used.
    #[must_use]
    pub fn is_udp(&self) -> bool {
        self.0.proto() == Protocol::Udp
    }
}

impl Session {
    /// Adds a local host candidate and returns its `candidate:…` line.
    ///
    /// # Errors
    /// [`SessionError::Candidate`] for an address that cannot be one (0.0.0.0, port 0).
    pub fn add_local_candidate(&mut self, address: SocketAddr) -> Result<String, SessionError> {
        let candidate = self.add_candidate(Candidate::host(address, "udp"))?;
        self.locals.push(address);
        Ok(candidate.to_sdp_string())
    }

    fn add_candidate(
        &mut self,
        candidate: Result<Candidate, impl std::fmt::Display>,
    ) -> Result<Candidate, SessionError> {
        let candidate = candidate.map_err(|error| SessionError::Candidate(error.to_string()))?;
        self.checks.begin_anew();
        self.rtc.add_local_candidate(candidate.clone());
        Ok(candidate)
    }

    /// Media arrives at `local`, a local candidate.
    pub fn media_at(&mut self, local: SocketAddr) {
        self.in_use = Some(local);
    }

    /// Frees the host candidates that are not in use.
    pub(super) fn free_the_others(&mut self) {
        self.frees_at = None;
        let Some(in_use) = self.in_use.filter(|in_use| self.locals.contains(in_use)) else {
            return;
        };
        for local in std::mem::replace(&mut self.locals, vec![in_use]) {
            if local != in_use
                && let Ok(candidate) = Candidate::host(local, "udp")
            {
                self.rtc.direct_api().invalidate_candidate(&candidate);
            }
        }
        if let Some((candidate, _)) = self.reflexive.take_if(|(_, base)| *base != in_use) {
            self.rtc.direct_api().invalidate_candidate(&candidate);
        }
        self.checks.keep_to(in_use);
    }

    /// Adds `mapped`, the server-reflexive address of `base`, a local host candidate. Packets sent
    /// from it have `base` as their source.
    ///
    /// # Errors
    /// As [`Self::add_local_candidate`].
    pub fn add_reflexive_candidate(
        &mut self,
        mapped: SocketAddr,
        base: SocketAddr,
    ) -> Result<(), SessionError> {
        let candidate = self.add_candidate(Candidate::server_reflexive(mapped, base, "udp"))?;
        self.reflexive = Some((candidate, base));
        Ok(())
    }

    /// Adds `relayed`, an address that a relay allocated for `local`, and returns its `candidate:…`
    /// line. Packets to be sent from it have `relayed` as their source.
    ///
    /// # Errors
    /// As [`Self::add_local_candidate`].
    pub fn add_relayed_candidate(
        &mut self,
        relayed: SocketAddr,
        local: SocketAddr,
    ) -> Result<String, SessionError> {
        Ok(self.add_candidate(Candidate::relayed(relayed, local, "udp"))?.to_sdp_string())
    }

    /// Adds a candidate of the peer.
    pub fn add_remote_candidate(&mut self, candidate: RemoteCandidate) {
        self.checks.begin_anew();
        self.peers.add(candidate.address());
        self.rtc.add_remote_candidate(candidate.0);
    }

    /// The path of media that is not relayed.
    #[must_use]
    pub fn direct_path(&self) -> MediaPath {
        let is_translated = self.in_use.is_some_and(|local| self.checks.is_translated(local));
        if is_translated { MediaPath::Reflexive } else { MediaPath::Host }
    }

    /// A candidate of the peer that is not an allowed target of this run.
    pub fn refuse_candidate(&mut self, address: SocketAddr) {
        self.peers.refuse(address);
    }
}
