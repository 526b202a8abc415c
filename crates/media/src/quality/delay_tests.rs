//! Generated arrivals of frames at 25 fps.

use super::*;

const MS: f64 = 1e6;

/// Frames of `seconds` at 25 fps whose one-way delay in ms is `delay_ms(t_s)`, the source's clock
/// slow by `skew_ppm`; returns the reported delays, ms.
fn delays(seconds: usize, skew_ppm: f64, delay_ms: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut meter = DelayMeter::new(90_000);
    (0..seconds * 25)
        .map(|i| {
            let sent_s = i as f64 * 0.04;
            // A slow source's ticks are longer than nominal.
            let arrived_ns = sent_s * (1.0 + skew_ppm / 1e6) * 1e9 + delay_ms(sent_s) * MS;
            let timestamp = (u32::MAX - 90_000).wrapping_add(i as u32 * 3600);
            f64::from(meter.frame(arrived_ns as i64, timestamp)) / 1e3
        })
        .collect()
}

/// Periodic noise of 0 to `ms` that is often zero.
fn noise(t_s: f64, ms: f64) -> f64 {
    ((t_s * 25.0).round() * 7.0) % 11.0 / 10.0 * ms
}

fn max(delays: &[f64]) -> f64 {
    delays.iter().copied().fold(0.0, f64::max)
}

#[test]
fn a_constant_delay_is_invisible() {
    for constant in [0.0, 20.0, 800.0] {
        assert!(max(&delays(120, 0.0, |_| constant)) < 0.01);
    }
}

#[test]
fn skew_does_not_read_as_delay() {
    for skew_ppm in [-100.0, -20.0, 20.0, 100.0] {
        let delays = delays(600, skew_ppm, |t| noise(t, 5.0));
        assert!(max(&delays) < 5.0 + 4.5, "{skew_ppm} ppm: {}", max(&delays));
        let late = delays.get(120 * 25..).unwrap();
        assert!(max(late) < 6.0, "{skew_ppm} ppm after two minutes: {}", max(late));
    }
}

#[test]
fn a_step_that_stays_is_seen_to_the_end_whenever_it_comes() {
    for step_at_s in [5.0, 35.0, 100.0, 300.0, 550.0] {
        let delays = delays(600, 30.0, |t| noise(t, 4.0) + if t >= step_at_s { 80.0 } else { 0.0 });
        let after = delays.get((step_at_s as usize + 1) * 25..).unwrap();
        let least = after.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(
            least > 72.0 && max(after) < 90.0,
            "step at {step_at_s} s: {least} to {}",
            max(after)
        );
    }
}

#[test]
fn growth_is_seen_as_it_grows() {
    let delays = delays(120, 0.0, |t| if t < 60.0 { 0.0 } else { (t - 60.0) * 5.0 });
    for (at_s, expect_ms) in [(59, 0.0), (70, 50.0), (119, 295.0)] {
        assert!((delays[at_s * 25] - expect_ms).abs() < 1.0, "{at_s} s: {}", delays[at_s * 25]);
    }
}

#[test]
fn a_clock_that_is_far_off_does_not_read_as_delay() {
    // 29.97 frames a second that are stamped as 30 are slow by 1,000 ppm; two thousand are 150 ms
    // in 75 s.
    for skew_ppm in [-1_000.0, 300.0, 1_000.0, 2_000.0] {
        let delays = delays(600, skew_ppm, |t| noise(t, 5.0));
        assert!(max(&delays) < 150.0, "{skew_ppm} ppm: {}", max(&delays));
        let late = delays.get(70 * 25..).unwrap();
        assert!(max(late) < 7.0, "{skew_ppm} ppm after a minute: {}", max(late));
    }
}

#[test]
fn growth_from_the_first_second_is_seen_for_a_minute() {
    let delays = delays(120, 0.0, |t| t * 3.0);
    assert!((delays[59 * 25] - 177.0).abs() < 1.0, "{}", delays[59 * 25]);
}

#[test]
fn a_queue_that_fills_and_stays_is_seen_to_the_end() {
    let delays = delays(300, 0.0, |t| (t * 3.0).min(300.0) + noise(t, 4.0));
    let after = delays.get(150 * 25..).unwrap();
    let least = after.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least > 290.0, "{least}");
}

#[test]
fn a_queue_is_seen_whatever_the_clock() {
    // 400 ms accumulate in a minute, and disappear at once.
    let queue = |t: f64| if (300.0..360.0).contains(&t) { (t - 300.0) * 400.0 / 60.0 } else { 0.0 };
    for skew_ppm in [0.0, 1_000.0, -1_000.0] {
        let delays = delays(600, skew_ppm, |t| queue(t) + noise(t, 3.0));
        for (at_s, expect_ms) in
            [(299, 0.0), (315, 100.0), (330, 200.0), (358, 387.0), (362, 0.0), (599, 0.0)]
        {
            let told_ms = delays[at_s * 25];
            assert!((told_ms - expect_ms).abs() < 12.0, "{skew_ppm} ppm, {at_s} s: {told_ms}");
        }
    }
}

#[test]
fn a_burst_of_a_cached_gop_is_soon_forgotten() {
    // The first second of media arrives at once: those frames are late, not those that follow.
    let delays =
        delays(20, 0.0, |t| if t < 1.0 { 1000.0 - t * 1000.0 } else { 0.0 } + noise(t, 2.0));
    assert!(max(delays.get(25..).unwrap()) < 2.1, "{}", max(delays.get(25..).unwrap()));
}

#[test]
fn a_jump_of_the_timestamps_is_not_delay() {
    for jump in [90_000_u32 * 3600, 0_u32.wrapping_sub(90_000 * 3600)] {
        let mut meter = DelayMeter::new(90_000);
        for i in 0..100_u32 {
            let timestamp = i * 3600;
            let timestamp = if i < 50 { timestamp } else { timestamp.wrapping_add(jump) };
            assert_eq!(
                meter.frame(i64::from(i) * 40_000_000, timestamp),
                0,
                "frame {i}, jump {jump}"
            );
        }
    }
}

#[test]
fn a_stall_of_the_server_is_delay() {
    let mut meter = DelayMeter::new(90_000);
    assert_eq!(meter.frame(0, 0), 0);
    assert_eq!(meter.frame(7_040_000_000, 3600), 7_000_000);
}

#[test]
fn a_restart_continues_the_delay_of_the_timeline_before() {
    let mut meter = DelayMeter::new(90_000);
    meter.frame(0, 0);
    assert_eq!(meter.frame(70_000_000, 3600), 30_000);
    meter.restart();
    assert_eq!(meter.frame(110_000_000, 77), 30_000);
    assert_eq!(meter.frame(150_000_000, 77 + 3600), 30_000);
}
