//! The client of a WebTorrent tracker: announcements with offers over one WebSocket, answers to the
//! offers of others.
//!
//! It behaves as `bittorrent-tracker` 11 in a browser: five offers with each announcement, one
//! announcement each time the interval of the tracker is over, answers to all offers, and after a
//! connection broke a new one 10 s · 2ⁿ (at most an hour) and a random time of up to five minutes
//! later.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use throng_observation::{PlaybackCounters, Url};
use throng_scenario::PeerEngine;

mod description;
mod ids;
mod message;

use description::{Kind, description};
pub(in crate::player) use ids::Id;
use message::{Announce, Answer, Description, Offer, TrackerMessage};

/// Offers with each announcement.
const OFFERS: usize = 5;
/// How long an offer is answered.
const OFFER_TIMEOUT: Duration = Duration::from_secs(50);
/// How often it announces before the tracker says how often.
const INTERVAL: Duration = Duration::from_secs(30);
/// More often than this no tracker may ask for.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);
/// How long a browser takes to gather the candidates of its offers.
const GATHERING: Duration = Duration::from_millis(100);
const RECONNECT_MIN: Duration = Duration::from_secs(10);
const RECONNECT_MAX: Duration = Duration::from_secs(3_600);
const RECONNECT_VARIANCE_S: f64 = 300.0;
/// Longer messages are no tracker's.
const MESSAGE_LEN_MAX: usize = 64 * 1024;

/// What the client has to say, or wants.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::player) enum TrackerOutput {
    /// Open the WebSocket.
    Open(Url),
    /// Send this.
    Send(String),
    /// Close it.
    Close,
    /// The tracker is not as it should be; once each time it is connected.
    Anomaly(String),
}

/// Who describes the connections that are offered and accepted.
pub(in crate::player) trait Describe {
    /// An offer of a connection in a swarm; `None` if nothing listens behind it.
    fn offer(&mut self, now: Instant, swarm: usize, offer: Id) -> Option<String>;
    /// The answer to the offer of a peer.
    fn answer(&mut self, now: Instant, swarm: usize, peer: Id, offer: &str) -> Described;
    /// Whether more peers are looked for in a swarm.
    fn wants_peers(&mut self, now: Instant, swarm: usize) -> bool;
}

/// The answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::player) enum Described {
    /// A connection that is there.
    As(String),
    /// Nothing listens behind it: a description for the tracker only.
    Invented,
    /// There is no room for another peer, who learns nothing.
    Refused,
}

/// Another viewer that this one can now be connected with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::player) struct Found {
    /// The swarm, by its place among those that were entered.
    pub(in crate::player) swarm: usize,
    pub(in crate::player) peer: Id,
    /// It has answered this offer, with this description.
    pub(in crate::player) answered: Option<(Id, String)>,
}

/// The client.
#[derive(Debug)]
pub(in crate::player) struct Tracker {
    url: Url,
    engine: PeerEngine,
    state: State,
    retries: u32,
    swarms: Vec<Entered>,
    /// Open offers: their swarms, and until when they are answered.
    offers: HashMap<Id, (usize, Instant)>,
    counters: PlaybackCounters,
    has_reported: bool,
    outputs: Vec<TrackerOutput>,
    rng: fastrand::Rng,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening,
    Open,
    Broken { again_at: Instant },
}

/// A swarm that this viewer is in.
#[derive(Debug)]
struct Entered {
    info_hash: Id,
    peer_id: Id,
    has_started: bool,
    next_at: Instant,
    interval: Duration,
    has_left: bool,
}

impl Tracker {
    pub(in crate::player) fn new(url: Url, engine: PeerEngine, seed: u64) -> Self {
        Self {
            url,
            engine,
            state: State::Idle,
            retries: 0,
            swarms: Vec::new(),
            offers: HashMap::new(),
            counters: PlaybackCounters::default(),
            has_reported: false,
            outputs: Vec::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Enters the swarm of rendition `index` of `stream`: its place, and the name of this viewer in
    /// it.
    pub(in crate::player) fn enter(
        &mut self,
        now: Instant,
        stream: &str,
        index: usize,
    ) -> (usize, Id) {
        let info_hash = ids::info_hash(self.engine, stream, index);
        if matches!(self.state, State::Idle) {
            self.open();
        }
        let next_at = now + GATHERING;
        if let Some(at) = self.swarms.iter().position(|swarm| swarm.info_hash == info_hash) {
            let Some(swarm) = self.swarms.get_mut(at) else { return (at, Id::default()) };
            (swarm.has_left, swarm.has_started, swarm.next_at) = (false, false, next_at);
            return (at, swarm.peer_id);
        }
        let peer_id = ids::peer_id(self.engine, &mut self.rng);
        self.swarms.push(Entered {
            info_hash,
            peer_id,
            has_started: false,
            next_at,
            interval: INTERVAL,
            has_left: false,
        });
        (self.swarms.len() - 1, peer_id)
    }

    /// Leaves a swarm. Engine 2.2 does not tell the tracker, which learns it when the connection is
    /// closed.
    pub(in crate::player) fn leave(&mut self, swarm: usize) {
        let is_open = matches!(self.state, State::Open);
        let Some(left) = self.swarms.get_mut(swarm).filter(|swarm| !swarm.has_left) else { return };
        left.has_left = true;
        if is_open && left.has_started && self.engine == PeerEngine::V06 {
            let announce = Announce {
                numwant: 50,
                uploaded: 0,
                downloaded: 0,
                event: Some("stopped"),
                action: "announce",
                info_hash: ids::text(&left.info_hash),
                peer_id: ids::text(&left.peer_id),
                offers: Vec::new(),
            };
            self.counters.announces += 1;
            self.send(&announce);
        }
    }

    /// Leaves all of them.
    pub(in crate::player) fn close(&mut self) {
        (0..self.swarms.len()).for_each(|swarm| self.leave(swarm));
        if matches!(std::mem::replace(&mut self.state, State::Idle), State::Open | State::Opening) {
            self.outputs.push(TrackerOutput::Close);
        }
    }

    fn open(&mut self) {
        self.state = State::Opening;
        self.outputs.push(TrackerOutput::Open(self.url.clone()));
    }

    /// The WebSocket is open.
    pub(in crate::player) fn opened(&mut self, now: Instant) {
        if matches!(self.state, State::Opening) {
            (self.state, self.retries, self.has_reported) = (State::Open, 0, false);
            for swarm in &mut self.swarms {
                swarm.next_at = now + GATHERING;
            }
        }
    }

    /// The WebSocket is closed, or could not be opened.
    pub(in crate::player) fn closed(&mut self, now: Instant, why: &str) {
        if matches!(self.state, State::Idle | State::Broken { .. }) {
            return;
        }
        self.counters.tracker_reconnects += 1;
        // Proxies close a WebSocket that is silent for a minute or so: the page notices nothing but
        // that it cannot be opened again.
        if matches!(self.state, State::Opening) {
            self.note_anomaly(format!("{}: {why}", self.url));
        }
        let doubled = RECONNECT_MIN.saturating_mul(1 << self.retries.min(16)).min(RECONNECT_MAX);
        let varied = Duration::from_secs_f64(self.rng.f64() * RECONNECT_VARIANCE_S);
        self.retries += 1;
        self.offers.clear();
        self.state = State::Broken { again_at: now + doubled + varied };
    }

    /// A message came.
    pub(in crate::player) fn message(
        &mut self,
        now: Instant,
        text: &str,
        describe: &mut dyn Describe,
    ) -> Option<Found> {
        self.counters.tracker_bytes_received += text.len() as u64;
        let said =
            (text.len() <= MESSAGE_LEN_MAX).then(|| serde_json::from_str::<TrackerMessage>(text));
        let Some(Ok(said)) = said else {
            self.note_anomaly(format!("{}: sent something other than a tracker message", self.url));
            return None;
        };
        if said.action.as_deref() != Some("announce") {
            self.note_anomaly(format!("{}: sent a message that is not an announcement", self.url));
            return None;
        }
        let info_hash = said.info_hash.as_deref().and_then(ids::of_text)?;
        let at =
            self.swarms.iter().position(|swarm| swarm.info_hash == info_hash && !swarm.has_left)?;
        if let Some(problem) = said.failure.as_ref().or(said.warning.as_ref()) {
            let shown: String =
                problem.chars().filter(|letter| !letter.is_control()).take(100).collect();
            self.note_anomaly(format!("{}: \"{shown}\"", self.url));
            if said.failure.is_some() {
                return None;
            }
        }
        let swarm = self.swarms.get_mut(at)?;
        let peer = said.peer_id.as_deref().and_then(ids::of_text);
        if peer == Some(swarm.peer_id) {
            return None;
        }
        if let Some(seconds) = said.interval.or(said.min_interval).filter(|seconds| *seconds > 0.0)
        {
            let interval = Duration::try_from_secs_f64(seconds).unwrap_or(INTERVAL_MAX);
            swarm.interval = interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
            swarm.next_at = now + swarm.interval;
        }
        let (peer, own) = (peer?, swarm.peer_id);
        if let Some(offer) = said.offer {
            self.counters.offers_received += 1;
            let described = describe.answer(now, at, peer, &offer.sdp);
            self.answer(&info_hash, [&own, &peer], said.offer_id?, described);
            return Some(Found { swarm: at, peer, answered: None });
        }
        let answer = said.answer?;
        self.counters.answers_received += 1;
        let offer = said.offer_id.as_deref().and_then(ids::of_text)?;
        self.offers.remove(&offer).filter(|(_, until)| now < *until)?;
        Some(Found { swarm: at, peer, answered: Some((offer, answer.sdp)) })
    }

    fn answer(
        &mut self,
        info_hash: &Id,
        [own, peer]: [&Id; 2],
        offer_id: String,
        described: Described,
    ) {
        let sdp = match described {
            Described::As(sdp) => sdp,
            Described::Invented => description(Kind::Answer, &mut self.rng),
            Described::Refused => return,
        };
        let answer = Answer {
            action: "announce",
            info_hash: ids::text(info_hash),
            peer_id: ids::text(own),
            to_peer_id: ids::text(peer),
            answer: Description { kind: "answer".into(), sdp },
            offer_id,
        };
        self.send(&answer);
    }

    /// Does what is due.
    pub(in crate::player) fn tick(&mut self, now: Instant, describe: &mut dyn Describe) {
        match self.state {
            State::Broken { again_at } if now >= again_at => self.open(),
            State::Open => {
                for at in 0..self.swarms.len() {
                    if self
                        .swarms
                        .get(at)
                        .is_some_and(|swarm| !swarm.has_left && now >= swarm.next_at)
                    {
                        self.announce(now, at, describe);
                    }
                }
            }
            State::Broken { .. } | State::Idle | State::Opening => {}
        }
    }

    fn announce(&mut self, now: Instant, at: usize, describe: &mut dyn Describe) {
        self.offers.retain(|_, (_, until)| now < *until);
        let count = if describe.wants_peers(now, at) { OFFERS } else { 0 };
        let mut offers = Vec::with_capacity(count);
        for _ in 0..count {
            let mut id = Id::default();
            self.rng.fill(&mut id);
            self.offers.insert(id, (at, now + OFFER_TIMEOUT));
            let described = describe.offer(now, at, id);
            let sdp = described.unwrap_or_else(|| description(Kind::Offer, &mut self.rng));
            let offer = Description { kind: "offer".into(), sdp };
            offers.push(Offer { offer, offer_id: ids::text(&id) });
        }
        let Some(swarm) = self.swarms.get_mut(at) else { return };
        swarm.next_at = now + swarm.interval;
        let event = (!std::mem::replace(&mut swarm.has_started, true)).then_some("started");
        let announce = Announce {
            numwant: count,
            uploaded: 0,
            downloaded: 0,
            event,
            action: "announce",
            info_hash: ids::text(&swarm.info_hash),
            peer_id: ids::text(&swarm.peer_id),
            offers,
        };
        self.counters.announces += 1;
        self.send(&announce);
    }

    fn send(&mut self, message: &impl serde::Serialize) {
        // Strings and numbers always become JSON.
        let text = serde_json::to_string(message).unwrap_or_default();
        self.counters.tracker_bytes_sent += text.len() as u64;
        self.outputs.push(TrackerOutput::Send(text));
    }

    fn note_anomaly(&mut self, what: String) {
        if !std::mem::replace(&mut self.has_reported, true) {
            self.outputs.push(TrackerOutput::Anomaly(what));
        }
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Broken { again_at } => Some(again_at),
            State::Open => {
                self.swarms.iter().filter(|swarm| !swarm.has_left).map(|swarm| swarm.next_at).min()
            }
            State::Idle | State::Opening => None,
        }
    }

    pub(in crate::player) fn take_outputs(&mut self) -> Vec<TrackerOutput> {
        std::mem::take(&mut self.outputs)
    }

    /// Takes what was counted since the last call; sums that are not of a tracker are 0.
    pub(in crate::player) fn take_counters(&mut self) -> PlaybackCounters {
        std::mem::take(&mut self.counters)
    }
}

/// Describes nothing.
struct Nowhere;

impl Describe for Nowhere {
    fn offer(&mut self, _: Instant, _: usize, _: Id) -> Option<String> {
        None
    }

    fn answer(&mut self, _: Instant, _: usize, _: Id, _: &str) -> Described {
        Described::Invented
    }

    fn wants_peers(&mut self, _: Instant, _: usize) -> bool {
        true
    }
}

/// For the mutation tests: reads what a tracker may say, a message a line. `@hash@` in it is the
/// name of the viewer's swarm, `@offer@` an offer of the viewer. How many bytes the tracker is
/// sent.
#[doc(hidden)]
#[must_use]
pub fn read_any_tracker(bytes: &[u8], now: Instant) -> usize {
    let Ok(url) = Url::parse("wss://a.example/tracker/socket") else { return 0 };
    let mut tracker = Tracker::new(url, PeerEngine::V22, 7);
    tracker.enter(now, "https://a.example/master.m3u8", 0);
    tracker.opened(now);
    let mut at = now + GATHERING;
    tracker.tick(at, &mut Nowhere);
    let hash = tracker.swarms.first().map(|swarm| ids::text(&swarm.info_hash)).unwrap_or_default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let offer = tracker.offers.keys().min().map(ids::text).unwrap_or_default();
        // Both are letters of Latin-1, some of which JSON has to escape.
        let quoted = |text: &str| {
            let json = serde_json::to_string(text).unwrap_or_default();
            json.trim_matches('"').to_owned()
        };
        let line = line.replace("@hash@", &quoted(&hash)).replace("@offer@", &quoted(&offer));
        at += INTERVAL_MIN;
        let _ = tracker.message(at, &line, &mut Nowhere);
        tracker.tick(at, &mut Nowhere);
    }
    tracker.close();
    tracker.take_counters().tracker_bytes_sent as usize
}

#[cfg(test)]
mod tests;
