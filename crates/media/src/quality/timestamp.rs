//! RTP timestamps without their 32-bit wrap (a 90 kHz clock wraps every 13 h 15 min; the first
//! value is random).

/// Converts timestamps to ticks since the first one.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimestampUnwrap {
    last: Option<(u32, i64)>,
}

impl TimestampUnwrap {
    /// Ticks from the first timestamp to this one; negative for one before it. The step from the
    /// previous call is the shorter way round (less than 2^31 ticks).
    pub fn ticks(&mut self, timestamp: u32) -> i64 {
        let ticks = match self.last {
            None => 0,
            Some((last, ticks)) => ticks.saturating_add(i64::from(step(last, timestamp))),
        };
        self.last = Some((timestamp, ticks));
        ticks
    }
}

/// The signed step between two timestamps, the shorter way round.
pub(super) fn step(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_on_over_the_wrap_and_back() {
        let mut unwrap = TimestampUnwrap::default();
        let first = u32::MAX - 2999;
        for (timestamp, ticks) in [
            (first, 0),
            (0, 3000),
            (3000, 6000),
            (u32::MAX, 2999), // out of order, before the wrap
            (6000, 9000),
            (first.wrapping_sub(10), -10),
        ] {
            assert_eq!(unwrap.ticks(timestamp), ticks, "{timestamp}");
        }
    }

    #[test]
    fn two_turns_of_the_clock_are_two_turns() {
        let mut unwrap = TimestampUnwrap::default();
        let mut timestamp = 7_u32;
        for _ in 0..=16 {
            unwrap.ticks(timestamp);
            timestamp = timestamp.wrapping_add(1 << 29);
        }
        assert_eq!(unwrap.ticks(7), 2 << 32);
    }
}
