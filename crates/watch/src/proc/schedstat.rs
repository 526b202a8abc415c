//! `/proc/P/task/T/schedstat` (Documentation/scheduler/sched-stats.rst): CPU time and run queue
//! wait of a thread.

use super::scan::{fields, next_number};

/// Cumulative times of a thread, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a CPU.
    pub on_cpu_ns: u64,
    /// Time runnable, waiting for a CPU.
    pub waiting_ns: u64,
    /// Number of time slices on a CPU.
    pub slices: u64,
}

/// Parses the three numbers; `None` if it is not a schedstat file.
#[must_use]
pub fn parse(text: &[u8]) -> Option<SchedStat> {
    let mut fields = fields(text);
    Some(SchedStat {
        on_cpu_ns: next_number(&mut fields)?,
        waiting_ns: next_number(&mut fields)?,
        slices: next_number(&mut fields)?,
    })
}
