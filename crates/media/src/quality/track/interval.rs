//! The figures of an interval, and where intervals begin and end.

use super::{FramesDue, TrackMeter};
use std::time::{Duration, Instant};
use throng_observation::TrackInterval;

/// Shorter silences do not count: audio in DTX has 400 ms between packets.
const QUIET: Duration = Duration::from_millis(500);

impl TrackMeter {
    /// The figures since the previous interval (or since the track was announced), which ended no
    /// later.
    pub fn take_interval(&mut self, now: Instant) -> TrackInterval {
        let now = now.max(self.interval_began);
        self.timeout(now);
        self.count_losses();
        let began = std::mem::replace(&mut self.interval_began, now);
        let active = now.saturating_duration_since(began);
        let (frames_due, first_frame_awaited_since) = match self.frames_due {
            _ if self.pictures.is_none() => (active, None),
            FramesDue::Awaited(since) => (Duration::ZERO, Some(since)),
            FramesDue::Since(at) => (now.saturating_duration_since(at.max(began)), None),
        };
        let mut counters = std::mem::take(&mut self.counters);
        counters.active_us = micros(active);
        if let Some(pictures) = &mut self.pictures {
            let frozen = pictures.freeze.take(now);
            counters.freeze_count = frozen.count;
            counters.freeze_us = micros(frozen.time);
        }
        TrackInterval {
            track: self.config.track,
            kind: self.config.kind,
            ended_at: now,
            counters,
            jitter_us: self.jitter.micros(),
            relative_delay_us: self.playout.relative_us.take(),
            capture_basis: self.capture_basis().filter(|_| !self.playout.absolute_us.is_empty()),
            absolute_delay_us: self.playout.absolute_us.take(),
            oven_rtc_tester_delay_us: self.oven.delay_us(),
            source_fps: self
                .pictures
                .as_ref()
                .and_then(|pictures| pictures.source_rate.frames_per_second()),
            picture_lines: None,
            frames_due_us: micros(frames_due),
            first_frame_awaited_since,
            missing: None,
        }
    }

    /// Whether it began since it was announced or resumed: a packet came that is not perhaps of the
    /// position before, of video enough frames to tell how often the source has one.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        let knows_pace = self.pictures.as_ref().is_none_or(|it| it.freeze.knows_pace());
        let is_sure = self.may_break_until_ms.is_none();
        matches!(self.frames_due, FramesDue::Since(_)) && knows_pace && is_sure
    }

    /// Whether nothing arrived since the previous interval although a source of its pace would have
    /// sent something: for video by its usual interval between frames, for audio because even
    /// silence has a packet in 400 ms (RFC 7587 3.1.3).
    #[must_use]
    pub fn is_quiet(&self, now: Instant) -> bool {
        let came = self.counters.packets_original + self.counters.packets_recovered;
        let overdue_at = self.pictures.as_ref().and_then(|pictures| pictures.freeze.overdue_at());
        came == 0
            && now.saturating_duration_since(self.interval_began) >= QUIET
            && overdue_at.is_none_or(|at| at <= now)
    }

    /// Media is expected again from `now` on; the time since the previous interval does not count
    /// as active, and video waits for a decodable frame again.
    pub fn resume(&mut self, now: Instant) {
        self.interval_began = now;
        self.frames_due = FramesDue::Awaited(now);
    }

    /// The last interval: missing packets count as lost, so that the intervals of a life add up to
    /// expected = received + recovered + lost.
    pub fn finish(&mut self, now: Instant) -> TrackInterval {
        self.sequence.give_up_all();
        self.judge_frames(now);
        if let Some(pictures) = &mut self.pictures {
            pictures.finish();
        }
        self.judge_frames(now);
        self.take_interval(now)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
