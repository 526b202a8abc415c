//! The one room of the stage: its sessions, its publisher, and the ways to the workers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::config::{Card, StageConfig};
use crate::inbox::{Inbox, Live, NewSession, Order};
use crate::no_rtx::without_rtx;
use crate::peer::{Identity, OfferError, Role};
use crate::reel::Library;
use crate::source::{Audience, Burst, Channel, Codec, Source};
use crate::stats::{StageStats, WorkerCounters, add};

/// What the maker of an offer gets.
#[derive(Debug)]
pub(crate) struct Welcome {
    pub(crate) id: String,
    pub(crate) etag: String,
    pub(crate) answer: String,
}

/// Why somebody was not let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Offer(#[from] OfferError),
    #[error("the room is full: {0} viewers")]
    Full(usize),
    #[error("somebody publishes already")]
    Occupied,
    #[error("no place for another stream: {} are known", Channel::COUNT)]
    Streams,
}

/// Why a candidate was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trickle {
    Taken,
    UnknownSession,
    /// `If-Match` names another ICE session.
    OtherSession,
}

/// A worker as others see it.
pub(crate) struct Worker {
    pub(crate) inbox: Inbox,
    pub(crate) counters: WorkerCounters,
    pub(crate) local: SocketAddr,
    pub(crate) name: String,
}

/// See the module's head.
pub(crate) struct Room {
    pub(crate) config: StageConfig,
    pub(crate) audience: Audience,
    pub(crate) workers: Vec<Worker>,
    identity: Identity,
    /// What all workers take turns at, where that is planted.
    pub(crate) turn: Mutex<()>,
    /// The viewers' files, where media has to be read.
    pub(crate) library: Option<Library>,
    sessions: Mutex<Sessions>,
    viewers_total: AtomicU64,
    viewers_refused: AtomicU64,
    started_at: Instant,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<String, Entry>,
    viewers: usize,
    /// Names of streams that were asked for, by channel; the first is the one without a name.
    names: Vec<String>,
    streams: HashMap<Channel, Stream>,
}

/// Who publishes a stream, and what.
#[derive(Default)]
struct Stream {
    publisher: Option<String>,
    live: Option<Live>,
}

impl Sessions {
    /// The channel of the stream called `name`; a new one where nobody asked for it before.
    fn channel(&mut self, name: &str) -> Result<Channel, Refusal> {
        if self.names.is_empty() {
            self.names.push(String::new());
        }
        let known = self.names.iter().position(|known| known == name);
        let channel = Channel::new(known.unwrap_or(self.names.len())).ok_or(Refusal::Streams)?;
        if known.is_none() {
            self.names.push(name.to_owned());
        }
        Ok(channel)
    }
}

struct Entry {
    worker: usize,
    channel: Channel,
    role: Role,
    etag: String,
}

impl Room {
    pub(crate) fn new(
        config: StageConfig,
        identity: Identity,
        workers: Vec<Worker>,
        library: Option<Library>,
    ) -> Self {
        Self {
            config,
            audience: std::array::from_fn(|_| AtomicU32::new(0)),
            workers,
            identity,
            turn: Mutex::default(),
            library,
            sessions: Mutex::default(),
            viewers_total: AtomicU64::new(0),
            viewers_refused: AtomicU64::new(0),
            started_at: Instant::now(),
        }
    }

    /// Whether one more viewer is to be sent a picture.
    pub(crate) fn has_a_picture_left(&self) -> bool {
        self.config.planted.pictures_max.is_none_or(|max| self.pictures() < max)
    }

    /// Whether one more viewer is to get his picture in stutters.
    pub(crate) fn stutters(&self) -> bool {
        self.config.planted.stutters_beyond.is_some_and(|max| self.pictures() >= max)
    }

    /// Viewers who are sent a picture.
    fn pictures(&self) -> usize {
        let viewers =
            |source: Source| self.audience.get(source.place()).map_or(0, |count| count.load(Relaxed));
        Source::pictures().map(|source| viewers(source) as usize).sum()
    }

    /// Answers an offer for the stream of that name and hands the session to the worker with the fewest viewers.
    pub(crate) fn welcome(
        &self,
        role: Role,
        card: Card,
        stream: &str,
        offer: &str,
    ) -> Result<Welcome, Refusal> {
        let id = format!("{:032x}", fastrand::u128(..));
        let etag = format!("\"{:016x}\"", fastrand::u64(..));
        let (index, channel) = self.reserve(role, stream, &id, &etag)?;
        let worker = &self.workers[index];
        let plain = self.config.planted.no_rtx.then(|| without_rtx(offer));
        let offer = plain.as_deref().unwrap_or(offer);
        let answered =
            match self.identity.answer(offer, role, worker.local, Instant::now(), self.config.emulates) {
                Ok(answered) => answered,
                Err(error) => {
                    self.forget(&id);
                    return Err(error.into());
                }
            };
        let ballast = match role {
            Role::Viewer => {
                add(&self.viewers_total, 1);
                self.config.planted.memory_of_viewer()
            }
            Role::Publisher => Vec::new(),
        };
        worker.inbox.order(Order::Join(Box::new(NewSession {
            id: id.clone(),
            role,
            card,
            channel,
            peer: answered.peer,
            local_ufrag: answered.local_ufrag,
            agreed: answered.agreed,
            ballast,
        })));
        Ok(Welcome { id, etag, answer: answered.sdp })
    }

    /// Takes a place in the room before the costly part, so that a rush cannot overfill it.
    fn reserve(&self, role: Role, stream: &str, id: &str, etag: &str) -> Result<(usize, Channel), Refusal> {
        let mut sessions = self.sessions();
        let channel = sessions.channel(stream)?;
        match role {
            Role::Viewer if sessions.viewers >= self.config.max_viewers => {
                add(&self.viewers_refused, 1);
                return Err(Refusal::Full(sessions.viewers));
            }
            Role::Publisher
                if sessions.streams.get(&channel).is_some_and(|stream| stream.publisher.is_some()) =>
            {
                return Err(Refusal::Occupied);
            }
            Role::Viewer => {
                sessions.viewers += 1;
                self.config.planted.crash_if_due(sessions.viewers);
            }
            Role::Publisher => sessions.streams.entry(channel).or_default().publisher = Some(id.to_owned()),
        }
        let mut load = vec![0_u32; self.workers.len()];
        for entry in sessions.by_id.values() {
            if let Some(load) = load.get_mut(entry.worker) {
                *load += 1;
            }
        }
        let worker = load.iter().enumerate().min_by_key(|(_, load)| **load).map_or(0, |(worker, _)| worker);
        sessions.by_id.insert(id.to_owned(), Entry { worker, channel, role, etag: etag.to_owned() });
        Ok((worker, channel))
    }

    /// Ends a session of `role` on its peer's wish; false when there is none.
    pub(crate) fn leave(&self, role: Role, id: &str) -> bool {
        let Some(worker) =
            self.sessions().by_id.get(id).filter(|entry| entry.role == role).map(|entry| entry.worker)
        else {
            return false;
        };
        self.forget(id);
        self.workers[worker].inbox.order(Order::Leave(id.to_owned()));
        true
    }

    /// Frees the place of a session that has ended.
    pub(crate) fn forget(&self, id: &str) {
        let mut sessions = self.sessions();
        match sessions.by_id.remove(id).map(|entry| (entry.role, entry.channel)) {
            Some((Role::Viewer, _)) => sessions.viewers -= 1,
            Some((Role::Publisher, channel)) => {
                sessions.streams.remove(&channel);
                drop(sessions);
                self.go_live(channel, None);
            }
            None => {}
        }
    }

    /// Whether there is a session of `role` with this id.
    pub(crate) fn knows(&self, role: Role, id: &str) -> bool {
        self.sessions().by_id.get(id).is_some_and(|entry| entry.role == role)
    }

    /// Passes candidates on to a session. `if_match` is the entity tag that the peer holds, if it says one.
    pub(crate) fn trickle(
        &self,
        role: Role,
        id: &str,
        if_match: Option<&str>,
        candidates: Vec<String>,
    ) -> Trickle {
        let sessions = self.sessions();
        let Some(entry) = sessions.by_id.get(id).filter(|entry| entry.role == role) else {
            return Trickle::UnknownSession;
        };
        if if_match.is_some_and(|tag| tag != "*" && tag != entry.etag) {
            return Trickle::OtherSession;
        }
        for candidate in candidates {
            self.workers[entry.worker].inbox.order(Order::Candidate(id.to_owned(), candidate));
        }
        Trickle::Taken
    }

    /// Says to all workers who plays on a stream: the publisher, or the card.
    pub(crate) fn go_live(&self, channel: Channel, live: Option<Live>) {
        if let Some(stream) = self.sessions().streams.get_mut(&channel) {
            stream.live = live;
        }
        for worker in &self.workers {
            worker.inbox.order(Order::Live(channel, live));
        }
    }

    /// What is live on a stream, if anything.
    pub(crate) fn live(&self, channel: Channel) -> Option<Live> {
        self.sessions().streams.get(&channel).and_then(|stream| stream.live)
    }

    /// Hands a burst to all workers.
    pub(crate) fn play(&self, burst: &Arc<Burst>) {
        let now = Instant::now();
        for worker in &self.workers {
            if !worker.inbox.play(Arc::clone(burst), now) {
                add(&worker.counters.frame_drops, 1);
            }
        }
    }

    /// Asks a stream's publisher, wherever it is, for a key frame.
    pub(crate) fn ask_key_frame(&self, channel: Channel) {
        let sessions = self.sessions();
        let publisher = sessions.streams.get(&channel).and_then(|stream| stream.publisher.as_ref());
        if let Some(entry) = publisher.and_then(|id| sessions.by_id.get(id)) {
            self.workers[entry.worker].inbox.order(Order::KeyFrame(channel));
        }
    }

    pub(crate) fn stats(&self) -> StageStats {
        let mut stats = {
            let sessions = self.sessions();
            StageStats {
                uptime_ms: self.started_at.elapsed().as_millis() as u64,
                viewers: sessions.viewers as u64,
                viewers_total: self.viewers_total.load(Relaxed),
                viewers_refused: self.viewers_refused.load(Relaxed),
                publishing: sessions.streams.values().any(|stream| stream.live.is_some()),
                ..StageStats::default()
            }
        };
        for worker in &self.workers {
            stats.absorb(worker.name.clone(), &worker.counters);
        }
        stats
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The source that a viewer of a stream who agreed on `codec` gets; where there is no card it waits for a publisher.
pub(crate) fn source_for(codec: Codec, channel: Channel, card: Option<Card>, live: Option<Live>) -> Source {
    match (codec, live, card) {
        (Codec::Opus, Some(Live { audio: true, .. }), _) | (Codec::Opus, _, None) => {
            Source::LiveAudio(channel)
        }
        (Codec::Opus, _, Some(_)) => Source::CardOpus,
        (_, Some(Live { video: Some(video), .. }), _) if video == codec => Source::LiveVideo(channel),
        (_, _, None) => Source::LiveVideo(channel),
        (Codec::H264, _, Some(Card::Low)) => Source::CardLowH264,
        (Codec::H264, _, Some(Card::Standard)) => Source::CardH264,
        (Codec::Vp8, _, Some(Card::Low)) => Source::CardLowVp8,
        (Codec::Vp8, _, Some(Card::Standard)) => Source::CardVp8,
    }
}
