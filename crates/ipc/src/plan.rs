//! What to measure, and how its processes are started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Transport, Workload};

/// How much of a received frame the consumer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadMode {
    /// Header and tail only: the cost of the transport itself.
    Edges,
    /// Every byte once, compared with what was sent, as an encoder reads a picture.
    All,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The transports, in the order of the table.
    pub transports: Vec<Transport>,
    /// Frame sizes, rate and number of producers.
    pub workload: Workload,
    /// How much of a frame the consumer reads.
    pub reading: ReadMode,
    /// How long each transport is measured in each round, after its warm-up.
    pub duration: Duration,
    /// Number of rounds through all transports; a row is the median of its rounds.
    pub rounds: u32,
    /// Whether a second, short pass counts system calls and records a CPU profile; both slow the
    /// processes down, so the measured pass does neither.
    pub inspect: bool,
    /// The Python to use for the Python consumer; `None` looks for one that has `websockets`.
    pub python: Option<PathBuf>,
    /// Price, streams and frame rate behind the cost per year.
    pub assumptions: Assumptions,
}

/// Price, streams and frame rate behind the cost per year:
/// `cpu_s_per_gb * frame_bytes_mean / 1e9 * fps * streams * 8760 h * price`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assumptions {
    /// Price of a core-hour, in any currency.
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
    /// Arguments that make it call [`run_role`](crate::run_role).
    pub arguments: Vec<OsString>,
}
