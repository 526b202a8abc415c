//! Arrivals: schedules of intended joins, one kind per file. All are open models: a slow server
//! does not slow them.

use std::time::Duration;

mod keys;
pub(crate) use keys::ARRIVAL;
mod jitter;
pub use jitter::Jitter;
mod every;
pub use every::Every;
mod ramp;
pub use ramp::Ramp;
mod burst;
pub use burst::Burst;
mod poisson;
pub use poisson::Poisson;
pub(crate) use poisson::exponential;

/// A schedule of intended joins.
pub trait Arrival {
    /// The intended joins of `size` participants: exactly `size` times from the start of the run,
    /// in ascending order; the same at every call.
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_>;

    /// The same where the run ends at `end`: a jitter brings no join there that its place in the
    /// schedule does not.
    fn offsets_before(&self, size: u32, _end: Duration) -> Box<dyn Iterator<Item = Duration> + '_> {
        self.offsets(size)
    }

    /// The most intended joins in any second; for random arrivals, their mean rate.
    fn joins_per_s(&self, size: u32) -> f64;

    /// A phrase for the plan.
    fn describe(&self, size: u32) -> String;
}

/// The arrivals of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalKind {
    /// `{ every = "100ms" }`, `{ every = "100ms", jitter = false }`
    Every(Every),
    /// `{ ramp = "60s" }`
    Ramp(Ramp),
    /// `{ burst = { size = 50, every = "10s" } }`
    Burst(Burst),
    /// `{ poisson = { rate = "5/s", seed = 7 } }`
    Poisson(Poisson),
}

impl Default for ArrivalKind {
    fn default() -> Self {
        Self::Every(Every::default())
    }
}

impl ArrivalKind {
    /// The jitter of what is regular about the cohort; `None` where joins are to come exactly when
    /// the schedule says.
    pub(crate) fn jitter(&self) -> Option<Jitter> {
        match self {
            Self::Every(every) => every.jitter,
            Self::Ramp(ramp) => ramp.jitter,
            Self::Burst(_) => None,
            Self::Poisson(poisson) => Some(Jitter { seed: poisson.seed }),
        }
    }

    /// Joins come exactly when the schedule says; random arrivals stay so.
    pub(crate) fn remove_jitter(&mut self) {
        match self {
            Self::Every(every) => every.jitter = None,
            Self::Ramp(ramp) => ramp.jitter = None,
            Self::Burst(_) | Self::Poisson(_) => {}
        }
    }

    fn as_arrival(&self) -> &dyn Arrival {
        match self {
            Self::Every(every) => every,
            Self::Ramp(ramp) => ramp,
            Self::Burst(burst) => burst,
            Self::Poisson(poisson) => poisson,
        }
    }
}

impl Arrival for ArrivalKind {
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_> {
        self.as_arrival().offsets(size)
    }

    fn offsets_before(&self, size: u32, end: Duration) -> Box<dyn Iterator<Item = Duration> + '_> {
        self.as_arrival().offsets_before(size, end)
    }

    fn joins_per_s(&self, size: u32) -> f64 {
        self.as_arrival().joins_per_s(size)
    }

    fn describe(&self, size: u32) -> String {
        self.as_arrival().describe(size)
    }
}

/// The most joins of `size`, `interval` apart, in any second `[t, t + 1 s)`.
fn joins_in_a_second(interval: Duration, size: u32) -> u32 {
    match u32::try_from(1_000_000_000_u128.div_ceil(interval.as_nanos().max(1))) {
        Ok(fit) if !interval.is_zero() => fit.clamp(1, size.max(1)),
        _ => size,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn any_arrival() -> impl Strategy<Value = ArrivalKind> {
        let span = (0_u64..100_000).prop_map(Duration::from_millis);
        let jitter = || proptest::option::of(any::<u64>().prop_map(|seed| Jitter { seed }));
        prop_oneof![
            (span.clone(), jitter())
                .prop_map(|(interval, jitter)| ArrivalKind::Every(Every { interval, jitter })),
            (span.clone(), jitter())
                .prop_map(|(over, jitter)| ArrivalKind::Ramp(Ramp { over, jitter })),
            (1_u32..500, span).prop_map(|(size, every)| ArrivalKind::Burst(Burst { size, every })),
            (0.01_f64..10_000.0, any::<u64>())
                .prop_map(|(rate_per_s, seed)| ArrivalKind::Poisson(Poisson { rate_per_s, seed })),
        ]
    }

    /// How many of twenty equal parts of a second the joins fall into, whatever the second.
    fn phases(arrival: &ArrivalKind) -> usize {
        let parts = arrival.offsets(20).map(|at| at.subsec_millis() / 50);
        parts.collect::<BTreeSet<u32>>().len()
    }

    #[test]
    fn a_regular_schedule_meets_all_phases_of_a_second() {
        let (interval, jitter) = (Duration::from_millis(200), Some(Jitter::default()));
        let over = 20 * interval;
        for arrival in [
            ArrivalKind::Every(Every { interval, jitter }),
            ArrivalKind::Every(Every { interval: Duration::from_secs(1), jitter }),
            ArrivalKind::Ramp(Ramp { over, jitter }),
        ] {
            assert_eq!(phases(&arrival), 20, "{arrival:?}");
        }
        // Without jitter it meets five of them, at any number of joins.
        assert_eq!(phases(&ArrivalKind::Every(Every { interval, jitter: None })), 5);
        assert_eq!(phases(&ArrivalKind::Ramp(Ramp { over, jitter: None })), 5);
    }

    proptest! {
        #[test]
        fn every_schedule_holds_exactly_its_crowd_in_order_and_repeats(arrival in any_arrival(), size in 0_u32..700) {
            let offsets: Vec<Duration> = arrival.offsets(size).collect();
            prop_assert_eq!(offsets.len(), size as usize);
            prop_assert!(offsets.is_sorted());
            prop_assert_eq!(offsets, arrival.offsets(size).collect::<Vec<_>>());
        }

        #[test]
        fn no_second_holds_more_joins_than_said(arrival in any_arrival(), size in 1_u32..700) {
            prop_assume!(!matches!(arrival, ArrivalKind::Poisson(_)));
            let offsets: Vec<Duration> = arrival.offsets(size).collect();
            let second = Duration::from_secs(1);
            let fullest = (0..offsets.len())
                .map(|i| offsets[i..].iter().take_while(|at| **at < offsets[i] + second).count())
                .max()
                .unwrap_or(0);
            prop_assert!(
                (fullest as f64) <= arrival.joins_per_s(size),
                "{} joins in a second, said {}", fullest, arrival.joins_per_s(size)
            );
        }
    }
}
