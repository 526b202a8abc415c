//! OvenRtcTester's "delay", so that its reports can be compared with throng's. It is drift, not
//! delay.
//!
//! `|milliseconds since the first packet − (timestamp − first timestamp) / clock|`, the last value,
//! on marker packets of video and every packet of audio (OvenMediaEngine,
//! `misc/oven_rtc_tester/OvenRtcTester.go`). Its flaws: the zero is the first packet, which is
//! mostly in the burst of a cached GOP, so that figures fall while nothing changes; the absolute
//! value hides whether media is early or late; clock skew adds up; a source that jumps counts as
//! delay forever. In the tester both tracks share a start, which the later one resets; here each
//! track counts from its own first packet.

use super::timestamp::TimestampUnwrap;

/// The compatibility column.
#[derive(Clone, Copy, Debug)]
pub struct OvenRtcTesterMeter {
    clock_hz: i64,
    first_arrival_ns: Option<i64>,
    unwrap: TimestampUnwrap,
    delay_us: Option<u32>,
}

impl OvenRtcTesterMeter {
    /// A meter for an RTP clock of `clock_rate_hz`.
    #[must_use]
    pub fn new(clock_rate_hz: u32) -> Self {
        let clock_hz = i64::from(clock_rate_hz.max(1));
        Self {
            clock_hz,
            first_arrival_ns: None,
            unwrap: TimestampUnwrap::default(),
            delay_us: None,
        }
    }

    /// A packet arrived; `counts` is whether the tester uses it.
    pub fn packet(&mut self, arrived_ns: i64, timestamp: u32, counts: bool) {
        let first = *self.first_arrival_ns.get_or_insert(arrived_ns);
        let ticks = self.unwrap.ticks(timestamp);
        if counts {
            let media_us = ticks.saturating_mul(1_000_000) / self.clock_hz;
            let drift_us = ((arrived_ns - first) / 1000).saturating_sub(media_us).unsigned_abs();
            self.delay_us = Some(u32::try_from(drift_us).unwrap_or(u32::MAX));
        }
    }

    /// The last value, microseconds.
    #[must_use]
    pub fn delay_us(&self) -> Option<u32> {
        self.delay_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_last_counted_packet_gives_the_figure_and_its_sign_is_hidden() {
        let mut meter = OvenRtcTesterMeter::new(90_000);
        assert_eq!(meter.delay_us(), None);
        for (arrived_ms, timestamp_ms, counts, expect_us) in [
            (100, 0, false, None),
            (105, 0, true, Some(5_000)),
            (110, 40, true, Some(30_000)), // early: 10 ms after the first, 40 ms of media
            (500, 80, false, Some(30_000)),
            (230, 80, true, Some(50_000)),
        ] {
            meter.packet(arrived_ms * MS, (u32::MAX - 100).wrapping_add(timestamp_ms * 90), counts);
            assert_eq!(meter.delay_us(), expect_us);
        }
    }
}
