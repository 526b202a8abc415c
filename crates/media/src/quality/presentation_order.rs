//! RTP timestamps that go back: frames sent in the order of decoding (B-frames), whose timestamps
//! are presentation times (RFC 6184 section 5.1, RFC 2250 section 3.3).
//!
//! Such a frame arrives later after its timestamp than those around it by nothing but the order.
//! Only frames that are shown after all frames before them say when the source sent.

use super::timestamp;

/// How far reordering goes back at most, seconds: more is another timeline of the source.
const REORDERED_MAX_S: u32 = 2;

/// The latest timestamp of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct PresentationOrder {
    reordered_max: i32,
    latest: Option<u32>,
}

impl PresentationOrder {
    pub(super) fn new(clock_rate_hz: u32) -> Self {
        let ticks = clock_rate_hz.saturating_mul(REORDERED_MAX_S);
        Self { reordered_max: i32::try_from(ticks).unwrap_or(i32::MAX), latest: None }
    }

    /// Whether a frame with this timestamp, the next in the order of decoding, is shown before an
    /// earlier one.
    pub(super) fn is_reordered(&mut self, timestamp: u32) -> bool {
        let step = self.latest.map_or(0, |latest| timestamp::step(latest, timestamp));
        if (-self.reordered_max..0).contains(&step) {
            return true;
        }
        self.latest = Some(timestamp);
        false
    }

    /// The next frame belongs to another timeline.
    pub(super) fn restart(&mut self) {
        self.latest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_frames_are_reordered_and_a_new_timeline_is_not() {
        let mut order = PresentationOrder::new(90_000);
        let start = u32::MAX - 5_000;
        let frames =
            [0, 9_000, 3_000, 6_000, 18_000, 12_000, 15_000].map(|at: u32| start.wrapping_add(at));
        let found = frames.map(|timestamp| order.is_reordered(timestamp));
        assert_eq!(found, [false, false, true, true, false, true, true]);
        assert!(!order.is_reordered(start.wrapping_sub(1_000_000)), "a new timeline");
        assert!(!order.is_reordered(start.wrapping_sub(996_000)));
    }
}
