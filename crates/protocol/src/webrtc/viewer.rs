//! The viewer: a participant that lets its signalling adapter agree with the server, connects, plays and leaves.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Failure, FailureReason, IceState, Observation, Outcome, Phase};
use throng_scenario::StunServer;

use self::relaying::Relaying;
use super::local_addresses::LocalAddresses;
use super::receiver::{Receiver, ReceiverOptions};
use super::reflexive::Gathering;
use super::session::{Negotiated, Session, SessionOutput};
use super::srtp::SessionKeys;
use crate::participant::{Channel, ChannelError, Input, Opening, Output, Participant, Transmit, Why};
use crate::signalling::{SIGNALLING, SignalInput, SignalOutput, Signalling};

mod negotiation;

mod deadlines;

mod ending;

mod relaying;

/// The channel of ICE, DTLS and media.
const MEDIA: Channel = Channel(1);
/// The channel to a relay that the server announced.
const RELAY: Channel = Channel(2);
/// Candidates that come before there is a session to take them; more are not kept.
const EARLY_CANDIDATES_MAX: usize = 64;

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
    pub timeouts: StepTimeouts,
    /// It tells the coded frames that it receives.
    pub is_tapped: bool,
    /// Media comes through a relay or not at all: no other candidate is gathered (RFC 8829 section 3.5.3).
    pub relay_only: bool,
    /// Whom it asks for its address as it is seen from outside.
    pub stun: Option<StunServer>,
}

/// How long a viewer waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTimeouts {
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

impl Default for StepTimeouts {
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
    /// Where our control packets go: from where authentic packets come.
    remote: Option<(Via, SocketAddr)>,
    /// The first deadline as it was when last everything was looked at; `None` since something other than media came.
    quiet_until: Option<(Instant, Why)>,
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
        /// The channel is open, and its candidates are being gathered.
        gathering: Option<Box<Gathering>>,
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
    /// Over a socket of our own, from the address named when it has several.
    Socket(Option<IpAddr>),
    /// Through the relay.
    Relay,
}

/// The transport of one peer connection.
struct Peer {
    session: Session,
    local_addresses: LocalAddresses,
    negotiated: Option<Negotiated>,
    timeout_at: Instant,
    /// The session is to be told the time at once: a new pair has checks to send, and the deadline that the session gave
    /// before says nothing of them.
    has_new_candidate: bool,
    consent_lost_at: Option<Instant>,
}

impl Peer {
    /// The local candidate to which a datagram came.
    fn own(&self, via: Via, relayed: Option<SocketAddr>) -> Option<SocketAddr> {
        match via {
            Via::Socket(local) => self.local_addresses.received_at(local),
            Via::Relay => relayed,
        }
    }

    /// The way of what leaves from `source`, a local candidate.
    fn leaves(&self, source: SocketAddr) -> Via {
        if self.local_addresses.has(source) {
            Via::Socket(self.local_addresses.leaves_from(source))
        } else {
            Via::Relay
        }
    }
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
            remote: None,
            quiet_until: None,
            outputs: VecDeque::new(),
        }
    }

    fn observe(&mut self, observation: Observation) {
        self.outputs.push_back(Output::Observed(observation));
    }

    fn anomaly(&mut self, place: &'static str, detail: impl Into<String>) {
        self.observe(Observation::ProtocolAnomaly { place, detail: detail.into() });
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
                SignalOutput::WantOffer => self.open_media(now, Wanted::Offer),
                SignalOutput::RemoteOffer(sdp) => self.remote_offer(now, sdp),
                SignalOutput::RemoteAnswer(sdp) => self.remote_answer(now, &sdp),
                SignalOutput::RemoteCandidate(candidate) => self.remote_candidate(now, candidate),
                SignalOutput::Relay(relay) => self.relay_announced(relay),
                SignalOutput::Refused(what, place) => self.observe(Observation::Refused(what, place)),
                SignalOutput::Anomaly(detail) => self.anomaly("signalling", detail),
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
                    let via = peer.leaves(source);
                    if classify(&bytes) == PacketKind::Dtls {
                        self.remote = Some((via, to));
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
        let dtls_by = now + self.options.timeouts.dtls;
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
            is_tapped: self.options.is_tapped,
            is_told: false,
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
                let first_media_by = now + self.options.timeouts.first_media;
                let direct = peer.session.direct_path();
                self.state = State::Playing { peer, receiver: Box::new(receiver), first_media_by };
                let path = match self.remote {
                    Some((Via::Relay, _)) => self.relaying.path().unwrap_or(direct),
                    _ => direct,
                };
                self.observe(Observation::Path(path));
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
            Via::Socket(from) => self.outputs.push_back(Output::Send(MEDIA, Transmit { to, from, bytes })),
            Via::Relay => self.send_relayed(now, to, &bytes),
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
    ) {
        // Nearly each comes from where the one before came from.
        let is_known = self.remote == Some((via, source));
        match (classify(bytes), &mut self.state) {
            (PacketKind::Rtp | PacketKind::Rtcp, State::Playing { peer, .. })
                if !is_known && !peer.session.is_from_peer(source) =>
            {
                if let Some(told) = peer.session.drop_unknown_source(source) {
                    self.quiet_until = None;
                    self.anomaly("source", told);
                }
            }
            (PacketKind::Rtp, State::Playing { receiver, peer, .. }) => {
                // What a relay adds is not counted: it is no rate that the media server chose.
                let ip_udp_bytes = if source.is_ipv4() { 28 } else { 48 };
                if receiver.rtp(arrived_at, ip_udp_bytes, bytes) && !is_known {
                    self.remote = Some((via, source));
                    peer.own(via, relayed).into_iter().for_each(|own| peer.session.media_at(own));
                }
            }
            (PacketKind::Rtcp, State::Playing { receiver, .. }) => {
                receiver.rtcp(arrived_at, bytes);
            }
            (
                PacketKind::Stun | PacketKind::Dtls,
                State::Connecting { peer, .. } | State::Playing { peer, .. },
            ) if (self.options.may_reach)(source.ip()) => {
                self.quiet_until = None;
                let Some(own) = peer.own(via, relayed) else { return };
                match peer.session.datagram(now, source, own, bytes) {
                    Ok(()) => self.drain_session(now),
                    Err(error) => self.fail_session(now, &error),
                }
            }
            (PacketKind::Stun, State::Opening { gathering: Some(gathering), .. }) => {
                if let Via::Socket(local) = via {
                    gathering.datagram(source, local, bytes);
                    self.gather(now);
                }
            }
            // Media before the keys, strangers, and what is of no protocol.
            _ => {}
        }
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
        if let Input::Datagram { channel: MEDIA, source, local, arrived_at, bytes } = input {
            return self.datagram(now, (Via::Socket(local), None), source, arrived_at, bytes);
        }
        self.quiet_until = None;
        match input {
            Input::Datagram { channel: RELAY, arrived_at, bytes, source, .. } => {
                self.relay_datagram(now, source, arrived_at, bytes);
            }
            Input::Bytes { channel: RELAY, bytes } => self.relay_bytes(now, bytes),
            Input::Opened { channel: RELAY, opening } => self.relay_opened(now, &opening),
            Input::Start { .. } => {
                self.started_at = Some(now);
                self.state = State::Joining { by: now + self.options.timeouts.signalling };
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
            Input::Leave { .. } => self.leave(now),
            // ExpectedMedia work is done when the outputs are drained.
            Input::Timeout => {}
            Input::Opened { .. } | Input::Datagram { .. } | Input::Bytes { .. } | Input::Message { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        let (at, why) = match self.media_only(now) {
            Some(deadline) => deadline,
            None => {
                if self.outputs.is_empty() {
                    self.tick(now);
                }
                if let Some(output) = self.outputs.pop_front() {
                    self.quiet_until = None;
                    return output;
                }
                *self.quiet_until.insert(self.next_deadline())
            }
        };
        // A deadline that has come and left nothing to do would spin the driver.
        Output::Timeout(at.max(now + Duration::from_millis(1)), why)
    }

    fn prefetch(&self) -> u64 {
        match &self.state {
            State::Playing { receiver, .. } => receiver.prefetch() ^ u64::from(self.remote.is_some()),
            _ => 0,
        }
    }
}
