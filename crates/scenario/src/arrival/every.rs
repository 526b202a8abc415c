//! Joins at a regular interval.

use std::time::Duration;

use super::{Arrival, Jitter, jitter, joins_in_a_second};
use crate::units::shown;

/// One join per `interval`, the first at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// Between intended joins; zero: all at once.
    pub interval: Duration,
    /// How much later each join comes; `None`: the joins are exactly an interval apart.
    pub jitter: Option<Jitter>,
}

impl Default for Every {
    /// One join each 100 ms, as OvenRtcTester does.
    fn default() -> Self {
        Self { interval: Duration::from_millis(100), jitter: Some(Jitter::default()) }
    }
}

impl Arrival for Every {
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_> {
        self.offsets_before(size, Duration::MAX)
    }

    fn offsets_before(&self, size: u32, end: Duration) -> Box<dyn Iterator<Item = Duration> + '_> {
        let place = |index: u32| self.interval.saturating_mul(index);
        let room = end.saturating_sub(place(size.saturating_sub(1)));
        let places = (0..size).map(place);
        let delays = jitter::delays(self.jitter, self.interval, room, size);
        Box::new(places.zip(delays).map(|(place, delay)| place.saturating_add(delay)))
    }

    fn joins_per_s(&self, size: u32) -> f64 {
        f64::from(joins_in_a_second(self.interval, size))
    }

    fn describe(&self, _size: u32) -> String {
        if self.interval.is_zero() {
            return "all at once".into();
        }
        let one = format!("one every {}", shown(self.interval));
        self.jitter.map_or_else(|| one.clone(), |jitter| format!("{one} {}", jitter.describe()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_an_interval_apart() {
        let every = |ms| Every { interval: Duration::from_millis(ms), jitter: None };
        let ms: Vec<u128> = every(100).offsets(4).map(|at| at.as_millis()).collect();
        assert_eq!(ms, [0, 100, 200, 300]);
        assert_eq!((every(100).joins_per_s(1000), every(100).joins_per_s(3)), (10.0, 3.0));
        assert_eq!(every(0).joins_per_s(7), 7.0);
    }

    #[test]
    fn with_jitter_each_join_comes_within_its_own_interval() {
        for (interval, size) in [(100_u64, 1000), (200, 20), (1000, 60), (2500, 4), (7, 5000)] {
            let every = Every {
                interval: Duration::from_millis(interval),
                jitter: Some(Jitter::default()),
            };
            let places = every.offsets(size).map(|at| at.as_nanos() / every.interval.as_nanos());
            assert!(places.eq(0..u128::from(size)), "{size} each {interval} ms");
        }
    }

    #[test]
    fn jitter_brings_no_join_beyond_the_end_that_would_come_before_it_without() {
        for seed in 0..50 {
            let every = Every { interval: Duration::from_secs(5), jitter: Some(Jitter { seed }) };
            let end = Duration::from_secs(12);
            let joins: Vec<Duration> = every.offsets_before(3, end).collect();
            assert!(
                joins.is_sorted() && joins[2] < end && joins[2] >= every.interval * 2,
                "{joins:?}"
            );
            assert!(every.offsets_before(3, Duration::MAX).eq(every.offsets(3)));
            let is_late = |at: &Duration| *at >= every.interval * 2;
            assert!(
                every
                    .offsets_before(3, Duration::from_secs(10))
                    .last()
                    .is_some_and(|at| is_late(&at))
            );
        }
    }
}
