//! Health of the generator: past these limits the figures say more about the generator than about
//! the server.
//!
//! The limits are [`throng_observation::limits`]. Parsers take text; `Machine` opens the paths.

use std::time::Duration;

use throng_observation::host::CpuTimes;
use throng_observation::limits::{HOST_DROP_RATIO_MAX, Limit};
use throng_observation::run::GeneratorRow;

use crate::memory_use::{Memory, MemoryUse};

/// The limits that the rows of one second pass, as sentences; none if the generator is healthy.
#[must_use]
pub fn limits_passed(rows: &[GeneratorRow]) -> Vec<String> {
    let passed = |row| Limit::ALL.into_iter().filter(move |limit| limit.is_passed(row));
    rows.iter().flat_map(|row| passed(row).map(|limit| sentence(limit, row))).collect()
}

fn sentence(limit: Limit, row: &GeneratorRow) -> String {
    let subject =
        row.thread.map_or_else(|| "the process".to_owned(), |number| format!("thread {number}"));
    let max = limit.max();
    match limit {
        Limit::ThreadCpu => format!(
            "{subject} used {:.0} % of its core, more than {:.0} %",
            row.cpu_us as f64 / 1e4,
            max * 100.0
        ),
        Limit::Lag => format!(
            "{subject} was {:.1} ms late (p99), more than {max:.0} ms",
            row.lag_p99_us as f64 / 1e3
        ),
        Limit::Steal => format!(
            "CPU steal was {:.1} % of the machine, more than {:.0} %",
            row.steal_ratio * 100.0,
            max * 100.0
        ),
        Limit::ReceiveDrops => format!("{subject} dropped {} received datagrams", row.socket_drops),
        Limit::SendDrops => {
            format!("the kernel had no room for {} datagrams of {subject}", row.send_drops)
        }
        Limit::ObservationDrops => {
            format!("{} observations of {subject} were dropped", row.observations_dropped)
        }
    }
}

/// Nanoseconds that a thread was runnable and waited for a CPU: field 2 of `schedstat`.
#[must_use]
pub fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A `Name:   123 kB` line of `/proc/self/status` or `/proc/meminfo`, in bytes.
#[must_use]
pub fn parse_kb(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Frames that the host received, and those it dropped before any socket (backlog full): the first
/// two columns of `/proc/net/softnet_stat`, summed over all CPUs.
#[must_use]
pub fn parse_softnet(text: &str) -> Option<(u64, u64)> {
    let mut sum = None;
    for line in text.lines() {
        let mut columns =
            line.split_ascii_whitespace().map(|column| u64::from_str_radix(column, 16));
        let (taken, dropped) = (columns.next()?.ok()?, columns.next()?.ok()?);
        let (all_taken, all_dropped) = sum.unwrap_or((0, 0));
        sum = Some((taken.saturating_add(all_taken), dropped.saturating_add(all_dropped)));
    }
    sum
}

/// `RcvbufErrors` and `SndbufErrors` of UDP over IPv4: two lines of `/proc/net/snmp`, names and
/// values.
#[must_use]
pub fn parse_udp_errors(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let of = |wanted: &str| {
        let place = names.split_ascii_whitespace().position(|name| name == wanted)?;
        values.split_ascii_whitespace().nth(place)?.parse::<u64>().ok()
    };
    Some((of("RcvbufErrors")?, of("SndbufErrors")?))
}

/// Packets that the host dropped, for all its programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostLosses {
    /// Frames received.
    pub(crate) frames: u64,
    /// Frames dropped because a CPU's backlog was full.
    pub(crate) frames_dropped: u64,
    /// Received datagrams dropped because a receive buffer was full, throng's own included.
    pub(crate) unreceived: u64,
    /// Sent datagrams dropped by a full queue; the kernel does not report these to any socket.
    pub(crate) unsent: u64,
}

impl HostLosses {
    /// The kernel's counts since boot.
    fn so_far() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (frames, frames_dropped) =
            parse_softnet(&read("/proc/net/softnet_stat")).unwrap_or_default();
        let (unreceived, unsent) = parse_udp_errors(&read("/proc/net/snmp")).unwrap_or_default();
        Self { frames, frames_dropped, unreceived, unsent }
    }

    fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            frames_dropped: self.frames_dropped.saturating_sub(before.frames_dropped),
            unreceived: self.unreceived.saturating_sub(before.unreceived),
            unsent: self.unsent.saturating_sub(before.unsent),
        }
    }

    /// A sentence if a second was past [`HOST_DROP_RATIO_MAX`].
    pub(crate) fn past_limit(self) -> Option<String> {
        let (dropped, all) = (self.frames_dropped, self.frames.saturating_add(self.frames_dropped));
        (dropped as f64 > HOST_DROP_RATIO_MAX * all as f64)
            .then(|| format!("this host dropped {dropped} of {all} received frames (softnet)"))
    }
}

impl std::ops::AddAssign for HostLosses {
    fn add_assign(&mut self, other: Self) {
        self.frames = self.frames.saturating_add(other.frames);
        self.frames_dropped = self.frames_dropped.saturating_add(other.frames_dropped);
        self.unreceived = self.unreceived.saturating_add(other.unreceived);
        self.unsent = self.unsent.saturating_add(other.unsent);
    }
}

/// Reads the health of process and host from `/proc`, second by second.
#[derive(Debug)]
pub(crate) struct Machine {
    cpu: Duration,
    cpu_times: Option<CpuTimes>,
    losses: HostLosses,
    memory: Memory,
}

impl Machine {
    pub(crate) fn begin() -> Self {
        let memory = Memory::begin("", &status());
        Self { cpu: process_cpu(), cpu_times: cpu_times(), losses: HostLosses::so_far(), memory }
    }

    /// What the process uses at present of the memory that it may use.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        self.memory.used_by(&status())
    }

    /// The process's row of `second`, which has just ended, and the host's losses since the last
    /// call.
    pub(crate) fn measure(&mut self, second: i64) -> (GeneratorRow, HostLosses) {
        let (cpu, cpu_times) = (process_cpu(), cpu_times());
        let steal_ratio = cpu_times
            .zip(self.cpu_times)
            .map_or(0.0, |(now, before)| now.steal_ratio_since(&before));
        let status = status();
        let row = GeneratorRow {
            second,
            thread: None,
            cpu_us: u64::try_from(cpu.saturating_sub(self.cpu).as_micros()).unwrap_or(u64::MAX),
            rss_bytes: parse_kb(&status, "VmRSS").unwrap_or(0),
            open_fds: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |entries| entries.count() as u64),
            steal_ratio,
            ..GeneratorRow::default()
        };
        (self.cpu, self.cpu_times) = (cpu, cpu_times);
        let before = std::mem::replace(&mut self.losses, HostLosses::so_far());
        (row, self.losses.since(before))
    }
}

fn status() -> String {
    std::fs::read_to_string("/proc/self/status").unwrap_or_default()
}

fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn cpu_times() -> Option<CpuTimes> {
    CpuTimes::of_all_cores(&std::fs::read_to_string("/proc/stat").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_and_rubbish_is_not() {
        assert_eq!(parse_schedstat("1234 5678 9\n"), Some(5678));
        assert_eq!(parse_kb("VmPeak:\t 9 kB\nVmRSS:\t  1024 kB\n", "VmRSS"), Some(1 << 20));
        assert_eq!(parse_softnet("0000000a 00000001 0\n00000010 00000002 0\n"), Some((26, 3)));
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 9 8 7 6 5 4\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!(parse_udp_errors(snmp), Some((5, 4)));
        for rubbish in
            ["", "x", "0000000a", "zz 1", "Udp:", "Udp: RcvbufErrors\nUdp: x\n", "Udp: A\nUdp: 1\n"]
        {
            assert_eq!(
                (parse_softnet(rubbish), parse_udp_errors(rubbish)),
                (None, None),
                "{rubbish}"
            );
        }
        for rubbish in ["", "x", "cpu ", "cpu x", "VmRSS", "VmRSS: x kB"] {
            assert_eq!(
                (parse_schedstat(rubbish), parse_kb(rubbish, "VmRSS")),
                (None, None),
                "{rubbish}"
            );
        }
    }

    #[test]
    fn a_host_that_throws_away_more_than_a_thousandth_of_its_frames_is_past_its_limit() {
        let second =
            |frames, frames_dropped| HostLosses { frames, frames_dropped, ..HostLosses::default() };
        for (losses, expect) in [
            (second(0, 0), false),
            (second(9_990, 10), false),
            (second(9_989, 11), true),
            (HostLosses { unreceived: 1000, unsent: 1000, ..second(10, 0) }, false),
        ] {
            assert_eq!(losses.past_limit().is_some(), expect, "{losses:?}");
        }
        let mut sum = second(1, 2);
        sum += HostLosses { frames: 5, frames_dropped: 5, unreceived: 9, unsent: 7 }
            .since(second(1, 1));
        assert_eq!(sum, HostLosses { frames: 5, frames_dropped: 6, unreceived: 9, unsent: 7 });
    }

    #[test]
    fn each_passed_limit_has_a_sentence_of_its_own() {
        let healthy = GeneratorRow {
            thread: Some(1),
            cpu_us: 500_000,
            lag_p99_us: 900,
            ..GeneratorRow::default()
        };
        assert!(limits_passed(std::slice::from_ref(&healthy)).is_empty());
        for (row, word) in [
            (
                GeneratorRow { cpu_us: 800_000, ..healthy.clone() },
                "80 % of its core, more than 70 %",
            ),
            (
                GeneratorRow { lag_p99_us: 25_000, ..healthy.clone() },
                "25.0 ms late (p99), more than 20 ms",
            ),
            (GeneratorRow { socket_drops: 1, ..healthy.clone() }, "received"),
            (GeneratorRow { send_drops: 1, ..healthy.clone() }, "no room"),
            (GeneratorRow { observations_dropped: 1, ..healthy.clone() }, "observations"),
            (
                GeneratorRow { thread: None, steal_ratio: 0.06, ..healthy.clone() },
                "CPU steal was 6.0 % of the machine, more than 5 %",
            ),
        ] {
            let limits = limits_passed(&[row]);
            assert!(limits.len() == 1 && limits[0].contains(word), "{limits:?}");
        }
    }
}
