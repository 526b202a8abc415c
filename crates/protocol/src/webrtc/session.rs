//! ICE, DTLS and SDP of one peer connection. The only module that depends on str0m, whose API
//! changes about monthly.
//!
//! str0m would also handle the media: the RTP and RTCP that it wants to send is dropped here,
//! because throng's media path has the same keys and must be the only user of an SRTCP index.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use str0m::change::{SdpAnswer, SdpOffer, SdpPendingOffer};
use str0m::media::{
    Direction as MediaDirection, MediaKind as StrMediaKind, Mid, Simulcast, SimulcastLayer,
};
use str0m::net::{Protocol, Receive};
use str0m::rtp::Extension;
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc, RtcConfig};
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Codec, IceState, MediaKind, MediaPath};

use super::checks::{Arrival, Checks, is_answer};
use super::completed::completed;
use super::crypto::{self, CryptoSetupError, KeySlot};
use super::peer_addresses::PeerAddresses;
use super::sdp::{Description, SDP_BYTES_MAX, to_negotiate};
use super::srtp::SessionKeys;

/// The interval of str0m's own statistics, which are not used. Longer than any run.
const NEVER: Duration = Duration::from_secs(365 * 86_400);

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

/// A section of media to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaToSend {
    /// Audio or video.
    pub kind: MediaKind,
    /// The RIDs of its simulcast layers, the most preferred first; empty without simulcast.
    pub rids: Vec<String>,
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

/// The result of negotiation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The content of the answer: payload types, feedback and extensions that may be used.
    pub answer: Description,
    /// The local description: the SSRCs that are sent from.
    pub local: Description,
    /// The peer's description: the SSRCs that it will send from, and its candidates.
    pub remote: Description,
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

    /// Makes an offer to send `media`, one section each.
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
            let simulcast =
                (!layers.is_empty()).then(|| Simulcast { send: layers, recv: Vec::new() });
            change.add_media(kind, MediaDirection::SendOnly, None, None, simulcast);
        }
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        let text = self.await_answer(&offer, pending);
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
        Ok(self.await_answer(&offer, pending))
    }

    /// Keeps what the answer to this offer is compared with; the offer's text.
    fn await_answer(&mut self, offer: &SdpOffer, pending: SdpPendingOffer) -> String {
        self.pending = Some(pending);
        let text = offer.to_sdp_string();
        let mids = text.lines().filter_map(|line| line.strip_prefix("a=mid:"));
        self.offered_mids = mids.map(str::to_owned).collect();
        text
    }

    /// Makes an offer as a server sends it during a session: one more video stream, or fresh ICE
    /// credentials.
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
        Ok(self.await_answer(&offer, pending))
    }

    /// Applies the peer's answer to the local offer. Its candidates are not used yet: the caller
    /// checks those in the result and adds them.
    ///
    /// # Errors
    /// [`SessionError::Sdp`] and, without an open offer, [`SessionError::Order`].
    pub fn accept_answer(&mut self, text: &str) -> Result<Negotiated, SessionError> {
        let pending = self
            .pending
            .take()
            .ok_or(SessionError::Order("an answer arrived without a pending offer"))?;
        self.checks.begin_anew();
        let text = completed(text, &std::mem::take(&mut self.offered_mids));
        apply_answer(&mut self.rtc, pending, &text)?;
        let remote = Description::parse(&text);
        self.keys.only_media(remote.has_only_media());
        self.free_senders(&remote);
        Ok(Negotiated { answer: remote.clone(), local: std::mem::take(&mut self.offered), remote })
    }

    /// Applies the peer's offer, first or later, and makes the local answer. As with
    /// [`Self::accept_answer`] the candidates in it are left to the caller.
    ///
    /// # Errors
    /// [`SessionError::Sdp`].
    pub fn accept_offer(&mut self, text: &str) -> Result<(String, Negotiated), SessionError> {
        self.pending = None;
        self.checks.begin_anew();
        let text = &completed(text, &[]);
        let answer = answer_to(&mut self.rtc, text)?.to_sdp_string();
        let local = Description::parse(&answer);
        let negotiated =
            Negotiated { answer: local.clone(), local, remote: Description::parse(text) };
        self.keys.only_media(negotiated.remote.has_only_media());
        self.free_senders(&negotiated.remote);
        Ok((answer, negotiated))
    }

    /// Frees what str0m prepares to send in each section, a cache of sent packets among it, where
    /// nothing is sent.
    fn free_senders(&mut self, described: &Description) {
        if !self.only_receives {
            return;
        }
        let mut api = self.rtc.direct_api();
        for section in &described.sections {
            let sender = api.stream_tx_by_mid(Mid::from(section.mid.as_str()), None);
            if let Some(ssrc) = sender.map(|sender| sender.ssrc()) {
                api.remove_stream_tx(ssrc);
            }
        }
    }

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
    fn free_the_others(&mut self) {
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

/// See [`Session::create_later_offer`].
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaterOffer {
    MoreVideo,
    IceRestart,
}

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

    pub(super) fn into_inner(self) -> Candidate {
        self.0
    }

    /// Whether it is UDP; TCP candidates are not used.
    #[must_use]
    pub fn is_udp(&self) -> bool {
        self.0.proto() == Protocol::Udp
    }
}

/// From the first connectivity check of a pair to the second: a server that reads the answer after
/// the first check arrives would otherwise cost 250 ms. libwebrtc checks a pair that has not
/// answered each 48 ms (`WEAK_PING_INTERVAL`).
const FIRST_RETRANSMISSION: Duration = Duration::from_millis(50);

/// Retransmissions of a check, at intervals that double to 3 s: as long as with the library's 9
/// from 250 ms.
const RETRANSMISSIONS: usize = 11;

fn configuration(codecs: &[Codec]) -> Result<RtcConfig, SessionError> {
    let has = |codec| codecs.contains(&codec);
    let shared = crypto::shared()?;
    let mut configuration = RtcConfig::new();
    configuration.set_initial_stun_rto(FIRST_RETRANSMISSION);
    configuration.set_max_stun_retransmits(RETRANSMISSIONS);
    Ok(configuration
        .set_crypto_provider(std::sync::Arc::clone(&shared.provider))
        .set_dtls_cert(shared.certificate.clone())
        .clear_codecs()
        .enable_opus(has(Codec::Opus), false)
        .enable_pcmu(has(Codec::Pcmu), false)
        .enable_pcma(has(Codec::Pcma), false)
        .enable_h264(has(Codec::H264))
        .enable_h265(has(Codec::H265))
        .enable_vp8(has(Codec::Vp8))
        .enable_vp9(has(Codec::Vp9))
        .enable_av1(has(Codec::Av1))
        .set_extension(9, Extension::AbsoluteCaptureTime)
        .set_rtp_mode(true)
        .set_rtcp_report_interval_audio(NEVER)
        .set_rtcp_report_interval_video(NEVER)
        .set_stats_interval(None))
}

/// Applies an offer of the peer; the answer to it.
pub(super) fn answer_to(rtc: &mut Rtc, offer: &str) -> Result<SdpAnswer, SessionError> {
    guarded(offer, |text| {
        let offer =
            SdpOffer::from_sdp_string(&left_to_us(text)).map_err(|error| error.to_string())?;
        rtc.sdp_api().accept_offer(offer).map_err(|error| error.to_string())
    })
}

/// Applies the peer's answer to the offer that is `pending`.
pub(super) fn apply_answer(
    rtc: &mut Rtc,
    pending: SdpPendingOffer,
    answer: &str,
) -> Result<(), SessionError> {
    guarded(answer, |text| {
        let answer = SdpAnswer::from_sdp_string(text).map_err(|error| error.to_string())?;
        rtc.sdp_api().accept_answer(pending, answer).map_err(|error| error.to_string())
    })
}

/// Runs an SDP through str0m. A panic there is a defect that must cost one participant, not the
/// run.
fn guarded<T>(
    text: &str,
    agree: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SessionError> {
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

/// Rewrites an offer that leaves the DTLS role open so that this side is the client. The answerer
/// should start DTLS (RFC 5763 section 5), as every browser does; str0m would wait for the server,
/// whose role would then differ from that with browsers.
fn left_to_us(offer: &str) -> String {
    offer.replace("a=setup:actpass", "a=setup:passive")
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
