//! The member of a conference: publishes what it has, receives whom it wants, over as many peer connections as its
//! signalling asks for.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Bound;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase};
use throng_scenario::{LayerRequest, StunServer};

use super::behaviour::{Behaviour, BehaviourState, Change};
use super::connection::{Connection, ConnectionOutput, Outgoing, Shared};
use super::viewer::{MayReach, StepTimeouts};
use crate::participant::{Channel, Input, Opening, Output, Participant, Why};
use crate::signalling::SIGNALLING;
use crate::signalling::room::{PeerId, RoomInput, RoomOutput, RoomSignalling};

/// More peer connections than this one participant does not make, whatever the server says.
const PEERS_MAX: usize = 1_024;
/// So long waits who waits for nothing.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);
/// A server that throws somebody out, ends a room or shuts down closes DTLS at once, and says why on another way: so long is
/// waited for its word before lost media is the reason.
const WORD_WITHIN: Duration = Duration::from_secs(1);
/// Track numbers that each peer connection has to itself where there are several that receive.
const TRACKS_EACH: u16 = 8;

/// How a member takes part.
#[derive(Clone)]
pub struct MemberOptions {
    /// The consent guard's judgement of candidates.
    pub may_reach: MayReach,
    /// One reading of both clocks, the same for all participants of a run.
    pub clock: WallClock,
    /// An address of the server, when known beforehand; it chooses the interface to use.
    pub toward: Option<SocketAddr>,
    /// Seed of what is random.
    pub seed: u64,
    /// How long each step may take.
    pub timeouts: StepTimeouts,
    /// What it sends; empty for one who only receives.
    pub outgoing: Vec<Outgoing>,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// It tells the coded frames that it receives.
    pub is_tapped: bool,
    /// Which layer of what it receives it asks for, and when after its join.
    pub layers: Vec<LayerRequest>,
    /// Whom each of its connections asks for its address as it is seen from outside.
    pub stun: Option<StunServer>,
}

/// A participant of a conference.
pub struct Member {
    options: MemberOptions,
    signalling: Box<dyn RoomSignalling>,
    behaviour: BehaviourState,
    state: State,
    started_at: Option<Instant>,
    /// The signalling server's address, once connected.
    server: Option<SocketAddr>,
    peers: BTreeMap<PeerId, Connection>,
    /// How many of the wishes for layers were told.
    wishes_told: usize,
    /// Phases that were reached; each counts once, by whichever connection comes first.
    reached: Vec<Phase>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
enum State {
    Idle,
    Joining {
        by: Instant,
    },
    Present,
    /// Its media is gone, and signalling may yet say why.
    MediaLost {
        by: Instant,
        failure: Failure,
    },
    Leaving {
        by: Instant,
        outcome: Outcome,
    },
    Over,
}

/// The channel of a peer connection's socket.
fn channel(peer: PeerId) -> Channel {
    Channel(peer.0.saturating_add(1))
}

fn peer(channel: Channel) -> Option<PeerId> {
    channel.0.checked_sub(1).map(PeerId)
}

impl Member {
    /// A member who joins by `signalling`.
    #[must_use]
    pub fn new(signalling: Box<dyn RoomSignalling>, options: MemberOptions) -> Self {
        Self {
            behaviour: BehaviourState::new(options.behaviour.clone()),
            options,
            signalling,
            state: State::Idle,
            started_at: None,
            server: None,
            peers: BTreeMap::new(),
            wishes_told: 0,
            reached: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    fn observe(&mut self, observation: Observation) {
        if let Observation::Reached(phase, _) = observation {
            if self.reached.contains(&phase) {
                return;
            }
            self.reached.push(phase);
        }
        self.outputs.push_back(Output::Observed(observation));
    }

    fn anomaly(&mut self, place: &'static str, detail: impl Into<String>) {
        self.observe(Observation::ProtocolAnomaly { place, detail: detail.into() });
    }

    fn tell(&mut self, now: Instant, input: RoomInput<'_>) {
        self.signalling.handle(now, input);
        while let Some(output) = self.signalling.poll_output() {
            self.signalled(now, output);
        }
    }

    fn signalled(&mut self, now: Instant, output: RoomOutput) {
        match output {
            RoomOutput::Open(open) => self.outputs.push_back(Output::Open(SIGNALLING, open)),
            RoomOutput::Signal(message) => self.outputs.push_back(Output::Signal(SIGNALLING, message)),
            RoomOutput::Close => self.outputs.push_back(Output::Close(SIGNALLING)),
            RoomOutput::Fetch(id, request) => self.outputs.push_back(Output::Fetch(id, request)),
            RoomOutput::Reached(opening) => self.reached(&opening),
            RoomOutput::Joined => {
                if matches!(self.state, State::Joining { .. }) {
                    self.state = State::Present;
                    self.wish(now);
                }
            }
            RoomOutput::WantOffer(id) => {
                let signalling = self.server.or(self.options.toward);
                if let Some(connection) = self.connection(now, id) {
                    connection.offer(now, signalling);
                }
                self.drain(now, id);
            }
            RoomOutput::RemoteOffer(id, sdp) => {
                let signalling = self.server.or(self.options.toward);
                if let Some(connection) = self.connection(now, id) {
                    connection.remote_offer(now, sdp, signalling);
                }
                self.drain(now, id);
            }
            RoomOutput::RemoteAnswer(id, sdp) => {
                if let Some(connection) = self.peers.get_mut(&id) {
                    connection.remote_answer(now, &sdp);
                }
                self.drain(now, id);
            }
            RoomOutput::RemoteCandidate(id, candidate) => {
                if let Some(connection) = self.peers.get_mut(&id) {
                    connection.remote_candidate(now, candidate);
                }
                self.drain(now, id);
            }
            RoomOutput::Streams(id, streams) => {
                if let Some(connection) = self.connection(now, id) {
                    connection.streams(now, streams);
                }
                self.drain(now, id);
            }
            RoomOutput::LayerSent(id, mid, layer) => {
                if let Some(connection) = self.peers.get_mut(&id) {
                    connection.layer_sent(now, &mid, layer);
                }
            }
            RoomOutput::Publishers(people) => {
                self.behaviour.people(people);
                self.behave(now);
            }
            RoomOutput::Muted(kind, is_muted) => {
                self.behaviour.room_mutes(kind, is_muted);
                self.behave(now);
            }
            RoomOutput::ClosePeer(id) => self.close_peer(now, id),
            RoomOutput::Refused(what, place) => self.observe(Observation::Refused(what, place)),
            RoomOutput::Anomaly(detail) => self.anomaly("signalling", detail),
            RoomOutput::Failed(failure) => {
                self.close_all(now);
                match self.state {
                    State::Leaving { .. } => self.over(),
                    // Signalling's word, also where the loss of media came before it.
                    _ => self.end(Outcome::Failed(failure)),
                }
            }
            RoomOutput::Goodbye => self.over(),
        }
    }

    /// When the next wish for a layer is to be told.
    fn next_wish_at(&self) -> Option<Instant> {
        let wish = self.options.layers.get(self.wishes_told)?;
        self.started_at?.checked_add(wish.after).filter(|_| matches!(self.state, State::Present))
    }

    /// Tells the wishes that are due.
    fn wish(&mut self, now: Instant) {
        while self.next_wish_at().is_some_and(|at| now >= at) {
            let Some(wish) = self.options.layers.get(self.wishes_told).copied() else { return };
            self.wishes_told += 1;
            self.peers.values_mut().for_each(|connection| connection.layer_asked(now, wish.layer));
            self.tell(now, RoomInput::Layer(wish.layer));
        }
    }

    /// Does what the conversation and the script ask for at `now`.
    fn behave(&mut self, now: Instant) {
        if matches!(self.state, State::Idle | State::Leaving { .. } | State::Over) {
            return;
        }
        for change in self.behaviour.changes(now) {
            let publisher = self.peers.get_mut(&PeerId::PUBLISHER);
            match change {
                Change::Subscribe(subscriptions) => self.tell(now, RoomInput::Subscribe(&subscriptions)),
                Change::Talk(is_talking) => {
                    publisher.into_iter().for_each(|peer| peer.set_talking(is_talking));
                }
                Change::Mute(kind, is_muted) => {
                    publisher.into_iter().for_each(|peer| peer.set_muted(kind, is_muted));
                    self.observe(Observation::Mutes { kind, is_muted, at: now });
                    self.tell(now, RoomInput::Mute(kind, is_muted));
                }
                Change::Show(ladder) => publisher.into_iter().for_each(|peer| peer.show(&ladder)),
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

    /// The connection of that number, made if it is not there.
    fn connection(&mut self, now: Instant, id: PeerId) -> Option<&mut Connection> {
        if !self.peers.contains_key(&id) {
            if self.peers.len() >= PEERS_MAX {
                self.anomaly("signalling", format!("more than {PEERS_MAX} peer connections"));
                return None;
            }
            let options = &self.options;
            let host = self.server.or(options.toward).map(|place| place.ip());
            let shared = Shared {
                may_reach: options.may_reach.clone(),
                clock: options.clock,
                timeouts: options.timeouts,
                seed: options.seed ^ u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                joined_at: self.started_at.unwrap_or(now),
                is_tapped: options.is_tapped,
                stun: options.stun.as_ref().and_then(|stun| stun.address(host)),
            };
            let outgoing = if id == PeerId::PUBLISHER { options.outgoing.clone() } else { Vec::new() };
            let connection = Connection::new(shared, outgoing, (id.0.max(1) - 1).saturating_mul(TRACKS_EACH));
            self.peers.insert(id, connection);
        }
        self.peers.get_mut(&id)
    }

    fn drain(&mut self, now: Instant, id: PeerId) {
        while let Some(output) = self.peers.get_mut(&id).and_then(Connection::poll_output) {
            match output {
                ConnectionOutput::Open(open) => self.outputs.push_back(Output::Open(channel(id), open)),
                ConnectionOutput::Send(transmit) => {
                    self.outputs.push_back(Output::Send(channel(id), transmit));
                }
                ConnectionOutput::Offer(sdp) => self.tell(now, RoomInput::Offer(id, sdp)),
                ConnectionOutput::Answer(sdp) => self.tell(now, RoomInput::Answer(id, sdp)),
                ConnectionOutput::Negotiated => self.observe(Observation::Reached(Phase::Negotiated, now)),
                ConnectionOutput::IceConnected => {
                    self.observe(Observation::Reached(Phase::IceConnected, now));
                }
                ConnectionOutput::Connected(path) => {
                    // Of several connections the first stands for all: each of them is to the same server.
                    if !self.reached.contains(&Phase::DtlsConnected) {
                        self.observe(Observation::Path(path));
                    }
                    self.observe(Observation::Reached(Phase::DtlsConnected, now));
                    self.tell(now, RoomInput::Connected(id));
                    if id == PeerId::PUBLISHER {
                        self.behaviour.sender_begins();
                        self.behave(now);
                    }
                }
                // A participant has one ICE state in the figures: that of its first connection.
                ConnectionOutput::Observed(Observation::Ice(_)) if self.peers.keys().next() != Some(&id) => {}
                ConnectionOutput::Observed(observation) => self.observe(observation),
                ConnectionOutput::Failed(failure) => self.connection_failed(now, id, failure),
            }
        }
    }

    /// Without what it publishes, or without any connection, a member is not there any more; without one of several it is.
    fn connection_failed(&mut self, now: Instant, id: PeerId, failure: Failure) {
        if matches!(self.state, State::MediaLost { .. } | State::Leaving { .. } | State::Over) {
            return;
        }
        let others = self
            .peers
            .iter()
            .any(|(other, connection)| *other != id && *other != PeerId::PUBLISHER && !connection.is_over());
        if id == PeerId::PUBLISHER || !others {
            if matches!(self.state, State::Present) && failure.reason == FailureReason::MediaLost {
                self.state = State::MediaLost { by: now + WORD_WITHIN, failure };
                return;
            }
            return self.part(now, Outcome::Failed(failure), false);
        }
        self.anomaly("connection", failure.to_string());
        self.outputs.push_back(Output::Close(channel(id)));
        self.peers.remove(&id);
        self.tell(now, RoomInput::Lost(id));
    }

    fn close_peer(&mut self, now: Instant, id: PeerId) {
        let Some(connection) = self.peers.get_mut(&id) else { return };
        connection.close(now);
        self.drain(now, id);
        if self.peers.remove(&id).is_some() {
            self.outputs.push_back(Output::Close(channel(id)));
        }
    }

    fn close_all(&mut self, now: Instant) {
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            self.close_peer(now, id);
        }
    }

    /// Ends the media, and has signalling say goodbye.
    fn part(&mut self, now: Instant, outcome: Outcome, others_follow: bool) {
        self.close_all(now);
        let was_idle = matches!(self.state, State::Idle);
        self.state = State::Leaving { by: now + self.options.timeouts.goodbye, outcome };
        if was_idle {
            return self.over();
        }
        self.tell(now, RoomInput::Leave { others_follow });
    }

    fn leave(&mut self, now: Instant, others_follow: bool) {
        let outcome = match &self.state {
            State::Leaving { .. } | State::Over => return,
            State::MediaLost { failure, .. } => Outcome::Failed(failure.clone()),
            _ if self.reached.contains(&Phase::DtlsConnected) => Outcome::Completed,
            _ => Outcome::Failed(Failure::new(FailureReason::NotStarted, "left before it was connected")),
        };
        self.part(now, outcome, others_follow);
    }

    fn over(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Leaving { outcome, .. } => self.end(outcome),
            State::MediaLost { failure, .. } => self.end(Outcome::Failed(failure)),
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

    fn tick(&mut self, now: Instant) {
        if self.signalling.next_timeout().is_some_and(|(at, _)| now >= at) {
            self.tell(now, RoomInput::Timeout);
        }
        if self.behaviour.next_timeout().is_some_and(|(at, _)| now >= at) {
            self.behave(now);
        }
        let mut after = Bound::Unbounded;
        while let Some((&id, connection)) = self.peers.range_mut((after, Bound::Unbounded)).next() {
            if connection.next_deadline().is_some_and(|(at, _)| now >= at) {
                connection.tick(now);
            }
            if connection.has_output() {
                self.drain(now, id);
            }
            after = Bound::Excluded(id);
        }
        self.wish(now);
        match &self.state {
            State::Joining { by } if now >= *by => {
                let failure =
                    Failure::new(FailureReason::SignallingTimeout, "the room did not answer in time");
                self.part(now, Outcome::Failed(failure), false);
            }
            State::MediaLost { by, failure } if now >= *by => {
                let failure = failure.clone();
                self.part(now, Outcome::Failed(failure), false);
            }
            State::Leaving { by, .. } if now >= *by => {
                self.observe(Observation::LeaveUnanswered);
                self.over();
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let own = match &self.state {
            State::Joining { by } => Some((*by, "signalling overdue")),
            State::MediaLost { by, .. } => Some((*by, "signalling's word on why the media is gone")),
            State::Leaving { by, .. } => Some((*by, "goodbye overdue")),
            _ => self.next_wish_at().map(|at| (at, "layer to ask for")),
        };
        let peers = self.peers.values().filter_map(Connection::next_deadline);
        let is_there = matches!(self.state, State::Joining { .. } | State::Present);
        let behaviour = self.behaviour.next_timeout().filter(|_| is_there);
        let all = peers.chain(own).chain(self.signalling.next_timeout()).chain(behaviour);
        all.min_by_key(|(at, _)| *at).unwrap_or((self.options.clock.at + NEVER, "nothing"))
    }
}

impl Participant for Member {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if matches!(self.state, State::Over) {
            return;
        }
        match input {
            Input::Datagram { channel, source, local, arrived_at, bytes } => {
                let Some(id) = peer(channel) else { return };
                if let Some(connection) = self.peers.get_mut(&id) {
                    connection.datagram(now, (source, local), arrived_at, bytes);
                    if connection.has_output() {
                        self.drain(now, id);
                    }
                }
            }
            Input::Start { intended_at } => {
                self.started_at = Some(now);
                self.behaviour.begin(intended_at);
                self.state = State::Joining { by: now + self.options.timeouts.signalling };
                self.observe(Observation::Reached(Phase::Started, now));
                self.tell(now, RoomInput::Start);
            }
            Input::Opened { channel: SIGNALLING, opening } => {
                self.reached(&opening);
                self.tell(now, RoomInput::Opened(&opening));
            }
            Input::Opened { channel, opening } => {
                let Some(id) = peer(channel) else { return };
                if let Some(connection) = self.peers.get_mut(&id) {
                    connection.opened(now, opening.addresses());
                }
                self.drain(now, id);
            }
            Input::Message { channel: SIGNALLING, message } => self.tell(now, RoomInput::Message(&message)),
            Input::Closed { channel: SIGNALLING, why } => self.tell(now, RoomInput::Closed(why)),
            Input::Closed { channel, why } => {
                if let Some(id) = peer(channel).filter(|id| self.peers.contains_key(id)) {
                    let failure = Failure::from(why);
                    let failure = Failure::new(failure.reason, format!("media socket: {}", failure.detail));
                    self.connection_failed(now, id, failure);
                }
            }
            Input::Fetched { fetch, result } => {
                let result = match &result {
                    Ok(response) => Ok(response),
                    Err(error) => Err(error.clone()),
                };
                self.tell(now, RoomInput::Fetched(fetch, result));
            }
            Input::Timeout => self.tick(now),
            Input::Leave { others_follow } => self.leave(now, others_follow),
            Input::Bytes { .. } | Input::Message { .. } => {}
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let (at, why) = self.next_deadline();
        Output::Timeout(at, why)
    }

    fn prefetch(&self) -> u64 {
        // Who has a connection for each sender of a room does not hear of all at once.
        self.peers.values().take(2).fold(0, |sum, connection| sum ^ connection.prefetch())
    }
}
