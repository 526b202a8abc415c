//! A lane of segments (HLS, DASH): the playlist of its rendition, initialisation segments, keys, and one media segment
//! after the other, each downloaded whole, while the player wants more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::manifest::PlaylistCache;
use throng_media::manifest::dash::Manifest;
use throng_media::timing::{IndexCache, InitSegment};
use throng_observation::{Failure, FailureReason, Phase};
use throng_scenario::RenditionPolicy;
use url::Url;

use super::abandon::{LOOKS_EVERY, Loading, better};
use super::continuity::{Continuity, is_wrap};
use super::decrypt::KEY_LEN;
use super::lane::{Context, Sought, TrackMap};
use super::playlist::{Loaded, PlaylistLoader};
use super::presentation::{Cursor, Found, LiveEdge, Rendition, Resource, Segment, Segments};
use super::retry::{DASH_SEGMENT_RETRY, Retry, SEGMENT_RETRY};
use super::segment_download::SegmentDownload;
use super::throughput::Throughput;
use super::transfer::{TransferError, TransferEvent};
use super::whole::{WholeDownload, WholeEvent};
use crate::participant::{DownloadEvent, FetchId};

/// Longest initialisation segment.
const INIT_LEN_MAX: usize = 4 << 20;

/// Renditions may begin their segments so much apart and still mean the same (hls.js `maxFragLookUpTolerance`).
const LOOK_UP_TOLERANCE_US: i64 = 250_000;

/// Segments in a row that cannot be read before a live stream is given up.
const UNREADABLE_MAX: u32 = 3;

/// Places that are passed over at a time because nothing can be loaded there.
const PASSED_MAX: usize = 1_000;

/// How segments are chosen and read.
#[derive(Clone)]
pub(super) struct SegmentOptions {
    pub(super) policy: RenditionPolicy,
    /// Live streams are played in parts where they have some.
    pub(super) low_latency: bool,
    /// The next part is requested before it exists.
    pub(super) preload_hints: bool,
    pub(super) indexes: IndexCache,
    pub(super) playlists: PlaylistCache,
}

/// A lane of segments.
pub(super) struct SegmentLane {
    renditions: Vec<Rendition>,
    options: SegmentOptions,
    /// The rendition that is played, and the place in it that comes next.
    current: usize,
    next: Cursor,
    /// Where on the time axis the next place is, and whether playback was moved there.
    wanted_us: i64,
    is_sought: bool,
    loader: PlaylistLoader,
    /// A live rendition was switched to, whose playlist must be loaded first.
    waits_for_playlist: bool,
    init: Option<(Arc<Resource>, InitSegment)>,
    key: Option<(Url, [u8; KEY_LEN])>,
    step: Step,
    tracks: TrackMap,
    /// The discontinuity that the origin of the tracks is for.
    origin_of: Option<u64>,
    continuity: Continuity,
    throughput: Throughput,
    retry: Retry,
    unreadable: u32,
    is_complete: bool,
    /// The wall clock when it was told last.
    unix_us: i64,
}

/// What is being downloaded, besides the playlist.
enum Step {
    Nothing,
    Init(WholeDownload, Arc<Resource>),
    Key(WholeDownload, Url),
    Media(Box<SegmentDownload>),
}

impl SegmentLane {
    /// A lane of renditions that are sorted by bitrate.
    pub(super) fn new(renditions: Vec<Rendition>, options: SegmentOptions) -> Self {
        let throughput = Throughput::new(&renditions);
        let is_by_clock =
            renditions.iter().any(|rendition| matches!(rendition.segments, Some(Segments::Dynamic(_))));
        Self {
            current: throughput.first(options.policy, &renditions),
            renditions,
            loader: PlaylistLoader::new(options.low_latency),
            options,
            next: Cursor::default(),
            wanted_us: 0,
            is_sought: true,
            waits_for_playlist: false,
            init: None,
            key: None,
            step: Step::Nothing,
            tracks: TrackMap::default(),
            origin_of: None,
            continuity: Continuity::default(),
            throughput,
            retry: Retry::new(if is_by_clock { DASH_SEGMENT_RETRY } else { SEGMENT_RETRY }),
            unreadable: 0,
            is_complete: false,
            unix_us: 0,
        }
    }

    /// The manifest was itself the playlist of the rendition: when it was requested and answered.
    pub(super) fn has_first_playlist(&mut self, now: Instant, times: (Instant, Instant)) {
        if let Some(window) = self.segments().and_then(Segments::window).cloned() {
            self.loader.has_first(now, &window, times);
        }
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        let is_step = match &self.step {
            Step::Nothing => false,
            Step::Init(whole, _) | Step::Key(whole, _) => whole.owns(fetch),
            Step::Media(media) => media.transfer.fetch() == fetch,
        };
        is_step || self.loader.owns(fetch)
    }

    fn segments(&self) -> Option<&Segments> {
        self.renditions.get(self.current)?.segments.as_ref()
    }

    fn is_live(&self) -> bool {
        self.segments().is_some_and(Segments::is_live)
    }

    /// Takes the next version of a live DASH manifest.
    pub(super) fn update(&mut self, url: &Url, manifest: &Arc<Manifest>) {
        for rendition in &mut self.renditions {
            if let Some(Segments::Dynamic(window)) = &mut rendition.segments {
                window.update(url, manifest);
            }
        }
    }

    /// The present is now this: what exists of a live DASH presentation follows from it.
    pub(super) fn tick(&mut self, now: Instant, unix_us: i64) {
        self.unix_us = unix_us;
        let rendition = self.renditions.get_mut(self.current);
        if let Some(Segments::Dynamic(window)) = rendition.and_then(|rendition| rendition.segments.as_mut()) {
            window.tick(now, unix_us);
        }
    }

    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        if self.loader.owns(fetch) {
            return self.playlist(now, context, event);
        }
        match &mut self.step {
            Step::Nothing => Ok(()),
            Step::Init(whole, _) | Step::Key(whole, _) => match whole.handle(now, context, event)? {
                WholeEvent::Nothing => Ok(()),
                WholeEvent::Complete => self.resource(now, context),
                WholeEvent::Failed(error) => self.failed(now, context, error),
            },
            Step::Media(media) => match media.transfer.handle(now, context.client, event) {
                TransferEvent::Begun { total_bytes } => {
                    media.begun(total_bytes);
                    context.phases.reach(context.client, Phase::Playing, now);
                    Ok(())
                }
                TransferEvent::Bytes { bytes, received } => self.media(now, context, Some(&bytes), received),
                TransferEvent::Ignored(count) => self.media(now, context, None, count),
                TransferEvent::Complete => self.complete(now, context),
                TransferEvent::Failed(error) => self.failed(now, context, error),
                TransferEvent::Nothing => Ok(()),
            },
        }
    }

    /// Something of the playlist.
    fn playlist(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        let Some(rendition) = self.renditions.get_mut(self.current) else { return Ok(()) };
        let loaded = self.loader.handle(now, context, &self.options.playlists, rendition, event)?;
        if loaded == Loaded::New || (loaded == Loaded::Next && self.waits_for_playlist) {
            let wanted_us = self.wanted_us.saturating_add(self.tolerance_us());
            self.next = self
                .segments()
                .map(|segments| segments.at(wanted_us, self.options.low_latency))
                .unwrap_or_default();
        }
        self.waits_for_playlist &= loaded == Loaded::Nothing;
        Ok(())
    }

    /// How much later than a place begins it may be looked up.
    fn tolerance_us(&self) -> i64 {
        let part_us = self.edge().and_then(|edge| edge.part_target_us);
        let part_us = part_us.and_then(|us| i64::try_from(us / 4).ok()).unwrap_or(LOOK_UP_TOLERANCE_US);
        if self.is_sought { 0 } else { part_us.min(LOOK_UP_TOLERANCE_US) }
    }

    /// An initialisation segment or a key is complete.
    fn resource(&mut self, now: Instant, context: &mut Context<'_>) -> Result<(), Failure> {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Init(whole, resource) => {
                let init = InitSegment::parse(whole.bytes());
                let init = init.map_err(|error| protocol(whole.url(), &error.to_string()))?;
                self.tracks.announce(now, context, init.tracks());
                self.init = Some((resource, init));
            }
            Step::Key(whole, url) => {
                let key = <[u8; KEY_LEN]>::try_from(whole.bytes());
                let length = whole.bytes().len();
                let key =
                    key.map_err(|_| protocol(whole.url(), &format!("a key of {length} bytes, not 16")))?;
                self.key = Some((url, key));
            }
            step => self.step = step,
        }
        Ok(())
    }

    /// The next bytes of a segment.
    fn media(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        content: Option<&[u8]>,
        received: u64,
    ) -> Result<(), Failure> {
        let Step::Media(media) = &mut self.step else { return Ok(()) };
        self.retry.progressed();
        context.meter.media_bytes(received);
        let count = content.map_or(received, |content| content.len() as u64);
        context.phases.reach(context.client, Phase::FirstPacket, now);
        match media.feed(now, content, count) {
            Ok(()) => {
                self.receive_frames(now, context);
                Ok(())
            }
            Err(failure) => {
                self.stop(context);
                self.unreadable(context, failure)
            }
        }
    }

    fn receive_frames(&mut self, now: Instant, context: &mut Context<'_>) {
        let Step::Media(media) = &mut self.step else { return };
        if let Some(tracks) = media.reader.tracks() {
            self.tracks.announce(now, context, tracks);
        }
        while let Some(frame) = media.reader.next_frame() {
            let starts_us = media.segment.starts_us;
            let origin_us = match self.tracks.origin_us {
                Some(origin_us) if self.origin_of == Some(media.segment.discontinuity) => origin_us,
                _ => {
                    let late_us = self.continuity.late_us(self.next);
                    frame.decode_us.saturating_sub(starts_us.saturating_add(late_us))
                }
            };
            self.origin_of = Some(media.segment.discontinuity);
            self.tracks.origin_us = Some(origin_us);
            if let Some(first_us) = media.begins_with(frame.decode_us.saturating_sub(origin_us))
                && let Some(jump_us) = self.continuity.jump_us(self.next, starts_us, first_us)
            {
                media.begins_us = Some(first_us.saturating_sub(jump_us));
                self.tracks.origin_us = Some(origin_us.saturating_add(jump_us));
                if !is_wrap(jump_us) {
                    context.client.anomaly(media.jumped(jump_us));
                }
            }
            if let Some(starts_us) = self.tracks.receive(context, &frame) {
                media.spans(starts_us, frame.duration_us);
            }
        }
        if let (Some(marked), Some(origin_us)) = (media.reader.take_marked(), self.tracks.origin_us) {
            let unix_us = i64::try_from(marked.mark.captured_unix_ns / 1_000).unwrap_or(i64::MAX);
            context.timeline.captured(marked.decode_us.saturating_sub(origin_us), unix_us);
        }
        if media.segment.is_progressive {
            self.tracks.append_received(now, context);
        }
    }

    /// All of a segment was received.
    fn complete(&mut self, now: Instant, context: &mut Context<'_>) -> Result<(), Failure> {
        let Step::Media(media) = &mut self.step else { return Ok(()) };
        let finished = media.finish();
        // What comes as it is made comes at its own rate, whatever the line could carry.
        if !media.segment.is_progressive {
            self.throughput.add(media.bytes, now.saturating_duration_since(media.began_at));
        }
        self.receive_frames(now, context);
        let Step::Media(media) = std::mem::replace(&mut self.step, Step::Nothing) else { return Ok(()) };
        match finished {
            Ok(()) => self.unreadable = 0,
            // What was read before its end is played.
            Err(failure) if !self.tracks.is_empty() => context.client.anomaly(failure.detail),
            Err(failure) => return self.unreadable(context, failure),
        }
        if let Some(detail) = media.wrong_duration() {
            context.client.anomaly(detail);
        }
        self.tracks.append_received(now, context);
        if let Some(span_us) = media.span_us() {
            self.continuity.received(media.after, media.segment.starts_us, span_us);
        }
        let took = now.saturating_duration_since(media.began_at);
        context.meter.segment(took, media.segment.duration_us);
        self.go_to(media.after, media.segment.starts_us.saturating_add_unsigned(media.segment.duration_us));
        Ok(())
    }

    /// What comes next is at this place and time.
    fn go_to(&mut self, next: Cursor, wanted_us: i64) {
        (self.next, self.wanted_us, self.is_sought) = (next, wanted_us, false);
    }

    /// A segment cannot be read. A live stream is played on behind it.
    fn unreadable(&mut self, context: &mut Context<'_>, failure: Failure) -> Result<(), Failure> {
        self.unreadable += 1;
        if !self.is_live() || self.unreadable >= UNREADABLE_MAX {
            return Err(failure);
        }
        context.client.failed();
        context.client.anomaly(failure.detail);
        self.skip(context);
        Ok(())
    }

    /// Goes on behind the next place: playback will meet a hole.
    fn skip(&mut self, context: &mut Context<'_>) {
        self.tracks.drop_received(context);
        let found = self.segments().map(|segments| segments.find(self.next, self.options.low_latency));
        if found == Some(Found::Later) {
            // Only a hint led there. What it announced is awaited in the playlist, as all that follows.
            self.options.preload_hints = false;
            return;
        }
        context.meter.missed();
        match found {
            Some(Found::Piece(segment, after)) => {
                self.go_to(after, segment.starts_us.saturating_add_unsigned(segment.duration_us));
            }
            _ => self.next = Cursor::at(self.next.segment.saturating_add(1)),
        }
    }

    fn failed(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        error: TransferError,
    ) -> Result<(), Failure> {
        self.step = Step::Nothing;
        self.tracks.drop_received(context);
        if self.retry.failed(now, &error) {
            return Ok(());
        }
        if !self.is_live() || error.failure.reason == FailureReason::NotAllowed {
            return Err(error.failure);
        }
        self.retry.progressed();
        context.client.anomaly(format!("left out: {}", error.failure.detail));
        self.skip(context);
        Ok(())
    }

    pub(super) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wants: bool,
    ) -> Result<(), Failure> {
        if let Some(rendition) = self.renditions.get(self.current) {
            self.loader.pump(now, context, rendition)?;
        }
        let overdue = match &mut self.step {
            Step::Nothing => None,
            Step::Init(whole, _) | Step::Key(whole, _) => whole.pump(now, context).err(),
            Step::Media(media) => {
                let is_overdue = media.transfer.next_timeout().is_some_and(|at| now >= at);
                is_overdue.then(|| media.transfer.stuck())
            }
        };
        if let Some(error) = overdue {
            if matches!(self.step, Step::Media(_)) {
                context.client.failed();
            }
            self.stop(context);
            self.failed(now, context, error)?;
        }
        self.give_up_late(now, context);
        if matches!(self.step, Step::Nothing) && !self.is_complete && !self.retry.waits(now) {
            self.request(now, context, wants)?;
        }
        if let Step::Media(media) = &mut self.step {
            media.demand(now, context);
        }
        Ok(())
    }

    /// Gives the segment up that would come too late, for the same of a smaller rendition.
    fn give_up_late(&mut self, now: Instant, context: &mut Context<'_>) {
        let is_live = self.is_live();
        let may_switch = self.looks_for_late() && self.throughput.is_known();
        let Step::Media(media) = &mut self.step else { return };
        if now < media.next_look_at {
            return;
        }
        media.next_look_at = now + LOOKS_EVERY;
        let Some(position_us) = context.position_us.filter(|_| may_switch) else { return };
        let (loading, buffer_us) = (media.loading(now), media.segment.starts_us.saturating_sub(position_us));
        if now < media.began_at + Loading::looked_at_after(loading.duration_us, loading.first_byte) {
            return;
        }
        let buffer = Duration::from_micros(u64::try_from(buffer_us).unwrap_or(0));
        let choice = (&self.renditions[..], self.current);
        let Some(chosen) = better(&loading, buffer, self.throughput.estimate_bps(), choice, is_live) else {
            return;
        };
        let first_byte = loading.first_byte.unwrap_or_default();
        self.throughput.add(loading.received_bytes, loading.elapsed.saturating_sub(first_byte));
        self.throughput.gave_up_for(self.renditions.get(chosen).map_or(0, |r| r.bandwidth_bps));
        self.stop(context);
        self.tracks.drop_received(context);
        self.switch_to(now, context, chosen);
    }

    /// Whether a segment that is under way may be given up.
    fn looks_for_late(&self) -> bool {
        let is_whole = matches!(&self.step, Step::Media(media) if !media.segment.is_progressive);
        is_whole && self.current > 0 && self.options.policy == RenditionPolicy::Adaptive
    }

    /// Requests what comes next.
    fn request(&mut self, now: Instant, context: &mut Context<'_>, wants: bool) -> Result<(), Failure> {
        if wants {
            self.switch(now, context);
        }
        if self.waits_for_playlist {
            return Ok(());
        }
        for _ in 0..PASSED_MAX {
            let Some(segments) = self.segments() else { return Ok(()) };
            match segments.find(self.next, self.options.low_latency) {
                Found::Piece(segment, after) => {
                    return if wants { self.begin(now, context, segment, after) } else { Ok(()) };
                }
                Found::Gap(next) => self.next = next,
                Found::Gone(next) => {
                    context.meter.missed();
                    context.client.anomaly(format!(
                        "segment {} was not downloaded before it left the playlist",
                        self.next.segment
                    ));
                    self.next = next;
                }
                Found::Broken(failure, next) => {
                    context.meter.missed();
                    context.client.failed();
                    context.client.anomaly(failure.detail);
                    self.next = next;
                }
                Found::Later => {
                    let hinted = segments.window().filter(|_| self.options.preload_hints && wants);
                    let Some((segment, after)) = hinted.and_then(|window| window.hinted(self.next)) else {
                        return Ok(());
                    };
                    return self.begin(now, context, Box::new(segment), after);
                }
                Found::End => {
                    self.is_complete = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Requests a segment, or first what it needs.
    fn begin(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        segment: Box<Segment>,
        after: Cursor,
    ) -> Result<(), Failure> {
        self.retry.begun();
        if let Some(init) = &segment.init
            && self.init.as_ref().is_none_or(|(known, _)| known != init)
        {
            let whole = WholeDownload::begin(now, context, &init.url, init.range, INIT_LEN_MAX)?;
            self.step = Step::Init(whole, Arc::clone(init));
            return Ok(());
        }
        if let Some(key) = &segment.key
            && self.key.as_ref().is_none_or(|(known, _)| *known != key.url)
        {
            let whole = WholeDownload::begin(now, context, &key.url, None, KEY_LEN)?;
            self.step = Step::Key(whole, key.url.clone());
            return Ok(());
        }
        let init = self.init.as_ref().filter(|_| segment.init.is_some()).map(|(_, init)| init);
        let key = self.key.as_ref().filter(|_| segment.key.is_some()).map(|(_, key)| *key);
        let with = (self.options.indexes.clone(), init);
        let media = SegmentDownload::begin(now, context, (segment, after), with, key)?;
        self.step = Step::Media(Box::new(media));
        Ok(())
    }

    /// Chooses the rendition of the next segment.
    fn switch(&mut self, now: Instant, context: &mut Context<'_>) {
        let chosen = self.throughput.choose(self.options.policy, &self.renditions, self.current);
        if chosen != self.current {
            self.switch_to(now, context, chosen);
        }
    }

    fn switch_to(&mut self, now: Instant, context: &mut Context<'_>, chosen: usize) {
        let found = self.segments().map(|segments| segments.find(self.next, self.options.low_latency));
        let Some(Found::Piece(segment, after)) = found else { return };
        if self.next.part > 0 && after.part != 1 {
            return; // in the middle of a segment
        }
        // The next segment of the other rendition is the one that covers the same time.
        (self.wanted_us, self.is_sought) = (segment.starts_us, false);
        let before = self.segments().and_then(Segments::window).cloned();
        let is_dynamic = before.is_none() && self.is_live();
        if let Some(rendition) = self.renditions.get(chosen) {
            self.loader.switched(now, context, before.as_ref(), rendition);
        }
        self.waits_for_playlist = before.is_some();
        self.current = chosen;
        if is_dynamic {
            // The present is told to what is played only.
            context.meter.switched();
            return self.switched_by_clock(now, segment.starts_us);
        }
        let wanted_us = self.wanted_us.saturating_add(self.tolerance_us());
        self.next = self
            .segments()
            .map(|segments| segments.at(wanted_us, self.options.low_latency))
            .unwrap_or_default();
        context.meter.switched();
    }

    /// The rendition of a live DASH presentation was switched: its place is a time, as in the one before.
    fn switched_by_clock(&mut self, now: Instant, starts_us: i64) {
        self.next = Cursor::at(u64::try_from(starts_us).unwrap_or(0));
        self.tick(now, self.unix_us);
    }

    fn stop(&mut self, context: &mut Context<'_>) {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Nothing => {}
            Step::Init(whole, _) | Step::Key(whole, _) => whole.cancel(context),
            Step::Media(media) => media.transfer.cancel(context.client),
        }
    }

    pub(super) fn seek(&mut self, context: &mut Context<'_>, position_us: i64) -> Sought {
        if matches!(self.step, Step::Media(_)) {
            self.stop(context);
        }
        (self.wanted_us, self.is_sought) = (position_us, true);
        self.next = self
            .segments()
            .map(|segments| segments.at(position_us, self.options.low_latency))
            .unwrap_or_default();
        (self.origin_of, self.continuity) = (None, Continuity::default());
        self.is_complete = false;
        Sought::Exact
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let step = match &self.step {
            Step::Nothing => None,
            Step::Init(whole, _) | Step::Key(whole, _) => whole.next_timeout(),
            Step::Media(media) => {
                let look = Some(media.next_look_at).filter(|_| self.looks_for_late());
                [media.transfer.next_timeout(), look].into_iter().flatten().min()
            }
        };
        let exists = match self.segments() {
            Some(Segments::Dynamic(window)) => window.next_at(),
            _ => None,
        };
        [step, self.retry.next_timeout(), self.loader.next_timeout(), exists].into_iter().flatten().min()
    }

    /// Whether its segments are known.
    pub(super) fn is_described(&self) -> bool {
        self.segments().is_some()
    }

    pub(super) fn has_tracks(&self) -> bool {
        !self.tracks.is_empty()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn brings(&self, track: usize) -> bool {
        self.tracks.brings(track)
    }

    pub(super) fn duration_us(&self) -> Option<u64> {
        self.segments()?.duration_us()
    }

    /// The end of the stream, where it is live.
    pub(super) fn edge(&self) -> Option<LiveEdge> {
        self.segments()?.edge(self.options.low_latency)
    }

    /// The date of what is played at `position_us`, where the stream has dates.
    pub(super) fn date_us(&self, position_us: i64) -> Option<i64> {
        self.segments()?.date_us(position_us)
    }

    /// Whether it has nothing to request before the stream goes on.
    pub(super) fn waits_for_edge(&self) -> bool {
        let is_idle = matches!(self.step, Step::Nothing) && self.retry.next_timeout().is_none();
        let live = self.segments().filter(|segments| segments.is_live());
        is_idle
            && live.is_some_and(|segments| segments.find(self.next, self.options.low_latency) == Found::Later)
    }
}

fn protocol(url: &Url, what: &str) -> Failure {
    Failure::new(FailureReason::Protocol, format!("{url}: {what}"))
}
