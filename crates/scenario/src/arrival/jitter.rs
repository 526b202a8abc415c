//! Jitter: how much later than its place in a regular schedule each join comes.
//!
//! Joins at a regular interval meet the same few phases of what a server repeats, such as key
//! frames each second: at 200 ms five of them, by chance early or late ones, so that equal runs
//! differ. With jitter the joins of a run meet all phases.
//!
//! Jitter only grows from second to second: the joins of the first second come up to a share of the
//! interval later, those of the next one up to twice that, those of the last one up to the whole
//! interval. So each join keeps its interval, their order stays, and no second holds more of them
//! than without jitter, which caps and consent rely on. Where a run ends before the last interval
//! does, what is left of it takes the place of the interval, so that jitter brings no join beyond
//! the end.

use std::time::Duration;

use throng_observation::seed;

use super::joins_in_a_second;

/// The jitter of a regular schedule: each join comes later, by less than one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The same seed gives the same schedule.
    pub seed: u64,
}

impl Default for Jitter {
    fn default() -> Self {
        Self { seed: seed::USUAL }
    }
}

impl Jitter {
    /// A phrase for the plan.
    pub(super) fn describe(self) -> String {
        format!("with jitter (seed {})", self.seed)
    }
}

/// How much later each of `size` joins comes that are `interval` apart: the first never, without
/// jitter none. `room` is the time from the place of the last one to the end of the run; zero: it
/// has none in the run.
pub(super) fn delays(
    jitter: Option<Jitter>,
    interval: Duration,
    room: Duration,
    size: u32,
) -> impl Iterator<Item = Duration> {
    let span = if room.is_zero() { interval } else { interval.min(room) };
    let span_ns = span.as_nanos() as f64;
    let joins_per_s = joins_in_a_second(interval, size).max(1);
    let seconds = f64::from(size.div_ceil(joins_per_s));
    let mut random = jitter.map(|jitter| fastrand::Rng::with_seed(jitter.seed));
    (0..size).map(move |index| {
        // The first join is the start of the run: RunTime 0.
        let Some(random) = random.as_mut().filter(|_| index > 0) else { return Duration::ZERO };
        let share = (f64::from(index / joins_per_s) + random.f64()) / seconds;
        Duration::from_nanos((span_ns * share) as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_share_of_the_interval() {
        let interval = Duration::from_millis(200);
        let delays: Vec<Duration> =
            delays(Some(Jitter::default()), interval, Duration::MAX, 20).collect();
        assert_eq!(delays[0], Duration::ZERO);
        for (index, delay) in delays.iter().enumerate() {
            assert_eq!(delay.as_millis() / 50, index as u128 / 5, "{index}: {delays:?}");
        }
    }

    #[test]
    fn another_seed_is_another_schedule_and_none_is_none() {
        let of =
            |jitter| delays(jitter, Duration::from_secs(1), Duration::MAX, 9).collect::<Vec<_>>();
        assert_eq!(of(Some(Jitter { seed: 7 })), of(Some(Jitter { seed: 7 })));
        assert_ne!(of(Some(Jitter { seed: 7 })), of(Some(Jitter { seed: 8 })));
        assert_eq!(of(None), [Duration::ZERO; 9]);
        let mut at_once = delays(Some(Jitter::default()), Duration::ZERO, Duration::MAX, 9);
        assert!(at_once.all(|delay| delay.is_zero()));
    }
}
