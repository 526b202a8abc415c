//! Keeps the watcher's own CPU cost within a budget by adapting its sampling intervals.

use std::time::{Duration, Instant};

use crate::cpu_accounting::CpuUsage;

/// Interval over which the cost is averaged.
const EVALUATED_OVER: Duration = Duration::from_secs(5);
/// For how long the cost must stay below [`CALM_RATIO`] of the budget before a faster pace is
/// tried: initially and at most. One step up at most doubles the number of reads.
const CALM_FIRST: Duration = Duration::from_secs(30);
const CALM_MAX: Duration = Duration::from_secs(600);
const CALM_RATIO: f64 = 0.5;
/// The longest interval that is used.
const PERIOD_MAX: Duration = Duration::from_secs(10);

/// The sampling intervals: of full passes, and of hot threads and main figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) slow: Duration,
    /// `None` means full passes only.
    pub(crate) fast: Option<Duration>,
}

impl Pace {
    /// The next slower pace: the fast interval is doubled twice, then fast passes are disabled,
    /// then the slow interval doubles.
    fn lower(self) -> Option<Self> {
        match self.fast {
            Some(fast) if fast * 4 <= self.slow => Some(Self { fast: Some(fast * 2), ..self }),
            Some(_) => Some(Self { fast: None, ..self }),
            None if self.slow * 2 <= PERIOD_MAX => Some(Self { slow: self.slow * 2, ..self }),
            None => None,
        }
    }
}

/// Compares the cost with a budget and chooses the pace.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Cores.
    cpu_max: f64,
    since: Instant,
    before: CpuUsage,
    /// The faster paces that were abandoned, most recent last.
    given_up: Vec<Pace>,
    /// Since when the cost has been low, and how long that must last before a faster pace is tried.
    calm_since: Option<Instant>,
    calm_needed: Duration,
    raised_at: Option<Instant>,
    excluded_at: Option<Instant>,
}

/// The result of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evaluation {
    /// Total cost in cores, including profiles.
    pub(crate) cost: f64,
    /// Cost in cores of what the budget bounds.
    pub(crate) reading: f64,
    pub(crate) change: Option<Change>,
}

/// A change of pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Lower(Pace),
    Raise(Pace),
}

impl Budget {
    pub(crate) fn new(cpu_max: f64, now: Instant, spent: CpuUsage) -> Self {
        Self {
            cpu_max,
            since: now,
            before: spent,
            given_up: Vec::new(),
            calm_since: None,
            calm_needed: CALM_FIRST,
            raised_at: None,
            excluded_at: None,
        }
    }

    /// Excludes the time until now: a pass has opened all files of a server, perhaps thousands,
    /// which happens once and says nothing about the cost of reading. A server that restarts
    /// repeatedly is excluded only once in [`CALM_FIRST`].
    pub(crate) fn exclude(&mut self, now: Instant, spent: CpuUsage) {
        let is_due =
            self.excluded_at.is_none_or(|at| now.saturating_duration_since(at) >= CALM_FIRST);
        if is_due {
            (self.since, self.before, self.excluded_at) = (now, spent, Some(now));
        }
    }

    /// Evaluates the cost since the last evaluation, and changes the pace if it is over the budget,
    /// or has been low for long enough that a faster pace may fit.
    pub(crate) fn evaluate(
        &mut self,
        now: Instant,
        spent: CpuUsage,
        pace: Pace,
    ) -> Option<Evaluation> {
        let passed = now.checked_duration_since(self.since)?;
        if passed < EVALUATED_OVER {
            return None;
        }
        let (began, taken) = (self.since, spent.since(self.before));
        (self.since, self.before) = (now, spent);
        let [cost, reading] =
            [taken.all(), taken.reading].map(|cpu| cpu.as_secs_f64() / passed.as_secs_f64());
        let change = if reading > self.cpu_max {
            self.lower(now, pace).map(Change::Lower)
        } else if reading < self.cpu_max * CALM_RATIO {
            self.raise(now, began).map(Change::Raise)
        } else {
            self.calm_since = None;
            None
        };
        Some(Evaluation { cost, reading, change })
    }

    fn lower(&mut self, now: Instant, pace: Pace) -> Option<Pace> {
        self.calm_since = None;
        if let Some(raised_at) = self.raised_at.take() {
            // A pace that does not fit is retried at growing intervals.
            let was_short = now.saturating_duration_since(raised_at) < self.calm_needed;
            self.calm_needed =
                if was_short { (self.calm_needed * 2).min(CALM_MAX) } else { CALM_FIRST };
        }
        let lower = pace.lower()?;
        self.given_up.push(pace);
        Some(lower)
    }

    fn raise(&mut self, now: Instant, began: Instant) -> Option<Pace> {
        let calm_since = *self.calm_since.get_or_insert(began);
        if now.saturating_duration_since(calm_since) < self.calm_needed {
            return None;
        }
        let pace = self.given_up.pop()?;
        (self.calm_since, self.raised_at) = (None, Some(now));
        Some(pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn reading(ms: u64) -> CpuUsage {
        CpuUsage { reading: Duration::from_millis(ms), ..CpuUsage::default() }
    }

    #[test]
    fn a_watcher_above_its_budget_gives_up_the_fast_reading_first() {
        let mut pace = Pace { slow: ms(1000), fast: Some(ms(100)) };
        let mut steps = Vec::new();
        while let Some(lower) = pace.lower() {
            pace = lower;
            steps.push((pace.slow.as_millis(), pace.fast.map(|fast| fast.as_millis())));
        }
        let expect = [
            (1000, Some(200)),
            (1000, Some(400)),
            (1000, None),
            (2000, None),
            (4000, None),
            (8000, None),
        ];
        assert_eq!(steps, expect);
    }

    #[test]
    fn cost_is_judged_over_seconds_and_only_above_the_budget_lowers_the_pace() {
        let zero = Instant::now();
        let pace = Pace { slow: ms(1000), fast: None };
        let mut budget = Budget::new(0.02, zero, reading(0));
        assert_eq!(budget.evaluate(zero + ms(4_999), reading(4_000), pace), None);
        let evaluation = budget.evaluate(zero + ms(5_000), reading(90), pace);
        assert_eq!(evaluation, Some(Evaluation { cost: 0.018, reading: 0.018, change: None }));
        let evaluation = budget.evaluate(zero + ms(10_000), reading(200), pace).unwrap();
        assert!((evaluation.cost - 0.022).abs() < 1e-9);
        assert_eq!(evaluation.change, Some(Change::Lower(Pace { slow: ms(2000), fast: None })));
    }

    #[test]
    fn a_profile_is_reported_and_does_not_lower_the_pace() {
        let zero = Instant::now();
        let pace = Pace { slow: ms(1000), fast: None };
        let mut budget = Budget::new(0.02, zero, reading(0));
        let spent = CpuUsage { profiles: ms(2_000), ..reading(50) };
        let evaluation = budget.evaluate(zero + ms(5_000), spent, pace);
        assert_eq!(evaluation, Some(Evaluation { cost: 0.41, reading: 0.01, change: None }));
    }

    #[test]
    fn opening_a_servers_files_is_excluded_from_the_cost() {
        let zero = Instant::now();
        let pace = Pace { slow: ms(1000), fast: None };
        let mut budget = Budget::new(0.02, zero, reading(0));
        budget.exclude(zero + ms(500), reading(400));
        let evaluation = budget.evaluate(zero + ms(5_500), reading(450), pace).unwrap();
        assert_eq!((evaluation.cost, evaluation.change), (0.01, None));
        // A server that restarts every few seconds is not excluded each time.
        budget.exclude(zero + ms(6_500), reading(850));
        let evaluation = budget.evaluate(zero + ms(10_500), reading(860), pace).unwrap();
        assert!(matches!(evaluation.change, Some(Change::Lower(_))), "{evaluation:?}");
    }

    /// Simulates a cost in milliseconds for each 5 s; returns the times of changes in seconds
    /// (`true` for faster) and the final pace.
    fn changes(seconds: u64, cost_ms: impl Fn(u64, Pace) -> u64) -> (Vec<(u64, bool)>, Pace) {
        let zero = Instant::now();
        let mut pace = Pace { slow: ms(1000), fast: Some(ms(100)) };
        let mut budget = Budget::new(0.02, zero, reading(0));
        let (mut spent, mut changes) = (0, Vec::new());
        for second in (5..=seconds).step_by(5) {
            spent += cost_ms(second, pace);
            let evaluation =
                budget.evaluate(zero + ms(second * 1000), reading(spent), pace).unwrap();
            match evaluation.change {
                Some(Change::Lower(lower)) => (pace, _) = (lower, changes.push((second, false))),
                Some(Change::Raise(higher)) => (pace, _) = (higher, changes.push((second, true))),
                None => {}
            }
        }
        (changes, pace)
    }

    #[test]
    fn a_pace_that_was_lowered_comes_back_step_by_step_when_watching_is_cheap_again() {
        let (changes, pace) = changes(100, |second, _| if second <= 10 { 200 } else { 40 });
        assert_eq!(changes, [(5, false), (10, false), (40, true), (70, true)]);
        assert_eq!(pace, Pace { slow: ms(1000), fast: Some(ms(100)) });
    }

    #[test]
    fn a_pace_between_half_the_budget_and_the_budget_stays() {
        let (changes, _) = changes(600, |second, _| if second <= 5 { 200 } else { 60 });
        assert_eq!(changes, [(5, false)]);
    }

    #[test]
    fn a_pace_that_never_fits_is_tried_ever_more_seldom() {
        let (changes, _) =
            changes(3_600, |_, pace| if pace.fast == Some(ms(100)) { 200 } else { 20 });
        let up: Vec<u64> = changes.iter().filter(|(_, is_up)| *is_up).map(|(at, _)| *at).collect();
        assert_eq!(up.get(..4), Some(&[35, 100, 225, 470][..]));
        assert!(up.len() <= 10, "{up:?}");
    }
}
