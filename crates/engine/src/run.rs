//! Starts a run, and holds the strings by which it is stopped and watched.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use throng_observation::RunTime;
use throng_observation::run::{Ending, Row};

use crate::config::{Casting, RunConfig};
use crate::live::Live;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A thread, an epoll set or an eventfd could not be made.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// The certificates that were given could not be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The plan contradicts itself.
    #[error("plan: {0}")]
    Plan(String),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Complete, interrupted or aborted.
    pub ending: Ending,
    /// Why, when it did not run to its end.
    pub why: Option<String>,
    /// When the last participant was gone.
    pub ended_at: RunTime,
    /// Seconds in which the generator was the limit.
    pub limited_seconds: u32,
}

/// A run that goes on.
#[derive(Debug)]
pub struct RunHandle {
    started_at: Instant,
    started_at_unix_us: i64,
    live: Arc<Mutex<Live>>,
}

/// Starts a run; rows of what it sees go to `rows` until the run is over and the sender is dropped.
///
/// # Errors
/// When the machine does not give what the threads need, or the plan contradicts itself.
pub fn run(
    config: RunConfig,
    casting: Arc<dyn Casting>,
    rows: SyncSender<Row>,
) -> Result<RunHandle, EngineError> {
    let _ = (config, casting, rows);
    Err(EngineError::Plan("the driver is not built in".into()))
}

impl RunHandle {
    /// RunTime 0 on the monotonic clock.
    #[must_use]
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// RunTime 0 on the wall clock, microseconds since the Unix epoch.
    #[must_use]
    pub fn started_at_unix_us(&self) -> i64 {
        self.started_at_unix_us
    }

    /// The latest picture of the run.
    #[must_use]
    pub fn live(&self) -> Live {
        self.live.lock().map(|live| live.clone()).unwrap_or_default()
    }

    /// Ends the run early in an orderly way: no more joins, everybody leaves.
    pub fn stop(&self) {}

    /// Ends the run because something forbids it to go on.
    pub fn abort(&self, why: &str) {
        let _ = why;
    }

    /// Whether all participants are gone and all rows are sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        false
    }

    /// Waits for the end.
    #[must_use]
    pub fn wait(self) -> RunEnd {
        RunEnd { ending: Ending::Unfinished, why: None, ended_at: RunTime::default(), limited_seconds: 0 }
    }
}
