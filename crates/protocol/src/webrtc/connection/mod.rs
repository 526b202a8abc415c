//! One peer connection: from a description to flowing media, in one direction or both. Independent
//! of signalling. Its transports are a UDP socket and, optionally, a TURN relay.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Detail, Failure, FailureReason, IceState, Layer, MediaPath, Observation};
use throng_scenario::IpProtocol;

use self::relay::RelayState;
use self::senders::Senders;
use self::tracks::sent;
use super::local_addresses::LocalAddresses;
use super::options::ParticipantOptions;
use super::receiver::Receiver;
use super::reflexive::Gathering;
use super::sender::{Ladder, Sender};
use super::session::{MediaToSend, Negotiated, Session, SessionError, SessionOutput};
use crate::participant::{Channel, Input, Open, Output, Transmit};

mod deadlines;

mod negotiation;

mod relay;

mod senders;

mod tracks;

/// How many candidates are kept that arrive before the session exists.
const EARLY_CANDIDATES_MAX: usize = 64;

/// The purpose and settings of a connection.
pub(super) struct ConnectionConfig {
    /// Its number within the participant; its channels are derived from it.
    pub(super) number: u16,
    pub(super) options: Arc<ParticipantOptions>,
    /// Seed of its random values.
    pub(super) seed: u64,
    /// When the participant began: intervals end on whole seconds after it.
    pub(super) joined_at: Instant,
    /// The first track number.
    pub(super) first_track: u16,
    /// A room's signalling reports which participant sends what on it, and when. Otherwise
    /// everything negotiated is expected, and a connection without media fails.
    pub(super) in_room: bool,
}

/// A track to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Audio or video, and its simulcast layers.
    pub media: MediaToSend,
    /// For each layer (or the one stream without simulcast) the same video at one or more rates.
    pub ladders: Vec<Ladder>,
    /// The start position within the loop.
    pub offset: Duration,
    /// Whether the rate is reduced when the peer or the path requires it.
    pub adapts: bool,
}

/// A request or report of a connection.
#[derive(Debug)]
pub(super) enum ConnectionOutput {
    /// For the driver: open, send on or close one of its channels.
    Driver(Output),
    /// The local offer, with the candidates gathered so far.
    Offer(String),
    /// The local answer, likewise.
    Answer(String),
    /// A local candidate that was found after the description.
    Candidate(String),
    /// No more local candidates follow.
    CandidatesDone,
    /// Offer and answer are exchanged.
    Negotiated,
    /// ICE is connected.
    IceConnected,
    /// DTLS is connected; media may flow, over this path.
    Connected(MediaPath),
    /// An observation for the collector.
    Observed(Observation),
    /// The connection failed and is closed.
    Failed(Failure),
}

/// A channel of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    /// The UDP socket of ICE, DTLS and media.
    Media = 1,
    /// The channel to the TURN server.
    Relay = 2,
}

impl Socket {
    /// The channel of this socket of connection `connection`.
    pub(super) fn channel(self, connection: u16) -> Channel {
        Channel(connection.saturating_mul(2).saturating_add(self as u16))
    }

    /// The connection and socket of a channel; `None` for that of signalling.
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
    senders: Senders,
    /// The layer that was requested last.
    wanted_layer: Option<Layer>,
    state: State,
    transport: Transport,
    /// Whether end-of-candidates was signalled.
    candidates_done: bool,
    /// The path and address for outgoing packets; follows authentic packets and DTLS from the peer.
    remote: Option<(Via, SocketAddr)>,
}

/// The sockets and paths of outgoing datagrams.
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

/// The path of datagrams between this side and the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Via {
    /// Over the media socket; with the local address when it has several.
    Socket(Option<IpAddr>),
    /// Through the relay.
    Relay,
}

struct Peer {
    session: Session,
    addresses: LocalAddresses,
    negotiated: Option<Negotiated>,
    timeout_at: Instant,
    /// Pass the time to the session immediately: a new pair has checks to send, which the session's
    /// last deadline did not include.
    check_at: Option<Instant>,
    consent_lost_at: Option<Instant>,
}

impl Peer {
    fn due_at(&self) -> Instant {
        self.check_at.unwrap_or(self.timeout_at)
    }

    /// The local candidate that received a datagram; for the relay, `relayed`.
    fn received_at(&self, via: Via, relayed: Option<SocketAddr>) -> Option<SocketAddr> {
        match via {
            Via::Socket(local) => self.addresses.received_at(local),
            Via::Relay => relayed,
        }
    }

    /// The path of a datagram from `source`, a local candidate.
    fn leaves_from(&self, source: SocketAddr) -> Via {
        if self.addresses.has(source) {
            Via::Socket(self.addresses.leaves_from(source))
        } else {
            Via::Relay
        }
    }
}

impl Transport {
    /// Sends a datagram to the peer.
    fn send(&mut self, now: Instant, (via, to): (Via, SocketAddr), bytes: Vec<u8>) {
        match via {
            Via::Socket(from) => self.send_on(Socket::Media, Transmit { to, from, bytes }),
            Via::Relay => {
                // ICE repeats checks that are dropped here before the relay permits the peer.
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
        let transport = Transport {
            number: config.number,
            relay: RelayState::default(),
            outputs: VecDeque::new(),
        };
        Self {
            server: config.options.toward,
            config,
            outgoing,
            senders: Senders::default(),
            wanted_layer: None,
            state: State::Idle,
            transport,
            candidates_done: false,
            remote: None,
        }
    }

    /// The participant started at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        self.config.joined_at = now;
    }

    /// Sets the address that signalling is connected to.
    pub(super) fn set_server(&mut self, server: Option<SocketAddr>) {
        self.server = server.or(self.server);
    }

    pub(super) fn poll_output(&mut self) -> Option<ConnectionOutput> {
        self.transport.outputs.pop_front()
    }

    pub(super) fn has_output(&self) -> bool {
        !self.transport.outputs.is_empty()
    }

    /// Whether the media keys are known and the connection is not closed.
    pub(super) fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn sends_only(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Handles input of one of its channels. Returns `true` for media: only media deadlines have
    /// changed then.
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
            (Socket::Media, Input::Opened { opening, .. }) => {
                self.media_opened(now, opening.addresses());
            }
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
            let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state
            else {
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
            State::Connecting { by, step, .. }
                if state == IceState::Connected && *step != Step::Dtls =>
            {
                (*by, *step) = (now + self.config.options.timeouts.dtls, Step::Dtls);
                self.transport.outputs.push_back(ConnectionOutput::IceConnected);
            }
            State::Playing { peer, .. } => {
                peer.consent_lost_at = (state == IceState::Disconnected).then_some(now);
            }
            _ => {}
        }
    }

    /// Handles a datagram that `source` sent, to the address `relayed` if through a relay; the hot
    /// path of all packets.
    #[inline]
    fn datagram(
        &mut self,
        now: Instant,
        (via, relayed): (Via, Option<SocketAddr>),
        source: SocketAddr,
        arrived_at: Instant,
        bytes: &mut [u8],
    ) -> bool {
        // Most packets come from the same address as the one before.
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
                // The relay's overhead is not counted: the media server does not choose it.
                let ip_udp_bytes = if source.is_ipv4() { 28 } else { 48 };
                if receiver.rtp(arrived_at, ip_udp_bytes, bytes) && !is_known {
                    self.remote = Some((via, source));
                    let local = peer.received_at(via, relayed);
                    local.into_iter().for_each(|local| peer.session.media_at(local));
                }
                if receiver.has_observed() && self.config.options.is_tapped {
                    self.take_observed(); // frames must be reported without delay
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
            ) if (self.config.options.may_reach)(IpProtocol::Udp, source) => {
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
            // Media before the keys, other sources, and unknown protocols.
            _ => {}
        }
        true
    }

    /// See [`crate::participant::Participant::receive_lag`].
    pub(super) fn receive_lag(&mut self, lag: Duration) {
        if let State::Playing { receiver, .. } = &mut self.state {
            receiver.receive_lag(lag);
        }
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match (level.checked_sub(1), &self.state) {
            (None, State::Playing { sender: Some(sender), .. }) => prefetcher.value(&**sender),
            (None, State::Playing { receiver, .. }) => prefetcher.value(&**receiver),
            (Some(level), State::Playing { sender: Some(sender), .. }) => {
                sender.prefetch(level, prefetcher);
            }
            (Some(level), State::Playing { receiver, .. }) => receiver.prefetch(level, prefetcher),
            _ => {}
        }
    }

    /// Sends BYE to the peer, releases the relay, and closes.
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
                self.transport
                    .outputs
                    .extend(receiver.take_observed().map(ConnectionOutput::Observed));
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

    fn anomaly(&mut self, place: &'static str, detail: impl Into<Detail>) {
        self.observe(Observation::ProtocolAnomaly { place, detail: detail.into() });
    }

    fn fail(&mut self, now: Instant, reason: FailureReason, detail: &str) {
        if !self.is_over() {
            self.close(now);
            self.transport
                .outputs
                .push_back(ConnectionOutput::Failed(Failure::new(reason, detail)));
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
