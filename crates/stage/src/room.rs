//! The room of the stage: its sessions, its publishers, and its workers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::config::{Card, StageConfig};
use crate::inbox::{Inbox, Live, NewSession, WorkerCommand};
use crate::media_files::MediaFolder;
use crate::no_rtx::without_rtx;
use crate::peer::{Identity, OfferError, Role};
use crate::source::{Audience, Burst, Channel, Codec, Source};
use crate::stats::{StageStats, WorkerCounters, add};

/// The answer to an accepted offer.
#[derive(Debug)]
pub(crate) struct CreatedSession {
    pub(crate) id: String,
    pub(crate) etag: String,
    pub(crate) answer: String,
}

/// Why a session was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfferRefused {
    #[error(transparent)]
    Offer(#[from] OfferError),
    #[error("the room is full: {0} viewers")]
    Full(usize),
    #[error("the stream already has a publisher")]
    Occupied,
    #[error("no room for another stream: {} are in use", Channel::COUNT)]
    Streams,
}

/// Result of trickled candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrickleResult {
    Taken,
    UnknownSession,
    /// `If-Match` names another ICE session.
    OtherSession,
}

/// What other threads share with a worker.
pub(crate) struct Worker {
    pub(crate) inbox: Inbox,
    pub(crate) counters: WorkerCounters,
    pub(crate) local: SocketAddr,
    pub(crate) name: String,
}

/// The room, shared by all threads.
pub(crate) struct Room {
    pub(crate) config: StageConfig,
    pub(crate) audience: Audience,
    pub(crate) workers: Vec<Worker>,
    identity: Identity,
    /// The planted lock that all workers take for each packet.
    pub(crate) turn: Mutex<()>,
    /// The viewers' files, if a disk limit is planted.
    pub(crate) library: Option<MediaFolder>,
    sessions: Mutex<Sessions>,
    viewers_total: AtomicU64,
    viewers_refused: AtomicU64,
    started_at: Instant,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<String, Entry>,
    viewers: usize,
    /// Names of requested streams, by channel; the first is the one without a name.
    names: Vec<String>,
    streams: HashMap<Channel, Stream>,
}

/// A stream's publisher and what it publishes.
#[derive(Default)]
struct Stream {
    publisher: Option<String>,
    live: Option<Live>,
}

impl Sessions {
    /// The channel of the stream `name`, new if it was not requested before.
    fn channel(&mut self, name: &str) -> Result<Channel, OfferRefused> {
        if self.names.is_empty() {
            self.names.push(String::new());
        }
        let known = self.names.iter().position(|known| known == name);
        let channel =
            Channel::new(known.unwrap_or(self.names.len())).ok_or(OfferRefused::Streams)?;
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
        library: Option<MediaFolder>,
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

    /// Whether another viewer may be sent video.
    pub(crate) fn has_a_picture_left(&self) -> bool {
        self.config.planted.pictures_max.is_none_or(|max| self.pictures() < max)
    }

    /// Whether another viewer gets stuttering video.
    pub(crate) fn stutters(&self) -> bool {
        self.config.planted.stutters_beyond.is_some_and(|max| self.pictures() >= max)
    }

    /// Viewers that are sent video.
    fn pictures(&self) -> usize {
        let viewers = |source: Source| {
            self.audience.get(source.place()).map_or(0, |count| count.load(Relaxed))
        };
        Source::pictures().map(|source| viewers(source) as usize).sum()
    }

    /// Answers an offer for stream `stream` and gives the session to the worker with the fewest
    /// sessions.
    pub(crate) fn create_session(
        &self,
        role: Role,
        card: Card,
        stream: &str,
        offer: &str,
    ) -> Result<CreatedSession, OfferRefused> {
        let id = format!("{:032x}", fastrand::u128(..));
        let etag = format!("\"{:016x}\"", fastrand::u64(..));
        let (index, channel) = self.reserve(role, stream, &id, &etag)?;
        let worker = &self.workers[index];
        let plain = self.config.planted.no_rtx.then(|| without_rtx(offer));
        let offer = plain.as_deref().unwrap_or(offer);
        let answered = match self.identity.answer(
            offer,
            role,
            worker.local,
            Instant::now(),
            self.config.emulates,
        ) {
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
        worker.inbox.send(WorkerCommand::Join(Box::new(NewSession {
            id: id.clone(),
            role,
            card,
            channel,
            peer: answered.peer,
            local_ufrag: answered.local_ufrag,
            agreed: answered.agreed,
            ballast,
        })));
        Ok(CreatedSession { id, etag, answer: answered.sdp })
    }

    /// Reserves a place before the costly part, so that a burst of offers cannot overfill the room.
    fn reserve(
        &self,
        role: Role,
        stream: &str,
        id: &str,
        etag: &str,
    ) -> Result<(usize, Channel), OfferRefused> {
        let mut sessions = self.sessions();
        let channel = sessions.channel(stream)?;
        match role {
            Role::Viewer if sessions.viewers >= self.config.max_viewers => {
                add(&self.viewers_refused, 1);
                return Err(OfferRefused::Full(sessions.viewers));
            }
            Role::Publisher
                if sessions
                    .streams
                    .get(&channel)
                    .is_some_and(|stream| stream.publisher.is_some()) =>
            {
                return Err(OfferRefused::Occupied);
            }
            Role::Viewer => {
                sessions.viewers += 1;
                self.config.planted.crash_if_due(sessions.viewers);
            }
            Role::Publisher => {
                sessions.streams.entry(channel).or_default().publisher = Some(id.to_owned());
            }
        }
        let mut load = vec![0_u32; self.workers.len()];
        for entry in sessions.by_id.values() {
            if let Some(load) = load.get_mut(entry.worker) {
                *load += 1;
            }
        }
        let worker =
            load.iter().enumerate().min_by_key(|(_, load)| **load).map_or(0, |(worker, _)| worker);
        sessions
            .by_id
            .insert(id.to_owned(), Entry { worker, channel, role, etag: etag.to_owned() });
        Ok((worker, channel))
    }

    /// Ends a session of `role` at its peer's request; false if there is none.
    pub(crate) fn leave(&self, role: Role, id: &str) -> bool {
        let Some(worker) = self
            .sessions()
            .by_id
            .get(id)
            .filter(|entry| entry.role == role)
            .map(|entry| entry.worker)
        else {
            return false;
        };
        self.forget(id);
        self.workers[worker].inbox.send(WorkerCommand::Leave(id.to_owned()));
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

    /// Passes candidates to a session. `if_match` is the entity tag of the request, if it has one.
    pub(crate) fn trickle(
        &self,
        role: Role,
        id: &str,
        if_match: Option<&str>,
        candidates: Vec<String>,
    ) -> TrickleResult {
        let sessions = self.sessions();
        let Some(entry) = sessions.by_id.get(id).filter(|entry| entry.role == role) else {
            return TrickleResult::UnknownSession;
        };
        if if_match.is_some_and(|tag| tag != "*" && tag != entry.etag) {
            return TrickleResult::OtherSession;
        }
        for candidate in candidates {
            self.workers[entry.worker]
                .inbox
                .send(WorkerCommand::Candidate(id.to_owned(), candidate));
        }
        TrickleResult::Taken
    }

    /// Tells all workers what plays on a stream: the publisher's media, or the test card.
    pub(crate) fn go_live(&self, channel: Channel, live: Option<Live>) {
        if let Some(stream) = self.sessions().streams.get_mut(&channel) {
            stream.live = live;
        }
        for worker in &self.workers {
            worker.inbox.send(WorkerCommand::Live(channel, live));
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

    /// Requests a key frame of a stream's publisher, on whatever worker it is.
    pub(crate) fn ask_key_frame(&self, channel: Channel) {
        let sessions = self.sessions();
        let publisher = sessions.streams.get(&channel).and_then(|stream| stream.publisher.as_ref());
        if let Some(entry) = publisher.and_then(|id| sessions.by_id.get(id)) {
            self.workers[entry.worker].inbox.send(WorkerCommand::KeyFrame(channel));
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

/// The source for a viewer that negotiated `codec`; without a test card it waits for a publisher.
pub(crate) fn source_for(
    codec: Codec,
    channel: Channel,
    card: Option<Card>,
    live: Option<Live>,
) -> Source {
    match (codec, live, card) {
        (Codec::Opus, Some(Live { audio: true, .. }), _) | (Codec::Opus, _, None) => {
            Source::LiveAudio(channel)
        }
        (Codec::Opus, _, Some(_)) => Source::CardOpus,
        (_, Some(Live { video: Some(video), .. }), _) if video == codec => {
            Source::LiveVideo(channel)
        }
        (_, _, None) => Source::LiveVideo(channel),
        (Codec::H264, _, Some(Card::Low)) => Source::CardLowH264,
        (Codec::H264, _, Some(Card::Standard)) => Source::CardH264,
        (Codec::Vp8, _, Some(Card::Low)) => Source::CardLowVp8,
        (Codec::Vp8, _, Some(Card::Standard)) => Source::CardVp8,
    }
}
