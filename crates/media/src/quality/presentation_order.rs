//! RTP timestamps that go back: frames sent in the order of decoding (B-frames), whose timestamps
//! are presentation times (RFC 6184 section 5.1, RFC 2250 section 3.3).
//!
//! Such a frame arrives later after its timestamp than those around it by nothing but the order.
//! Only frames that are shown after all frames before them say when the source sent.

use super::timestamp;

/// How far reordering goes back at most, seconds: more is another timeline of the source.
const REORDERED_MAX_S: u32 = 2;

/// More frames in a row are not shown before an earlier one: those of a hierarchy of 32 pictures,
/// the longest that encoders make. The buffer of decoded pictures (16, H.264 A.3.1) is no bound, as
/// pictures that no other needs are not kept in it.
const BEHIND_MAX: u32 = 32;
/// More of them in a row do not follow each other in the order in which they are shown: of a
/// hierarchy the middle comes before the quarters. Encoders without one make 16 at most.
const RISING_MAX: u32 = 16;
/// Frames that go on from so far back, seconds, are those of a source whose clock has jumped.
const JUMP_S: u32 = 1;

/// The latest timestamp of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct PresentationOrder {
    reordered_max: i32,
    jump: i32,
    latest: Option<u32>,
    /// The frames since the latest, which are shown before it.
    behind: Behind,
    has_jumped_back: bool,
}

/// Frames in a row that are shown before an earlier one.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    frames: u32,
    /// The timestamp of the last one; packets of a frame share it.
    last: Option<u32>,
    /// How far the furthest is behind, ticks, negative.
    furthest: i32,
    /// One of them is shown before the one that came before it.
    has_fallen: bool,
}

impl PresentationOrder {
    pub(super) fn new(clock_rate_hz: u32) -> Self {
        let ticks = clock_rate_hz.saturating_mul(REORDERED_MAX_S);
        Self {
            reordered_max: i32::try_from(ticks).unwrap_or(i32::MAX),
            jump: i32::try_from(clock_rate_hz.saturating_mul(JUMP_S)).unwrap_or(i32::MAX),
            latest: None,
            behind: Behind::default(),
            has_jumped_back: false,
        }
    }

    /// Whether a frame with this timestamp, the next in the order of decoding, is shown before an
    /// earlier one.
    pub(super) fn is_reordered(&mut self, timestamp: u32) -> bool {
        let step = self.latest.map_or(0, |latest| timestamp::step(latest, timestamp));
        if (-self.reordered_max..0).contains(&step) {
            self.behind.add(timestamp, step);
            let has_jumped = self.behind.are_no_order() && self.behind.furthest <= -self.jump;
            self.has_jumped_back |= has_jumped;
            if !has_jumped {
                return true;
            }
        }
        (self.latest, self.behind) = (Some(timestamp), Behind::default());
        false
    }

    /// Whether the time of the frames has jumped back since the last call, by what could be the
    /// order of frames: a jump is known when too many have come that are not shown after it.
    pub(super) fn take_jump_back(&mut self) -> bool {
        std::mem::take(&mut self.has_jumped_back)
    }

    /// The next frame belongs to another timeline.
    pub(super) fn restart(&mut self) {
        (self.latest, self.behind) = (None, Behind::default());
    }
}

impl Behind {
    fn add(&mut self, timestamp: u32, step: i32) {
        self.frames += u32::from(self.last != Some(timestamp));
        self.has_fallen |= self.last.is_some_and(|last| timestamp::step(last, timestamp) < 0);
        self.last = Some(timestamp);
        self.furthest = self.furthest.min(step);
    }

    /// Whether they are more than any order of frames has.
    fn are_no_order(&self) -> bool {
        self.frames > if self.has_fallen { BEHIND_MAX } else { RISING_MAX }
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
    #[test]
    fn many_frames_that_go_on_from_a_second_back_are_a_jump_and_no_order() {
        let jumps = |frames: &mut dyn Iterator<Item = u32>| {
            let mut order = PresentationOrder::new(90_000);
            let jumps = frames.filter(|ms| {
                // Two packets a frame.
                order.is_reordered(ms * 90);
                order.is_reordered(ms * 90);
                order.take_jump_back()
            });
            jumps.collect::<Vec<_>>()
        };
        let steady = |from_ms: u32, frames: u32| (0..frames).map(move |at| from_ms + 40 * at);
        let back = |by_ms: u32| steady(4_000, 25).chain(steady(5_000 - by_ms, 40));
        assert_eq!(jumps(&mut back(1_900)), [5_000 - 1_900 + 16 * 40], "the seventeenth");
        assert!(jumps(&mut back(800)).is_empty(), "less than a second");
        assert!(jumps(&mut back(3_000)).is_empty(), "another timeline");
        // 26 frames, after which it is where it was.
        let short = steady(4_000, 25).chain(steady(4_960 - 1_040, 26));
        assert_eq!(jumps(&mut short.chain(steady(4_960 + 40, 40))), [4_960 - 1_040 + 16 * 40]);
        // Frames of a second back that do not follow each other: the thirty-third.
        let mixed = (0..40).map(|at: u32| 3_000 + 40 * (at ^ 1));
        assert_eq!(jumps(&mut steady(4_000, 25).chain(mixed)), [3_000 + 40 * 33]);
        // The longest order of frames without a hierarchy: sixteen before the one that was sent
        // first.
        let mut groups = (0..10).flat_map(|group: u32| {
            let begins_ms = 4_000 + group * 17 * 66;
            std::iter::once(begins_ms + 16 * 66).chain((0..16).map(move |at| begins_ms + at * 66))
        });
        assert!(jumps(&mut groups).is_empty());
    }

    /// The pictures between two: the middle one, then those of each half in the same way.
    fn between(first: u32, last: u32, order: &mut Vec<u32>) {
        if last - first > 1 {
            let middle = first.midpoint(last);
            order.push(middle);
            between(first, middle, order);
            between(middle, last, order);
        }
    }

    #[test]
    fn a_hierarchy_of_32_pictures_is_an_order() {
        // 25 a second: the first of each group is 1.24 s behind.
        let mut order = PresentationOrder::new(90_000);
        for group in 0..10 {
            let (first, last) = (32 * group, 32 * (group + 1));
            let mut frames = vec![last];
            between(first, last, &mut frames);
            assert_eq!(frames.len(), 32);
            for frame in frames {
                let is_behind = order.is_reordered(frame * 3_600);
                assert_eq!((is_behind, order.take_jump_back()), (frame != last, false), "{frame}");
            }
        }
    }
}
