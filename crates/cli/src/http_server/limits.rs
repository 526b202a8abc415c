//! What connections may take: places, time and bytes.

use std::time::Duration;

/// Limits of all connections of a server. Each has one place, of one of four kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most connections whose request has not come, or waits for a place among the answers;
    /// further ones wait in the listener's backlog.
    pub(super) waiting_max: usize,
    /// Most answers of one piece that are given and read.
    pub(super) answers_max: usize,
    /// Most answers that take long: one is made, the others wait for their turn or are read.
    pub(super) long_answers_max: usize,
    /// Most readers of events.
    pub(super) streams_max: u32,
    /// The time from a connection to its request, and from the last event to the end of its stream.
    pub(super) step_lasts: Duration,
    /// In so much time a client takes `stall_bytes_min` of its answer, or the rest of it; else it
    /// is cut off.
    pub(super) stall_lasts: Duration,
    /// A byte at times would hold a place for hours.
    pub(super) stall_bytes_min: usize,
    /// How long the end waits for those who read events.
    pub(super) end_lasts: Duration,
    /// The time between two connections.
    pub(super) pause: Duration,
    /// Most bytes of the head of a request.
    pub(super) head_bytes_max: usize,
}

impl Limits {
    /// Those of throng's servers: at most a hundred connections a second.
    pub(super) const USUAL: Self = Self {
        waiting_max: 64,
        answers_max: 8,
        long_answers_max: 16,
        streams_max: 16,
        step_lasts: Duration::from_secs(5),
        stall_lasts: Duration::from_secs(30),
        stall_bytes_min: 64 * 1024,
        end_lasts: Duration::from_secs(1),
        pause: Duration::from_millis(10),
        head_bytes_max: 16 * 1024,
    };
}
