//! Resource usage of a process: CPU time exact to the nanosecond (the scheduler's own count), its
//! split into user and system (`getrusage`), context switches, and, where wanted, system calls.

use super::{SideReport, SystemCalls};

/// Resource usage since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) context_switches: u64,
}

impl Usage {
    /// Of this process with all its threads.
    pub(crate) fn of_self() -> Self {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is writable and of the kernel's type; it is valid when zeroed, whatever
        // the call says.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let ns = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        Self {
            cpu_ns: cpu.tv_sec.unsigned_abs() * 1_000_000_000 + cpu.tv_nsec.unsigned_abs(),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            context_switches: usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs(),
        }
    }
}

/// The measured interval of a role.
pub(crate) struct Window {
    calls: Option<Result<SystemCalls, String>>,
    start: std::sync::OnceLock<Usage>,
}

impl Window {
    /// To be made before the role starts any thread, so that the threads' system calls are counted.
    pub(crate) fn new(inspect: bool) -> Self {
        Self { calls: inspect.then(SystemCalls::of_self), start: std::sync::OnceLock::new() }
    }

    /// Starts the interval once, by the first thread that calls it.
    pub(crate) fn begin(&self) {
        self.start.get_or_init(|| {
            if let Some(Ok(calls)) = &self.calls {
                calls.start();
            }
            Usage::of_self()
        });
    }

    /// Ends the interval and writes its usage into the report.
    pub(crate) fn end(&self, report: &mut SideReport) {
        let end = Usage::of_self();
        let start = self.start.get().copied().unwrap_or(end);
        report.cpu_ns = end.cpu_ns.saturating_sub(start.cpu_ns);
        report.user_ns = end.user_ns.saturating_sub(start.user_ns);
        report.system_ns = end.system_ns.saturating_sub(start.system_ns);
        report.context_switches = end.context_switches.saturating_sub(start.context_switches);
        report.system_calls = self.calls.as_ref().map(|calls| match calls {
            Ok(calls) => calls.count(),
            Err(reason) => Err(reason.clone()),
        });
    }
}
