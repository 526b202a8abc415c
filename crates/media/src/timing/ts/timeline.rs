//! Time stamps of 33 bits on one line: they wrap after 26.5 hours.

/// Ticks after which time stamps repeat.
const WRAP: i64 = 1 << 33;

/// The line that all streams of a file are on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeline {
    last: Option<i64>,
}

impl Timeline {
    /// The time of a stamp near the last one; the first is what it says.
    pub(super) fn unwrap(&mut self, stamp: u64) -> i64 {
        let time = self.last.map_or(stamp as i64, |last| self.near(stamp, last));
        self.last = Some(time);
        time
    }

    /// The time of a stamp that is less than 13 hours from another time.
    pub(super) fn near(&self, stamp: u64, time: i64) -> i64 {
        let ahead = (stamp as i64).wrapping_sub(time).rem_euclid(WRAP);
        time.saturating_add(if ahead < WRAP / 2 { ahead } else { ahead - WRAP })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_go_on_after_they_wrap() {
        let mut timeline = Timeline::default();
        let last = (WRAP - 1) as u64;
        for (stamp, expect) in [
            (last - 9, WRAP - 10),
            (5, WRAP + 5),
            (last, WRAP - 1),
            (3_000, WRAP + 3_000),
            (90, WRAP + 90),
        ] {
            assert_eq!(timeline.unwrap(stamp), expect);
        }
        assert_eq!(timeline.near(last, 0), -1);
    }
}
