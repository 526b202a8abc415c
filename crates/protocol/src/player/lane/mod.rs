//! A lane: the sequence of downloads that brings one or several tracks. A file is one lane; HLS and
//! DASH may have one for video and one for audio.

use std::sync::Arc;
use std::time::Instant;

use throng_media::manifest::dash::Manifest;
use throng_media::timing::{TimedFrame, TrackInfo};
use throng_observation::{Failure, MediaKind, Observation, Phase, PlaybackCounters, Url};

use self::file::FileLane;
use self::keys::Keys;
use self::segments::SegmentLane;
use super::download::client::HttpClient;
use super::manifest::presentation::LiveEdge;
use super::p2p::{Found, PeerLane, Tracker};
use super::playback::meter::Meter;
use super::playback::timeline::{BufferedFrame, Filled, Timeline};
use crate::participant::{DownloadEvent, FetchId};

mod abandon;
mod continuity;
mod decrypt;
pub(super) mod file;
mod kept;
pub(super) mod keys;
pub(super) mod segment_download;
pub(super) mod segments;
mod throughput;
mod unreadable;

/// What the lanes of a player share.
pub(super) struct Context<'a> {
    pub(super) client: &'a mut HttpClient,
    pub(super) timeline: &'a mut Timeline,
    pub(super) meter: &'a mut Meter,
    pub(super) keys: &'a mut Keys,
    /// Where viewers find peers, if they do.
    pub(super) tracker: Option<&'a mut Tracker>,
    /// Where playback is, once it was decided where it begins.
    pub(super) position_us: Option<i64>,
}

/// Which track of the presentation each track of a lane's files is.
#[derive(Debug, Default)]
pub(super) struct TrackMap {
    tracks: Vec<Option<usize>>,
    /// Time in the files at which the presentation begins, microseconds; `None` until it is known.
    pub(super) origin_us: Option<i64>,
}

impl TrackMap {
    /// Announces the tracks of a lane's first file; later files have the same ones.
    pub(super) fn announce(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        tracks: &[TrackInfo],
    ) {
        for track in tracks.iter().skip(self.tracks.len()) {
            // One track of each kind is played, the first.
            let is_known = context.timeline.tracks().iter().any(|known| known.kind == track.kind);
            let at = (!is_known).then(|| context.timeline.add(track.kind, track.codec));
            if let Some(added) = at.and_then(|at| context.timeline.tracks().get(at)) {
                let (track, kind, codec) = (added.id, added.kind, added.codec);
                // Tracks of players have no delays: what they play is on time, or they stall.
                let opened = Observation::TrackOpened { track, kind, codec, is_recording: false };
                context.client.life.observe(opened);
            }
            self.tracks.push(at);
        }
        context.client.life.reach(Phase::Described, now);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }

    /// The tracks of the presentation that this lane brings.
    pub(super) fn brings(&self, track: usize) -> bool {
        self.tracks.contains(&Some(track))
    }

    /// Which track of the files this track of the presentation is.
    pub(super) fn in_file(&self, track: usize) -> Option<u16> {
        let at = self.tracks.iter().position(|known| *known == Some(track))?;
        u16::try_from(at).ok()
    }

    /// The track of the presentation that a frame belongs to, and the frame on its axis.
    fn place(&self, frame: &TimedFrame) -> Option<(usize, BufferedFrame)> {
        let at = self.tracks.get(usize::from(frame.track)).copied().flatten()?;
        let starts_us = frame.decode_us.saturating_sub(self.origin_us.unwrap_or(0));
        let (duration_us, bytes, is_key) = (frame.duration_us, frame.bytes, frame.is_key);
        Some((at, BufferedFrame { starts_us, duration_us, bytes, is_key }))
    }

    /// Receives a frame of a segment, which is played when the segment is complete; its time on the
    /// axis of the presentation.
    pub(super) fn receive(&self, context: &mut Context<'_>, frame: &TimedFrame) -> Option<i64> {
        let (at, buffered) = self.place(frame)?;
        context.timeline.track_mut(at)?.receive(buffered);
        Some(buffered.starts_us)
    }

    /// The segment whose frames were received is complete.
    pub(super) fn append_received(&self, now: Instant, context: &mut Context<'_>, filled: Filled) {
        // Silence is put in beside pictures only (`alignedWithVideo` of hls.js).
        let filled = if context.timeline.has_video() { filled } else { Filled::Nothing };
        for at in self.tracks.iter().copied().flatten() {
            let Some(track) = context.timeline.track_mut(at) else { continue };
            let is_first = !track.has_begun();
            if track.append_pending(filled) {
                self.decodable(now, context, at, is_first);
            }
        }
    }

    /// The segment whose frames were received will not be complete.
    pub(super) fn drop_received(&self, context: &mut Context<'_>) {
        for at in self.tracks.iter().copied().flatten() {
            if let Some(track) = context.timeline.track_mut(at) {
                track.drop_pending();
            }
        }
    }

    /// Reports the first frame that can be decoded.
    fn decodable(&self, now: Instant, context: &mut Context<'_>, at: usize, is_first: bool) {
        let Some(track) = context.timeline.tracks().get(at) else { return };
        let (id, kind) = (track.id, track.kind);
        if is_first {
            context.client.life.observe(Observation::TrackFirstFrame { track: id, at: now });
        }
        if kind == MediaKind::Video || !context.timeline.has_video() {
            context.client.life.reach(Phase::FirstFrame, now);
        }
    }

    /// Adds a frame of a file to the timeline; its time on the axis of the presentation.
    pub(super) fn push(
        &self,
        now: Instant,
        context: &mut Context<'_>,
        frame: &TimedFrame,
    ) -> Option<i64> {
        let (at, buffered) = self.place(frame)?;
        let track = context.timeline.track_mut(at)?;
        let is_first = !track.has_begun();
        if track.push(buffered) {
            self.decodable(now, context, at, is_first);
        }
        Some(buffered.starts_us)
    }
}

/// Where a lane went for a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sought {
    /// The wanted position will be there.
    Exact,
    /// The file has no index: the position is that of the first frame that comes.
    Estimated,
    /// The file cannot be sought in.
    Impossible,
}

/// A lane.
pub(super) enum Lane {
    File(Box<FileLane>),
    Segments(Box<SegmentLane>),
}

/// Calls the same method of either kind.
macro_rules! either {
    ($lane:expr, $inner:ident => $call:expr) => {
        match $lane {
            Lane::File($inner) => $call,
            Lane::Segments($inner) => $call,
        }
    };
}

impl Lane {
    /// Whether this download is its own.
    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        either!(self, lane => lane.owns(fetch))
    }

    /// Handles what the driver reports of its download.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        match self {
            Self::File(lane) => lane.handle(now, context, event),
            Self::Segments(lane) => lane.handle(now, context, fetch, event),
        }
    }

    /// Requests what comes next, and asks for more of it if the player wants more.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wants: bool,
    ) -> Result<(), Failure> {
        either!(self, lane => lane.pump(now, context, wants))
    }

    /// Goes to another position.
    pub(super) fn seek(&mut self, context: &mut Context<'_>, position_us: i64) -> Sought {
        either!(self, lane => lane.seek(context, position_us))
    }

    /// Gives up what it downloads.
    pub(super) fn stop(&mut self, context: &mut Context<'_>) {
        either!(self, lane => lane.stop(context));
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        either!(self, lane => lane.next_timeout())
    }

    /// Whether it is known what it brings when, so that positions have a meaning.
    pub(super) fn is_described(&self) -> bool {
        either!(self, lane => lane.is_described())
    }

    /// Whether its tracks are known.
    pub(super) fn has_tracks(&self) -> bool {
        match self {
            Self::File(lane) => lane.is_described(),
            Self::Segments(lane) => lane.has_tracks(),
        }
    }

    /// Whether all of its media from the position on was received.
    pub(super) fn is_complete(&self) -> bool {
        either!(self, lane => lane.is_complete())
    }

    /// Whether all of this track of the presentation was received, which may end before others.
    pub(super) fn has_ended(&self, track: usize) -> bool {
        match self {
            Self::File(lane) => lane.has_ended(track),
            Self::Segments(lane) => lane.is_complete(),
        }
    }

    /// Whether it brings this track of the presentation.
    pub(super) fn brings(&self, track: usize) -> bool {
        either!(self, lane => lane.brings(track))
    }

    /// Takes the next version of a live DASH manifest.
    pub(super) fn update(&mut self, url: &Url, manifest: &Arc<Manifest>) {
        if let Self::Segments(lane) = self {
            lane.update(url, manifest);
        }
    }

    /// The present is now this.
    pub(super) fn tick(&mut self, now: Instant, unix_us: i64) {
        if let Self::Segments(lane) = self {
            lane.tick(now, unix_us);
        }
    }

    /// The end of the stream, where it is live.
    pub(super) fn edge(&self) -> Option<LiveEdge> {
        match self {
            Self::File(_) => None,
            Self::Segments(lane) => lane.edge(),
        }
    }

    /// The date of what is played at `position_us`, where the stream has dates.
    pub(super) fn date_us(&self, position_us: i64) -> Option<i64> {
        match self {
            Self::File(_) => None,
            Self::Segments(lane) => lane.date_us(position_us),
        }
    }

    /// The tracker found another viewer.
    pub(super) fn found(&mut self, now: Instant, found: &Found) {
        if let Self::Segments(lane) = self {
            lane.found(now, found);
        }
    }

    /// What gets segments from peers, where something does.
    pub(super) fn peers_mut(&mut self) -> Option<&mut PeerLane> {
        match self {
            Self::File(_) => None,
            Self::Segments(lane) => lane.peers_mut(),
        }
    }

    /// What was exchanged with peers in the time since the last call, which lasted so long.
    pub(super) fn take_peer_counters(&mut self, now: Instant, lasted_us: u64) -> PlaybackCounters {
        match self {
            Self::File(_) => PlaybackCounters::default(),
            Self::Segments(lane) => lane.take_peer_counters(now, lasted_us),
        }
    }

    /// Whether it has nothing to request before the stream goes on.
    pub(super) fn waits_for_edge(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Segments(lane) => lane.waits_for_edge(),
        }
    }

    /// Length of the media, where it is known.
    pub(super) fn duration_us(&self) -> Option<u64> {
        either!(self, lane => lane.duration_us())
    }

    /// The time of the first frame since the last seek, where that is not exactly the position
    /// sought.
    pub(super) fn first_frame_us(&self) -> Option<i64> {
        match self {
            Self::File(lane) => lane.first_frame_us(),
            Self::Segments(_) => None,
        }
    }
}
