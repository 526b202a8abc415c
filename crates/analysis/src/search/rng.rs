//! A small generator of numbers that are the same every time, for simulations (SplitMix64).

use throng_observation::seed;

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// From 0 to below 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (seed::next(&mut self.0) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, by the sum of twelve.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}
