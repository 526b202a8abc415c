//! What differs between runs on one machine: the CPU governor, the load before, the CPU time that a
//! hypervisor took.

use std::fs;

/// The scaling governor of the first CPU (Documentation/admin-guide/pm/cpufreq.rst); `None` where
/// frequencies are not scaled by this kernel, as in most virtual machines.
#[must_use]
pub fn governor() -> Option<String> {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The load average of the last minute.
#[must_use]
pub fn load_average() -> Option<f64> {
    first_number(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// CPU time of this machine so far, in ticks (`/proc/stat`), and how much of it was this process's
/// and that of its children that have ended (`/proc/self/stat`), and of others that it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    total: u64,
    idle: u64,
    stolen: u64,
    /// Interrupts: work of the kernel for whoever has traffic, of no process.
    interrupts: u64,
    own: u64,
}

impl CpuTimes {
    /// Until now.
    #[must_use]
    pub fn so_far() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self { own: own_ticks(&read("/proc/self/stat")), ..Self::parse(&read("/proc/stat")) }
    }

    /// The same with what these processes have used, and their children that have ended: they live,
    /// so that nothing of it is this process's yet.
    #[must_use]
    pub fn with(self, pids: &[u32]) -> Self {
        let ticks = |pid: &u32| {
            own_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
        };
        Self { own: pids.iter().map(ticks).fold(self.own, u64::saturating_add), ..self }
    }

    /// user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user time.
    fn parse(text: &str) -> Self {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map(|ticks| ticks.parse().unwrap_or(0)).collect();
        Self {
            total: ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks)),
            // Waiting for I/O is idle too.
            idle: ticks.iter().skip(3).take(2).fold(0, |sum, ticks| sum.saturating_add(*ticks)),
            stolen: ticks.get(7).copied().unwrap_or(0),
            interrupts: ticks
                .iter()
                .skip(5)
                .take(2)
                .fold(0, |sum, ticks| sum.saturating_add(*ticks)),
            own: 0,
        }
    }

    /// The share of the time since `earlier` that a hypervisor took.
    #[must_use]
    pub fn steal_ratio_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 {
            0.0
        } else {
            self.stolen.saturating_sub(earlier.stolen) as f64 / total as f64
        }
    }

    /// The share of the time since `earlier` in which CPUs worked for this machine.
    #[must_use]
    pub fn busy_ratio_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        let not_busy = |times: Self| times.idle.saturating_add(times.stolen);
        let idle = not_busy(self).saturating_sub(not_busy(earlier)).min(total);
        if total == 0 { 0.0 } else { (total - idle) as f64 / total as f64 }
    }

    /// The share of the time since `earlier` in which CPUs worked for other processes than this
    /// one, its children, if those have ended, and those of [`Self::with`].
    ///
    /// Interrupts are nobody's: the traffic of server and crowd makes most of them, and more in a
    /// run that is served well. A kernel that counts them to the process that they interrupt makes
    /// this less than it is, never more.
    #[must_use]
    pub fn others_ratio_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        let not_others = |times: Self| times.own.saturating_add(times.interrupts);
        let own = not_others(self).saturating_sub(not_others(earlier)) as f64 / total.max(1) as f64;
        (self.busy_ratio_since(earlier) - own).max(0.0)
    }
}

/// utime, stime, cutime and cstime of proc_pid_stat(5). The name of the program may have blanks and
/// parentheses.
fn own_ticks(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(4);
    ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_cpu_time() {
        let before = CpuTimes::parse("cpu  10 0 10 70 0 0 0 10 0 0\ncpu0 1 1 1 1\n");
        let after = CpuTimes::parse("cpu  20 0 20 130 0 0 0 30 5 5\n");
        assert!((after.steal_ratio_since(before) - 0.2).abs() < 1e-9);
        assert!((after.busy_ratio_since(before) - 0.2).abs() < 1e-9, "idle 0.6, stolen 0.2");
        assert!(CpuTimes::parse("").steal_ratio_since(before).abs() < 1e-9);
        // Of 20 ticks of work this process and its children had 15.
        let after = CpuTimes { own: before.own + 15, ..after };
        assert!((after.others_ratio_since(before) - 0.05).abs() < 1e-9);
        assert!(
            (CpuTimes { own: 99, ..after }).others_ratio_since(before).abs() < 1e-9,
            "never below nothing"
        );
        assert!(before.others_ratio_since(before).abs() < 1e-9);
        // Of 60 ticks of work 20 were of this process and 30 of interrupts.
        let traffic = CpuTimes::parse("cpu  30 0 20 110 0 10 20 10 0 0\n");
        let traffic = CpuTimes { own: before.own + 20, ..traffic };
        assert!((traffic.others_ratio_since(before) - 0.1).abs() < 1e-9, "{traffic:?}");
        assert_eq!(
            own_ticks("7 (a) b) S 1 7 7 0 -1 4194560 9 8 7 6 100 20 3000 400 20 0 1 0"),
            3_520
        );
        assert_eq!(own_ticks(""), 0);
        // A process that is not there has used nothing, this one what its own file says.
        assert_eq!(before.with(&[u32::MAX]), before);
        let own = CpuTimes::so_far().own;
        let this = CpuTimes { own: 7, ..before }.with(&[std::process::id()]);
        assert!(this.own >= own + 7, "{this:?} {own}");
        assert_eq!(first_number("0.42 0.30 0.20 1/99 77\n"), Some(0.42));
    }
}
