//! Freezes, W3C webrtc-stats `freezeCount` and `totalFreezesDuration`.
//!
//! An interval between two frames is a freeze when it is at least `max(3 δ, δ + 150 ms)`, δ being
//! the mean of the last 30 intervals, and at least 5 are known (the constants of libwebrtc's
//! `video_quality_observer2.cc`; Chrome includes the judged interval in its mean, which raises the
//! bound by some 5 ms at 25 fps and is impossible for a freeze in progress). There is no renderer:
//! a frame counts as shown when it and all before it are complete.
//!
//! A freeze is counted when the bound is passed, not when a frame ends it, and its time counts in
//! the interval in which it passed, so that a picture that never returns is frozen in every second.
//! The time before the bound was reached counts in the interval of that moment, which can thus have
//! a little more frozen time than its length.

use std::time::{Duration, Instant};

/// Intervals averaged.
const WINDOW: usize = 30;

/// Intervals needed before a freeze can be detected.
const MIN_INTERVALS: usize = 5;

/// Least difference between an interval and the mean.
const MIN_INCREASE_US: u64 = 150_000;

/// Freezes of one video track.
#[derive(Clone, Debug, Default)]
pub struct FreezeMeter {
    intervals_us: [u32; WINDOW],
    intervals: usize,
    sum_us: u64,
    shown_at: Option<Instant>,
    /// When a freeze begins unless a frame is shown before. Asked for with each packet, so it is
    /// computed with each frame.
    begins_at: Option<Instant>,
    /// The part of the current freeze that was already reported; `None` without one.
    reported: Option<Duration>,
    frozen: FreezeTotals,
}

/// Freezes since the previous call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreezeTotals {
    /// Freezes begun.
    pub count: u64,
    /// Time spent frozen.
    pub time: Duration,
}

impl FreezeMeter {
    /// A frame is shown.
    pub fn frame(&mut self, now: Instant) {
        self.timeout(now);
        if let Some(shown_at) = self.shown_at {
            self.account(now);
            let interval_us = now.saturating_duration_since(shown_at).as_micros();
            self.push(u32::try_from(interval_us).unwrap_or(u32::MAX));
        }
        self.reported = None;
        self.shown_at = Some(now);
        self.begins_at = self.overdue_at().filter(|_| self.knows_pace());
    }

    /// From when on the next frame is overdue by the intervals that are known, be they too few for
    /// a freeze; `None` before the second frame.
    #[must_use]
    pub fn overdue_at(&self) -> Option<Instant> {
        let mean_us = self.sum_us.checked_div(self.intervals.min(WINDOW) as u64)?;
        let bound_us = (3 * mean_us).max(mean_us + MIN_INCREASE_US);
        Some(self.shown_at? + Duration::from_micros(bound_us))
    }

    /// Checks whether a freeze has begun.
    pub fn timeout(&mut self, now: Instant) {
        if self.begins_at.take_if(|at| now >= *at).is_some() {
            self.frozen.count += 1;
            self.reported = Some(Duration::ZERO);
        }
    }

    /// When a freeze begins unless a frame arrives before.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.begins_at
    }

    /// Whether enough frames came to tell how often the source has one.
    #[must_use]
    pub fn knows_pace(&self) -> bool {
        self.intervals >= MIN_INTERVALS
    }

    /// Freezes since the previous call.
    pub fn take(&mut self, now: Instant) -> FreezeTotals {
        self.timeout(now);
        self.account(now);
        std::mem::take(&mut self.frozen)
    }

    /// Adds the part of the current freeze that is not reported yet.
    fn account(&mut self, now: Instant) {
        if let (Some(reported), Some(shown_at)) = (&mut self.reported, self.shown_at) {
            let lasted = now.saturating_duration_since(shown_at);
            self.frozen.time += lasted.saturating_sub(*reported);
            *reported = lasted.max(*reported);
        }
    }

    fn push(&mut self, interval_us: u32) {
        if let Some(slot) = self.intervals_us.get_mut(self.intervals % WINDOW) {
            self.sum_us = self.sum_us - u64::from(*slot) + u64::from(interval_us);
            *slot = interval_us;
        }
        self.intervals += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Frames at these times (ms); what is frozen until `until`.
    fn frozen(frames_ms: impl IntoIterator<Item = u64>, until_ms: u64) -> (u64, u64) {
        let start = Instant::now();
        let mut meter = FreezeMeter::default();
        frames_ms.into_iter().for_each(|at| meter.frame(start + ms(at)));
        let frozen = meter.take(start + ms(until_ms));
        (frozen.count, frozen.time.as_millis() as u64)
    }

    /// `count` frames `step_ms` apart from 0, then one `gap_ms` after the last.
    fn steady(count: u64, step_ms: u64, gap_ms: u64) -> (u64, u64) {
        let last = (count - 1) * step_ms;
        frozen((0..count).map(|i| i * step_ms).chain([last + gap_ms]), last + gap_ms)
    }

    #[test]
    fn the_bound_is_exact() {
        for (what, count, step, gap, expect) in [
            ("25 fps: 40 + 150 = 190", 50, 40, 189, (0, 0)),
            ("25 fps: 40 + 150 = 190", 50, 40, 190, (1, 190)),
            ("10 fps: 3 × 100 = 300", 50, 100, 299, (0, 0)),
            ("10 fps: 3 × 100 = 300", 50, 100, 300, (1, 300)),
            ("5 intervals are enough", 6, 40, 190, (1, 190)),
            ("4 are not", 5, 40, 5000, (0, 0)),
        ] {
            assert_eq!(steady(count, step, gap), expect, "{what}, gap {gap}");
        }
    }

    #[test]
    fn a_frame_is_overdue_by_as_few_intervals_as_are_known() {
        let start = Instant::now();
        let mut meter = FreezeMeter::default();
        let mut overdue_ms = |at: u64| {
            meter.frame(start + ms(at));
            meter.overdue_at().map(|at| (at - start).as_millis())
        };
        assert_eq!(overdue_ms(0), None);
        assert_eq!(overdue_ms(2_000), Some(8_000), "three times the interval");
        assert_eq!(overdue_ms(2_040), Some(2_040 + 3 * 1_020));
        assert_eq!(meter.next_timeout(), None, "a freeze needs five");
    }

    #[test]
    fn only_the_last_thirty_intervals_make_the_mean() {
        // 10 fps, then 30 intervals of 40 ms: the bound is 190 ms, not 300.
        let frames =
            (0..20).map(|i| i * 100).chain((1..=30).map(|i| 1900 + i * 40)).chain([3100 + 190]);
        assert_eq!(frozen(frames, 3290), (1, 190));
    }

    #[test]
    fn a_picture_that_never_comes_back_is_frozen_in_every_second() {
        let start = Instant::now();
        let mut meter = FreezeMeter::default();
        (0..=20).for_each(|i| meter.frame(start + ms(i * 40))); // the last at 800 ms, the bound at 990 ms
        assert_eq!(meter.next_timeout(), Some(start + ms(990)));
        let mut seconds = (1..=4).map(|s| meter.take(start + ms(s * 1000)));
        assert_eq!(seconds.next(), Some(FreezeTotals { count: 1, time: ms(200) }));
        assert!(seconds.all(|second| second == FreezeTotals { count: 0, time: ms(1000) }));
        meter.frame(start + ms(4500));
        meter.frame(start + ms(4540));
        assert_eq!(
            meter.take(start + ms(5000)),
            FreezeTotals { count: 0, time: ms(500) },
            "begun seconds ago"
        );
    }

    #[test]
    fn a_freeze_that_begins_at_the_end_of_a_second_is_reported_in_the_next() {
        let start = Instant::now();
        let mut meter = FreezeMeter::default();
        (0..=22).for_each(|i| meter.frame(start + ms(i * 40))); // the last at 880 ms, the bound at 1070 ms
        assert_eq!(meter.take(start + ms(1000)), FreezeTotals::default());
        meter.frame(start + ms(1100));
        assert_eq!(meter.take(start + ms(1130)), FreezeTotals { count: 1, time: ms(220) });
    }
}
