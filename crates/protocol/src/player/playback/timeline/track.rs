//! One track: frames are received, wait for their presentation, and are counted when it has come.

use throng_observation::{Codec, MediaKind};

use super::{BufferedFrame, BufferedTrack, Filled, HOLE_US, PlayedFrames, RATE_FRAMES};

/// Frames of one track that may wait for their presentation; a stream with more is played without
/// the rest.
const FRAMES_MAX: usize = 500_000;
/// A longer time without sound is not filled with silence (hls.js `MAX_SILENT_FRAME_DURATION`).
const SILENCE_US_MAX: i64 = 10_000_000;
/// In a transport stream, which does not say how long a picture lasts, a longer time between two of
/// them is that of pictures that are missing: so many mean durations, and so long. Who shares a
/// screen that does not change sends a picture a second.
const MISSING_FRAMES: f64 = 10.0;
const MISSING_US: f64 = 1_500_000.0;

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
    pub(super) fn hole_after(&self, position_us: i64) -> Option<(i64, i64)> {
        self.holes.iter().copied().find(|(_, ends_us)| *ends_us > position_us)
    }

    /// How much is missing between these positions.
    pub(super) fn holes_us(&self, from_us: i64, to_us: i64) -> i64 {
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
    pub(super) fn play_to(&mut self, position_us: i64) {
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
