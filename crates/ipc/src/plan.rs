//! What to measure, and how a process for it is started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Transport, Workload};

/// What the consumer does with a frame that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadMode {
    /// Checks the marks at both edges and leaves the payload alone: the cost of the passing itself.
    Edges,
    /// Reads every byte once and holds it against what was sent, as an encoder reads a picture.
    All,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The transports, in the order of the table.
    pub transports: Vec<Transport>,
    /// What is passed.
    pub workload: Workload,
    /// What the consumer does with it.
    pub reading: ReadMode,
    /// How long each transport is measured in each round, after its warm-up.
    pub duration: Duration,
    /// How often all of them are measured, one after the other; a row is the median of its rounds.
    pub rounds: u32,
    /// Whether a second, short pass counts system calls and samples where the time goes; both disturb, so they are not
    /// done in the pass that is measured.
    pub inspect: bool,
    /// The Python to use for the Python consumer; `None` looks for one that has `websockets`.
    pub python: Option<PathBuf>,
    /// What the money is counted with.
    pub assumptions: Assumptions,
}

/// What money is counted with: `cpu_s_per_gb * frame_bytes_mean / 1e9 * fps * streams * 8760 h * price`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assumptions {
    /// What a core costs an hour, in whatever currency.
    pub price_core_hour: f64,
    /// Streams that run the whole year.
    pub streams: u32,
    /// Frames a second of a stream.
    pub fps: f64,
}

/// How this program starts itself again as a role.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program, usually the running one.
    pub program: PathBuf,
    /// Arguments that lead it to [`run_role`](crate::run_role).
    pub arguments: Vec<OsString>,
}
