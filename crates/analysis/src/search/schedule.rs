//! The durations and steps of a search, and the certainty that shorter ones give up.

use std::time::Duration;

/// The durations and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Judged seconds of a load of the bracket (RFC 9971's Goal Duration Sum).
    pub hold_s: u32,
    /// Judged seconds of a step of the ramp.
    pub demand_s: u32,
    /// Least seconds for queues to settle after the joins …
    pub settle_min_s: u32,
    /// … and most.
    pub settle_max_s: u32,
    /// Factor between steps of the ramp.
    pub growth: f64,
    /// The search ends if the passing and the failing load are this near: (failing − passing) ÷
    /// failing (RFC 9971's Goal Width).
    pub width_ratio: f64,
    /// The failing load is confirmed for this many times [`Self::hold_s`].
    pub confirm_factor: u32,
    /// Seconds of the soak below the limit at the end; 0 for none.
    pub soak_s: u32,
    /// Number of times that the limit is searched.
    pub repeats: u32,
}

/// Shortest budget in which adjacent loads can be distinguished.
const BUDGET_MIN: Duration = Duration::from_secs(60);

impl Default for Schedule {
    /// Two minutes a load, three repeats, ten minutes of soak, about three quarters of an hour: for
    /// the decision on a release.
    fn default() -> Self {
        Self {
            hold_s: 120,
            demand_s: 20,
            settle_min_s: 10,
            settle_max_s: 60,
            growth: 1.5,
            width_ratio: 0.03,
            confirm_factor: 2,
            soak_s: 600,
            repeats: 3,
        }
    }
}

impl Schedule {
    /// The best schedule for a search of about this duration.
    #[must_use]
    pub fn of_budget(budget: Duration) -> Self {
        let seconds = budget.max(BUDGET_MIN).as_secs();
        let share = |part: u64, min: u64, max: u64| (seconds / part).clamp(min, max) as u32;
        let full = Self::default();
        Self {
            hold_s: share(24, 8, 120),
            demand_s: share(75, 4, 20),
            settle_min_s: share(120, 3, 10),
            settle_max_s: share(40, 6, 60),
            growth: if seconds < 300 { 1.8 } else { full.growth },
            width_ratio: match seconds {
                300.. => full.width_ratio,
                90.. => 0.05,
                _ => 0.1,
            },
            confirm_factor: if seconds < 300 { 1 } else { full.confirm_factor },
            soak_s: match seconds {
                2400.. => 600,
                900.. => share(10, 90, 600),
                _ => 0,
            },
            repeats: match seconds {
                2400.. => 3,
                1200.. => 2,
                _ => 1,
            },
        }
    }

    /// The disadvantages against the full schedule, as sentences; empty for the full schedule.
    #[must_use]
    pub fn costs(&self) -> Vec<String> {
        let full = Self::default();
        let mut costs = Vec::new();
        if self.hold_s < full.hold_s {
            let allowed = (f64::from(self.hold_s) * 0.05) as u32;
            costs.push(format!(
                "each load is judged for {} s instead of {} s: {} it",
                self.hold_s,
                full.hold_s,
                match allowed {
                    0 => "one unlucky second fails".to_owned(),
                    more => format!("{} unlucky seconds fail", more + 1),
                },
            ));
        }
        if self.width_ratio > full.width_ratio {
            costs.push(format!(
                "the passing and the failing load stay {:.0} % apart instead of {:.0} %",
                self.width_ratio * 100.0,
                full.width_ratio * 100.0
            ));
        }
        if self.repeats < full.repeats {
            costs.push(match self.repeats {
                1 => "the limit is searched once: its variation from run to run stays unknown"
                    .to_owned(),
                times => format!("the limit is searched {times} times instead of {}", full.repeats),
            });
        }
        if self.soak_s == 0 {
            costs.push("no soak: leaks and drift stay undetected".to_owned());
        }
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_budget_is_the_full_pace_and_a_short_one_says_what_it_costs() {
        let full = Schedule::of_budget(Duration::from_secs(3600));
        assert_eq!(full, Schedule::default());
        assert!(full.costs().is_empty());
        let ten = Schedule::of_budget(Duration::from_secs(600));
        assert_eq!((ten.hold_s, ten.repeats, ten.soak_s), (25, 1, 0));
        let costs = ten.costs().join("; ");
        assert!(
            costs.contains("25 s instead of 120 s: 2 unlucky seconds") && costs.contains("once"),
            "{costs}"
        );
        let shortest = Schedule::of_budget(Duration::ZERO);
        assert!(shortest.hold_s >= 8 && shortest.costs().len() == 4);
        assert!(
            shortest.costs().iter().any(|cost| cost.contains("stay 10 % apart")),
            "{shortest:?}"
        );
    }
}
