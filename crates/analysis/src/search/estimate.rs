//! Estimates the duration of a search by simulating it on undisturbed servers with limits between
//! its first and its largest load.

use throng_observation::RunTime;

use super::{Search, Second, Settings};

/// Number of simulated servers, with capacities in even steps of the logarithm.
const SERVERS: u32 = 7;
/// Longest simulated search, seconds: a day.
const SECONDS_MAX: i64 = 86_400;
/// The delay of a server that is not overloaded, milliseconds: its queues are settled.
const DELAY_MS: f64 = 5.0;

/// The duration of a search, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The median of the simulated servers.
    pub typical_s: u32,
    /// The shortest of them.
    pub shortest_s: u32,
    /// The longest of them.
    pub longest_s: u32,
}

impl Estimate {
    /// For a crowd that joins at `joins_per_s`, each participant within `patience_s`. A disturbed
    /// server or generator takes longer, because loads are held again.
    #[must_use]
    pub fn of(settings: Settings, joins_per_s: f64, patience_s: f64) -> Self {
        let (low, high) = (f64::from(settings.start.max(1)), f64::from(settings.ceiling.max(2)));
        let mut seconds: Vec<u32> = (0..SERVERS)
            .map(|place| low * (high / low).powf((f64::from(place) + 0.5) / f64::from(SERVERS)))
            .map(|capacity| simulated_s(settings, capacity, joins_per_s.max(0.001), patience_s))
            .collect();
        seconds.sort_unstable();
        let at = |place: usize| seconds.get(place).copied().unwrap_or(0);
        Self {
            shortest_s: at(0),
            typical_s: at(seconds.len() / 2),
            longest_s: at(seconds.len() - 1),
        }
    }

    /// The same of a search whose first participant comes `wait_s` after its beginning.
    #[must_use]
    pub fn after(self, wait_s: u32) -> Self {
        let after = |seconds: u32| seconds.saturating_add(wait_s);
        Self {
            shortest_s: after(self.shortest_s),
            typical_s: after(self.typical_s),
            longest_s: after(self.longest_s),
        }
    }
}

/// The seconds of a search on a server that serves up to `capacity` users well and none beyond.
fn simulated_s(settings: Settings, capacity: f64, joins_per_s: f64, patience_s: f64) -> u32 {
    let mut search = Search::new(settings);
    let (mut users, mut called_at, mut at) = (0.0_f64, 0.0_f64, 0_i64);
    while search.end().is_none() && at < SECONDS_MAX {
        at += 1;
        let wants = f64::from(search.wants());
        if users < wants {
            (users, called_at) = ((users + joins_per_s).min(wants), at as f64);
        } else {
            users = wants;
        }
        let is_complete = users >= wants && at as f64 - called_at > patience_s;
        let second = Second {
            at: RunTime(at * 1_000_000),
            users: users as u32,
            bad: if users > capacity { users } else { 0.0 },
            delay_ms: Some(DELAY_MS),
            is_limited: false,
            is_complete,
            ..Second::default()
        };
        search.second(&second);
    }
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::Goal;

    use super::super::Schedule;
    use super::*;

    fn estimate(minutes: u64, ceiling: u32) -> Estimate {
        let schedule = Schedule::of_budget(Duration::from_secs(minutes * 60));
        let settings =
            Settings { goal: Goal::Acceptable, start: 5, floor: 1, step: 1, ceiling, schedule };
        Estimate::of(settings, 20.0, 3.0)
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "docs/find.md has these figures")]
    fn a_longer_budget_takes_longer_and_the_estimate_says_how_long() {
        let mut before = 0;
        for minutes in [1, 3, 5, 10, 20, 60] {
            let estimate = estimate(minutes, 2_000);
            println!("| {minutes} min | {estimate:?} |");
            assert!(
                estimate.shortest_s <= estimate.typical_s
                    && estimate.typical_s <= estimate.longest_s
            );
            assert!(estimate.typical_s >= before, "{minutes} min: {estimate:?}");
            before = estimate.typical_s;
        }
        let (soon, later) = (estimate(10, 20), estimate(10, 20).after(30));
        assert_eq!(
            [later.shortest_s, later.typical_s, later.longest_s],
            [soon.shortest_s, soon.typical_s, soon.longest_s].map(|seconds| seconds + 30)
        );
        // A small ceiling is reached soon.
        assert!(estimate(10, 20).longest_s < estimate(10, 2_000).longest_s);
    }
}
