//! Who plays which join: weighted shares, such that the crowd grows on all workers together.
//!
//! A worker twice as fast gets twice as many joins, at every moment and not only at the end: a
//! search grows the crowd join by join, and each step must load all workers alike. The order is
//! that of the chairman assignment problem (R. Tijdeman, *The chairman assignment problem*,
//! Discrete Mathematics 32, 1980): after any number of joins each worker is less than one join away
//! from its exact share. With equal weights it is `number % workers`, as `Share` of the scenario
//! has it.

/// Longest cycle after which the assignment repeats. Weights whose sum is larger are rounded.
const CYCLE_MAX: u64 = 1 << 14;

/// Most workers of a fleet.
pub const WORKERS_MAX: usize = 4_096;

/// The assignment of joins to workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    weights: Vec<u64>,
    /// The worker of each join of a cycle.
    cycle: Vec<u16>,
}

/// Why weights give no shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharesError {
    /// There are no workers.
    #[error("a fleet has at least one worker")]
    NoWorkers,
    /// Too many workers.
    #[error("{workers} workers are more than the {WORKERS_MAX} that a fleet can have")]
    TooManyWorkers {
        /// Their number.
        workers: usize,
    },
    /// A worker without weight would play nothing.
    #[error("worker {worker} has weight 0: it would play nobody; leave it out")]
    NoWeight {
        /// Its index, from 0.
        worker: usize,
    },
}

impl Shares {
    /// The shares of workers with these weights, such as the numbers of viewers that `throng
    /// calibrate` found.
    ///
    /// # Errors
    /// [`SharesError`] for no worker, too many of them, and a weight of 0.
    pub fn of(weights: &[u32]) -> Result<Self, SharesError> {
        if weights.is_empty() {
            return Err(SharesError::NoWorkers);
        }
        if weights.len() > WORKERS_MAX {
            return Err(SharesError::TooManyWorkers { workers: weights.len() });
        }
        if let Some(worker) = weights.iter().position(|weight| *weight == 0) {
            return Err(SharesError::NoWeight { worker });
        }
        let divisor = weights.iter().copied().fold(0, greatest_common_divisor);
        let weights: Vec<u64> =
            weights.iter().map(|weight| u64::from(weight / divisor.max(1))).collect();
        let sum: u64 = weights.iter().sum();
        let weights = if sum > CYCLE_MAX { rounded(&weights, sum) } else { weights };
        let cycle = cycle(&weights);
        Ok(Self { weights, cycle })
    }

    /// The worker that plays the join of this number, which is its participant's id.
    #[must_use]
    pub fn worker_of(&self, number: u32) -> u16 {
        let place = number as usize % self.cycle.len().max(1);
        self.cycle.get(place).copied().unwrap_or(0)
    }

    /// How many of the first `joins` joins each worker plays, by worker.
    #[must_use]
    pub fn counts(&self, joins: u32) -> Vec<u32> {
        let length = u32::try_from(self.cycle.len()).unwrap_or(u32::MAX).max(1);
        let (cycles, rest) = (joins / length, joins % length);
        let mut counts: Vec<u32> = self
            .weights
            .iter()
            .map(|weight| cycles * u32::try_from(*weight).unwrap_or(u32::MAX))
            .collect();
        for worker in self.cycle.iter().take(rest as usize) {
            if let Some(count) = counts.get_mut(usize::from(*worker)) {
                *count += 1;
            }
        }
        counts
    }

    /// The workers that play none of the first `joins` joins, because there are more workers than
    /// joins or their weight is small. Not an error: a search may begin with fewer people than
    /// machines.
    #[must_use]
    pub fn idle(&self, joins: u32) -> Vec<u16> {
        (0..)
            .zip(self.counts(joins))
            .filter(|(_, count)| *count == 0)
            .map(|(worker, _)| worker)
            .collect()
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.weights.len()
    }
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The weights scaled down to a sum near [`CYCLE_MAX`]; none becomes 0.
fn rounded(weights: &[u64], sum: u64) -> Vec<u64> {
    weights.iter().map(|weight| ((weight * CYCLE_MAX + sum / 2) / sum).max(1)).collect()
}

/// The worker of each join of one cycle, by Tijdeman's rule: of those that have earned a join, the
/// one whose join is due first. What a worker has earned is in units of a join over `sum`.
fn cycle(weights: &[u64]) -> Vec<u16> {
    let (workers, sum) = (weights.len() as i128, weights.iter().sum::<u64>() as i128);
    let slack = 2 * workers - 2;
    let mut earned: Vec<i128> = vec![0; weights.len()];
    (0..sum)
        .map(|_| {
            earned
                .iter_mut()
                .zip(weights)
                .for_each(|(earned, weight)| *earned += i128::from(*weight));
            let due = |worker: usize, earned: i128, weight: u64| {
                // A worker alone has always earned its join.
                (slack * earned >= sum).then_some((
                    worker,
                    sum * (slack - 1) - slack * earned,
                    i128::from(weight),
                ))
            };
            let candidates = earned.iter().zip(weights).enumerate();
            let next = candidates
                .filter_map(|(worker, (earned, weight))| due(worker, *earned, *weight))
                .min_by(|(_, wait, weight), (_, other_wait, other)| {
                    (wait * other).cmp(&(other_wait * weight))
                });
            let worker = next.map_or(0, |(worker, ..)| worker);
            if let Some(earned) = earned.get_mut(worker) {
                *earned -= sum;
            }
            u16::try_from(worker).unwrap_or(u16::MAX)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_weights_deal_the_joins_out_in_turn() {
        for workers in 1..9_u32 {
            let shares = Shares::of(&vec![7; workers as usize]).unwrap();
            assert!(
                (0..100).all(|number| u32::from(shares.worker_of(number)) == number % workers),
                "{workers}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_prefix_is_split_by_the_weights(weights in prop::collection::vec(1..200_u32, 1..12)) {
            let shares = Shares::of(&weights).unwrap();
            let sum: u32 = weights.iter().sum();
            let mut counts = vec![0; weights.len()];
            for joins in 1..=2 * sum {
                counts[usize::from(shares.worker_of(joins - 1))] += 1;
                for (count, weight) in counts.iter().zip(&weights) {
                    let exact = f64::from(joins) * f64::from(*weight) / f64::from(sum);
                    prop_assert!((f64::from(*count) - exact).abs() < 1.0, "{} of {} after {}", count, exact, joins);
                }
            }
            prop_assert_eq!(shares.counts(2 * sum), counts);
        }
    }

    #[test]
    fn large_weights_are_rounded_and_stay_in_proportion() {
        let shares = Shares::of(&[1_999_993, 999_983, 1]).unwrap();
        let counts = shares.counts(300_000);
        assert!(counts[0].abs_diff(200_000) < 30 && counts[1].abs_diff(100_000) < 30, "{counts:?}");
        assert!(counts[2] > 0);
    }

    #[test]
    fn workers_without_a_join_are_told_and_those_that_cannot_have_one_are_errors() {
        assert_eq!(Shares::of(&[1; 5]).unwrap().idle(3), [3, 4]);
        assert_eq!(Shares::of(&[1; 5]).unwrap().idle(5), Vec::<u16>::new());
        assert_eq!(Shares::of(&[]), Err(SharesError::NoWorkers));
        assert_eq!(Shares::of(&[3, 0]), Err(SharesError::NoWeight { worker: 1 }));
        assert_eq!(Shares::of(&[1; 5_000]), Err(SharesError::TooManyWorkers { workers: 5_000 }));
    }
}
