//! What a producer does when the ring is full.

use std::time::Duration;

/// What a producer does when there is no room. Every frame that it drops is counted under a
/// [`crate::DropReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Wait for room; drop the frame after `timeout` ([`Duration::MAX`]: never).
    Wait {
        /// How long at most.
        timeout: Duration,
    },
    /// Drop the frame that does not fit.
    DropNewest,
    /// Drop the oldest frames of the lane, of any stream, until there is room. Frames that the
    /// consumer holds are never dropped; if they are the oldest, the new frame is dropped.
    DropOldest,
    /// Drop the frame that does not fit, and then all of its stream until the next key frame that
    /// fits: a decoder could not use them.
    DropUntilKeyframe,
}
