//! Counts the system calls of a process with the kernel's own counter: `perf_event_open` on the
//! tracepoint `raw_syscalls:sys_enter` (include/uapi/linux/perf_event.h), inherited by threads that
//! start later.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};

/// Files with the tracepoint's number, the most common first.
const TRACEPOINT: [&str; 2] = [
    "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
    "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
];

const HELP: &str = "mount -t tracefs tracefs /sys/kernel/tracing";

const PERF_TYPE_TRACEPOINT: u32 = 2;
const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;

/// `struct perf_event_attr` as of its first version (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

/// A counter of system calls; does not count until it is started.
#[derive(Debug)]
pub(crate) struct SystemCalls(File);

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
        let attr = Attr {
            kind: PERF_TYPE_TRACEPOINT,
            size: size_of::<Attr>() as u32,
            config: id
                .trim()
                .parse()
                .map_err(|_| "the tracepoint raw_syscalls has no number".to_owned())?,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: FLAG_DISABLED | FLAG_INHERIT,
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
        };
        let pid = libc::pid_t::try_from(pid).map_err(|error| error.to_string())?;
        // SAFETY: `attr` is of the size it states; the other arguments are numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attr,
                pid,
                -1,
                -1,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            let error = std::io::Error::last_os_error();
            return Err(format!("perf_event_open: {error}; it takes CAP_PERFMON or root"));
        }
        let fd = i32::try_from(fd).map_err(|error| error.to_string())?;
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Starts counting.
    pub(crate) fn start(&self) {
        // SAFETY: an ioctl without argument on a descriptor that is open.
        unsafe { libc::ioctl(self.0.as_raw_fd(), PERF_EVENT_IOC_ENABLE, 0) };
    }

    /// System calls since the start.
    pub(crate) fn count(&self) -> Result<u64, String> {
        let mut count = [0; 8];
        (&self.0)
            .read_exact(&mut count)
            .map_err(|error| format!("reading the counter: {error}"))?;
        Ok(u64::from_ne_bytes(count))
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
