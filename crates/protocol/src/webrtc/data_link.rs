//! A connection with another viewer that has one data channel (RFC 8831) and no media, as browsers
//! open it for peer-to-peer delivery: offer and answer carry all candidates, since trackers pass
//! each only once.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use str0m::change::SdpPendingOffer;
use str0m::channel::ChannelId;
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, IceConnectionState, Input, Output, Rtc, RtcConfig};
use throng_scenario::IpProtocol;

use super::crypto;
use super::options::MayReach;
use super::sdp::Description;
use super::session::{RemoteCandidate, SessionError, answer_to, apply_answer, transport};

/// What is written may wait for acknowledgements, bytes: pieces of segments up to the first, as the
/// engine's (`bufferedAmountLowThreshold`), so that what is said besides does not wait behind a
/// segment and always has room.
const BUFFERED_PIECES_MAX: usize = 64 * 1024;
const BUFFERED_MAX: usize = 1 << 20;
/// `a=max-message-size` of Chromium.
const MESSAGE_LEN_MAX: u32 = 262_144;
/// Candidates of a peer that are used.
const CANDIDATES_MAX: usize = 16;

/// The connection.
pub(crate) struct DataLink {
    rtc: Box<Rtc>,
    pending: Option<SdpPendingOffer>,
    channel: Option<ChannelId>,
    may_reach: MayReach,
    /// An address of the peer that is not an allowed target.
    refused: Option<SocketAddr>,
}

/// What the connection does, or wants.
#[derive(Debug)]
pub(crate) enum LinkOutput {
    /// Send this from a local address to the peer.
    Transmit { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
    /// The channel is open.
    Open,
    /// A message came.
    Message(Vec<u8>),
    /// What was written has left, so that there is room for more.
    Drained,
    /// The connection is over.
    Closed,
    /// Nothing until then.
    Timeout(Instant),
}

impl DataLink {
    /// Offers a connection; its offer.
    pub(crate) fn offer(
        now: Instant,
        locals: &[SocketAddr],
        may_reach: MayReach,
    ) -> Result<(Self, String), SessionError> {
        let mut link = Self::new(now, locals, may_reach)?;
        let mut change = link.rtc.sdp_api();
        // The name means nothing; simple-peer draws one too.
        change.add_channel("throng".into());
        let (offer, pending) = change.apply().ok_or(SessionError::Order("nothing to offer"))?;
        link.pending = Some(pending);
        Ok((link, offer.to_sdp_string()))
    }

    /// Accepts the `offer` of a peer; the answer.
    pub(crate) fn answer(
        now: Instant,
        locals: &[SocketAddr],
        may_reach: MayReach,
        offer: &str,
    ) -> Result<(Self, String), SessionError> {
        let mut link = Self::new(now, locals, may_reach)?;
        let answer = answer_to(&mut link.rtc, offer)?;
        link.add_candidates(offer);
        Ok((link, answer.to_sdp_string()))
    }

    /// The peer has answered.
    pub(crate) fn accept(&mut self, answer: &str) -> Result<(), SessionError> {
        let pending =
            self.pending.take().ok_or(SessionError::Order("an answer without an open offer"))?;
        apply_answer(&mut self.rtc, pending, answer)?;
        self.add_candidates(answer);
        Ok(())
    }

    fn new(now: Instant, locals: &[SocketAddr], may_reach: MayReach) -> Result<Self, SessionError> {
        let shared = crypto::shared()?;
        let configuration = RtcConfig::new()
            .set_crypto_provider(std::sync::Arc::clone(&shared.provider))
            .set_dtls_cert(shared.certificate.clone())
            .clear_codecs()
            .set_sctp_max_buffered_amount(BUFFERED_MAX)
            .set_sctp_max_message_size(MESSAGE_LEN_MAX)
            .set_stats_interval(None);
        let mut rtc = Box::new(configuration.build(now));
        for local in locals {
            let candidate = Candidate::host(*local, "udp");
            rtc.add_local_candidate(
                candidate.map_err(|error| SessionError::Candidate(error.to_string()))?,
            );
        }
        Ok(Self { rtc, pending: None, channel: None, may_reach, refused: None })
    }

    /// Uses the candidates of a description that are allowed targets. Those whose addresses
    /// browsers hide (mDNS) are found by the checks that come from there.
    fn add_candidates(&mut self, sdp: &str) {
        let candidates = Description::candidates_of(sdp);
        let usable = candidates.iter().filter_map(|text| RemoteCandidate::parse(text).ok());
        for candidate in usable.filter(RemoteCandidate::is_udp).take(CANDIDATES_MAX) {
            if (self.may_reach)(IpProtocol::Udp, candidate.address()) {
                self.rtc.add_remote_candidate(candidate.into_inner());
            } else {
                self.refused.get_or_insert(candidate.address());
            }
        }
    }

    /// An address of the peer that is not an allowed target.
    pub(crate) fn refused(&self) -> Option<SocketAddr> {
        self.refused
    }

    /// Takes a datagram if it is of this connection.
    pub(crate) fn datagram(
        &mut self,
        now: Instant,
        (source, local): (SocketAddr, SocketAddr),
        bytes: &[u8],
    ) -> Result<bool, SessionError> {
        let Ok(received) = Receive::new(Protocol::Udp, source, local, bytes) else {
            return Ok(false);
        };
        let input = Input::Receive(now, received);
        if !self.rtc.accepts(&input) {
            return Ok(false);
        }
        if !(self.may_reach)(IpProtocol::Udp, source) {
            self.refused.get_or_insert(source);
            return Ok(true);
        }
        self.rtc.handle_input(input).map_err(transport)?;
        Ok(true)
    }

    /// The time of [`LinkOutput::Timeout`] has come.
    pub(crate) fn timeout(&mut self, now: Instant) -> Result<(), SessionError> {
        self.rtc.handle_input(Input::Timeout(now)).map_err(transport)
    }

    /// What it does next.
    pub(crate) fn poll(&mut self) -> Result<LinkOutput, SessionError> {
        loop {
            return Ok(match self.rtc.poll_output().map_err(transport)? {
                Output::Timeout(at) => LinkOutput::Timeout(at),
                Output::Transmit(transmit) => LinkOutput::Transmit {
                    from: transmit.source,
                    to: transmit.destination,
                    bytes: transmit.contents.into(),
                },
                Output::Event(Event::ChannelOpen(id, _)) if self.channel.is_none() => {
                    self.channel = Some(id);
                    if let Some(mut channel) = self.rtc.channel(id) {
                        channel.set_buffered_amount_low_threshold(BUFFERED_PIECES_MAX / 2);
                    }
                    LinkOutput::Open
                }
                Output::Event(Event::ChannelData(data)) if self.channel == Some(data.id) => {
                    LinkOutput::Message(data.data)
                }
                Output::Event(Event::ChannelBufferedAmountLow(_)) => LinkOutput::Drained,
                Output::Event(Event::ChannelClose(id)) if self.channel == Some(id) => {
                    LinkOutput::Closed
                }
                Output::Event(
                    Event::Closed
                    | Event::IceConnectionStateChange(IceConnectionState::Disconnected),
                ) => LinkOutput::Closed,
                Output::Event(_) => continue,
            });
        }
    }

    /// Sends a message; `false` if there is no room for it before what was sent has arrived.
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<bool, SessionError> {
        let Some(mut channel) = self.channel.and_then(|id| self.rtc.channel(id)) else {
            return Ok(false);
        };
        channel.write(true, message).map_err(transport)
    }

    /// Whether a piece of a segment may be sent now: little of what was sent waits.
    pub(crate) fn takes_pieces(&mut self) -> bool {
        let channel = self.channel.and_then(|id| self.rtc.channel(id));
        channel.is_some_and(|mut channel| channel.buffered_amount() < BUFFERED_PIECES_MAX)
    }

    /// Closes it; what [`Self::poll`] has still to transmit says so to the peer.
    pub(crate) fn close(&mut self) {
        // A connection that refuses to close ends when its checks are not answered any more.
        let _ = self.rtc.close();
    }
}

/// The local address of a datagram: that of the socket which received it, by the address that the
/// driver names.
pub(crate) fn local_of(locals: &[SocketAddr], local: Option<IpAddr>) -> Option<SocketAddr> {
    let named = |ip: IpAddr| locals.iter().find(|address| address.ip() == ip);
    local.and_then(named).or_else(|| locals.first()).copied()
}
