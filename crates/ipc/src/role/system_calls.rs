//! Counts the system calls of a process with the kernel's own counter: `perf_event_open` on the
//! tracepoint `raw_syscalls:sys_enter` (include/uapi/linux/perf_event.h), inherited by threads that
//! start later.

use throng_watch::profiler::TracepointCounter;

/// Files with the tracepoint's number, the most common first.
const TRACEPOINT: [&str; 2] = [
    "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
    "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
];

const HELP: &str = "mount -t tracefs tracefs /sys/kernel/tracing";

/// A counter of system calls; does not count until it is started.
#[derive(Debug)]
pub(crate) struct SystemCalls(TracepointCounter);

impl SystemCalls {
    /// Of this process. Threads that exist already are not counted.
    pub(crate) fn of_self() -> Result<Self, String> {
        Self::of(0)
    }

    /// Of a process that has one thread so far; 0 is this process.
    pub(crate) fn of(pid: u32) -> Result<Self, String> {
        let id = TRACEPOINT.into_iter().map(std::fs::read_to_string).find_map(Result::ok);
        let id = id.ok_or_else(|| {
            format!(
                "the tracepoint raw_syscalls cannot be read: it takes root and tracefs ({HELP})"
            )
        })?;
        let id = id.trim().parse::<u64>();
        let id = id.map_err(|_| "the tracepoint raw_syscalls has no number".to_owned())?;
        TracepointCounter::open(id, pid)
            .map(Self)
            .map_err(|error| format!("perf_event_open: {error}; it takes CAP_PERFMON or root"))
    }

    /// Starts counting.
    pub(crate) fn start(&self) {
        // One that does not start counts nothing.
        let _ = self.0.start();
    }

    /// System calls since the start.
    pub(crate) fn count(&self) -> Result<u64, String> {
        self.0.count().map_err(|error| format!("reading the counter: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_thread_are_counted_one_by_one() {
        let (before, after) = std::thread::spawn(|| {
            let calls = match SystemCalls::of_self() {
                Ok(calls) => calls,
                Err(reason) => return Err(reason),
            };
            calls.start();
            let before = calls.count();
            for _ in 0..1000 {
                let _ = rustix::process::getppid();
            }
            Ok((before, calls.count()))
        })
        .join()
        .unwrap()
        .unwrap_or_else(|reason| {
            let is_mounted = TRACEPOINT.iter().any(|path| std::path::Path::new(path).exists());
            let may_count = rustix::process::geteuid().is_root() && is_mounted;
            assert!(!may_count, "root may count where tracefs is mounted: {reason}");
            assert!(is_mounted || reason.contains(HELP), "{reason}");
            (Ok(0), Ok(1001))
        });
        // The read of the counter is a call itself.
        assert_eq!(after.unwrap() - before.unwrap(), 1001);
    }
}
