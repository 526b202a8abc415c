//! A process of the measurement: told by its first line on stdin what it is, it says on stdout how it fared.
//!
//! The conversation, a JSON value a line: role <- [`Task`]; role -> [`RoleMessage::Ready`]; role <- [`RoleCommand::Go`]; role ->
//! [`RoleMessage::Measuring`] when its warm-up is over, [`RoleMessage::Done`]; role <- [`RoleCommand::End`], after which it closes its side.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::transport::{Side, TransportError};
use crate::{FrameSizes, ReadMode};

mod clock;
pub(crate) use clock::now_ns;

mod usage;
use usage::Window;

mod system_calls;
pub(crate) use system_calls::SystemCalls;

mod pool;
pub(crate) use pool::slots;

mod producer;

mod consumer;

mod baseline;

/// What a role is told first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) part: RoleKind,
    pub(crate) side: Side,
    pub(crate) sizes: FrameSizes,
    pub(crate) fps: Option<f64>,
    pub(crate) reading: ReadMode,
    pub(crate) warm_up_ns: u64,
    pub(crate) measured_ns: u64,
    /// Whether system calls are to be counted.
    pub(crate) inspect: bool,
}

/// Which part a role plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleKind {
    /// Sends.
    Producer,
    /// Receives.
    Consumer,
    /// Does by itself what no transport can do without.
    Baseline,
}

/// What a role is told later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleCommand {
    /// Begin at this time of `CLOCK_MONOTONIC`.
    Go {
        /// Nanoseconds.
        start_ns: u64,
    },
    /// Close and end.
    End,
}

/// What a role says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleMessage {
    /// Its side is open.
    Ready {
        /// Where it listens, when only it knows.
        address: Option<String>,
    },
    /// Its warm-up is over.
    Measuring,
    /// It has done its part.
    Done(SideReport),
    /// It cannot.
    Failed {
        /// Whether the machine lacks something, so that this is not a failure.
        missing: bool,
        /// Why.
        reason: String,
    },
}

/// What one side measured, between its first and its last measured frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SideReport {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    /// Frames that were due in the time and could not be sent in it.
    pub(crate) frames_not_sent: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) context_switches: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// `None` when not counted; the reason when that cannot be done here.
    pub(crate) system_calls: Option<Result<u64, String>>,
    /// Consumer: from due to given. Producer: from due to handed over, at an offered rate.
    pub(crate) latency: Option<LatencyNs>,
}

/// Quantiles of latencies, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LatencyNs {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
    pub(crate) samples: u64,
}

impl LatencyNs {
    fn of(histogram: &hdrhistogram::Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
            samples: histogram.len(),
        })
    }
}

/// Room for latencies of up to a minute with three digits; longer ones count as a minute.
fn latencies() -> Result<hdrhistogram::Histogram<u64>, TransportError> {
    hdrhistogram::Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(|error| TransportError::Library {
        operation: "making a histogram",
        reason: error.to_string(),
    })
}

/// Plays the role that stdin tells; returns when it is over. The answer is whether it went well.
#[must_use]
pub fn run_role() -> bool {
    let mut parent = ParentChannel { orders: std::io::stdin().lock(), said: std::io::stdout() };
    let played = parent.task().and_then(|task| match task.part {
        RoleKind::Producer => producer::run(&task, &mut parent),
        RoleKind::Consumer => consumer::run(&task, &mut parent),
        RoleKind::Baseline => baseline::run(&task, &mut parent),
    });
    let Err(error) = played else { return true };
    let missing = matches!(error, TransportError::Missing(_));
    let _ = parent.say(&RoleMessage::Failed { missing, reason: error.to_string() });
    false
}

/// The conversation of a role with whoever started it.
struct ParentChannel {
    orders: std::io::StdinLock<'static>,
    said: std::io::Stdout,
}

impl ParentChannel {
    fn task(&mut self) -> Result<Task, TransportError> {
        self.read()
    }

    fn say(&mut self, said: &RoleMessage) -> Result<(), TransportError> {
        let broken = |reason: String| TransportError::Library { operation: "answering", reason };
        let mut line = serde_json::to_vec(said).map_err(|error| broken(error.to_string()))?;
        line.push(b'\n');
        self.said.write_all(&line).and_then(|()| self.said.flush()).map_err(|error| broken(error.to_string()))
    }

    /// Waits for the start; the time of it.
    fn go(&mut self) -> Result<u64, TransportError> {
        match self.read()? {
            RoleCommand::Go { start_ns } => Ok(start_ns),
            RoleCommand::End => {
                Err(TransportError::Library { operation: "waiting for the start", reason: "ended".into() })
            }
        }
    }

    /// Waits until nobody needs this side any more.
    fn end(&mut self) {
        // Whether it is told to end or its parent is gone makes no difference.
        let _ = self.read::<RoleCommand>();
    }

    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, TransportError> {
        let broken = |reason: String| TransportError::Library { operation: "reading an order", reason };
        let mut line = String::new();
        self.orders.read_line(&mut line).map_err(|error| broken(error.to_string()))?;
        serde_json::from_str(&line).map_err(|error| broken(error.to_string()))
    }
}
