//! Given lows: which slope is a clock's, and which a queue's.

use super::*;

/// The skew estimated from lows of 5 s over `seconds`, ppm, where the lowest delay at a time in
/// seconds is `low_ms`.
fn estimate_ppm(seconds: u32, low_ms: impl Fn(f64) -> f64) -> f64 {
    filled(seconds, low_ms).skew() * 1e6
}

fn filled(seconds: u32, low_ms: impl Fn(f64) -> f64) -> Lows {
    let mut lows = Lows::default();
    let mut at_s = 0;
    while at_s < seconds {
        lows.add(Low::of(i64::from(at_s) * 1_000_000_000, (low_ms(f64::from(at_s)) * 1e6) as i64));
        at_s += u32::try_from(lows.window_ns() / 1_000_000_000).unwrap();
    }
    lows
}

#[test]
fn a_line_is_a_clock_after_a_minute_and_not_before() {
    for ppm in [-3_000.0, 300.0, 1_000.0, 4_900.0] {
        let line = |t: f64| t * ppm / 1e3;
        assert_eq!(estimate_ppm(60, line), 0.0, "{ppm} ppm");
        for seconds in [70, 120, 600, 4_000] {
            let skew = estimate_ppm(seconds, line);
            assert!((skew - ppm).abs() < 1.0, "{ppm} ppm after {seconds} s: {skew}");
        }
    }
}

#[test]
fn what_is_no_line_from_its_beginning_to_the_end_is_a_queue() {
    type Shape = fn(f64) -> f64;
    let shapes: [(&str, Shape); 6] = [
        ("faster than any clock", |t| t * 6.7),
        ("it fills, and stays full", |t| (t * 3.0).min(300.0)),
        ("nothing waits, then it fills", |t| (t - 100.0).max(0.0) * 3.0),
        ("it fills and empties, again and again", |t| (t % 90.0) * 3.0),
        ("it wanders upwards", |t| t + 20.0 * (t / 17.0).sin()),
        ("a step that stays", |t| if t < 200.0 { 0.0 } else { 80.0 }),
    ];
    for (what, shape) in shapes {
        for seconds in [200, 300, 400] {
            let skew = estimate_ppm(seconds, shape);
            assert!(skew.abs() <= 200.0, "{what}: {skew} ppm after {seconds} s");
        }
    }
}

#[test]
fn a_queue_on_a_skewed_clock_leaves_the_skew_as_it_is() {
    for filled_from in [0.0, 60.0, 300.0, 540.0] {
        let hump =
            |t: f64| if t >= filled_from && t < filled_from + 60.0 { t - filled_from } else { 0.0 };
        for seconds in [660, 700, 800] {
            let skew = estimate_ppm(seconds, |t| t + hump(t) * 6.7);
            assert!(
                (skew - 1_000.0).abs() < 20.0,
                "from {filled_from} s, after {seconds} s: {skew}"
            );
        }
    }
    let stepped = estimate_ppm(600, |t| t + if t < 200.0 { 0.0 } else { 80.0 });
    assert!((stepped - 1_000.0).abs() < 20.0, "{stepped}");
}

#[test]
fn the_sender_s_reports_have_the_last_word() {
    // A line of 1,000 ppm over 200 s, and reports each second by which the media clock is slow by
    // `slow`.
    let with_reports = |slow: f64, off_by_s: fn(u64) -> f64| {
        let mut lows = Lows::default();
        for second in 0..200_u64 {
            let media_s = second as f64 * (1.0 - slow) + off_by_s(second);
            let timestamp = (u32::MAX - 90_000).wrapping_add((media_s * 90_000.0) as i64 as u32);
            lows.sender_report(
                1_700_000_000_000_000_000 + second * 1_000_000_000,
                timestamp,
                90_000,
            );
            if second % 5 == 0 {
                lows.add(Low::of(second as i64 * 1_000_000_000, second as i64 * 1_000_000));
            }
        }
        lows.skew() * 1e6
    };
    assert!((with_reports(0.001, |_| 0.0) - 1_000.0).abs() < 1.0, "they say the same");
    assert!((with_reports(0.001, |second| (second % 2) as f64 * 0.03) - 1_000.0).abs() < 1.0);
    assert_eq!(with_reports(0.0, |_| 0.0), 0.0, "the clock is right: it is a queue");
}
