//! Why a frame was dropped: every drop is counted under one of these, with the producer that lost
//! it.

use std::fmt;

/// Why a producer's frame did not reach the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// There was no room, and the policy was to drop the newest.
    Full = 0,
    /// There was no room before the policy's timeout.
    TimedOut = 1,
    /// It was the oldest when another one needed its room.
    Evicted = 2,
    /// A frame of the same stream was dropped before, and this one was no key frame.
    UntilKeyframe = 3,
    /// The policy was to drop the oldest, but the consumer held it.
    HeldByConsumer = 4,
    /// It is larger than half the ring.
    TooLarge = 5,
}

impl DropReason {
    /// All reasons, in the order of the counters in shared memory.
    pub const ALL: [Self; crate::layout::REASONS] = [
        Self::Full,
        Self::TimedOut,
        Self::Evicted,
        Self::UntilKeyframe,
        Self::HeldByConsumer,
        Self::TooLarge,
    ];

    /// A word for tables and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::TimedOut => "timed_out",
            Self::Evicted => "evicted",
            Self::UntilKeyframe => "until_keyframe",
            Self::HeldByConsumer => "held_by_consumer",
            Self::TooLarge => "too_large",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
