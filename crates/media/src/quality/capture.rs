//! Absolute one-way delay: wall time of arrival less the time of capture.
//!
//! The capture time comes with the frame (a mark in the media, or `abs-capture-time`); only when a track has never
//! carried one, the sender report's mapping gives it: `capture = NTP + (timestamp − RTP timestamp) / f` (RFC 3550 §6.4.1).
//! The figure contains the difference between the two clocks whole; it is negative when ours is behind by more than
//! the path takes.

use super::packet::Captured;
use throng_observation::CaptureBasis;

/// Capture times of one track.
#[derive(Clone, Copy, Debug)]
pub struct CaptureMeter {
    clock_hz: i64,
    report: Option<(u64, u32)>,
    basis: Option<CaptureBasis>,
}

impl CaptureMeter {
    /// A meter for an RTP clock of `clock_rate_hz`.
    #[must_use]
    pub fn new(clock_rate_hz: u32) -> Self {
        Self { clock_hz: i64::from(clock_rate_hz.max(1)), report: None, basis: None }
    }

    /// A sender report maps `rtp_timestamp` to `ntp_unix_ns`.
    pub fn sender_report(&mut self, ntp_unix_ns: u64, rtp_timestamp: u32) {
        self.report = Some((ntp_unix_ns, rtp_timestamp));
    }

    /// The mapping of the last report is of another timeline.
    pub fn restart(&mut self) {
        self.report = None;
    }

    /// A frame arrived at `arrived_unix_ns`: its delay in microseconds, negative when the clocks disagree; `None` when
    /// its capture time is not known.
    pub fn frame(&mut self, arrived_unix_ns: u64, timestamp: u32, captured: Option<Captured>) -> Option<i32> {
        let captured = captured.or_else(|| self.reported(timestamp))?;
        if self.basis.is_none_or(|basis| captured.basis < basis) {
            self.basis = Some(captured.basis);
        }
        let delay_us = (i128::from(arrived_unix_ns) - i128::from(captured.unix_ns)) / 1000;
        Some(delay_us.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32)
    }

    /// The best that the delays of this track came from so far.
    #[must_use]
    pub fn basis(&self) -> Option<CaptureBasis> {
        self.basis
    }

    fn reported(&self, timestamp: u32) -> Option<Captured> {
        if self.basis.is_some_and(|basis| basis < CaptureBasis::SenderReport) {
            return None; // figures of two bases do not mix
        }
        let (ntp_unix_ns, rtp_timestamp) = self.report?;
        let after_ns =
            i64::from(super::timestamp::step(rtp_timestamp, timestamp)) * 1_000_000_000 / self.clock_hz;
        Some(Captured {
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
            let captured = Captured { unix_ns: captured, basis: CaptureBasis::Mark };
            assert_eq!(meter.frame(NOW, 0, Some(captured)), Some(expect));
        }
        assert_eq!(meter.basis(), Some(CaptureBasis::Mark));
    }

    #[test]
    fn a_sender_report_serves_until_something_better_comes() {
        let mut meter = CaptureMeter::new(90_000);
        meter.sender_report(NOW, u32::MAX - 899);
        // 1800 ticks, over the wrap, are 20 ms.
        assert_eq!(meter.frame(NOW + 50_000_000, 900, None), Some(30_000));
        // Ten milliseconds before the report.
        assert_eq!(meter.frame(NOW, u32::MAX - 1799, None), Some(10_000));
        assert_eq!(meter.basis(), Some(CaptureBasis::SenderReport));
        let captured = Captured { unix_ns: NOW, basis: CaptureBasis::AbsCaptureTime };
        assert_eq!(meter.frame(NOW + 1_000, 0, Some(captured)), Some(1));
        assert_eq!((meter.frame(NOW, 900, None), meter.basis()), (None, Some(CaptureBasis::AbsCaptureTime)));
    }

    #[test]
    fn a_report_of_another_timeline_is_not_used() {
        let mut meter = CaptureMeter::new(90_000);
        meter.sender_report(NOW, 0);
        meter.restart();
        assert_eq!(meter.frame(NOW, 0, None), None);
    }
}
