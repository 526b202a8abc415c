//! Absolute one-way delay: wall time of arrival less the time of capture.
//!
//! The capture time comes with the frame (a mark in the media, or `abs-capture-time`). Only when a
//! track has never carried one, the sender report's mapping is used: `capture = NTP + (timestamp −
//! RTP timestamp) / f` (RFC 3550 §6.4.1). The figure includes the difference between the two
//! clocks; it is negative when the local clock is behind by more than the path takes.
//!
//! A sender without a wall clock may use another clock in its reports (RFC 3550 §6.4.1: time since
//! it began, for example); OvenMediaEngine uses media time. Such reports are ignored.

use super::packet::CaptureTime;
use throng_observation::CaptureBasis;

/// Two wall clocks differ by less than a day, unless one was never set.
const APART_NS_MAX: u64 = 86_400 * 1_000_000_000;

/// The pace of the sender's clock is compared with the local one after this time.
const RATE_OVER_NS: u64 = 30 * 1_000_000_000;

/// A wall clock's pace differs from the local one by at most this share (numerator, denominator): a
/// server that stalled may have delayed a report for some seconds.
const RATE_OFF_MAX: (u64, u64) = (1, 3);

/// A clock that shows the same time in two reports this far apart stands still; a server may send
/// several at once.
const STANDS_NS_MIN: u64 = 500_000_000;

/// The last sender report.
#[derive(Clone, Copy, Debug)]
struct Report {
    ntp_unix_ns: u64,
    rtp_timestamp: u32,
    arrived_unix_ns: u64,
}

/// Capture times of one track.
#[derive(Clone, Copy, Debug)]
pub struct CaptureMeter {
    clock_hz: i64,
    report: Option<Report>,
    /// The first report's NTP time, and when it arrived.
    first: Option<(u64, u64)>,
    /// Reports were received whose NTP time is not wall-clock time.
    is_other_clock: bool,
    basis: Option<CaptureBasis>,
}

impl CaptureMeter {
    /// A meter for an RTP clock of `clock_rate_hz`.
    #[must_use]
    pub fn new(clock_rate_hz: u32) -> Self {
        let clock_hz = i64::from(clock_rate_hz.max(1));
        Self { clock_hz, report: None, first: None, is_other_clock: false, basis: None }
    }

    /// A sender report that arrived at `arrived_unix_ns` maps `rtp_timestamp` to `ntp_unix_ns`.
    /// Returns `false` if that is not wall-clock time; reports are then ignored until the source
    /// changes, and [`Self::basis`] is not theirs any more: what they said before was wrong too.
    pub fn sender_report(
        &mut self,
        ntp_unix_ns: u64,
        rtp_timestamp: u32,
        arrived_unix_ns: u64,
    ) -> bool {
        let (first_ntp_ns, first_arrived_ns) =
            *self.first.get_or_insert((ntp_unix_ns, arrived_unix_ns));
        let (clock_ns, ours_ns) =
            (ntp_unix_ns.abs_diff(first_ntp_ns), arrived_unix_ns.saturating_sub(first_arrived_ns));
        let is_other_pace = ours_ns >= RATE_OVER_NS
            && u128::from(clock_ns.abs_diff(ours_ns)) * u128::from(RATE_OFF_MAX.1)
                > u128::from(ours_ns) * u128::from(RATE_OFF_MAX.0);
        // The media went on: it is no report that was sent twice.
        let stands = self.report.is_some_and(|last| {
            last.ntp_unix_ns == ntp_unix_ns
                && last.rtp_timestamp != rtp_timestamp
                && arrived_unix_ns.saturating_sub(last.arrived_unix_ns) >= STANDS_NS_MIN
        });
        self.is_other_clock |=
            is_other_pace || stands || ntp_unix_ns.abs_diff(arrived_unix_ns) > APART_NS_MAX;
        let report = Report { ntp_unix_ns, rtp_timestamp, arrived_unix_ns };
        self.report = (!self.is_other_clock).then_some(report);
        if self.is_other_clock {
            self.basis = self.basis.filter(|basis| *basis != CaptureBasis::SenderReport);
        }
        !self.is_other_clock
    }

    /// The mapping of the last report belongs to another timeline.
    pub fn restart(&mut self) {
        (self.report, self.first, self.is_other_clock) = (None, None, false);
    }

    /// Takes a frame that arrived at `arrived_unix_ns`; returns its delay in microseconds, negative
    /// when the local clock is behind; `None` when its capture time is unknown.
    pub fn frame(
        &mut self,
        arrived_unix_ns: u64,
        timestamp: u32,
        captured: Option<CaptureTime>,
    ) -> Option<i32> {
        let captured = captured.or_else(|| self.reported(timestamp))?;
        if self.basis.is_none_or(|basis| captured.basis < basis) {
            self.basis = Some(captured.basis);
        }
        let delay_us = (i128::from(arrived_unix_ns) - i128::from(captured.unix_ns)) / 1000;
        Some(delay_us.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32)
    }

    /// The best basis of this track's delays so far.
    #[must_use]
    pub fn basis(&self) -> Option<CaptureBasis> {
        self.basis
    }

    fn reported(&self, timestamp: u32) -> Option<CaptureTime> {
        if self.basis.is_some_and(|basis| basis < CaptureBasis::SenderReport) {
            return None; // figures of two bases do not mix
        }
        let Report { ntp_unix_ns, rtp_timestamp, .. } = self.report?;
        let after_ns = i64::from(super::timestamp::step(rtp_timestamp, timestamp)) * 1_000_000_000
            / self.clock_hz;
        Some(CaptureTime {
            unix_ns: ntp_unix_ns.checked_add_signed(after_ns)?,
            basis: CaptureBasis::SenderReport,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn a_capture_time_gives_the_path_s_delay_and_the_clocks_difference() {
        let mut meter = CaptureMeter::new(90_000);
        assert_eq!((meter.frame(NOW, 0, None), meter.basis()), (None, None));
        for (captured, expect) in [
            (NOW - 20_000_000, 20_000),
            (NOW - 40_000_000, 40_000), // 20 ms more on a path that is as steady as before
            (NOW + 3_000_000, -3_000),
            (0, i32::MAX),
            (u64::MAX, i32::MIN),
        ] {
            let captured = CaptureTime { unix_ns: captured, basis: CaptureBasis::Mark };
            assert_eq!(meter.frame(NOW, 0, Some(captured)), Some(expect));
        }
        assert_eq!(meter.basis(), Some(CaptureBasis::Mark));
    }

    #[test]
    fn a_sender_report_serves_until_something_better_comes() {
        let mut meter = CaptureMeter::new(90_000);
        assert!(meter.sender_report(NOW, u32::MAX - 899, NOW));
        // 1800 ticks, over the wrap, are 20 ms.
        assert_eq!(meter.frame(NOW + 50_000_000, 900, None), Some(30_000));
        // Ten milliseconds before the report.
        assert_eq!(meter.frame(NOW, u32::MAX - 1799, None), Some(10_000));
        assert_eq!(meter.basis(), Some(CaptureBasis::SenderReport));
        let captured = CaptureTime { unix_ns: NOW, basis: CaptureBasis::AbsCaptureTime };
        assert_eq!(meter.frame(NOW + 1_000, 0, Some(captured)), Some(1));
        assert_eq!(
            (meter.frame(NOW, 900, None), meter.basis()),
            (None, Some(CaptureBasis::AbsCaptureTime))
        );
    }

    #[test]
    fn a_report_of_another_timeline_is_not_used() {
        let mut meter = CaptureMeter::new(90_000);
        meter.sender_report(NOW, 0, NOW);
        meter.restart();
        assert_eq!(meter.frame(NOW, 0, None), None);
    }

    #[test]
    fn a_clock_that_stands_still_is_none_and_what_it_said_is_withdrawn() {
        let mut meter = CaptureMeter::new(90_000);
        assert!(meter.sender_report(NOW, 0, NOW));
        assert_eq!(meter.frame(NOW + 20_000_000, 0, None), Some(20_000));
        // The same report again, and one of the same moment, say nothing.
        assert!(meter.sender_report(NOW, 0, NOW + 5_000_000_000));
        assert!(meter.sender_report(NOW, 90, NOW + 5_001_000_000));
        assert!(!meter.sender_report(NOW, 450_000, NOW + 10_000_000_000));
        assert_eq!((meter.basis(), meter.frame(NOW + 10_000_000_000, 450_000, None)), (None, None));
    }

    #[test]
    fn a_report_of_media_time_is_no_wall_clock() {
        const S: u64 = 1_000_000_000;
        // OvenMediaEngine counts from the stream's beginning; read as NTP time that is 2036,
        // or 1900.
        for media_time in [2_085_978_496 * S, 0, NOW - 2 * 86_400 * S] {
            let mut meter = CaptureMeter::new(90_000);
            assert!(!meter.sender_report(media_time + 12 * S, 0, NOW));
            assert_eq!((meter.frame(NOW, 0, None), meter.basis()), (None, None));
            // A mark in the media is still used.
            let captured = CaptureTime { unix_ns: NOW - S, basis: CaptureBasis::Mark };
            assert_eq!(meter.frame(NOW, 0, Some(captured)), Some(1_000_000));
        }
        // A clock that is a minute off is a wall clock if it advances like the local one; a report
        // may be late.
        let mut meter = CaptureMeter::new(90_000);
        for (clock_s, ours_s) in [(0, 0), (5, 5), (35, 43), (60, 60)] {
            assert!(
                meter.sender_report(NOW + (60 + clock_s) * S, 0, NOW + ours_s * S),
                "{ours_s} s"
            );
        }
        // A clock that stops with its media is not a wall clock.
        assert!(!meter.sender_report(NOW + (60 + 61) * S, 0, NOW + 120 * S));
        assert!(
            !meter.sender_report(NOW + (60 + 121) * S, 0, NOW + 121 * S),
            "and what was seen stays"
        );
        assert_eq!(meter.frame(NOW, 0, None), None);
        meter.restart();
        assert!(meter.sender_report(NOW, 0, NOW));
    }
}
