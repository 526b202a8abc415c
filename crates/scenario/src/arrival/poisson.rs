//! A Poisson process: independent users join at a constant mean rate.

use std::time::Duration;

use super::Arrival;

/// Exponential intervals with mean `1 / rate_per_s`, drawn from `seed`, so that two runs of one
/// scenario offer the same load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson {
    /// Mean joins per second, above 0.
    pub rate_per_s: f64,
    /// Seed of the random intervals.
    pub seed: u64,
}

impl Arrival for Poisson {
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut at_s = 0.0_f64;
        let mean_s = 1.0 / self.rate_per_s;
        // As with every arrival, the first join is the start of the run: RunTime 0.
        Box::new((0..size).map(move |index| {
            if index > 0 {
                at_s += exponential(&mut random, mean_s);
            }
            Duration::try_from_secs_f64(at_s).unwrap_or(Duration::MAX)
        }))
    }

    fn joins_per_s(&self, _size: u32) -> f64 {
        self.rate_per_s
    }

    fn describe(&self, _size: u32) -> String {
        format!("{} joins/s on average (Poisson, seed {})", self.rate_per_s, self.seed)
    }
}

/// A draw from the exponential distribution with this mean, by inversion; `1 - u` is in `(0, 1]`,
/// so the logarithm is finite.
pub(crate) fn exponential(random: &mut fastrand::Rng, mean: f64) -> f64 {
    -mean * (1.0 - random.f64()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_what_was_asked_for() {
        for (rate_per_s, seed) in [(5.0, 7), (0.1, 1), (1000.0, 42)] {
            let size = 20_000;
            let last = Poisson { rate_per_s, seed }.offsets(size).last().unwrap();
            let rate = f64::from(size - 1) / last.as_secs_f64();
            // 5 standard deviations of the mean of 20,000 exponential gaps are 3.5 %.
            assert!((rate / rate_per_s - 1.0).abs() < 0.035, "{rate} for {rate_per_s}");
        }
    }

    #[test]
    fn gaps_are_exponential_not_even() {
        let at: Vec<f64> = Poisson { rate_per_s: 1.0, seed: 3 }
            .offsets(20_000)
            .map(|at| at.as_secs_f64())
            .collect();
        let longer_than_mean =
            at.windows(2).filter(|w| w[1] - w[0] > 1.0).count() as f64 / 19_999.0;
        // P(gap > mean) = 1/e.
        assert!((longer_than_mean - (-1.0_f64).exp()).abs() < 0.02, "{longer_than_mean}");
    }

    #[test]
    fn another_seed_is_another_crowd() {
        let offsets = |seed| Poisson { rate_per_s: 5.0, seed }.offsets(10).collect::<Vec<_>>();
        assert_ne!(offsets(1), offsets(2));
    }
}
