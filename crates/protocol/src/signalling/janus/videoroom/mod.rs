//! Janus VideoRoom: a participant that publishes on one handle and receives the others on one more
//! (multistream), or on one per publisher. Each participant has one WebSocket and one Janus
//! session.
//!
//! Source: the documentation of the VideoRoom plugin, Janus 1.x.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::{Value, json};
use throng_observation::{Failure, FailureReason, Url};
use throng_scenario::{JanusId, Secret, Subscription};

use self::config::room_json;
use self::event::PluginEvent;
use self::feeds::Feeds;
use self::layers::Layers;
use self::muting::Muting;
use self::subscriber::{Step, Subscribers};
use super::session::{Handle, Jsep, SERVER, Session, SessionConfig, SessionEvent};
use crate::factory::{Seat, TargetFactory, member_name};
use crate::participant::{ChannelError, Message, Why};
use crate::signalling::response_deadline::ResponseDeadline;
use crate::signalling::room::{PeerId, RoomInput, RoomOutput, RoomSignalling, Subscriptions};
use crate::signalling::server_message::{broken, excerpt, session_description};

mod config;
mod event;
mod feeds;
mod layers;
mod leaving;
mod muting;
mod refusing;
mod subscriber;

pub use config::{Config, NewRoom, SubscriberMode};

const PLUGIN: &str = "janus.plugin.videoroom";
/// A participant of a VideoRoom.
pub struct VideoRoom {
    config: Config,
    session: Session<JanusRequest>,
    state: State,
    /// The handle that joins and publishes.
    publisher: Option<Handle>,
    /// This participant's id in the room.
    own_id: Option<Value>,
    feeds: Feeds,
    subscribers: Subscribers,
    layers: Layers,
    muting: Muting,
    outputs: VecDeque<RoomOutput>,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JanusRequest {
    Attach,
    CreateRoom,
    Join,
    Publish,
    AttachSubscriber(PeerId),
    /// `join`, `update` or `start` of a subscriber.
    Subscriber(PeerId),
    /// `configure` of a subscriber.
    Layer,
    /// `configure` of the publisher.
    Mute,
    DetachSubscriber(PeerId),
    /// The publisher's `leave`, where the last participant destroys the room.
    Leave,
    WhoIsLeft,
    /// The destruction of the room that the run created.
    EndRoom,
    /// A request whose answer is not awaited: the session ends right after it.
    Farewell,
    Destroy,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening(ResponseDeadline),
    /// Before the participant joined.
    Entering,
    /// In the room.
    Present,
    Leaving(ResponseDeadline),
    Over,
}

impl VideoRoom {
    /// That of a member of a room: the server's URL, the room, and its PIN.
    pub(crate) fn of(
        factory: &TargetFactory,
        Seat { number, role, .. }: Seat<'_>,
        subscriptions: Subscriptions,
        (url, room, pin): (&Url, &JanusId, Option<&Secret>),
    ) -> Self {
        let receives = role.subscribe != Subscription::NONE;
        let way = if role.connection_per_feed {
            SubscriberMode::HandlePerFeed
        } else {
            SubscriberMode::Multistream
        };
        Self::new(Config {
            url: url.clone(),
            room: room.clone(),
            pin: pin.map(|pin| pin.expose().to_owned()),
            display: member_name(number),
            mark: factory.mark.clone(),
            publishes: role.publish.is_some(),
            subscribes: receives.then_some(way),
            subscriptions,
            new_room: factory.conference.new_room.clone(),
            session: SessionConfig::of(factory),
        })
    }

    /// A participant that has not joined yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let session = Session::new(config.session.clone());
        let subscribers = Subscribers::new(config.subscribes, config.subscriptions.clone());
        let feeds = Feeds::new(config.mark.clone());
        Self {
            config,
            session,
            state: State::Idle,
            publisher: None,
            own_id: None,
            feeds,
            subscribers,
            layers: Layers::default(),
            muting: Muting::default(),
            outputs: VecDeque::new(),
        }
    }

    fn say(&mut self, message: Message) {
        self.outputs.push_back(RoomOutput::Signal(message));
    }

    fn anomaly(&mut self, detail: impl Into<String>) {
        self.outputs.push_back(RoomOutput::Anomaly(detail.into()));
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Over;
        self.outputs.push_back(RoomOutput::Failed(failure));
    }

    fn ask(
        &mut self,
        now: Instant,
        handle: Handle,
        body: Value,
        jsep: Option<&Jsep>,
        ask: (JanusRequest, Why),
    ) {
        let message = self.session.message(now, handle, body, jsep, ask);
        self.say(message);
    }

    fn handle_message(&mut self, now: Instant, message: &Message) -> Result<(), Failure> {
        match self.session.handle_message(now, message)? {
            SessionEvent::Created => {
                let attach = self.session.attach(now, PLUGIN, JanusRequest::Attach);
                self.say(attach);
            }
            SessionEvent::Attached(JanusRequest::Attach, handle) => self.attached(now, handle),
            SessionEvent::Attached(JanusRequest::AttachSubscriber(peer), handle) => {
                self.subscribers.attached(peer, handle);
                self.update_subscriptions(now);
            }
            SessionEvent::Plugin { handle, answers, data, jsep } => {
                return self.plugin(now, handle, answers, data, jsep);
            }
            SessionEvent::Refused(ask, code, reason) => return self.refused(ask, code, &reason),
            SessionEvent::Done(JanusRequest::Destroy) => self.goodbye(),
            SessionEvent::Trickle(handle, Some(candidate)) => {
                if let Some(peer) = self.peer_of(handle) {
                    self.outputs.push_back(RoomOutput::RemoteCandidate(peer, candidate));
                }
            }
            SessionEvent::HungUp(handle, reason) => return self.hung_up(handle, &reason),
            SessionEvent::Detached(handle) => self.detached(handle)?,
            SessionEvent::SessionTimedOut => {
                let detail = "Janus dropped the session: it received no keepalive in time";
                return Err(Failure::new(FailureReason::SignallingClosed, detail));
            }
            SessionEvent::Anomaly(detail) => self.anomaly(detail),
            // Problems of the link show in the RTP statistics; media events repeat what was
            // published.
            SessionEvent::Attached(..)
            | SessionEvent::Done(_)
            | SessionEvent::Trickle(_, None)
            | SessionEvent::WebRtcUp(_)
            | SessionEvent::SlowLink(..)
            | SessionEvent::Media(_)
            | SessionEvent::Nothing => {}
        }
        Ok(())
    }

    fn attached(&mut self, now: Instant, handle: Handle) {
        self.publisher = Some(handle);
        match &self.config.new_room {
            Some(room) => {
                let body = room.request(&self.config.room, self.config.pin.as_deref());
                self.ask(
                    now,
                    handle,
                    body,
                    None,
                    (JanusRequest::CreateRoom, "Janus: the room after create"),
                );
            }
            None => self.join(now, handle),
        }
    }

    fn join(&mut self, now: Instant, handle: Handle) {
        let mut body = json!({
            "request": "join",
            "ptype": "publisher",
            "room": room_json(&self.config.room),
            "display": self.config.mark.put(&self.config.display),
        });
        if let (Some(pin), Some(body)) = (&self.config.pin, body.as_object_mut()) {
            body.insert("pin".into(), json!(pin));
        }
        self.ask(now, handle, body, None, (JanusRequest::Join, "Janus: the event after join"));
    }

    fn plugin(
        &mut self,
        now: Instant,
        handle: Handle,
        answers: Option<JanusRequest>,
        data: Value,
        jsep: Option<Jsep>,
    ) -> Result<(), Failure> {
        let said: PluginEvent = serde_json::from_value(data).map_err(|e| {
            let why = excerpt(&e.to_string());
            broken(SERVER, format!("an event of the VideoRoom plugin is malformed: {why}"))
        })?;
        if let Some(code) = said.error_code {
            return self.plugin_refused(now, answers, code, &said.error.unwrap_or_default());
        }
        if answers == Some(JanusRequest::CreateRoom) {
            self.join(now, handle);
            return Ok(());
        }
        match answers {
            Some(JanusRequest::Leave) => {
                self.who_is_left(now, handle);
                return Ok(());
            }
            Some(JanusRequest::WhoIsLeft) => {
                self.destroy_if_empty(now, handle, &said);
                return Ok(());
            }
            Some(JanusRequest::EndRoom) => {
                self.end_session(now);
                return Ok(());
            }
            _ => {}
        }
        if said.videoroom == "destroyed" {
            return Err(Failure::new(FailureReason::RoomEnded, "the room was destroyed"));
        }
        if let Some(peer) = self.subscribers.peer_of(handle) {
            return self.subscriber_said(now, peer, &said, jsep);
        }
        let is_own = |id: &Value| self.own_id.as_ref() == Some(id);
        if said.kicked.as_ref().is_some_and(is_own) || said.reason.as_deref() == Some("kicked") {
            return Err(Failure::new(
                FailureReason::Kicked,
                "this participant was removed from the room",
            ));
        }
        if said.videoroom == "joined" {
            self.joined(&said);
        }
        if let Some(jsep) = jsep {
            let sdp = session_description(SERVER, "the answer", jsep.sdp)?;
            self.outputs.push_back(RoomOutput::RemoteAnswer(PeerId::PUBLISHER, sdp));
            self.published(now);
        }
        for id in [&said.unpublished, &said.leaving, &said.kicked].into_iter().flatten() {
            self.gone(now, id);
        }
        let is_news = !said.publishers.is_empty()
            || said.unpublished.is_some()
            || said.leaving.is_some()
            || said.kicked.is_some();
        self.feeds.published(said.publishers);
        if is_news {
            self.outputs.push_back(RoomOutput::Publishers(self.feeds.names()));
        }
        self.update_subscriptions(now);
        Ok(())
    }

    fn joined(&mut self, said: &PluginEvent) {
        if !matches!(self.state, State::Entering) {
            return self.anomaly(format!("{SERVER}: joined twice"));
        }
        self.state = State::Present;
        self.subscribers.private_id = said.private_id;
        self.own_id.clone_from(&said.id);
        self.outputs.push_back(RoomOutput::Joined);
        if self.config.publishes {
            self.outputs.push_back(RoomOutput::WantOffer(PeerId::PUBLISHER));
        }
    }

    fn publish(&mut self, now: Instant, sdp: String) {
        let Some(handle) = self.publisher.filter(|_| matches!(self.state, State::Present)) else {
            return;
        };
        self.muting.offered(&sdp);
        let jsep = Jsep { kind: "offer".into(), sdp };
        let body =
            json!({ "request": "publish", "display": self.config.mark.put(&self.config.display) });
        self.ask(
            now,
            handle,
            body,
            Some(&jsep),
            (JanusRequest::Publish, "Janus: the answer to publish"),
        );
    }

    fn gone(&mut self, now: Instant, id: &Value) {
        let Some(key) = self.feeds.gone(id) else { return };
        for (peer, handle) in self.subscribers.gone(&key) {
            self.layers.gone(peer);
            self.outputs.push_back(RoomOutput::ClosePeer(peer));
            if let Some(handle) = handle {
                let detach = self.session.detach(now, handle, JanusRequest::DetachSubscriber(peer));
                self.say(detach);
            }
        }
    }

    /// Handles an event of a subscriber handle.
    fn subscriber_said(
        &mut self,
        now: Instant,
        peer: PeerId,
        said: &PluginEvent,
        jsep: Option<Jsep>,
    ) -> Result<(), Failure> {
        let has_list = matches!(said.videoroom.as_str(), "attached" | "updated");
        if has_list && !said.streams.is_empty() {
            let streams = self.subscribers.streams(peer, &said.streams, &self.feeds);
            self.layers.streams(peer, &streams);
            self.outputs.push_back(RoomOutput::Streams(peer, streams));
        }
        if let (Some(mid), Some(layer)) = (&said.mid, said.substream.and_then(layers::layer)) {
            self.outputs.push_back(RoomOutput::LayerSent(peer, mid.clone(), layer));
        }
        match jsep {
            Some(jsep) if jsep.kind == "offer" => {
                let sdp = session_description(SERVER, "the offer", jsep.sdp)?;
                self.subscribers.offered(peer);
                self.outputs.push_back(RoomOutput::RemoteOffer(peer, sdp));
            }
            Some(jsep) => {
                return Err(broken(
                    SERVER,
                    format!("jsep of type {} to a subscriber", excerpt(&jsep.kind)),
                ));
            }
            // `started`, or an update without effect.
            None if has_list || said.started.is_some() => self.subscribers.settled(peer),
            None => {}
        }
        self.update_subscriptions(now);
        Ok(())
    }

    fn start(&mut self, now: Instant, peer: PeerId, sdp: String) {
        let Some(handle) = self.subscribers.handle(peer) else { return };
        let jsep = Jsep { kind: "answer".into(), sdp };
        let why = "Janus: the event after start";
        self.ask(
            now,
            handle,
            json!({ "request": "start" }),
            Some(&jsep),
            (JanusRequest::Subscriber(peer), why),
        );
    }

    /// Sends the next request that brings the subscriptions closer to the wanted ones.
    fn update_subscriptions(&mut self, now: Instant) {
        if !matches!(self.state, State::Present) {
            return;
        }
        while let Some(step) = self.subscribers.next_step(&self.feeds, &self.config.room) {
            match step {
                Step::Attach(peer) => {
                    let attach =
                        self.session.attach(now, PLUGIN, JanusRequest::AttachSubscriber(peer));
                    self.say(attach);
                }
                Step::Request(peer, handle, body) => {
                    let why = "Janus: the event after subscribe";
                    self.ask(now, handle, body, None, (JanusRequest::Subscriber(peer), why));
                }
                Step::Detach(peer, handle) => {
                    self.layers.gone(peer);
                    self.outputs.push_back(RoomOutput::ClosePeer(peer));
                    let detach =
                        self.session.detach(now, handle, JanusRequest::DetachSubscriber(peer));
                    self.say(detach);
                }
            }
        }
        for (peer, handle) in self.subscribers.all_settled() {
            if let Some(body) = self.layers.request(peer) {
                self.ask(
                    now,
                    handle,
                    body,
                    None,
                    (JanusRequest::Layer, "Janus: the event after configure"),
                );
            }
        }
    }

    fn hung_up(&mut self, handle: Handle, reason: &str) -> Result<(), Failure> {
        let Some(peer) = self.peer_of(handle) else { return Ok(()) };
        let kind = match reason {
            reason if reason.contains("ICE") => FailureReason::Ice,
            reason if reason.contains("DTLS") => FailureReason::Dtls,
            _ => FailureReason::MediaLost,
        };
        let failure = Failure::new(kind, format!("Janus hung up: {reason}"));
        if peer == PeerId::PUBLISHER || self.config.subscribes == Some(SubscriberMode::Multistream)
        {
            return Err(failure);
        }
        self.anomaly(format!("a subscription ended: {}", failure.detail));
        self.lost(peer);
        Ok(())
    }

    fn detached(&mut self, handle: Handle) -> Result<(), Failure> {
        match self.peer_of(handle) {
            Some(PeerId::PUBLISHER) => {
                Err(Failure::new(FailureReason::MediaLost, "Janus detached the publisher's handle"))
            }
            Some(peer) => {
                self.lost(peer);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A subscription ended.
    fn lost(&mut self, peer: PeerId) {
        if self.subscribers.lost(peer) {
            self.layers.gone(peer);
            self.outputs.push_back(RoomOutput::ClosePeer(peer));
        }
    }

    fn peer_of(&self, handle: Handle) -> Option<PeerId> {
        if self.publisher == Some(handle) {
            Some(PeerId::PUBLISHER)
        } else {
            self.subscribers.peer_of(handle)
        }
    }

    /// Sends a local candidate.
    fn trickle(&mut self, now: Instant, peer: PeerId, line: &str) {
        let is_publisher = peer == PeerId::PUBLISHER;
        let handle = if is_publisher { self.publisher } else { self.subscribers.handle(peer) };
        if let Some(handle) = handle {
            let trickle = self.session.trickle(now, handle, None, Some(line));
            self.say(trickle);
        }
    }

    fn closed(&mut self, error: ChannelError) {
        match self.state {
            State::Leaving(_) => {
                self.state = State::Over;
                self.outputs.push_back(RoomOutput::Goodbye);
            }
            State::Idle | State::Opening(_) => self.fail(error.into()),
            _ => self.fail(error.after_opening()),
        }
    }

    fn timeout(&mut self, now: Instant) {
        match &self.state {
            State::Opening(waiting) => {
                if let Some(failure) = waiting.overdue(now) {
                    self.fail(failure);
                }
            }
            State::Leaving(waiting) => {
                if waiting.overdue(now).is_some() {
                    self.anomaly(format!("{SERVER}: the goodbye was not answered"));
                    self.goodbye();
                }
            }
            State::Idle | State::Over => {}
            State::Entering | State::Present => match self.session.timeout(now) {
                Ok(Some(keepalive)) => self.say(keepalive),
                Ok(None) => {}
                Err(failure) => self.fail(failure),
            },
        }
    }
}

impl RoomSignalling for VideoRoom {
    fn handle(&mut self, now: Instant, input: RoomInput<'_>) {
        if matches!(self.state, State::Over) && !matches!(input, RoomInput::Leave { .. }) {
            return;
        }
        match input {
            RoomInput::Start => {
                let (open, waiting) = self.session.open(now, &self.config.url);
                self.state = State::Opening(waiting);
                self.outputs.push_back(RoomOutput::Open(open));
            }
            RoomInput::Opened(_) if matches!(self.state, State::Opening(_)) => {
                let create = self.session.create(now);
                self.say(create);
                self.state = State::Entering;
            }
            RoomInput::Message(message) => {
                if let Err(failure) = self.handle_message(now, message) {
                    match self.state {
                        State::Leaving(_) => {}
                        _ => self.fail(failure),
                    }
                }
            }
            RoomInput::Offer(PeerId::PUBLISHER, sdp) => self.publish(now, sdp),
            RoomInput::Answer(peer, sdp) => self.start(now, peer, sdp),
            RoomInput::Candidate(peer, line) => self.trickle(now, peer, line),
            RoomInput::Lost(peer) => {
                if let Some(handle) = self.subscribers.handle(peer) {
                    let detach =
                        self.session.detach(now, handle, JanusRequest::DetachSubscriber(peer));
                    self.say(detach);
                    self.subscribers.lost(peer);
                }
            }
            RoomInput::Subscribe(subscriptions) => {
                self.subscribers.subscribe(subscriptions);
                self.update_subscriptions(now);
            }
            RoomInput::Mute(kind, is_muted) => self.mute(now, kind, is_muted),
            RoomInput::Layer(layer) => {
                self.layers.want(layer);
                self.update_subscriptions(now);
            }
            RoomInput::Closed(error) => self.closed(error),
            RoomInput::Timeout => self.timeout(now),
            RoomInput::Leave { others_follow } => self.leave(now, others_follow),
            // End-of-candidates has no effect in Janus.
            RoomInput::CandidatesDone(_)
            | RoomInput::Opened(_)
            | RoomInput::Offer(..)
            | RoomInput::Connected(_)
            | RoomInput::Fetched(..) => {}
        }
    }

    fn poll_output(&mut self) -> Option<RoomOutput> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        match &self.state {
            State::Opening(waiting) | State::Leaving(waiting) => Some(waiting.deadline()),
            State::Idle | State::Over => None,
            State::Entering | State::Present => self.session.next_timeout(),
        }
    }
}
