//! A lane of segments (HLS, DASH): the playlist of its rendition, initialisation segments, and one media segment after the
//! other, each downloaded whole, while the player wants more.

use std::sync::Arc;
use std::time::Instant;

use throng_media::manifest::MANIFEST_LEN_MAX;
use throng_media::timing::{IndexCache, InitSegment, TimingReader, Want};
use throng_observation::{Failure, FailureReason, Phase};
use throng_scenario::RenditionPolicy;

use super::hls;
use super::lane::{Context, Sought, TrackMap};
use super::presentation::{self, Rendition, Resource, Segment, Segments};
use super::retry::Retry;
use super::throughput::Throughput;
use super::transfer::{Transfer, TransferError, TransferEvent};
use crate::participant::{Demand, DownloadEvent, FetchId};

/// Bytes that are asked for at a time; the next are asked for when half of them have come.
const DEMAND_BYTES: u64 = 128 * 1024;

/// Repeats of the request for a segment (hls.js `fragLoadPolicy`).
const RETRIES_MAX: u32 = 6;

/// Longest initialisation segment.
const INIT_LEN_MAX: usize = 4 << 20;

/// A lane of segments.
pub(super) struct SegmentLane {
    renditions: Vec<Rendition>,
    policy: RenditionPolicy,
    indexes: IndexCache,
    /// The rendition that is played, and the segment of it that comes next.
    current: usize,
    next: usize,
    /// Where playback was moved to while the segments of the rendition were not known.
    wanted_us: i64,
    init: Option<(Arc<Resource>, InitSegment)>,
    step: Step,
    tracks: TrackMap,
    /// The discontinuity that the origin of the tracks is for.
    origin_of: Option<u64>,
    throughput: Throughput,
    retry: Retry,
    is_complete: bool,
}

/// What is being downloaded.
enum Step {
    Nothing,
    /// Read as a whole: a playlist, an initialisation segment.
    Whole(Transfer, Vec<u8>, Whole),
    Media(Box<Media>),
}

enum Whole {
    Playlist,
    Init(Arc<Resource>),
}

struct Media {
    transfer: Transfer,
    reader: TimingReader,
    began_at: Instant,
    bytes: u64,
}

impl Step {
    fn transfer(&self) -> Option<&Transfer> {
        match self {
            Self::Nothing => None,
            Self::Whole(transfer, ..) => Some(transfer),
            Self::Media(media) => Some(&media.transfer),
        }
    }

    fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        match self {
            Self::Nothing => None,
            Self::Whole(transfer, ..) => Some(transfer),
            Self::Media(media) => Some(&mut media.transfer),
        }
    }
}

impl SegmentLane {
    /// A lane of renditions that are sorted by bitrate.
    pub(super) fn new(renditions: Vec<Rendition>, policy: RenditionPolicy, indexes: IndexCache) -> Self {
        let throughput = Throughput::default();
        Self {
            current: throughput.choose(policy, &renditions, 0),
            renditions,
            policy,
            indexes,
            next: 0,
            wanted_us: 0,
            init: None,
            step: Step::Nothing,
            tracks: TrackMap::default(),
            origin_of: None,
            throughput,
            retry: Retry::new(RETRIES_MAX),
            is_complete: false,
        }
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.step.transfer().is_some_and(|transfer| transfer.fetch() == fetch)
    }

    fn segments(&self) -> Option<&[Segment]> {
        self.renditions.get(self.current)?.known()
    }

    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        let Some(transfer) = self.step.transfer_mut() else { return Ok(()) };
        match transfer.handle(now, context.client, event) {
            TransferEvent::Begun { .. } => {
                if matches!(self.step, Step::Media(_)) {
                    context.phases.reach(context.client, Phase::Playing, now);
                }
                Ok(())
            }
            TransferEvent::Bytes(bytes) => self.bytes(now, context, Some(bytes), bytes.len() as u64),
            TransferEvent::Ignored(count) => self.bytes(now, context, None, count),
            TransferEvent::Complete => self.complete(now, context),
            TransferEvent::Failed(error) => self.failed(now, error),
            TransferEvent::Nothing => Ok(()),
        }
    }

    fn bytes(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        content: Option<&[u8]>,
        count: u64,
    ) -> Result<(), Failure> {
        self.retry.progressed();
        match &mut self.step {
            Step::Nothing => {}
            Step::Whole(transfer, bytes, what) => {
                let most = if matches!(what, Whole::Playlist) { MANIFEST_LEN_MAX } else { INIT_LEN_MAX };
                context.meter.other_bytes(count);
                bytes.extend_from_slice(content.unwrap_or_default());
                if bytes.len() > most {
                    let detail = format!("{}: more than {most} bytes", transfer.url());
                    return Err(Failure::new(FailureReason::Protocol, detail));
                }
            }
            Step::Media(media) => {
                media.bytes += count;
                context.meter.media_bytes(count);
                context.phases.reach(context.client, Phase::FirstPacket, now);
                match content {
                    Some(bytes) => media.reader.feed(bytes).map_err(|error| {
                        let detail = format!("{}: {error}", media.transfer.url());
                        Failure::new(FailureReason::Protocol, detail)
                    })?,
                    None => media.reader.ignored(count),
                }
                self.take_frames(now, context);
            }
        }
        Ok(())
    }

    fn take_frames(&mut self, now: Instant, context: &mut Context<'_>) {
        let Some(segment) =
            self.renditions.get(self.current).and_then(|rendition| rendition.known()?.get(self.next))
        else {
            return;
        };
        let Step::Media(media) = &mut self.step else { return };
        if let Some(tracks) = media.reader.tracks() {
            self.tracks.announce(now, context, tracks);
        }
        while let Some(frame) = media.reader.next_frame() {
            if self.origin_of != Some(segment.discontinuity) {
                self.origin_of = Some(segment.discontinuity);
                self.tracks.origin_us = Some(frame.decode_us.saturating_sub(segment.starts_us));
            }
            self.tracks.push(now, context, &frame);
        }
    }

    fn complete(&mut self, now: Instant, context: &mut Context<'_>) -> Result<(), Failure> {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Nothing => {}
            Step::Whole(transfer, bytes, Whole::Playlist) => {
                let segments = hls::media(transfer.url(), &bytes)?;
                if let Some(rendition) = self.renditions.get_mut(self.current) {
                    rendition.segments = Segments::Known(segments);
                }
                self.next = self.at(self.wanted_us);
                context.phases.reach(context.client, Phase::Described, now);
            }
            Step::Whole(transfer, bytes, Whole::Init(resource)) => {
                let init = InitSegment::parse(&bytes).map_err(|error| {
                    Failure::new(FailureReason::Protocol, format!("{}: {error}", transfer.url()))
                })?;
                self.tracks.announce(now, context, init.tracks());
                self.init = Some((resource, init));
            }
            Step::Media(mut media) => {
                if let Err(error) = media.reader.finish() {
                    context.client.anomaly(format!("{}: {error}", media.transfer.url()));
                }
                self.throughput.add(media.bytes, now.saturating_duration_since(media.began_at));
                self.step = Step::Media(media);
                self.take_frames(now, context);
                self.step = Step::Nothing;
                self.next += 1;
            }
        }
        Ok(())
    }

    fn failed(&mut self, now: Instant, error: TransferError) -> Result<(), Failure> {
        self.step = Step::Nothing;
        if error.may_retry && self.retry.failed(now) { Ok(()) } else { Err(error.failure) }
    }

    pub(super) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wants: bool,
    ) -> Result<(), Failure> {
        if self.step.transfer().and_then(Transfer::next_timeout).is_some_and(|at| now >= at) {
            let error = self.step.transfer().map(Transfer::stuck);
            context.client.failed();
            self.stop(context);
            error.map_or(Ok(()), |error| self.failed(now, error))?;
        }
        if matches!(self.step, Step::Nothing) && !self.is_complete && !self.retry.waits(now) {
            self.request(now, context, wants)?;
        }
        self.demand(now, context);
        Ok(())
    }

    /// Requests what comes next.
    fn request(&mut self, now: Instant, context: &mut Context<'_>, wants: bool) -> Result<(), Failure> {
        if wants && self.segments().is_some() {
            self.switch(context);
        }
        let Some(rendition) = self.renditions.get(self.current) else { return Ok(()) };
        let segments = match &rendition.segments {
            Segments::Known(segments) => segments,
            Segments::Playlist(url) => {
                let transfer = Transfer::begin(now, context.client, url, None)?;
                self.retry.begun();
                self.step = Step::Whole(transfer, Vec::new(), Whole::Playlist);
                return Ok(());
            }
        };
        let Some(segment) = segments.get(self.next) else {
            self.is_complete = true;
            return Ok(());
        };
        if !wants {
            return Ok(());
        }
        self.retry.begun();
        let begin = |client, resource: &Resource| {
            Transfer::begin(
                now,
                client,
                &resource.url,
                resource.range.map(|(first, last)| (first, Some(last))),
            )
        };
        self.step = match &segment.init {
            Some(init) if self.init.as_ref().is_none_or(|(known, _)| known != init) => {
                let transfer = begin(&mut *context.client, init)?;
                Step::Whole(transfer, Vec::new(), Whole::Init(Arc::clone(init)))
            }
            needed => {
                let init = self.init.as_ref().filter(|_| needed.is_some()).map(|(_, init)| init);
                Step::Media(Box::new(Media {
                    transfer: begin(&mut *context.client, &segment.media)?,
                    reader: TimingReader::segment(self.indexes.clone(), init),
                    began_at: now,
                    bytes: 0,
                }))
            }
        };
        Ok(())
    }

    /// Chooses the rendition of the next segment.
    fn switch(&mut self, context: &mut Context<'_>) {
        let chosen = self.throughput.choose(self.policy, &self.renditions, self.current);
        if chosen == self.current {
            return;
        }
        // The next segment of the other rendition is the one that covers the same time.
        let starts_us =
            self.segments().and_then(|segments| segments.get(self.next)).map(|next| next.starts_us);
        let Some(starts_us) = starts_us else { return };
        self.current = chosen;
        self.wanted_us = starts_us;
        self.next = self.at(starts_us);
        context.meter.switched();
    }

    /// The segment that covers `position_us`; 0 while they are not known.
    fn at(&self, position_us: i64) -> usize {
        let Some(segments) = self.segments() else { return 0 };
        segments.partition_point(|segment| segment.starts_us <= position_us).saturating_sub(1)
    }

    /// Keeps enough of the body asked for. A segment is read as fast as it comes: only between segments does a player
    /// hold the server back.
    fn demand(&mut self, now: Instant, context: &mut Context<'_>) {
        let want = match &self.step {
            Step::Nothing => return,
            Step::Whole(..) => Want::Deliver(u64::MAX),
            Step::Media(media) => media.reader.want(),
        };
        let Some(transfer) = self.step.transfer_mut() else { return };
        let outstanding = transfer.outstanding();
        if !transfer.has_head() || outstanding > DEMAND_BYTES / 2 {
            return;
        }
        let (demand, bytes): (fn(u64) -> Demand, u64) = match want {
            Want::Deliver(bytes) => (Demand::Deliver, bytes),
            // What comes behind the last frame is received too.
            Want::Done => (Demand::Ignore, u64::MAX),
            Want::Ignore(bytes) => (Demand::Ignore, bytes),
            // An index elsewhere in a segment has nothing that its own time stamps do not say.
            Want::Jump(_) => (Demand::Deliver, u64::MAX),
        };
        if bytes > outstanding {
            transfer.demand(now, context.client, demand((bytes - outstanding).min(DEMAND_BYTES)));
        }
    }

    fn stop(&mut self, context: &mut Context<'_>) {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Nothing => {}
            Step::Whole(transfer, ..) => transfer.cancel(context.client),
            Step::Media(media) => media.transfer.cancel(context.client),
        }
    }

    pub(super) fn seek(&mut self, context: &mut Context<'_>, position_us: i64) -> Sought {
        if matches!(self.step, Step::Media(_)) {
            self.stop(context);
        }
        self.wanted_us = position_us;
        self.next = self.at(position_us);
        self.origin_of = None;
        self.is_complete = false;
        Sought::Exact
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let stuck = self.step.transfer().and_then(Transfer::next_timeout);
        [stuck, self.retry.next_timeout()].into_iter().flatten().min()
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
        self.segments().map(presentation::duration_us)
    }
}
