//! A lane of segments (HLS, DASH): the playlist of its rendition, initialisation segments, keys,
//! and one media segment after the other, each downloaded whole, while the player wants more.

use std::sync::Arc;
use std::time::Instant;

use throng_media::manifest::PlaylistCache;
use throng_media::manifest::dash::Manifest;
use throng_media::timing::{IndexCache, InitSegment, Program};
use throng_observation::Url;
use throng_scenario::RenditionPolicy;

use super::continuity::Continuity;
use super::segment_download::SegmentDownload;
use super::throughput::Throughput;
use super::{Context, Sought, TrackMap};
use crate::participant::FetchId;
use crate::player::download::retry::{DASH_SEGMENT_RETRY, Retry, SEGMENT_RETRY};
use crate::player::download::whole::WholeDownload;
use crate::player::manifest::playlist::PlaylistLoader;
use crate::player::manifest::presentation::{
    Cursor, Found, LiveEdge, Rendition, Resource, Segments,
};
use crate::player::manifest::screen::keep_fitting;
use crate::player::p2p::{PeerLane, PeerOptions, Queued};
use crate::shown_size::Size;

mod from_peers;
mod receiving;
mod requesting;

/// Longest initialisation segment.
const INIT_LEN_MAX: usize = 4 << 20;

/// Renditions may begin their segments so much apart and still mean the same (hls.js
/// `maxFragLookUpTolerance`).
pub(in crate::player) const LOOK_UP_TOLERANCE_US: i64 = 250_000;

/// Segments in a row that cannot be read before a live stream is given up.
const UNREADABLE_MAX: u32 = 3;

/// Segments without media in a row before a live stream is given up (hls.js `fragLoadPolicy`, whose
/// repeats these are).
const WITHOUT_MEDIA_MAX: u32 = 6;

/// Places that are passed over at a time because nothing can be loaded there.
const PASSED_MAX: usize = 1_000;

/// How segments are chosen and read.
#[derive(Clone)]
pub(in crate::player) struct SegmentOptions {
    pub(in crate::player) policy: RenditionPolicy,
    /// The shorter side of the picture that the player has room for, where it is bounded.
    pub(in crate::player) screen_lines: Option<u32>,
    /// Live streams are played in parts where they have some.
    pub(in crate::player) low_latency: bool,
    /// The next part is requested before it exists.
    pub(in crate::player) preload_hints: bool,
    pub(in crate::player) indexes: IndexCache,
    pub(in crate::player) playlists: PlaylistCache,
    /// Segments are got from peers too.
    pub(in crate::player) peers: Option<PeerOptions>,
    /// They have the sound of pictures that come in another lane.
    pub(in crate::player) is_separate_sound: bool,
}

/// A lane of segments.
pub(in crate::player) struct SegmentLane {
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
    /// The renditions that do not have the next segment.
    without_next: Vec<usize>,
    /// The rendition that was played before, until the playlist of this one is there.
    came_from: Option<usize>,
    init: Option<(Arc<Resource>, InitSegment)>,
    /// The streams of the last transport stream, of which rendition and discontinuity it was.
    program: Option<((usize, u64), Program)>,
    /// The last size of pictures, and of which rendition it was.
    shown: Option<(usize, Size)>,
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
    peers: Option<Box<PeerLane>>,
    /// What the peers could be asked for, and what that was made of.
    queue: (Vec<Queued>, Option<QueueKey>),
}

/// What is being downloaded, besides the playlist.
enum Step {
    Nothing,
    Init(WholeDownload, Arc<Resource>),
    Key(WholeDownload, Url),
    Media(Box<SegmentDownload>),
    /// It is awaited from peers, or from the server as they decide.
    Peers,
}

impl SegmentLane {
    /// A lane of renditions that are sorted by bitrate.
    pub(in crate::player) fn new(mut renditions: Vec<Rendition>, options: SegmentOptions) -> Self {
        // The rate is guessed by what is listed first, whether or not it is played.
        let throughput = Throughput::new(&renditions);
        keep_fitting(&mut renditions, |rendition| rendition.resolution, options.screen_lines);
        let is_by_clock = renditions
            .iter()
            .any(|rendition| matches!(rendition.segments, Some(Segments::Dynamic(_))));
        Self {
            current: throughput.first(options.policy, &renditions),
            renditions,
            loader: PlaylistLoader::new(options.low_latency),
            peers: options.peers.clone().map(|peers| Box::new(PeerLane::new(peers))),
            queue: (Vec::new(), None),
            options,
            next: Cursor::default(),
            wanted_us: 0,
            is_sought: true,
            waits_for_playlist: false,
            without_next: Vec::new(),
            came_from: None,
            init: None,
            program: None,
            shown: None,
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
    pub(in crate::player) fn has_first_playlist(
        &mut self,
        now: Instant,
        times: (Instant, Instant),
    ) {
        if let Some(window) = self.segments().and_then(Segments::window).cloned() {
            self.loader.has_first(now, &window, times);
        }
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        let is_step = match &self.step {
            Step::Nothing | Step::Peers => false,
            Step::Init(whole, _) | Step::Key(whole, _) => whole.owns(fetch),
            Step::Media(media) => media.owns(fetch),
        };
        is_step
            || self.loader.owns(fetch)
            || self.peers.as_ref().is_some_and(|peers| peers.owns(fetch))
    }

    fn segments(&self) -> Option<&Segments> {
        self.renditions.get(self.current)?.segments.as_ref()
    }

    /// The place of this time in the rendition that is played.
    fn at(&self, position_us: i64) -> Cursor {
        let low_latency = self.options.low_latency;
        self.segments().map(|segments| segments.at(position_us, low_latency)).unwrap_or_default()
    }

    fn is_live(&self) -> bool {
        self.segments().is_some_and(Segments::is_live)
    }

    /// Takes the next version of a live DASH manifest.
    pub(in crate::player) fn update(&mut self, url: &Url, manifest: &Arc<Manifest>) {
        for rendition in &mut self.renditions {
            if let Some(Segments::Dynamic(window)) = &mut rendition.segments {
                window.update(url, manifest);
            }
        }
    }

    /// The present is now this: what exists of a live DASH presentation follows from it.
    pub(in crate::player) fn tick(&mut self, now: Instant, unix_us: i64) {
        self.unix_us = unix_us;
        let rendition = self.renditions.get_mut(self.current);
        if let Some(Segments::Dynamic(window)) =
            rendition.and_then(|rendition| rendition.segments.as_mut())
        {
            window.tick(now, unix_us);
        }
    }

    /// What comes next is at this place and time.
    fn go_to(&mut self, next: Cursor, wanted_us: i64) {
        (self.next, self.wanted_us, self.is_sought) = (next, wanted_us, false);
        self.without_next.clear();
    }

    /// Gives up what it downloads of media.
    pub(in crate::player) fn stop(&mut self, context: &mut Context<'_>) {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Nothing | Step::Peers => {}
            Step::Init(whole, _) => whole.cancel(context),
            Step::Key(whole, url) => {
                context.keys.end(&url);
                whole.cancel(context);
            }
            Step::Media(media) => media.cancel(context.client),
        }
    }

    pub(in crate::player) fn seek(
        &mut self,
        context: &mut Context<'_>,
        position_us: i64,
    ) -> Sought {
        if matches!(self.step, Step::Media(_) | Step::Peers) {
            self.stop(context);
        }
        (self.wanted_us, self.is_sought) = (position_us, true);
        self.next = self.at(position_us);
        (self.origin_of, self.continuity) = (None, Continuity::default());
        self.shown = None;
        self.without_next.clear();
        self.is_complete = false;
        Sought::Exact
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        let step = match &self.step {
            Step::Nothing | Step::Peers => None,
            Step::Init(whole, _) | Step::Key(whole, _) => whole.next_timeout(),
            Step::Media(media) => {
                let look = Some(media.next_look_at).filter(|_| self.looks_for_late());
                [Some(media.overdue_at()), look].into_iter().flatten().min()
            }
        };
        let exists = match self.segments() {
            Some(Segments::Dynamic(window)) => window.next_at(),
            _ => None,
        };
        let peers = self.peers.as_ref().and_then(|peers| peers.next_timeout());
        [step, self.retry.next_timeout(), self.loader.next_timeout(), exists, peers]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether its segments are known.
    pub(in crate::player) fn is_described(&self) -> bool {
        self.segments().is_some()
    }

    pub(in crate::player) fn has_tracks(&self) -> bool {
        !self.tracks.is_empty()
    }

    pub(in crate::player) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(in crate::player) fn brings(&self, track: usize) -> bool {
        self.tracks.brings(track)
    }

    pub(in crate::player) fn duration_us(&self) -> Option<u64> {
        self.segments()?.duration_us()
    }

    /// The end of the stream, where it is live.
    pub(in crate::player) fn edge(&self) -> Option<LiveEdge> {
        self.segments()?.edge(self.options.low_latency)
    }

    /// The date of what is played at `position_us`, where the stream has dates.
    pub(in crate::player) fn date_us(&self, position_us: i64) -> Option<i64> {
        self.segments()?.date_us(position_us)
    }

    /// Whether it has nothing to request before the stream goes on.
    pub(in crate::player) fn waits_for_edge(&self) -> bool {
        if self.awaits_peers() {
            return true;
        }
        let is_idle = matches!(self.step, Step::Nothing) && self.retry.next_timeout().is_none();
        let live = self.segments().filter(|segments| segments.is_live());
        is_idle
            && live.is_some_and(|segments| {
                segments.find(self.next, self.options.low_latency) == Found::Later
            })
    }
}

/// What a queue of segments was made of: rendition, place, and first and last moment of the stream.
type QueueKey = (usize, Cursor, i64, i64);
