//! The threads of the server and their use of CPU time in the three windows.

use std::collections::HashMap;

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{MeasuredSeries, Window};

use super::{Context, Reading, at_share, middle, seconds};
use crate::findings::is_any_of_its_pool;
use crate::findings::score::USED_FROM;
use crate::knowledge::CROWD_GROUP;
use crate::windows::LoadWindow;

/// Threads below this share of a core under both loads are left out.
const THREAD_MIN: f64 = 0.02;

/// Least share of a core of a thread that counts as always busy.
const ALWAYS_BUSY_MIN: f64 = 0.50;

/// A thread of the server.
#[derive(Clone, Debug)]
pub(crate) struct Thread<'a> {
    pub(crate) name: &'a str,
    pub(crate) process: &'a str,
    pub(crate) pid: &'a str,
    pub(crate) tid: &'a str,
    pub(crate) group: String,
    pub(crate) cpu: Reading,
    /// The share of its core that it used in at least four of five seconds of the failing load.
    pub(crate) steady: f64,
    /// Share of the time in which it was runnable and had no CPU.
    pub(crate) wait: Reading,
    pub(crate) measured: MeasuredSeries<'a>,
}

impl Thread<'_> {
    /// Name and thread ID.
    pub(crate) fn label(&self) -> String {
        format!("{} ({})", self.name, self.tid)
    }

    /// Whether it waits for a CPU longer than where service is good. A wait that is as long at any
    /// load is not of the users' work.
    pub(crate) fn waits_longer(&self) -> bool {
        self.wait.fail.is_some() && !self.wait.is_constant(Unit::Ratio)
    }

    /// The share of a core that it has work for: it runs, or would run and waits for a CPU.
    pub(crate) fn wanted(&self) -> Reading {
        if self.waits_longer() {
            self.cpu.with(self.wait, |cpu, wait| cpu + wait)
        } else {
            self.cpu
        }
    }

    /// Whether it has work for so much of a core that further work waits.
    pub(crate) fn is_full(&self) -> bool {
        self.wanted().fail() >= USED_FROM
    }

    /// Whether it is as busy where service is good: it polls, or its work is not that of the users.
    pub(crate) fn is_always_busy(&self) -> bool {
        self.cpu.fail() >= ALWAYS_BUSY_MIN && self.cpu.is_constant(Unit::Ratio)
    }
}

impl<'a> Context<'a> {
    /// The busiest thread whose work grew with the load.
    pub(crate) fn hottest(&self) -> Option<&Thread<'a>> {
        self.threads.iter().find(|thread| !thread.is_always_busy())
    }

    /// The threads that are full by themselves, with work that grew and does not move to other
    /// threads.
    pub(crate) fn full_threads(&self) -> impl Iterator<Item = &Thread<'a>> {
        let full =
            self.threads.iter().filter(|thread| thread.is_full() && !thread.is_always_busy());
        full.filter(move |thread| !is_any_of_its_pool(self, thread))
    }

    /// The CPU series of a process's threads, without those that are always busy.
    pub(crate) fn threads_of(&self, pid: &str) -> Vec<MeasuredSeries<'a>> {
        let always: Vec<&str> = self
            .threads
            .iter()
            .filter(|thread| thread.pid == pid && thread.is_always_busy())
            .map(|thread| thread.tid)
            .collect();
        let all = self.host.metric(metric::THREAD_CPU.name).iter();
        all.filter(|cpu| cpu.label("pid") == pid && !always.contains(&cpu.label("tid")))
            .copied()
            .collect()
    }

    /// The series of a thread's wait for a CPU.
    pub(crate) fn waits_of(&self, thread: &Thread<'_>) -> Vec<MeasuredSeries<'a>> {
        let all = self.host.metric(metric::THREAD_RUN_QUEUE_WAIT.name).iter();
        all.filter(|wait| wait.label("tid") == thread.tid && wait.label("pid") == thread.pid)
            .copied()
            .collect()
    }

    /// All threads of the server that are not idle, the busiest under the failing load first.
    pub(super) fn threads(&self) -> Vec<Thread<'a>> {
        let waits = self.host.metric(metric::THREAD_RUN_QUEUE_WAIT.name).iter();
        let waits: HashMap<(&str, &str), MeasuredSeries<'a>> =
            waits.map(|wait| ((wait.label("pid"), wait.label("tid")), *wait)).collect();
        let busy = |cpu: &MeasuredSeries<'_>, stretch: Option<LoadWindow>| {
            stretch
                .and_then(|stretch| cpu.mean(stretch.window))
                .is_some_and(|mean| mean >= THREAD_MIN)
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
                    cpu: self.used_by(cpu),
                    steady: at_share(by_second, 0.2).unwrap_or(0.0),
                    wait: waits.get(&key).map_or_else(Reading::default, |wait| self.median(wait)),
                    measured: *cpu,
                })
            })
            .collect();
        threads.sort_by(|a, b| b.cpu.fail().total_cmp(&a.cpu.fail()));
        threads
    }

    /// The median second of a thread. For a window before a busy thread existed, a thread of the
    /// same name is used, because a restarted server has new threads of the same names; without
    /// one, 0.
    fn used_by(&self, cpu: &MeasuredSeries<'_>) -> Reading {
        let all = self.host.metric(metric::THREAD_CPU.name);
        let in_window = |of: &MeasuredSeries<'_>, window: Window| {
            middle(of.on(seconds(window)).into_iter().flatten().collect())
        };
        let works_much =
            in_window(cpu, self.fail.window).is_some_and(|used| used >= ALWAYS_BUSY_MIN);
        self.reading(|window| {
            in_window(cpu, window).or_else(|| {
                let is_like = |other: &&MeasuredSeries<'_>| {
                    works_much
                        && other.label("process") == cpu.label("process")
                        && other.label("thread") == cpu.label("thread")
                };
                let most = all
                    .iter()
                    .filter(is_like)
                    .filter_map(|other| in_window(other, window))
                    .reduce(f64::max);
                most.or_else(|| self.was_read(window).then_some(0.0))
            })
        })
    }

    /// Whether threads or their host were measured in the window.
    pub(super) fn was_read(&self, window: Window) -> bool {
        [&metric::HOST_CPU_BUSY, &metric::PROCESS_CPU].iter().any(|metric| {
            self.host.metric(metric.name).iter().any(|series| series.mean(window).is_some())
        })
    }
}
