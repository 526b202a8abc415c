//! From a description to the keys: offers and answers, candidates, and the agreed media in both
//! directions.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Codec, FailureReason, Layer, Observation, RefusedDestination};
use throng_scenario::IpProtocol;

use super::{
    Connection, ConnectionOutput, EARLY_CANDIDATES_MAX, Peer, Socket, State, Step, Via, Wanted,
};
use crate::participant::Output;
use crate::reports::next_second;
use crate::webrtc::candidates::{named_late, offered_addresses, socket_toward};
use crate::webrtc::local_addresses::LocalAddresses;
use crate::webrtc::receiver::{Receiver, ReceiverOptions};
use crate::webrtc::reflexive::{Gathered, Gathering};
use crate::webrtc::send_plans;
use crate::webrtc::sender::{Sender, SenderOptions, SentTrack};
use crate::webrtc::session::{Negotiated, RemoteCandidate, Session, SessionError};
use crate::webrtc::srtp::SessionKeys;

impl Connection {
    /// Makes an offer, once the socket is open.
    pub(in crate::webrtc) fn offer(&mut self, now: Instant) {
        if matches!(self.state, State::Idle) {
            return self.open(now, Wanted::Offer);
        }
        self.anomaly("signalling", "an offer was requested twice");
    }

    /// Handles an offer of the peer, the first or a later one.
    pub(in crate::webrtc) fn remote_offer(&mut self, now: Instant, sdp: String) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return match &mut self.state {
                State::Idle => self.open(now, Wanted::AnswerTo(sdp)),
                // It replaces the offer that waits for the socket.
                State::Opening { wanted, .. } => *wanted = Wanted::AnswerTo(sdp),
                _ => {}
            };
        };
        match peer.session.accept_offer(&sdp) {
            Ok((answer, negotiated)) => {
                self.transport.outputs.push_back(ConnectionOutput::Answer(answer));
                self.agreed(now, negotiated);
                self.drain(now);
            }
            Err(error) => self.fail_session(now, &error),
        }
    }

    /// Handles the peer's answer to the local offer.
    pub(in crate::webrtc) fn remote_answer(&mut self, now: Instant, sdp: &str) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return self.anomaly("sdp", "an answer arrived before the offer");
        };
        match peer.session.accept_answer(sdp) {
            Ok(negotiated) => {
                self.agreed(now, negotiated);
                self.drain(now);
            }
            Err(error) => self.fail_session(now, &error),
        }
    }

    pub(in crate::webrtc) fn remote_candidate(&mut self, now: Instant, text: String) {
        if matches!(self.state, State::Opening { .. }) {
            return self.early_candidate(text);
        }
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return;
        };
        match RemoteCandidate::parse(&text) {
            Err(error) => self.anomaly("candidate", error.to_string()),
            Ok(candidate) if !candidate.is_udp() => {}
            Ok(candidate)
                if (self.config.options.may_reach)(IpProtocol::Udp, candidate.address()) =>
            {
                let address = candidate.address();
                peer.session.add_remote_candidate(candidate);
                peer.check_at = Some(now);
                self.permit_peer(now, address);
            }
            Ok(candidate) => {
                peer.session.refuse_candidate(candidate.address());
                self.observe(Observation::Refused(
                    RefusedDestination::IceCandidate,
                    candidate.address(),
                ));
            }
        }
    }

    /// A candidate arrived before the session exists. If the socket is not requested yet, the
    /// candidate helps to select its interface.
    fn early_candidate(&mut self, text: String) {
        let State::Opening { candidates, wanted, .. } = &mut self.state else { return };
        let channel = Socket::Media.channel(self.config.number);
        let socket = self.transport.outputs.iter_mut().find_map(|output| match output {
            ConnectionOutput::Driver(Output::Open(to, open))
                if *to == channel && matches!(wanted, Wanted::AnswerTo(_)) =>
            {
                Some(open)
            }
            _ => None,
        });
        let candidate = RemoteCandidate::parse(&text).ok().filter(RemoteCandidate::is_udp);
        let address = candidate.map(|candidate| candidate.address());
        let address =
            address.filter(|address| (self.config.options.may_reach)(IpProtocol::Udp, *address));
        if let Some((open, address)) = socket.zip(address) {
            named_late(open, address);
        }
        if candidates.len() < EARLY_CANDIDATES_MAX {
            candidates.push(text);
        }
    }

    /// Opens the sockets that candidates are gathered on; continues with `wanted`.
    fn open(&mut self, now: Instant, wanted: Wanted) {
        self.open_turn();
        let by = now + self.config.options.timeouts.signalling;
        if self.config.options.relay_only {
            return self.begin_session(now, by, Gathered::default(), wanted, Vec::new());
        }
        let named = match &wanted {
            Wanted::Offer => Vec::new(),
            Wanted::AnswerTo(sdp) => offered_addresses(sdp, &self.config.options.may_reach),
        };
        self.transport.open(Socket::Media, socket_toward(named, self.server));
        self.state = State::Opening { by, wanted, candidates: Vec::new(), gathering: None };
    }

    /// The media socket is open, at these addresses.
    pub(super) fn media_opened(&mut self, now: Instant, locals: Vec<SocketAddr>) {
        if !matches!(self.state, State::Opening { .. }) {
            return;
        }
        if locals.is_empty() {
            return self.fail(
                now,
                FailureReason::Generator,
                "the media socket has no local address",
            );
        }
        let stun = self.stun_server();
        if let State::Opening { gathering, .. } = &mut self.state {
            *gathering = Some(Box::new(Gathering::new(now, stun, locals)));
        }
        self.gather(now);
    }

    /// The STUN server to use, if one is configured and allowed.
    fn stun_server(&mut self) -> Option<SocketAddr> {
        let options = &self.config.options;
        let server = options.stun.as_ref()?.address(self.server.map(|server| server.ip()))?;
        if (options.may_reach)(IpProtocol::Udp, server) {
            return Some(server);
        }
        self.observe(Observation::Refused(RefusedDestination::IceServer, server));
        None
    }

    /// Sends a due request to the STUN server; continues the negotiation after its response or
    /// timeout.
    pub(super) fn gather(&mut self, now: Instant) {
        let State::Opening { gathering: Some(gathering), .. } = &mut self.state else { return };
        if let Some(request) = gathering.poll_request(now) {
            self.transport.send_on(Socket::Media, request);
        }
        if !gathering.is_over(now) {
            return;
        }
        let State::Opening { by, wanted, candidates, gathering: Some(gathering) } =
            std::mem::replace(&mut self.state, State::Over)
        else {
            return;
        };
        self.begin_session(now, by, gathering.into_gathered(), wanted, candidates);
    }

    /// Creates the session on the gathered candidates, and its description; `candidates` of the
    /// peer arrived before.
    fn begin_session(
        &mut self,
        now: Instant,
        by: Instant,
        gathered: Gathered,
        wanted: Wanted,
        candidates: Vec<String>,
    ) {
        match self.describe(now, by, gathered, wanted) {
            Ok(()) => {
                candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
                self.no_more_candidates();
                self.drain(now);
            }
            Err(error) => {
                self.state = State::Idle;
                self.fail_session(now, &error);
            }
        }
    }

    fn describe(
        &mut self,
        now: Instant,
        by: Instant,
        Gathered { locals, reflexive }: Gathered,
        wanted: Wanted,
    ) -> Result<(), SessionError> {
        let codecs: Vec<_> = self
            .outgoing
            .iter()
            .flat_map(|out| &out.ladders)
            .map(|ladder| ladder.top().codec())
            .collect();
        let mut session = if self.sends_only() {
            Session::publisher(now, &codecs)?
        } else {
            Session::viewer(now)?
        };
        for local in &locals {
            session.add_local_candidate(*local)?;
        }
        if let Some(Err(error)) =
            reflexive.map(|(mapped, base)| session.add_reflexive_candidate(mapped, base))
        {
            self.anomaly("stun", error.to_string());
        }
        if let Some((relayed, from)) = self.transport.relay.allocated() {
            session.add_relayed_candidate(relayed, from)?;
        }
        let (output, negotiated) = match wanted {
            Wanted::Offer => {
                let media: Vec<_> = self.outgoing.iter().map(|out| out.media.clone()).collect();
                let offer = if media.is_empty() {
                    session.create_offer()?
                } else {
                    session.create_sending_offer(&media)?
                };
                (ConnectionOutput::Offer(offer), None)
            }
            Wanted::AnswerTo(offer) => {
                let (answer, negotiated) = session.accept_offer(&offer)?;
                (ConnectionOutput::Answer(answer), Some(negotiated))
            }
        };
        let peer = Peer {
            session,
            addresses: LocalAddresses::new(locals),
            negotiated: None,
            timeout_at: now,
            check_at: None,
            consent_lost_at: None,
        };
        self.state = State::Connecting { peer: Box::new(peer), by, step: Step::Answer };
        self.transport.outputs.push_back(output);
        if let Some(negotiated) = negotiated {
            self.agreed(now, negotiated);
        }
        Ok(())
    }

    /// Offer and answer are exchanged, for the first time or again.
    fn agreed(&mut self, now: Instant, negotiated: Negotiated) {
        let candidates = negotiated.remote.candidates.clone();
        match &mut self.state {
            State::Connecting { peer, by, step } => {
                peer.negotiated = Some(negotiated);
                if *step == Step::Answer {
                    (*by, *step) = (now + self.config.options.timeouts.ice, Step::Ice);
                    self.transport.outputs.push_back(ConnectionOutput::Negotiated);
                }
            }
            State::Playing { receiver, .. } => receiver.renegotiated(&negotiated, now),
            _ => {}
        }
        candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
    }

    pub(super) fn play(&mut self, now: Instant, keys: &SessionKeys) {
        let State::Connecting { mut peer, .. } = std::mem::replace(&mut self.state, State::Idle)
        else {
            return;
        };
        let negotiated = peer.negotiated.take().unwrap_or_default();
        let options = ReceiverOptions {
            clock: self.config.options.clock,
            joined_at: self.config.joined_at,
            first_track: self.config.first_track,
            seed: self.config.seed,
            is_tapped: self.config.options.is_tapped,
            is_told: self.config.in_room,
        };
        let sender = self.sends_only().then(|| {
            Sender::new(keys, self.tracks(&negotiated), self.sender_options(&negotiated), now)
        });
        match (Receiver::new(keys, &negotiated, options, now), sender.transpose()) {
            (Ok(receiver), Ok(sender)) => {
                let next_interval_at = next_second(self.config.joined_at, now);
                let (mut receiver, sender) = (Box::new(receiver), sender.map(Box::new));
                if self.config.in_room {
                    receiver.pictures_are_off(self.wanted_layer == Some(Layer::Off), now);
                    receiver.sent_in(self.senders.streams(), &[], now);
                }
                if sender.as_ref().is_some_and(|sender| sender.is_empty()) {
                    let detail = format!(
                        "the server accepts none of the offered media: {}{}",
                        self.sent_codecs(),
                        self.codec_to_try()
                    );
                    return self.fail(now, FailureReason::CodecRefused, &detail);
                }
                let direct = peer.session.direct_path();
                let path = match self.remote {
                    Some((Via::Relay, _)) => self.transport.relay.path().unwrap_or(direct),
                    _ => direct,
                };
                self.state =
                    State::Playing { peer, receiver, sender, since: now, next_interval_at };
                self.transport.outputs.push_back(ConnectionOutput::Connected(path));
            }
            (Err(error), _) | (_, Err(error)) => {
                self.fail(now, FailureReason::Dtls, &error.to_string());
            }
        }
    }

    fn sender_options(&self, negotiated: &Negotiated) -> SenderOptions {
        SenderOptions {
            clock: self.config.options.clock,
            seed: self.config.seed,
            adapts: self.outgoing.iter().all(|out| out.adapts),
            reduced_size_rtcp: negotiated
                .answer
                .sections
                .iter()
                .any(|section| section.reduced_size_rtcp),
        }
    }

    /// A hint to try the test card's other codec, where it uses one of the two; completes a
    /// sentence.
    fn codec_to_try(&self) -> &'static str {
        let codecs = self
            .outgoing
            .iter()
            .filter_map(|out| out.ladders.first())
            .map(|ladder| ladder.top().codec());
        let to_try = |codec| match codec {
            Codec::Vp8 => Some("; try publish.codec = \"h264\""),
            Codec::H264 => Some("; try publish.codec = \"vp8\""),
            _ => None,
        };
        codecs.into_iter().find_map(to_try).unwrap_or_default()
    }

    fn sent_codecs(&self) -> String {
        let ladders = self.outgoing.iter().filter_map(|out| out.ladders.first());
        ladders.map(|ladder| ladder.top().codec().name()).collect::<Vec<_>>().join(", ")
    }

    /// The tracks to send, by section and layer.
    fn tracks(&mut self, negotiated: &Negotiated) -> Vec<SentTrack> {
        let mut tracks = Vec::new();
        for (at, out) in self.outgoing.iter().enumerate() {
            // The sections of an offer are in the order of `outgoing`.
            let Some(codec) = out.ladders.first().map(|ladder| ladder.top().codec()) else {
                continue;
            };
            let plans = send_plans::plans(negotiated, at, &out.media, codec);
            if plans.is_empty() {
                let to_try = self.codec_to_try();
                let detail =
                    format!("the server does not accept {}: it is not sent{to_try}", codec.name());
                self.transport.outputs.push_back(ConnectionOutput::Observed(
                    Observation::ProtocolAnomaly { place: "codec_refused", detail: detail.into() },
                ));
            }
            tracks.extend(plans.into_iter().zip(&out.ladders).map(|(plan, ladder)| SentTrack {
                plan,
                ladder: ladder.clone(),
                offset: out.offset,
            }));
        }
        tracks
    }
}
