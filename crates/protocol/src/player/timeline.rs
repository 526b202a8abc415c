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
/// Frames whose mean duration is the frame rate of the source.
const RATE_FRAMES: u32 = 60;

/// A frame on the time axis of the presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferedFrame {
    /// When it is decoded, microseconds from the beginning of the presentation. Frames are counted
    /// and played by the order of decoding, in which they come: presented they are a few frames
    /// later, and in another order.
    pub(super) starts_us: i64,
    /// How long it lasts.
    pub(super) duration_us: u32,
    /// Its coded size.
    pub(super) bytes: u32,
    /// Whether decoding can begin with it.
    pub(super) is_key: bool,
}

impl BufferedFrame {
    fn ends_us(&self) -> i64 {
        self.starts_us.saturating_add(i64::from(self.duration_us))
    }
}

/// Frames that began within a stretch of playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlayedFrames {
    pub(super) frames: u64,
    pub(super) key_frames: u64,
}

/// One track of the presentation.
#[derive(Debug)]
pub(super) struct BufferedTrack {
    pub(super) id: TrackId,
    pub(super) kind: MediaKind,
    pub(super) codec: Codec,
    /// Start times of the frames that are not yet played, microseconds, with the key frame in the
    /// lowest bit: a viewer holds thousands of them.
    waiting: VecDeque<i64>,
    /// Frames that were received and cannot be played yet: their segment is not complete.
    pending: Vec<BufferedFrame>,
    /// End of the last frame that can be played, from which on media is missing; `None` before the
    /// first.
    end_us: Option<i64>,
    /// End of the last frame received, pending or not.
    received_us: Option<i64>,
    /// Where media is missing between frames: begin and end, in order.
    holes: VecDeque<(i64, i64)>,
    /// Start of the last frame received.
    last_us: Option<i64>,
    /// Mean duration of frames, microseconds.
    frame_us: f64,
    /// Frames that were played and not yet taken.
    played: PlayedFrames,
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
pub(super) struct Timeline {
    tracks: Vec<BufferedTrack>,
    /// From when on which capture times are valid: a position, and how long after 1970 its
    /// beginning was captured, microseconds.
    captures: VecDeque<(i64, i64)>,
}

/// Most of them: one for each segment that is buffered.
const CAPTURES_MAX: usize = 64;

/// Capture times jitter by less.
const CAPTURE_STEP_US: u64 = 2_000;

impl BufferedTrack {
    /// Adds a frame behind those that came before. False if decoding cannot begin with it.
    pub(super) fn push(&mut self, frame: BufferedFrame) -> bool {
        self.received(&frame);
        self.append(frame, false)
    }

    /// Receives a frame of a segment, which can be played when its segment is complete
    /// ([`Self::append_pending`]).
    pub(super) fn receive(&mut self, frame: BufferedFrame) {
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
    pub(super) fn append_pending(&mut self) -> bool {
        let mut is_decodable = false;
        for frame in std::mem::take(&mut self.pending) {
            // What was appended before is not replaced: renditions overlap where their segments are
            // not aligned.
            let is_known = self.end_us.is_some_and(|end_us| {
                frame.starts_us.saturating_add(i64::from(frame.duration_us) / 2) < end_us
            });
            is_decodable |= !is_known && self.append(frame, true);
        }
        is_decodable
    }

    /// The segment of the pending frames will not be complete.
    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
        self.received_us = self.end_us;
    }

    fn append(&mut self, frame: BufferedFrame, has_holes: bool) -> bool {
        self.is_decodable |= frame.is_key || self.kind == MediaKind::Audio;
        let ends_us = frame.ends_us();
        if let Some(end_us) = self
            .end_us
            .filter(|end_us| has_holes && frame.starts_us.saturating_sub(*end_us) > HOLE_US)
        {
            self.holes.push_back((end_us, frame.starts_us));
        }
        self.end_us = Some(self.end_us.map_or(ends_us, |end_us| end_us.max(ends_us)));
        // A file that does not say how long its frames last says when the next one begins.
        let since_last_us =
            self.last_us.map_or(0, |last_us| frame.starts_us.saturating_sub(last_us));
        self.last_us = Some(frame.starts_us);
        let duration_us =
            if frame.duration_us > 0 { i64::from(frame.duration_us) } else { since_last_us };
        if duration_us > 0 {
            let duration_us = duration_us as f64;
            let weight = if self.frame_us == 0.0 { 1.0 } else { 1.0 / f64::from(RATE_FRAMES) };
            self.frame_us += (duration_us - self.frame_us) * weight;
        }
        self.has_begun |= self.is_decodable;
        let is_shown = self.is_decodable && frame.starts_us >= self.shows_from_us;
        if is_shown && self.waiting.len() < FRAMES_MAX {
            self.waiting.push_back((frame.starts_us << 1) | i64::from(frame.is_key));
        }
        self.is_decodable
    }

    /// The hole at `position_us`, or the first one behind it.
    fn hole_after(&self, position_us: i64) -> Option<(i64, i64)> {
        self.holes.iter().copied().find(|(_, ends_us)| *ends_us > position_us)
    }

    /// Whether a frame that can be decoded ever came.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Counts the frames whose time has come at `position_us`.
    fn play_to(&mut self, position_us: i64) {
        while self.holes.front().is_some_and(|(_, ends_us)| *ends_us <= position_us) {
            self.holes.pop_front();
        }
        while let Some(frame) = self.waiting.front().filter(|frame| **frame >> 1 < position_us) {
            self.played.frames += 1;
            self.played.key_frames += u64::from(*frame & 1 == 1);
            self.waiting.pop_front();
        }
    }

    /// Takes the frames that were played since the last call, up to `position_us`.
    pub(super) fn take_played(&mut self, position_us: i64) -> PlayedFrames {
        self.play_to(position_us);
        std::mem::take(&mut self.played)
    }

    /// Takes the number of bytes received since the last call.
    pub(super) fn take_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }

    /// Frames per second by the frames' durations; `None` before the first.
    pub(super) fn source_fps(&self) -> Option<f32> {
        (self.frame_us > 0.0).then(|| (1e6 / self.frame_us) as f32)
    }
}

impl Timeline {
    /// The frame at `position_us` was captured at this time.
    pub(super) fn captured(&mut self, position_us: i64, unix_us: i64) {
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
    pub(super) fn captured_unix_us(&self, position_us: i64) -> Option<i64> {
        let (_, origin_us) =
            self.captures.iter().rev().find(|(from_us, _)| *from_us <= position_us)?;
        Some(position_us.saturating_add(*origin_us))
    }

    /// Adds a track; its index.
    pub(super) fn add(&mut self, kind: MediaKind, codec: Codec) -> usize {
        let at = self.tracks.len();
        self.tracks.push(BufferedTrack {
            id: TrackId(u16::try_from(at).unwrap_or(u16::MAX)),
            kind,
            codec,
            waiting: VecDeque::new(),
            pending: Vec::new(),
            end_us: None,
            received_us: None,
            holes: VecDeque::new(),
            last_us: None,
            frame_us: 0.0,
            played: PlayedFrames::default(),
            bytes: 0,
            is_decodable: false,
            has_begun: false,
            shows_from_us: i64::MIN,
        });
        at
    }

    pub(super) fn tracks(&self) -> &[BufferedTrack] {
        &self.tracks
    }

    pub(super) fn tracks_mut(&mut self) -> &mut [BufferedTrack] {
        &mut self.tracks
    }

    pub(super) fn track_mut(&mut self, at: usize) -> Option<&mut BufferedTrack> {
        self.tracks.get_mut(at)
    }

    /// How far playback can go from `position_us`: to the first hole, or the end, of the track
    /// where that comes first; `None` while a track has no frame. `has_ended` tells of a track
    /// whether all of it was received: then it holds nobody back.
    pub(super) fn playable_us(
        &self,
        position_us: i64,
        has_ended: impl Fn(usize) -> bool,
    ) -> Option<i64> {
        let hole = self.tracks.iter().filter_map(|track| track.hole_after(position_us)).min();
        let end_us = self.common_end_us(|track| track.end_us, has_ended)?;
        Some(hole.map_or(end_us, |(begins_us, _)| begins_us.min(end_us)))
    }

    /// The same for what was received, played or not: what counts as delivered.
    pub(super) fn received_us(&self, has_ended: impl Fn(usize) -> bool) -> Option<i64> {
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

    /// Where media goes on after the hole at `position_us`, if there is one.
    pub(super) fn after_hole_us(&self, position_us: i64) -> Option<i64> {
        let holes = self.tracks.iter().filter_map(|track| track.hole_after(position_us));
        holes.filter(|(begins_us, _)| *begins_us <= position_us).map(|(_, ends_us)| ends_us).max()
    }

    /// Forgets all that is buffered: playback moves from one position to another, from which on
    /// frames are shown.
    pub(super) fn clear(&mut self, from_us: i64, to_us: i64) {
        for track in &mut self.tracks {
            track.play_to(from_us);
            track.waiting.clear();
            track.pending.clear();
            track.holes.clear();
            track.shows_from_us = to_us;
            (track.end_us, track.received_us) = (None, None);
            (track.last_us, track.is_decodable) = (None, false);
        }
    }
}

/// A duration on the time axis of the presentation.
pub(super) fn as_us(duration: Duration) -> i64 {
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
    fn each_frame_is_played_once_when_its_time_has_come() {
        let mut timeline = filled(0..50, 0..50);
        let video = timeline.track_mut(0).unwrap();
        assert_eq!(video.take_played(0), PlayedFrames::default());
        assert_eq!(video.take_played(1_000_000), PlayedFrames { frames: 25, key_frames: 1 });
        assert_eq!(video.take_played(1_000_001), PlayedFrames { frames: 1, key_frames: 1 });
        assert_eq!(video.take_played(9_000_000), PlayedFrames { frames: 24, key_frames: 0 });
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
        assert!(timeline.track_mut(0).unwrap().append_pending());
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
            track.append_pending();
        }
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
