//! Relative delay: how much later than at its best the media arrives. Needs no clock but ours.
//!
//! `d_i = (R_i − R_0) − (S_i − S_0) / f` (arrival R, timestamp S, clock f) grows with every queue on the way, and with the
//! skew between the source's clock and ours. The delay told is `d_i − floor(t)`, never below zero.
//!
//! `floor(t) = b + s·t` lies beneath everything seen since the beginning: `s` is the skew, `b` the lowest
//! `d − s·t` so far. So **a queue that builds up and stays remains visible for as long as the track lives**; the floor
//! does not climb to it. Only skew may lift the floor: `s` is the median slope between window minima a quarter of the
//! run apart (32 windows, of 5 s at first, twice as long whenever they are full). A median of those is blind to one step
//! of any height, as at most a third of the pairs span it. Clocks differ by less than ±200 ppm; a slope beyond that is
//! a queue, and no skew is assumed at all. The price: a queue that grows steadily over the whole run by less than 12 ms
//! a minute reads as skew. Until the track is 40 s old skew is taken as none (100 ppm make 4 ms in that time).
//!
//! A constant delay is invisible here by construction (see [`super::CaptureMeter`] for the absolute one). Frames sent in
//! decoding order (B-frames) show their reordering as delay.

use super::timestamp::TimestampUnwrap;

/// Windows kept.
const WINDOWS: usize = 32;

/// Length of a window at first, ns.
const WINDOW_NS: i64 = 5_000_000_000;

/// Windows needed before skew is estimated.
const MIN_WINDOWS: usize = 8;

/// Clocks of computers and cameras differ by less than this.
const MAX_SKEW: f64 = 200e-6;

/// A timestamp that goes back further than this begins another timeline: no reordering does that.
const MAX_STEP_BACK_NS: i64 = 1_000_000_000;

/// Media that comes this much earlier than the timeline allows begins another one: no queue was ever that long.
const MAX_STEP_AHEAD_NS: i64 = 10_000_000_000;

/// The lowest delay of a stretch of time, and when it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Low {
    at_ms: u32,
    delay_us: i32,
}

/// Relative delay of one track.
#[derive(Clone, Debug)]
pub struct DelayMeter {
    clock_hz: i64,
    unwrap: TimestampUnwrap,
    first_arrival_ns: Option<i64>,
    /// Of the previous frame: arrival and media time since the first, ns.
    previous: (i64, i64),
    /// Added to `d` so that a new timeline continues the delay of the one before.
    offset_ns: i64,
    lows: [Low; WINDOWS],
    lows_known: usize,
    window_ns: i64,
    window_end_ns: i64,
    low: Option<(i64, i64)>,
    skew: f64,
    base_ns: f64,
    restarted: bool,
}

impl DelayMeter {
    /// A meter for an RTP clock of `clock_rate_hz`.
    #[must_use]
    pub fn new(clock_rate_hz: u32) -> Self {
        Self {
            clock_hz: i64::from(clock_rate_hz.max(1)),
            unwrap: TimestampUnwrap::default(),
            first_arrival_ns: None,
            previous: (0, 0),
            offset_ns: 0,
            lows: [Low::default(); WINDOWS],
            lows_known: 0,
            window_ns: WINDOW_NS,
            window_end_ns: WINDOW_NS,
            low: None,
            skew: 0.0,
            base_ns: f64::INFINITY,
            restarted: false,
        }
    }

    /// The next frame belongs to another timeline.
    pub fn restart(&mut self) {
        self.restarted = true;
    }

    /// A frame whose last packet arrived at `arrived_ns`: its delay above the floor, microseconds.
    pub fn frame(&mut self, arrived_ns: i64, timestamp: u32) -> u32 {
        let first = *self.first_arrival_ns.get_or_insert(arrived_ns);
        let at = arrived_ns - first;
        let media = nanoseconds(self.unwrap.ticks(timestamp), self.clock_hz);
        let (step, media_step) = (at - self.previous.0, media.saturating_sub(self.previous.1));
        if std::mem::take(&mut self.restarted)
            || media_step < -MAX_STEP_BACK_NS
            || media_step.saturating_sub(step) > MAX_STEP_AHEAD_NS
        {
            // The new timeline begins with the delay that the old one ended with: nothing better is known.
            self.offset_ns = self.offset_ns.saturating_add(media_step.saturating_sub(step));
        }
        self.previous = (at, media);
        let delay = at.saturating_sub(media).saturating_add(self.offset_ns);
        self.lower_floor(at, delay);
        let above_ns = delay as f64 - (self.base_ns + self.skew * at as f64);
        (above_ns.max(0.0) / 1e3) as u32
    }

    /// Reads a little of both ends.
    pub(super) fn warm(&self) -> u64 {
        self.clock_hz as u64 ^ self.base_ns.to_bits()
    }

    /// Estimated skew of the source's clock against ours, parts per million; positive when the source is slow.
    #[must_use]
    pub fn skew_ppm(&self) -> f64 {
        self.skew * 1e6
    }

    fn lower_floor(&mut self, at: i64, delay: i64) {
        if at >= self.window_end_ns {
            self.close_window(at);
        }
        if self.low.is_none_or(|(_, low)| delay < low) {
            self.low = Some((at, delay));
        }
        self.base_ns = self.base_ns.min(delay as f64 - self.skew * at as f64);
    }

    fn close_window(&mut self, at: i64) {
        if let Some((low_at, low)) = self.low.take() {
            if self.lows_known == WINDOWS {
                self.halve();
            }
            if let Some(slot) = self.lows.get_mut(self.lows_known) {
                let at_ms = u32::try_from(low_at / 1_000_000).unwrap_or(u32::MAX);
                let delay_us = (low / 1000).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                *slot = Low { at_ms, delay_us };
                self.lows_known += 1;
            }
            self.fit();
        }
        self.window_end_ns = at - at.rem_euclid(self.window_ns) + self.window_ns;
    }

    /// Joins windows two by two.
    fn halve(&mut self) {
        for i in 0..WINDOWS / 2 {
            if let Some(&[a, b]) = self.lows.get(2 * i..2 * i + 2)
                && let Some(slot) = self.lows.get_mut(i)
            {
                *slot = if b.delay_us < a.delay_us { b } else { a };
            }
        }
        self.lows_known = WINDOWS / 2;
        self.window_ns = self.window_ns.saturating_mul(2);
    }

    /// Skew from the window minima, then the base that puts the floor beneath all of them.
    fn fit(&mut self) {
        let lows = self.lows.get(..self.lows_known).unwrap_or_default();
        if lows.len() < MIN_WINDOWS {
            return;
        }
        let apart = lows.len() / 4;
        let mut slopes = [0.0_f64; WINDOWS];
        let mut count = 0;
        for ((slot, a), b) in slopes.iter_mut().zip(lows).zip(lows.iter().skip(apart)) {
            let run_ms = f64::from(b.at_ms.saturating_sub(a.at_ms).max(1));
            *slot = (f64::from(b.delay_us) - f64::from(a.delay_us)) / 1e3 / run_ms;
            count += 1;
        }
        let Some(slopes) = slopes.get_mut(..count) else { return };
        let (_, median, _) = slopes.select_nth_unstable_by(count / 2, f64::total_cmp);
        self.skew = if median.abs() <= MAX_SKEW { *median } else { 0.0 };
        let beneath = |low: &Low| f64::from(low.delay_us) * 1e3 - self.skew * f64::from(low.at_ms) * 1e6;
        self.base_ns = lows.iter().map(beneath).fold(f64::INFINITY, f64::min);
    }
}

fn nanoseconds(ticks: i64, clock_hz: i64) -> i64 {
    let ns = i128::from(ticks) * 1_000_000_000 / i128::from(clock_hz);
    ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
