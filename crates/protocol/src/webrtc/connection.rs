//! One peer connection: from a description to media that flows, in one direction or both. It knows no signalling. Its
//! transports are a UDP socket and, where there is one, a TURN relay.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Failure, FailureReason, IceState, Layer, MediaPath, Observation};

use self::relay::RelayState;
use self::tracks::sent;
use super::local_addresses::LocalAddresses;
use super::options::ParticipantOptions;
use super::receiver::Receiver;
use super::reflexive::Gathering;
use super::sender::{Ladder, Sender};
use super::session::{MediaToSend, Negotiated, Session, SessionError, SessionOutput};
use crate::participant::{Channel, Input, Open, Output, Transmit};
use crate::signalling::room::RoomStream;

mod deadlines;

mod negotiation;

mod relay;

mod tracks;

/// Candidates that come before there is a session to take them; more are not kept.
const EARLY_CANDIDATES_MAX: usize = 64;

/// What a connection is made for.
pub(super) struct ConnectionConfig {
    /// The number of its participant's connections that it has; its channels follow from it.
    pub(super) number: u16,
    pub(super) options: Arc<ParticipantOptions>,
    /// Seed of what is random in it.
    pub(super) seed: u64,
    /// When the participant began: intervals end on whole seconds after it.
    pub(super) joined_at: Instant,
    /// Tracks are numbered from here.
    pub(super) first_track: u16,
    /// A room's signalling says who sends what on it, and when. Otherwise whatever was negotiated is to come, and a
    /// connection without media fails.
    pub(super) in_room: bool,
}

/// A track that is to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Audio or video, and its simulcast layers.
    pub media: MediaToSend,
    /// For each layer (or the one stream without simulcast) the same picture at one or more rates.
    pub ladders: Vec<Ladder>,
    /// How far into the loop to begin.
    pub offset: Duration,
    /// Less is sent when the peer or the path allow less.
    pub adapts: bool,
}

/// What a connection wants or reports.
#[derive(Debug)]
pub(super) enum ConnectionOutput {
    /// For the driver: open, send on or close one of its channels.
    Driver(Output),
    /// Our offer, with the candidates that we have.
    Offer(String),
    /// Our answer, likewise.
    Answer(String),
    /// A candidate of ours that was found after the description.
    Candidate(String),
    /// No more candidates of ours follow.
    CandidatesDone,
    /// Offer and answer are exchanged.
    Negotiated,
    /// ICE works.
    IceConnected,
    /// The keys are there; media may flow, this way.
    Connected(MediaPath),
    /// Something was observed.
    Observed(Observation),
    /// It cannot be, or no longer. It is closed.
    Failed(Failure),
}

/// A channel of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    /// The UDP socket of ICE, DTLS and media.
    Media = 1,
    /// To the TURN server.
    Relay = 2,
}

impl Socket {
    /// The channel of this socket of a participant's connection.
    pub(super) fn channel(self, connection: u16) -> Channel {
        Channel(connection.saturating_mul(2).saturating_add(self as u16))
    }

    /// Of which connection, and which of its sockets, a channel is; `None` for signalling's.
    pub(super) fn of(channel: Channel) -> Option<(u16, Self)> {
        let at = channel.0.checked_sub(1)?;
        Some((at / 2, if at % 2 == 0 { Self::Media } else { Self::Relay }))
    }
}

/// A peer connection.
pub(super) struct Connection {
    config: ConnectionConfig,
    /// The signalling server's address, once known.
    server: Option<SocketAddr>,
    outgoing: Vec<Outgoing>,
    /// The senders of the streams, by media section.
    streams: Vec<RoomStream>,
    /// The layer that was asked for last.
    wanted_layer: Option<Layer>,
    state: State,
    transport: Transport,
    /// Signalling knows that no more candidates of ours come.
    candidates_done: bool,
    /// Where our packets go, and how: as authentic packets or DTLS come.
    remote: Option<(Via, SocketAddr)>,
}

/// What datagrams leave by.
struct Transport {
    /// The connection's number.
    number: u16,
    relay: RelayState,
    outputs: VecDeque<ConnectionOutput>,
}

enum State {
    Idle,
    Opening {
        by: Instant,
        wanted: Wanted,
        candidates: Vec<String>,
        /// The socket is open, and its candidates are being gathered.
        gathering: Option<Box<Gathering>>,
    },
    Connecting {
        peer: Box<Peer>,
        by: Instant,
        step: Step,
    },
    Playing {
        peer: Box<Peer>,
        receiver: Box<Receiver>,
        sender: Option<Box<Sender>>,
        since: Instant,
        next_interval_at: Instant,
    },
    Over,
}

enum Wanted {
    Offer,
    AnswerTo(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Answer,
    Ice,
    Dtls,
}

/// How datagrams travel between us and the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Via {
    /// Over the media socket, from the address named when it has several.
    Socket(Option<IpAddr>),
    /// Through the relay.
    Relay,
}

struct Peer {
    session: Session,
    addresses: LocalAddresses,
    negotiated: Option<Negotiated>,
    timeout_at: Instant,
    /// The session is to be told the time at once: a new pair has checks to send, and the deadline that the session gave
    /// before says nothing of them.
    check_at: Option<Instant>,
    consent_lost_at: Option<Instant>,
}

impl Peer {
    fn due_at(&self) -> Instant {
        self.check_at.unwrap_or(self.timeout_at)
    }

    /// The local candidate to which a datagram came; through the relay, `relayed`.
    fn received_at(&self, via: Via, relayed: Option<SocketAddr>) -> Option<SocketAddr> {
        match via {
            Via::Socket(local) => self.addresses.received_at(local),
            Via::Relay => relayed,
        }
    }

    /// How a datagram from `source`, a local candidate, leaves.
    fn leaves_from(&self, source: SocketAddr) -> Via {
        if self.addresses.has(source) { Via::Socket(self.addresses.leaves_from(source)) } else { Via::Relay }
    }
}

impl Transport {
    /// Sends a datagram to the peer.
    fn send(&mut self, now: Instant, (via, to): (Via, SocketAddr), bytes: Vec<u8>) {
        match via {
            Via::Socket(from) => self.send_on(Socket::Media, Transmit { to, from, bytes }),
            Via::Relay => {
                // Until the relay lets the peer through, ICE repeats what is dropped here.
                if let Some((server, bytes)) = self.relay.wrap(now, to, &bytes) {
                    self.send_on(Socket::Relay, Transmit { to: server, from: None, bytes });
                }
            }
        }
    }

    fn send_on(&mut self, socket: Socket, transmit: Transmit) {
        self.drive(Output::Send(socket.channel(self.number), transmit));
    }

    fn open(&mut self, socket: Socket, open: Open) {
        self.drive(Output::Open(socket.channel(self.number), open));
    }

    fn close_relay(&mut self) {
        self.drive(Output::Close(Socket::Relay.channel(self.number)));
    }

    fn drive(&mut self, output: Output) {
        self.outputs.push_back(ConnectionOutput::Driver(output));
    }
}

impl Connection {
    /// A connection that sends `outgoing`, or receives when that is empty.
    pub(super) fn new(config: ConnectionConfig, outgoing: Vec<Outgoing>) -> Self {
        let transport =
            Transport { number: config.number, relay: RelayState::default(), outputs: VecDeque::new() };
        Self {
            server: config.options.toward,
            config,
            outgoing,
            streams: Vec::new(),
            wanted_layer: None,
            state: State::Idle,
            transport,
            candidates_done: false,
            remote: None,
        }
    }

    /// The participant began at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        self.config.joined_at = now;
    }

    /// Signalling's connection leads to this address.
    pub(super) fn set_server(&mut self, server: Option<SocketAddr>) {
        self.server = server.or(self.server);
    }

    pub(super) fn poll_output(&mut self) -> Option<ConnectionOutput> {
        self.transport.outputs.pop_front()
    }

    pub(super) fn has_output(&self) -> bool {
        !self.transport.outputs.is_empty()
    }

    /// Media keys are known, and the connection goes on.
    pub(super) fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn sends_only(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Takes in what came on one of its channels. `true` when it was media: then no deadlines moved but those of media.
    #[inline]
    pub(super) fn handle(&mut self, now: Instant, socket: Socket, input: Input<'_>) -> bool {
        match (socket, input) {
            (Socket::Media, Input::Datagram { source, local, arrived_at, bytes, .. }) => {
                return self.datagram(now, (Via::Socket(local), None), source, arrived_at, bytes);
            }
            (Socket::Relay, Input::Datagram { source, arrived_at, bytes, .. }) => {
                self.relay_datagram(now, source, arrived_at, bytes);
            }
            (Socket::Relay, Input::Bytes { bytes, .. }) => self.relay_bytes(now, bytes),
            (Socket::Media, Input::Opened { opening, .. }) => self.media_opened(now, opening.addresses()),
            (Socket::Relay, Input::Opened { opening, .. }) => self.relay_opened(now, &opening),
            (Socket::Media, Input::Closed { why, .. }) => {
                let failure = Failure::from(why);
                self.fail(now, failure.reason, &format!("media socket: {}", failure.detail));
            }
            (Socket::Relay, Input::Closed { why, .. }) => self.relay_closed(now, &why.to_string()),
            _ => {}
        }
        false
    }

    fn drain(&mut self, now: Instant) {
        loop {
            let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
                return;
            };
            match peer.session.poll_output() {
                Ok(SessionOutput::Timeout(at)) => return peer.timeout_at = at,
                Ok(SessionOutput::Transmit { source, to, bytes }) => {
                    let via = peer.leaves_from(source);
                    if classify(&bytes) == PacketKind::Dtls {
                        self.remote = Some((via, to));
                    }
                    self.transport.send(now, (via, to), bytes);
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
        match &mut self.state {
            State::Connecting { by, step, .. } if state == IceState::Connected && *step != Step::Dtls => {
                (*by, *step) = (now + self.config.options.timeouts.dtls, Step::Dtls);
                self.transport.outputs.push_back(ConnectionOutput::IceConnected);
            }
            State::Playing { peer, .. } => {
                peer.consent_lost_at = (state == IceState::Disconnected).then_some(now);
            }
            _ => {}
        }
    }

    /// Takes in a datagram that `source` sent to us, to the address `relayed` if by a relay; the media path of every packet.
    #[inline]
    fn datagram(
        &mut self,
        now: Instant,
        (via, relayed): (Via, Option<SocketAddr>),
        source: SocketAddr,
        arrived_at: Instant,
        bytes: &mut [u8],
    ) -> bool {
        // Nearly each comes from where the one before came from.
        let is_known = self.remote == Some((via, source));
        match (classify(bytes), &mut self.state) {
            (PacketKind::Rtp | PacketKind::Rtcp, State::Playing { peer, .. })
                if !is_known && !peer.session.is_from_peer(source) =>
            {
                if let Some(detail) = peer.session.drop_unknown_source(source) {
                    self.anomaly("source", detail);
                }
            }
            (PacketKind::Rtp, State::Playing { receiver, peer, .. }) => {
                // What a relay adds is not counted: it is no rate that the media server chose.
                let ip_udp_bytes = if source.is_ipv4() { 28 } else { 48 };
                if receiver.rtp(arrived_at, ip_udp_bytes, bytes) && !is_known {
                    self.remote = Some((via, source));
                    let local = peer.received_at(via, relayed);
                    local.into_iter().for_each(|local| peer.session.media_at(local));
                }
                if self.config.options.is_tapped && receiver.has_observed() {
                    self.take_observed(); // frames are worth little when they come late
                }
            }
            (PacketKind::Rtcp, State::Playing { receiver, sender, .. }) => {
                match sender {
                    Some(sender) => sender.rtcp(arrived_at, bytes),
                    None => receiver.rtcp(arrived_at, bytes),
                };
            }
            (
                PacketKind::Stun | PacketKind::Dtls,
                State::Connecting { peer, .. } | State::Playing { peer, .. },
            ) if (self.config.options.may_reach)(source.ip()) => {
                let Some(local) = peer.received_at(via, relayed) else { return false };
                match peer.session.datagram(now, source, local, bytes) {
                    Ok(()) => self.drain(now),
                    Err(error) => self.fail_session(now, &error),
                }
                return false;
            }
            (PacketKind::Stun, State::Opening { gathering: Some(gathering), .. }) => {
                if let Via::Socket(local) = via {
                    gathering.datagram(source, local, bytes);
                    self.gather(now);
                }
                return false;
            }
            // Media before the keys, other sources, and what is of no protocol.
            _ => {}
        }
        true
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self) -> u64 {
        match &self.state {
            State::Playing { sender: Some(sender), .. } => sender.prefetch(),
            State::Playing { receiver, .. } => receiver.prefetch() ^ u64::from(self.remote.is_some()),
            _ => 0,
        }
    }

    /// Says goodbye to the peer, gives the relay back, and is over.
    pub(super) fn close(&mut self, now: Instant) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Playing { peer, mut receiver, sender, .. } => {
                let goodbye = match sender {
                    Some(mut sender) => {
                        self.transport.outputs.extend(sent(&mut sender, now));
                        sender.goodbye()
                    }
                    None => receiver.goodbye(),
                };
                if let Some((bytes, remote)) = goodbye.zip(self.remote) {
                    self.transport.send(now, remote, bytes);
                }
                receiver.finish(now);
                self.transport.outputs.extend(receiver.take_observed().map(ConnectionOutput::Observed));
                self.close_session(now, *peer);
            }
            State::Connecting { peer, .. } => self.close_session(now, *peer),
            _ => {}
        }
        self.leave_relay(now);
    }

    fn close_session(&mut self, now: Instant, mut peer: Peer) {
        peer.session.close();
        while let Ok(SessionOutput::Transmit { source, to, bytes }) = peer.session.poll_output() {
            self.transport.send(now, (peer.leaves_from(source), to), bytes);
        }
    }

    fn observe(&mut self, observation: Observation) {
        self.transport.outputs.push_back(ConnectionOutput::Observed(observation));
    }

    fn anomaly(&mut self, place: &'static str, detail: impl Into<String>) {
        self.observe(Observation::ProtocolAnomaly { place, detail: detail.into() });
    }

    fn fail(&mut self, now: Instant, reason: FailureReason, detail: &str) {
        if !self.is_over() {
            self.close(now);
            self.transport.outputs.push_back(ConnectionOutput::Failed(Failure::new(reason, detail)));
        }
    }

    fn fail_session(&mut self, now: Instant, error: &SessionError) {
        let reason = match error {
            SessionError::Crypto(_) => FailureReason::Generator,
            SessionError::Sdp(_) | SessionError::Candidate(_) | SessionError::Order(_) => {
                FailureReason::Protocol
            }
            SessionError::Transport(_) if self.is_playing() => FailureReason::MediaLost,
            SessionError::Transport(_) => FailureReason::Dtls,
        };
        self.fail(now, reason, &error.to_string());
    }
}
