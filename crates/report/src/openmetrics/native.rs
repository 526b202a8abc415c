//! Native histograms of times: Prometheus's exponential buckets, of which each octave has eight.

use std::collections::BTreeMap;

/// Each octave is divided into 2^SCHEMA buckets, so that each is 9 % wide.
pub(crate) const SCHEMA: i32 = 3;

/// Up to how many seconds a time counts as none: 2^-10, a tenth of what anybody notices.
pub(crate) const ZERO_SECONDS: f64 = 1.0 / 1024.0;

/// The same in microseconds.
const ZERO_US: f64 = ZERO_SECONDS * 1e6;

/// The bucket that ends where times count as none. That of index 0 ends at 1 s.
const ZERO_INDEX: i32 = -80;

/// The last bucket, which ends at 2^10 s. It has longer times, too, so that there are 160 at most.
const LAST_INDEX: i32 = 80;

/// Where the buckets of an octave begin, by where it begins: the powers of 2^(1/8).
const PARTS: [f64; 1 << SCHEMA] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    std::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// Times, counted by exponential bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NativeBuckets {
    /// Times that count as none.
    pub(crate) zero: u64,
    /// Times of each bucket that has any, by its index: that of `n` ends at 2^(n/8) s, which is in
    /// it.
    pub(crate) by_index: BTreeMap<i32, u64>,
}

impl NativeBuckets {
    /// Counts so many times of this length.
    pub(super) fn tally(&mut self, us: u64, more: u64) {
        let count = match index_of(us) {
            Some(index) => self.by_index.entry(index).or_default(),
            None => &mut self.zero,
        };
        *count = count.saturating_add(more);
    }
}

/// The bucket of a time; `None` of one that counts as none.
fn index_of(us: u64) -> Option<i32> {
    let zeros = us as f64 / ZERO_US;
    // The octave in which it is, and where in it.
    let octave = (zeros as u64).checked_ilog2()?;
    let part = zeros / (1_u64 << octave) as f64;
    let within = PARTS.partition_point(|begin| *begin < part);
    let buckets = PARTS.len() * octave as usize + within;
    Some((ZERO_INDEX + buckets as i32).min(LAST_INDEX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_in_the_bucket_that_it_ends() {
        for (us, expect) in [
            (0, None),
            (976, None),
            (977, Some(-79)),
            (15_625, Some(-48)),
            (15_626, Some(-47)),
            (250_000, Some(-16)),
            (999_999, Some(0)),
            (1_000_000, Some(0)),
            (1_000_001, Some(1)),
            (1_090_507, Some(1)),
            (1_090_508, Some(2)),
            (2_000_000, Some(8)),
            (1_024_000_000, Some(80)),
            (1_024_000_001, Some(80)),
            (u64::MAX, Some(80)),
        ] {
            assert_eq!(index_of(us), expect, "{us}");
        }
    }

    #[test]
    fn every_time_is_between_the_bounds_of_its_bucket() {
        let seconds = |index: i32| 2_f64.powf(f64::from(index) / 8.0);
        let mut us: f64 = 977.0;
        while us < 1_024e6 {
            let index = index_of(us as u64).unwrap();
            let time = us.floor() / 1e6;
            let near = 1.0 + 1e-12;
            assert!(seconds(index - 1) < time * near && time < seconds(index) * near, "{time}");
            us *= 1.003;
        }
    }

    #[test]
    fn no_times_take_more_than_160_buckets_and_none_is_lost() {
        let mut buckets = NativeBuckets::default();
        let times = (0..64).flat_map(|bit| (0..100).map(move |n| (1_u64 << bit) / 100 * (100 + n)));
        times.for_each(|us| buckets.tally(us, 2));
        assert!((150..=160).contains(&buckets.by_index.len()), "{buckets:?}");
        let counted: u64 = buckets.by_index.values().sum();
        assert_eq!(buckets.zero + counted, 2 * 64 * 100);
    }
}
