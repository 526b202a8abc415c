//! A process measured from outside: its CPU time, its memory, and how long it waited for a CPU.

use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use throng_observation::host::CpuTimes;

/// The CPU of the generator alone.
pub const GENERATOR_CPU: usize = 1;
/// The CPU of everything else: server, feed, and the harness.
pub const SERVER_CPU: usize = 0;

/// The resource use of a process up to a moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    /// When, seconds since the Unix epoch.
    pub at_s: f64,
    /// User and system time of all its threads, also of those that have ended, microseconds.
    pub cpu_us: u64,
    /// The time its living threads were runnable but waited for a CPU, microseconds.
    pub waited_us: u64,
    /// Resident memory, kB.
    pub rss_kb: u64,
    /// The part of it that is memory-mapped receive rings, which the kernel writes to, kB.
    pub ring_kb: u64,
}

impl Usage {
    /// Reads the use of process `pid`.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn of(pid: u32) -> Result<Self> {
        Ok(Self {
            at_s: now_s(),
            cpu_us: cpu_us(pid)?,
            waited_us: waited_us(pid)?,
            rss_kb: rss_kb(pid)?,
            ring_kb: ring_kb(&fs::read_to_string(format!("/proc/{pid}/maps"))?),
        })
    }
}

/// Seconds since the Unix epoch.
#[must_use]
pub fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The process CPU clock has the scheduler's nanoseconds; /proc/PID/stat has ticks of 10 ms, and
/// /proc/PID/task/*/schedstat lacks threads that have ended.
fn cpu_us(pid: u32) -> Result<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a local that outlives the call.
    let error = unsafe { libc::clock_getcpuclockid(i32::try_from(pid)?, &raw mut clock) };
    ensure!(
        error == 0,
        "no CPU clock of process {pid}: {}",
        std::io::Error::from_raw_os_error(error)
    );
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above.
    let done = unsafe { libc::clock_gettime(clock, &raw mut time) };
    ensure!(done == 0, "the CPU clock of process {pid}: {}", std::io::Error::last_os_error());
    Ok(u64::try_from(time.tv_sec)? * 1_000_000 + u64::try_from(time.tv_nsec)? / 1_000)
}

fn waited_us(pid: u32) -> Result<u64> {
    let mut sum_ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the reading.
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        sum_ns += text.split_whitespace().nth(1).and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum_ns / 1_000)
}

fn rss_kb(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS: it has ended")?;
    line.split_whitespace().next().and_then(|kb| kb.parse().ok()).context("VmRSS is not a number")
}

/// Of `7f0000000000-7f0000020000 rw-s 00000000 00:08 12345    socket:[12345]`, the mappings of
/// sockets (proc_pid_maps(5)).
fn ring_kb(maps: &str) -> u64 {
    let length = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        rest.contains(" socket:[").then_some(address(end)?.saturating_sub(address(start)?))
    };
    maps.lines().filter_map(length).sum::<u64>() / 1024
}

/// The time of a CPU up to a moment, by mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreTime(CpuTimes);

impl CoreTime {
    /// Reads the time of CPU number `cpu`.
    ///
    /// # Errors
    /// If there is no such CPU.
    pub fn of(cpu: usize) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::parse(&text, cpu).with_context(|| format!("/proc/stat has no CPU {cpu}"))
    }

    fn parse(text: &str, cpu: usize) -> Option<Self> {
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        let columns = line.split_ascii_whitespace().map_while(|column| column.parse().ok());
        CpuTimes::from_columns(columns).map(Self)
    }

    /// The share of the time since `earlier` in which it was not idle.
    #[must_use]
    pub fn busy_since(self, earlier: Self) -> f64 {
        self.0.since(&earlier.0).map_or(0.0, |[_, _, _, idle, iowait, ..]| 1.0 - idle - iowait)
    }

    /// The share of the time since `earlier` that the hypervisor withheld (CPU steal).
    #[must_use]
    pub fn steal_since(self, earlier: Self) -> f64 {
        self.0.steal_ratio_since(&earlier.0)
    }
}

/// Fails without what the benchmarks in network namespaces need: root, and a CPU each for generator
/// and server.
///
/// # Errors
/// If either is missing.
pub fn ensure_can_measure() -> Result<()> {
    // SAFETY: geteuid has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    ensure!(
        is_root,
        "this needs root: server and generators run in a network namespace of their own"
    );
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        cores > GENERATOR_CPU,
        "this needs two CPUs: one for the generator, one for the server"
    );
    Ok(())
}

/// Binds this process and its future children to one CPU.
///
/// # Errors
/// When the machine does not have that CPU.
pub fn pin_to(cpu: usize) -> Result<()> {
    // SAFETY: all-zero is an empty set; `cpu` is far below the set's size; the set outlives the
    // call.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    ensure!(done == 0, "cannot run on CPU {cpu}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// A child process that ends with its guard.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts the child.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self(child))
    }

    /// The child itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it ends by itself. Returns its exit code, or `None` when it did not within
    /// `time`.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn ended_within(&mut self, time: Duration) -> Result<Option<i32>> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(None)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_busy_when_it_is_neither_idle_nor_waiting_for_a_disk() {
        let at = |idle: u64, steal: u64| {
            let text = format!(
                "cpu  9 9 9 9\ncpu0 0 0 0 0 0 0 0 0\ncpu1 10 0 20 {idle} 5 1 2 {steal} 7 0\n"
            );
            CoreTime::parse(&text, 1).unwrap()
        };
        let before = at(60, 2);
        assert!((at(160, 2).busy_since(before) - 0.0).abs() < 1e-9);
        assert!((at(135, 27).busy_since(before) - 0.25).abs() < 1e-9);
        assert!((at(135, 27).steal_since(before) - 0.25).abs() < 1e-9);
        assert_eq!((before.busy_since(before), before.steal_since(before)), (0.0, 0.0));
        assert_eq!(CoreTime::parse("cpu1 1 2 3 4\n", 2), None);
    }

    #[test]
    fn only_mappings_of_sockets_are_rings() {
        let maps = "55d0-55e0 r-xp 00000000 fe:00 12 /usr/bin/throng\n\
                    7f0000000000-7f0000020000 rw-s 00000000 00:08 123   socket:[123]\n\
                    7f0000020000-7f0000021000 rw-p 00000000 00:00 0\nrubbish\n";
        assert_eq!((ring_kb(maps), ring_kb("")), (128, 0));
    }
}
