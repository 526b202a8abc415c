//! The generator watches itself: past these limits the figures say more about it than about the server.
//!
//! The limits are [`throng_observation::limits`]. Parsers take text; `Machine` opens the paths.

use std::time::Duration;

use throng_observation::limits::{LAG_P99_MS_MAX, STEAL_RATIO_MAX, WORKER_CPU_RATIO_MAX};
use throng_observation::run::GeneratorRow;

/// Which limits the rows of one second pass, as sentences; none when the generator is healthy.
#[must_use]
pub fn limits_passed(rows: &[GeneratorRow]) -> Vec<String> {
    let mut limits = Vec::new();
    for row in rows {
        let who = row.worker.map_or_else(|| "the process".to_owned(), |number| format!("worker {number}"));
        if row.worker.is_some() && row.cpu_us as f64 > WORKER_CPU_RATIO_MAX * 1e6 {
            limits.push(format!("{who} used {:.0} % of its core", row.cpu_us as f64 / 1e4));
        }
        if row.lag_p99_us as f64 > LAG_P99_MS_MAX * 1e3 {
            limits.push(format!("{who} was {:.1} ms late (p99)", row.lag_p99_us as f64 / 1e3));
        }
        if row.socket_drops > 0 {
            limits.push(format!("{who} dropped {} received datagrams", row.socket_drops));
        }
        if row.send_drops > 0 {
            limits.push(format!("the kernel did not take {} datagrams of {who}", row.send_drops));
        }
        if row.observations_dropped > 0 {
            limits.push(format!("{} observations of {who} were dropped", row.observations_dropped));
        }
        if row.steal_ratio > STEAL_RATIO_MAX {
            limits.push(format!("the hypervisor took {:.1} % of the machine", row.steal_ratio * 100.0));
        }
    }
    limits
}

/// Nanoseconds that a thread was runnable and waited for a CPU: field 2 of `schedstat`.
#[must_use]
pub fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Steal and total jiffies of all CPUs: the first line of `/proc/stat` (user nice system idle iowait irq softirq steal;
/// guest times are within user).
#[must_use]
pub fn parse_steal(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> =
        line.split_ascii_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    let steal = *fields.get(7)?;
    Some((steal, fields.iter().fold(0, |sum, field| sum.saturating_add(*field))))
}

/// A `Name:   123 kB` line of `/proc/self/status` or `/proc/meminfo`, in bytes.
#[must_use]
pub fn parse_kb(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Reads the process's health from the machine, second by second.
#[derive(Debug)]
pub(crate) struct Machine {
    cpu: Duration,
    steal: Option<(u64, u64)>,
    memory_bytes: Option<u64>,
}

impl Machine {
    pub(crate) fn begin() -> Self {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
            .iter()
            .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
        let memory_bytes =
            parse_kb(&meminfo, "MemTotal").map(|total| group.map_or(total, |group| group.min(total)));
        Self { cpu: process_cpu(), steal: steal(), memory_bytes }
    }

    /// The process's row of `second`, which ended just now.
    pub(crate) fn measure(&mut self, second: i64) -> GeneratorRow {
        let (cpu, steal) = (process_cpu(), steal());
        let steal_ratio = match (self.steal, steal) {
            (Some((stolen, all)), Some((stolen_now, all_now))) if all_now > all => {
                stolen_now.saturating_sub(stolen) as f64 / (all_now - all) as f64
            }
            _ => 0.0,
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let row = GeneratorRow {
            second,
            worker: None,
            cpu_us: u64::try_from(cpu.saturating_sub(self.cpu).as_micros()).unwrap_or(u64::MAX),
            rss_bytes: parse_kb(&status, "VmRSS").unwrap_or(0),
            open_fds: std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64),
            steal_ratio,
            ..GeneratorRow::default()
        };
        (self.cpu, self.steal) = (cpu, steal);
        row
    }

    /// Share of the machine's or control group's memory that `rss_bytes` are.
    pub(crate) fn memory_ratio(&self, rss_bytes: u64) -> f64 {
        self.memory_bytes.map_or(0.0, |all| rss_bytes as f64 / all.max(1) as f64)
    }
}

fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn steal() -> Option<(u64, u64)> {
    parse_steal(&std::fs::read_to_string("/proc/stat").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_and_rubbish_is_not() {
        assert_eq!(parse_schedstat("1234 5678 9\n"), Some(5678));
        assert_eq!(parse_steal("cpu  10 0 20 60 5 1 2 2 99 0\ncpu0 1 2 3\n"), Some((2, 100)));
        assert_eq!(parse_kb("VmPeak:\t 9 kB\nVmRSS:\t  1024 kB\n", "VmRSS"), Some(1 << 20));
        for rubbish in ["", "x", "cpu ", "cpu x", "VmRSS", "VmRSS: x kB"] {
            assert_eq!((parse_schedstat(rubbish), parse_kb(rubbish, "VmRSS")), (None, None), "{rubbish}");
            assert_eq!(parse_steal(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn each_limit_is_told_by_itself() {
        let healthy =
            GeneratorRow { worker: Some(1), cpu_us: 500_000, lag_p99_us: 900, ..GeneratorRow::default() };
        assert!(limits_passed(std::slice::from_ref(&healthy)).is_empty());
        for (row, word) in [
            (GeneratorRow { cpu_us: 800_000, ..healthy.clone() }, "80 %"),
            (GeneratorRow { lag_p99_us: 25_000, ..healthy.clone() }, "25.0 ms"),
            (GeneratorRow { socket_drops: 1, ..healthy.clone() }, "received"),
            (GeneratorRow { send_drops: 1, ..healthy.clone() }, "not take"),
            (GeneratorRow { observations_dropped: 1, ..healthy.clone() }, "observations"),
            (GeneratorRow { steal_ratio: STEAL_RATIO_MAX + 0.01, ..healthy.clone() }, "hypervisor"),
        ] {
            let limits = limits_passed(&[row]);
            assert!(limits.len() == 1 && limits[0].contains(word), "{limits:?}");
        }
    }
}
