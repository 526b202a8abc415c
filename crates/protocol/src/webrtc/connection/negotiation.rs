//! From a description to the keys: offers and answers, candidates, and what was agreed that is received and sent.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Codec, FailureReason, Layer, Observation, RefusedDestination};

use super::{Connection, ConnectionOutput, EARLY_CANDIDATES_MAX, Peer, State, Step, Wanted};
use crate::participant::Open;
use crate::webrtc::candidates::{offered_addresses, socket_toward};
use crate::webrtc::local_addresses::LocalAddresses;
use crate::webrtc::receiver::{Receiver, ReceiverOptions, next_second};
use crate::webrtc::reflexive::{Gathered, Gathering};
use crate::webrtc::send_plans;
use crate::webrtc::sender::{Sender, SenderOptions, SentTrack};
use crate::webrtc::session::{Negotiated, RemoteCandidate, Session, SessionError};
use crate::webrtc::srtp::SessionKeys;

impl Connection {
    /// Makes an offer, once its socket is open. `signalling` is where the server was asked.
    pub(in crate::webrtc) fn offer(&mut self, now: Instant, signalling: Option<SocketAddr>) {
        self.open(now, Wanted::Offer, socket_toward(Vec::new(), signalling));
    }

    /// The peer offers, for the first time or again.
    pub(in crate::webrtc) fn remote_offer(
        &mut self,
        now: Instant,
        sdp: String,
        signalling: Option<SocketAddr>,
    ) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            let named = offered_addresses(&sdp, &self.shared.may_reach);
            return self.open(now, Wanted::AnswerTo(sdp), socket_toward(named, signalling));
        };
        match peer.session.accept_offer(&sdp) {
            Ok((answer, negotiated)) => {
                self.outputs.push_back(ConnectionOutput::Answer(answer));
                self.agreed(now, negotiated);
                self.drain(now);
            }
            Err(error) => self.fail_session(&error),
        }
    }

    /// The peer's answer to our offer.
    pub(in crate::webrtc) fn remote_answer(&mut self, now: Instant, sdp: &str) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else { return };
        match peer.session.accept_answer(sdp) {
            Ok(negotiated) => {
                self.agreed(now, negotiated);
                self.drain(now);
            }
            Err(error) => self.fail_session(&error),
        }
    }

    pub(in crate::webrtc) fn remote_candidate(&mut self, now: Instant, text: String) {
        if let State::Opening { candidates, .. } = &mut self.state {
            if candidates.len() < EARLY_CANDIDATES_MAX {
                candidates.push(text);
            }
            return;
        }
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else { return };
        match RemoteCandidate::parse(&text) {
            Err(error) => {
                let (place, detail) = ("candidate", error.to_string());
                self.observe(Observation::ProtocolAnomaly { place, detail });
            }
            Ok(candidate) if !candidate.is_udp() => {}
            Ok(candidate) if (self.shared.may_reach)(candidate.address().ip()) => {
                peer.session.add_remote_candidate(candidate);
                peer.check_at = Some(now);
            }
            Ok(candidate) => {
                peer.session.refuse_candidate(candidate.address());
                self.observe(Observation::Refused(RefusedDestination::IceCandidate, candidate.address()));
            }
        }
    }

    fn open(&mut self, now: Instant, wanted: Wanted, open: Open) {
        let by = now + self.shared.timeouts.signalling;
        self.state = State::Opening { by, wanted, candidates: Vec::new(), gathering: None };
        self.outputs.push_back(ConnectionOutput::Open(open));
    }

    /// Its socket is open, at these addresses.
    pub(in crate::webrtc) fn opened(&mut self, now: Instant, locals: Vec<SocketAddr>) {
        let State::Opening { gathering, .. } = &mut self.state else { return };
        if locals.is_empty() {
            return self.fail(FailureReason::Generator, "the media socket has no local address");
        }
        let refused = self.shared.stun.filter(|stun| !(self.shared.may_reach)(stun.ip()));
        let stun = self.shared.stun.filter(|_| refused.is_none());
        *gathering = Some(Box::new(Gathering::new(now, stun, locals)));
        if let Some(refused) = refused {
            self.observe(Observation::Refused(RefusedDestination::IceServer, refused));
        }
        self.gather(now);
    }

    /// Asks the STUN server what is due; does what was wanted once its answer is there, or does not come.
    pub(super) fn gather(&mut self, now: Instant) {
        let State::Opening { gathering: Some(gathering), .. } = &mut self.state else { return };
        if let Some(request) = gathering.poll_request(now) {
            self.outputs.push_back(ConnectionOutput::Send(request));
        }
        if !gathering.is_over(now) {
            return;
        }
        let State::Opening { by, wanted, candidates, gathering: Some(gathering) } =
            std::mem::replace(&mut self.state, State::Over)
        else {
            return;
        };
        match self.begin(now, gathering.into_gathered(), by, wanted) {
            Ok(()) => {
                candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
                self.drain(now);
            }
            Err(error) => self.fail_session(&error),
        }
    }

    fn begin(
        &mut self,
        now: Instant,
        Gathered { locals, reflexive }: Gathered,
        by: Instant,
        wanted: Wanted,
    ) -> Result<(), SessionError> {
        let codecs: Vec<_> =
            self.outgoing.iter().flat_map(|out| &out.ladders).map(|ladder| ladder.top().codec()).collect();
        let mut session =
            if self.sends_only { Session::publisher(now, &codecs)? } else { Session::viewer(now)? };
        for local in &locals {
            session.add_local_candidate(*local)?;
        }
        if let Some(Err(error)) =
            reflexive.map(|(mapped, base)| session.add_reflexive_candidate(mapped, base))
        {
            self.observe(Observation::ProtocolAnomaly { place: "stun", detail: error.to_string() });
        }
        let mut negotiated = None;
        let output = match wanted {
            Wanted::Offer => {
                let media: Vec<_> = self.outgoing.iter().map(|out| out.media.clone()).collect();
                let offer = if media.is_empty() {
                    session.create_offer()?
                } else {
                    session.create_sending_offer(&media)?
                };
                ConnectionOutput::Offer(offer)
            }
            Wanted::AnswerTo(offer) => {
                let (answer, agreed) = session.accept_offer(&offer)?;
                negotiated = Some(agreed);
                ConnectionOutput::Answer(answer)
            }
        };
        let peer = Peer {
            session,
            local_addresses: LocalAddresses::new(locals),
            negotiated: None,
            timeout_at: now,
            check_at: None,
            consent_lost_at: None,
        };
        self.state = State::Connecting { peer: Box::new(peer), by, step: Step::Answer };
        self.outputs.push_back(output);
        if let Some(negotiated) = negotiated {
            self.agreed(now, negotiated);
        }
        Ok(())
    }

    pub(super) fn agreed(&mut self, now: Instant, negotiated: Negotiated) {
        let candidates = negotiated.remote.candidates.clone();
        match &mut self.state {
            State::Connecting { peer, by, step } => {
                peer.negotiated = Some(negotiated);
                if *step == Step::Answer {
                    (*by, *step) = (now + self.shared.timeouts.ice, Step::Ice);
                    self.outputs.push_back(ConnectionOutput::Negotiated);
                }
            }
            State::Playing { receiver, .. } => receiver.renegotiated(&negotiated, now),
            _ => {}
        }
        candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
    }

    pub(super) fn play(&mut self, now: Instant, keys: &SessionKeys) {
        let State::Connecting { mut peer, .. } = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let negotiated = peer.negotiated.take().unwrap_or_default();
        let options = ReceiverOptions {
            clock: self.shared.clock,
            joined_at: self.shared.joined_at,
            first_track: self.first_track,
            seed: self.shared.seed,
            is_tapped: self.shared.is_tapped,
            is_told: true,
        };
        let sender = self
            .sends_only
            .then(|| Sender::new(keys, self.tracks(&negotiated), self.sender_options(&negotiated), now));
        match (Receiver::new(keys, &negotiated, options, now), sender.transpose()) {
            (Ok(receiver), Ok(sender)) => {
                let next_interval_at = next_second(self.shared.joined_at, now);
                let (mut receiver, sender) = (Box::new(receiver), sender.map(Box::new));
                receiver.pictures_are_off(self.wanted_layer == Some(Layer::Off), now);
                receiver.sent_in(&self.streams, &[], now);
                if sender.as_ref().is_some_and(|sender| sender.is_empty()) {
                    let detail = format!(
                        "the server takes none of what we would send: {}{}",
                        self.sent_codecs(),
                        self.codec_to_try()
                    );
                    return self.fail(FailureReason::CodecRefused, &detail);
                }
                let path = peer.session.direct_path();
                self.state = State::Playing { peer, receiver, sender, next_interval_at };
                self.outputs.push_back(ConnectionOutput::Connected(path));
            }
            (Err(error), _) | (_, Err(error)) => self.fail(FailureReason::Dtls, &error.to_string()),
        }
    }

    fn sender_options(&self, negotiated: &Negotiated) -> SenderOptions {
        SenderOptions {
            clock: self.shared.clock,
            seed: self.shared.seed,
            extension_ids: negotiated.answer.extension_ids(),
            adapts: self.outgoing.iter().all(|out| out.adapts),
            reduced_size_rtcp: negotiated.answer.sections.iter().any(|section| section.reduced_size_rtcp),
        }
    }

    /// The other codec of the test card, where the picture is in one of the two; the end of a sentence.
    fn codec_to_try(&self) -> &'static str {
        let codecs =
            self.outgoing.iter().filter_map(|out| out.ladders.first()).map(|ladder| ladder.top().codec());
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

    /// What is sent, section by section, layer by layer.
    fn tracks(&mut self, negotiated: &Negotiated) -> Vec<SentTrack> {
        let mut tracks = Vec::new();
        for (at, out) in self.outgoing.iter().enumerate() {
            // The sections of an offer are in the order of what is sent.
            let Some(codec) = out.ladders.first().map(|ladder| ladder.top().codec()) else { continue };
            let plans = send_plans::plans(negotiated, at, &out.media, codec);
            if plans.is_empty() {
                let to_try = self.codec_to_try();
                let detail = format!("the server does not take {}: it is not sent{to_try}", codec.name());
                self.outputs.push_back(ConnectionOutput::Observed(Observation::ProtocolAnomaly {
                    place: "codec_refused",
                    detail,
                }));
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
