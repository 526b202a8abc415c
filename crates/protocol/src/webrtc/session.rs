//! ICE, DTLS and SDP of one peer connection. The only module that knows str0m, whose API changes about monthly.
//!
//! str0m also believes to be in charge of the media: what it would send as RTP or RTCP is dropped here, because our own
//! media path holds the same keys and must be the only one that uses an SRTCP index.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::media::{Direction as MediaDirection, MediaKind as StrMediaKind, Simulcast, SimulcastLayer};
use str0m::net::{Protocol, Receive};
use str0m::rtp::Extension;
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc, RtcConfig};
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Codec, IceState, MediaKind, MediaPath};

use super::checks::{Arrival, Checks, is_answer};
use super::crypto::{self, CryptoSetupError, KeySlot};
use super::peer_addresses::PeerAddresses;
use super::sdp::{Description, SDP_BYTES_MAX, to_negotiate};
use super::srtp::SessionKeys;

/// Between str0m's own reports, which nobody gets. Longer than any run.
const NEVER: Duration = Duration::from_secs(365 * 86_400);

/// How long after the connection came up the addresses that it does not use are given up (RFC 8445 section 8.3): until then
/// the peer may still choose among them, and from then on each would cost checks for nothing.
const FREED_AFTER: Duration = Duration::from_secs(3);

/// Why a session could not be made or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The shared cryptography is not there.
    #[error(transparent)]
    Crypto(#[from] CryptoSetupError),
    /// The peer's SDP is malformed or cannot be agreed with.
    #[error("SDP: {0}")]
    Sdp(String),
    /// A candidate cannot be read or used.
    #[error("candidate: {0}")]
    Candidate(String),
    /// The transport broke: DTLS alert, wrong fingerprint.
    #[error("transport: {0}")]
    Transport(String),
    /// Offer and answer came out of order.
    #[error("{0}")]
    Order(&'static str),
}

/// A section of media to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaToSend {
    /// Audio or video.
    pub kind: MediaKind,
    /// Names of its simulcast layers, the most preferred first; empty without simulcast.
    pub rids: Vec<String>,
}

/// What a session wants, or tells.
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

/// What both sides agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// What the answer says: payload types, feedback and extensions that may be used.
    pub answer: Description,
    /// What our side says: the SSRCs that we send from.
    pub local: Description,
    /// What the peer's side says: the SSRCs that it will send from, and its candidates.
    pub remote: Description,
}

/// One peer connection.
pub struct Session {
    rtc: Box<Rtc>,
    keys: KeySlot,
    pending: Option<SdpPendingOffer>,
    /// What the pending offer says.
    offered: Description,
    /// The keys were handed out.
    keyed: bool,
    checks: Checks,
    peers: PeerAddresses,
    /// Host candidates of ours that are not given up.
    locals: Vec<SocketAddr>,
    /// The server-reflexive candidate of one of them, and which that is.
    reflexive: Option<(Candidate, SocketAddr)>,
    /// The local candidate that DTLS or media was seen to use last.
    in_use: Option<SocketAddr>,
    /// When those that are not in use are given up.
    frees_at: Option<Instant>,
    /// The time as it was told last.
    now: Instant,
}

impl Session {
    /// A session that only receives.
    ///
    /// # Errors
    /// [`SessionError::Crypto`] when this process has no working cryptography.
    pub fn viewer(now: Instant) -> Result<Self, SessionError> {
        Self::build(configuration()?, now)
    }

    /// A server's end: ICE-lite, waits for an offer.
    ///
    /// # Errors
    /// As [`Self::viewer`].
    pub fn server(now: Instant) -> Result<Self, SessionError> {
        Self::build(configuration()?.set_ice_lite(true), now)
    }

    fn build(configuration: RtcConfig, now: Instant) -> Result<Self, SessionError> {
        let (rtc, keys) = crypto::with_key_slot(|| Box::new(configuration.build(now)));
        Ok(Self {
            rtc,
            keys,
            pending: None,
            offered: Description::default(),
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
        let has = |codec| codecs.contains(&codec);
        let configuration = configuration()?
            .clear_codecs()
            .enable_opus(has(Codec::Opus), false)
            .enable_pcmu(has(Codec::Pcmu), false)
            .enable_pcma(has(Codec::Pcma), false)
            .enable_h264(has(Codec::H264))
            .enable_h265(has(Codec::H265))
            .enable_vp8(has(Codec::Vp8))
            .enable_vp9(has(Codec::Vp9))
            .enable_av1(has(Codec::Av1));
        Self::build(configuration, now)
    }

    /// Makes an offer to send `media`, a section each.
    ///
    /// # Errors
    /// [`SessionError::Order`] when there is nothing to offer.
    pub fn create_sending_offer(&mut self, media: &[MediaToSend]) -> Result<String, SessionError> {
        let mut change = self.rtc.sdp_api();
        for media in media {
            let kind = match media.kind {
                MediaKind::Audio => StrMediaKind::Audio,
                MediaKind::Video => StrMediaKind::Video,
            };
            let layers: Vec<_> = media.rids.iter().map(|rid| SimulcastLayer::new(rid)).collect();
            let simulcast = (!layers.is_empty()).then(|| Simulcast { send: layers, recv: Vec::new() });
            change.add_media(kind, MediaDirection::SendOnly, None, None, simulcast);
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        self.pending = Some(pending);
        let text = offer.to_sdp_string();
        self.offered = Description::parse(&text);
        Ok(text)
    }

    /// Makes an offer to receive one audio and one video stream.
    ///
    /// # Errors
    /// [`SessionError::Order`] when there is nothing to offer.
    pub fn create_offer(&mut self) -> Result<String, SessionError> {
        let mut change = self.rtc.sdp_api();
        for kind in [StrMediaKind::Audio, StrMediaKind::Video] {
            change.add_media(kind, MediaDirection::RecvOnly, None, None, None);
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        self.pending = Some(pending);
        Ok(offer.to_sdp_string())
    }

    /// Offers what a server offers in the middle of a session: one more stream of video, or fresh ICE credentials.
    #[cfg(test)]
    pub(super) fn create_later_offer(&mut self, later: LaterOffer) -> Result<String, SessionError> {
        let mut change = self.rtc.sdp_api();
        match later {
            LaterOffer::MoreVideo => {
                change.add_media(StrMediaKind::Video, MediaDirection::SendOnly, None, None, None);
            }
            LaterOffer::IceRestart => drop(change.ice_restart(true)),
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        self.pending = Some(pending);
        Ok(offer.to_sdp_string())
    }

    /// Takes the peer's answer to our offer. Its candidates are not used: they are in the result, to be judged and
    /// then added.
    ///
    /// # Errors
    /// [`SessionError::Sdp`] and, without an open offer, [`SessionError::Order`].
    pub fn accept_answer(&mut self, text: &str) -> Result<Negotiated, SessionError> {
        let pending =
            self.pending.take().ok_or(SessionError::Order("an answer came without an offer of ours"))?;
        self.checks.begin_anew();
        let rtc = &mut self.rtc;
        guarded(text, |text| {
            let answer = SdpAnswer::from_sdp_string(text).map_err(|error| error.to_string())?;
            rtc.sdp_api().accept_answer(pending, answer).map_err(|error| error.to_string())
        })?;
        let remote = Description::parse(text);
        Ok(Negotiated { answer: remote.clone(), local: std::mem::take(&mut self.offered), remote })
    }

    /// Takes the peer's offer, first or later, and makes our answer. As with [`Self::accept_answer`] the candidates in
    /// it are left to the caller.
    ///
    /// # Errors
    /// [`SessionError::Sdp`].
    pub fn accept_offer(&mut self, text: &str) -> Result<(String, Negotiated), SessionError> {
        self.pending = None;
        self.checks.begin_anew();
        let rtc = &mut self.rtc;
        let answer = guarded(text, |text| {
            let offer = SdpOffer::from_sdp_string(&left_to_us(text)).map_err(|error| error.to_string())?;
            rtc.sdp_api().accept_offer(offer).map_err(|error| error.to_string())
        })?;
        let answer = answer.to_sdp_string();
        let local = Description::parse(&answer);
        let negotiated = Negotiated { answer: local.clone(), local, remote: Description::parse(text) };
        Ok((answer, negotiated))
    }

    /// Adds a host candidate of ours and returns its `candidate:…` line.
    ///
    /// # Errors
    /// [`SessionError::Candidate`] for an address that cannot be one (0.0.0.0, port 0).
    pub fn add_local_candidate(&mut self, address: SocketAddr) -> Result<String, SessionError> {
        let candidate =
            Candidate::host(address, "udp").map_err(|e| SessionError::Candidate(e.to_string()))?;
        let line = candidate.to_sdp_string();
        self.checks.begin_anew();
        self.rtc.add_local_candidate(candidate);
        self.locals.push(address);
        Ok(line)
    }

    /// Media comes to `local`, a candidate of ours.
    pub fn media_at(&mut self, local: SocketAddr) {
        self.in_use = Some(local);
    }

    /// Gives up the host candidates that are not in use.
    fn free_the_others(&mut self) {
        self.frees_at = None;
        let Some(in_use) = self.in_use.filter(|in_use| self.locals.contains(in_use)) else { return };
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

    /// Adds `mapped`, the address at which others see `base`, a host candidate of ours. What is sent from it comes out with
    /// `base` as its source.
    ///
    /// # Errors
    /// As [`Self::add_local_candidate`].
    pub fn add_reflexive_candidate(
        &mut self,
        mapped: SocketAddr,
        base: SocketAddr,
    ) -> Result<(), SessionError> {
        let candidate = Candidate::server_reflexive(mapped, base, "udp")
            .map_err(|e| SessionError::Candidate(e.to_string()))?;
        self.checks.begin_anew();
        self.rtc.add_local_candidate(candidate.clone());
        self.reflexive = Some((candidate, base));
        Ok(())
    }

    /// Adds `relayed`, an address that a relay gave us when asked from `local`, and returns its `candidate:…` line.
    /// What is to be sent from it comes out with `relayed` as its source.
    ///
    /// # Errors
    /// As [`Self::add_local_candidate`].
    pub fn add_relayed_candidate(
        &mut self,
        relayed: SocketAddr,
        local: SocketAddr,
    ) -> Result<String, SessionError> {
        let candidate =
            Candidate::relayed(relayed, local, "udp").map_err(|e| SessionError::Candidate(e.to_string()))?;
        let line = candidate.to_sdp_string();
        self.checks.begin_anew();
        self.rtc.add_local_candidate(candidate);
        Ok(line)
    }

    /// Adds a candidate of the peer.
    pub fn add_remote_candidate(&mut self, candidate: RemoteCandidate) {
        self.checks.begin_anew();
        self.peers.add(candidate.address());
        self.rtc.add_remote_candidate(candidate.0);
    }

    /// Whether media from `source` is the peer's. What is not is to be dropped, as browsers do.
    #[must_use]
    pub fn is_from_peer(&self, source: SocketAddr) -> bool {
        self.peers.has(source)
    }

    /// Media came from `source`, which is not the peer's. When it is the first: what is to be told of it.
    pub fn drop_unknown_source(&mut self, source: SocketAddr) -> Option<String> {
        self.peers.unknown_source(source).then(|| self.explain("dropped"))
    }

    /// The way of media that leaves directly.
    #[must_use]
    pub fn direct_path(&self) -> MediaPath {
        let is_translated = self.in_use.is_some_and(|local| self.checks.is_translated(local));
        if is_translated { MediaPath::Reflexive } else { MediaPath::Host }
    }

    /// A candidate of the peer that this run may not send to.
    pub fn refuse_candidate(&mut self, address: SocketAddr) {
        self.peers.refuse(address);
    }

    /// `what` went wrong, and what is known of why: answers and media that came from other addresses than the peer's
    /// candidates, and candidates that may not be sent to.
    #[must_use]
    pub fn explain(&self, what: &str) -> String {
        self.peers.explanation().map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"))
    }

    /// Takes in a STUN or DTLS datagram. Others, what cannot be read, answers from another address than the one that was
    /// asked (RFC 8445 section 7.2.5.2.1) and DTLS from one that is none of the peer's are ignored.
    ///
    /// # Errors
    /// [`SessionError::Transport`] when DTLS cannot go on.
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

    /// The deadline of [`SessionOutput::Timeout`] has come.
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

    /// The next thing the session wants; [`SessionOutput::Timeout`] when there is nothing now.
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
                    // DTLS is done when there are keys; what is left to wait for is ICE's.
                    let at = self.checks.due(at, self.keyed);
                    return Ok(SessionOutput::Timeout(self.frees_at.map_or(at, |frees_at| at.min(frees_at))));
                }
                Output::Transmit(transmit) => {
                    if matches!(classify(&transmit.contents), PacketKind::Stun | PacketKind::Dtls) {
                        self.checks.sent(
                            self.now,
                            (transmit.source, transmit.destination),
                            &transmit.contents,
                        );
                        if is_answer(&transmit.contents) {
                            // Only a check that shows our password is answered: whoever sent it is the peer.
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
                    let keys =
                        keys.ok_or_else(|| SessionError::Transport("DTLS agreed on no SRTP profile".into()))?;
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
        // A close that DTLS refuses leaves nothing to be done: the peer's consent checks will end it.
        let _ = self.rtc.close();
    }
}

/// See [`Session::create_later_offer`].
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaterOffer {
    MoreVideo,
    IceRestart,
}

/// A candidate of the peer that has been read.
#[derive(Clone, Debug)]
pub struct RemoteCandidate(Candidate);

impl RemoteCandidate {
    /// Reads `candidate:…`, with or without `a=` in front.
    ///
    /// # Errors
    /// [`SessionError::Candidate`] for what is no candidate or names a host instead of an address (mDNS).
    pub fn parse(text: &str) -> Result<Self, SessionError> {
        let text = text.trim();
        let text = text.strip_prefix("a=").unwrap_or(text);
        catch_unwind(|| Candidate::from_sdp_string(text))
            .map_err(|_| SessionError::Candidate("reader failed".into()))?
            .map(Self)
            .map_err(|error| SessionError::Candidate(error.to_string()))
    }

    /// Where it points.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.addr()
    }

    /// Whether it is UDP; TCP candidates are not used.
    #[must_use]
    pub fn is_udp(&self) -> bool {
        self.0.proto() == Protocol::Udp
    }
}

fn configuration() -> Result<RtcConfig, SessionError> {
    let shared = crypto::shared()?;
    Ok(RtcConfig::new()
        .set_crypto_provider(std::sync::Arc::clone(&shared.provider))
        .set_dtls_cert(shared.certificate.clone())
        .clear_codecs()
        .enable_opus(true, false)
        .enable_pcmu(true, false)
        .enable_pcma(true, false)
        .enable_h264(true)
        .enable_h265(true)
        .enable_vp8(true)
        .enable_vp9(true)
        .enable_av1(true)
        .set_extension(9, Extension::AbsoluteCaptureTime)
        .set_rtp_mode(true)
        .set_rtcp_report_interval_audio(NEVER)
        .set_rtcp_report_interval_video(NEVER)
        .set_stats_interval(None))
}

/// Runs an SDP through str0m. A panic in there is a defect that must cost one viewer and not the run.
fn guarded<T>(text: &str, agree: impl FnOnce(&str) -> Result<T, String>) -> Result<T, SessionError> {
    if text.len() > SDP_BYTES_MAX {
        return Err(SessionError::Sdp(format!(
            "{} bytes are more than the {SDP_BYTES_MAX} allowed",
            text.len()
        )));
    }
    let text = to_negotiate(text);
    catch_unwind(AssertUnwindSafe(|| agree(&text)))
        .unwrap_or_else(|_| Err("the SDP library failed on it".into()))
        .map_err(SessionError::Sdp)
}

/// Rewrites an offer that leaves the DTLS role to us into one that makes us the client. The answerer is to begin DTLS (RFC 5763
/// section 5), as every browser does; str0m would wait for the server, which would then have another role than with browsers.
fn left_to_us(offer: &str) -> String {
    offer.replace("a=setup:actpass", "a=setup:passive")
}

#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
fn transport(error: str0m::RtcError) -> SessionError {
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
