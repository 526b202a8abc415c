//! Time to a phase over all participants, including those that never reached it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::ParticipantRow;
use throng_observation::{Phase, RunTime};

/// Time from the intended join to a phase, over all intended participants.
///
/// Kaplan–Meier estimate: failed participants stay in the denominator, as infinitely late;
/// participants that left before the phase, or were interrupted by the end of the run, are censored
/// at the time that they had waited. A percentile is `null` when it lies among participants that
/// never reached the phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeTo {
    /// Participants that reached the phase.
    pub reached: u64,
    /// Participants that failed before.
    pub failed: u64,
    /// Participants that left before it, or were interrupted by the end of the run.
    pub censored: u64,
    /// Median, milliseconds.
    pub ms_p50: Option<f64>,
    /// 95th percentile.
    pub ms_p95: Option<f64>,
    /// 99th percentile.
    pub ms_p99: Option<f64>,
    /// Slowest that reached it.
    pub ms_max: Option<f64>,
}

/// Times to a phase as a Kaplan–Meier estimate (Kaplan and Meier 1958): failed participants stay at
/// risk, as if infinitely late; participants that left before the phase without failing are
/// censored, at risk for the time that they had waited. Without censored participants this is the
/// plain quantile over all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survival {
    reached_ms: Vec<f64>,
    censored_ms: Vec<f64>,
    failed: usize,
}

impl Survival {
    /// The times of `participants` to the first of `phases` that each of them reached.
    pub(crate) fn of<'a>(
        participants: impl IntoIterator<Item = &'a ParticipantRow>,
        phases: &[Phase],
        run_ended_ms: f64,
    ) -> Self {
        let mut survival = Self::default();
        for row in participants {
            if let Some(ms) = phases.iter().find_map(|phase| row.ms_to(*phase)) {
                survival.reached_ms.push(ms);
            } else if row.failure().is_some() {
                survival.failed += 1;
            } else {
                let until_ms = row.ended_at.map_or(run_ended_ms, RunTime::as_millis_f64);
                survival.censored_ms.push((until_ms - row.intended_at.as_millis_f64()).max(0.0));
            }
        }
        survival.reached_ms.sort_by(f64::total_cmp);
        survival.censored_ms.sort_by(f64::total_cmp);
        survival
    }

    /// The time that a share `quantile` of all participants did not exceed, milliseconds: infinite
    /// when fewer reached the phase, `None` without participants.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let mut at_risk = self.reached_ms.len() + self.censored_ms.len() + self.failed;
        if at_risk == 0 {
            return None;
        }
        if self.reached_ms.is_empty() {
            return Some(f64::INFINITY);
        }
        let mut censored = self.censored_ms.iter().peekable();
        let mut still_waiting = 1.0;
        for wait_ms in &self.reached_ms {
            while censored.next_if(|until_ms| *until_ms < wait_ms).is_some() {
                at_risk -= 1;
            }
            still_waiting *= 1.0 - 1.0 / at_risk.max(1) as f64;
            at_risk = at_risk.saturating_sub(1);
            // The allowance is for the rounding of up to a million factors.
            if 1.0 - still_waiting >= quantile - 1e-9 {
                return Some(*wait_ms);
            }
        }
        // A quantile of 1 with a participant censored at the very end is the slowest only when none
        // failed.
        Some(f64::INFINITY)
    }

    /// The summary, as `summary.json` has it.
    pub(crate) fn summary(&self) -> TimeTo {
        let finite = |quantile| self.quantile_ms(quantile).filter(|ms| ms.is_finite());
        TimeTo {
            reached: self.reached_ms.len() as u64,
            failed: self.failed as u64,
            censored: self.censored_ms.len() as u64,
            ms_p50: finite(0.50),
            ms_p95: finite(0.95),
            ms_p99: finite(0.99),
            ms_max: self.reached_ms.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survival(reached_ms: &[f64], censored_ms: &[f64], failed: usize) -> Survival {
        Survival { reached_ms: reached_ms.to_vec(), censored_ms: censored_ms.to_vec(), failed }
    }

    #[test]
    fn failures_stay_in_the_denominator() {
        let ten: Vec<f64> = (1..=9).map(f64::from).collect();
        let w = survival(&ten, &[], 1);
        assert_eq!(w.quantile_ms(0.5), Some(5.0));
        assert_eq!(w.quantile_ms(0.9), Some(9.0));
        assert_eq!(w.quantile_ms(0.99), Some(f64::INFINITY), "the slowest tenth never came");
    }

    #[test]
    fn a_leave_before_the_phase_is_censored_at_its_waiting_time() {
        assert_eq!(survival(&[10.0, 20.0], &[5.0, 5.0], 0).quantile_ms(0.99), Some(20.0));
        // 1 of 3 after 10; the one cut off at 15 is out; 1 of 1 after 20.
        assert_eq!(survival(&[10.0, 20.0], &[15.0], 0).quantile_ms(0.5), Some(20.0));
    }

    #[test]
    fn an_empty_crowd_has_no_figure_and_an_unconnected_one_is_infinitely_late() {
        assert_eq!(survival(&[], &[], 0).quantile_ms(0.5), None);
        assert_eq!(survival(&[], &[100.0], 3).quantile_ms(0.5), Some(f64::INFINITY));
    }
}
