//! The context of a check: the run, a host, the windows, the users, the demand, and the questions
//! that all findings ask of them.

use std::collections::BTreeSet;

use throng_observation::RunTime;
use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::{Grid, Host, MeasuredSeries, Window};
use throng_observation::host::{HostId, SeriesId};
use throng_observation::run::RunData;

use crate::demand::{Demand, Resource};
use crate::experiment::mean;
use crate::knowledge::Knowledge;
use crate::windows::{LoadWindow, Windows};

mod cpu;
mod cpu_verdict;
mod lives;
mod pool;
mod reading;
mod threads;
mod user_impact;
mod users;

pub(crate) use cpu_verdict::{BUSY_MIN, CpuLimit, OWN_SHARE_MIN, THROTTLED_MIN, WAIT_MIN};
pub(crate) use lives::Lives;
pub(crate) use pool::Pool;
pub(crate) use reading::{Change, Growth, Reading};
pub(crate) use threads::Thread;
pub(crate) use user_impact::accounts_for;
pub(crate) use users::Users;

/// Longest window that is read, seconds: a day.
const SECONDS_MAX: i64 = 86_400;
/// Values that differ by less than this share are the same: the median second is no steadier.
const BEYOND_MIN: f64 = 0.02;

/// All that the checks on one host read.
pub(crate) struct Context<'a> {
    pub(crate) run: &'a RunData,
    pub(crate) host: &'a Host<'a>,
    /// All watches of the host's machine, itself among them: what is of the machine, such as its
    /// CPUs, is shared by the processes of all.
    pub(crate) machine: Vec<&'a Host<'a>>,
    pub(crate) knowledge: &'a Knowledge,
    pub(crate) windows: &'a Windows,
    pub(crate) fail: LoadWindow,
    pub(crate) onset: Window,
    pub(crate) demand: &'a [Demand],
    pub(crate) users: Users,
    /// The threads of the server, the busiest under the failing load first.
    pub(crate) threads: Vec<Thread<'a>>,
    /// What of the CPU limits the server: one answer for all findings about CPUs.
    pub(crate) cpu_limit: CpuLimit,
    /// The watched processes, and which of them are the server's.
    pub(crate) lives: Lives,
}

impl<'a> Context<'a> {
    /// The context of `host`, which is one of the watches of `machine`; `None` if no load failed.
    pub(crate) fn of(
        run: &'a RunData,
        host: &'a Host<'a>,
        machine: Vec<&'a Host<'a>>,
        knowledge: &'a Knowledge,
        windows: &'a Windows,
        demand: &'a [Demand],
    ) -> Option<Self> {
        let fail = windows.fail?;
        let mut context = Self {
            run,
            host,
            machine,
            knowledge,
            windows,
            fail,
            onset: windows.onset.unwrap_or(fail.window),
            demand,
            users: Users::default(),
            threads: Vec::new(),
            cpu_limit: CpuLimit::default(),
            lives: Lives::of(host, windows),
        };
        context.users = context.users();
        context.threads = context.threads();
        context.cpu_limit = context.decide_cpu_limit();
        Some(context)
    }

    /// The machine, by the first of its watches.
    pub(crate) fn machine_id(&self) -> HostId {
        self.machine.first().map_or(self.host.id, |host| host.id)
    }

    /// The first bad second of the failing load.
    pub(crate) fn first_bad_s(&self) -> Option<f64> {
        self.windows.first_bad_s.map(|second| second as f64)
    }

    /// Whether a moment lies in the failing load, its joins or the seconds before.
    pub(crate) fn is_near_failure(&self, at: RunTime) -> bool {
        [self.onset, self.fail.window]
            .iter()
            .any(|window| (window.from_us..=window.until_us).contains(&at.0))
    }

    /// The value of `of` in each window.
    pub(crate) fn reading(&self, of: impl Fn(Window) -> Option<f64>) -> Reading {
        let at = |stretch: Option<LoadWindow>| stretch.and_then(|stretch| of(stretch.window));
        Reading {
            base: at(self.windows.base),
            pass: at(self.windows.pass),
            fail: of(self.fail.window),
            // The good seconds of a plain run are no holds: its threads may have been busy with
            // joins.
            most: self
                .windows
                .holds_that_passed()
                .filter_map(|load| of(load.window))
                .reduce(f64::max),
            felt: None,
        }
    }

    /// The median second of a series.
    pub(crate) fn median(&self, series: &MeasuredSeries<'_>) -> Reading {
        self.reading(|window| middle(series.on(seconds(window)).into_iter().flatten().collect()))
    }

    /// The median second of the sum of all series of the metric.
    pub(crate) fn sum(&self, metric: &Metric) -> Reading {
        self.total(self.host.metric(metric.name))
    }

    /// The median second of the sum of these series.
    pub(crate) fn total(&self, list: &[MeasuredSeries<'_>]) -> Reading {
        self.reading(|window| middle(sums(list, window).into_iter().flatten().collect()))
    }

    /// The mean of the sum of all series of the metric, for error counters: most of their seconds
    /// may be 0.
    pub(crate) fn rate(&self, metric: &Metric) -> Reading {
        self.rate_of(metric, self.host.metric(metric.name))
    }

    /// The same of these series of the metric.
    pub(crate) fn rate_of(&self, metric: &Metric, list: &[MeasuredSeries<'_>]) -> Reading {
        let mean = |window| mean(sums(list, window).into_iter().flatten());
        let reading = Reading {
            // Errors may begin while users still join.
            fail: mean(self.fail.window).into_iter().chain(mean(self.onset)).reduce(f64::max),
            ..self.reading(mean)
        };
        self.felt_by_users(metric, list, reading)
    }

    /// The series of the metric that belong to the interface of another series.
    pub(crate) fn on_interface(
        &self,
        metric: &Metric,
        of: &MeasuredSeries<'_>,
    ) -> Vec<MeasuredSeries<'a>> {
        let all = self.host.metric(metric.name).iter();
        all.filter(|series| series.is_of_interface(of)).copied().collect()
    }

    /// The series of the metric that is highest under the failing load, and its median second.
    pub(crate) fn top(&self, metric: &Metric) -> Option<(MeasuredSeries<'a>, Reading)> {
        let list = self.host.metric(metric.name);
        let mean = |series: &MeasuredSeries<'_>| {
            series.mean(self.fail.window).unwrap_or(f64::NEG_INFINITY)
        };
        let series = *list.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        Some((series, self.median(&series)))
    }

    /// The same among the series that grew with the load, if any did: a series that is as high at
    /// any load would hide them.
    pub(crate) fn top_grown(&self, metric: &Metric) -> Option<(MeasuredSeries<'a>, Reading)> {
        self.grown(metric, Reading::fail)
    }

    /// The series that grew most with the load, if any did: what it is at any load, and grew
    /// little, may be higher.
    pub(crate) fn most_grown(&self, metric: &Metric) -> Option<(MeasuredSeries<'a>, Reading)> {
        self.grown(metric, Reading::growth_at_failure)
    }

    /// Of the series that grew with the load that which is highest `by` this, else [`Self::top`].
    fn grown(
        &self,
        metric: &Metric,
        by: fn(&Reading) -> f64,
    ) -> Option<(MeasuredSeries<'a>, Reading)> {
        let list =
            self.host.metric(metric.name).iter().map(|series| (*series, self.median(series)));
        let grown = list.filter(|(_, reading)| reading.change(metric.unit) == Change::Grew);
        grown.max_by(|a, b| by(&a.1).total_cmp(&by(&b.1))).or_else(|| self.top(metric))
    }

    /// The series of the metric that is nearest to its limit at the onset, its values, and the
    /// limit.
    pub(crate) fn fullest(&self, metric: &Metric) -> Option<(MeasuredSeries<'a>, Reading, f64)> {
        self.fullest_of(metric, |_| true)
    }

    /// The same among the wanted series.
    pub(crate) fn fullest_of(
        &self,
        metric: &Metric,
        is_wanted: impl Fn(&MeasuredSeries<'_>) -> bool,
    ) -> Option<(MeasuredSeries<'a>, Reading, f64)> {
        let list = self.host.metric(metric.name);
        let share = |series: &MeasuredSeries<'_>| {
            Some(series.max(self.onset)? / series.limit().filter(|l| *l > 0.0)?)
        };
        let (series, _) = list
            .iter()
            .filter(|series| is_wanted(series))
            .filter_map(|series| Some((series, share(series)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let limit = series.limit()?;
        let most = |window| series.max(window);
        // Refusals at the limit do not show in a median: the maximum counts.
        let reading = Reading { fail: series.max(self.onset), ..self.reading(most) };
        Some((*series, reading, limit))
    }

    /// The numbers of all series of a metric.
    pub(crate) fn ids(&self, metric: &Metric) -> Vec<SeriesId> {
        self.host.metric(metric.name).iter().map(|series| series.series.id).collect()
    }

    /// The numbers (PID) of the processes to which these series belong.
    pub(crate) fn processes_of(&self, series: &[SeriesId]) -> BTreeSet<String> {
        let all = self.run.host.series.iter().filter(|one| series.contains(&one.id));
        all.filter_map(|one| one.labels.get("pid").cloned()).collect()
    }

    pub(crate) fn is_seen(&self, metric: &Metric) -> bool {
        !self.host.metric(metric.name).is_empty()
    }

    /// The second of the run at which the sum of the series rose to `level`: below it in the second
    /// before, at or above it then. Searched from the onset on; if the sum was above the level
    /// before, backwards to the baseline. A sum that was always above has no crossing. If the load
    /// that passed was above the level and the failing one is well beyond it, the level is half way
    /// between.
    pub(crate) fn crossed(&self, list: &[MeasuredSeries<'_>], level: f64) -> Option<f64> {
        let since_us = self.windows.base.map_or(self.onset.from_us, |base| base.window.from_us);
        let onset_at = self
            .onset
            .from_us
            .saturating_sub(since_us)
            .max(0)
            .div_euclid(1_000_000)
            .min(SECONDS_MAX);
        let from_us = self.onset.from_us - onset_at * 1_000_000;
        let span = Window { from_us, until_us: self.onset.until_us };
        let values = sums(list, span);
        // A series that does not exist yet while the host is watched is 0.
        let watched = sums(self.host.metric(metric::HOST_CPU_BUSY.name), span);
        let level = self.level(list, level);
        let is_below = |second: usize| match values.get(second).copied().flatten() {
            Some(value) => value < level,
            None => watched.get(second).is_some_and(Option::is_some),
        };
        let rises = |second: &usize| {
            let is_above =
                values.get(*second).copied().flatten().is_some_and(|value| value >= level);
            is_above && second.checked_sub(1).is_some_and(is_below)
        };
        let onset_at = usize::try_from(onset_at).unwrap_or(0);
        let at = if is_below(onset_at) {
            (onset_at..values.len()).find(rises)
        } else {
            (0..=onset_at).rev().find(rises)
        }?;
        Some((from_us as f64 / 1e6) + at as f64)
    }

    /// The level whose crossing is searched.
    fn level(&self, list: &[MeasuredSeries<'_>], level: f64) -> f64 {
        let of = self.total(list);
        match (of.pass, of.fail) {
            (Some(pass), Some(fail)) if pass >= level && fail - pass > BEYOND_MIN * fail => {
                (pass + fail) / 2.0
            }
            _ => level,
        }
    }

    /// The same for all series of a metric.
    pub(crate) fn crossed_metric(&self, metric: &Metric, level: f64) -> Option<f64> {
        self.crossed(self.host.metric(metric.name), level)
    }

    /// The backlog behind a saturated resource, 0 to 1: delay, loss or missing frames of the served
    /// users; of players what they wait for and what delivery lacks. A full thread has no queue of
    /// its own that could be read.
    pub(crate) fn backlog(&self) -> Option<f64> {
        let users = &self.users;
        let frames = users.fps.fail.zip(users.fps.before().filter(|before| *before > 0.0));
        let frames = frames.map(|(fail, before)| (1.0 - fail / before) / 0.2);
        let grown = [
            users.delay_ms.growth(2.0),
            users.loss_ratio.growth(0.002),
            frames,
            // A hundredth of the time or of the media is what a player hardly notices.
            users.waiting_ratio.growth(0.01),
            users.shortfall_ratio.growth(0.01),
        ];
        grown.into_iter().flatten().reduce(f64::max).map(|q| q.clamp(0.0, 1.0))
    }

    /// The demand of a resource, of the named instance or of the first.
    pub(crate) fn demand_of(&self, resource: Resource, of: &str) -> Option<&'a Demand> {
        let is_it = |demand: &&Demand| {
            demand.resource == resource && (of.is_empty() || demand.instance == of)
        };
        self.demand.iter().find(is_it)
    }

    /// How many log lines match any of the patterns, as [`Self::events`].
    pub(crate) fn log_lines(&self, patterns: &[&str]) -> Reading {
        let all = self.host.metric("log.lines").iter();
        let list: Vec<_> =
            all.filter(|series| patterns.contains(&series.label("pattern"))).copied().collect();
        self.events(&list)
    }

    /// How often something happened, all series of its rate together: in the failing load or its
    /// joins, whichever has more; in the other windows what their rate comes to in the same time.
    /// One event is nothing as a mean rate, and may be the whole cause.
    pub(crate) fn events(&self, list: &[MeasuredSeries<'_>]) -> Reading {
        let count = |window| {
            let sum = list.iter().filter_map(|series| series.integral(window)).reduce(|a, b| a + b);
            // What has not happened yet has no series: a pattern before its first log line.
            sum.or_else(|| (!list.is_empty() && self.was_read(window)).then_some(0.0))
        };
        let counted =
            [self.fail.window, self.onset].map(|window| (count(window), window.seconds()));
        let most =
            counted.into_iter().max_by(|a, b| a.0.unwrap_or(-1.0).total_cmp(&b.0.unwrap_or(-1.0)));
        let (fail, seconds) = most.unwrap_or_default();
        let other = |window: Window| Some(count(window)? * seconds / window.seconds().max(1.0));
        Reading { fail, ..self.reading(other) }
    }
}

/// A grid of one point a second over the window.
pub(crate) fn seconds(window: Window) -> Grid {
    let count =
        window.until_us.saturating_sub(window.from_us).div_euclid(1_000_000).clamp(1, SECONDS_MAX);
    Grid {
        first_us: window.from_us,
        width_us: 1_000_000,
        count: usize::try_from(count).unwrap_or(1),
    }
}

fn sums(list: &[MeasuredSeries<'_>], window: Window) -> Vec<Option<f64>> {
    let grid = seconds(window);
    let mut sums = vec![None; grid.count];
    list.iter().for_each(|series| series.add_to(grid, &mut sums));
    sums
}

fn middle(values: Vec<f64>) -> Option<f64> {
    at_share(values, 0.5)
}

/// The value below which `share` of the values lie.
pub(crate) fn at_share(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * share).round() as usize).copied()
}
