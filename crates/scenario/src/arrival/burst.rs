//! Groups that join at once, at a constant interval.

use std::time::Duration;

use super::{Arrival, joins_in_a_second};
use crate::units::shown;

/// `size` joins at once, the next group `every` later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Joins per group, at least 1.
    pub size: u32,
    /// Between groups.
    pub every: Duration,
}

impl Arrival for Burst {
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_> {
        Box::new((0..size).map(|index| self.every.saturating_mul(index / self.size.max(1))))
    }

    fn joins_per_s(&self, size: u32) -> f64 {
        let groups = size.div_ceil(self.size.max(1));
        (f64::from(joins_in_a_second(self.every, groups)) * f64::from(self.size))
            .min(f64::from(size))
    }

    fn describe(&self, _size: u32) -> String {
        format!("{} at once every {}", self.size, shown(self.every))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_arrive_together_and_the_last_may_be_smaller() {
        let burst = Burst { size: 2, every: Duration::from_secs(10) };
        let s: Vec<u64> = burst.offsets(5).map(|at| at.as_secs()).collect();
        assert_eq!(s, [0, 0, 10, 10, 20]);
        assert_eq!((burst.joins_per_s(5), burst.joins_per_s(1)), (2.0, 1.0));
    }
}
