//! Streams with and without B-frames at a constant pace.

use super::super::DelayMeter;
use super::*;

const FRAME_NS: i64 = 33_333_333;

/// Presentation numbers in decoding order: `pattern` is one group, `groups` of them follow.
fn stream(pattern: &[u32], groups: u32) -> Vec<u32> {
    (0..groups).flat_map(|g| pattern.iter().map(move |p| g * pattern.len() as u32 + p)).collect()
}

/// Delays in microseconds, with arrivals shifted by `late_ns(i)`; frames that `arrives` refuses are
/// dropped.
fn delays(
    frames: &[u32],
    arrives: impl Fn(usize) -> bool,
    late_ns: impl Fn(usize) -> i64,
) -> Vec<u32> {
    let (mut order, mut delay) = (DecodeOrder::default(), DelayMeter::new(90_000));
    let mut out = Vec::new();
    for (i, presentation) in frames.iter().enumerate() {
        let arrived_ns = arrives(i).then(|| i as i64 * FRAME_NS + late_ns(i));
        match order.frame(presentation.wrapping_mul(3000).wrapping_sub(50_000), arrived_ns) {
            Ordered::Pair(arrived_ns, timestamp) => out.push(delay.frame(arrived_ns, timestamp)),
            Ordered::Deeper => delay.forget_floor(),
            Ordered::Waiting => {}
        }
    }
    out
}

const PATTERNS: [(&str, &[u32]); 5] = [
    ("no B-frames", &[0]),
    ("IBBP", &[2, 0, 1]),
    ("a pyramid", &[3, 1, 0, 2]),
    ("adaptive", &[0, 3, 1, 2, 4, 6, 5, 10, 8, 7, 9, 11]),
    ("closed groups", &[0, 3, 1, 2, 6, 4, 5, 7]),
];

#[test]
fn a_constant_pace_is_no_delay() {
    for (what, pattern) in PATTERNS {
        let frames = stream(pattern, 900 / pattern.len() as u32);
        let delays = delays(&frames, |_| true, |_| 0);
        assert!(delays.len() + 16 >= frames.len(), "{what}: {} of {}", delays.len(), frames.len());
        assert!(delays.iter().all(|&us| us < 100), "{what}: {:?}", delays.iter().max());
    }
}

#[test]
fn a_queue_shows_as_long_as_it_is() {
    for (what, pattern) in PATTERNS {
        let frames = stream(pattern, 900 / pattern.len() as u32);
        // 200 ms from the frame at 10 s on.
        let delays = delays(&frames, |_| true, |i| if i >= 300 { 200_000_000 } else { 0 });
        assert!(delays[..250].iter().all(|&us| us < 100), "{what}");
        assert!(
            delays[320..].iter().all(|&us| us.abs_diff(200_000) < 100),
            "{what}: {:?}",
            &delays[320..330]
        );
    }
}

#[test]
fn dropped_frames_do_not_shift_those_after_them() {
    for (what, pattern) in PATTERNS {
        let frames = stream(pattern, 900 / pattern.len() as u32);
        let delays = delays(&frames, |i| i % 31 != 7, |_| 0);
        assert!(delays.len() > 800 && delays.iter().all(|&us| us < 100), "{what}");
    }
}

#[test]
fn without_b_frames_each_frame_is_told_at_once() {
    let mut order = DecodeOrder::default();
    for (timestamp, arrived_ns) in [(0, 5), (3000, 6), (6000, 7), (9000, 8)] {
        assert_eq!(order.frame(timestamp, Some(arrived_ns)), Ordered::Pair(arrived_ns, timestamp));
    }
    order.gap();
    assert_eq!(order.frame(12_000, Some(9)), Ordered::Pair(9, 12_000));
    assert_eq!(order.frame(15_000, None), Ordered::Waiting);
}

#[test]
fn a_queue_before_the_first_b_frame_is_not_forgotten() {
    let frames: Vec<_> = (0..300).chain(stream(&[2, 0, 1], 100).iter().map(|p| p + 300)).collect();
    let delays = delays(&frames, |_| true, |i| if i >= 200 { 500_000_000 } else { 0 });
    assert!(
        delays[400..].iter().all(|&us| us.abs_diff(500_000) < 70_000),
        "{:?}",
        &delays[400..410]
    );
}

#[test]
fn a_step_back_to_another_timeline_is_no_reordering() {
    let mut order = DecodeOrder::default();
    (0..40).for_each(|i| assert_eq!(order.frame(i * 3000, Some(1)), Ordered::Pair(1, i * 3000)));
    for i in 0..40 {
        assert_eq!(order.frame(i * 3000 + 7, Some(2)), Ordered::Pair(2, i * 3000 + 7));
    }
}
