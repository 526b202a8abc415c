//! Arrivals: schedules of intended joins, one kind per file. All are open models: a slow server does not slow them.

use std::time::Duration;

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
    /// The intended joins of `size` participants: exactly `size` times from the start of the run, in ascending order; the
    /// same at every call.
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_>;

    /// The most intended joins in any second; for random arrivals, their mean rate.
    fn joins_per_s(&self, size: u32) -> f64;

    /// A phrase for the plan.
    fn describe(&self, size: u32) -> String;
}

/// The arrivals of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalKind {
    /// `{ every = "100ms" }`
    Every(Every),
    /// `{ ramp = "60s" }`
    Ramp(Ramp),
    /// `{ burst = { size = 50, every = "10s" } }`
    Burst(Burst),
    /// `{ poisson = { rate = "5/s", seed = 7 } }`
    Poisson(Poisson),
}

impl Default for ArrivalKind {
    /// One join each 100 ms, as OvenRtcTester does.
    fn default() -> Self {
        Self::Every(Every { interval: Duration::from_millis(100) })
    }
}

impl ArrivalKind {
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

    fn joins_per_s(&self, size: u32) -> f64 {
        self.as_arrival().joins_per_s(size)
    }

    fn describe(&self, size: u32) -> String {
        self.as_arrival().describe(size)
    }
}

/// The most joins of `size`, `interval` apart, in any second `[t, t + 1 s)`.
fn joins_in_a_second(interval: Duration, size: u32) -> f64 {
    match u32::try_from(1_000_000_000_u128.div_ceil(interval.as_nanos().max(1))) {
        Ok(fit) if !interval.is_zero() => f64::from(fit.clamp(1, size.max(1))),
        _ => f64::from(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_arrival() -> impl Strategy<Value = ArrivalKind> {
        let span = (0_u64..100_000).prop_map(Duration::from_millis);
        prop_oneof![
            span.clone().prop_map(|interval| ArrivalKind::Every(Every { interval })),
            span.clone().prop_map(|over| ArrivalKind::Ramp(Ramp { over })),
            (1_u32..500, span).prop_map(|(size, every)| ArrivalKind::Burst(Burst { size, every })),
            (0.01_f64..10_000.0, any::<u64>())
                .prop_map(|(rate_per_s, seed)| ArrivalKind::Poisson(Poisson { rate_per_s, seed })),
        ]
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
