//! What to monitor on a host, and why that may be impossible.

use std::io;
use std::time::Duration;

use throng_observation::units;

use crate::target::Target;

/// What to monitor on a host, and how often.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// Display name; `None` means the host name.
    pub name: Option<String>,
    /// Targets whose processes and threads are read; empty means the machine alone.
    pub targets: Vec<Target>,
    /// Interval of a full pass.
    pub period: Duration,
    /// Interval at which the machine's main figures and the hot threads are read in between; `None`
    /// disables it.
    pub fast_period: Option<Duration>,
    /// Maximum number of hot threads.
    pub hot_threads: usize,
    /// CPU budget of monitoring, share of one core; above it the intervals grow.
    pub cpu_ratio_max: f64,
    /// Whether this process does nothing else, so that all its CPU time counts as cost.
    pub is_exclusive: bool,
}

impl Default for WatchConfig {
    /// A full pass each second, 64 hot threads and the main figures each 100 ms, 2 % of a core.
    fn default() -> Self {
        Self {
            name: None,
            targets: Vec::new(),
            period: Duration::from_secs(1),
            fast_period: Some(Duration::from_millis(100)),
            hot_threads: 64,
            cpu_ratio_max: 0.02,
            is_exclusive: false,
        }
    }
}

/// Why monitoring cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A target command could not be started.
    #[error("cannot start `{command}`: {error}")]
    Start {
        /// Its program.
        command: String,
        /// The error.
        error: io::Error,
    },
    /// The PID does not exist. PIDs are not waited for.
    #[error("no process with PID {0}")]
    NoProcess(u32),
    /// The interval is shorter than the minimum.
    #[error("an interval of {} is too short; the minimum is 10 ms", units::duration(*.0))]
    Period(Duration),
    /// The system refused a thread, or has no `/proc`.
    #[error("cannot watch this host: {0}")]
    Host(#[from] io::Error),
}

/// A process that is currently watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Its PID in this process's namespace.
    pub pid: u32,
    /// Its name in the kernel (`comm`).
    pub name: String,
    /// Index in [`WatchConfig::targets`].
    pub target: usize,
}
