//! What a finding looks at: the host, the windows, the users, the demand, and the questions that all findings ask.

use throng_observation::host::SeriesId;
use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::{Grid, Host, Measured, Window};
use throng_observation::run::RunData;
use throng_observation::{Clause, Distribution, MediaKind, RunTime};

use crate::demand::{Demand, Resource};
use crate::knowledge::{CROWD_GROUP, Knowledge};
use crate::windows::{Stretch, Windows, fares};

/// Longer stretches than a day are looked at for a day.
const SECONDS_MAX: i64 = 86_400;
/// Threads below this share of a core in both loads are left out of every question.
const THREAD_MIN: f64 = 0.02;

/// What something came to in the three windows; `None` where it was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) base: Option<f64>,
    pub(crate) pass: Option<f64>,
    pub(crate) fail: Option<f64>,
}

impl Reading {
    pub(crate) fn fail(&self) -> f64 {
        self.fail.unwrap_or(0.0)
    }

    /// How far it grew from the floor to the failing load, 0 to 1: sixteen times is 1. `grain` is what is as good as 0.
    pub(crate) fn growth(&self, grain: f64) -> Option<f64> {
        let floor = self.base.or(self.pass)?;
        let ratio = (self.fail?.max(0.0) + grain) / (floor.max(0.0) + grain);
        Some((ratio.log2() / 4.0).clamp(0.0, 1.0))
    }

    /// Whether a counter of errors began at the knee: it counts in the failing load, and the floor had next to nothing.
    pub(crate) fn begins(&self) -> bool {
        let fail = self.fail();
        fail > 0.0 && self.base.unwrap_or(0.0) < fail / 10.0
    }

    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let [base, pass, fail] = [self.base, self.pass, self.fail].map(|value| value.map(&f));
        Self { base, pass, fail }
    }

    pub(crate) fn with(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let both = |a: Option<f64>, b: Option<f64>| Some(f(a?, b?));
        Self {
            base: both(self.base, other.base),
            pass: both(self.pass, other.pass),
            fail: both(self.fail, other.fail),
        }
    }
}

/// How the users fared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Users {
    /// Share of user-seconds that were bad.
    pub(crate) bad_ratio: Reading,
    /// Those who were not connected or without media, of the user-seconds that were bad.
    pub(crate) not_served: Reading,
    /// Median of the delay above the tracks' floors, milliseconds.
    pub(crate) delay_ms: Reading,
    /// Packets lost for good, of those expected.
    pub(crate) loss_ratio: Reading,
    /// Packets that did not come at first, of those expected: lost for good, or sent again.
    pub(crate) missing_ratio: Reading,
    /// Decodable frames a second of a video track.
    pub(crate) fps: Reading,
    /// Connected participants.
    pub(crate) connected: Reading,
    /// Received on the wire by all, bytes a second.
    pub(crate) received: Reading,
}

/// A thread of the server.
#[derive(Clone, Debug)]
pub(crate) struct Thread<'a> {
    pub(crate) name: &'a str,
    pub(crate) process: &'a str,
    pub(crate) pid: &'a str,
    pub(crate) tid: &'a str,
    pub(crate) group: String,
    pub(crate) cpu: Reading,
    /// What it used of its core in at least four of five seconds of the failing load.
    pub(crate) steady: f64,
    pub(crate) wait: Reading,
    pub(crate) measured: Measured<'a>,
}

impl Thread<'_> {
    /// As a table names it.
    pub(crate) fn label(&self) -> String {
        format!("{} ({})", self.name, self.tid)
    }
}

pub(crate) struct Scene<'a> {
    pub(crate) run: &'a RunData,
    pub(crate) host: &'a Host<'a>,
    pub(crate) knowledge: &'a Knowledge,
    pub(crate) windows: &'a Windows,
    pub(crate) fail: Stretch,
    pub(crate) knee: Window,
    pub(crate) demand: &'a [Demand],
    pub(crate) users: Users,
    /// The busiest in the failing load first.
    pub(crate) threads: Vec<Thread<'a>>,
}

impl<'a> Scene<'a> {
    /// `None` where nothing failed.
    pub(crate) fn of(
        run: &'a RunData,
        host: &'a Host<'a>,
        knowledge: &'a Knowledge,
        windows: &'a Windows,
        demand: &'a [Demand],
    ) -> Option<Self> {
        let fail = windows.fail?;
        let mut scene = Self {
            run,
            host,
            knowledge,
            windows,
            fail,
            knee: windows.knee.unwrap_or(fail.window),
            demand,
            users: Users::default(),
            threads: Vec::new(),
        };
        scene.users = scene.users();
        scene.threads = scene.threads();
        Some(scene)
    }

    /// Whether a moment lies in the failing load, its joins and the seconds before.
    pub(crate) fn is_near_failure(&self, at: RunTime) -> bool {
        [self.knee, self.fail.window].iter().any(|window| (window.from_us..=window.until_us).contains(&at.0))
    }

    /// A figure of each window.
    pub(crate) fn reading(&self, of: impl Fn(Window) -> Option<f64>) -> Reading {
        let at = |stretch: Option<Stretch>| stretch.and_then(|stretch| of(stretch.window));
        Reading { base: at(self.windows.base), pass: at(self.windows.pass), fail: of(self.fail.window) }
    }

    /// The median second of a series.
    pub(crate) fn median(&self, series: &Measured<'_>) -> Reading {
        self.reading(|window| middle(series.on(seconds(window)).into_iter().flatten().collect()))
    }

    /// The median second of all series of the metric together.
    pub(crate) fn sum(&self, metric: &Metric) -> Reading {
        let list = self.host.metric(metric.name);
        self.reading(|window| middle(sums(list, window).into_iter().flatten().collect()))
    }

    /// The mean of all series of the metric together, for what counts errors: most of its seconds may be 0.
    pub(crate) fn rate(&self, metric: &Metric) -> Reading {
        let list = self.host.metric(metric.name);
        let mean = |window| {
            let known: Vec<f64> = sums(list, window).into_iter().flatten().collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        Reading {
            // Errors may begin while the crowd still comes in.
            fail: mean(self.fail.window).into_iter().chain(mean(self.knee)).reduce(f64::max),
            ..self.reading(mean)
        }
    }

    /// The series of the metric that was highest in the failing load, and its median second.
    pub(crate) fn top(&self, metric: &Metric) -> Option<(Measured<'a>, Reading)> {
        let list = self.host.metric(metric.name);
        let mean = |series: &Measured<'_>| series.mean(self.fail.window).unwrap_or(f64::NEG_INFINITY);
        let series = *list.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        Some((series, self.median(&series)))
    }

    /// The series of the metric nearest to its limit in the failing load, as shares of the limit.
    pub(crate) fn fullest(&self, metric: &Metric) -> Option<(Measured<'a>, Reading, f64)> {
        let list = self.host.metric(metric.name);
        let share =
            |series: &Measured<'_>| Some(series.max(self.knee)? / series.limit().filter(|l| *l > 0.0)?);
        let (series, _) = list
            .iter()
            .filter_map(|series| Some((series, share(series)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let limit = series.limit()?;
        let most = |window| series.max(window);
        // What is refused at the limit leaves no trace in a median: the most counts.
        let reading = Reading { fail: series.max(self.knee), ..self.reading(most) };
        Some((*series, reading, limit))
    }

    /// The numbers of all series of a metric.
    pub(crate) fn ids(&self, metric: &Metric) -> Vec<SeriesId> {
        self.host.metric(metric.name).iter().map(|series| series.series.id).collect()
    }

    pub(crate) fn is_seen(&self, metric: &Metric) -> bool {
        !self.host.metric(metric.name).is_empty()
    }

    /// When all series together first reached `level` at the knee, seconds of the run.
    pub(crate) fn crossed(&self, list: &[Measured<'_>], level: f64) -> Option<f64> {
        let grid = seconds(self.knee);
        let values = sums(list, self.knee);
        let at = values.iter().position(|value| value.is_some_and(|value| value >= level))?;
        Some((grid.first_us as f64 / 1e6) + at as f64)
    }

    /// The same of a metric's series.
    pub(crate) fn crossed_metric(&self, metric: &Metric, level: f64) -> Option<f64> {
        self.crossed(self.host.metric(metric.name), level)
    }

    pub(crate) fn cpus(&self) -> Option<f64> {
        let busy = self.host.metric(metric::HOST_CPU_BUSY.name).first();
        busy.and_then(Measured::limit).filter(|limit| *limit > 0.0)
    }

    /// Busy share of the host's CPUs.
    pub(crate) fn host_busy(&self) -> Option<Reading> {
        let cpus = self.cpus()?;
        Some(self.sum(&metric::HOST_CPU_BUSY).map(|busy| busy / cpus))
    }

    /// The CPU quota of the server's control group, cores, and what was used of it. Version 1 may count the time of a group
    /// elsewhere than it bounds it: then the watched processes stand for their group.
    pub(crate) fn quota(&self) -> Option<(f64, Reading)> {
        let mut groups = self.host.metric(metric::CGROUP_CPU.name).iter();
        let counted = groups.find_map(|group| Some((group, group.limit().filter(|limit| *limit > 0.0)?)));
        if let Some((group, quota)) = counted {
            return Some((quota, self.median(group).map(|cores| cores / quota)));
        }
        let quota = self.host.metric(metric::CGROUP_CPU_QUOTA.name).first()?;
        let quota = quota.max(self.fail.window).filter(|cores| *cores > 0.0)?;
        Some((quota, self.sum(&metric::PROCESS_CPU).map(|cores| cores / quota)))
    }

    /// Share of the quota's periods in which the server was held back.
    pub(crate) fn throttled(&self) -> Reading {
        self.sum(&metric::CGROUP_THROTTLED_PERIODS)
    }

    /// The longest that a thread of the server waits for a CPU, share of the time.
    pub(crate) fn longest_wait(&self) -> Option<(&Thread<'a>, Reading)> {
        let waiting = self.threads.iter().max_by(|a, b| a.wait.fail().total_cmp(&b.wait.fail()))?;
        Some((waiting, waiting.wait))
    }

    /// What waits or is thrown away behind something that serves too slowly, 0 to 1: delay, loss or missing frames of
    /// those who are served. A full thread has no queue of its own that could be read; its users have.
    pub(crate) fn backlog(&self) -> Option<f64> {
        let users = &self.users;
        let frames = users.fps.fail.zip(users.fps.base.or(users.fps.pass));
        let frames = frames.filter(|(_, floor)| *floor > 0.0).map(|(fail, floor)| (1.0 - fail / floor) / 0.2);
        let grown = [users.delay_ms.growth(2.0), users.loss_ratio.growth(0.002), frames];
        grown.into_iter().flatten().reduce(f64::max).map(|q| q.clamp(0.0, 1.0))
    }

    /// The demand of a resource, by whom it is of.
    pub(crate) fn demand_of(&self, resource: Resource, of: &str) -> Option<&'a Demand> {
        self.demand.iter().find(|demand| demand.resource == resource && (of.is_empty() || demand.of == of))
    }

    /// Log lines a second that match a pattern.
    pub(crate) fn log_lines(&self, pattern: &str) -> Reading {
        let list: Vec<_> = self
            .host
            .metric("log.lines")
            .iter()
            .filter(|series| series.label("pattern") == pattern)
            .copied()
            .collect();
        self.reading(|window| {
            let sum = list.iter().filter_map(|series| series.integral(window)).reduce(|a, b| a + b)?;
            Some(sum / window.seconds().max(1.0))
        })
    }

    fn threads(&self) -> Vec<Thread<'a>> {
        let waits: std::collections::HashMap<(&str, &str), Measured<'a>> = self
            .host
            .metric(metric::THREAD_RUN_QUEUE_WAIT.name)
            .iter()
            .map(|wait| ((wait.label("pid"), wait.label("tid")), *wait))
            .collect();
        let busy = |cpu: &Measured<'_>, stretch: Option<Stretch>| {
            stretch.and_then(|stretch| cpu.mean(stretch.window)).is_some_and(|mean| mean >= THREAD_MIN)
        };
        let mut threads: Vec<Thread<'a>> = self
            .host
            .metric(metric::THREAD_CPU.name)
            .iter()
            .filter(|cpu| busy(cpu, Some(self.fail)) || busy(cpu, self.windows.pass))
            .filter_map(|cpu| {
                let (process, name) = (cpu.label("process"), cpu.label("thread"));
                let group = self.knowledge.group(process, name);
                let key = (cpu.label("pid"), cpu.label("tid"));
                let by_second = cpu.on(seconds(self.fail.window)).into_iter().flatten().collect();
                (group != CROWD_GROUP).then(|| Thread {
                    name,
                    process,
                    pid: key.0,
                    tid: key.1,
                    group,
                    cpu: self.median(cpu),
                    steady: at_share(by_second, 0.2).unwrap_or(0.0),
                    wait: waits.get(&key).map_or_else(Reading::default, |wait| self.median(wait)),
                    measured: *cpu,
                })
            })
            .collect();
        threads.sort_by(|a, b| b.cpu.fail().total_cmp(&a.cpu.fail()));
        threads
    }

    fn users(&self) -> Users {
        let fares = fares(self.run);
        let in_window = |window: Window| {
            let (from, until) = (RunTime(window.from_us).second(), RunTime(window.until_us).second());
            from..until.max(from + 1)
        };
        let mean = |of: &dyn Fn(&crate::windows::Fare) -> (u64, u64)| {
            self.reading(|window| {
                let (part, whole) = fares
                    .range(in_window(window))
                    .map(|(_, fare)| of(fare))
                    .fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
                (whole > 0).then(|| part as f64 / whole as f64)
            })
        };
        let not_served = |fare: &crate::windows::Fare| {
            let of = |clause: Clause| fare.clauses[clause as usize];
            ((of(Clause::NotConnected) + of(Clause::NoMedia)).min(fare.bad), fare.bad)
        };
        let rows = |window: Window| {
            let range = in_window(window);
            self.run.series.iter().filter(move |row| range.contains(&row.second))
        };
        let has_video =
            self.run.series.iter().any(|row| row.kind == Some(MediaKind::Video) && row.tracks > 0);
        let kind = if has_video { MediaKind::Video } else { MediaKind::Audio };
        let delay = self.reading(|window| {
            let mut all = Distribution::new();
            rows(window)
                .filter(|row| row.kind == Some(kind))
                .for_each(|row| all.merge(&row.relative_delay_us));
            all.quantile(0.5).map(|us| us as f64 / 1e3)
        });
        let loss = |is_missing: bool| {
            self.reading(|window| {
                let (mut lost, mut expected) = (0.0, 0.0);
                for counters in rows(window).map(|row| &row.counters) {
                    let for_good = counters.packets_lost.max(0) as f64;
                    lost += if is_missing { for_good + counters.packets_recovered as f64 } else { for_good };
                    expected += counters.packets_expected() as f64;
                }
                (expected > 0.0).then(|| lost / expected)
            })
        };
        let fps = self.reading(|window| {
            let (mut frames, mut active_us) = (0.0, 0.0);
            for row in rows(window).filter(|row| row.kind == Some(MediaKind::Video)) {
                frames += row.counters.frames_decodable as f64;
                active_us += row.counters.active_us as f64;
            }
            (active_us > 0.0 && frames > 0.0).then(|| frames / active_us * 1e6)
        });
        let received = self.reading(|window| {
            let bytes: f64 = rows(window).map(|row| row.counters.wire_bytes as f64).sum();
            (bytes > 0.0).then(|| bytes / window.seconds().max(1.0))
        });
        let connected = self.reading(|window| {
            let mut by_second = std::collections::BTreeMap::new();
            let range = in_window(window);
            for row in self.run.crowd.iter().filter(|row| range.contains(&row.second)) {
                *by_second.entry(row.second).or_insert(0.0) += f64::from(row.connected);
            }
            middle(by_second.into_values().collect())
        });
        Users {
            bad_ratio: mean(&|fare| (fare.bad, fare.users)),
            not_served: mean(&not_served),
            delay_ms: delay,
            loss_ratio: loss(false),
            missing_ratio: loss(true),
            fps,
            connected,
            received,
        }
    }
}

/// One point a second.
pub(crate) fn seconds(window: Window) -> Grid {
    let count = window.until_us.saturating_sub(window.from_us).div_euclid(1_000_000).clamp(1, SECONDS_MAX);
    Grid { first_us: window.from_us, width_us: 1_000_000, count: usize::try_from(count).unwrap_or(1) }
}

fn sums(list: &[Measured<'_>], window: Window) -> Vec<Option<f64>> {
    let grid = seconds(window);
    let mut sums = vec![None; grid.count];
    list.iter().for_each(|series| series.add_to(grid, &mut sums));
    sums
}

fn middle(values: Vec<f64>) -> Option<f64> {
    at_share(values, 0.5)
}

/// The value below which `share` of the values lie.
fn at_share(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * share).round() as usize).copied()
}
