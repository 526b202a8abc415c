//! Joins at a constant interval.

use std::time::Duration;

use super::{Arrival, joins_in_a_second};
use crate::units::shown;

/// One join per `interval`, the first at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// Between intended joins; zero: all at once.
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
            false => format!("one every {}", shown(self.interval)),
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
