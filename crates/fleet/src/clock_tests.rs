use proptest::prelude::*;

use super::*;
use crate::rows_tests::Numbers;

/// Two clocks and the paths between them. True time is the worker's clock before any step.
#[derive(Clone, Copy, Debug)]
struct Path {
    offset_us: i64,
    drift_ppm: f64,
    there_us: u64,
    back_us: u64,
    jitter_us: u64,
}

impl Path {
    fn offset_at(&self, true_us: i64) -> i64 {
        self.offset_us + (true_us as f64 * self.drift_ppm / 1e6) as i64
    }

    fn exchange(&self, true_us: i64, numbers: &mut Numbers) -> Exchange {
        let there = (self.there_us + numbers.below(self.jitter_us + 1)) as i64;
        let back = (self.back_us + numbers.below(self.jitter_us + 1)) as i64;
        let (received, answered) = (true_us + there, true_us + there + 40);
        Exchange {
            t1: true_us,
            t2: received + self.offset_at(received),
            t3: answered + self.offset_at(answered),
            t4: answered + back,
        }
    }
}

/// The largest bound after the first ten seconds; panics where the truth is outside of it.
fn worst_bound(path: Path, seconds: i64, seed: u64) -> u64 {
    let (mut filter, mut numbers, mut worst) = (ClockFilter::new(), Numbers(seed), 0);
    for second in 0..seconds {
        let now = second * 1_000_000;
        assert_eq!(
            filter.add(path.exchange(now, &mut numbers)),
            ExchangeOutcome::Sample,
            "{path:?}"
        );
        for later in [0, 300_000, 900_000, 20_000_000] {
            let offset = filter.offset_at(now + later).unwrap();
            let error = offset.offset_us.abs_diff(path.offset_at(now + later));
            assert!(
                error <= offset.bound_us,
                "{error} us off at {second} s with {offset:?} of {path:?}"
            );
        }
        if second > 10 {
            worst = worst.max(filter.offset_at(now).unwrap().bound_us);
        }
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_truth_is_within_the_bound(
        offset_us in -2_000_000..2_000_000_i64,
        drift_ppm in -100.0..100.0,
        there_us in 0..60_000_u64,
        back_us in 0..60_000_u64,
        jitter_us in 0..20_000_u64,
        seed in any::<u64>(),
    ) {
        worst_bound(Path { offset_us, drift_ppm, there_us, back_us, jitter_us }, 150, seed);
    }
}

#[test]
fn thirty_milliseconds_of_path_bound_the_offset_to_half_the_round_trip() {
    for (there_us, back_us) in [(30_000, 30_000), (55_000, 5_000), (0, 60_000)] {
        let path =
            Path { offset_us: -2_000_000, drift_ppm: 50.0, there_us, back_us, jitter_us: 5_000 };
        let worst = worst_bound(path, 300, 7);
        assert!((30_000..37_000).contains(&worst), "{worst}");
    }
}

#[test]
fn the_drift_is_found_and_keeps_the_bound_small_when_exchanges_stop() {
    let path =
        Path { offset_us: 1_500_000, drift_ppm: 50.0, there_us: 100, back_us: 120, jitter_us: 30 };
    let (mut filter, mut numbers) = (ClockFilter::new(), Numbers(3));
    assert_eq!((filter.offset_at(0), filter.round_trip_us_min()), (None, None));
    (0..120).for_each(|second| {
        assert_eq!(
            filter.add(path.exchange(second * 1_000_000, &mut numbers)),
            ExchangeOutcome::Sample
        );
    });
    let (drift, bound) = filter.drift_ppm;
    assert!((drift - 50.0).abs() <= bound && bound < 25.0, "{drift} within {bound}");
    let later = filter.offset_at(180_000_000).unwrap();
    assert!(later.offset_us.abs_diff(path.offset_at(180_000_000)) <= later.bound_us);
    assert!(later.bound_us < 2_000, "{later:?}");
    assert!(filter.round_trip_us_min().is_some_and(|us| (220..300).contains(&us)));
}

#[test]
fn a_step_of_a_clock_is_told_and_not_averaged() {
    let path =
        Path { offset_us: 0, drift_ppm: 20.0, there_us: 15_000, back_us: 15_000, jitter_us: 3_000 };
    for step_us in [-5_000_000, 70_000, 3_600_000_000] {
        let (mut filter, mut numbers) = (ClockFilter::new(), Numbers(9));
        for second in 0..100_i64 {
            let mut exchange = path.exchange(second * 1_000_000, &mut numbers);
            let stepped = if second >= 60 { step_us } else { 0 };
            (exchange.t1, exchange.t4) = (exchange.t1 + stepped, exchange.t4 + stepped);
            let heard = filter.add(exchange);
            if second == 60 {
                let ExchangeOutcome::Step { by_us } = heard else { panic!("{step_us}: {heard:?}") };
                assert!(by_us.abs_diff(-step_us) < 40_000, "{by_us}");
            } else {
                assert_eq!(heard, ExchangeOutcome::Sample, "{step_us} at {second}");
            }
            let now = second * 1_000_000;
            let offset = filter.offset_at(now + stepped).unwrap();
            assert!(
                offset.offset_us.abs_diff(path.offset_at(now) - stepped) <= offset.bound_us,
                "{offset:?}"
            );
        }
    }
}

#[test]
fn times_that_cannot_be_are_ignored() {
    let mut filter = ClockFilter::new();
    for (t1, t2, t3, t4) in [
        (0, 0, 50, 10),
        (10, 0, 0, 5),
        (0, 9, 3, 10),
        (i64::MIN, 0, 0, i64::MAX),
        (0, i64::MIN, i64::MAX, 10),
    ] {
        assert_eq!(filter.add(Exchange { t1, t2, t3, t4 }), ExchangeOutcome::Impossible);
    }
    assert_eq!(filter.offset_at(0), None);
}
