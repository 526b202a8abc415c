//! The media that a player has buffered: which frames of which track, and how far playback can go.

use std::collections::VecDeque;
use std::time::Duration;

use throng_observation::{Codec, MediaKind, TrackId};

use crate::shown_size::Size;

mod track;

/// A longer time without a frame between two pieces of media is a hole: playback stops there, as
/// that of a media element does. Chromium plays on over twice the length of a frame; pieces of one
/// stream are less apart.
const HOLE_US: i64 = 250_000;
/// Frames whose mean duration is the frame rate of the source.
const RATE_FRAMES: u32 = 60;

/// Which times without a frame are no holes of a segment: a player that makes MP4 of transport
/// streams, as hls.js, shows the picture before them longer, and puts silence into sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) enum Filled {
    /// None: the segment is played as it is.
    Nothing,
    /// Those between its frames.
    Within,
    /// Those before its first frame too: it follows the segment before.
    Throughout,
}

/// A frame on the time axis of the presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) struct BufferedFrame {
    /// When it is decoded, microseconds from the beginning of the presentation. Frames are counted
    /// and played by the order of decoding, in which they come: presented they are a few frames
    /// later, and in another order.
    pub(in crate::player) starts_us: i64,
    /// How long it lasts.
    pub(in crate::player) duration_us: u32,
    /// Its coded size.
    pub(in crate::player) bytes: u32,
    /// Whether decoding can begin with it.
    pub(in crate::player) is_key: bool,
}

impl BufferedFrame {
    fn ends_us(&self) -> i64 {
        self.starts_us.saturating_add(i64::from(self.duration_us))
    }
}

/// Frames that began within a stretch of playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::player) struct PlayedFrames {
    pub(in crate::player) frames: u64,
    pub(in crate::player) key_frames: u64,
    /// Time for which these frames are, by the times at which they begin, microseconds.
    pub(in crate::player) last_us: u64,
    /// Time in which there were none, though there should have been some, microseconds.
    pub(in crate::player) missing_us: u64,
}

/// One track of the presentation.
#[derive(Debug)]
pub(in crate::player) struct BufferedTrack {
    pub(in crate::player) id: TrackId,
    pub(in crate::player) kind: MediaKind,
    pub(in crate::player) codec: Codec,
    /// Start times of the frames that are not yet played, microseconds, with the key frame in the
    /// lowest bit: a viewer holds thousands of them.
    waiting: VecDeque<i64>,
    /// Frames that were received and cannot be played yet: their segment is not complete.
    pending: Vec<BufferedFrame>,
    /// End of the last frame that can be played, from which on media is missing; `None` before the
    /// first.
    end_us: Option<i64>,
    /// Start of the first frame that can be decoded, since playback began or was moved.
    begins_us: Option<i64>,
    /// End of the last frame received, pending or not.
    received_us: Option<i64>,
    /// Where media is missing between frames: begin and end, in order.
    holes: VecDeque<(i64, i64)>,
    /// Where pictures are missing and the one before is shown: begin and end, in order.
    missing: VecDeque<(i64, i64)>,
    /// Start of the last frame received.
    last_us: Option<i64>,
    /// Mean duration of frames, microseconds, and of how many frames, up to [`RATE_FRAMES`].
    frame_us: f64,
    rate_frames: u32,
    /// The last picture came so late after the one before that pictures may be missing.
    was_long: bool,
    /// Frames that were played and not yet taken.
    played: PlayedFrames,
    /// Start of the last frame played; `None` where the next one does not follow it.
    last_played_us: Option<i64>,
    /// Bytes received since they were last taken.
    bytes: u64,
    /// Whether a key frame came since playback began or was moved: what comes before it cannot be
    /// shown.
    is_decodable: bool,
    /// Whether a decodable frame ever came.
    has_begun: bool,
    /// Frames before this time are decoded and not shown: playback was moved to between key frames.
    shows_from_us: i64,
}

/// The tracks of a presentation.
#[derive(Debug, Default)]
pub(in crate::player) struct Timeline {
    tracks: Vec<BufferedTrack>,
    /// From when on which capture times are valid: a position, and how long after 1970 its
    /// beginning was captured, microseconds.
    captures: VecDeque<(i64, i64)>,
    /// From when on pictures have another size: a position, and their shorter side, pixels.
    sizes: VecDeque<(i64, u16)>,
    /// Where pictures change their size without a switch of rendition: a position, and the sizes
    /// before and from there on.
    size_changes: VecDeque<(i64, Size, Size)>,
}

/// Most of each: one for each segment that is buffered.
const CAPTURES_MAX: usize = 64;

/// Capture times jitter by less.
const CAPTURE_STEP_US: u64 = 2_000;

impl Timeline {
    /// The frame at `position_us` was captured at this time.
    pub(in crate::player) fn captured(&mut self, position_us: i64, unix_us: i64) {
        let origin_us = unix_us.saturating_sub(position_us);
        // Segments of the same publication say the same.
        let is_new = self.captures.back().is_none_or(|(from_us, known_us)| {
            position_us < *from_us || known_us.abs_diff(origin_us) > CAPTURE_STEP_US
        });
        if is_new {
            self.captures.retain(|(from_us, _)| *from_us < position_us);
            if self.captures.len() >= CAPTURES_MAX {
                self.captures.pop_front();
            }
            self.captures.push_back((position_us, origin_us));
        }
    }

    /// When what is at `position_us` was captured, microseconds since 1970.
    pub(in crate::player) fn captured_unix_us(&self, position_us: i64) -> Option<i64> {
        let (_, origin_us) =
            self.captures.iter().rev().find(|(from_us, _)| *from_us <= position_us)?;
        Some(position_us.saturating_add(*origin_us))
    }

    /// What begins at `position_us` has pictures of this size.
    pub(in crate::player) fn sized(&mut self, position_us: i64, lines: u16) {
        let is_new = self
            .sizes
            .back()
            .is_none_or(|(from_us, known)| position_us < *from_us || *known != lines);
        if is_new {
            self.sizes.retain(|(from_us, _)| *from_us < position_us);
            if self.sizes.len() >= CAPTURES_MAX {
                self.sizes.pop_front();
            }
            self.sizes.push_back((position_us, lines));
        }
    }

    /// The shorter side of the picture at `position_us`, pixels, where it is known.
    pub(in crate::player) fn lines_at(&self, position_us: i64) -> Option<u16> {
        let (_, lines) = self.sizes.iter().rev().find(|(from_us, _)| *from_us <= position_us)?;
        Some(*lines)
    }

    /// At `position_us` the pictures of one rendition change their size.
    pub(in crate::player) fn size_changes(&mut self, position_us: i64, from: Size, to: Size) {
        if self.size_changes.len() < CAPTURES_MAX {
            self.size_changes.push_back((position_us, from, to));
        }
    }

    /// Takes the first change of size before `position_us`: the sizes before and after it.
    pub(in crate::player) fn take_size_change(&mut self, position_us: i64) -> Option<(Size, Size)> {
        let first = self.size_changes.front().copied();
        let (_, from, to) = first.filter(|(at_us, ..)| *at_us < position_us)?;
        self.size_changes.pop_front();
        Some((from, to))
    }

    /// How long the frames last of the track whose frames last longest, by their mean; `None`
    /// before any is known.
    pub(in crate::player) fn longest_frame_us(&self) -> Option<u64> {
        let means_us = self.tracks.iter().map(|track| track.frame_us as u64);
        means_us.max().filter(|mean_us| *mean_us > 0)
    }

    /// Adds a track; its index.
    pub(in crate::player) fn add(&mut self, kind: MediaKind, codec: Codec) -> usize {
        let at = self.tracks.len();
        self.tracks.push(BufferedTrack {
            id: TrackId(u16::try_from(at).unwrap_or(u16::MAX)),
            kind,
            codec,
            waiting: VecDeque::new(),
            pending: Vec::new(),
            end_us: None,
            begins_us: None,
            received_us: None,
            holes: VecDeque::new(),
            missing: VecDeque::new(),
            last_us: None,
            frame_us: 0.0,
            rate_frames: 0,
            was_long: false,
            played: PlayedFrames::default(),
            last_played_us: None,
            bytes: 0,
            is_decodable: false,
            has_begun: false,
            shows_from_us: i64::MIN,
        });
        at
    }

    pub(in crate::player) fn tracks(&self) -> &[BufferedTrack] {
        &self.tracks
    }

    pub(in crate::player) fn has_video(&self) -> bool {
        self.tracks.iter().any(|track| track.kind == MediaKind::Video)
    }

    pub(in crate::player) fn tracks_mut(&mut self) -> &mut [BufferedTrack] {
        &mut self.tracks
    }

    pub(in crate::player) fn track_mut(&mut self, at: usize) -> Option<&mut BufferedTrack> {
        self.tracks.get_mut(at)
    }

    /// How far playback can go from `position_us`: to the first hole, or the end, of the track
    /// where that comes first; `None` while a track has no frame. `has_ended` tells of a track
    /// whether all of it was received: then it holds nobody back.
    pub(in crate::player) fn playable_us(
        &self,
        position_us: i64,
        has_ended: impl Fn(usize) -> bool,
    ) -> Option<i64> {
        let end_us = self.common_end_us(|track| track.end_us, has_ended)?;
        Some(self.hole_us(position_us).map_or(end_us, |begins_us| begins_us.min(end_us)))
    }

    /// Where the hole at `position_us`, or the first one behind it, begins.
    pub(in crate::player) fn hole_us(&self, position_us: i64) -> Option<i64> {
        let holes = self.tracks.iter().filter_map(|track| track.hole_after(position_us));
        holes.map(|(begins_us, _)| begins_us).min()
    }

    /// Media ahead of `position_us`, microseconds: to the end of the track that ends first, without
    /// its holes.
    pub(in crate::player) fn ahead_us(
        &self,
        position_us: i64,
        has_ended: impl Fn(usize) -> bool,
    ) -> u64 {
        let Some(end_us) = self.common_end_us(|track| track.end_us, has_ended) else { return 0 };
        let holes_us = self.tracks.iter().map(|track| track.holes_us(position_us, end_us)).max();
        let ahead_us = end_us.saturating_sub(position_us).saturating_sub(holes_us.unwrap_or(0));
        u64::try_from(ahead_us).unwrap_or(0)
    }

    /// The same for what was received, played or not: what counts as delivered.
    pub(in crate::player) fn received_us(&self, has_ended: impl Fn(usize) -> bool) -> Option<i64> {
        self.common_end_us(|track| track.received_us, has_ended)
    }

    fn common_end_us(
        &self,
        end_us: impl Fn(&BufferedTrack) -> Option<i64>,
        has_ended: impl Fn(usize) -> bool,
    ) -> Option<i64> {
        let longest = self.tracks.iter().filter_map(&end_us).max()?;
        let open = self.tracks.iter().enumerate().filter(|(at, _)| !has_ended(*at));
        open.map(|(_, track)| end_us(track)).try_fold(longest, |least, end| Some(least.min(end?)))
    }

    /// Where the media begins, if it does so behind `position_us`.
    pub(in crate::player) fn begins_behind_us(&self, position_us: i64) -> Option<i64> {
        let begins_us = self.tracks.iter().filter_map(|track| track.begins_us).min()?;
        (begins_us.saturating_sub(position_us) > HOLE_US).then_some(begins_us)
    }

    /// Where media goes on after the hole at `position_us`, if there is one.
    pub(in crate::player) fn after_hole_us(&self, position_us: i64) -> Option<i64> {
        let holes = self.tracks.iter().filter_map(|track| track.hole_after(position_us));
        holes.filter(|(begins_us, _)| *begins_us <= position_us).map(|(_, ends_us)| ends_us).max()
    }

    /// Forgets all that is buffered: playback moves from one position to another, from which on
    /// frames are shown.
    pub(in crate::player) fn clear(&mut self, from_us: i64, to_us: i64) {
        self.size_changes.clear();
        for track in &mut self.tracks {
            track.play_to(from_us);
            track.waiting.clear();
            track.pending.clear();
            track.holes.clear();
            track.missing.clear();
            track.shows_from_us = to_us;
            (track.end_us, track.received_us) = (None, None);
            (track.last_us, track.is_decodable) = (None, false);
            (track.begins_us, track.last_played_us) = (None, None);
        }
    }
}

/// A duration on the time axis of the presentation.
pub(in crate::player) fn as_us(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
