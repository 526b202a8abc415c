//! The limits of the generator: in a second beyond them the figures describe the generator more
//! than the server. One place, so that the live view, the search and the report apply the same
//! limits.

use crate::run::GeneratorRow;

/// CPU of an engine thread, share of one core: the usual knee of a queue, where waiting exceeds
/// twice the service time.
pub const THREAD_CPU_RATIO_MAX: f64 = 0.70;

/// 99th percentile of how late a thread's loop handles its deadlines, milliseconds.
///
/// Lateness does not affect the delay figures, because the kernel timestamps arrivals; it delays
/// joins and feedback. Browsers look for packets to request again every 20 ms (libwebrtc
/// `NackPeriodicProcessor`), so up to that value a crowd responds as real viewers do.
pub const LAG_P99_MS_MAX: f64 = 20.0;

/// Least number of late deadlines in a second, or all where it has fewer: a nearly idle thread has
/// ten deadlines a second, of which a single one would be the 99th percentile. A thread that stands
/// still for long has few deadlines, and all of them late.
pub const LATE_DEADLINES_MIN: u32 = 3;

/// A thread that did not run for so long stood still, milliseconds: the process was stopped, or its
/// machine ran something else. The deadlines that fell due meanwhile were late, though the thread
/// meets only one of them afterwards, and each second of which it stood still for more than
/// [`STEAL_RATIO_MAX`] is a late one.
pub const STANDSTILL_MS_MIN: u64 = 500;

/// CPU steal (time taken by the hypervisor), share of all CPUs: 50 ms of each second, as long as
/// the shortest freeze that a viewer of 20 frames per second could notice. Beyond it other virtual
/// machines affect the measurement.
pub const STEAL_RATIO_MAX: f64 = 0.05;

/// Frames received by the host and dropped at the full backlog of a CPU (softnet), share of all of
/// a second: a tenth of the loss that makes a viewer's second bad. Which sockets they were for is
/// unknown, so short periods are forgiven. Drops of the generator's own sockets are counted one by
/// one, see [`Limit::ReceiveDrops`].
pub const HOST_DROP_RATIO_MAX: f64 = 0.001;

/// The event of a second above [`HOST_DROP_RATIO_MAX`].
pub const HOST_DROPS_EVENT: &str = "host_drops";

/// The event of a second in which the generator exceeded any of its limits. Its detail names them.
pub const GENERATOR_LIMITED_EVENT: &str = "generator_limited";

/// The event of datagrams that arrived in a burst after their sender had been silent for a second
/// or more, and found the generator's receive buffers full: a server that stalled sends its backlog
/// faster than any receiver reads. Its count is the number of datagrams.
pub const BURST_DROPS_EVENT: &str = "burst_drops";

/// The same of datagrams that found a memory-mapped ring of the generator full: the host's counters
/// do not contain them.
pub const RING_BURST_DROPS_EVENT: &str = "ring_burst_drops";

/// Share of the seconds that may exceed a limit of CPU, lag, steal or the host before the result is
/// invalid: the exceed ratio that a capacity trial allows the server (RFC 9971 with trials of 1 s),
/// so that generator and server have the same rule.
pub const LIMITED_RATIO_MAX: f64 = 0.05;

/// Least number of such seconds, so that one hiccup does not invalidate a short run.
pub const LIMITED_SECONDS_MIN: usize = 3;

/// Whether `limited` of `all` seconds past a limit invalidate what was measured in them: a run or
/// one hold of a search.
#[must_use]
pub fn is_sustained(limited: usize, all: f64) -> bool {
    limited >= LIMITED_SECONDS_MIN && limited as f64 > LIMITED_RATIO_MAX * all
}

/// Memory of the process, share of the machine's or of its control group's. Beyond it the run ends,
/// before the kernel's out-of-memory killer chooses a process.
pub const MEMORY_RATIO_MAX: f64 = 0.80;

/// The event of a run that ended at [`MEMORY_RATIO_MAX`]. Its detail says how much memory was used.
pub const MEMORY_EVENT: &str = "generator_memory";

/// The event of a run in which the generator's machine was suspended: servers went on meanwhile,
/// and the run's own clock did not. Its detail says for how long.
pub const SUSPENDED_EVENT: &str = "generator_suspended";

/// A limit of the generator in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`THREAD_CPU_RATIO_MAX`].
    ThreadCpu,
    /// [`LAG_P99_MS_MAX`].
    Lag,
    /// [`STEAL_RATIO_MAX`].
    Steal,
    /// No datagram may be dropped at the generator's full receive buffers: it would count as loss
    /// of the server. A burst after a silence is caused by the server ([`BURST_DROPS_EVENT`]).
    ReceiveDrops,
    /// No datagram may be dropped at the generator's full send buffers: the server waits for that
    /// feedback or media.
    SendDrops,
    /// No observation may be dropped by the generator's collector.
    ObservationDrops,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::ThreadCpu,
        Self::Lag,
        Self::Steal,
        Self::ReceiveDrops,
        Self::SendDrops,
        Self::ObservationDrops,
    ];

    /// The figure that it limits; `None` for a row without it.
    #[must_use]
    pub fn figure(self, row: &GeneratorRow) -> Option<f64> {
        let of_thread = row.thread.is_some();
        match self {
            Self::ThreadCpu => of_thread.then_some(row.cpu_us as f64 / 1e6),
            Self::Lag => of_thread.then_some(row.lag_p99_us as f64 / 1e3),
            Self::Steal => (!of_thread).then_some(row.steal_ratio),
            Self::ReceiveDrops => Some(row.socket_drops as f64),
            Self::SendDrops => Some(row.send_drops as f64),
            Self::ObservationDrops => Some(row.observations_dropped as f64),
        }
    }

    /// The largest figure that does not exceed it.
    #[must_use]
    pub fn max(self) -> f64 {
        match self {
            Self::ThreadCpu => THREAD_CPU_RATIO_MAX,
            Self::Lag => LAG_P99_MS_MAX,
            Self::Steal => STEAL_RATIO_MAX,
            Self::ReceiveDrops | Self::SendDrops | Self::ObservationDrops => 0.0,
        }
    }

    /// Whether the second of `row` exceeds it.
    #[must_use]
    pub fn is_passed(self, row: &GeneratorRow) -> bool {
        self.figure(row).is_some_and(|figure| figure > self.max())
    }

    /// Whether it takes more than [`LIMITED_RATIO_MAX`] of a run's seconds to make the run invalid.
    /// One slow second in an hour (a page fault storm, a cron job) affects less than one
    /// user-second in a thousand; each datagram that the generator drops counts as loss of the
    /// server.
    #[must_use]
    pub fn is_allowed_when_brief(self) -> bool {
        matches!(self, Self::ThreadCpu | Self::Lag | Self::Steal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_seconds_and_more_than_a_twentieth_are_sustained() {
        assert!(!is_sustained(2, 10.0), "one hiccup");
        assert!(is_sustained(3, 10.0));
        assert!(!is_sustained(5, 100.0), "exactly the exceed ratio is allowed, as for the server");
        assert!(is_sustained(6, 100.0));
    }

    #[test]
    fn each_limit_is_passed_by_its_own_figure_alone() {
        let thread = || GeneratorRow { thread: Some(0), ..GeneratorRow::default() };
        let process = GeneratorRow::default;
        for (row, expect) in [
            (GeneratorRow { cpu_us: 700_000, lag_p99_us: 20_000, ..thread() }, None),
            (GeneratorRow { cpu_us: 700_001, ..thread() }, Some(Limit::ThreadCpu)),
            (GeneratorRow { cpu_us: 7_000_000, ..process() }, None),
            (GeneratorRow { lag_p99_us: 20_001, ..thread() }, Some(Limit::Lag)),
            (GeneratorRow { steal_ratio: 0.05, ..process() }, None),
            (GeneratorRow { steal_ratio: 0.051, ..process() }, Some(Limit::Steal)),
            (GeneratorRow { socket_drops: 1, ..thread() }, Some(Limit::ReceiveDrops)),
            (GeneratorRow { send_drops: 1, ..thread() }, Some(Limit::SendDrops)),
            (GeneratorRow { observations_dropped: 1, ..thread() }, Some(Limit::ObservationDrops)),
        ] {
            let passed: Vec<_> =
                Limit::ALL.into_iter().filter(|limit| limit.is_passed(&row)).collect();
            assert_eq!(passed, expect.into_iter().collect::<Vec<_>>(), "{row:?}");
        }
    }
}
