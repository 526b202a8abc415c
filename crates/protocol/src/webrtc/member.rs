//! A conference participant: it publishes, and receives the senders that it subscribes to, over as
//! many peer connections as its signalling requires.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase, seed};
use throng_scenario::LayerRequest;

use super::behaviour::{Behaviour, BehaviourState, Change};
use super::connection::{Connection, ConnectionConfig, ConnectionOutput, Outgoing, Socket};
use super::options::ParticipantOptions;
use crate::life::Life;
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
    life: Life<State>,
    started_at: Option<Instant>,
    /// The signalling server's address, once connected.
    server: Option<SocketAddr>,
    peers: BTreeMap<PeerId, Connection>,
    /// The TURN servers that signalling announced.
    relays: Vec<RelayServer>,
    /// How many of the layer requests were sent.
    layers_requested: usize,
}

#[derive(Debug)]
enum State {
    Joining {
        by: Instant,
    },
    Present,
    /// Media was lost; signalling may still report the reason.
    MediaLost {
        by: Instant,
        failure: Failure,
    },
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
            life: Life::new(),
            started_at: None,
            server: None,
            peers: BTreeMap::new(),
            relays: Vec::new(),
            layers_requested: 0,
        }
    }

    fn tell(&mut self, now: Instant, input: RoomInput<'_>) {
        self.signalling.handle(now, input);
        while let Some(output) = self.signalling.poll_output() {
            self.signalled(now, output);
        }
    }

    fn signalled(&mut self, now: Instant, output: RoomOutput) {
        match output {
            RoomOutput::Open(open) => self.life.push(Output::Open(SIGNALLING, open)),
            RoomOutput::Signal(message) => self.life.push(Output::Signal(SIGNALLING, message)),
            RoomOutput::Close => self.life.push(Output::Close(SIGNALLING)),
            RoomOutput::Fetch(id, request) => self.life.push(Output::Fetch(id, request)),
            RoomOutput::Reached(opening) => self.reached(&opening),
            RoomOutput::Joined => {
                if matches!(self.life.live(), Some(State::Joining { .. })) {
                    self.life.enter(State::Present);
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
            RoomOutput::Refused(what, place) => {
                self.life.observe(Observation::Refused(what, place));
            }
            RoomOutput::Anomaly(detail) => self.life.anomaly("signalling", detail),
            RoomOutput::Failed(failure) => {
                self.close_all(now);
                // The reason from signalling takes precedence, even if media was lost before.
                self.life.end(Outcome::Failed(failure));
            }
            RoomOutput::Goodbye => match self.lost_media() {
                Some(outcome) => self.life.end(outcome),
                None => self.life.end_with("signalling"),
            },
        }
    }

    fn is_present(&self) -> bool {
        matches!(self.life.live(), Some(State::Present))
    }

    /// How it ends if signalling reports no reason for lost media.
    fn lost_media(&self) -> Option<Outcome> {
        match self.life.live() {
            Some(State::MediaLost { failure, .. }) => Some(Outcome::Failed(failure.clone())),
            Some(State::Joining { .. } | State::Present) | None => None,
        }
    }

    /// When the next layer request is due.
    fn next_layer_request_at(&self) -> Option<Instant> {
        let request = self.layers.get(self.layers_requested)?;
        self.started_at?.checked_add(request.after).filter(|_| self.is_present())
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
        if self.life.live().is_none() {
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
                    self.life.observe(Observation::Mutes { kind, is_muted, at: now });
                    self.tell(now, RoomInput::Mute(kind, is_muted));
                }
                Change::Show(ladder) => publisher.into_iter().for_each(|peer| peer.show(&ladder)),
            }
        }
    }

    fn reached(&mut self, opening: &Opening) {
        self.server = opening.remote.or(self.server);
        self.life.extend(opening.phases().map(Output::Observed));
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
            let detail = format!("more than {PEERS_MAX} peer connections");
            return self.life.anomaly("signalling", detail);
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
                ConnectionOutput::Driver(output) => self.life.push(output),
                ConnectionOutput::Offer(sdp) => self.tell(now, RoomInput::Offer(id, sdp)),
                ConnectionOutput::Answer(sdp) => self.tell(now, RoomInput::Answer(id, sdp)),
                ConnectionOutput::Candidate(line) => {
                    self.tell(now, RoomInput::Candidate(id, &line));
                }
                ConnectionOutput::CandidatesDone => self.tell(now, RoomInput::CandidatesDone(id)),
                ConnectionOutput::Negotiated => self.life.reach(Phase::Negotiated, now),
                ConnectionOutput::IceConnected => self.life.reach(Phase::IceConnected, now),
                ConnectionOutput::Connected(path) => {
                    // The first of several connections represents all: they lead to the same
                    // server.
                    if !self.life.has_reached(Phase::DtlsConnected) {
                        self.life.observe(Observation::Path(path));
                    }
                    self.life.reach(Phase::DtlsConnected, now);
                    self.tell(now, RoomInput::Connected(id));
                    if id == PeerId::PUBLISHER {
                        self.behaviour.sender_begins();
                        self.behave(now);
                    }
                }
                // Only the ICE state of the first connection is reported for a participant.
                ConnectionOutput::Observed(Observation::Ice(_))
                    if self.peers.keys().next() != Some(&id) => {}
                ConnectionOutput::Observed(observation) => self.life.observe(observation),
                ConnectionOutput::Failed(failure) => self.connection_failed(now, id, failure),
            }
        }
    }

    /// A member fails when it loses its publishing connection or its last one; it survives the loss
    /// of one of several.
    fn connection_failed(&mut self, now: Instant, id: PeerId, failure: Failure) {
        if self.life.is_ending() || self.lost_media().is_some() {
            return;
        }
        let others = self.peers.iter().any(|(other, connection)| {
            *other != id && *other != PeerId::PUBLISHER && !connection.is_over()
        });
        if id == PeerId::PUBLISHER || !others {
            if self.is_present() && failure.reason == FailureReason::MediaLost {
                return self.life.enter(State::MediaLost { by: now + REASON_WITHIN, failure });
            }
            return self.part(now, Outcome::Failed(failure), false);
        }
        self.life.anomaly("connection", failure.to_string());
        self.life.push(Output::Close(Socket::Media.channel(id.0)));
        self.peers.remove(&id);
        self.tell(now, RoomInput::Lost(id));
    }

    fn close_peer(&mut self, now: Instant, id: PeerId) {
        let Some(connection) = self.peers.get_mut(&id) else { return };
        connection.close(now);
        self.drain(now, id);
        if self.peers.remove(&id).is_some() {
            self.life.push(Output::Close(Socket::Media.channel(id.0)));
        }
    }

    fn close_all(&mut self, now: Instant) {
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            self.close_peer(now, id);
        }
    }

    /// Closes the connections, and lets signalling sign off.
    fn part(&mut self, now: Instant, outcome: Outcome, others_follow: bool) {
        if self.life.is_ending() {
            return;
        }
        self.close_all(now);
        if self.life.leave(Some(now + self.options.timeouts.goodbye), outcome) {
            self.tell(now, RoomInput::Leave { others_follow });
        }
    }

    fn leave(&mut self, now: Instant, others_follow: bool) {
        let outcome = self.lost_media().unwrap_or_else(|| {
            if self.life.has_reached(Phase::DtlsConnected) {
                Outcome::Completed
            } else {
                Outcome::not_started("left before it was connected")
            }
        });
        self.part(now, outcome, others_follow);
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
        self.life.give_up_goodbye(now, |_| true);
        let failure = match self.life.live() {
            Some(State::Joining { by }) if now >= *by => {
                Failure::new(FailureReason::SignallingTimeout, "the room did not answer in time")
            }
            Some(State::MediaLost { by, failure }) if now >= *by => failure.clone(),
            _ => return,
        };
        self.part(now, Outcome::Failed(failure), false);
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let own = match self.life.live() {
            Some(State::Joining { by }) => Some((*by, "signalling overdue")),
            Some(State::Present) => {
                self.next_layer_request_at().map(|at| (at, "layer request due"))
            }
            Some(State::MediaLost { by, .. }) => {
                Some((*by, "signalling's reason for the lost media"))
            }
            None => self.life.next_timeout(),
        };
        let peers = self.peers.values().filter_map(Connection::next_deadline);
        let is_there = matches!(self.life.live(), Some(State::Joining { .. } | State::Present));
        let behaviour = self.behaviour.next_timeout().filter(|_| is_there);
        let all = peers.chain(own).chain(self.signalling.next_timeout()).chain(behaviour);
        all.min_by_key(|(at, _)| *at).unwrap_or((self.options.clock.at + NEVER, "nothing"))
    }
}

impl Participant for Member {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.life.is_over() {
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
                self.life.start(now, State::Joining { by: now + self.options.timeouts.signalling });
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
        self.life.pop().unwrap_or_else(|| {
            let (at, why) = self.next_deadline();
            Output::Timeout(at, why)
        })
    }

    fn receive_lag(&mut self, lag: Duration) {
        self.peers.values_mut().for_each(|connection| connection.receive_lag(lag));
    }

    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        // With one connection per sender, not all of them receive at the same time.
        self.peers.values().take(2).for_each(|connection| connection.prefetch(level, prefetcher));
    }
}
