//! A process of the measurement: the first line on its stdin is its task, and it reports on stdout.
//!
//! The protocol, one JSON value per line: role <- [`Task`]; role -> [`RoleMessage::Ready`]; role <-
//! [`RoleCommand::Go`]; role -> [`RoleMessage::Measuring`] when its warm-up is over,
//! [`RoleMessage::Done`]; role <- [`RoleCommand::End`], after which it closes its side.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::transport::{Side, TransportError, failed};
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

/// First message to a role.
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

/// What a role does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleKind {
    /// Sends.
    Producer,
    /// Receives.
    Consumer,
    /// Copies or writes frames by itself: the lower bound of any transport.
    Baseline,
}

/// Later messages to a role.
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

/// Messages from a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleMessage {
    /// Its side is open.
    Ready {
        /// Where it listens, if it chose the address.
        address: Option<String>,
    },
    /// Its warm-up is over.
    Measuring,
    /// It has finished.
    Done(SideReport),
    /// It failed.
    Failed {
        /// Whether the machine lacks something that the transport needs, which is no failure.
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
    /// Frames that could not be sent in time.
    pub(crate) frames_not_sent: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) context_switches: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// `None` if not counted; an error with the reason if they cannot be counted here.
    pub(crate) system_calls: Option<Result<u64, String>>,
    /// Consumer: intended send time to reception. Producer: intended to actual send time, at an
    /// offered rate.
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

/// A histogram of latencies up to a minute, with three digits; longer ones count as a minute.
fn latencies() -> Result<hdrhistogram::Histogram<u64>, TransportError> {
    hdrhistogram::Histogram::new_with_bounds(1, 60_000_000_000, 3)
        .map_err(|error| failed("making a histogram", error))
}

/// Runs the role that stdin asks for, until it ends. Returns whether it succeeded.
#[must_use]
pub fn run_role() -> bool {
    let mut parent = ParentChannel { orders: std::io::stdin().lock(), said: std::io::stdout() };
    let played = parent.read::<Task>().and_then(|task| match task.part {
        RoleKind::Producer => producer::run(&task, &mut parent),
        RoleKind::Consumer => consumer::run(&task, &mut parent),
        RoleKind::Baseline => baseline::run(&task, &mut parent),
    });
    let Err(error) = played else { return true };
    let missing = matches!(error, TransportError::Missing(_));
    let _ = parent.say(&RoleMessage::Failed { missing, reason: error.to_string() });
    false
}

/// The role's side of the protocol with its parent.
struct ParentChannel {
    orders: std::io::StdinLock<'static>,
    said: std::io::Stdout,
}

impl ParentChannel {
    fn say(&mut self, said: &RoleMessage) -> Result<(), TransportError> {
        let mut line = serde_json::to_vec(said).map_err(|error| failed("answering", error))?;
        line.push(b'\n');
        let sent = self.said.write_all(&line).and_then(|()| self.said.flush());
        sent.map_err(|error| failed("answering", error))
    }

    /// Waits for the start; returns its time.
    fn go(&mut self) -> Result<u64, TransportError> {
        match self.read()? {
            RoleCommand::Go { start_ns } => Ok(start_ns),
            RoleCommand::End => Err(failed("waiting for the start", "ended")),
        }
    }

    /// Waits for the parent to end this role.
    fn end(&mut self) {
        // The command to end and the end of the parent have the same effect.
        let _ = self.read::<RoleCommand>();
    }

    fn read<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, TransportError> {
        let reading = "reading an order";
        let mut line = String::new();
        self.orders.read_line(&mut line).map_err(|error| failed(reading, error))?;
        serde_json::from_str(&line).map_err(|error| failed(reading, error))
    }
}
