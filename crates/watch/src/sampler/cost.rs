//! What the watcher itself costs, and the rate it keeps so as not to cost more.

use std::time::{Duration, Instant};

/// How long costs are added up before they are judged.
const JUDGED_OVER: Duration = Duration::from_secs(5);
/// The longest period that a watcher falls back to.
const PERIOD_MAX: Duration = Duration::from_secs(10);

/// How often is read: everything at the slow period, the hot things at the fast one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) slow: Duration,
    /// `None`: nothing is read in between.
    pub(crate) fast: Option<Duration>,
}

impl Pace {
    /// The next pace down: the fast reading is halved twice, then given up; then the slow one is stretched.
    fn lower(self) -> Option<Self> {
        match self.fast {
            Some(fast) if fast * 4 <= self.slow => Some(Self { fast: Some(fast * 2), ..self }),
            Some(_) => Some(Self { fast: None, ..self }),
            None if self.slow * 2 <= PERIOD_MAX => Some(Self { slow: self.slow * 2, ..self }),
            None => None,
        }
    }
}

/// Judges the cost against a budget.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Cores.
    cpu_max: f64,
    since: Instant,
    cpu_before: Duration,
}

impl Budget {
    pub(crate) fn new(cpu_max: f64, now: Instant, cpu: Duration) -> Self {
        Self { cpu_max, since: now, cpu_before: cpu }
    }

    /// Told the CPU time used so far: the cost in cores of the time judged, and the pace to fall back to if it was
    /// above the budget.
    pub(crate) fn judge(&mut self, now: Instant, cpu: Duration, pace: Pace) -> Option<(f64, Option<Pace>)> {
        let passed = now.checked_duration_since(self.since)?;
        if passed < JUDGED_OVER {
            return None;
        }
        let cost = cpu.saturating_sub(self.cpu_before).as_secs_f64() / passed.as_secs_f64();
        (self.since, self.cpu_before) = (now, cpu);
        Some((cost, (cost > self.cpu_max).then(|| pace.lower()).flatten()))
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_above_its_budget_gives_up_the_fast_reading_first() {
        let ms = Duration::from_millis;
        let mut pace = Pace { slow: ms(1000), fast: Some(ms(100)) };
        let mut steps = Vec::new();
        while let Some(lower) = pace.lower() {
            pace = lower;
            steps.push((pace.slow.as_millis(), pace.fast.map(|fast| fast.as_millis())));
        }
        let expect =
            [(1000, Some(200)), (1000, Some(400)), (1000, None), (2000, None), (4000, None), (8000, None)];
        assert_eq!(steps, expect);
    }

    #[test]
    fn cost_is_judged_over_seconds_and_only_above_the_budget_lowers_the_pace() {
        let (zero, ms) = (Instant::now(), Duration::from_millis);
        let pace = Pace { slow: ms(1000), fast: None };
        let mut budget = Budget::new(0.02, zero, ms(0));
        assert_eq!(budget.judge(zero + ms(4_999), ms(4_000), pace), None);
        assert_eq!(budget.judge(zero + ms(5_000), ms(90), pace), Some((0.018, None)));
        let (cost, lower) = budget.judge(zero + ms(10_000), ms(200), pace).unwrap();
        assert!((cost - 0.022).abs() < 1e-9);
        assert_eq!(lower, Some(Pace { slow: ms(2000), fast: None }));
    }
}
