//! One XMPP stream over a WebSocket (RFC 7395): it authenticates, joins the room as ConverseJS
//! does, and stays.
//!
//! ```text
//! open → features → auth → success → open → features → bind → session
//!   → enable (XEP-0198) → disco, roster, vCards, carbons, presence → x-roomuser-item → join
//!   → own presence (110) → history → vCards of others
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use throng_observation::{ChatCounters, Failure, FailureReason};

use super::XmppConfig;
use super::ids::Ids;
use super::management::{Management, Resumption};
use super::room::Room;
use super::sasl::Sasl;
use super::stanzas;
use crate::chat::session::{Event, Incoming, Outgoing, Session};
use crate::participant::{Message, Why};
use iq::PendingIq;

mod answer;
mod iq;

/// Without a stanza for so long the server is asked for a sign of life (`ping_interval` of
/// livechat).
const PING_AFTER: Duration = Duration::from_secs(25);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Not opened.
    Closed,
    /// Opened; the server has to say how it can be authenticated.
    Offers,
    Authenticates,
    /// Opened again.
    Features,
    /// Asks for the stream of the connection before.
    Resumes,
    Binds,
    /// Asks for stream management.
    Enables,
    /// It has an address, and asks what a browser asks before it joins.
    Online,
    Joins,
    Joined,
}

/// The stream.
pub(in crate::chat) struct Stream {
    config: XmppConfig,
    step: Step,
    ids: Ids,
    nonce: String,
    sasl: Option<Sasl>,
    /// Its full address, once bound.
    jid: String,
    room: Room,
    /// The server offers stream management.
    offers_management: bool,
    /// What is acknowledged, from the time at which it was enabled.
    management: Option<Management>,
    /// The stream of the connection before, until the server was asked for it.
    before: Option<Resumption>,
    /// It has gone on from a connection before: what the server has kept has a date.
    is_resumed: bool,
    asked: BTreeMap<u64, PendingIq>,
    /// Whose vCard was asked for.
    known: BTreeSet<u64>,
    /// The archive is being read, and who wrote what has come of it.
    reads_history: bool,
    pub(in crate::chat::xmpp) authors: Vec<String>,
    /// When the step under way has failed.
    overdue_at: Option<Instant>,
    /// When a sign of life is asked for, or (asked) must have come.
    ping_at: Option<Instant>,
    traffic: ChatCounters,
    frames: VecDeque<String>,
}

impl Stream {
    /// A stream; `before`: that of a connection that broke, which the server is asked for.
    pub(in crate::chat) fn new(
        config: XmppConfig,
        before: Option<Resumption>,
        rng: &mut fastrand::Rng,
    ) -> Self {
        let room = Room::new(&config.room, &config.nick);
        let nonce = (0..24).map(|_| rng.alphanumeric()).collect();
        Self {
            config,
            step: Step::Closed,
            ids: Ids::new(rng),
            nonce,
            sasl: None,
            jid: String::new(),
            room,
            offers_management: false,
            management: None,
            before,
            is_resumed: false,
            asked: BTreeMap::new(),
            known: BTreeSet::new(),
            reads_history: false,
            authors: Vec::new(),
            overdue_at: None,
            ping_at: None,
            traffic: ChatCounters::default(),
            frames: VecDeque::new(),
        }
    }

    fn awaited(&self) -> &'static str {
        match self.step {
            Step::Closed => "stream",
            Step::Offers => "stream features",
            Step::Authenticates => "answer to its authentication",
            Step::Features => "stream features after its authentication",
            Step::Resumes => "answer whether the stream is resumed",
            Step::Binds => "address (bind)",
            Step::Enables => "answer whether stream management is enabled",
            Step::Online => "answer of the room (disco#info)",
            Step::Joins => "presence of its own in the room",
            Step::Joined => "answer to a ping",
        }
    }

    fn go(&mut self, now: Instant, step: Step) {
        self.step = step;
        self.overdue_at = (step < Step::Joined).then(|| now + self.config.answer_within);
    }

    fn send(&mut self, frame: String) {
        self.traffic.frames_sent += 1;
        self.traffic.bytes_sent += frame.len() as u64;
        let asks =
            self.management.as_mut().is_some_and(|own| is_stanza(&frame) && own.sent(&frame));
        self.frames.push_back(frame);
        if asks {
            self.send(stanzas::request_acknowledgement());
        }
    }
}

impl Session for Stream {
    fn opened(&mut self, now: Instant) -> Vec<Event> {
        self.send(stanzas::open(&self.config.domain));
        self.go(now, Step::Offers);
        Vec::new()
    }

    fn receive(&mut self, now: Instant, incoming: Incoming) -> Result<Vec<Event>, Failure> {
        match incoming {
            Incoming::Frame(Message::Text(frame)) => self.frame(now, &frame),
            Incoming::Frame(Message::Binary(_)) => {
                Err(Failure::new(FailureReason::Protocol, "a binary message on an XMPP stream"))
            }
            Incoming::Event(_) | Incoming::Answer(..) => Ok(Vec::new()),
        }
    }

    fn say(&mut self, text: &str) {
        self.message_to_room(text);
    }

    fn change_nick(&mut self, nick: &str) {
        self.room.wants(nick);
        self.ask_nick();
    }

    fn leave(&mut self) {
        self.say_goodbye();
        (self.step, self.overdue_at, self.ping_at) = (Step::Closed, None, None);
    }

    fn occupants(&self) -> usize {
        self.room.occupants()
    }

    fn nick(&self) -> &str {
        self.room.nick()
    }

    /// ConverseJS clears the session of an anonymous account before it
    /// connects again, so that only others are resumed.
    fn resumption(&mut self) -> Option<Resumption> {
        self.config.credentials.as_ref()?;
        let management = self.management.take().filter(Management::is_resumable);
        let of_this = management.map(|management| Resumption { management, jid: self.jid.clone() });
        // A connection that broke before it could ask leaves it to the next one.
        of_this.or_else(|| self.before.take())
    }

    fn is_joined(&self) -> bool {
        self.step == Step::Joined
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.frames.pop_front().map(|frame| Outgoing::Frame(Message::Text(frame)))
    }

    fn take_traffic(&mut self) -> ChatCounters {
        std::mem::take(&mut self.traffic)
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        let overdue = self.overdue_at.map(|at| (at, "answer overdue"));
        let ping = self.ping_at.map(|at| (at, "ping"));
        overdue.into_iter().chain(ping).min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        if self.overdue_at.is_some_and(|at| now >= at) {
            let what = self.awaited();
            let detail = format!("no {what} within {} s", self.config.answer_within.as_secs_f64());
            return Err(Failure::new(FailureReason::SignallingTimeout, detail));
        }
        if self.ping_at.is_some_and(|at| now >= at) {
            let (id, number) = self.ids.uuid();
            self.asked.insert(number, PendingIq::Ping);
            self.send(stanzas::ping(&format!("{id}:ping"), &self.config.domain));
            self.ping_at = None;
            self.overdue_at = Some(now + self.config.answer_within);
        }
        Ok(())
    }
}

/// Whether a frame that is sent counts as a stanza (XEP-0198 section 4).
fn is_stanza(frame: &str) -> bool {
    ["<iq ", "<presence ", "<message "].iter().any(|name| frame.starts_with(name))
}
