//! CPU usage of this machine: a browser on a full machine says nothing about the server.

use throng_watch::proc::cpu_stat::{self, Line};

/// CPU time of all CPUs since boot, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostCpu {
    used: u64,
    all: u64,
}

impl HostCpu {
    /// The current counters; `None` where `/proc/stat` has none.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read("/proc/stat").ok()?)
    }

    /// Steal counts as used, because this machine cannot have that time. Work of low priority
    /// (nice) does not, because it yields. Guest times are part of user and nice.
    fn parse(text: &[u8]) -> Option<Self> {
        let times = cpu_stat::parse(text).find_map(|line| match line {
            Line::All(times) => Some(times),
            _ => None,
        })?;
        let used = times.user + times.system + times.irq + times.softirq + times.steal;
        Some(Self { used, all: used + times.nice + times.idle + times.iowait })
    }

    /// The share that was used since `before`; `None` when no time has passed.
    pub(super) fn ratio_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(self.used.saturating_sub(before.used) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_work_of_low_priority_leave_room() {
        let before = HostCpu::parse(b"cpu  100 50 20 800 30 0 0 0 0 0\ncpu0 1").unwrap();
        let after = HostCpu::parse(b"cpu  150 80 30 890 30 5 5 10 0 0\n").unwrap();
        assert_eq!(after.ratio_since(before), Some(0.4), "80 of 200");
        assert_eq!(before.ratio_since(before), None);
        for broken in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu  a b c d e f g h"] {
            assert_eq!(HostCpu::parse(broken.as_bytes()), None, "{broken}");
        }
    }
}
