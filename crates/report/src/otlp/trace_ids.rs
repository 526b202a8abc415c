//! The ids of traces and spans: the same for the same run and participant, and none of another.

use std::fmt;

use throng_observation::run::ParticipantId;
use throng_observation::seed::{mixed, step};

/// Apart from what else is made from the seed of a run ("trace").
const OF_TRACES: u64 = 0x0074_7261_6365;

/// The number of the trace of the run itself; no participant has it.
const RUN: u64 = 1 << u32::BITS;

/// A trace and its first span, of which the others are parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    high: u64,
    low: u64,
}

impl TraceContext {
    /// That of a join, in the run of this seed.
    #[must_use]
    pub fn of_join(seed: u64, participant: ParticipantId) -> Self {
        Self::of(seed, u64::from(participant.0))
    }

    /// That of the run of this seed.
    pub(super) fn of_run(seed: u64) -> Self {
        Self::of(seed, RUN)
    }

    fn of(seed: u64, number: u64) -> Self {
        let seed = mixed(seed ^ OF_TRACES);
        // An id of zeros is none.
        Self { high: step(seed, 2 * number).max(1), low: step(seed, 2 * number + 1) }
    }

    /// The id of a span of the trace, from 0, which is the first.
    pub(super) fn span(self, place: u32) -> SpanId {
        SpanId(step(self.low, u64::from(place)).max(1))
    }

    /// The header by which a server's spans become parts of the first one: `traceparent` of W3C
    /// Trace Context, sampled.
    #[must_use]
    pub fn traceparent(self) -> String {
        format!("00-{self}-{}-01", self.span(0))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

/// The id of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanId(u64);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
