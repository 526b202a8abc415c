//! The distribution of a cohort over streams: the values of `{stream}` in a URL.

use std::sync::Arc;

use throng_observation::seed;

mod keys;
pub(crate) use keys::STREAMS;

/// Most streams of a cohort.
pub(crate) const STREAMS_MAX: u32 = 100_000;
/// Largest exponent of Zipf's law: beyond it, practically all viewers are on the first stream.
pub(crate) const ZIPF_MAX: f64 = 5.0;

/// The streams of a cohort, numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Streams {
    count: u32,
    distribution: StreamDistribution,
    /// By stream, the share of the crowd on it or on a more popular one. Empty for round robin.
    shares: Arc<[f64]>,
}

/// How participants are distributed over streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamDistribution {
    /// Equal numbers on each stream, to within one.
    RoundRobin,
    /// By Zipf's law, as real audiences: stream `k` has a share proportional to 1 / (`k` +
    /// 1)^`exponent`, drawn from `seed`.
    Zipf {
        /// A larger exponent concentrates viewers on the first streams; 1 is Zipf's law proper.
        exponent: f64,
        /// Seed of the draw.
        seed: u64,
    },
}

impl Streams {
    /// `count` streams, 1 at least.
    #[must_use]
    pub fn new(count: u32, distribution: StreamDistribution) -> Self {
        let count = count.clamp(1, STREAMS_MAX);
        let shares = match distribution {
            StreamDistribution::RoundRobin => Arc::default(),
            StreamDistribution::Zipf { exponent, .. } => cumulative(count, exponent),
        };
        Self { count, distribution, shares }
    }

    /// The number of streams.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How participants are distributed over them.
    #[must_use]
    pub fn distribution(&self) -> StreamDistribution {
        self.distribution
    }

    /// The stream of the participant of that number in the cohort: the same at every call.
    #[must_use]
    pub fn of(&self, number: u32) -> u32 {
        match self.distribution {
            StreamDistribution::RoundRobin => number % self.count,
            StreamDistribution::Zipf { seed, .. } => {
                let seed = seed::of(seed, u64::from(number));
                let drawn = fastrand::Rng::with_seed(seed).f64();
                let at = self.shares.partition_point(|share| *share <= drawn);
                u32::try_from(at).unwrap_or(u32::MAX).min(self.count - 1)
            }
        }
    }

    /// A phrase for the plan.
    pub(crate) fn describe(&self) -> String {
        match self.distribution {
            StreamDistribution::RoundRobin => format!("on {} streams in turn", self.count),
            StreamDistribution::Zipf { exponent, seed } => {
                format!(
                    "on {} streams by Zipf's law (exponent {exponent}, seed {seed})",
                    self.count
                )
            }
        }
    }
}

fn cumulative(count: u32, exponent: f64) -> Arc<[f64]> {
    let mut sum = 0.0;
    let mut shares: Vec<f64> = (1..=count)
        .map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        })
        .collect();
    shares.iter_mut().for_each(|share| *share /= sum);
    shares.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dealt_in_turn_all_streams_have_as_many() {
        let streams = Streams::new(4, StreamDistribution::RoundRobin);
        assert_eq!((0..6).map(|number| streams.of(number)).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn by_zipfs_law_the_second_has_half_of_the_first_and_the_draw_repeats() {
        let streams = Streams::new(10, StreamDistribution::Zipf { exponent: 1.0, seed: 7 });
        let mut viewers = [0_u32; 10];
        (0..60_000).for_each(|number| viewers[streams.of(number) as usize] += 1);
        let of_first = |rank: usize| f64::from(viewers[rank - 1]) / f64::from(viewers[0]);
        for rank in [2, 3, 5, 10] {
            assert!((of_first(rank) * rank as f64 - 1.0).abs() < 0.05, "{rank}: {viewers:?}");
        }
        let other = Streams::new(10, StreamDistribution::Zipf { exponent: 1.0, seed: 8 });
        let first =
            |streams: &Streams| (0..50).map(|number| streams.of(number)).collect::<Vec<_>>();
        assert_eq!(first(&streams), first(&streams.clone()));
        assert_ne!(first(&streams), first(&other));
    }

    #[test]
    fn a_law_without_weight_is_even_and_a_steep_one_leaves_all_on_the_first() {
        let flat = Streams::new(2, StreamDistribution::Zipf { exponent: 0.0, seed: 1 });
        let on_first = (0..10_000).filter(|number| flat.of(*number) == 0).count();
        assert!((4_800..5_200).contains(&on_first), "{on_first}");
        let steep = Streams::new(2, StreamDistribution::Zipf { exponent: ZIPF_MAX, seed: 1 });
        assert!((0..1_000).filter(|number| steep.of(*number) == 0).count() > 940);
    }
}
