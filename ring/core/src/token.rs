//! Claimed space by name, for callers that cannot hold a borrow.

use std::ptr::NonNull;

use crate::frame::FrameInfo;
use crate::packed::Position;

/// Claimed space that is not committed yet, by name: for other languages, and for holding several
/// claims at once. Goes back into [`crate::Producer::commit`] or [`crate::Producer::abort`] of the
/// handle that it came from; one that is lost blocks the lane until that handle is dropped.
#[derive(Debug)]
pub struct ClaimToken {
    pub(crate) position: Position,
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) info: FrameInfo,
    pub(crate) sequence: u64,
}

// SAFETY: a plain name; any thread that holds the token may write to the memory behind the pointer.
unsafe impl Send for ClaimToken {}

impl ClaimToken {
    /// Where to write: contiguous, aligned to 64 bytes, valid until commit or abort and as long as
    /// the producer.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many bytes were claimed.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no bytes were claimed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The frame's metadata; may be changed until the commit.
    pub fn info_mut(&mut self) -> &mut FrameInfo {
        &mut self.info
    }
}
