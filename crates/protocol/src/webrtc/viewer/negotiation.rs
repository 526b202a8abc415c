//! Offer, answer and candidates: from what signalling brings to a session.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{FailureReason, Observation, Phase, RefusedDestination};

use super::{EARLY_CANDIDATES_MAX, MEDIA, Peer, State, Step, Viewer, Wanted};
use crate::participant::{Opening, Output};
use crate::signalling::SignalInput;
use crate::webrtc::candidates::{named_late, offered_addresses, socket_toward};
use crate::webrtc::local_addresses::LocalAddresses;
use crate::webrtc::reflexive::{Gathered, Gathering};
use crate::webrtc::session::{Negotiated, RemoteCandidate, Session, SessionError};

impl Viewer {
    pub(super) fn open_media(&mut self, now: Instant, wanted: Wanted) {
        let State::Joining { by } = self.state else {
            return self.anomaly("signalling", "an offer was wanted twice");
        };
        if self.options.relay_only {
            return self.open_session(now, by, Gathered::default(), wanted, Vec::new());
        }
        let named = match &wanted {
            Wanted::Offer => Vec::new(),
            Wanted::AnswerTo(sdp) => offered_addresses(sdp, &self.options.may_reach),
        };
        let open = socket_toward(named, self.server.or(self.options.toward));
        self.state = State::Opening { by, wanted, candidates: Vec::new(), gathering: None };
        self.outputs.push_back(Output::Open(MEDIA, open));
    }

    pub(super) fn remote_offer(&mut self, now: Instant, sdp: String) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return self.open_media(now, Wanted::AnswerTo(sdp));
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
            return self.anomaly("sdp", "an answer came before our offer");
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
                    (*by, *why) = (now + self.options.timeouts.ice, Step::Ice);
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
        if let State::Opening { candidates, wanted, .. } = &mut self.state {
            let socket = self.outputs.iter_mut().find_map(|output| match output {
                Output::Open(MEDIA, open) if matches!(wanted, Wanted::AnswerTo(_)) => Some(open),
                _ => None,
            });
            let candidate = RemoteCandidate::parse(&text).ok().filter(RemoteCandidate::is_udp);
            let address = candidate.map(|candidate| candidate.address());
            if let Some((open, address)) =
                socket.zip(address.filter(|address| (self.options.may_reach)(address.ip())))
            {
                named_late(open, address);
            }
            if candidates.len() < EARLY_CANDIDATES_MAX {
                candidates.push(text);
            }
            return;
        }
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else { return };
        let candidate = match RemoteCandidate::parse(&text) {
            Ok(candidate) => candidate,
            Err(error) => return self.anomaly("candidate", error.to_string()),
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
            peer.session.refuse_candidate(address);
            self.observe(Observation::Refused(RefusedDestination::IceCandidate, address));
        }
    }

    pub(super) fn media_opened(&mut self, now: Instant, opening: &Opening) {
        let State::Opening { by, .. } = self.state else { return };
        let locals = opening.addresses();
        if locals.is_empty() {
            self.state = State::Joining { by };
            return self.fail(now, FailureReason::Generator, "the media socket has no local address");
        }
        let stun = self.stun_server();
        if let State::Opening { gathering, .. } = &mut self.state {
            *gathering = Some(Box::new(Gathering::new(now, stun, locals)));
        }
        self.gather(now);
    }

    /// The STUN server to ask, where one is named and may be asked.
    fn stun_server(&mut self) -> Option<SocketAddr> {
        let host = self.server.or(self.options.toward).map(|place| place.ip());
        let server = self.options.stun.as_ref()?.address(host)?;
        if (self.options.may_reach)(server.ip()) {
            return Some(server);
        }
        self.observe(Observation::Refused(RefusedDestination::IceServer, server));
        None
    }

    /// Asks the STUN server what is due; opens the session once its answer is there, or does not come.
    pub(super) fn gather(&mut self, now: Instant) {
        let State::Opening { gathering: Some(gathering), .. } = &mut self.state else { return };
        if let Some(request) = gathering.poll_request(now) {
            self.outputs.push_back(Output::Send(MEDIA, request));
        }
        if !gathering.is_over(now) {
            return;
        }
        let State::Opening { by, wanted, candidates, gathering: Some(gathering) } =
            std::mem::replace(&mut self.state, State::Over)
        else {
            return;
        };
        self.open_session(now, by, gathering.into_gathered(), wanted, candidates);
    }

    /// Does what signalling wanted, with a session on what was gathered; `candidates` of the peer came before it.
    fn open_session(
        &mut self,
        now: Instant,
        by: Instant,
        gathered: Gathered,
        wanted: Wanted,
        candidates: Vec<String>,
    ) {
        match self.begin_session(now, gathered, by, wanted) {
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
        Gathered { locals, reflexive }: Gathered,
        by: Instant,
        wanted: Wanted,
    ) -> Result<SignalInput<'static>, SessionError> {
        let mut session = Session::viewer(now)?;
        for local in &locals {
            session.add_local_candidate(*local)?;
        }
        if let Some(Err(error)) =
            reflexive.map(|(mapped, base)| session.add_reflexive_candidate(mapped, base))
        {
            self.anomaly("stun", error.to_string());
        }
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
            local_addresses: LocalAddresses::new(locals),
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
