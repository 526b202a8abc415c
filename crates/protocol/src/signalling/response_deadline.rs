//! The deadline of an expected answer, and its description.

use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason};

use crate::participant::Why;

/// The default time limit for each answer of a server.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How long signing off may take; leaving must not wait for a server that is gone.
pub(super) const GOODBYE_WITHIN: Duration = Duration::from_secs(2);

/// The deadline of one expected answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseDeadline {
    /// The deadline.
    pub(super) until: Instant,
    /// The expected answer, as named in the trace and the failure.
    pub(super) why: Why,
    within: Duration,
}

impl ResponseDeadline {
    pub(super) fn new(now: Instant, within: Duration, why: Why) -> Self {
        Self { until: now + within, why, within }
    }

    /// The failure if the deadline has passed.
    pub(super) fn overdue(&self, now: Instant) -> Option<Failure> {
        (now >= self.until).then(|| {
            Failure::new(
                FailureReason::SignallingTimeout,
                format!(
                    "no answer within {} ms while waiting for: {}",
                    self.within.as_millis(),
                    self.why
                ),
            )
        })
    }

    /// The deadline and its reason.
    pub(super) fn deadline(&self) -> (Instant, Why) {
        (self.until, self.why)
    }
}
