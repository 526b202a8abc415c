//! ICE, DTLS and SDP of one peer connection. The only module that depends on str0m, whose API
//! changes about monthly.
//!
//! str0m would also handle the media: the RTP and RTCP that it wants to send is dropped here,
//! because throng's media path has the same keys and must be the only user of an SRTCP index.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use str0m::change::SdpPendingOffer;
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc, RtcConfig};
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Codec, IceState};

use super::checks::{Arrival, Checks, is_answer};
use super::crypto::{self, CryptoSetupError, KeySlot};
use super::peer_addresses::PeerAddresses;
use super::sdp::Description;
use super::srtp::SessionKeys;

mod candidates;
mod completed;
mod configuration;
mod negotiation;

use configuration::configuration;

pub use candidates::RemoteCandidate;
#[cfg(test)]
pub(super) use negotiation::LaterOffer;
pub use negotiation::{MediaToSend, Negotiated};
pub(super) use negotiation::{answer_to, apply_answer};

/// How long after connecting the unused local addresses are freed (RFC 8445 section 8.3): until
/// then the peer may still select them, afterwards each would cost useless checks.
const FREED_AFTER: Duration = Duration::from_secs(3);

/// Why a session could not be created or continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The shared cryptography is not available.
    #[error(transparent)]
    Crypto(#[from] CryptoSetupError),
    /// The peer's SDP is malformed, or negotiation with it failed.
    #[error("SDP: {0}")]
    Sdp(String),
    /// A candidate cannot be parsed or used.
    #[error("candidate: {0}")]
    Candidate(String),
    /// The transport broke: DTLS alert, wrong fingerprint.
    #[error("transport: {0}")]
    Transport(String),
    /// Offer and answer came out of order.
    #[error("{0}")]
    Order(&'static str),
}

/// A request or report of a session.
#[derive(Debug)]
pub enum SessionOutput {
    /// Send this datagram (STUN or DTLS) from `source`, a local candidate.
    Transmit {
        /// The local address.
        source: SocketAddr,
        /// The peer.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// The ICE state changed.
    Ice(IceState),
    /// ICE and DTLS are up; these are the media keys.
    Connected(SessionKeys),
    /// The peer closed DTLS.
    ClosedByPeer,
    /// Nothing to do before this moment.
    Timeout(Instant),
}

/// One peer connection.
pub struct Session {
    rtc: Box<Rtc>,
    /// It sends no media.
    only_receives: bool,
    keys: KeySlot,
    pending: Option<SdpPendingOffer>,
    /// The content of the pending offer.
    offered: Description,
    /// The names of its media sections, in their order.
    offered_mids: Vec<String>,
    /// Whether the keys were returned.
    keyed: bool,
    checks: Checks,
    peers: PeerAddresses,
    /// Local host candidates that are not freed.
    locals: Vec<SocketAddr>,
    /// A server-reflexive candidate, and its base.
    reflexive: Option<(Candidate, SocketAddr)>,
    /// The local candidate that DTLS or media last used.
    in_use: Option<SocketAddr>,
    /// When unused local candidates are freed.
    frees_at: Option<Instant>,
    /// The time of the last call.
    now: Instant,
}

impl Session {
    /// A session that only receives.
    ///
    /// # Errors
    /// [`SessionError::Crypto`] when this process has no working cryptography.
    pub fn viewer(now: Instant) -> Result<Self, SessionError> {
        Ok(Self { only_receives: true, ..Self::build(configuration(&Codec::ALL)?, now)? })
    }

    /// A server's side: ICE-lite, waits for an offer.
    ///
    /// # Errors
    /// As [`Self::viewer`].
    #[cfg(test)]
    pub fn server(now: Instant) -> Result<Self, SessionError> {
        Self::build(configuration(&Codec::ALL)?.set_ice_lite(true), now)
    }

    fn build(configuration: RtcConfig, now: Instant) -> Result<Self, SessionError> {
        let (rtc, keys) = crypto::with_key_slot(|| Box::new(configuration.build(now)));
        Ok(Self {
            rtc,
            only_receives: false,
            keys,
            pending: None,
            offered: Description::default(),
            offered_mids: Vec::new(),
            keyed: false,
            checks: Checks::default(),
            peers: PeerAddresses::default(),
            locals: Vec::new(),
            reflexive: None,
            in_use: None,
            frees_at: None,
            now,
        })
    }

    /// A session that sends, in the one codec of each kind that its media has.
    ///
    /// # Errors
    /// As [`Self::viewer`].
    pub fn publisher(now: Instant, codecs: &[Codec]) -> Result<Self, SessionError> {
        Self::build(configuration(codecs)?, now)
    }

    /// Whether media from `source` is the peer's. Other media must be dropped, as in browsers.
    #[must_use]
    pub fn is_from_peer(&self, source: SocketAddr) -> bool {
        self.peers.has(source)
    }

    /// Media arrived from `source`, which is not the peer's. Returns an explanation to report the
    /// first time.
    pub fn drop_unknown_source(&mut self, source: SocketAddr) -> Option<String> {
        self.peers.unknown_source(source).then(|| self.explain("dropped"))
    }

    /// `what` went wrong, with possible reasons: responses and media from other addresses than the
    /// peer's candidates, and candidates that are not allowed targets.
    #[must_use]
    pub fn explain(&self, what: &str) -> String {
        self.peers.explanation().map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"))
    }

    /// Handles a STUN or DTLS datagram. Ignored are others, malformed ones, responses from another
    /// address than was checked (RFC 8445 section 7.2.5.2.1), and DTLS from an address that is not
    /// the peer's.
    ///
    /// # Errors
    /// [`SessionError::Transport`] when DTLS cannot continue.
    pub fn datagram(
        &mut self,
        now: Instant,
        source: SocketAddr,
        local: SocketAddr,
        bytes: &[u8],
    ) -> Result<(), SessionError> {
        let is_for_us = match classify(bytes) {
            PacketKind::Stun => match self.checks.received(local, source, bytes) {
                Arrival::Taken => true,
                Arrival::Elsewhere { asked } => {
                    self.peers.answered_elsewhere(asked, source);
                    false
                }
                Arrival::Unasked => false,
            },
            PacketKind::Dtls if self.peers.has(source) => true,
            PacketKind::Dtls => {
                self.peers.unknown_source(source);
                false
            }
            _ => false,
        };
        if !is_for_us {
            return Ok(());
        }
        let Ok(received) = Receive::new(Protocol::Udp, source, local, bytes) else { return Ok(()) };
        self.now = now;
        self.rtc.handle_input(Input::Receive(now, received)).map_err(transport)
    }

    /// The deadline of [`SessionOutput::Timeout`] has passed.
    ///
    /// # Errors
    /// [`SessionError::Transport`].
    pub fn timeout(&mut self, now: Instant) -> Result<(), SessionError> {
        self.now = now;
        if self.frees_at.is_some_and(|at| now >= at) {
            self.free_the_others();
        }
        self.rtc.handle_input(Input::Timeout(now)).map_err(transport)
    }

    /// The next output; [`SessionOutput::Timeout`] when there is nothing to do now.
    ///
    /// # Errors
    /// [`SessionError::Transport`].
    pub fn poll_output(&mut self) -> Result<SessionOutput, SessionError> {
        loop {
            match self.rtc.poll_output().map_err(transport)? {
                Output::Timeout(at) => {
                    if let Some(((source, to), bytes)) = self.checks.repeat(self.now) {
                        return Ok(SessionOutput::Transmit { source, to, bytes });
                    }
                    // DTLS is complete once there are keys; the remaining deadlines are those of
                    // ICE.
                    let at = self.checks.due(at, self.keyed);
                    return Ok(SessionOutput::Timeout(
                        self.frees_at.map_or(at, |frees_at| at.min(frees_at)),
                    ));
                }
                Output::Transmit(transmit) => {
                    if matches!(classify(&transmit.contents), PacketKind::Stun | PacketKind::Dtls) {
                        self.checks.sent(
                            self.now,
                            (transmit.source, transmit.destination),
                            &transmit.contents,
                        );
                        if is_answer(&transmit.contents) {
                            // Only a check with the local ICE password is answered: its sender is
                            // the peer.
                            self.peers.add(transmit.destination);
                        }
                        if classify(&transmit.contents) == PacketKind::Dtls {
                            self.in_use = Some(transmit.source);
                        }
                        return Ok(SessionOutput::Transmit {
                            source: transmit.source,
                            to: transmit.destination,
                            bytes: transmit.contents.into(),
                        });
                    }
                }
                Output::Event(Event::IceConnectionStateChange(state)) => {
                    let state = ice_state(state);
                    self.checks.connected(state == IceState::Connected);
                    return Ok(SessionOutput::Ice(state));
                }
                Output::Event(Event::Connected) if !self.keyed => {
                    let keys = self.keys.take();
                    let keys = keys.ok_or_else(|| {
                        SessionError::Transport("DTLS chose no SRTP profile".into())
                    })?;
                    self.keyed = true;
                    self.frees_at = (self.locals.len() > 1).then(|| self.now + FREED_AFTER);
                    return Ok(SessionOutput::Connected(keys));
                }
                Output::Event(Event::Closed) => return Ok(SessionOutput::ClosedByPeer),
                Output::Event(_) => {}
            }
        }
    }

    /// Closes DTLS; poll until there is nothing more to send.
    pub fn close(&mut self) {
        // If DTLS refuses to close, the peer's consent checks end the session.
        let _ = self.rtc.close();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
pub(super) fn transport(error: str0m::RtcError) -> SessionError {
    SessionError::Transport(error.to_string())
}

fn ice_state(state: IceConnectionState) -> IceState {
    match state {
        IceConnectionState::New => IceState::New,
        IceConnectionState::Checking => IceState::Checking,
        IceConnectionState::Connected | IceConnectionState::Completed => IceState::Connected,
        IceConnectionState::Disconnected => IceState::Disconnected,
    }
}
