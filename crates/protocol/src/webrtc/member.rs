//! A conference participant: it publishes, and receives the senders that it subscribes to, over as
//! many peer connections as its signalling requires.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_observation::{Detail, Failure, FailureReason, Observation, Outcome, Phase, seed};
use throng_scenario::LayerRequest;

use super::behaviour::{Behaviour, BehaviourState, Change};
use super::connection::{Connection, ConnectionConfig, ConnectionOutput, Outgoing, Socket};
use super::options::ParticipantOptions;
use crate::participant::{Input, NEVER, Opening, Output, Participant, Why};
use crate::signalling::room::{PeerId, RoomInput, RoomOutput, RoomSignalling};
use crate::signalling::{RelayServer, SIGNALLING};

/// The largest number of peer connections, whatever the server requests.
const PEERS_MAX: usize = 1_024;
/// How many TURN servers are kept for later connections.
const RELAYS_MAX: usize = 8;
/// A server that removes a participant, ends a room or shuts down closes DTLS at once and signals
/// the reason separately: how long a member waits for that reason before it reports lost media.
const REASON_WITHIN: Duration = Duration::from_secs(1);
/// How many track numbers each peer connection reserves where several of them receive.
const TRACKS_EACH: u16 = 8;

/// The configuration of a member.
#[derive(Clone)]
pub struct MemberOptions {
    /// How it connects.
    pub participant: ParticipantOptions,
    /// What it sends; empty for a member that only receives.
    pub outgoing: Vec<Outgoing>,
    /// How it behaves.
    pub behaviour: Behaviour,
    /// Its layer requests, with their times after the join.
    pub layers: Vec<LayerRequest>,
}

/// A participant of a conference.
pub struct Member {
    options: Arc<ParticipantOptions>,
    outgoing: Vec<Outgoing>,
    layers: Vec<LayerRequest>,
    signalling: Box<dyn RoomSignalling>,
    behaviour: BehaviourState,
    state: State,
    started_at: Option<Instant>,
    /// The signalling server's address, once connected.
    server: Option<SocketAddr>,
    peers: BTreeMap<PeerId, Connection>,
    /// The TURN servers that signalling announced.
    relays: Vec<RelayServer>,
    /// How many of the layer requests were sent.
    layers_requested: usize,
    /// Phases that were reached; each counts once, for the first connection that reaches it.
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
    /// Media was lost; signalling may still report the reason.
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

impl Member {
    /// A member that joins through `signalling`.
    #[must_use]
    pub fn new(signalling: Box<dyn RoomSignalling>, options: MemberOptions) -> Self {
        Self {
            options: Arc::new(options.participant),
            outgoing: options.outgoing,
            behaviour: BehaviourState::new(options.behaviour),
            layers: options.layers,
            signalling,
            state: State::Idle,
            started_at: None,
            server: None,
            peers: BTreeMap::new(),
            relays: Vec::new(),
            layers_requested: 0,
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

    fn anomaly(&mut self, place: &'static str, detail: impl Into<Detail>) {
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
            RoomOutput::Signal(message) => {
                self.outputs.push_back(Output::Signal(SIGNALLING, message));
            }
            RoomOutput::Close => self.outputs.push_back(Output::Close(SIGNALLING)),
            RoomOutput::Fetch(id, request) => self.outputs.push_back(Output::Fetch(id, request)),
            RoomOutput::Reached(opening) => self.reached(&opening),
            RoomOutput::Joined => {
                if matches!(self.state, State::Joining { .. }) {
                    self.state = State::Present;
                    self.request_layers(now);
                }
            }
            RoomOutput::WantOffer(id) => {
                self.make_connection(now, id);
                self.on_connection(now, id, |connection| connection.offer(now));
            }
            RoomOutput::RemoteOffer(id, sdp) => {
                self.make_connection(now, id);
                self.on_connection(now, id, |connection| connection.remote_offer(now, sdp));
            }
            RoomOutput::RemoteAnswer(id, sdp) => {
                self.on_connection(now, id, |connection| connection.remote_answer(now, &sdp));
            }
            RoomOutput::RemoteCandidate(id, candidate) => {
                self.on_connection(now, id, |connection| {
                    connection.remote_candidate(now, candidate);
                });
            }
            RoomOutput::Streams(id, streams) => {
                self.make_connection(now, id);
                self.on_connection(now, id, |connection| connection.streams(now, streams));
            }
            RoomOutput::LayerSent(id, mid, layer) => {
                self.on_connection(now, id, |connection| connection.layer_sent(now, &mid, layer));
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
            RoomOutput::Relay(relay) => self.relay_announced(now, relay),
            RoomOutput::Refused(what, place) => self.observe(Observation::Refused(what, place)),
            RoomOutput::Anomaly(detail) => self.anomaly("signalling", detail),
            RoomOutput::Failed(failure) => {
                self.close_all(now);
                match self.state {
                    State::Leaving { .. } => self.over(),
                    // The reason from signalling takes precedence, even if media was lost before.
                    _ => self.end(Outcome::Failed(failure)),
                }
            }
            RoomOutput::Goodbye => self.over(),
        }
    }

    /// When the next layer request is due.
    fn next_layer_request_at(&self) -> Option<Instant> {
        let request = self.layers.get(self.layers_requested)?;
        self.started_at?.checked_add(request.after).filter(|_| matches!(self.state, State::Present))
    }

    /// Sends the layer requests that are due.
    fn request_layers(&mut self, now: Instant) {
        while self.next_layer_request_at().is_some_and(|at| now >= at) {
            let Some(request) = self.layers.get(self.layers_requested).copied() else { return };
            self.layers_requested += 1;
            self.peers
                .values_mut()
                .for_each(|connection| connection.layer_asked(now, request.layer));
            self.tell(now, RoomInput::Layer(request.layer));
        }
    }

    /// Applies the changes of conversation and script that are due at `now`.
    fn behave(&mut self, now: Instant) {
        if matches!(self.state, State::Idle | State::Leaving { .. } | State::Over) {
            return;
        }
        for change in self.behaviour.changes(now) {
            let publisher = self.peers.get_mut(&PeerId::PUBLISHER);
            match change {
                Change::Subscribe(subscriptions) => {
                    self.tell(now, RoomInput::Subscribe(&subscriptions));
                }
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
        opening.phases().for_each(|phase| self.observe(phase));
    }

    /// Signalling announces a TURN server for all connections.
    fn relay_announced(&mut self, now: Instant, relay: RelayServer) {
        if self.relays.len() >= RELAYS_MAX {
            return;
        }
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            self.on_connection(now, id, |connection| connection.relay_announced(relay.clone()));
        }
        self.relays.push(relay);
    }

    /// Creates the connection of that number, if it does not exist.
    fn make_connection(&mut self, now: Instant, id: PeerId) {
        if self.peers.contains_key(&id) {
            return;
        }
        if self.peers.len() >= PEERS_MAX {
            return self.anomaly("signalling", format!("more than {PEERS_MAX} peer connections"));
        }
        let config = ConnectionConfig {
            number: id.0,
            options: Arc::clone(&self.options),
            seed: seed::of(self.options.seed, u64::from(id.0)),
            joined_at: self.started_at.unwrap_or(now),
            first_track: (id.0.max(1) - 1).saturating_mul(TRACKS_EACH),
            in_room: true,
        };
        let outgoing = if id == PeerId::PUBLISHER { self.outgoing.clone() } else { Vec::new() };
        let mut connection = Connection::new(config, outgoing);
        connection.set_server(self.server);
        self.relays.iter().for_each(|relay| connection.relay_announced(relay.clone()));
        self.peers.insert(id, connection);
    }

    /// Applies `act` to the connection of that number, if it exists.
    fn on_connection(&mut self, now: Instant, id: PeerId, act: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.peers.get_mut(&id) {
            act(connection);
            self.drain(now, id);
        }
    }

    fn drain(&mut self, now: Instant, id: PeerId) {
        while let Some(output) = self.peers.get_mut(&id).and_then(Connection::poll_output) {
            match output {
                ConnectionOutput::Driver(output) => self.outputs.push_back(output),
                ConnectionOutput::Offer(sdp) => self.tell(now, RoomInput::Offer(id, sdp)),
                ConnectionOutput::Answer(sdp) => self.tell(now, RoomInput::Answer(id, sdp)),
                ConnectionOutput::Candidate(line) => {
                    self.tell(now, RoomInput::Candidate(id, &line));
                }
                ConnectionOutput::CandidatesDone => self.tell(now, RoomInput::CandidatesDone(id)),
                ConnectionOutput::Negotiated => {
                    self.observe(Observation::Reached(Phase::Negotiated, now));
                }
                ConnectionOutput::IceConnected => {
                    self.observe(Observation::Reached(Phase::IceConnected, now));
                }
                ConnectionOutput::Connected(path) => {
                    // The first of several connections represents all: they lead to the same
                    // server.
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
                // Only the ICE state of the first connection is reported for a participant.
                ConnectionOutput::Observed(Observation::Ice(_))
                    if self.peers.keys().next() != Some(&id) => {}
                ConnectionOutput::Observed(observation) => self.observe(observation),
                ConnectionOutput::Failed(failure) => self.connection_failed(now, id, failure),
            }
        }
    }

    /// A member fails when it loses its publishing connection or its last one; it survives the loss
    /// of one of several.
    fn connection_failed(&mut self, now: Instant, id: PeerId, failure: Failure) {
        if matches!(self.state, State::MediaLost { .. } | State::Leaving { .. } | State::Over) {
            return;
        }
        let others = self.peers.iter().any(|(other, connection)| {
            *other != id && *other != PeerId::PUBLISHER && !connection.is_over()
        });
        if id == PeerId::PUBLISHER || !others {
            if matches!(self.state, State::Present) && failure.reason == FailureReason::MediaLost {
                self.state = State::MediaLost { by: now + REASON_WITHIN, failure };
                return;
            }
            return self.part(now, Outcome::Failed(failure), false);
        }
        self.anomaly("connection", failure.to_string());
        self.outputs.push_back(Output::Close(Socket::Media.channel(id.0)));
        self.peers.remove(&id);
        self.tell(now, RoomInput::Lost(id));
    }

    fn close_peer(&mut self, now: Instant, id: PeerId) {
        let Some(connection) = self.peers.get_mut(&id) else { return };
        connection.close(now);
        self.drain(now, id);
        if self.peers.remove(&id).is_some() {
            self.outputs.push_back(Output::Close(Socket::Media.channel(id.0)));
        }
    }

    fn close_all(&mut self, now: Instant) {
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            self.close_peer(now, id);
        }
    }

    /// Closes the connections, and lets signalling sign off.
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
            _ => Outcome::not_started("left before it was connected"),
        };
        self.part(now, outcome, others_follow);
    }

    fn over(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Leaving { outcome, .. } => self.end(outcome),
            State::MediaLost { failure, .. } => self.end(Outcome::Failed(failure)),
            _ => {
                let failure =
                    Failure::new(FailureReason::SignallingClosed, "signalling ended by itself");
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
        self.request_layers(now);
        match &self.state {
            State::Joining { by } if now >= *by => {
                let failure = Failure::new(
                    FailureReason::SignallingTimeout,
                    "the room did not answer in time",
                );
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
            State::MediaLost { by, .. } => Some((*by, "signalling's reason for the lost media")),
            State::Leaving { by, .. } => Some((*by, "goodbye overdue")),
            _ => self.next_layer_request_at().map(|at| (at, "layer request due")),
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
        if let Some((number, socket)) = input.channel().and_then(Socket::of) {
            let id = PeerId(number);
            if let Some(connection) = self.peers.get_mut(&id) {
                connection.handle(now, socket, input);
                if connection.has_output() {
                    self.drain(now, id);
                }
            }
            return;
        }
        match input {
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
            Input::Message { channel: SIGNALLING, message } => {
                self.tell(now, RoomInput::Message(&message));
            }
            Input::Closed { channel: SIGNALLING, why } => self.tell(now, RoomInput::Closed(why)),
            Input::Fetched { fetch, result } => {
                let result = result.as_ref().map_err(Clone::clone);
                self.tell(now, RoomInput::Fetched(fetch, result));
            }
            Input::Timeout => self.tick(now),
            Input::Leave { others_follow } => self.leave(now, others_follow),
            Input::Opened { .. }
            | Input::Datagram { .. }
            | Input::Bytes { .. }
            | Input::Blocked { .. }
            | Input::Message { .. }
            | Input::Download { .. }
            | Input::Closed { .. } => {}
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let (at, why) = self.next_deadline();
        Output::Timeout(at, why)
    }

    fn receive_lag(&mut self, lag: Duration) {
        self.peers.values_mut().for_each(|connection| connection.receive_lag(lag));
    }

    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        // With one connection per sender, not all of them receive at the same time.
        self.peers.values().take(2).for_each(|connection| connection.prefetch(level, prefetcher));
    }
}
