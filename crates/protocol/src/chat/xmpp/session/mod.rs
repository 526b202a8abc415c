//! One XMPP stream over a WebSocket (RFC 7395): it authenticates, joins the room as ConverseJS does, and stays.
//!
//! ```text
//! open → features → auth → success → open → features → bind → session
//!   → disco, roster, vCards, carbons, presence → x-roomuser-item → join → own presence (110) → history → vCards of others
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason};

use super::XmppConfig;
use super::ids::Ids;
use super::room::Room;
use super::sasl::Sasl;
use super::stanzas;
use crate::participant::Why;
use ask::Asked;

mod answer;
mod ask;

/// Without a stanza for so long the server is asked for a sign of life (`ping_interval` of livechat).
const PING_AFTER: Duration = Duration::from_secs(25);

/// What came of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat) enum Event {
    /// The room has everybody's presence and its own.
    Joined,
    /// A message of the room, with who said it; `is_old`: from its archive.
    Said { nick: String, body: String, is_old: bool },
}

/// What was received and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::chat) struct Traffic {
    pub(in crate::chat) stanzas_received: u64,
    pub(in crate::chat) presences_received: u64,
    pub(in crate::chat) vcards_received: u64,
    pub(in crate::chat) bytes_received: u64,
    pub(in crate::chat) stanzas_sent: u64,
    pub(in crate::chat) bytes_sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Not opened.
    Closed,
    /// Opened; the server has to say how it can be authenticated.
    Offers,
    Authenticates,
    /// Opened again.
    Features,
    Binds,
    /// It has an address, and asks what a browser asks before it joins.
    Online,
    Joins,
    Joined,
}

/// The stream.
pub(in crate::chat) struct Session {
    config: XmppConfig,
    step: Step,
    ids: Ids,
    nonce: String,
    sasl: Option<Sasl>,
    /// Its full address, once bound.
    jid: String,
    room: Room,
    asked: BTreeMap<u64, Asked>,
    /// Whose vCard was asked for.
    known: BTreeSet<u64>,
    authors: Vec<String>,
    /// When the step under way has failed.
    overdue_at: Option<Instant>,
    /// When a sign of life is asked for, or (asked) must have come.
    ping_at: Option<Instant>,
    traffic: Traffic,
    frames: VecDeque<String>,
}

impl Session {
    pub(in crate::chat) fn new(config: XmppConfig, dice: &mut fastrand::Rng) -> Self {
        let room = Room::new(&config.room, &config.nick);
        let nonce = (0..24).map(|_| dice.alphanumeric()).collect();
        Self {
            config,
            step: Step::Closed,
            ids: Ids::new(dice),
            nonce,
            sasl: None,
            jid: String::new(),
            room,
            asked: BTreeMap::new(),
            known: BTreeSet::new(),
            authors: Vec::new(),
            overdue_at: None,
            ping_at: None,
            traffic: Traffic::default(),
            frames: VecDeque::new(),
        }
    }

    /// The WebSocket is open.
    pub(in crate::chat) fn opened(&mut self, now: Instant) {
        self.send(stanzas::open(&self.config.domain));
        self.go(now, Step::Offers);
    }

    /// Others in the room.
    pub(in crate::chat) fn occupants(&self) -> usize {
        self.room.occupants()
    }

    pub(in crate::chat) fn is_joined(&self) -> bool {
        self.step == Step::Joined
    }

    pub(in crate::chat) fn poll_send(&mut self) -> Option<String> {
        self.frames.pop_front()
    }

    pub(in crate::chat) fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    pub(in crate::chat) fn next_timeout(&self) -> Option<(Instant, Why)> {
        let overdue = self.overdue_at.map(|at| (at, "answer overdue"));
        let ping = self.ping_at.map(|at| (at, "ping"));
        overdue.into_iter().chain(ping).min_by_key(|(at, _)| *at)
    }

    pub(in crate::chat) fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        if self.overdue_at.is_some_and(|at| now >= at) {
            let what = self.awaited();
            let detail = format!("no {what} within {} s", self.config.answer_within.as_secs_f64());
            return Err(Failure::new(FailureReason::SignallingTimeout, detail));
        }
        if self.ping_at.is_some_and(|at| now >= at) {
            let (id, number) = self.ids.uuid();
            self.asked.insert(number, Asked::Ping);
            self.send(stanzas::ping(&format!("{id}:ping"), &self.config.domain));
            self.ping_at = None;
            self.overdue_at = Some(now + self.config.answer_within);
        }
        Ok(())
    }

    fn awaited(&self) -> &'static str {
        match self.step {
            Step::Closed => "stream",
            Step::Offers => "stream features",
            Step::Authenticates => "answer to its authentication",
            Step::Features => "stream features after its authentication",
            Step::Binds => "address (bind)",
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
        self.traffic.stanzas_sent += 1;
        self.traffic.bytes_sent += frame.len() as u64;
        self.frames.push_back(frame);
    }
}
