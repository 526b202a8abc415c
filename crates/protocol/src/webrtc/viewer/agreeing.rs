//! Offer, answer and candidates: from what signalling brings to a session.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{FailureReason, Observation, Phase, Refused};

use super::{EARLY_CANDIDATES_MAX, MEDIA, Peer, State, Step, Viewer, Wanted};
use crate::participant::{Open, Opening, Output};
use crate::signalling::SignalInput;
use crate::webrtc::candidates::{first_of, offered_addresses};
use crate::webrtc::session::{Negotiated, RemoteCandidate, Session, SessionError};

impl Viewer {
    pub(super) fn open_media(&mut self, wanted: Wanted) {
        let State::Joining { by } = self.state else {
            return self.odd("signalling", "an offer was wanted twice");
        };
        let named = match &wanted {
            Wanted::Offer => Vec::new(),
            Wanted::AnswerTo(sdp) => offered_addresses(sdp, &self.options.may_reach),
        };
        let toward = first_of(named, self.server.or(self.options.toward));
        self.state = State::Opening { by, wanted, candidates: Vec::new() };
        self.outputs.push_back(Output::Open(MEDIA, Open::Datagrams { toward }));
    }

    pub(super) fn remote_offer(&mut self, now: Instant, sdp: String) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return self.open_media(Wanted::AnswerTo(sdp));
        };
        match peer.session.accept_offer(&sdp) {
            Ok((answer, negotiated)) => {
                self.agreed(now, negotiated);
                self.tell(now, SignalInput::Answer(answer));
                self.drain_session(now);
            }
            Err(error) => self.fail_session(now, &error),
        }
    }

    pub(super) fn remote_answer(&mut self, now: Instant, sdp: &str) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return self.odd("sdp", "an answer came before our offer");
        };
        match peer.session.accept_answer(sdp) {
            Ok(negotiated) => {
                self.agreed(now, negotiated);
                self.drain_session(now);
            }
            Err(error) => self.fail_session(now, &error),
        }
    }

    /// Offer and answer are exchanged, for the first time or again.
    pub(super) fn agreed(&mut self, now: Instant, negotiated: Negotiated) {
        let candidates = negotiated.remote.candidates.clone();
        match &mut self.state {
            State::Connecting { peer, by, why } => {
                peer.negotiated = Some(negotiated);
                if *why == Step::Answer {
                    (*by, *why) = (now + self.options.patience.ice, Step::Ice);
                    self.observe(Observation::Reached(Phase::Negotiated, now));
                }
            }
            State::Playing { peer, receiver, .. } => {
                receiver.renegotiated(&negotiated, now);
                peer.negotiated = Some(negotiated);
            }
            _ => {}
        }
        candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
    }

    pub(super) fn remote_candidate(&mut self, now: Instant, text: String) {
        if let State::Opening { candidates, .. } = &mut self.state {
            if candidates.len() < EARLY_CANDIDATES_MAX {
                candidates.push(text);
            }
            return;
        }
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else { return };
        let candidate = match RemoteCandidate::parse(&text) {
            Ok(candidate) => candidate,
            Err(error) => return self.odd("candidate", error.to_string()),
        };
        let address = candidate.address();
        if !candidate.is_udp() {
            return;
        }
        if (self.options.may_reach)(address.ip()) {
            peer.session.add_remote_candidate(candidate);
            peer.has_new_candidate = true;
            self.relay_toward(now, address);
        } else {
            self.observe(Observation::Refused(Refused::IceCandidate, address));
        }
    }

    pub(super) fn media_opened(&mut self, now: Instant, opening: &Opening) {
        let State::Opening { by, wanted, candidates } = std::mem::replace(&mut self.state, State::Over)
        else {
            return;
        };
        let Some(local) = opening.local else {
            self.state = State::Joining { by };
            return self.fail(now, FailureReason::Generator, "the media socket has no local address");
        };
        match self.begin_session(now, local, by, wanted) {
            Ok(input) => {
                candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
                self.tell(now, input);
                self.no_more_candidates(now);
                self.drain_session(now);
            }
            Err(error) => {
                self.state = State::Joining { by };
                self.fail_session(now, &error);
            }
        }
    }

    pub(super) fn begin_session(
        &mut self,
        now: Instant,
        local: SocketAddr,
        by: Instant,
        wanted: Wanted,
    ) -> Result<SignalInput<'static>, SessionError> {
        let mut session = Session::viewer(now)?;
        session.add_local_candidate(local)?;
        if let Some((relayed, from)) = self.relaying.allocated() {
            session.add_relayed_candidate(relayed, from)?;
        }
        let (input, negotiated) = match wanted {
            Wanted::Offer => (SignalInput::Offer(session.create_offer()?), None),
            Wanted::AnswerTo(offer) => {
                let (answer, negotiated) = session.accept_offer(&offer)?;
                (SignalInput::Answer(answer), Some(negotiated))
            }
        };
        let peer = Peer {
            session,
            local,
            negotiated: None,
            timeout_at: now,
            has_new_candidate: false,
            consent_lost_at: None,
        };
        self.state = State::Connecting { peer: Box::new(peer), by, why: Step::Answer };
        if let Some(negotiated) = negotiated {
            self.agreed(now, negotiated);
        }
        Ok(input)
    }
}
