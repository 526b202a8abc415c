//! A member of a room: it connects, joins, reads and speaks, and connects again when the connection
//! breaks, as ConverseJS does.

use std::time::{Duration, Instant};

use throng_observation::{
    ChatCounters, ChatInterval, Failure, FailureReason, Observation, Outcome, Phase, Url,
};

use super::Config;
use super::delivery::{Deliveries, Inbox};
use super::event_stream::LinkEvent;
use super::room_log::{mark, marked, marks};
use super::session::{Event, Incoming, Session, is_final};
use super::speech::Speech;
use super::wire::{self, Wire};
use super::xmpp::Resumption;
use crate::excerpt::excerpt;
use crate::life::Life;
use crate::participant::{
    ChannelError, DownloadEvent, FetchId, Input, NEVER, Opening, Output, Participant, Why,
};
use crate::webrtc::ParticipantOptions;

/// How often servers may refer to each other.
const MOVES_MAX: u32 = 20;

/// How long a server that refers to another one may take to close the WebSocket.
const MOVES_AFTER: Duration = Duration::from_millis(200);

/// How often it reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// A participant of a chat.
pub struct Member {
    config: Config,
    options: ParticipantOptions,
    rng: fastrand::Rng,
    life: Life<State>,
    wire: Wire,
    speech: Option<Speech>,
    inbox: Option<Inbox>,
    /// The stream of a connection that broke, which the next one asks for, and what is due to it on
    /// that stream.
    before: Option<Resumption>,
    held: Option<Inbox>,
    /// Why the last connection failed.
    last_failure: Option<Failure>,
    /// How often servers referred to another one since it was in the room.
    moves: u32,
    /// When it takes the nickname that it has chosen.
    renames_at: Option<Instant>,
    counters: ChatCounters,
    delays_us: Vec<u64>,
    interval_at: Option<Instant>,
}

enum State {
    /// The WebSocket, or the event stream, is being opened.
    Connecting,
    Open(Box<dyn Session>),
    /// The connection broke; the next one is made then.
    Broken {
        again_at: Instant,
    },
    /// The server has referred to another one. The next connection is made when this one is closed,
    /// whose end would be taken for that of the next one, or then.
    Moving {
        by: Instant,
    },
}

impl Member {
    /// A member that has not joined.
    #[must_use]
    pub fn new(config: Config, options: ParticipantOptions) -> Self {
        let rng = fastrand::Rng::with_seed(options.seed);
        Self {
            wire: Wire::new(&config),
            config,
            options,
            rng,
            life: Life::new(),
            speech: None,
            inbox: None,
            before: None,
            held: None,
            last_failure: None,
            moves: 0,
            renames_at: None,
            counters: ChatCounters::default(),
            delays_us: Vec::new(),
            interval_at: None,
        }
    }

    fn connect(&mut self, now: Instant) {
        self.life.enter(State::Connecting);
        match self.wire.connect(&self.config) {
            Ok(outputs) => self.life.extend(outputs),
            Err(failure) => self.lost(now, failure, true, false),
        }
    }

    fn opened(&mut self, now: Instant, opening: &Opening) {
        self.life.extend(opening.phases().map(Output::Observed));
        let mut session = self.config.protocol.session(self.before.take(), &mut self.rng);
        let mut events = session.opened(now);
        if self.held.is_some() && self.wire.replays() {
            events.insert(0, Event::Resumed);
        }
        self.life.enter(State::Open(session));
        self.events(now, events);
    }

    fn incoming(&mut self, now: Instant, incoming: Incoming) -> Result<(), Failure> {
        let Some(State::Open(session)) = self.life.live_mut() else { return Ok(()) };
        let events = session.receive(now, incoming)?;
        if events.contains(&Event::Renamed) {
            // It keeps it when it connects again.
            self.config.protocol.set_nick(session.nick());
        }
        self.events(now, events);
        Ok(())
    }

    fn events(&mut self, now: Instant, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Joined => self.joined(now),
                Event::Resumed => {
                    self.counters.resumes += 1;
                    self.inbox = self.held.take();
                    self.inbox.iter_mut().for_each(Inbox::resumed);
                }
                Event::Renamed => self.counters.nick_changes += 1,
                Event::Moved(uri) => self.moved(now, &uri),
                Event::Anomaly(detail) => self.life.anomaly("chat", detail),
                Event::Said { body, is_old, .. } => {
                    self.counters.messages_received += 1;
                    if let (false, Some(inbox), Some(number)) =
                        (is_old, &mut self.inbox, marked(&self.config.mark, &body))
                    {
                        inbox.received(now, number);
                    }
                }
                Event::Heard(text) => {
                    for number in marks(&self.config.mark, &text) {
                        self.counters.messages_received += 1;
                        self.inbox.iter_mut().for_each(|inbox| inbox.received(now, number));
                    }
                }
            }
        }
    }

    fn joined(&mut self, now: Instant) {
        if !self.life.has_reached(Phase::Joined) {
            self.renames_at = self.config.rename.as_ref().map(|rename| now + rename.after);
        }
        self.moves = 0;
        self.life.reach(Phase::Described, now);
        self.life.reach(Phase::Joined, now);
        // On a resumed stream what was said while it was away is due to it too.
        let (own, has_echo) = (self.options.seed, self.config.protocol.has_echo());
        let log = &self.config.log;
        self.inbox.get_or_insert_with(|| Inbox::joined(log.clone(), own, has_echo));
        self.abandon_held();
    }

    /// Says what is due; what nobody can hear because it is not in the room is lost.
    fn speak(&mut self, now: Instant) {
        while let Some((due_at, words)) = self.speech.as_mut().and_then(|speech| speech.due(now)) {
            match self.life.live_mut() {
                Some(State::Open(session)) if session.is_joined() => {
                    let number = self.config.log.say(self.options.seed, due_at);
                    let text = format!("{words} {}", mark(&self.config.mark, number));
                    session.say(&text);
                    self.counters.messages_sent += 1;
                }
                _ => self.counters.messages_unsent += 1,
            }
        }
    }

    /// Takes the nickname that it has chosen.
    fn rename(&mut self, now: Instant) {
        let Some(State::Open(session)) = self.life.live_mut() else { return };
        if session.is_joined()
            && let Some(rename) = &self.config.rename
            && self.renames_at.take_if(|at| now >= *at).is_some()
        {
            session.change_nick(&rename.nick);
        }
    }

    /// The connection is gone, or is of no use: another one is made, unless the server does not
    /// want this participant.
    fn broken(&mut self, now: Instant, failure: Failure, is_open: bool) {
        let is_final = match self.life.live() {
            Some(State::Open(session)) => session.is_final(&failure),
            _ => is_final(&failure),
        };
        self.lost(now, failure, is_final, is_open);
    }

    /// The server refers to another one (RFC 7395 section 3.6.1): it connects there without a wait
    /// of its own, as Strophe does, and from a secure connection to a secure one only.
    fn moved(&mut self, now: Instant, uri: &str) {
        let is_secure = |url: &Url| url.scheme() == "wss";
        let (may_be_plain, own) = (!is_secure(&self.config.url), self.config.url.origin());
        let to = Url::parse(uri)
            .ok()
            .filter(|to| is_secure(to) || may_be_plain && to.scheme() == "ws")
            // A password is for no other server.
            .filter(|to| !self.config.protocol.has_password() || to.origin() == own)
            .filter(|_| self.moves < MOVES_MAX);
        let Some(to) = to else {
            let detail = format!("the server closes the stream, and refers to {}", excerpt(uri));
            let failure = Failure::new(FailureReason::SignallingClosed, detail);
            return self.broken(now, failure, true);
        };
        self.moves += 1;
        self.part(now, false, false);
        // The page is still that of the first server.
        self.config.chat.origin = Some(wire::origin(&self.config));
        self.config.url = to;
        self.life.enter(State::Moving { by: now + MOVES_AFTER });
    }

    fn lost(&mut self, now: Instant, failure: Failure, is_final: bool, is_open: bool) {
        // Its words may be those of the server: why it refuses the upgrade, or closes.
        let detail = self.config.protocol.without_token(&failure.detail);
        let failure = Failure::new(failure.reason, detail);
        self.part(now, is_final, is_open);
        if is_final {
            return self.end(now, Outcome::Failed(failure));
        }
        self.last_failure = Some(failure.clone());
        self.counters.reconnects += 1;
        self.life.anomaly("chat", format!("connects again: {failure}"));
        self.life.enter(State::Broken { again_at: now + self.wire.reconnect_after() });
    }

    /// Leaves the connection, for good if `is_final`.
    fn part(&mut self, now: Instant, is_final: bool, is_open: bool) {
        self.life.extend(self.wire.broken(is_open));
        self.take_traffic();
        if let Some(State::Open(session)) = self.life.live_mut() {
            self.before = session.resumption();
        }
        if let Some(mut inbox) = self.inbox.take() {
            self.count(inbox.take(now));
            inbox.broken();
            self.held = Some(inbox);
        }
        // What is said while it is away is not due to it, unless the server keeps it for the
        // stream: browsers fetch it from the archive when they are back.
        if is_final || self.before.is_none() && !self.wire.replays() {
            self.abandon_held();
        }
    }

    /// The stream of the connection that broke does not go on.
    fn abandon_held(&mut self) {
        if let Some(inbox) = self.held.take() {
            self.count(inbox.abandon());
        }
    }

    fn count(&mut self, deliveries: Deliveries) {
        self.counters += deliveries.counters;
        self.delays_us.extend(deliveries.delays_us);
    }

    /// Whether it is in the room, and how many others are.
    fn presence(&self) -> (bool, usize) {
        match self.life.live() {
            Some(State::Open(session)) => (session.is_joined(), session.occupants()),
            _ => (false, 0),
        }
    }

    /// Reports the interval that ends now, at whose end it is so in the room.
    fn report(&mut self, now: Instant, (is_joined, occupants): (bool, usize)) {
        self.take_traffic();
        if let Some(deliveries) = self.inbox.as_mut().map(|inbox| inbox.take(now)) {
            self.count(deliveries);
        }
        let interval = ChatInterval {
            ended_at: now,
            counters: std::mem::take(&mut self.counters),
            delays_us: std::mem::take(&mut self.delays_us),
            occupants: u32::try_from(occupants).unwrap_or(u32::MAX),
            is_joined,
        };
        self.life.observe(Observation::Chat(Box::new(interval)));
    }

    fn take_traffic(&mut self) {
        self.counters.bytes_received += self.wire.take_bytes();
        let Some(State::Open(session)) = self.life.live_mut() else { return };
        self.counters += session.take_traffic();
    }

    fn end(&mut self, now: Instant, outcome: Outcome) {
        self.abandon_held();
        self.report(now, self.presence());
        self.life.end(outcome);
    }
}

impl Member {
    fn tick(&mut self, now: Instant) {
        if let Some((until, _)) = self.life.next_timeout() {
            if now >= until || self.wire.is_idle() {
                self.life.extend(self.wire.close(false));
                self.life.over();
            }
            return;
        }
        match self.life.live_mut() {
            Some(State::Broken { again_at }) if now >= *again_at => self.connect(now),
            Some(State::Moving { by }) if now >= *by => {
                self.life.extend(self.wire.close(true));
                self.connect(now);
            }
            Some(State::Open(session)) => {
                if let Err(failure) = session.handle_timeout(now) {
                    self.broken(now, failure, true);
                }
            }
            Some(State::Connecting | State::Broken { .. } | State::Moving { .. }) | None => {}
        }
        self.rename(now);
        self.speak(now);
        if let Some(at) = self.interval_at.filter(|at| now >= *at) {
            self.report(now, self.presence());
            let missed = now.saturating_duration_since(at).as_micros() / INTERVAL.as_micros();
            let intervals = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
            self.interval_at = Some(at + INTERVAL.saturating_mul(intervals));
        }
        self.send();
    }

    /// Something of the requests of an event stream.
    fn download(&mut self, now: Instant, fetch: FetchId, event: DownloadEvent<'_>) {
        let Wire::Events(link) = &mut self.wire else { return };
        let mut outputs = Vec::new();
        let events = link.handle(fetch, event, &mut outputs);
        self.life.extend(outputs);
        for event in events {
            match (event, self.life.live()) {
                (LinkEvent::Opened(opening), Some(State::Connecting)) => self.opened(now, &opening),
                (LinkEvent::Came(incoming), Some(State::Open(_))) => {
                    if let Err(failure) = self.incoming(now, incoming) {
                        self.broken(now, failure, true);
                    }
                }
                (
                    LinkEvent::Broken { failure, is_final: true },
                    Some(State::Connecting | State::Open(_)),
                ) => {
                    self.lost(now, failure, true, false);
                }
                (LinkEvent::Broken { failure, .. }, Some(State::Connecting | State::Open(_))) => {
                    self.broken(now, failure, false);
                }
                _ => {}
            }
        }
    }

    /// Sends what the session has to send.
    fn send(&mut self) {
        let Some(State::Open(session)) = self.life.live_mut() else { return };
        let outgoing: Vec<_> = std::iter::from_fn(|| session.poll_send()).collect();
        outgoing.into_iter().for_each(|outgoing| self.life.extend(self.wire.send(outgoing)));
    }

    fn leave(&mut self, now: Instant) {
        if self.life.is_ending() {
            return;
        }
        // Who leaves was in the room until then.
        let presence = self.presence();
        if let Some(State::Open(session)) = self.life.live_mut() {
            session.leave();
        }
        self.send();
        self.life.extend(self.wire.finish());
        let outcome = self.outcome();
        self.abandon_held();
        self.report(now, presence);
        (self.inbox, self.interval_at) = (None, None);
        if self.wire.is_idle() {
            return self.life.end(outcome);
        }
        // It has said goodbye, and waits until that has arrived.
        self.life.leave(Some(now + self.options.timeouts.goodbye), outcome);
    }

    /// What is to be said of one that leaves now. Who tried and never came in has failed, though it
    /// would have tried again; whom the end of the run interrupts in its first attempt has not.
    fn outcome(&self) -> Outcome {
        if self.life.has_reached(Phase::Joined) {
            return Outcome::Completed;
        }
        let interrupted =
            || Failure::new(FailureReason::NotStarted, "left before it was in the room");
        Outcome::Failed(self.last_failure.clone().unwrap_or_else(interrupted))
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let never = (self.options.clock.at + NEVER, "nothing");
        if let Some(goodbye) = self.life.next_timeout() {
            return goodbye;
        }
        let state = match self.life.live() {
            Some(State::Open(session)) => session.next_timeout(),
            Some(State::Broken { again_at }) => Some((*again_at, "connects again")),
            Some(State::Moving { by }) => Some((*by, "connects to another server")),
            Some(State::Connecting) | None => None,
        };
        let speech = self.speech.as_ref().and_then(Speech::next_at).map(|at| (at, "speaks"));
        let interval = self.interval_at.map(|at| (at, "reports"));
        let is_joined =
            matches!(self.life.live(), Some(State::Open(session)) if session.is_joined());
        let rename = self.renames_at.filter(|_| is_joined).map(|at| (at, "changes its nickname"));
        state
            .into_iter()
            .chain(speech)
            .chain(interval)
            .chain(rename)
            .min_by_key(|(at, _)| *at)
            .unwrap_or(never)
    }
}

impl Participant for Member {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.life.is_over() {
            return;
        }
        match (input, self.life.live()) {
            (Input::Start { intended_at }, _) => {
                self.life.start(now, State::Connecting);
                // Who is not let in has things to say all the same, and cannot.
                let rng = fastrand::Rng::with_seed(self.config.speech_seed);
                self.speech =
                    Some(Speech::new(&self.config.chat, self.options.clock.at, intended_at, rng));
                self.interval_at = Some(now + INTERVAL);
                self.connect(now);
            }
            (Input::Opened { opening, .. }, Some(State::Connecting)) => self.opened(now, &opening),
            (Input::Message { message, .. }, Some(State::Open(_))) => {
                if let Err(failure) = self.incoming(now, Incoming::Frame(message)) {
                    self.broken(now, failure, true);
                }
            }
            (Input::Closed { why, .. }, Some(State::Open(_))) => {
                self.broken(now, closed(why), false);
            }
            (Input::Closed { why, .. }, Some(State::Connecting)) => {
                self.broken(now, why.into(), false);
            }
            (Input::Closed { .. }, Some(State::Moving { .. })) => self.connect(now),
            (Input::Download { fetch, event }, _) => self.download(now, fetch, event),
            (Input::Leave { .. }, _) => self.leave(now),
            // Due work is done when the outputs are drained.
            _ => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if !self.life.has_output() && !self.life.is_over() {
            self.tick(now);
        }
        self.life.pop().unwrap_or_else(|| {
            let (at, why) = self.next_deadline();
            Output::Timeout(at, why)
        })
    }
}

fn closed(why: ChannelError) -> Failure {
    why.after_opening()
}
