//! The metrics of a host by name: what each is, its unit, and where it is read.

use super::Unit;

/// A metric of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in a run folder; stable.
    pub name: &'static str,
    /// What its values are counted in.
    pub unit: Unit,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// Where it is read: kernel file and field.
    pub source: &'static str,
}

/// CPU time of a thread.
pub const THREAD_CPU: Metric = Metric {
    name: "thread.cpu",
    unit: Unit::Ratio,
    meaning: "Share of one core that the thread ran on",
    source: "/proc/P/task/T/schedstat field 1",
};

/// Time a thread was ready to run and did not.
pub const THREAD_RUN_QUEUE_WAIT: Metric = Metric {
    name: "thread.run_queue_wait",
    unit: Unit::Ratio,
    meaning: "Share of the time that the thread was ready to run and waited for a CPU",
    source: "/proc/P/task/T/schedstat field 2",
};

/// Every metric that the watcher reads by itself.
pub const ALL: &[Metric] = &[THREAD_CPU, THREAD_RUN_QUEUE_WAIT];

/// The metric of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| metric.name == name)
}
