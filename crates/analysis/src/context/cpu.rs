//! CPU use of the host and of the server.

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::{Host, MeasuredSeries, Window};

use super::{Context, Reading, Thread};
use crate::knowledge::is_low_priority;
use crate::windows::second_range;

/// Two watches that read one process at different moments see the same use within this share of it…
const SAME_WITHIN: f64 = 0.1;
/// …or of so many cores, if it is idle.
const CORES_MIN: f64 = 0.1;

impl<'a> Context<'a> {
    pub(crate) fn cpus(&self) -> Option<f64> {
        let busy = self.host.metric(metric::HOST_CPU_BUSY.name).first();
        busy.and_then(MeasuredSeries::limit).filter(|limit| *limit > 0.0)
    }

    /// Share of the host's CPUs in use, without the low-priority work of other processes, which
    /// yields to the server.
    pub(crate) fn host_busy(&self) -> Option<Reading> {
        let cpus = self.cpus()?;
        Some(self.host_busy_with_all()?.less(self.low_priority().map(|cores| cores / cpus)))
    }

    /// Share of the host's CPUs in use.
    pub(crate) fn host_busy_with_all(&self) -> Option<Reading> {
        let cpus = self.cpus()?;
        Some(self.sum(&metric::HOST_CPU_BUSY).map(|busy| busy / cpus))
    }

    /// Cores used by low-priority work (nice) of other processes.
    pub(crate) fn low_priority(&self) -> Reading {
        self.sum(&metric::HOST_CPU_NICE).less(self.own_low_priority())
    }

    /// Cores of user time of watched processes that run at low priority themselves: the host counts
    /// it as nice time.
    pub(crate) fn own_low_priority(&self) -> Reading {
        self.total(&self.processes(&metric::PROCESS_CPU_USER, is_low_priority))
    }

    /// Cores used by the watched processes of this machine.
    pub(crate) fn own_cores(&self) -> Reading {
        self.total(&self.processes(&metric::PROCESS_CPU, |_, _| true))
    }

    /// Share of the host's CPUs used by the watched processes of this machine.
    pub(crate) fn own_share(&self) -> Reading {
        let cpus = self.cpus().unwrap_or(f64::INFINITY);
        self.own_cores().map(|cores| cores / cpus)
    }

    /// Cores of the generator's process if it runs on the watched host, else 0.
    pub(crate) fn generator_cores(&self) -> Reading {
        // The clock error is 0 only on this host.
        let is_here = self.host.info.is_none_or(|info| info.clock_error_us == 0);
        self.reading(|window: Window| {
            if !is_here {
                return Some(0.0);
            }
            let seconds = second_range(window);
            let rows = self.run.generator.iter().filter(|row| seconds.contains(&row.second));
            // The process as a whole; if that was not measured, its threads.
            let sum_us = |of_process: bool| -> u64 {
                rows.clone()
                    .filter(|row| row.thread.is_none() == of_process)
                    .map(|row| row.cpu_us)
                    .sum()
            };
            let used_us = sum_us(true).max(sum_us(false));
            Some(used_us as f64 / 1e6 / window.seconds().max(1.0))
        })
    }

    /// The series of the wanted processes of all watches of this machine; of one that several
    /// watch, once.
    fn processes(
        &self,
        metric: &Metric,
        is_wanted: impl Fn(&Host<'_>, &str) -> bool,
    ) -> Vec<MeasuredSeries<'a>> {
        let mut list: Vec<MeasuredSeries<'a>> = Vec::new();
        for host in self.machine.iter().copied() {
            let wanted =
                host.metric(metric.name).iter().filter(|one| is_wanted(host, one.label("process")));
            for process in wanted {
                // In two PID namespaces two processes may have one number: they do not use as much.
                let used = |one: &MeasuredSeries<'_>| one.mean(self.fail.window).unwrap_or(0.0);
                let is_known = |known: &MeasuredSeries<'_>| {
                    ["process", "pid"].iter().all(|name| known.label(name) == process.label(name))
                        && (used(known) - used(process)).abs()
                            <= SAME_WITHIN * used(process).max(CORES_MIN)
                };
                if !list.iter().any(is_known) {
                    list.push(*process);
                }
            }
        }
        list
    }

    /// The CPU quota of the server's control group, cores, and the used share of it. Control groups
    /// version 1 may count CPU time in another hierarchy than they limit it: then the watched
    /// processes are counted instead.
    pub(crate) fn quota(&self) -> Option<(f64, Reading)> {
        let mut groups = self.host.metric(metric::CGROUP_CPU.name).iter();
        let counted =
            groups.find_map(|group| Some((group, group.limit().filter(|limit| *limit > 0.0)?)));
        if let Some((group, quota)) = counted {
            return Some((quota, self.median(group).map(|cores| cores / quota)));
        }
        let quota = self.host.metric(metric::CGROUP_CPU_QUOTA.name).first()?;
        let quota = quota.max(self.fail.window).filter(|cores| *cores > 0.0)?;
        Some((quota, self.sum(&metric::PROCESS_CPU).map(|cores| cores / quota)))
    }

    /// Share of the quota's periods in which the server was throttled.
    pub(crate) fn throttled(&self) -> Reading {
        self.sum(&metric::CGROUP_THROTTLED_PERIODS)
    }

    /// The thread of the server that waits longest for a CPU, and its wait as a share of the time.
    pub(crate) fn longest_wait(&self) -> Option<(&Thread<'a>, Reading)> {
        let waiting = self.threads.iter().max_by(|a, b| a.wait.fail().total_cmp(&b.wait.fail()))?;
        Some((waiting, waiting.wait))
    }
}
