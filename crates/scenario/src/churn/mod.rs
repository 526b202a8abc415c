//! Churn: how long participants stay, and whether others replace them.

use std::time::Duration;

use throng_observation::seed;

use crate::arrival::exponential;

mod keys;
pub(crate) use keys::STAY;

/// The stay of each participant of a cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// From the intended join to the leave.
    pub time: StayTime,
    /// A new participant joins when one leaves, so that the size of the crowd is constant.
    pub rejoin: bool,
}

/// The distribution of stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StayTime {
    /// The same for all participants.
    Constant(Duration),
    /// Exponential: the probability of leaving is the same in every second.
    Exponential {
        /// The mean stay.
        mean: Duration,
        /// Seed of the random stays.
        seed: u64,
    },
}

/// All participants that are present leave at once and join again, as after a network failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// When they leave, from the start of the run.
    pub at: Duration,
    /// The time over which they join again, evenly spaced, with the jitter of their arrival; zero:
    /// all at once.
    pub within: Duration,
}

impl Stay {
    /// The mean stay.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match self.time {
            StayTime::Constant(time) => time,
            StayTime::Exponential { mean, .. } => mean,
        }
    }

    /// The stays of participant `member` of the cohort and of those that replace it: endless, and
    /// the same at every call.
    pub fn times(&self, member: u32) -> impl Iterator<Item = Duration> + use<> {
        let time = self.time;
        let seed = match time {
            StayTime::Constant(_) => 0,
            // Each member has its own random stream, so that a share of the crowd draws the same
            // stays as the whole.
            StayTime::Exponential { seed, .. } => seed::of(seed, u64::from(member)),
        };
        let mut random = fastrand::Rng::with_seed(seed);
        std::iter::repeat_with(move || match time {
            StayTime::Constant(time) => time,
            StayTime::Exponential { mean, .. } => {
                Duration::try_from_secs_f64(exponential(&mut random, mean.as_secs_f64()))
                    .unwrap_or(Duration::MAX)
                    .max(SHORTEST_STAY)
            }
        })
    }
}

/// The shortest visit. It also bounds how many participants can follow one another in a slot within
/// a moment.
pub(crate) const SHORTEST_STAY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential_stay(seed: u64) -> Stay {
        Stay { time: StayTime::Exponential { mean: Duration::from_secs(30), seed }, rejoin: true }
    }

    #[test]
    fn an_exact_stay_never_varies() {
        let stay = Stay { time: StayTime::Constant(Duration::from_secs(9)), rejoin: false };
        assert!(stay.times(3).take(5).all(|time| time == Duration::from_secs(9)));
    }

    #[test]
    fn the_mean_stay_is_what_was_asked_for_across_people_and_across_visits() {
        let across_people: f64 = (0..20_000)
            .filter_map(|m| exponential_stay(1).times(m).next())
            .map(|t| t.as_secs_f64())
            .sum();
        let across_visits: f64 =
            exponential_stay(1).times(0).take(20_000).map(|t| t.as_secs_f64()).sum();
        for sum in [across_people, across_visits] {
            assert!((sum / 20_000.0 / 30.0 - 1.0).abs() < 0.035, "{}", sum / 20_000.0);
        }
    }

    #[test]
    fn stays_repeat_by_seed_and_differ_by_person() {
        let stays = |seed, member| exponential_stay(seed).times(member).take(4).collect::<Vec<_>>();
        assert_eq!(stays(1, 0), stays(1, 0));
        assert_ne!(stays(1, 0), stays(1, 1));
        assert_ne!(stays(1, 0), stays(2, 0));
    }
}
