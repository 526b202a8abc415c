//! Relative delay: the transit time of media above its smallest one. Needs only the local clock.
//!
//! `d_i = (R_i − R_0) − (S_i − S_0) / f` (arrival R, timestamp S, clock f) grows with every queue
//! on the path, and with the skew between the source's clock and the local one. The reported delay
//! is `d_i − floor(t)`, never below zero.
//!
//! `floor(t) = b + s·t` is a lower bound of all values since the beginning: `s` is the skew, which
//! [`super::skew`] distinguishes from a queue by the minima of windows, `b` the lowest `d − s·t` so
//! far. So **a queue that builds up and stays remains visible for the whole life of the track**;
//! the floor does not rise to it. Only skew may raise the floor.
//!
//! A constant delay is invisible here by construction (see [`super::CaptureMeter`] for the absolute
//! one). Frames sent in decoding order (B-frames) are first paired with their turns by
//! `DecodeOrder`.

use super::skew::{Low, Lows};
use super::timestamp::TimestampUnwrap;

/// A timestamp that goes back by more than this begins another timeline: reordering never goes back
/// as far.
const MAX_STEP_BACK_NS: i64 = 1_000_000_000;

/// Media that arrives this much earlier than the timeline allows begins another one: no queue is
/// that long.
const MAX_STEP_AHEAD_NS: i64 = 10_000_000_000;

/// Relative delay of one track.
#[derive(Clone, Debug)]
pub struct DelayMeter {
    clock_hz: i64,
    unwrap: TimestampUnwrap,
    first_arrival_ns: Option<i64>,
    /// Arrival and media time of the previous frame, since the first, ns.
    previous: (i64, i64),
    /// Added to `d` so that a new timeline continues the delay of the one before.
    offset_ns: i64,
    lows: Lows,
    window_end_ns: i64,
    low: Option<(i64, i64)>,
    skew: f64,
    base_ns: f64,
    restarted: bool,
    last_ns: i64,
    /// The delay with which the next frame begins a new floor.
    carried_ns: Option<i64>,
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
            lows: Lows::default(),
            window_end_ns: Lows::WINDOW_NS,
            low: None,
            skew: 0.0,
            base_ns: f64::INFINITY,
            restarted: false,
            last_ns: 0,
            carried_ns: None,
        }
    }

    /// The frames so far were paired with wrong timestamps (B-frames that were not known yet): they
    /// must not lower the floor. The last delay continues.
    pub(super) fn forget_floor(&mut self) {
        (self.lows, self.low, self.skew, self.base_ns) =
            (Lows::default(), None, 0.0, f64::INFINITY);
        self.carried_ns = self.carried_ns.or(Some(self.last_ns));
    }

    /// The next frame belongs to another timeline.
    pub fn restart(&mut self) {
        self.restarted = true;
    }

    /// The sender's RTCP report: at `ntp_unix_ns` of its own clock the media's clock was
    /// `rtp_timestamp`.
    pub fn sender_report(&mut self, ntp_unix_ns: u64, rtp_timestamp: u32) {
        self.lows.sender_report(ntp_unix_ns, rtp_timestamp, self.clock_hz);
    }

    /// Takes a frame whose last packet arrived at `arrived_ns`; returns its delay above the floor,
    /// microseconds.
    pub fn frame(&mut self, arrived_ns: i64, timestamp: u32) -> u32 {
        let first = *self.first_arrival_ns.get_or_insert(arrived_ns);
        let at = arrived_ns - first;
        let media = nanoseconds(self.unwrap.ticks(timestamp), self.clock_hz);
        let (step, media_step) = (at - self.previous.0, media.saturating_sub(self.previous.1));
        if std::mem::take(&mut self.restarted)
            || media_step < -MAX_STEP_BACK_NS
            || media_step.saturating_sub(step) > MAX_STEP_AHEAD_NS
        {
            // No better estimate is known: the new timeline begins with the last delay of the old
            // one.
            self.offset_ns = self.offset_ns.saturating_add(media_step.saturating_sub(step));
            self.lows.forget_reports();
        }
        self.previous = (at, media);
        let delay = at.saturating_sub(media).saturating_add(self.offset_ns);
        if let Some(carried_ns) = self.carried_ns.take() {
            self.lower_floor(at, delay.saturating_sub(carried_ns));
        }
        self.lower_floor(at, delay);
        let above_ns = delay as f64 - (self.base_ns + self.skew * at as f64);
        self.last_ns = above_ns.max(0.0) as i64;
        (above_ns.max(0.0) / 1e3) as u32
    }

    /// Estimated skew of the source's clock against the local one, parts per million; positive when
    /// the source is slow.
    #[must_use]
    pub fn skew_ppm(&self) -> f64 {
        self.skew * 1e6
    }

    fn lower_floor(&mut self, at: i64, delay: i64) {
        if at >= self.window_end_ns {
            self.close_window(at);
        }
        let above_ns = |at: i64, delay: i64| delay as f64 - self.skew * at as f64;
        let above_origin_ns = above_ns(at, delay);
        if self.low.is_none_or(|(low_at, low)| above_origin_ns < above_ns(low_at, low)) {
            self.low = Some((at, delay));
        }
        self.base_ns = self.base_ns.min(above_origin_ns);
    }

    fn close_window(&mut self, at: i64) {
        if let Some((low_at, low)) = self.low.take() {
            self.lows.add(Low::of(low_at, low));
            self.skew = self.lows.skew();
            self.base_ns = self.lows.beneath();
        }
        let window_ns = self.lows.window_ns();
        self.window_end_ns = at - at.rem_euclid(window_ns) + window_ns;
    }
}

fn nanoseconds(ticks: i64, clock_hz: i64) -> i64 {
    let ns = i128::from(ticks) * 1_000_000_000 / i128::from(clock_hz);
    ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
