//! A session's peer: ICE-lite, DTLS and SDP by str0m, which is used nowhere else in this crate.
//! Media does not pass str0m.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use str0m::change::SdpOffer;
use str0m::format::Codec as StrCodec;
use str0m::media::{Direction, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::rtp::{Extension as StrExtension, ExtensionMap};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};
use throng_media::rtp::{ExtensionIds, PacketKind, classify};
use throng_protocol::webrtc::crypto::{self, KeySlot, SharedCrypto};
use throng_protocol::webrtc::srtp::SessionKeys;

use crate::config::EmulatedServer;
use crate::no_rtx::without_rtx;
use crate::source::Codec;

/// Why an offer was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfferError {
    /// It is not valid SDP.
    #[error("the offer is not a valid session description: {0}")]
    Malformed(String),
    /// It has no media section that the stage can send or receive.
    #[error(
        "the offer has no media section with H.264, VP8 or Opus in the direction of this resource"
    )]
    NoMedia,
    /// It has a section without an accepted codec, and the emulated server accepts all sections or
    /// none.
    #[error("a media section of the offer has no codec that is taken")]
    Section,
}

/// Certificate and cryptography that all sessions of a stage share.
pub(crate) struct Identity(&'static SharedCrypto);

/// What was negotiated for one media section.
#[derive(Clone, Debug)]
pub(crate) struct NegotiatedMedia {
    pub(crate) codec: Codec,
    pub(crate) payload_type: u8,
    /// Payload type and SSRC of RTX, if negotiated.
    pub(crate) rtx: Option<(u8, u32)>,
    /// SSRC of the stream that we send; 0 if we receive.
    pub(crate) ssrc: u32,
    pub(crate) ids: ExtensionIds,
}

/// The direction of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The peer views.
    Viewer,
    /// The peer publishes.
    Publisher,
}

/// A session with a peer.
pub(crate) struct Peer {
    rtc: Rtc,
    local: SocketAddr,
    /// Where media is sent, once ICE has found it.
    remote: Option<SocketAddr>,
    deadline: Instant,
    keys: KeySlot,
    ended: bool,
}

/// An answered offer.
pub(crate) struct AnsweredOffer {
    pub(crate) peer: Peer,
    pub(crate) sdp: String,
    /// Our ICE ufrag, which maps the peer's first datagram to the session.
    pub(crate) local_ufrag: String,
    /// One for each media section in use, in order.
    pub(crate) agreed: Vec<NegotiatedMedia>,
}

impl Identity {
    pub(crate) fn new() -> Result<Self, String> {
        crypto::shared().map(Self).map_err(|error| error.to_string())
    }

    fn config(&self, emulates: EmulatedServer) -> RtcConfig {
        let mut extensions = ExtensionMap::empty();
        extensions.set(3, StrExtension::TransportSequenceNumber);
        extensions.set(4, StrExtension::RtpMid);
        extensions.set(7, StrExtension::AbsoluteCaptureTime);
        RtcConfig::new()
            .clear_codecs()
            .enable_opus(true, false)
            .enable_h264(true)
            .enable_vp8(!emulates.is_srs())
            .set_extension_map(extensions)
            .set_rtp_mode(true)
            .set_ice_lite(true)
            .set_dtls_cert(self.0.certificate.clone())
            .set_crypto_provider(Arc::clone(&self.0.provider))
    }

    /// Answers `offer` for a session whose datagrams come to `local`.
    pub(crate) fn answer(
        &self,
        offer: &str,
        role: Role,
        local: SocketAddr,
        now: Instant,
        emulates: EmulatedServer,
    ) -> Result<AnsweredOffer, OfferError> {
        let malformed = |error: &dyn std::fmt::Display| OfferError::Malformed(error.to_string());
        let offered = if emulates.is_srs() { without_rtx(offer) } else { offer.to_owned() };
        let offer = SdpOffer::from_sdp_string(&offered).map_err(|error| malformed(&error))?;
        let (mut rtc, keys) = crypto::with_key_slot(|| self.config(emulates).build(now));
        let candidate = Candidate::host(local, "udp").map_err(|error| malformed(&error))?;
        rtc.add_local_candidate(candidate);
        let answer = rtc.sdp_api().accept_offer(offer).map_err(|error| malformed(&error))?;
        let sdp = answer.to_sdp_string();
        let local_ufrag = rtc.direct_api().local_ice_credentials().ufrag;
        let mut peer = Peer { rtc, local, remote: None, deadline: now, keys, ended: false };
        // str0m reports media sections only after DTLS; their mids are in the answer.
        let mids =
            sdp.lines().filter_map(|line| line.trim_end().strip_prefix("a=mid:")).map(Mid::from);
        let mut agreed: Vec<NegotiatedMedia> =
            mids.filter_map(|mid| agreed_on(&mut peer.rtc, mid, role)).collect();
        if agreed.is_empty() {
            return Err(if emulates.is_srs() { OfferError::Section } else { OfferError::NoMedia });
        }
        if emulates.is_srs() {
            let sections = offered.lines().filter(|line| line.starts_with("m=")).count();
            if agreed.len() < sections {
                return Err(OfferError::Section);
            }
            agreed.iter_mut().for_each(|agreed| agreed.rtx = None);
        }
        Ok(AnsweredOffer { peer, sdp, local_ufrag, agreed })
    }
}

/// The peer's preferred codec among ours, and how to send or receive it.
fn agreed_on(rtc: &mut Rtc, mid: Mid, role: Role) -> Option<NegotiatedMedia> {
    let media = rtc.media(mid)?;
    let wanted = match role {
        Role::Viewer => {
            media.direction() == Direction::SendOnly || media.direction() == Direction::SendRecv
        }
        Role::Publisher => {
            media.direction() == Direction::RecvOnly || media.direction() == Direction::SendRecv
        }
    };
    let is_audio = media.kind() == MediaKind::Audio;
    let ids =
        ExtensionIds::from_pairs(media.remote_extmap().iter().map(|(id, ext)| (id, ext.as_uri())));
    let remote_pts = media.remote_pts().to_vec();
    let params = remote_pts.iter().find_map(|pt| {
        rtc.codec_config()
            .params()
            .iter()
            .find(|params| params.pt() == *pt && codec_of(params.spec()).is_some())
    })?;
    let (codec, payload_type, resend) = (codec_of(params.spec())?, *params.pt(), params.resend());
    let (ssrc, rtx_ssrc) = match (role, rtc.direct_api().stream_tx_by_mid(mid, None)) {
        (Role::Viewer, Some(stream)) => (*stream.ssrc(), stream.rtx().map(|ssrc| *ssrc)),
        _ => (0, None),
    };
    let sendable = role == Role::Publisher || ssrc != 0;
    let rtx = resend.map(|pt| *pt).zip(rtx_ssrc).filter(|_| !is_audio);
    (wanted && sendable).then_some(NegotiatedMedia { codec, payload_type, rtx, ssrc, ids })
}

fn codec_of(spec: str0m::format::CodecSpec) -> Option<Codec> {
    match spec.codec {
        // The test card's large units need FU-A, which only packetization-mode 1 has.
        StrCodec::H264 if spec.format.packetization_mode == Some(1) => Some(Codec::H264),
        StrCodec::Vp8 => Some(Codec::Vp8),
        StrCodec::Opus => Some(Codec::Opus),
        _ => None,
    }
}

impl Peer {
    /// Handles a STUN or DTLS datagram; calls `send` for the response.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        source: SocketAddr,
        bytes: &[u8],
        send: &mut impl FnMut(SocketAddr, &[u8]),
    ) {
        if let Ok(receive) = Receive::new(Protocol::Udp, source, self.local, bytes)
            && self.rtc.handle_input(Input::Receive(now, receive)).is_err()
        {
            self.ended = true;
        }
        self.poll(send);
    }

    /// Handles an expired timeout.
    pub(crate) fn tick(&mut self, now: Instant, send: &mut impl FnMut(SocketAddr, &[u8])) {
        if self.deadline <= now {
            if self.rtc.handle_input(Input::Timeout(now)).is_err() {
                self.ended = true;
            }
            self.poll(send);
        }
    }

    fn poll(&mut self, send: &mut impl FnMut(SocketAddr, &[u8])) {
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(deadline)) => {
                    self.deadline = deadline;
                    self.ended |= !self.rtc.is_alive();
                    return;
                }
                Ok(Output::Transmit(transmit)) => {
                    // We send RTCP ourselves: two senders would use an SRTCP index twice.
                    if !matches!(classify(&transmit.contents), PacketKind::Rtp | PacketKind::Rtcp) {
                        if classify(&transmit.contents) == PacketKind::Dtls {
                            self.remote = Some(transmit.destination);
                        }
                        send(transmit.destination, &transmit.contents);
                    }
                }
                // Lapsed ICE checks do not end a session: the session has its own limit of silence.
                Ok(Output::Event(Event::Closed)) | Err(_) => {
                    self.ended = true;
                    return;
                }
                Ok(Output::Event(_)) => {}
            }
        }
    }

    /// Adds a candidate of the peer, an `a=candidate` value; false if it cannot be parsed.
    pub(crate) fn add_candidate(&mut self, candidate: &str) -> bool {
        match Candidate::from_sdp_string(candidate) {
            Ok(candidate) => {
                self.rtc.add_remote_candidate(candidate);
                true
            }
            Err(_) => false,
        }
    }

    /// The SRTP keys, once DTLS is done.
    pub(crate) fn take_keys(&mut self) -> Option<SessionKeys> {
        self.keys.take()
    }

    /// The peer's media address.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// Whether the session is over: closed by the peer, or failed.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Whether a `candidate:…` line can be parsed.
pub(crate) fn is_candidate(candidate: &str) -> bool {
    Candidate::from_sdp_string(candidate).is_ok()
}
