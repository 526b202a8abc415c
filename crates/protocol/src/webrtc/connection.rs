//! One peer connection of a participant that has several: from a description to media that flows, in one direction or
//! both. It opens one socket and knows nothing of signalling.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{
    Failure, FailureReason, IceState, Layer, MediaKind, MediaPath, Observation, TrackId,
};

use super::local_addresses::LocalAddresses;
use super::receiver::{Receiver, next_second};
use super::reflexive::{Gathering, WAITS_FOR};
use super::sender::{Ladder, Sender};
use super::session::{MediaToSend, Negotiated, Session, SessionError, SessionOutput};
use super::viewer::{MayReach, StepTimeouts};
use crate::participant::{Open, Transmit, Why};
use crate::signalling::room::RoomStream;

mod negotiation;

/// Candidates that come before there is a session to take them; more are not kept.
const EARLY_CANDIDATES_MAX: usize = 64;

/// What all connections of a participant share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) may_reach: MayReach,
    pub(super) clock: WallClock,
    pub(super) timeouts: StepTimeouts,
    pub(super) seed: u64,
    /// When the participant began: intervals end on whole seconds after it.
    pub(super) joined_at: Instant,
    /// Coded frames are told too.
    pub(super) is_tapped: bool,
    /// The STUN server to ask.
    pub(super) stun: Option<SocketAddr>,
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

/// What a connection wants or tells.
#[derive(Debug)]
pub(super) enum ConnectionOutput {
    /// Open its socket.
    Open(Open),
    /// Send a datagram.
    Send(Transmit),
    /// Our offer, with the candidates that we have.
    Offer(String),
    /// Our answer, likewise.
    Answer(String),
    /// Offer and answer are exchanged.
    Negotiated,
    /// ICE works.
    IceConnected,
    /// The keys are there; media may flow, this way.
    Connected(MediaPath),
    /// Something was seen.
    Observed(Observation),
    /// It cannot be, or no longer.
    Failed(Failure),
}

/// A peer connection.
pub(super) struct Connection {
    shared: Shared,
    first_track: u16,
    outgoing: Vec<Outgoing>,
    /// Who sends what, by media section.
    streams: Vec<RoomStream>,
    /// The layer that was asked for last.
    wanted_layer: Option<Layer>,
    /// Nothing is expected to arrive but control.
    sends_only: bool,
    state: State,
    /// Where our packets go, and from which address of ours: as authentic packets or DTLS come.
    remote: Option<Route>,
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

/// The way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    /// Which address of ours, where the socket has several.
    local: Option<IpAddr>,
    remote: SocketAddr,
}

impl Route {
    fn send(self, bytes: Vec<u8>) -> ConnectionOutput {
        ConnectionOutput::Send(Transmit { to: self.remote, from: self.local, bytes })
    }
}

struct Peer {
    session: Session,
    local_addresses: LocalAddresses,
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
}

impl Connection {
    /// A connection that sends `outgoing`, or receives when that is empty. Tracks are numbered from `first_track`.
    pub(super) fn new(shared: Shared, outgoing: Vec<Outgoing>, first_track: u16) -> Self {
        let sends_only = !outgoing.is_empty();
        let (remote, outputs) = (None, VecDeque::new());
        Self {
            shared,
            first_track,
            outgoing,
            streams: Vec::new(),
            wanted_layer: None,
            sends_only,
            state: State::Idle,
            remote,
            outputs,
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<ConnectionOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// What the peer sends on it from here on.
    pub(super) fn streams(&mut self, now: Instant, streams: Vec<RoomStream>) {
        let before = std::mem::replace(&mut self.streams, streams);
        let State::Playing { receiver, .. } = &mut self.state else { return };
        receiver.sent_in(&self.streams, &before, now);
        let known: Vec<_> = receiver.track_ids().collect();
        for track in &known {
            let sender = |streams: &[RoomStream], mid: &str| {
                streams.iter().find(|stream| stream.mid == mid).and_then(|stream| stream.from.clone())
            };
            let Some(mid) = receiver.mid_of(*track) else { continue };
            let (was, is) = (sender(&before, mid), sender(&self.streams, mid));
            if was != is {
                receiver.sender_changed(*track, was.is_some(), is.is_some(), now);
            }
        }
        // What the sender before did is told as theirs.
        self.outputs.extend(receiver.take_observed().map(ConnectionOutput::Observed));
        known.into_iter().for_each(|track| self.tell_whose(track));
    }

    /// It speaks from here on, or is silent.
    pub(super) fn set_talking(&mut self, is_talking: bool) {
        if let State::Playing { sender: Some(sender), .. } = &mut self.state {
            sender.set_talking(is_talking);
        }
    }

    /// It sends a kind no more, or again.
    pub(super) fn set_muted(&mut self, kind: MediaKind, is_muted: bool) {
        if let State::Playing { sender: Some(sender), .. } = &mut self.state {
            sender.set_muted(kind, is_muted);
        }
    }

    /// Its picture is another from here on.
    pub(super) fn show(&mut self, ladder: &Ladder) {
        if let State::Playing { sender: Some(sender), .. } = &mut self.state {
            sender.show(ladder);
        }
    }

    /// Says whose a track is.
    fn tell_whose(&mut self, track: TrackId) {
        let State::Playing { receiver, .. } = &mut self.state else { return };
        let Some(mid) = receiver.mid_of(track) else { return };
        let stream = self.streams.iter().find(|stream| stream.mid == mid);
        let from = stream.and_then(|stream| stream.from.clone());
        if let Some(stream) = stream {
            receiver.layers_of(track, &stream.layers, stream.tells_layers);
        }
        self.observe(Observation::TrackFrom { track, from });
    }

    /// Another layer was asked for of what it receives.
    pub(super) fn layer_asked(&mut self, now: Instant, layer: Layer) {
        self.wanted_layer = Some(layer);
        if let State::Playing { receiver, .. } = &mut self.state {
            receiver.layer_asked(now, layer);
        }
    }

    /// The server forwards another layer of what a section brings.
    pub(super) fn layer_sent(&mut self, now: Instant, mid: &str, layer: Layer) {
        if let State::Playing { receiver, .. } = &mut self.state {
            receiver.layer_sent(now, mid, layer);
        }
    }

    fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn drain(&mut self, now: Instant) {
        loop {
            let (State::Connecting { peer, .. } | State::Playing { peer, .. }) = &mut self.state else {
                return;
            };
            match peer.session.poll_output() {
                Ok(SessionOutput::Timeout(at)) => return peer.timeout_at = at,
                Ok(SessionOutput::Transmit { source, to, bytes }) => {
                    let way = Route { local: peer.local_addresses.leaves_from(source), remote: to };
                    if classify(&bytes) == PacketKind::Dtls {
                        self.remote = Some(way);
                    }
                    self.outputs.push_back(way.send(bytes));
                }
                Ok(SessionOutput::Ice(state)) => self.ice_changed(now, state),
                Ok(SessionOutput::Connected(keys)) => self.play(now, &keys),
                Ok(SessionOutput::ClosedByPeer) => {
                    return self.fail(FailureReason::MediaLost, "the server closed DTLS");
                }
                Err(error) => return self.fail_session(&error),
            }
        }
    }

    fn ice_changed(&mut self, now: Instant, state: IceState) {
        self.observe(Observation::Ice(state));
        match &mut self.state {
            State::Connecting { by, step, .. } if state == IceState::Connected && *step != Step::Dtls => {
                (*by, *step) = (now + self.shared.timeouts.dtls, Step::Dtls);
                self.outputs.push_back(ConnectionOutput::IceConnected);
            }
            State::Playing { peer, .. } => {
                peer.consent_lost_at = (state == IceState::Disconnected).then_some(now);
            }
            _ => {}
        }
    }

    /// Takes in a datagram; the media path of every packet.
    pub(super) fn datagram(
        &mut self,
        now: Instant,
        (source, local): (SocketAddr, Option<IpAddr>),
        arrived_at: Instant,
        bytes: &mut [u8],
    ) {
        let way = Route { local, remote: source };
        // Nearly each comes from where the one before came from.
        let is_known = self.remote == Some(way);
        match (classify(bytes), &mut self.state) {
            (PacketKind::Rtp | PacketKind::Rtcp, State::Playing { peer, .. })
                if !is_known && !peer.session.is_from_peer(source) =>
            {
                if let Some(detail) = peer.session.drop_unknown_source(source) {
                    self.observe(Observation::ProtocolAnomaly { place: "source", detail });
                }
            }
            (PacketKind::Rtp, State::Playing { receiver, peer, .. }) => {
                let ip_udp_bytes = if source.is_ipv4() { 28 } else { 48 };
                if receiver.rtp(arrived_at, ip_udp_bytes, bytes) && !is_known {
                    self.remote = Some(way);
                    peer.local_addresses
                        .received_at(local)
                        .into_iter()
                        .for_each(|own| peer.session.media_at(own));
                }
                if self.shared.is_tapped && receiver.has_observed() {
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
            ) if (self.shared.may_reach)(source.ip()) => {
                let Some(own) = peer.local_addresses.received_at(local) else { return };
                match peer.session.datagram(now, source, own, bytes) {
                    Ok(()) => self.drain(now),
                    Err(error) => self.fail_session(&error),
                }
            }
            (PacketKind::Stun, State::Opening { gathering: Some(gathering), .. }) => {
                gathering.datagram(source, local, bytes);
                self.gather(now);
            }
            // Media before the keys, strangers, and what is of no protocol.
            _ => {}
        }
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self) -> u64 {
        match &self.state {
            State::Playing { sender: Some(sender), .. } => sender.prefetch(),
            State::Playing { receiver, .. } => receiver.prefetch(),
            _ => 0,
        }
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        self.gather(now);
        if let State::Connecting { peer, .. } | State::Playing { peer, .. } = &mut self.state
            && now >= peer.due_at()
        {
            peer.check_at = None;
            match peer.session.timeout(now) {
                Ok(()) => self.drain(now),
                Err(error) => self.fail_session(&error),
            }
        }
        self.tick_media(now);
        if let Some((at, reason, what)) = self.own_deadline()
            && now >= at
        {
            let detail = match &self.state {
                State::Connecting { peer, .. } | State::Playing { peer, .. } => peer.session.explain(what),
                _ => what.to_owned(),
            };
            self.fail(reason, &detail);
        }
    }

    fn tick_media(&mut self, now: Instant) {
        let State::Playing { receiver, sender, next_interval_at, .. } = &mut self.state else { return };
        if let Some(sender) = sender {
            if now >= *next_interval_at {
                *next_interval_at = next_second(*next_interval_at, now);
                self.outputs.extend(sent(sender, now));
            }
            sender.timeout(now);
            while let Some((bytes, way)) = self.remote.and_then(|way| Some((sender.poll_packet(now)?, way))) {
                self.outputs.push_back(way.send(bytes));
            }
        } else if now >= receiver.next_timeout() {
            while let Some((bytes, way)) = receiver.poll_feedback(now).zip(self.remote) {
                self.outputs.push_back(way.send(bytes));
            }
            receiver.timeout(now);
        }
        self.take_observed();
    }

    fn take_observed(&mut self) {
        let State::Playing { receiver, .. } = &mut self.state else { return };
        if !receiver.has_observed() {
            return;
        }
        let observed: Vec<_> = receiver.take_observed().collect();
        for observation in observed {
            let opened = match &observation {
                Observation::TrackOpened { track, .. } => Some(*track),
                _ => None,
            };
            self.observe(observation);
            if let Some(track) = opened {
                self.tell_whose(track);
            }
        }
    }

    /// Until when it waits for what, and what it means when that does not come.
    fn own_deadline(&self) -> Option<(Instant, FailureReason, Why)> {
        let timeouts = &self.shared.timeouts;
        match &self.state {
            State::Idle | State::Over => None,
            State::Opening { by, .. } => {
                Some((*by, FailureReason::Generator, "the media socket did not open"))
            }
            State::Connecting { by, step, .. } => Some(match step {
                Step::Answer => (*by, FailureReason::SignallingTimeout, "no answer to our offer in time"),
                Step::Ice => (*by, FailureReason::Ice, "no candidate pair worked in time"),
                Step::Dtls => (*by, FailureReason::Dtls, "no DTLS handshake in time"),
            }),
            State::Playing { peer, .. } => {
                let lost = peer.consent_lost_at?;
                Some((lost + timeouts.consent, FailureReason::MediaLost, "ICE consent was lost"))
            }
        }
    }

    /// The next moment to call [`Self::tick`], and why.
    pub(super) fn next_deadline(&self) -> Option<(Instant, Why)> {
        let own = self.own_deadline().map(|(at, _, why)| (at, why));
        let (session, media) = match &self.state {
            State::Opening { gathering: Some(gathering), .. } => {
                (gathering.next_timeout().map(|at| (at, WAITS_FOR)), None)
            }
            State::Connecting { peer, .. } => (Some((peer.due_at(), "ICE and DTLS")), None),
            State::Playing { peer, receiver, sender, next_interval_at } => {
                let media = match sender {
                    Some(sender) => {
                        let own = sender.next_timeout();
                        if *next_interval_at < own.0 { (*next_interval_at, "interval over") } else { own }
                    }
                    None => (receiver.next_timeout(), "reports and meters"),
                };
                (Some((peer.due_at(), "ICE and DTLS")), Some(media))
            }
            _ => (None, None),
        };
        [own, session, media].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Says goodbye and is over.
    pub(super) fn close(&mut self, now: Instant) {
        let state = std::mem::replace(&mut self.state, State::Over);
        let mut peer = match state {
            State::Playing { peer, mut receiver, sender, .. } => {
                let goodbye = match sender {
                    Some(mut sender) => {
                        self.outputs.extend(sent(&mut sender, now));
                        sender.goodbye()
                    }
                    None => receiver.goodbye(),
                };
                if let Some((bytes, way)) = goodbye.zip(self.remote) {
                    self.outputs.push_back(way.send(bytes));
                }
                receiver.finish(now);
                self.outputs.extend(receiver.take_observed().map(ConnectionOutput::Observed));
                peer
            }
            State::Connecting { peer, .. } => peer,
            _ => return,
        };
        peer.session.close();
        while let Ok(SessionOutput::Transmit { source, to, bytes }) = peer.session.poll_output() {
            let way = Route { local: peer.local_addresses.leaves_from(source), remote: to };
            self.outputs.push_back(way.send(bytes));
        }
    }

    fn observe(&mut self, observation: Observation) {
        self.outputs.push_back(ConnectionOutput::Observed(observation));
    }

    fn fail(&mut self, reason: FailureReason, detail: &str) {
        self.state = State::Over;
        self.outputs.push_back(ConnectionOutput::Failed(Failure::new(reason, detail)));
    }

    fn fail_session(&mut self, error: &SessionError) {
        let reason = match error {
            SessionError::Crypto(_) => FailureReason::Generator,
            SessionError::Sdp(_) | SessionError::Candidate(_) | SessionError::Order(_) => {
                FailureReason::Protocol
            }
            SessionError::Transport(_) if self.is_playing() => FailureReason::MediaLost,
            SessionError::Transport(_) => FailureReason::Dtls,
        };
        self.fail(reason, &error.to_string());
    }
}

/// What the sender's streams did since this was last asked.
fn sent(sender: &mut Sender, now: Instant) -> impl Iterator<Item = ConnectionOutput> + use<> {
    let intervals = sender.take_intervals(0, now).into_iter();
    intervals.map(|interval| ConnectionOutput::Observed(Observation::Sent(Box::new(interval))))
}
