//! The whole crowd, evenly spaced over a given time.

use std::time::Duration;

use super::{Arrival, Jitter, jitter, joins_in_a_second};
use crate::units::shown;

/// All joins evenly within `over`: the first at the start, the others `over / size` apart, so that
/// the last one comes within the last step before `over`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The time until the crowd is complete.
    pub over: Duration,
    /// How much later each join comes; `None`: the joins are exactly a step apart.
    pub jitter: Option<Jitter>,
}

impl Ramp {
    fn step(&self, size: u32) -> Duration {
        self.over / size.max(1)
    }
}

impl Arrival for Ramp {
    fn offsets(&self, size: u32) -> Box<dyn Iterator<Item = Duration> + '_> {
        self.offsets_before(size, Duration::MAX)
    }

    fn offsets_before(&self, size: u32, end: Duration) -> Box<dyn Iterator<Item = Duration> + '_> {
        let over_ns = self.over.as_nanos();
        // Multiply before dividing: rounding errors of a step would add up over a large crowd.
        let place = move |index: u32| {
            let ns = over_ns * u128::from(index) / u128::from(size.max(1));
            Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let room = end.saturating_sub(place(size.saturating_sub(1)));
        let places = (0..size).map(place);
        let delays = jitter::delays(self.jitter, self.step(size), room, size);
        Box::new(places.zip(delays).map(|(place, delay)| place.saturating_add(delay)))
    }

    fn joins_per_s(&self, size: u32) -> f64 {
        f64::from(joins_in_a_second(self.step(size), size))
    }

    fn describe(&self, size: u32) -> String {
        let evenly = format!(
            "evenly over {} ({:.1} joins/s)",
            shown(self.over),
            f64::from(size) / self.over.as_secs_f64().max(1e-9)
        );
        self.jitter
            .map_or_else(|| evenly.clone(), |jitter| format!("{evenly} {}", jitter.describe()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crowd_is_complete_within_the_ramp() {
        let ramp = |jitter| Ramp { over: Duration::from_secs(60), jitter };
        let offsets: Vec<Duration> = ramp(None).offsets(100).collect();
        assert_eq!(offsets.first(), Some(&Duration::ZERO));
        assert_eq!(offsets.last(), Some(&Duration::from_millis(59_400)));
        let jittered: Vec<Duration> = ramp(Some(Jitter::default())).offsets(100).collect();
        assert_eq!(jittered.first(), Some(&Duration::ZERO));
        assert!(
            jittered[99] > offsets[99] && jittered[99] < Duration::from_secs(60),
            "{jittered:?}"
        );
        assert_eq!(ramp(Some(Jitter::default())).joins_per_s(600), 10.0);
    }
}
