//! Threads of the watched processes: what each one used, and groups of those that do the same work.

use std::collections::BTreeMap;

use throng_observation::host::catalogue::{THREAD_CPU, THREAD_RUN_QUEUE_WAIT};

use super::{Grid, Host, Knowledge, MeasuredSeries, Window};

/// A thread over the run.
pub(crate) struct Thread<'a> {
    pub(crate) name: &'a str,
    pub(crate) process: &'a str,
    pub(crate) tid: &'a str,
    /// Its CPU time, seconds.
    pub(crate) cpu_s: f64,
    /// Share of one core: median over the time it lived, and the most.
    pub(crate) cpu_p50: f64,
    pub(crate) cpu_max: f64,
    /// Share of the time that it was ready and waited for a CPU: 95th percentile.
    pub(crate) wait_p95: Option<f64>,
    measured: MeasuredSeries<'a>,
}

/// Threads that do the same work.
pub(crate) struct Group {
    /// Its name.
    pub(crate) name: String,
    /// Number of threads.
    pub(crate) count: usize,
    /// Their CPU time together, seconds.
    pub(crate) cpu_s: f64,
    /// Cores at each point of the grid.
    pub(crate) cores: Vec<Option<f64>>,
}

/// All threads of a host, the busiest first.
pub(crate) struct Threads<'a>(pub(crate) Vec<Thread<'a>>);

impl<'a> Threads<'a> {
    pub(crate) fn of(host: &Host<'a>) -> Self {
        let waits: BTreeMap<(&str, &str), MeasuredSeries<'a>> =
            host.metric(THREAD_RUN_QUEUE_WAIT).iter().map(|wait| (key(wait), *wait)).collect();
        let thread =
            |cpu: &MeasuredSeries<'a>| Thread::of(*cpu, waits.get(&key(cpu)).copied(), host.window);
        let mut threads: Vec<_> = host.metric(THREAD_CPU).iter().filter_map(thread).collect();
        threads.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        Self(threads)
    }

    /// CPU time of all of them, seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.0.iter().map(|thread| thread.cpu_s).sum()
    }

    /// The thread that used most of its core; `None` where none used any.
    pub(crate) fn hottest(&self) -> Option<&Thread<'a>> {
        self.0.first().filter(|thread| thread.cpu_s > 0.0)
    }

    /// The `most` busiest groups, and all others as one.
    pub(crate) fn groups(&self, grid: Grid, knowledge: &Knowledge, most: usize) -> Vec<Group> {
        let mut by_name: BTreeMap<String, Vec<&Thread<'a>>> = BTreeMap::new();
        for thread in &self.0 {
            by_name.entry(knowledge.group(thread.process, thread.name)).or_default().push(thread);
        }
        let cpu_s =
            |threads: &[&Thread<'_>]| threads.iter().map(|thread| thread.cpu_s).sum::<f64>();
        let mut groups: Vec<(String, Vec<&Thread<'a>>)> = by_name.into_iter().collect();
        groups.sort_by(|a, b| cpu_s(&b.1).total_cmp(&cpu_s(&a.1)));
        let rest: Vec<&Thread<'a>> =
            groups.iter().skip(most).flat_map(|(_, list)| list.clone()).collect();
        let others = groups.len().saturating_sub(most);
        groups.truncate(most);
        if !rest.is_empty() {
            groups.push((format!("{others} others"), rest));
        }
        groups
            .into_iter()
            .map(|(name, threads)| {
                let mut cores = vec![None; grid.count];
                threads.iter().for_each(|thread| thread.measured.add_to(grid, &mut cores));
                // A single thread of its kind keeps its own name.
                let name = match threads.as_slice() {
                    [only] if others == 0 || !name.ends_with(" others") => only.name.to_owned(),
                    _ => name,
                };
                Group { name, count: threads.len(), cpu_s: cpu_s(&threads), cores }
            })
            .collect()
    }
}

impl<'a> Thread<'a> {
    fn of(
        cpu: MeasuredSeries<'a>,
        wait: Option<MeasuredSeries<'a>>,
        window: Window,
    ) -> Option<Self> {
        Some(Self {
            name: cpu.label("thread"),
            process: cpu.label("process"),
            tid: cpu.label("tid"),
            cpu_s: cpu.integral(window)?,
            cpu_p50: cpu.quantile(window, 0.5)?,
            cpu_max: cpu.max_of_seconds(window)?,
            wait_p95: wait.and_then(|wait| wait.quantile(window, 0.95)),
            measured: cpu,
        })
    }

    /// Its share of one core at each point of the grid.
    pub(crate) fn on(&self, grid: Grid) -> Vec<Option<f64>> {
        self.measured.on(grid)
    }
}

fn key<'a>(thread: &MeasuredSeries<'a>) -> (&'a str, &'a str) {
    (thread.label("pid"), thread.label("tid"))
}
