//! How much of this machine's CPU time was used meanwhile: a browser on a full machine says nothing about the server.

/// CPU time of all CPUs so far, jiffies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostCpu {
    used: u64,
    all: u64,
}

impl HostCpu {
    /// That of now; `None` where `/proc/stat` does not say.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal, then guest times that are part of
    /// the first two (proc_stat(5)). What is stolen cannot be had and counts as used; work of low priority (nice) gives way
    /// and does not.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *fields.first_chunk::<8>()?;
        let used = user + system + irq + softirq + steal;
        Some(Self { used, all: used + nice + idle + iowait })
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
        let before = HostCpu::parse("cpu  100 50 20 800 30 0 0 0 0 0\ncpu0 …").unwrap();
        let after = HostCpu::parse("cpu  150 80 30 890 30 5 5 10 0 0\n").unwrap();
        assert_eq!(after.ratio_since(before), Some(0.4), "80 of 200");
        assert_eq!(before.ratio_since(before), None);
        for broken in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu  a b c d e f g h"] {
            assert_eq!(HostCpu::parse(broken), None, "{broken}");
        }
    }
}
