//! One XMPP stream over a WebSocket (RFC 7395): it authenticates, joins the room as ConverseJS does, and stays.
//!
//! ```text
//! open → features → auth → success → open → features → bind → session
//!   → disco, roster, vCards, carbons, presence → x-roomuser-item → join → own presence (110) → history → vCards of others
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason};
use throng_scenario::VcardPolicy;

use super::XmppConfig;
use super::ids::Ids;
use super::room::{Room, RoomEvent};
use super::sasl::Sasl;
use super::stanzas::{self, ns};
use super::xml::{Element, unescaped};
use crate::excerpt::excerpt;
use crate::participant::Why;

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

/// A request that was not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Bind,
    Session,
    HostInfo,
    RoomInfo,
    RegisteredNick,
    History,
    Vcard,
    Ping,
    /// Its answer leads to nothing.
    Other,
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

    /// Says something to the room.
    pub(in crate::chat) fn say(&mut self, body: &str) {
        let (id, _) = self.ids.uuid();
        if self.config.has_chat_states {
            // Who types is seen by everybody.
            let (state, _) = self.ids.uuid();
            self.send(stanzas::chat_state(&state, &self.config.room, "composing"));
        }
        self.send(stanzas::message(&id, &self.jid, &self.config.room, body, self.config.has_chat_states));
    }

    /// Leaves as a closed tab does.
    pub(in crate::chat) fn leave(&mut self) {
        if self.step >= Step::Joins {
            self.send(stanzas::leave(&self.jid, &self.room.occupant()));
        }
        if self.step != Step::Closed {
            self.send(stanzas::close());
        }
        (self.step, self.overdue_at, self.ping_at) = (Step::Closed, None, None);
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

    fn ask(&mut self, asked: Asked, frame: impl FnOnce(&Self, &str) -> String) {
        let (id, number) = self.ids.uuid();
        self.asked.insert(number, asked);
        let suffix = if matches!(asked, Asked::Other) { ":roster" } else { ":sendIQ" };
        let frame = frame(self, &format!("{id}{suffix}"));
        self.send(frame);
    }

    /// Takes a frame of the server.
    pub(in crate::chat) fn receive(&mut self, now: Instant, frame: &str) -> Result<Vec<Event>, Failure> {
        self.traffic.stanzas_received += 1;
        self.traffic.bytes_received += frame.len() as u64;
        let element = Element::read(frame)
            .map_err(|error| protocol(format!("a frame is no stanza: {error}: {}", excerpt(frame))))?;
        if self.step == Step::Joined {
            self.ping_at = Some(now + PING_AFTER);
            self.overdue_at = None;
        }
        match element.name {
            "presence" => self.presence(now, &element),
            "message" => Ok(self.message(&element)),
            "iq" => self.iq(now, &element),
            _ => self.stream(now, &element).map(|()| Vec::new()),
        }
    }

    /// What is about the stream itself.
    fn stream(&mut self, now: Instant, element: &Element<'_>) -> Result<(), Failure> {
        match (element.name, self.step) {
            ("open", _) => Ok(()),
            ("stream:features" | "features", Step::Offers) => self.authenticate(now, element),
            ("stream:features" | "features", Step::Features) => {
                let (id, number) = ("_bind_auth_2", 0);
                self.asked.insert(number, Asked::Bind);
                self.send(stanzas::bind(id));
                self.go(now, Step::Binds);
                Ok(())
            }
            ("challenge", Step::Authenticates) => {
                let sasl = self
                    .sasl
                    .as_mut()
                    .ok_or_else(|| protocol("a challenge before a mechanism".to_owned()))?;
                let answer = sasl.answer(&element.text()).map_err(protocol)?;
                self.send(stanzas::response(&answer));
                Ok(())
            }
            ("success", Step::Authenticates) => {
                if let Some(sasl) = &self.sasl {
                    sasl.check(&element.text()).map_err(protocol)?;
                }
                self.send(stanzas::open(&self.config.domain));
                self.go(now, Step::Features);
                Ok(())
            }
            ("failure", Step::Authenticates) => {
                let why = element.children().next().map_or("", |child| child.name);
                Err(Failure::new(FailureReason::Unauthorized, format!("authentication: {}", excerpt(why))))
            }
            ("stream:error" | "error", _) => {
                let why = element.children().next().map_or("", |child| child.name);
                Err(Failure::new(FailureReason::Refused, format!("stream error: {}", excerpt(why))))
            }
            ("close", _) => {
                let to =
                    element.attribute("see-other-uri").map(|uri| format!(", and refers to {}", excerpt(uri)));
                let detail = format!("the server closes the stream{}", to.unwrap_or_default());
                Err(Failure::new(FailureReason::SignallingClosed, detail))
            }
            // What a later version of XMPP adds.
            _ => Ok(()),
        }
    }

    fn authenticate(&mut self, now: Instant, features: &Element<'_>) -> Result<(), Failure> {
        let mechanisms = features.child("mechanisms");
        let offered: Vec<String> = mechanisms
            .iter()
            .flat_map(Element::children)
            .filter(|child| child.name == "mechanism")
            .map(|child| child.text().into_owned())
            .collect();
        let names: Vec<&str> = offered.iter().map(String::as_str).collect();
        let sasl =
            Sasl::choose(&names, self.config.credentials.as_ref(), self.nonce.clone()).ok_or_else(|| {
                let who =
                    if self.config.credentials.is_some() { "an account" } else { "anonymous participants" };
                let offers = if names.is_empty() { "nothing".to_owned() } else { excerpt(&names.join(", ")) };
                Failure::new(
                    FailureReason::Unauthorized,
                    format!("{} offers {offers}, and nothing for {who}", self.config.domain),
                )
            })?;
        self.send(stanzas::auth(sasl.mechanism, &sasl.first));
        self.sasl = Some(sasl);
        self.go(now, Step::Authenticates);
        Ok(())
    }

    fn iq(&mut self, now: Instant, iq: &Element<'_>) -> Result<Vec<Event>, Failure> {
        let id = iq.attribute("id").unwrap_or_default();
        let kind = iq.attribute("type").unwrap_or_default();
        if matches!(kind, "get" | "set") {
            let to = iq.attribute("from").map(unescaped);
            self.send(stanzas::nothing(&unescaped(id), to.as_deref()));
            return Ok(Vec::new());
        }
        let number = if id.starts_with('_') { Some(0) } else { self.ids.number(id) };
        let Some(asked) = number.and_then(|number| self.asked.remove(&number)) else { return Ok(Vec::new()) };
        self.answered(now, asked, iq, kind == "result")
    }

    fn answered(
        &mut self,
        now: Instant,
        asked: Asked,
        iq: &Element<'_>,
        is_result: bool,
    ) -> Result<Vec<Event>, Failure> {
        match asked {
            Asked::Bind => {
                let jid = iq.child("bind").and_then(|bind| bind.child("jid"));
                let jid = jid.ok_or_else(|| protocol("a bind without an address".to_owned()))?;
                self.jid = jid.text().into_owned();
                self.asked.insert(0, Asked::Session);
                self.send(stanzas::session("_session_auth_2"));
            }
            Asked::Session => self.online(now),
            Asked::HostInfo => {
                self.ask(Asked::Other, |own, id| {
                    stanzas::disco(id, &own.jid, &own.config.domain, ns::DISCO_ITEMS)
                });
                self.send(stanzas::available());
            }
            Asked::RoomInfo => {
                self.ask(Asked::RegisteredNick, |own, id| {
                    stanzas::registered_nick(id, &own.jid, &own.config.room)
                });
                self.ask(Asked::Other, |own, id| stanzas::enable_carbons(id, &own.jid));
            }
            Asked::RegisteredNick => self.join(now),
            Asked::Vcard => self.traffic.vcards_received += u64::from(is_result),
            Asked::History => self.ask_authors(),
            Asked::Ping | Asked::Other => {}
        }
        Ok(Vec::new())
    }

    /// It has an address: asks what ConverseJS asks before it joins.
    fn online(&mut self, now: Instant) {
        self.go(now, Step::Online);
        self.ask(Asked::HostInfo, |own, id| stanzas::disco(id, &own.jid, &own.config.domain, ns::DISCO_INFO));
        self.ask(Asked::Other, |_, id| stanzas::roster(id));
        self.ask(Asked::Vcard, |_, id| stanzas::vcard(id, None));
        self.ask(Asked::Vcard, |own, id| stanzas::vcard(id, Some(&own.config.room)));
        self.ask(Asked::RoomInfo, |own, id| stanzas::disco(id, &own.jid, &own.config.room, ns::DISCO_INFO));
    }

    fn join(&mut self, now: Instant) {
        let (id, _) = self.ids.uuid();
        self.send(stanzas::join(&id, &self.jid, &self.room.occupant()));
        self.go(now, Step::Joins);
    }

    fn presence(&mut self, now: Instant, presence: &Element<'_>) -> Result<Vec<Event>, Failure> {
        self.traffic.presences_received += 1;
        match self.room.presence(presence)? {
            Some(RoomEvent::Joined) if self.step == Step::Joins => {
                self.go(now, Step::Joined);
                self.ping_at = Some(now + PING_AFTER);
                if self.config.history_max > 0 {
                    let (query, _) = self.ids.uuid();
                    let max = self.config.history_max;
                    self.ask(Asked::History, |own, id| stanzas::history(id, &own.config.room, &query, max));
                }
                if self.config.vcards == VcardPolicy::All {
                    let others: Vec<String> = self.room.others().map(str::to_owned).collect();
                    others.iter().for_each(|nick| self.ask_vcard(nick));
                }
                Ok(vec![Event::Joined])
            }
            Some(RoomEvent::NickTaken) if self.step == Step::Joins => {
                self.join(now);
                Ok(Vec::new())
            }
            Some(RoomEvent::Entered(nick))
                if self.step == Step::Joined && self.config.vcards == VcardPolicy::All =>
            {
                self.ask_vcard(&nick);
                Ok(Vec::new())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn message(&mut self, message: &Element<'_>) -> Vec<Event> {
        // From the archive, in another one (XEP-0297).
        let forwarded = message.child_of("result", ns::MAM).and_then(|result| result.child("forwarded"));
        let (said, is_old) = match forwarded.and_then(|forwarded| forwarded.child("message")) {
            Some(inner) => (inner, true),
            None => (*message, message.child("delay").is_some()),
        };
        let from = said.attribute("from").map(unescaped).unwrap_or_default();
        let Some((_, nick)) = from.split_once('/') else { return Vec::new() };
        let Some(body) = said.child("body") else { return Vec::new() };
        let is_groupchat = said.attribute("type") == Some("groupchat");
        if !is_groupchat {
            return Vec::new();
        }
        if is_old {
            self.authors.push(nick.to_owned());
        } else if self.config.vcards != VcardPolicy::None {
            self.ask_vcard(nick);
        }
        vec![Event::Said { nick: nick.to_owned(), body: body.text().into_owned(), is_old }]
    }

    /// Asks for the vCards of those who wrote what the archive has.
    fn ask_authors(&mut self) {
        let authors = std::mem::take(&mut self.authors);
        if self.config.vcards != VcardPolicy::None {
            authors.iter().for_each(|nick| self.ask_vcard(nick));
        }
    }

    /// Asks for the vCard of an occupant, once.
    fn ask_vcard(&mut self, nick: &str) {
        if self.room.is_own(nick) || !self.known.insert(hash(nick)) {
            return;
        }
        let to = format!("{}/{nick}", self.config.room);
        self.ask(Asked::Vcard, |_, id| stanzas::vcard(id, Some(&to)));
    }
}

/// Names are remembered by a hash: a room may have thousands.
fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn protocol(detail: String) -> Failure {
    Failure::new(FailureReason::Protocol, detail)
}
