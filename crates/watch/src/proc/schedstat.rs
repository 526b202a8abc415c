//! `/proc/P/task/T/schedstat` (Documentation/scheduler/sched-stats.rst): time on a CPU and in its queue.

use super::scan::{fields, next_number};

/// Times since the thread began, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// On a CPU.
    pub on_cpu_ns: u64,
    /// Ready, and waiting for one.
    pub waiting_ns: u64,
    /// How often it was put on one.
    pub slices: u64,
}

/// The three figures; `None` when it is not such a file.
#[must_use]
pub fn parse(text: &[u8]) -> Option<SchedStat> {
    let mut fields = fields(text);
    Some(SchedStat {
        on_cpu_ns: next_number(&mut fields)?,
        waiting_ns: next_number(&mut fields)?,
        slices: next_number(&mut fields)?,
    })
}
