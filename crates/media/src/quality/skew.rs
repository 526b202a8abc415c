//! Skew between a source's clock and the local one, distinguished from a queue by the minima of `d`
//! (see [`super::delay`]).
//!
//! The lowest `d` of each of up to 32 windows is kept (of 5 s at first, twice as long whenever they
//! are full). A queue lets some packets through undelayed again and again, so that the lows are on
//! a line whose slope is the skew; packets above the line waited in a queue. Two estimates, the
//! stronger evidence first:
//!
//! 1. **A steady slope** up to ±5,000 ppm, such as 29.97 frames a second with timestamps of 30
//!    (1,000 ppm). It needs a stretch of 60 s in which at least six lows, and at least half of
//!    them, are within 5 ms of a straight line, none of them and no later one is below it, and no
//!    other stretch of 60 s has the usual pace: skew, unlike a queue, exists from the beginning,
//!    never empties, and does not end. A queue grows as evenly only while the load exceeds the
//!    capacity by less than half a per cent, constant to a few hundredths of that, for a minute.
//!    The sender's RTCP reports (RTP against NTP time, RFC 3550 6.4.1), if any, have precedence: a
//!    media clock that is right by them is not skewed.
//! 2. **The usual pace**: clocks of computers and cameras differ by less than ±200 ppm. The skew is
//!    the median slope between lows a quarter of the run apart, after 40 s. That median is not
//!    affected by a single step of any height, as at most a third of the pairs span it.
//!
//! The cost: a queue that grows steadily over the whole run by less than 12 ms a minute counts as
//! skew, and so does one that grows evenly by up to 300 ms a minute from the first second, once it
//! has grown for a minute and until it stops. Before that, all growth is delay.

use super::timestamp::step;

/// Windows kept.
const WINDOWS: usize = 32;

/// Windows needed before the usual pace is estimated.
const USUAL_WINDOWS_MIN: usize = 8;

/// Clocks of computers and cameras differ by less than this.
const USUAL_SKEW_MAX: f64 = 200e-6;

/// No clock, and no wrong frame rate, differs by more than this; a queue can.
const STEADY_SKEW_MAX: f64 = 5_000e-6;

/// Least length of a steady slope, milliseconds: the time that a queue of 300 ms takes to fill at
/// [`STEADY_SKEW_MAX`].
const STEADY_MS: u32 = 60_000;

/// Least number of lows on a line: a varying queue has fewer.
const STEADY_LOWS_MIN: usize = 6;

/// Largest distance from the line, microseconds.
const STEADY_ERROR_US: f64 = 5_000.0;

/// Error of a sender's report, seconds: some servers use the last frame's time.
const REPORT_ERROR_S: f64 = 0.04;

/// The lowest delay of a stretch of time, and when it was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Low {
    at_ms: u32,
    delay_us: i32,
}

impl Low {
    /// The delay `delay_ns`, seen at `at_ns`.
    pub(super) fn of(at_ns: i64, delay_ns: i64) -> Self {
        let at_ms = u32::try_from(at_ns / 1_000_000).unwrap_or(u32::MAX);
        let delay_us = (delay_ns / 1_000).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        Self { at_ms, delay_us }
    }

    /// Its height above a line through the origin, microseconds.
    fn above(self, slope: f64) -> f64 {
        f64::from(self.delay_us) - slope * f64::from(self.at_ms) * 1e3
    }

    fn slope_to(self, other: Self) -> f64 {
        let run_ms = f64::from(other.at_ms.saturating_sub(self.at_ms).max(1));
        (f64::from(other.delay_us) - f64::from(self.delay_us)) / 1e3 / run_ms
    }
}

/// The lows of a track's life, and the skew that follows from them.
#[derive(Clone, Debug)]
pub(super) struct Lows {
    list: [Low; WINDOWS],
    known: usize,
    window_ns: i64,
    skew: f64,
    reports: Option<Reports>,
}

impl Default for Lows {
    fn default() -> Self {
        let list = [Low::default(); WINDOWS];
        Self { list, known: 0, window_ns: Self::WINDOW_NS, skew: 0.0, reports: None }
    }
}

impl Lows {
    /// Initial length of a window, ns.
    pub(super) const WINDOW_NS: i64 = 5_000_000_000;

    /// Length of a window, ns.
    pub(super) fn window_ns(&self) -> i64 {
        self.window_ns
    }

    /// The last estimate of the skew: seconds a second, positive when the source is slow.
    pub(super) fn skew(&self) -> f64 {
        self.skew
    }

    /// The low of one more window.
    pub(super) fn add(&mut self, low: Low) {
        if self.known == WINDOWS {
            self.halve();
        }
        if let Some(slot) = self.list.get_mut(self.known) {
            *slot = low;
            self.known += 1;
        }
        let usual = || self.usual().filter(|skew| skew.abs() <= USUAL_SKEW_MAX);
        self.skew = self.steady().or_else(usual).unwrap_or(0.0);
    }

    /// The height, ns, of the highest line with the slope of the skew that is below all lows.
    pub(super) fn beneath(&self) -> f64 {
        self.lows().iter().map(|low| low.above(self.skew) * 1e3).fold(f64::INFINITY, f64::min)
    }

    /// A sender report: its clock showed `ntp_unix_ns` when the media clock, of `clock_hz`, showed
    /// `rtp_timestamp`.
    pub(super) fn sender_report(&mut self, ntp_unix_ns: u64, rtp_timestamp: u32, clock_hz: i64) {
        let begun =
            Reports { first_ntp_ns: ntp_unix_ns, ntp_ns: ntp_unix_ns, rtp_timestamp, media_ns: 0 };
        self.reports.get_or_insert(begun).add(ntp_unix_ns, rtp_timestamp, clock_hz);
    }

    /// Another timeline begins; the reports so far do not apply to it.
    pub(super) fn forget_reports(&mut self) {
        self.reports = None;
    }

    fn lows(&self) -> &[Low] {
        self.list.get(..self.known).unwrap_or_default()
    }

    /// Merges pairs of windows.
    fn halve(&mut self) {
        for i in 0..WINDOWS / 2 {
            if let Some(&[a, b]) = self.list.get(2 * i..2 * i + 2)
                && let Some(slot) = self.list.get_mut(i)
            {
                *slot = if b.above(self.skew) < a.above(self.skew) { b } else { a };
            }
        }
        self.known = WINDOWS / 2;
        self.window_ns = self.window_ns.saturating_mul(2);
    }
}

/// The usual pace.
impl Lows {
    /// The median slope between lows a quarter of the run apart.
    fn usual(&self) -> Option<f64> {
        let lows = self.lows();
        if lows.len() < USUAL_WINDOWS_MIN {
            return None;
        }
        let mut slopes = [0.0_f64; WINDOWS];
        let pairs = lows.iter().zip(lows.iter().skip(lows.len() / 4));
        let mut count = 0;
        for (slot, (a, b)) in slopes.iter_mut().zip(pairs) {
            *slot = a.slope_to(*b);
            count += 1;
        }
        let (_, median, _) =
            slopes.get_mut(..count)?.select_nth_unstable_by(count / 2, f64::total_cmp);
        Some(*median)
    }
}

/// Lows `from` to `to` that lie on a line.
#[derive(Clone, Copy)]
struct Stretch {
    from: usize,
    to: usize,
    slope: f64,
    length_ms: u32,
}

impl Stretch {
    fn is_usual(&self) -> bool {
        self.slope.abs() <= USUAL_SKEW_MAX
    }

    fn holds(&self, other: &Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }
}

/// A steady slope beyond the usual pace.
impl Lows {
    fn steady(&self) -> Option<f64> {
        let longest =
            self.stretches().max_by_key(|stretch| stretch.length_ms).filter(|s| !s.is_usual())?;
        // A queue that starts to grow was preceded by a time at the usual pace.
        let had_usual_pace =
            self.stretches().any(|other| other.is_usual() && !longest.holds(&other));
        let skew = self.fitted(&longest);
        let is_refuted = self.reports.is_some_and(|reports| reports.refute(skew));
        (!had_usual_pace && !is_refuted).then_some(skew)
    }

    /// Every stretch that is long and straight enough.
    fn stretches(&self) -> impl Iterator<Item = Stretch> + '_ {
        let known = self.known;
        let ends = (0..known).flat_map(move |from| (from + 1..known).map(move |to| (from, to)));
        ends.filter_map(move |(from, to)| {
            let (first, last) = (*self.list.get(from)?, *self.list.get(to)?);
            let length_ms = last.at_ms.saturating_sub(first.at_ms);
            let slope = first.slope_to(last);
            let stretch = Stretch { from, to, slope, length_ms };
            let is_told =
                length_ms >= STEADY_MS && slope.abs() <= STEADY_SKEW_MAX && self.is_floor(&stretch);
            is_told.then_some(stretch)
        })
    }

    /// Whether at least half of a stretch is on its line, and no low below it. Lows before the
    /// stretch are checked only where the slope falls: a rise after them is a queue, while a
    /// falling floor would show as a queue.
    fn is_floor(&self, stretch: &Stretch) -> bool {
        let Some(first) = self.list.get(stretch.from) else { return false };
        let height = first.above(stretch.slope);
        let judged = if stretch.slope < 0.0 { 0 } else { stretch.from };
        let mut near = 0;
        for (at, low) in self.lows().iter().enumerate().skip(judged) {
            let above = low.above(stretch.slope) - height;
            if above < -STEADY_ERROR_US {
                return false;
            }
            near +=
                usize::from((stretch.from..=stretch.to).contains(&at) && above <= STEADY_ERROR_US);
        }
        near >= STEADY_LOWS_MIN.max((stretch.to - stretch.from + 1).div_ceil(2))
    }

    /// The slope by least squares of the lows on the line of a stretch.
    fn fitted(&self, stretch: &Stretch) -> f64 {
        let Some(first) = self.list.get(stretch.from) else { return stretch.slope };
        let height = first.above(stretch.slope);
        let on_line = || {
            let lows = self.lows().iter().take(stretch.to + 1).skip(stretch.from);
            lows.map(|low| (f64::from(low.at_ms), low.above(stretch.slope) - height))
                .filter(|(_, above)| above.abs() <= STEADY_ERROR_US)
        };
        let count = on_line().count().max(1) as f64;
        let (x, y) =
            on_line().fold((0.0, 0.0), |(x, y), (at, above)| (x + at / count, y + above / count));
        let (xy, xx) = on_line().fold((0.0, 0.0), |(xy, xx), (at, above)| {
            (xy + (at - x) * (above - y), xx + (at - x) * (at - x))
        });
        // Microseconds a millisecond.
        stretch.slope + if xx > 0.0 { xy / xx / 1e3 } else { 0.0 }
    }
}

/// The sender's reports of one timeline, the first and the last.
#[derive(Clone, Copy, Debug)]
struct Reports {
    first_ntp_ns: u64,
    ntp_ns: u64,
    rtp_timestamp: u32,
    /// Media time since the first, ns.
    media_ns: i64,
}

impl Reports {
    fn add(&mut self, ntp_unix_ns: u64, rtp_timestamp: u32, clock_hz: i64) {
        let ticks = i64::from(step(self.rtp_timestamp, rtp_timestamp));
        self.media_ns =
            self.media_ns.saturating_add(ticks.saturating_mul(1_000_000_000) / clock_hz.max(1));
        (self.ntp_ns, self.rtp_timestamp) = (ntp_unix_ns, rtp_timestamp);
    }

    /// Whether they contradict a skew of `skew`, by more than their own and the sender's clock
    /// error.
    fn refute(&self, skew: f64) -> bool {
        let passed_s = self.ntp_ns.saturating_sub(self.first_ntp_ns) as f64 / 1e9;
        if passed_s <= 0.0 {
            return false;
        }
        let reported = 1.0 - self.media_ns as f64 / 1e9 / passed_s;
        (reported - skew).abs() > REPORT_ERROR_S / passed_s + USUAL_SKEW_MAX
    }
}

#[cfg(test)]
#[path = "skew_tests.rs"]
mod tests;
