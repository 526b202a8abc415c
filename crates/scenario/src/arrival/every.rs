//! One join after another, evenly: the drip of a tap.

use std::time::Duration;

use throng_observation::units;

use super::{Arrival, joins_in_a_second};

/// A join each `interval`, the first at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// From one intended join to the next; zero lets everybody arrive at once.
    pub interval: Duration,
}

impl Arrival for Every {
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_> {
        Box::new((0..size).map(|index| self.interval.saturating_mul(index)))
    }

    fn joins_per_s(&self, size: u32) -> f64 {
        joins_in_a_second(self.interval, size)
    }

    fn describe(&self, _size: u32) -> String {
        match self.interval.is_zero() {
            true => "all at once".into(),
            false => format!("one every {}", units::duration_ms(self.interval.as_secs_f64() * 1e3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_an_interval_apart() {
        let every = Every { interval: Duration::from_millis(100) };
        let ms: Vec<u128> = every.offsets(4).map(|at| at.as_millis()).collect();
        assert_eq!(ms, [0, 100, 200, 300]);
        assert_eq!((every.joins_per_s(1000), every.joins_per_s(3)), (10.0, 3.0));
        assert_eq!(Every { interval: Duration::ZERO }.joins_per_s(7), 7.0);
    }
}
