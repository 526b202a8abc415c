//! The viewer: a participant that lets its signalling adapter agree with the server, connects, plays and leaves.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Failure, FailureReason, IceState, Observation, Outcome, Phase, Refused};

use self::relaying::Relaying;
use super::receiver::{Receiver, ReceiverOptions};
use super::session::{Negotiated, RemoteCandidate, Session, SessionError, SessionOutput};
use super::srtp::SessionKeys;
use crate::participant::{Channel, ChannelError, Input, Open, Opening, Output, Participant, Transmit, Why};
use crate::signalling::{SIGNALLING, SignalInput, SignalOutput, Signalling};

mod relaying;

/// The channel of ICE, DTLS and media.
const MEDIA: Channel = Channel(1);
/// The channel to a relay that the server announced.
const RELAY: Channel = Channel(2);
/// Candidates that come before there is a session to take them; more are not kept.
const EARLY_CANDIDATES_MAX: usize = 64;
/// TEST-NET-1 (RFC 5737): nothing is sent there, it only names the default route.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Whether a place that the server names may be sent to.
pub type MayReach = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// How a viewer plays.
#[derive(Clone)]
pub struct ViewerOptions {
    /// The consent guard's judgement of candidates.
    pub may_reach: MayReach,
    /// One reading of both clocks, the same for all participants of a run.
    pub clock: WallClock,
    /// An address of the server, when known beforehand; it chooses the interface to receive on.
    pub toward: Option<SocketAddr>,
    /// Seed of what is random in a viewer (report intervals, SSRC).
    pub seed: u64,
    /// How long each step may take.
    pub patience: Patience,
}

/// How long a viewer waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the start until offer and answer are exchanged.
    pub signalling: Duration,
    /// From there until a candidate pair works.
    pub ice: Duration,
    /// From there until the media keys are known.
    pub dtls: Duration,
    /// From there until the first media packet.
    pub first_media: Duration,
    /// Between media packets.
    pub silence: Duration,
    /// How long lost consent (RFC 7675) may take to come back.
    pub consent: Duration,
    /// For saying goodbye.
    pub goodbye: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let ten = Duration::from_secs(10);
        Self {
            signalling: ten,
            ice: ten,
            dtls: ten,
            first_media: ten,
            silence: ten,
            consent: Duration::from_secs(5),
            goodbye: Duration::from_secs(2),
        }
    }
}

/// A WebRTC viewer.
pub struct Viewer {
    options: ViewerOptions,
    signalling: Box<dyn Signalling>,
    state: State,
    started_at: Option<Instant>,
    /// The signalling server's address, once connected.
    server: Option<SocketAddr>,
    /// The first usable relay that the server announced.
    relaying: Relaying,
    /// Signalling knows that no more candidates of ours come.
    candidates_done: bool,
    outputs: VecDeque<Output>,
}

enum State {
    Idle,
    /// Signalling goes on; nothing is agreed.
    Joining {
        by: Instant,
    },
    /// The media channel is being opened, to do what signalling wanted.
    Opening {
        by: Instant,
        wanted: Wanted,
        candidates: Vec<String>,
    },
    /// Offer and answer, ICE and DTLS.
    Connecting {
        peer: Box<Peer>,
        by: Instant,
        why: Step,
    },
    /// Media keys are known.
    Playing {
        peer: Box<Peer>,
        receiver: Box<Receiver>,
        first_media_by: Instant,
    },
    /// Goodbye is being said.
    Leaving {
        by: Instant,
        outcome: Outcome,
    },
    Over,
}

enum Wanted {
    Offer,
    AnswerTo(String),
}

/// Which step a connecting viewer waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Answer,
    Ice,
    Dtls,
}

impl Step {
    fn why(self) -> Why {
        match self {
            Step::Answer => "answer of the server overdue",
            Step::Ice => "ICE overdue",
            Step::Dtls => "DTLS overdue",
        }
    }
}

/// How datagrams travel between us and the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Via {
    /// Over a socket of our own.
    Socket,
    /// Through the relay.
    Relay,
}

/// The transport of one peer connection.
struct Peer {
    session: Session,
    local: SocketAddr,
    /// Where our control packets go: from where authentic packets come.
    remote: Option<(Via, SocketAddr)>,
    negotiated: Option<Negotiated>,
    timeout_at: Instant,
    consent_lost_at: Option<Instant>,
}

impl Viewer {
    /// A viewer that joins by `signalling`.
    #[must_use]
    pub fn new(signalling: Box<dyn Signalling>, options: ViewerOptions) -> Self {
        Self {
            options,
            signalling,
            state: State::Idle,
            started_at: None,
            server: None,
            relaying: Relaying::default(),
            candidates_done: false,
            outputs: VecDeque::new(),
        }
    }

    fn observe(&mut self, observation: Observation) {
        self.outputs.push_back(Output::Observed(observation));
    }

    fn odd(&mut self, place: &'static str, detail: impl Into<String>) {
        self.observe(Observation::Odd { place, detail: detail.into() });
    }

    fn tell(&mut self, now: Instant, input: SignalInput<'_>) {
        self.signalling.handle(now, input);
        self.drain_signalling(now);
    }

    fn drain_signalling(&mut self, now: Instant) {
        while let Some(output) = self.signalling.poll_output() {
            match output {
                SignalOutput::Open(open) => self.outputs.push_back(Output::Open(SIGNALLING, open)),
                SignalOutput::Signal(message) => self.outputs.push_back(Output::Signal(SIGNALLING, message)),
                SignalOutput::Close => self.outputs.push_back(Output::Close(SIGNALLING)),
                SignalOutput::Fetch(id, request) => self.outputs.push_back(Output::Fetch(id, request)),
                SignalOutput::Reached(opening) => self.reached(&opening),
                SignalOutput::WantOffer => self.open_media(Wanted::Offer),
                SignalOutput::RemoteOffer(sdp) => self.remote_offer(now, sdp),
                SignalOutput::RemoteAnswer(sdp) => self.remote_answer(now, &sdp),
                SignalOutput::RemoteCandidate(candidate) => self.remote_candidate(now, candidate),
                SignalOutput::Relay(relay) => self.relay_announced(relay),
                SignalOutput::Refused(what, place) => self.observe(Observation::Refused(what, place)),
                SignalOutput::Odd(detail) => self.odd("signalling", detail),
                SignalOutput::Failed(failure) => {
                    self.stop_media(now);
                    if matches!(self.state, State::Leaving { .. }) {
                        self.over();
                    } else {
                        self.end(Outcome::Failed(failure));
                    }
                }
                SignalOutput::Goodbye => self.over(),
            }
        }
    }

    fn reached(&mut self, opening: &Opening) {
        self.server = opening.remote.or(self.server);
        let moments = [
            (Phase::Resolved, opening.resolved_at),
            (Phase::Connected, opening.connected_at),
            (Phase::Secured, opening.secured_at),
        ];
        for (phase, at) in moments {
            if let Some(at) = at {
                self.observe(Observation::Reached(phase, at));
            }
        }
    }

    // --- offer, answer, candidates ---

    fn open_media(&mut self, wanted: Wanted) {
        let State::Joining { by } = self.state else {
            return self.odd("signalling", "an offer was wanted twice");
        };
        let named = match &wanted {
            Wanted::Offer => None,
            Wanted::AnswerTo(sdp) => {
                let candidates = super::sdp::Description::parse(sdp).candidates;
                let usable = candidates.iter().filter_map(|text| RemoteCandidate::parse(text).ok());
                let mut reachable =
                    usable.filter(RemoteCandidate::is_udp).map(|candidate| candidate.address());
                reachable.find(|address| (self.options.may_reach)(address.ip()))
            }
        };
        let toward = named.or(self.server).or(self.options.toward).unwrap_or(ANYWHERE);
        self.state = State::Opening { by, wanted, candidates: Vec::new() };
        self.outputs.push_back(Output::Open(MEDIA, Open::Datagrams { toward }));
    }

    fn remote_offer(&mut self, now: Instant, sdp: String) {
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

    fn remote_answer(&mut self, now: Instant, sdp: &str) {
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
    fn agreed(&mut self, now: Instant, negotiated: Negotiated) {
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
                receiver.renegotiated(&negotiated);
                peer.negotiated = Some(negotiated);
            }
            _ => {}
        }
        candidates.into_iter().for_each(|candidate| self.remote_candidate(now, candidate));
    }

    fn remote_candidate(&mut self, now: Instant, text: String) {
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
            self.relay_toward(now, address);
        } else {
            self.observe(Observation::Refused(Refused::IceCandidate, address));
        }
    }

    fn media_opened(&mut self, now: Instant, opening: &Opening) {
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

    fn begin_session(
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
        let peer =
            Peer { session, local, remote: None, negotiated: None, timeout_at: now, consent_lost_at: None };
        self.state = State::Connecting { peer: Box::new(peer), by, why: Step::Answer };
        if let Some(negotiated) = negotiated {
            self.agreed(now, negotiated);
        }
        Ok(input)
    }

    // --- transport ---

    fn drain_session(&mut self, now: Instant) {
        loop {
            let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
                return;
            };
            match peer.session.poll_output() {
                Ok(SessionOutput::Timeout(at)) => {
                    peer.timeout_at = at;
                    return;
                }
                Ok(SessionOutput::Transmit { source, to, bytes }) => {
                    let via = if source == peer.local { Via::Socket } else { Via::Relay };
                    if classify(&bytes) == PacketKind::Dtls {
                        peer.remote = Some((via, to));
                    }
                    self.send(now, via, to, bytes);
                }
                Ok(SessionOutput::Ice(state)) => self.ice_changed(now, state),
                Ok(SessionOutput::Connected(keys)) => self.play(now, &keys),
                Ok(SessionOutput::ClosedByPeer) => {
                    return self.fail(now, FailureReason::MediaLost, "the server closed DTLS");
                }
                Err(error) => return self.fail_session(now, &error),
            }
        }
    }

    fn ice_changed(&mut self, now: Instant, state: IceState) {
        self.observe(Observation::Ice(state));
        let dtls_by = now + self.options.patience.dtls;
        let mut reached = false;
        match &mut self.state {
            State::Connecting { by, why, .. } if state == IceState::Connected && *why != Step::Dtls => {
                (*by, *why) = (dtls_by, Step::Dtls);
                reached = true;
            }
            State::Playing { peer, .. } => {
                peer.consent_lost_at = (state == IceState::Disconnected).then_some(now);
            }
            _ => {}
        }
        if reached {
            self.observe(Observation::Reached(Phase::IceConnected, now));
        }
    }

    fn play(&mut self, now: Instant, keys: &SessionKeys) {
        let options = ReceiverOptions {
            clock: self.options.clock,
            joined_at: self.started_at.unwrap_or(now),
            first_track: 0,
            seed: self.options.seed,
        };
        let state = std::mem::replace(&mut self.state, State::Over);
        let State::Connecting { mut peer, .. } = state else {
            self.state = state;
            return;
        };
        // What was agreed is with the receiver from here on.
        let negotiated = peer.negotiated.take().unwrap_or_default();
        match Receiver::new(keys, &negotiated, options, now) {
            Ok(receiver) => {
                let first_media_by = now + self.options.patience.first_media;
                self.state = State::Playing { peer, receiver: Box::new(receiver), first_media_by };
                self.observe(Observation::Reached(Phase::DtlsConnected, now));
                self.tell(now, SignalInput::Connected);
            }
            Err(error) => {
                self.state = State::Joining { by: now };
                self.fail(now, FailureReason::Dtls, &error.to_string());
            }
        }
    }

    /// Sends a datagram to the peer.
    fn send(&mut self, now: Instant, via: Via, to: SocketAddr, bytes: Vec<u8>) {
        match via {
            Via::Socket => self.outputs.push_back(Output::Send(MEDIA, Transmit { to, bytes })),
            Via::Relay => self.send_relayed(now, to, &bytes),
        }
    }

    /// Takes in a datagram that `source` sent to `local`, a candidate of ours; the media path of every packet.
    #[inline]
    fn datagram(
        &mut self,
        now: Instant,
        (via, local): (Via, Option<SocketAddr>),
        source: SocketAddr,
        arrived_at: Instant,
        bytes: &mut [u8],
    ) {
        match (classify(bytes), &mut self.state) {
            (PacketKind::Rtp, State::Playing { peer, receiver, .. }) => {
                // What a relay adds is not counted: it is no rate that the media server chose.
                let ip_udp_bytes = if source.is_ipv4() { 28 } else { 48 };
                if receiver.rtp(arrived_at, ip_udp_bytes, bytes) && peer.remote != Some((via, source)) {
                    peer.remote = Some((via, source));
                }
            }
            (PacketKind::Rtcp, State::Playing { receiver, .. }) => {
                receiver.rtcp(arrived_at, bytes);
            }
            (
                PacketKind::Stun | PacketKind::Dtls,
                State::Connecting { peer, .. } | State::Playing { peer, .. },
            ) if (self.options.may_reach)(source.ip()) => {
                match peer.session.datagram(now, source, local.unwrap_or(peer.local), bytes) {
                    Ok(()) => self.drain_session(now),
                    Err(error) => self.fail_session(now, &error),
                }
            }
            // Media before the keys, strangers, and what is of no protocol.
            _ => {}
        }
    }

    // --- time ---

    fn tick(&mut self, now: Instant) {
        if self.signalling.next_timeout().is_some_and(|(at, _)| now >= at) {
            self.tell(now, SignalInput::Timeout);
        }
        if let State::Connecting { peer, .. } | State::Playing { peer, .. } = &mut self.state
            && now >= peer.timeout_at
        {
            match peer.session.timeout(now) {
                Ok(()) => self.drain_session(now),
                Err(error) => self.fail_session(now, &error),
            }
        }
        self.tick_relay(now);
        self.tick_receiver(now);
        self.check_deadline(now);
    }

    fn tick_receiver(&mut self, now: Instant) {
        let State::Playing { peer, receiver, .. } = &mut self.state else { return };
        let mut feedback = None;
        if now >= receiver.next_timeout() {
            feedback = receiver.poll_feedback(now).zip(peer.remote);
            receiver.timeout(now);
        }
        self.outputs.extend(receiver.take_observed().map(Output::Observed));
        if let Some((bytes, (via, to))) = feedback {
            self.send(now, via, to, bytes);
        }
    }

    fn check_deadline(&mut self, now: Instant) {
        let (at, why) = self.own_deadline();
        if now < at {
            return;
        }
        match &self.state {
            State::Idle | State::Over => {}
            State::Joining { .. } | State::Opening { .. } => {
                self.fail(now, FailureReason::SignallingTimeout, "no offer or answer in time");
            }
            State::Connecting { why: Step::Answer, .. } => {
                self.fail(now, FailureReason::SignallingTimeout, "no answer to our offer in time");
            }
            State::Connecting { why: Step::Ice, .. } => {
                self.fail(now, FailureReason::Ice, "no candidate pair worked in time");
            }
            State::Connecting { why: Step::Dtls, .. } => {
                self.fail(now, FailureReason::Dtls, "no DTLS handshake in time");
            }
            State::Playing { receiver, .. } if receiver.last_media_at().is_none() => {
                self.fail(now, FailureReason::NoMedia, "connected, and no media came");
            }
            State::Playing { .. } => self.fail(now, FailureReason::MediaLost, why),
            State::Leaving { outcome, .. } => {
                if *outcome == Outcome::Completed {
                    self.observe(Observation::GoodbyeUnanswered);
                }
                self.over();
            }
        }
    }

    /// The deadline of the state that the viewer is in.
    fn own_deadline(&self) -> (Instant, Why) {
        let patience = &self.options.patience;
        match &self.state {
            State::Idle | State::Over => (self.options.clock.at + NEVER, "nothing"),
            State::Joining { by } | State::Opening { by, .. } => (*by, "signalling overdue"),
            State::Connecting { by, why, .. } => (*by, why.why()),
            State::Playing { peer, receiver, first_media_by } => {
                let media = match receiver.last_media_at() {
                    Some(at) => (at + patience.silence, "no media any more"),
                    None => (*first_media_by, "first media overdue"),
                };
                let consent = peer.consent_lost_at.map(|at| (at + patience.consent, "ICE consent was lost"));
                consent.into_iter().fold(media, |first, other| if other.0 < first.0 { other } else { first })
            }
            State::Leaving { by, .. } => (*by, "goodbye overdue"),
        }
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let mut first = self.own_deadline();
        let mut consider = |at: Instant, why: Why| {
            if at < first.0 {
                first = (at, why);
            }
        };
        if let Some((at, why)) = self.signalling.next_timeout() {
            consider(at, why);
        }
        if let State::Connecting { peer, .. } | State::Playing { peer, .. } = &self.state {
            consider(peer.timeout_at, "ICE and DTLS");
        }
        if let Some(at) = self.relaying.next_timeout() {
            consider(at, "TURN");
        }
        if let State::Playing { receiver, .. } = &self.state {
            consider(receiver.next_timeout(), "reports and meters");
        }
        first
    }

    // --- the end ---

    fn leave(&mut self, now: Instant) {
        let outcome = match &self.state {
            State::Playing { .. } => Outcome::Completed,
            State::Leaving { .. } | State::Over => return,
            _ => Outcome::Failed(Failure::new(FailureReason::NotStarted, "left before it was connected")),
        };
        self.part(now, outcome);
    }

    fn fail(&mut self, now: Instant, reason: FailureReason, detail: &str) {
        if !matches!(self.state, State::Leaving { .. } | State::Over) {
            self.part(now, Outcome::Failed(Failure::new(reason, detail)));
        }
    }

    fn fail_session(&mut self, now: Instant, error: &SessionError) {
        let reason = match error {
            SessionError::Crypto(_) => FailureReason::Generator,
            SessionError::Sdp(_) | SessionError::Candidate(_) | SessionError::Order(_) => {
                FailureReason::Protocol
            }
            SessionError::Transport(_) if matches!(self.state, State::Playing { .. }) => {
                FailureReason::MediaLost
            }
            SessionError::Transport(_) => FailureReason::Dtls,
        };
        self.fail(now, reason, &error.to_string());
    }

    /// Ends the media, and has signalling say goodbye.
    fn part(&mut self, now: Instant, outcome: Outcome) {
        self.stop_media(now);
        let was_idle = matches!(self.state, State::Idle);
        self.state = State::Leaving { by: now + self.options.patience.goodbye, outcome };
        if was_idle {
            return self.over();
        }
        self.tell(now, SignalInput::Leave);
    }

    fn stop_media(&mut self, now: Instant) {
        let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
            return self.leave_relay(now);
        };
        peer.session.close();
        let local = peer.local;
        let mut closing = Vec::new();
        while let Ok(SessionOutput::Transmit { source, to, bytes }) = peer.session.poll_output() {
            closing.push((if source == local { Via::Socket } else { Via::Relay }, to, bytes));
        }
        if let State::Playing { peer, receiver, .. } = &mut self.state {
            if let (Some(bytes), Some((via, to))) = (receiver.goodbye(), peer.remote) {
                closing.insert(0, (via, to, bytes));
            }
            receiver.finish(now);
            self.outputs.extend(receiver.take_observed().map(Output::Observed));
        }
        closing.into_iter().for_each(|(via, to, bytes)| self.send(now, via, to, bytes));
        self.leave_relay(now);
    }

    fn over(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Leaving { outcome, .. } => self.end(outcome),
            _ => {
                let failure = Failure::new(FailureReason::SignallingClosed, "signalling ended by itself");
                self.end(Outcome::Failed(failure));
            }
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.state = State::Over;
        self.outputs.push_back(Output::Ended(outcome));
    }

    fn closed(&mut self, now: Instant, channel: Channel, why: ChannelError) {
        if channel == SIGNALLING {
            self.tell(now, SignalInput::Closed(why));
        } else if channel == MEDIA {
            let failure = Failure::from(why);
            self.fail(now, failure.reason, &format!("media socket: {}", failure.detail));
        } else if channel == RELAY {
            self.relay_closed(now, &why.to_string());
        }
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if matches!(self.state, State::Over) {
            return;
        }
        match input {
            Input::Datagram { channel: MEDIA, source, arrived_at, bytes } => {
                self.datagram(now, (Via::Socket, None), source, arrived_at, bytes);
            }
            Input::Datagram { channel: RELAY, arrived_at, bytes, source } => {
                self.relay_datagram(now, source, arrived_at, bytes);
            }
            Input::Bytes { channel: RELAY, bytes } => self.relay_bytes(now, bytes),
            Input::Opened { channel: RELAY, opening } => self.relay_opened(now, &opening),
            Input::Start { .. } => {
                self.started_at = Some(now);
                self.state = State::Joining { by: now + self.options.patience.signalling };
                self.observe(Observation::Reached(Phase::Started, now));
                self.tell(now, SignalInput::Start);
            }
            Input::Opened { channel: SIGNALLING, opening } => {
                self.reached(&opening);
                self.tell(now, SignalInput::Opened(&opening));
            }
            Input::Opened { channel: MEDIA, opening } => self.media_opened(now, &opening),
            Input::Message { channel: SIGNALLING, message } => self.tell(now, SignalInput::Message(&message)),
            Input::Closed { channel, why } => self.closed(now, channel, why),
            Input::Fetched { fetch, result } => {
                let result = result.as_ref().map_err(Clone::clone);
                self.tell(now, SignalInput::Fetched(fetch, result));
            }
            Input::Leave => self.leave(now),
            // Due work is done when the outputs are drained.
            Input::Timeout => {}
            Input::Opened { .. } | Input::Datagram { .. } | Input::Bytes { .. } | Input::Message { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if self.outputs.is_empty() {
            self.tick(now);
        }
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let (at, why) = self.next_deadline();
        // A deadline that has come and left nothing to do would spin the driver.
        Output::Timeout(at.max(now + Duration::from_millis(1)), why)
    }
}
