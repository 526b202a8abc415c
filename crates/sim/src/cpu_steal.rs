//! How much of this machine's CPU time a hypervisor takes: whether a measurement that failed had
//! its cores at all.

/// CPU time of all cores since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    steal_ticks: u64,
    /// Idle and stolen ticks included.
    all_ticks: u64,
}

impl CpuTime {
    /// This machine's counters; zero, which means no steal, where the kernel has none.
    #[must_use]
    pub fn so_far() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(&text).unwrap_or_default()
    }

    /// CPU steal since `before`, as a share of all CPU time.
    #[must_use]
    pub fn steal_ratio_since(self, before: Self) -> f64 {
        let all_ticks = self.all_ticks.saturating_sub(before.all_ticks);
        self.steal_ticks.saturating_sub(before.steal_ticks) as f64 / all_ticks.max(1) as f64
    }

    /// The first line of `/proc/stat` (proc_stat(5)): user nice system idle iowait irq softirq
    /// steal; guests' are within user.
    fn parse(text: &str) -> Option<Self> {
        let fields = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            fields.split_ascii_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let steal_ticks = *ticks.get(7)?;
        Some(Self {
            steal_ticks,
            all_ticks: ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_are_the_eighth_and_guests_are_counted_once() {
        let text = "cpu  10 0 20 60 5 1 2 2 99 7\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(CpuTime::parse(text), Some(CpuTime { steal_ticks: 2, all_ticks: 100 }));
        let most = u64::MAX;
        let text = format!("cpu {most} {most} 0 0 0 0 0 {most}");
        assert_eq!(CpuTime::parse(&text), Some(CpuTime { steal_ticks: most, all_ticks: most }));
        for rubbish in [
            "",
            "cpu",
            "cpu ",
            "cpu x",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu 1 2 3 4 5 6 7",
            "cpu 1 2 3 x 5 6 7 8",
        ] {
            assert_eq!(CpuTime::parse(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn the_share_is_of_the_time_in_between() {
        let at = |steal_ticks, all_ticks| CpuTime { steal_ticks, all_ticks };
        for (before, after, expect) in [
            (at(90, 100), at(95, 200), 0.05),
            (at(90, 100), at(90, 200), 0.0),
            (at(90, 100), at(90, 100), 0.0),
            (at(90, 100), at(80, 90), 0.0), // moved to another machine
            (CpuTime::default(), CpuTime::default(), 0.0),
        ] {
            assert_eq!(after.steal_ratio_since(before), expect, "{before:?} {after:?}");
        }
    }

    #[test]
    fn this_machine_reports_its_time() {
        let now = CpuTime::so_far();
        assert!(now.all_ticks > 0 && now.steal_ticks <= now.all_ticks, "{now:?}");
    }
}
