//! An answer that a server owes us: until when, and what it is.

use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason};

use crate::participant::Why;

/// How long a server may be silent in one step of the signalling unless a configuration says otherwise.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How long a goodbye may take; leaving must not wait for a server that is gone.
pub(super) const GOODBYE_WITHIN: Duration = Duration::from_secs(2);

/// ResponseDeadline for the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseDeadline {
    /// The deadline.
    pub(super) until: Instant,
    /// What is awaited, in the words that the trace and the failure use.
    pub(super) why: Why,
    within: Duration,
}

impl ResponseDeadline {
    pub(super) fn new(now: Instant, within: Duration, why: Why) -> Self {
        Self { until: now + within, why, within }
    }

    /// The failure when the deadline has passed.
    pub(super) fn overdue(&self, now: Instant) -> Option<Failure> {
        (now >= self.until).then(|| {
            Failure::new(
                FailureReason::SignallingTimeout,
                format!("no answer within {} ms while waiting for: {}", self.within.as_millis(), self.why),
            )
        })
    }

    /// As a participant's deadline.
    pub(super) fn deadline(&self) -> (Instant, Why) {
        (self.until, self.why)
    }
}
