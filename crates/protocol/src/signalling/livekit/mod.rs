//! LiveKit: a participant that signals in protobuf over one WebSocket, publishes on a peer
//! connection that it offers, and receives all others on one that the server offers.
//!
//! Source: LiveKit's public protocol definition and its documentation of the client protocol.
//!
//! ```text
//! participant                         server
//!   GET /rtc (WebSocket), token ─────▶
//!                               ◀─────  join: participants in the room
//!   add_track …, offer          ─────▶
//!                               ◀─────  track_published …, answer, trickle
//!                               ◀─────  offer of what others publish, trickle
//!   answer                      ─────▶
//!   subscription, track_setting ─────▶  (when something else is wanted)
//!   leave                       ─────▶
//! ```

mod access;
mod config;
mod disconnect;
mod local_tracks;
mod remote_participants;
mod wire;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use prost::Message as _;
use serde::{Deserialize, Serialize};
use throng_observation::{Failure, FailureReason, MediaKind, Url};
use throng_scenario::Secret;

pub use self::access::{Access, Key};
pub use self::config::{Config, SentLayer};
use self::local_tracks::LocalTracks;
use self::remote_participants::RemoteParticipants;
use self::wire::{
    AddTrack, Join, MuteTrack, Ping, Request, RequestResponse, Response, SessionDescription,
    SignalRequest, SignalResponse, SignalTarget, StreamStateUpdate, TrackSource, TrackType,
    Trickle,
};
use super::RelayServer;
use super::response_deadline::{GOODBYE_WITHIN, ResponseDeadline};
use super::room::{PeerId, RoomInput, RoomOutput, RoomSignalling, RoomStream, Subscriptions};
use super::sections::{self, Section};
use super::server_message::{
    LIST_MAX, MESSAGE_BYTES_MAX, broken, candidate, excerpt, session_description,
};
use crate::factory::{Seat, TargetFactory, member_name, sent_layers};
use crate::participant::{ChannelError, Message, Open, Why};

const SERVER: &str = "LiveKit";
/// The protocol version in use: two peer connections, leave with an action, answers with ids.
const PROTOCOL: &str = "16";
/// The peer connection on which the server sends.
const SUBSCRIBER: PeerId = PeerId(1);
/// Defaults for servers that do not announce a ping interval and timeout.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer intervals would be a configuration error of the server.
const PING_MAX: Duration = Duration::from_secs(1_800);
/// `RequestResponse.Reason.OK` and `QUEUED`.
const FINE: [i32; 2] = [0, 4];

/// A participant of a LiveKit room.
pub struct LiveKit {
    config: Config,
    state: State,
    others: RemoteParticipants,
    /// The publishers that were reported last.
    reported: BTreeSet<String>,
    own: LocalTracks,
    /// The id of the offer that is being answered.
    offer_id: u32,
    /// Its media sections.
    offered: Vec<Section>,
    /// Its streams, with senders and kinds, as reported last.
    streams: Vec<RoomStream>,
    outputs: VecDeque<RoomOutput>,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening(ResponseDeadline),
    /// The WebSocket is open; `join` is expected.
    Entering(ResponseDeadline),
    Present(Pulse),
    Leaving(ResponseDeadline),
    Over,
}

/// The ping state of a participant that joined.
#[derive(Clone, Copy, Debug)]
struct Pulse {
    began_at: Instant,
    every: Duration,
    timeout: Duration,
    next_at: Instant,
    /// When the server last answered one.
    answered_at: Instant,
    round_trip_ms: i64,
}

/// The fields of `RTCIceCandidateInit` that a bundle needs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidateInit {
    candidate: String,
    #[serde(default)]
    sdp_m_line_index: Option<u16>,
}

impl LiveKit {
    /// That of a member of `room` on the server at `url`.
    pub(crate) fn of(
        factory: &TargetFactory,
        Seat { number, role, .. }: Seat<'_>,
        subscriptions: Subscriptions,
        (url, room): (&Url, &str),
    ) -> Self {
        Self::new(Config {
            url: url.clone(),
            access: Access::of(factory, &member_name(number), role, room),
            mark: factory.mark.clone(),
            publishes: role.publish.is_some(),
            subscriptions,
            layers: sent_layers(role),
            answer_within: factory.timeouts.signalling,
        })
    }

    /// A participant that has not joined yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let others = RemoteParticipants::new(
            config.subscriptions.clone(),
            config.is_automatic(),
            config.mark.clone(),
        );
        Self {
            config,
            state: State::Idle,
            others,
            reported: BTreeSet::new(),
            own: LocalTracks::default(),
            offer_id: 0,
            offered: Vec::new(),
            streams: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    fn say(&mut self, request: Request) {
        let request = SignalRequest { message: Some(request) };
        self.outputs.push_back(RoomOutput::Signal(Message::Binary(request.encode_to_vec())));
    }

    fn anomaly(&mut self, detail: impl std::fmt::Display) {
        self.outputs.push_back(RoomOutput::Anomaly(format!("{SERVER}: {detail}")));
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Over;
        self.outputs.push_back(RoomOutput::Failed(failure));
    }

    fn heard(&mut self, now: Instant, message: &Message) -> Result<(), Failure> {
        let Message::Binary(bytes) = message else {
            return Err(broken(SERVER, "a text message where protobuf was agreed"));
        };
        if bytes.len() > MESSAGE_BYTES_MAX {
            let what =
                format!("a message of {} bytes; the limit is {MESSAGE_BYTES_MAX}", bytes.len());
            return Err(broken(SERVER, what));
        }
        let response = SignalResponse::decode(bytes.as_slice()).map_err(|error| {
            broken(SERVER, format!("a malformed message of {} bytes: {error}", bytes.len()))
        })?;
        // Messages of an unknown kind are meant for other clients.
        let Some(response) = response.message else { return Ok(()) };
        match (response, &mut self.state) {
            (Response::Leave(_), State::Leaving(_)) => self.goodbye(),
            (_, State::Leaving(_) | State::Over) => {}
            (Response::Join(join), State::Entering(_)) => self.joined(now, &join),
            (Response::Leave(leave), _) => return Err(disconnect::failure(&leave)),
            (Response::Pong(pong), State::Present(pulse)) => {
                pulse.answered(now, pong.last_ping_timestamp);
            }
            (response, State::Present(_)) => return self.handle_present(response),
            _ => return Err(broken(SERVER, "the first message is not join")),
        }
        Ok(())
    }

    fn joined(&mut self, now: Instant, join: &Join) {
        self.state = State::Present(Pulse::begin(now, join));
        self.others.joined(join.participant.as_ref());
        self.others.seen(&join.other_participants);
        self.outputs.push_back(RoomOutput::Joined);
        self.relays(join);
        if self.config.publishes {
            self.outputs.push_back(RoomOutput::WantOffer(PeerId::PUBLISHER));
        }
        self.tell_people();
        self.update_subscriptions();
    }

    /// Reports the publishers when they have changed; subscriptions to the last speakers are chosen
    /// from them.
    fn tell_people(&mut self) {
        let names = self.others.names();
        if names != self.reported {
            self.reported.clone_from(&names);
            self.outputs.push_back(RoomOutput::Publishers(names));
        }
    }

    /// Handles a message of the server after the join.
    fn handle_present(&mut self, response: Response) -> Result<(), Failure> {
        match response {
            Response::Answer(description) => {
                let sdp = session_description(SERVER, "the answer", description.sdp)?;
                self.outputs.push_back(RoomOutput::RemoteAnswer(PeerId::PUBLISHER, sdp));
            }
            Response::Offer(description) => self.offered(description)?,
            Response::Trickle(trickle) => self.trickled(&trickle),
            Response::Update(update) => {
                self.others.seen(&update.participants);
                self.tell_people();
                self.tell_streams();
                self.update_subscriptions();
            }
            Response::StreamState(update) => self.streams_changed(&update),
            Response::Request(response) => return self.answered(&response),
            Response::Subscription(response) => {
                let whose = excerpt(self.others.whose(&response.track_sid));
                let why = if response.error == 1 { "no codec in common" } else { "no such track" };
                self.anomaly(format_args!("the subscription to {whose} failed: {why}"));
            }
            Response::SubscriptionPermission(update) if !update.allowed => {
                let whose = excerpt(self.others.whose(&update.track_sid));
                self.anomaly(format_args!("{whose} does not permit the subscription"));
            }
            Response::Mute(mute) => self.muted(&mute),
            Response::TrackPublished(published) => {
                self.own.published(published.track);
                self.say_mute();
            }
            Response::TrackUnpublished(_) => {
                let detail = "the server unpublished a track of this participant";
                return Err(Failure::new(FailureReason::Refused, format!("{SERVER}: {detail}")));
            }
            Response::Join(_) => self.anomaly("joined twice"),
            Response::SubscriptionPermission(_) | Response::Pong(_) | Response::Leave(_) => {}
        }
        Ok(())
    }

    /// Signals which published tracks are mute, where the server has another state.
    fn say_mute(&mut self) {
        if matches!(self.state, State::Present(_)) {
            self.own.mutes().into_iter().for_each(|mute| self.say(Request::Mute(mute)));
        }
    }

    /// The server mutes or unmutes a published track on behalf of a moderator; the participant
    /// complies.
    fn muted(&mut self, mute: &MuteTrack) {
        let Some(kind) = self.own.muted_by_server(mute) else {
            return self.anomaly("the server muted a track that this participant does not publish");
        };
        if mute.muted {
            self.anomaly(format_args!("the server muted the published {}", kind.key()));
        }
        self.outputs.push_back(RoomOutput::Muted(kind, mute.muted));
    }

    fn offered(&mut self, description: SessionDescription) -> Result<(), Failure> {
        let sdp = session_description(SERVER, "the offer", description.sdp)?;
        self.offer_id = description.id;
        self.offered = sections::read(&sdp);
        self.tell_streams();
        self.outputs.push_back(RoomOutput::RemoteOffer(SUBSCRIBER, sdp));
        Ok(())
    }

    /// Reports the streams in the sections of the last offer when they have changed: a sender
    /// became mute, or left.
    fn tell_streams(&mut self) {
        let streams = self.others.streams(&self.offered);
        if streams != self.streams {
            self.streams.clone_from(&streams);
            self.outputs.push_back(RoomOutput::Streams(SUBSCRIBER, streams));
        }
    }

    fn trickled(&mut self, trickle: &Trickle) {
        let peer = match trickle.target() {
            SignalTarget::Publisher => PeerId::PUBLISHER,
            SignalTarget::Subscriber => SUBSCRIBER,
        };
        match serde_json::from_str::<CandidateInit>(&trickle.candidate_init) {
            Ok(init) => {
                let found = candidate(&init.candidate);
                self.outputs.extend(found.map(|found| RoomOutput::RemoteCandidate(peer, found)));
            }
            Err(error) => {
                let init = excerpt(&trickle.candidate_init);
                let why = excerpt(&error.to_string());
                self.anomaly(format_args!("a malformed candidate ({why}): {init}"));
            }
        }
    }

    /// Sends a local candidate.
    fn trickle(&mut self, peer: PeerId, line: &str) {
        let init = CandidateInit { candidate: line.to_owned(), sdp_m_line_index: Some(0) };
        // Serialising a string and a number does not fail.
        let candidate_init = serde_json::to_string(&init).unwrap_or_default();
        let mut trickle = Trickle { candidate_init, ..Trickle::default() };
        trickle.set_target(if peer == SUBSCRIBER {
            SignalTarget::Subscriber
        } else {
            SignalTarget::Publisher
        });
        if matches!(self.state, State::Present(_)) {
            self.say(Request::Trickle(trickle));
        }
    }

    /// The TURN servers that the server announces; only the scenario configures STUN servers.
    fn relays(&mut self, join: &Join) {
        let host = self.config.url.host_str();
        let relays = join.ice_servers.iter().take(LIST_MAX).flat_map(|server| {
            let urls = server.urls.iter().take(LIST_MAX).filter(|url| url.starts_with("turn"));
            urls.map(|url| RelayServer {
                url: url.clone(),
                username: server.username.clone(),
                credential: Secret::new(server.credential.as_str()),
                is_signalling_host: false,
            })
        });
        self.outputs
            .extend(relays.map(|relay| RoomOutput::Relay(relay.with_signalling_host(host))));
    }

    fn streams_changed(&mut self, update: &StreamStateUpdate) {
        let paused = update.stream_states.iter().filter(|stream| stream.state == 1).count();
        if paused > 0 {
            self.anomaly(format_args!("it paused {paused} streams for lack of bandwidth"));
        }
    }

    /// Handles the answer to a request; only failures matter.
    fn answered(&mut self, response: &RequestResponse) -> Result<(), Failure> {
        if FINE.contains(&response.reason) {
            return Ok(());
        }
        let why = disconnect::refusal(response.reason);
        let detail = format!("{SERVER} refused a request: {why}, {}", excerpt(&response.message));
        if self.config.publishes {
            return Err(Failure::new(FailureReason::Refused, detail));
        }
        self.anomaly(detail);
        Ok(())
    }

    /// Announces the tracks of the offer, then sends it: the server matches them by the ids in the
    /// description.
    fn publish(&mut self, sdp: String) {
        if !matches!(self.state, State::Present(_)) {
            return;
        }
        for section in sections::read(&sdp) {
            let (Some(kind), Some(cid)) = (section.kind, section.track) else { continue };
            let track = self.track(kind, cid);
            self.say(Request::AddTrack(track));
        }
        self.say(Request::Offer(SessionDescription { kind: "offer".into(), sdp, id: 0 }));
    }

    fn track(&self, kind: MediaKind, cid: String) -> AddTrack {
        let mut track = AddTrack { cid, disable_red: true, ..AddTrack::default() };
        match kind {
            MediaKind::Audio => {
                track.name = "microphone".into();
                track.set_kind(TrackType::Audio);
                track.set_source(TrackSource::Microphone);
            }
            MediaKind::Video => {
                track.name = "camera".into();
                track.set_kind(TrackType::Video);
                track.set_source(TrackSource::Camera);
                track.layers = self.config.layers.iter().map(SentLayer::to_wire).collect();
                if let Some(largest) = track.layers.last() {
                    (track.width, track.height) = (largest.width, largest.height);
                }
            }
        }
        track
    }

    fn answer(&mut self, sdp: String) {
        if !matches!(self.state, State::Present(_)) {
            return;
        }
        let id = self.offer_id;
        self.say(Request::Answer(SessionDescription { kind: "answer".into(), sdp, id }));
        // The tracks in this answer accept layer requests from now on.
        self.update_subscriptions();
    }

    fn update_subscriptions(&mut self) {
        if matches!(self.state, State::Present(_)) {
            self.others.update_subscriptions().into_iter().for_each(|request| self.say(request));
        }
    }

    fn leave(&mut self, now: Instant) {
        match self.state {
            State::Idle | State::Over => {
                self.state = State::Over;
                self.outputs.push_back(RoomOutput::Goodbye);
            }
            State::Opening(_) => self.goodbye(),
            State::Leaving(_) => {}
            State::Entering(_) | State::Present(_) => {
                self.say(Request::Leave(disconnect::ours()));
                self.state = State::Leaving(ResponseDeadline::new(
                    now,
                    GOODBYE_WITHIN,
                    "LiveKit: the goodbye",
                ));
            }
        }
    }

    fn goodbye(&mut self) {
        self.state = State::Over;
        self.outputs.push_back(RoomOutput::Close);
        self.outputs.push_back(RoomOutput::Goodbye);
    }

    fn closed(&mut self, error: ChannelError) {
        match self.state {
            State::Over => {}
            State::Leaving(_) => {
                self.state = State::Over;
                self.outputs.push_back(RoomOutput::Goodbye);
            }
            State::Idle | State::Opening(_) => self.fail(disconnect::not_opened(error)),
            _ => self.fail(error.after_opening()),
        }
    }

    fn timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Opening(waiting) | State::Entering(waiting) => {
                if let Some(failure) = waiting.overdue(now) {
                    self.fail(failure);
                }
            }
            State::Leaving(waiting) if waiting.overdue(now).is_some() => self.goodbye(),
            State::Present(pulse) => match pulse.beat(now) {
                Ok(Some(ping)) => self.say(Request::Ping(ping)),
                Ok(None) => {}
                Err(failure) => self.fail(failure),
            },
            State::Idle | State::Leaving(_) | State::Over => {}
        }
    }
}

impl Pulse {
    fn begin(now: Instant, join: &Join) -> Self {
        let seconds = |value: i32, otherwise: Duration| match u64::try_from(value) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds).min(PING_MAX),
            _ => otherwise,
        };
        let every = seconds(join.ping_interval, PING_EVERY);
        // A ping timeout below two intervals would be a configuration error of the server.
        let timeout = seconds(join.ping_timeout, PING_TIMEOUT).max(every * 2);
        let next_at = now + every;
        Self { began_at: now, every, timeout, next_at, answered_at: now, round_trip_ms: 0 }
    }

    fn since_begin_ms(&self, now: Instant) -> i64 {
        i64::try_from(now.saturating_duration_since(self.began_at).as_millis()).unwrap_or(i64::MAX)
    }

    fn answered(&mut self, now: Instant, sent_ms: i64) {
        self.answered_at = now;
        self.round_trip_ms = self.since_begin_ms(now).saturating_sub(sent_ms).clamp(0, 60_000);
    }

    /// The ping to send now, or a failure when the server stopped answering.
    fn beat(&mut self, now: Instant) -> Result<Option<Ping>, Failure> {
        if now.saturating_duration_since(self.answered_at) >= self.timeout {
            let detail =
                format!("{SERVER}: no answer to pings within {} s", self.timeout.as_secs());
            return Err(Failure::new(FailureReason::SignallingTimeout, detail));
        }
        if now < self.next_at {
            return Ok(None);
        }
        self.next_at = now + self.every;
        Ok(Some(Ping { timestamp: self.since_begin_ms(now), rtt: self.round_trip_ms }))
    }

    fn deadline(&self) -> (Instant, Why) {
        (self.next_at.min(self.answered_at + self.timeout), "LiveKit: ping")
    }
}

impl RoomSignalling for LiveKit {
    fn handle(&mut self, now: Instant, input: RoomInput<'_>) {
        match input {
            RoomInput::Start => {
                let within = self.config.answer_within;
                self.state = State::Opening(ResponseDeadline::new(
                    now,
                    within,
                    "LiveKit: the WebSocket to open",
                ));
                self.outputs.push_back(RoomOutput::Open(Open::WebSocket {
                    url: self.config.join_url(PROTOCOL),
                    protocols: Vec::new(),
                    // In a header, because URLs are logged.
                    headers: vec![(
                        "Authorization".into(),
                        format!("Bearer {}", self.config.access.token(now)),
                    )],
                }));
            }
            RoomInput::Opened(_) if matches!(self.state, State::Opening(_)) => {
                let within = self.config.answer_within;
                self.state = State::Entering(ResponseDeadline::new(now, within, "LiveKit: join"));
            }
            RoomInput::Message(message) if !matches!(self.state, State::Over) => {
                if let Err(failure) = self.heard(now, message) {
                    match self.state {
                        State::Leaving(_) => {}
                        _ => self.fail(failure),
                    }
                }
            }
            RoomInput::Offer(PeerId::PUBLISHER, sdp) => self.publish(sdp),
            RoomInput::Answer(SUBSCRIBER, sdp) => self.answer(sdp),
            RoomInput::Candidate(peer, line) => self.trickle(peer, line),
            RoomInput::Subscribe(subscriptions) => {
                self.others.subscribe(subscriptions);
                self.update_subscriptions();
            }
            RoomInput::Mute(kind, is_muted) => {
                self.own.mute(kind, is_muted);
                self.say_mute();
            }
            RoomInput::Layer(layer) => {
                self.others.want_layer(layer);
                self.update_subscriptions();
            }
            RoomInput::Closed(error) => self.closed(error),
            RoomInput::Timeout => self.timeout(now),
            RoomInput::Leave { .. } => self.leave(now),
            // Without one of its two connections a participant has failed.
            RoomInput::Lost(_)
            | RoomInput::CandidatesDone(_)
            | RoomInput::Opened(_)
            | RoomInput::Message(_)
            | RoomInput::Offer(..)
            | RoomInput::Answer(..)
            | RoomInput::Connected(_)
            | RoomInput::Fetched(..) => {}
        }
    }

    fn poll_output(&mut self) -> Option<RoomOutput> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        match &self.state {
            State::Opening(waiting) | State::Entering(waiting) | State::Leaving(waiting) => {
                Some(waiting.deadline())
            }
            State::Present(pulse) => Some(pulse.deadline()),
            State::Idle | State::Over => None,
        }
    }
}

#[cfg(test)]
mod tests;
