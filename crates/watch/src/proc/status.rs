//! `/proc/P/status` and `/proc/P/task/T/status`: context switches, peak memory, affinity.

use super::scan::{cpu_list, find, lines};

/// Context switches of a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The thread waited for something.
    pub voluntary: u64,
    /// The thread was preempted.
    pub involuntary: u64,
}

/// Parses the context switches; `None` if the file has none.
#[must_use]
pub fn switches(text: &[u8]) -> Option<Switches> {
    Some(Switches {
        voluntary: find(text, b"voluntary_ctxt_switches")?,
        involuntary: find(text, b"nonvoluntary_ctxt_switches")?,
    })
}

/// The number of CPUs that the thread may run on (`Cpus_allowed_list`): by its affinity and the
/// cpuset of its control group. CPUs that are not online may be among them.
#[must_use]
pub fn cpus_allowed(text: &[u8]) -> Option<u32> {
    let list = lines(text).find_map(|line| line.strip_prefix(b"Cpus_allowed_list:"))?;
    let list = std::str::from_utf8(list).ok()?;
    u32::try_from(cpu_list(list.trim()).count()).ok().filter(|cpus| *cpus > 0)
}

/// The peak resident set (`VmHWM`), bytes.
#[must_use]
pub fn peak_resident_bytes(text: &[u8]) -> Option<u64> {
    find(text, b"VmHWM").map(|kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_that_a_thread_may_run_on_are_counted() {
        for (text, expect) in [
            (&b"Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed:\t1\n"[..], Some(2)),
            (b"Cpus_allowed_list:\t0,4-7\n", Some(5)),
            (b"Cpus_allowed_list:\t\n", None),
            (b"Cpus_allowed:\t3\n", None),
            (b"Cpus_allowed_list:\t\xff\n", None),
        ] {
            assert_eq!(cpus_allowed(text), expect, "{}", String::from_utf8_lossy(text));
        }
    }
}
