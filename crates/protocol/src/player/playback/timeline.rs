//! The media that a player has buffered: which frames of which track, and how far playback can go.

use std::collections::VecDeque;
use std::time::Duration;

use throng_observation::{Codec, MediaKind, TrackId};

/// Frames of one track that may wait for their presentation; a stream with more is played without
/// the rest.
const FRAMES_MAX: usize = 500_000;
/// A longer time without a frame between two pieces of media is a hole: playback stops there, as
/// that of a media element does. Chromium plays on over twice the length of a frame; pieces of one
/// stream are less apart.
const HOLE_US: i64 = 250_000;
/// A longer time without sound is not filled with silence (hls.js `MAX_SILENT_FRAME_DURATION`).
const SILENCE_US_MAX: i64 = 10_000_000;
/// Frames whose mean duration is the frame rate of the source.
const RATE_FRAMES: u32 = 60;
/// In a transport stream, which does not say how long a picture lasts, a longer time between two of
/// them is that of pictures that are missing: so many mean durations, and so long. Who shares a
/// screen that does not change sends a picture a second.
const MISSING_FRAMES: f64 = 10.0;
const MISSING_US: f64 = 1_500_000.0;

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
}

/// Most of each: one for each segment that is buffered.
const CAPTURES_MAX: usize = 64;

/// Capture times jitter by less.
const CAPTURE_STEP_US: u64 = 2_000;

impl BufferedTrack {
    /// Adds a frame behind those that came before. False if decoding cannot begin with it.
    pub(in crate::player) fn push(&mut self, frame: BufferedFrame) -> bool {
        self.received(&frame);
        self.append(frame, false)
    }

    /// Receives a frame of a segment, which can be played when its segment is complete
    /// ([`Self::append_pending`]).
    pub(in crate::player) fn receive(&mut self, frame: BufferedFrame) {
        self.received(&frame);
        self.pending.push(frame);
    }

    fn received(&mut self, frame: &BufferedFrame) {
        self.bytes += u64::from(frame.bytes);
        let ends_us = frame.ends_us();
        self.received_us = Some(self.received_us.map_or(ends_us, |end_us| end_us.max(ends_us)));
    }

    /// The segment of the pending frames is complete. Whether a frame came with which decoding can
    /// begin.
    pub(in crate::player) fn append_pending(&mut self, filled: Filled) -> bool {
        let mut is_decodable = false;
        let mut is_filled = filled == Filled::Throughout;
        for frame in std::mem::take(&mut self.pending) {
            // What was appended before is not replaced: renditions overlap where their segments are
            // not aligned.
            let is_known = self.end_us.is_some_and(|end_us| {
                frame.starts_us.saturating_add(i64::from(frame.duration_us) / 2) < end_us
            });
            if !is_known {
                self.meet_hole(frame.starts_us, is_filled);
                is_decodable |= self.append(frame, is_filled);
            }
            is_filled = filled != Filled::Nothing;
        }
        is_decodable
    }

    /// The segment of the pending frames will not be complete.
    pub(in crate::player) fn drop_pending(&mut self) {
        self.pending.clear();
        self.received_us = self.end_us;
    }

    /// The next frame of a segment starts at `starts_us`: what is missing before it is a hole,
    /// unless `is_filled` and it can be. A picture lasts until the next one; of sound, hls.js has
    /// silent frames of AAC only.
    fn meet_hole(&mut self, starts_us: i64, is_filled: bool) {
        let Some(end_us) = self.end_us else { return };
        let missing_us = starts_us.saturating_sub(end_us);
        let can_be_filled = self.kind == MediaKind::Video
            || self.codec == Codec::Aac && missing_us < SILENCE_US_MAX;
        if missing_us > HOLE_US && !(is_filled && can_be_filled) {
            self.holes.push_back((end_us, starts_us));
        }
    }

    /// Adds a frame; `is_stretched`: the one before was shown until it came, whether it was to be
    /// or not.
    fn append(&mut self, frame: BufferedFrame, is_stretched: bool) -> bool {
        self.is_decodable |= frame.is_key || self.kind == MediaKind::Audio;
        let ends_us = frame.ends_us();
        self.end_us = Some(self.end_us.map_or(ends_us, |end_us| end_us.max(ends_us)));
        // A file that does not say how long its frames last says when the next one begins.
        let since_last_us =
            self.last_us.map_or(0, |last_us| frame.starts_us.saturating_sub(last_us));
        let longest_us =
            self.longest_us().filter(|_| is_stretched && self.kind == MediaKind::Video);
        let is_long = longest_us.is_some_and(|longest_us| since_last_us as f64 > longest_us);
        let longest_us = longest_us.filter(|_| !(is_long && self.was_long));
        if is_long && self.was_long {
            // The second in a row is how seldom the source sends pictures now.
            self.missing.pop_back();
            (self.rate_frames, self.frame_us) = (0, 0.0);
        } else if is_long {
            let lasts_us = since_last_us.min(self.frame_us as i64);
            let begins_us = frame.starts_us.saturating_sub(since_last_us).saturating_add(lasts_us);
            let begins_us = begins_us.max(self.shows_from_us);
            if begins_us < frame.starts_us {
                self.missing.push_back((begins_us, frame.starts_us));
            }
        }
        self.was_long = is_long;
        self.last_us = Some(frame.starts_us);
        let duration_us =
            if frame.duration_us > 0 { i64::from(frame.duration_us) } else { since_last_us };
        if duration_us > 0 {
            // The picture before missing ones lasts as long as they do. Those that come seldom from
            // now on change the mean all the same.
            let duration_us = (duration_us as f64).min(longest_us.unwrap_or(f64::MAX));
            self.rate_frames = (self.rate_frames + 1).min(RATE_FRAMES);
            self.frame_us += (duration_us - self.frame_us) / f64::from(self.rate_frames);
        }
        self.has_begun |= self.is_decodable;
        if self.is_decodable {
            self.begins_us.get_or_insert(frame.starts_us);
        }
        let is_shown = self.is_decodable && frame.starts_us >= self.shows_from_us;
        if is_shown && self.waiting.len() < FRAMES_MAX {
            self.waiting.push_back((frame.starts_us << 1) | i64::from(frame.is_key));
        }
        self.is_decodable
    }

    /// How long the time between two pictures can be without one missing, microseconds; `None`
    /// before their rate is known.
    fn longest_us(&self) -> Option<f64> {
        (self.rate_frames > 0).then(|| (MISSING_FRAMES * self.frame_us).max(MISSING_US))
    }

    /// The hole at `position_us`, or the first one behind it.
    fn hole_after(&self, position_us: i64) -> Option<(i64, i64)> {
        self.holes.iter().copied().find(|(_, ends_us)| *ends_us > position_us)
    }

    /// How much is missing between these positions.
    fn holes_us(&self, from_us: i64, to_us: i64) -> i64 {
        let within = self.holes.iter().map(|(begins_us, ends_us)| {
            (*ends_us).min(to_us).saturating_sub((*begins_us).max(from_us)).max(0)
        });
        within.fold(0, i64::saturating_add)
    }

    /// Whether a frame that can be decoded ever came.
    pub(in crate::player) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Counts the frames whose time has come at `position_us`.
    fn play_to(&mut self, position_us: i64) {
        while let Some(frame) =
            self.waiting.front().copied().filter(|frame| frame >> 1 < position_us)
        {
            let starts_us = frame >> 1;
            self.pass_holes(starts_us);
            self.pass_missing(starts_us);
            // A frame is counted with the time since the one before it: that is how long it was
            // waited for, however unevenly they come.
            let since_last_us = self.last_played_us.map(|us| starts_us.saturating_sub(us));
            self.played.last_us += since_last_us.map_or(self.frame_us as u64, i64::unsigned_abs);
            self.last_played_us = Some(starts_us);
            self.played.frames += 1;
            self.played.key_frames += u64::from(frame & 1 == 1);
            self.waiting.pop_front();
        }
        self.pass_holes(position_us);
        self.pass_missing(position_us);
    }

    /// Counts the time before this position in which pictures are missing.
    fn pass_missing(&mut self, position_us: i64) {
        while let Some((begins_us, ends_us)) =
            self.missing.front().copied().filter(|(begins_us, _)| *begins_us < position_us)
        {
            self.missing.pop_front();
            let until_us = ends_us.min(position_us);
            self.played.missing_us += begins_us.abs_diff(until_us);
            if until_us < ends_us {
                self.missing.push_front((until_us, ends_us));
            } else {
                self.last_played_us = None;
            }
        }
    }

    /// Forgets the holes that end before this position.
    fn pass_holes(&mut self, position_us: i64) {
        while self.holes.front().is_some_and(|(_, ends_us)| *ends_us <= position_us) {
            self.holes.pop_front();
            self.last_played_us = None;
        }
    }

    /// Takes the frames that were played since the last call, up to `position_us`.
    pub(in crate::player) fn take_played(&mut self, position_us: i64) -> PlayedFrames {
        self.play_to(position_us);
        std::mem::take(&mut self.played)
    }

    /// Takes the number of bytes received since the last call.
    pub(in crate::player) fn take_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }

    /// Frames per second by the frames' durations; `None` before the first.
    pub(in crate::player) fn source_fps(&self) -> Option<f32> {
        (self.frame_us > 0.0).then(|| (1e6 / self.frame_us) as f32)
    }
}

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
mod tests {
    use super::*;

    fn frame(starts_ms: i64, is_key: bool) -> BufferedFrame {
        BufferedFrame { starts_us: starts_ms * 1_000, duration_us: 40_000, bytes: 100, is_key }
    }

    fn filled(video: std::ops::Range<i64>, audio: std::ops::Range<i64>) -> Timeline {
        let mut timeline = Timeline::default();
        let at = [MediaKind::Video, MediaKind::Audio].map(|kind| timeline.add(kind, Codec::Other));
        for (at, range) in at.into_iter().zip([video, audio]) {
            let track = timeline.track_mut(at).unwrap();
            range.for_each(|number| {
                track.push(frame(number * 40, number % 25 == 0));
            });
        }
        timeline
    }

    #[test]
    fn playback_goes_as_far_as_the_track_that_ends_first() {
        let timeline = filled(0..50, 0..25);
        assert_eq!(timeline.playable_us(0, |_| false), Some(1_000_000));
        assert_eq!(timeline.playable_us(0, |at| at == 1), Some(2_000_000), "the audio has ended");
        assert_eq!(timeline.playable_us(0, |_| true), Some(2_000_000));
        assert_eq!(filled(0..50, 0..0).playable_us(0, |_| false), None, "no audio came");
    }

    #[test]
    fn a_picture_has_the_size_that_was_said_last_before_it() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.lines_at(0), None);
        [(0, 360), (4, 360), (8, 720), (12, 360)]
            .into_iter()
            .for_each(|(at_s, lines)| timeline.sized(at_s * 1_000_000, lines));
        let at_s = |timeline: &Timeline, at_s: i64| timeline.lines_at(at_s * 1_000_000);
        for (position_s, lines) in [(-1, None), (7, Some(360)), (8, Some(720)), (90, Some(360))] {
            assert_eq!(at_s(&timeline, position_s), lines, "{position_s} s");
        }
        // A seek back, to another size.
        timeline.sized(4_000_000, 1_080);
        assert_eq!((at_s(&timeline, 3), at_s(&timeline, 9)), (Some(360), Some(1_080)));
    }

    #[test]
    fn each_frame_is_played_once_when_its_time_has_come() {
        let mut timeline = filled(0..50, 0..50);
        let video = timeline.track_mut(0).unwrap();
        assert_eq!(video.take_played(0), PlayedFrames::default());
        for (position_us, frames, key_frames) in
            [(1_000_000, 25, 1), (1_000_001, 1, 1), (9_000_000, 24, 0)]
        {
            let last_us = 40_000 * frames;
            let expect = PlayedFrames { frames, key_frames, last_us, missing_us: 0 };
            assert_eq!(video.take_played(position_us), expect);
        }
        assert!((video.source_fps().unwrap() - 25.0).abs() < 0.01);
        assert_eq!((video.take_bytes(), video.take_bytes()), (5_000, 0));
    }

    #[test]
    fn a_segment_can_be_played_when_it_is_complete_and_what_overlaps_is_not_played_twice() {
        let mut timeline = filled(0..50, 0..50);
        let receive = |timeline: &mut Timeline, frames: std::ops::Range<i64>| {
            let track = timeline.track_mut(0).unwrap();
            frames.for_each(|number| track.receive(frame(number * 40, number % 25 == 0)));
        };
        receive(&mut timeline, 25..75);
        assert_eq!(timeline.playable_us(0, |at| at == 1), Some(2_000_000));
        assert_eq!(timeline.received_us(|at| at == 1), Some(3_000_000));
        assert!(timeline.track_mut(0).unwrap().append_pending(Filled::Nothing));
        assert_eq!(timeline.playable_us(0, |at| at == 1), Some(3_000_000));
        assert_eq!(timeline.track_mut(0).unwrap().take_played(9_000_000).frames, 75);
        receive(&mut timeline, 75..80);
        timeline.track_mut(0).unwrap().drop_pending();
        assert_eq!(timeline.received_us(|at| at == 1), Some(3_000_000));
    }

    #[test]
    fn a_segment_that_is_missing_is_a_hole_at_which_playback_stops() {
        let mut timeline = filled(0..50, 0..50);
        for at in 0..2 {
            let track = timeline.track_mut(at).unwrap();
            (100..150).for_each(|number| track.receive(frame(number * 40, number % 25 == 0)));
            track.append_pending(Filled::Within);
        }
        assert_eq!(timeline.ahead_us(500_000, |_| false), 3_500_000, "without the hole");
        assert_eq!(timeline.playable_us(500_000, |_| false), Some(2_000_000));
        assert_eq!(
            (timeline.after_hole_us(500_000), timeline.after_hole_us(2_000_000)),
            (None, Some(4_000_000))
        );
        assert_eq!(timeline.playable_us(4_000_000, |_| false), Some(6_000_000));
        for at in 0..2 {
            timeline.track_mut(at).unwrap().take_played(4_000_000);
        }
        assert_eq!(timeline.after_hole_us(4_000_000), None);
    }

    #[test]
    fn what_is_missing_in_a_transport_stream_is_filled_where_a_player_can() {
        // Sound from 0 to 2 s, and from 4 s on, of which the first second is missing.
        let holes = |codec, filled, missing_ms: i64| {
            let mut timeline = Timeline::default();
            let at = timeline.add(MediaKind::Audio, codec);
            let track = timeline.track_mut(at).unwrap();
            (0..50).for_each(|number| track.receive(frame(number * 40, true)));
            track.append_pending(Filled::Throughout);
            track.receive(frame(2_000 + missing_ms, true));
            track.receive(frame(4_000 + 2 * missing_ms, true));
            track.append_pending(filled);
            track.holes.len()
        };
        for (codec, filled, missing_ms, expect) in [
            (Codec::Aac, Filled::Nothing, 1_000, 2),
            (Codec::Aac, Filled::Within, 1_000, 1),
            (Codec::Aac, Filled::Throughout, 1_000, 0),
            (Codec::MpegAudio, Filled::Throughout, 1_000, 2),
            (Codec::Aac, Filled::Throughout, 11_000, 2),
        ] {
            let found = holes(codec, filled, missing_ms);
            assert_eq!(found, expect, "{codec:?} {filled:?} {missing_ms}");
        }
    }

    #[test]
    fn uneven_frames_are_counted_with_the_time_since_the_one_before() {
        let mut timeline = Timeline::default();
        let at = timeline.add(MediaKind::Video, Codec::Other);
        let slides = timeline.track_mut(at).unwrap();
        for starts_ms in [0, 2_000, 2_100, 9_000] {
            slides.push(BufferedFrame { duration_us: 0, ..frame(starts_ms, true) });
        }
        slides.take_played(1_000_000);
        assert_eq!(slides.take_played(2_000_000), PlayedFrames::default(), "none was due");
        let played = slides.take_played(3_000_000);
        assert_eq!((played.frames, played.last_us), (2, 2_100_000));
        let played = slides.take_played(9_500_000);
        assert_eq!((played.frames, played.last_us), (1, 6_900_000));
    }

    #[test]
    fn pictures_that_are_missing_are_due_where_the_one_before_is_shown_longer() {
        for (filled, missing_us) in
            [(Filled::Throughout, [0, 960_000, 1_000_000, 6_000_000]), (Filled::Nothing, [0; 4])]
        {
            let mut timeline = Timeline::default();
            let at = timeline.add(MediaKind::Video, Codec::Other);
            let video = timeline.track_mut(at).unwrap();
            // The reader of a transport stream takes the time to the next picture for a duration.
            (0..50).for_each(|number| video.receive(frame(number * 40, true)));
            video.receive(BufferedFrame { duration_us: 8_000_000, ..frame(2_000, true) });
            (0..50).for_each(|number| video.receive(frame(10_000 + number * 40, true)));
            video.append_pending(filled);
            let at_us = [2_000_001, 3_000_000, 4_000_000, 10_000_001];
            for (position_us, missing_us) in at_us.into_iter().zip(missing_us) {
                let played = video.take_played(position_us);
                assert!(played.missing_us.abs_diff(missing_us) < 50_000, "{filled:?} {played:?}");
            }
            let played = video.take_played(11_000_001);
            assert_eq!((played.frames, played.missing_us), (25, 0), "{filled:?}");
            assert!(video.source_fps().unwrap() > 10.0 || filled == Filled::Nothing);
        }
    }

    #[test]
    fn pictures_that_come_seldom_are_not_missing() {
        let mut timeline = Timeline::default();
        let at = timeline.add(MediaKind::Video, Codec::Other);
        let slides = timeline.track_mut(at).unwrap();
        for starts_ms in [0, 2_000, 4_000, 4_100, 6_000, 12_000] {
            slides.receive(BufferedFrame { duration_us: 0, ..frame(starts_ms, true) });
            slides.append_pending(Filled::Throughout);
        }
        let played = slides.take_played(13_000_000);
        assert_eq!((played.frames, played.missing_us), (6, 0));
        // Moving pictures, and slides from then on.
        let mut timeline = Timeline::default();
        let at = timeline.add(MediaKind::Video, Codec::Other);
        let slides = timeline.track_mut(at).unwrap();
        for starts_ms in (0..50).map(|i| 40 * i).chain((1..8).map(|i| 2_000 + 5_000 * i)) {
            slides.receive(BufferedFrame { duration_us: 0, ..frame(starts_ms, true) });
            slides.append_pending(Filled::Throughout);
        }
        let played = slides.take_played(40_000_000);
        assert_eq!((played.frames, played.missing_us), (57, 0));
    }

    #[test]
    fn frames_before_the_first_key_frame_are_not_shown() {
        let mut timeline = filled(10..50, 0..50);
        assert_eq!(timeline.track_mut(0).unwrap().take_played(9_000_000).frames, 25);
        timeline.clear(0, 2_080_000);
        assert_eq!(timeline.playable_us(0, |_| false), None);
        let video = timeline.track_mut(0).unwrap();
        assert!(!video.push(frame(2_000, false)));
        assert!(video.push(frame(2_040, true)) && video.push(frame(2_080, false)));
        assert_eq!(
            video.take_played(9_000_000).frames,
            1,
            "those before the position are decoded only"
        );
    }
}
