//! What the CPUs of the host did, and what of it stood in the server's way.

use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::MeasuredSeries;

use super::{Context, Reading, Thread};

impl<'a> Context<'a> {
    pub(crate) fn cpus(&self) -> Option<f64> {
        let busy = self.host.metric(metric::HOST_CPU_BUSY.name).first();
        busy.and_then(MeasuredSeries::limit).filter(|limit| *limit > 0.0)
    }

    /// Share of the host's CPUs that was busy with what the server has to share them with: without the low-priority work
    /// of others, which makes way for it.
    pub(crate) fn host_busy(&self) -> Option<Reading> {
        let cpus = self.cpus()?;
        Some(self.host_busy_with_all()?.less(self.low_priority().map(|cores| cores / cpus)))
    }

    /// Share of the host's CPUs that was busy, with whatever.
    pub(crate) fn host_busy_with_all(&self) -> Option<Reading> {
        let cpus = self.cpus()?;
        Some(self.sum(&metric::HOST_CPU_BUSY).map(|busy| busy / cpus))
    }

    /// Cores that ran low-priority work (nice) which is not the server's.
    pub(crate) fn low_priority(&self) -> Reading {
        self.sum(&metric::HOST_CPU_NICE).less(self.own_low_priority())
    }

    /// User time of watched processes that run at lowered priority themselves: the host counts it with the rest of its kind.
    pub(crate) fn own_low_priority(&self) -> Reading {
        let all = self.host.metric(metric::PROCESS_CPU_USER.name).iter();
        let own: Vec<MeasuredSeries<'_>> =
            all.filter(|process| self.knowledge.is_low_priority(process.label("process"))).copied().collect();
        self.total(&own)
    }

    /// What the watched processes use of all CPUs.
    pub(crate) fn own_share(&self) -> Reading {
        let cpus = self.cpus().unwrap_or(f64::INFINITY);
        self.sum(&metric::PROCESS_CPU).map(|cores| cores / cpus)
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
}
