//! The peers of one lane: it does what the loader decides, and keeps what came until the player
//! takes it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use throng_media::timing::{IndexCache, InitSegment, Program, WholeSegment};
use throng_observation::{Detail, Failure, PlaybackCounters, seed};

use super::hashes::Hashes;
use super::loader::{Action, Loader, Queued};
use super::neighbours::Neighbours;
use super::policy::Policy;
use super::swarm::CONNECT_TIME;
use super::{Found, PeerOptions};
use crate::participant::{DownloadEvent, FetchId};
use crate::player::download::transfer::TransferEvent;
use crate::player::lane::Context;
use crate::player::lane::segment_download::SegmentDownload;
use crate::player::manifest::presentation::{Cursor, Resource, Segment, Segments};

mod over_channels;

/// Without a tracker viewers look for others as often as they would ask one, and find as many.
const LOOK_EVERY: Duration = Duration::from_secs(120);
const FOUND_AT_ONCE: usize = 5;

/// Rate of a download that took no time, bits per second: faster than any rendition.
const FASTEST_BPS: f64 = 1e9;

/// Where the segments of the rendition are.
pub(in crate::player) struct Shelf<'a> {
    /// The rendition's place in the manifest, by which swarms are named.
    pub(in crate::player) rendition: usize,
    /// What comes next, in order.
    pub(in crate::player) queue: &'a [Queued],
    /// The first segment that is listed.
    pub(in crate::player) first: u64,
    /// The segment that the player waits for.
    pub(in crate::player) requested: Option<u64>,
    /// Where playback is.
    pub(in crate::player) position_us: i64,
    /// The segments of the rendition.
    pub(in crate::player) segments: Option<&'a Segments>,
    pub(in crate::player) indexes: &'a IndexCache,
    pub(in crate::player) init: Option<&'a InitSegment>,
    /// The streams of the last transport stream, and which discontinuity it was of.
    pub(in crate::player) program: Option<(u64, &'a Program)>,
}

impl Shelf<'_> {
    /// The streams with which a segment of this discontinuity goes on.
    fn program_of(&self, discontinuity: u64) -> Option<Program> {
        let (_, program) = self.program.filter(|(known, _)| *known == discontinuity)?;
        Some(program.clone())
    }

    fn find(&self, number: u64) -> Option<(Box<Segment>, Cursor)> {
        self.segments?.whole(number)
    }
}

/// A segment that the server delivers.
struct FromServer {
    number: u64,
    media: Box<SegmentDownload>,
    progressed_at: Instant,
}

/// A segment that the server delivered, whose hash is looked for.
struct Unproven {
    number: u64,
    media: Resource,
    whole: WholeSegment,
    since: Instant,
    /// Its bytes, where they are for peers of other processes.
    bytes: Option<Vec<u8>>,
}

/// The peers of a lane.
pub(in crate::player) struct PeerLane {
    options: PeerOptions,
    policy: Policy,
    /// The swarm of the rendition that is played, and its place at the tracker.
    loader: Option<(usize, Loader)>,
    tracked: Option<usize>,
    looks_at: Option<Instant>,
    /// Who is met without a tracker: others at each look.
    met: fastrand::Rng,
    /// The addresses of the viewer's socket, where it has data channels.
    locals: Option<Vec<SocketAddr>>,
    downloads: Vec<FromServer>,
    /// Segments that the server delivered and whose hashes are looked for.
    unproven: Vec<Unproven>,
    /// Bits per second of the last download.
    rate_bps: f64,
    hashes: Option<Hashes>,
    /// What was exchanged in swarms that were left.
    exchanged: PlaybackCounters,
    next_at: Option<Instant>,
}

impl PeerLane {
    pub(in crate::player) fn new(options: PeerOptions) -> Self {
        Self {
            // Until the playlist says whether it is one.
            policy: Policy::new(&options.config, true),
            hashes: options
                .config
                .hashes
                .clone()
                .map(|url| Hashes::new(url, options.swarms.lists().clone())),
            met: fastrand::Rng::with_seed(seed::step(
                options.config.seed,
                u64::from(options.number),
            )),
            options,
            loader: None,
            tracked: None,
            looks_at: None,
            locals: None,
            downloads: Vec::new(),
            unproven: Vec::new(),
            rate_bps: FASTEST_BPS,
            exchanged: PlaybackCounters::default(),
            next_at: None,
        }
    }

    /// Whether peers are used at `now`.
    pub(in crate::player) fn is_on(&self, now: Instant) -> bool {
        self.options.config.is_on(now.saturating_duration_since(self.options.run_began_at))
    }

    /// When that changes.
    fn switches_at(&self, now: Instant) -> Option<Instant> {
        let config = &self.options.config;
        let moments = [Some(config.from), config.until].into_iter().flatten();
        moments.map(|moment| self.options.run_began_at + moment).filter(|at| *at > now).min()
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        self.downloads.iter().any(|download| download.media.owns(fetch))
            || self.hashes.as_ref().is_some_and(|hashes| hashes.owns(fetch))
    }

    /// Whether the player waits for peers, not for the server.
    pub(in crate::player) fn waits_for_peers(&self, number: u64) -> bool {
        let is_loading = self.downloads.iter().any(|download| download.number == number)
            || self.unproven.iter().any(|unproven| unproven.number == number);
        !is_loading && !self.loader.as_ref().is_some_and(|(_, loader)| loader.has_failures(number))
    }

    /// The viewer closes its tab: its peers of this process learn it as late as those of a tab.
    pub(in crate::player) fn close(&mut self, now: Instant, context: &mut Context<'_>) {
        if let Some((_, loader)) = &mut self.loader {
            loader.neighbours_mut().fall_silent(now);
        }
        self.stop(now, context);
    }

    /// Leaves the swarm, and gives up what is under way.
    pub(in crate::player) fn stop(&mut self, now: Instant, context: &mut Context<'_>) {
        self.exchanged = self.take_counters(now, 0);
        for download in self.downloads.drain(..) {
            download.media.cancel(context.client);
        }
        if let (Some(tracker), Some(swarm)) = (&mut context.tracker, self.tracked.take()) {
            tracker.leave(swarm);
        }
        if let Some((_, loader)) = &mut self.loader {
            loader.neighbours_mut().leave(now);
        }
        self.transmit(context);
        self.unproven.clear();
        (self.loader, self.next_at) = (None, None);
    }

    /// Peers are not used: waits until they are, or for nothing if the player waits for a segment
    /// of theirs.
    pub(in crate::player) fn rest(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        was_awaited: bool,
    ) {
        self.stop(now, context);
        self.hashes.iter_mut().for_each(|hashes| hashes.stop(context));
        self.next_at = if was_awaited { Some(now) } else { self.switches_at(now) };
    }

    /// There may be something to do at once.
    pub(in crate::player) fn wake(&mut self, now: Instant) {
        self.next_at = Some(now);
    }

    /// Enters the swarm of another rendition.
    fn enter(&mut self, now: Instant, context: &mut Context<'_>, rendition: usize) {
        self.stop(now, context);
        let (config, number) = (&self.options.config, self.options.number);
        let identity = format!("{}-{rendition}", self.options.stream);
        let shares = config.shares(number);
        let membership =
            self.options.swarms.swarm(&identity).enter(number, shares, config.upload_bps);
        if let Some(tracker) = &mut context.tracker {
            let (swarm, name) = tracker.enter(now, &self.options.stream, rendition);
            membership.name(name);
            self.tracked = Some(swarm);
        } else {
            self.looks_at = Some(now);
        }
        let seed = seed::of(config.seed, u64::from(number));
        let neighbours = Neighbours::new(membership, None);
        self.loader = Some((rendition, Loader::new(self.policy, shares, neighbours, seed)));
        self.reach_out();
    }

    /// The loader, if the tracker speaks of its swarm.
    fn tracked(&mut self, swarm: usize) -> Option<&mut Loader> {
        self.loader.as_mut().filter(|_| self.tracked == Some(swarm)).map(|(_, loader)| loader)
    }

    /// The tracker found another viewer.
    pub(in crate::player) fn found(&mut self, now: Instant, found: &Found) {
        let has_channels = self.locals.is_some();
        let Some(loader) = self.tracked(found.swarm) else { return };
        let known = loader.neighbours().membership().swarm().of_name(&found.peer);
        let answered = found.answered.as_ref().filter(|_| has_channels);
        match known.filter(|known| !(has_channels && known.has_channels)) {
            Some(known) => {
                if let (Some((offer, _)), Some(channels)) =
                    (answered, loader.neighbours_mut().channels())
                {
                    channels.withdraw(offer);
                }
                if let Some((_, loader)) = &self.loader {
                    self.meet(now, loader, known.id, known.number);
                }
            }
            None => {
                if let Some((offer, answer)) = answered {
                    loader.neighbours_mut().answered(now, found.peer, (offer, answer));
                }
                self.wake(now);
            }
        }
    }

    fn meet(&self, now: Instant, loader: &Loader, peer: super::swarm::PeerId, number: u32) {
        let config = &self.options.config;
        if config.reaches(self.options.number, number) {
            loader.neighbours().membership().connect(peer, now + CONNECT_TIME, config.degree_max());
        }
    }

    /// Looks for others without a tracker.
    fn look(&mut self, now: Instant) {
        if self.looks_at.is_none_or(|at| now < at) {
            return;
        }
        self.looks_at = Some(now + LOOK_EVERY);
        let Some((_, loader)) = &self.loader else { return };
        let membership = loader.neighbours().membership();
        let swarm = membership.swarm();
        for (peer, number) in swarm.others(membership.id(), FOUND_AT_ONCE, &mut self.met) {
            self.meet(now, loader, peer, number);
        }
    }

    /// Goes on: requests what is to come from the server.
    pub(in crate::player) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        shelf: &Shelf<'_>,
    ) -> Result<(), Failure> {
        if self.loader.as_ref().is_none_or(|(rendition, _)| *rendition != shelf.rendition) {
            self.enter(now, context, shelf.rendition);
        }
        if let Some(segments) = shelf.segments {
            self.policy = Policy::new(&self.options.config, segments.is_live());
        }
        self.look(now);
        self.give_up_silent(now, context);
        self.prove(now, context);
        self.judge(now, shelf);
        let Some((_, loader)) = &mut self.loader else { return Ok(()) };
        loader.decide_by(self.policy);
        loader.keep_from(shelf.first);
        let hashes = &mut self.hashes;
        let mut is_proven = |number: u64, is_new: bool| {
            let Some(hashes) = hashes else { return true };
            let Some((segment, _)) = shelf.find(number) else { return true };
            if is_new {
                hashes.want(now, &segment.media);
            }
            hashes.names(&segment.media)
        };
        for action in
            loader.pump(now, shelf.queue, shelf.requested, shelf.position_us, &mut is_proven)
        {
            match action {
                Action::Load(number) => self.load(now, context, shelf, number)?,
                Action::Abort(number) => self.abort(context, number),
            }
        }
        for download in &mut self.downloads {
            download.media.demand(now, context);
        }
        self.hashes.iter_mut().for_each(|hashes| hashes.pump(now, context));
        self.exchange(now, context);
        self.next_at = self.due_at(now);
        Ok(())
    }

    /// Uses what came from the server once its hash is known. The engine takes the wait for it for
    /// a lack of bytes, and loads the segment again.
    fn prove(&mut self, now: Instant, context: &mut Context<'_>) {
        let silence = self.policy.http_silence;
        let (hashes, loader, exchanged) = (&self.hashes, &mut self.loader, &mut self.exchanged);
        self.unproven.retain_mut(|unproven| {
            let Some((_, loader)) = loader else { return false };
            let (number, media) = (unproven.number, &unproven.media);
            if hashes.as_ref().is_none_or(|hashes| hashes.names(media)) {
                if let Some(bytes) = unproven.bytes.take() {
                    loader.neighbours().membership().swarm().keep_bytes(number, bytes.into());
                }
                loader.loaded(now, number, unproven.whole.clone());
                return false;
            }
            // Engine 2.2 hears of no proof that failed, and waits in vain.
            let is_late = match silence {
                Some(silence) => now >= unproven.since + silence,
                None => hashes.as_ref().is_some_and(|hashes| hashes.has_given_up(media)),
            };
            if is_late {
                exchanged.hash_reloads += 1;
                context
                    .client
                    .anomaly(format!("{media}: its hash did not come in time; it is loaded again"));
                loader.failed(now, number);
            }
            !is_late
        });
    }

    fn due_at(&self, now: Instant) -> Option<Instant> {
        let (_, loader) = self.loader.as_ref()?;
        let silences = self.downloads.iter().filter_map(|download| {
            let silent_at =
                self.policy.http_silence.map(|silence| download.progressed_at + silence);
            Some(silent_at?.min(download.media.overdue_at()))
        });
        let hashes = self.hashes.as_ref().and_then(Hashes::next_timeout);
        let proofs = self
            .unproven
            .iter()
            .filter_map(|unproven| Some(unproven.since + self.policy.http_silence?))
            .min();
        let others =
            [loader.next_timeout(now), self.switches_at(now), self.looks_at, hashes, proofs];
        others.into_iter().flatten().chain(silences).min()
    }

    /// When it has something to do.
    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    fn load(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        shelf: &Shelf<'_>,
        number: u64,
    ) -> Result<(), Failure> {
        let Some(found) = shelf.find(number) else {
            // It has left the playlist.
            if let Some((_, loader)) = &mut self.loader {
                loader.unlisted(number);
            }
            return Ok(());
        };
        let with = (shelf.indexes.clone(), shelf.init);
        let program = shelf.program_of(found.0.discontinuity);
        let mut media = SegmentDownload::begin(now, context, found, with, None)?;
        program.into_iter().for_each(|program| media.reader.go_on_with(program));
        media.share_alike();
        if self.options.config.has_any_channels() && self.lacks_bytes(number) {
            media.keep_bytes();
        }
        self.downloads.push(FromServer { number, media: Box::new(media), progressed_at: now });
        Ok(())
    }

    /// Whether nobody of this process has brought the bytes of a segment, for those who really send
    /// them.
    fn lacks_bytes(&self, number: u64) -> bool {
        let swarm =
            self.loader.as_ref().map(|(_, loader)| loader.neighbours().membership().swarm());
        swarm.is_some_and(|swarm| swarm.lacks_bytes(number))
    }

    fn abort(&mut self, context: &mut Context<'_>, number: u64) {
        if let Some(at) = self.downloads.iter().position(|download| download.number == number) {
            self.downloads.swap_remove(at).media.cancel(context.client);
        }
        self.unproven.retain(|unproven| unproven.number != number);
    }

    fn failed(&mut self, now: Instant, number: u64) {
        if let Some((_, loader)) = &mut self.loader {
            loader.failed(now, number);
        }
    }

    /// Gives up downloads that bring nothing.
    fn give_up_silent(&mut self, now: Instant, context: &mut Context<'_>) {
        let silence = self.policy.http_silence;
        let is_silent = |download: &FromServer| {
            silence.is_some_and(|silence| now >= download.progressed_at + silence)
                || now >= download.media.overdue_at()
        };
        while let Some(at) = self.downloads.iter().position(is_silent) {
            let download = self.downloads.swap_remove(at);
            let waited_s = now.saturating_duration_since(download.progressed_at).as_secs_f64();
            context.client.failed();
            context.client.anomaly(format!(
                "{}: given up after {waited_s:.1} s without a byte",
                download.media.segment.media
            ));
            download.media.cancel(context.client);
            self.failed(now, download.number);
        }
    }

    /// Handles what the driver reports of its downloads.
    pub(in crate::player) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) {
        if let Some(hashes) = self.hashes.as_mut().filter(|hashes| hashes.owns(fetch)) {
            return hashes.handle(now, context, event);
        }
        let Some(at) = self.downloads.iter().position(|download| download.media.owns(fetch)) else {
            return;
        };
        let Some(download) = self.downloads.get_mut(at) else { return };
        download.progressed_at = now;
        let media = &mut download.media;
        let problem = match media.handle(now, context, event) {
            TransferEvent::Begun { total_bytes } => {
                media.begun(total_bytes);
                media.share_alike();
                return;
            }
            TransferEvent::Bytes { bytes, received } => {
                context.meter.media_bytes(received);
                media
                    .feed(now, Some(&bytes), bytes.len() as u64)
                    .err()
                    .map(|failure| failure.detail)
            }
            TransferEvent::Ignored(count) => {
                context.meter.media_bytes(count);
                media.feed(now, None, count).err().map(|failure| failure.detail)
            }
            TransferEvent::Nothing => return,
            TransferEvent::Failed(error) => {
                return self.lose(now, context, at, error.failure.detail);
            }
            TransferEvent::Complete => return self.complete(now, context, at),
        };
        if let Some(problem) = problem {
            self.drop_broken(now, context, at, problem);
        }
    }

    fn drop_broken(&mut self, now: Instant, context: &mut Context<'_>, at: usize, problem: Detail) {
        context.client.failed();
        self.lose(now, context, at, problem);
    }

    /// A download has ended without its segment.
    fn lose(&mut self, now: Instant, context: &mut Context<'_>, at: usize, problem: Detail) {
        let download = self.downloads.swap_remove(at);
        context.client.anomaly(problem);
        download.media.cancel(context.client);
        self.failed(now, download.number);
    }

    fn complete(&mut self, now: Instant, context: &mut Context<'_>, at: usize) {
        let Some(download) = self.downloads.get_mut(at) else { return };
        if let Err(failure) = download.media.finish() {
            return self.drop_broken(now, context, at, failure.detail);
        }
        let Some(whole) = download.media.reader.whole().filter(|whole| whole.bytes() > 0) else {
            return self.drop_broken(now, context, at, "cannot be shared with peers".into());
        };
        let mut download = self.downloads.swap_remove(at);
        let bytes = download.media.take_bytes();
        let took_s = now.saturating_duration_since(download.media.began_at).as_secs_f64();
        self.rate_bps = (whole.bytes() as f64 * 8.0 / took_s.max(1e-3)).clamp(1.0, FASTEST_BPS);
        let media = download.media.segment.media.clone();
        self.hashes.iter_mut().for_each(|hashes| hashes.want(now, &media));
        let unproven = Unproven { number: download.number, media, whole, since: now, bytes };
        self.unproven.push(unproven);
        self.prove(now, context);
    }

    /// The segment that the player waits for, if it is there and may be used, and how long it took.
    pub(in crate::player) fn take(&self, number: u64) -> Option<(WholeSegment, Duration)> {
        let whole = self.loader.as_ref()?.1.held(number)?;
        Some((
            whole.clone(),
            Duration::try_from_secs_f64(whole.bytes() as f64 * 8.0 / self.rate_bps)
                .unwrap_or_default(),
        ))
    }

    /// Whether the segment that the player waits for will not come.
    pub(in crate::player) fn has_given_up(&mut self, now: Instant, number: u64) -> bool {
        let Some((_, loader)) = &mut self.loader else { return false };
        loader.held(number).is_none() && loader.has_failed(now, number)
    }

    /// What was exchanged in the time since the last call, which lasted so long; the other sums are
    /// 0.
    pub(in crate::player) fn take_counters(
        &mut self,
        now: Instant,
        lasted_us: u64,
    ) -> PlaybackCounters {
        let mut counters = std::mem::take(&mut self.exchanged);
        let Some((_, loader)) = &mut self.loader else { return counters };
        let received = loader.take_received();
        let shared = loader.neighbours().membership().take_shared(now);
        counters.peer_segments += received.segments;
        counters.peer_bytes += received.bytes;
        counters.peer_failures += received.failed;
        counters.uploaded_bytes += shared.uploaded_bytes;
        counters.peers_us += u64::from(shared.peers) * lasted_us;
        if let Some(channels) = loader.neighbours_mut().channels() {
            let over_channels = channels.take_counters();
            counters.channel_received_bytes += over_channels.received_bytes;
            counters.channel_sent_bytes += over_channels.sent_bytes;
            counters.uploaded_bytes += over_channels.sent_bytes;
            let channels_us = channels.degree() as u64 * lasted_us;
            counters.channels_us += channels_us;
            counters.peers_us += channels_us;
        }
        counters
    }
}
