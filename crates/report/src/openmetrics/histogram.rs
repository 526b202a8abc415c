//! Histograms of times: classic ones, by fixed bounds, and native ones beside them.

use throng_observation::Distribution;

use super::native::NativeBuckets;

/// The upper bounds of buckets, microseconds, and as they are written, in seconds: from the delay
/// of a frame on a line to the buffer of a player.
pub(crate) const BOUNDS: [(u64, &str); 14] = [
    (5_000, "0.005"),
    (10_000, "0.01"),
    (20_000, "0.02"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (200_000, "0.2"),
    (500_000, "0.5"),
    (1_000_000, "1.0"),
    (2_000_000, "2.0"),
    (3_000_000, "3.0"),
    (5_000_000, "5.0"),
    (10_000_000, "10.0"),
    (30_000_000, "30.0"),
    (60_000_000, "60.0"),
];

/// Times, counted by bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    /// Times up to each bound.
    pub(crate) up_to: [u64; BOUNDS.len()],
    /// The same times by exponential bounds.
    pub(crate) native: NativeBuckets,
    /// All times.
    pub(crate) count: u64,
    /// Their sum, microseconds.
    pub(crate) sum_us: f64,
}

impl Buckets {
    /// Times up to each bound, in seconds and as it is written; that without bound last.
    pub(super) fn up_to_each(&self) -> impl Iterator<Item = (f64, &'static str, u64)> {
        let bounded = BOUNDS.iter().zip(self.up_to);
        let bounded = bounded.map(|((us, written), count)| (*us as f64 / 1e6, *written, count));
        bounded.chain([(f64::INFINITY, "+Inf", self.count)])
    }

    /// Adds a time.
    pub(crate) fn record(&mut self, us: u64) {
        self.tally(us, 1);
        self.sum_us += us as f64;
    }

    /// Adds all times of a distribution of microseconds. One counts as the least that it cannot be
    /// told from: in either form, so that they have the same times up to a bound of both.
    pub(super) fn add(&mut self, times: &Distribution) {
        let Some(mean_us) = times.mean() else { return };
        times.each(|us, more| self.tally(us, more.into()));
        self.sum_us += mean_us * times.count() as f64;
    }

    fn tally(&mut self, us: u64, more: u64) {
        for ((bound, _), count) in BOUNDS.iter().zip(&mut self.up_to) {
            *count = count.saturating_add(if us <= *bound { more } else { 0 });
        }
        self.native.tally(us, more);
        self.count = self.count.saturating_add(more);
    }
}
