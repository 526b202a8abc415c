//! Claimed room, by name (a token) or as a guard that aborts when it is dropped.

use std::ptr::NonNull;

use crate::error::RingError;
use crate::frame::FrameInfo;
use crate::packed::Position;
use crate::producer::Producer;

/// Room in the ring that was claimed and not committed yet, by name: for other languages, and for holding several at
/// once. Goes back into [`crate::Producer::commit`] or [`crate::Producer::abort`] of the handle that it came from; one that is lost
/// blocks the lane until that handle is dropped.
#[derive(Debug)]
pub struct ClaimToken {
    pub(crate) place: Position,
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) info: FrameInfo,
    pub(crate) sequence: u64,
}

// SAFETY: a name; the memory behind the pointer may be written from any thread, by whoever holds the token.
unsafe impl Send for ClaimToken {}

impl ClaimToken {
    /// Where to write: contiguous, aligned to 64 bytes, valid until commit or abort and as long as the producer.
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

    /// What is said about the frame; may be changed until the commit.
    pub fn info_mut(&mut self) -> &mut FrameInfo {
        &mut self.info
    }
}

/// Room in the ring to write a frame into, in place. Dropped without a commit, it is aborted.
#[derive(Debug)]
pub struct Claim<'a> {
    pub(crate) producer: &'a mut Producer,
    pub(crate) token: Option<ClaimToken>,
}

impl Claim<'_> {
    /// The bytes to write: those of earlier frames stand there until then.
    ///
    /// The consumer gave this memory away and could write to it too; a producer trusts its consumer not to (this
    /// library's maps payload read-only).
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (start, len) = self.token.as_ref().map_or((NonNull::dangling(), 0), |t| (t.start, t.len));
        // SAFETY: initialised (a memfd starts as zeros), claimed for this handle alone until the commit, which needs
        // `self` by value; nobody else in this process gets a reference to it.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Makes all claimed bytes visible to the consumer.
    ///
    /// # Errors
    /// The ring's words were overwritten.
    pub fn commit(self) -> Result<(), RingError> {
        let len = self.token.as_ref().map_or(0, ClaimToken::len);
        self.commit_len(len)
    }

    /// Makes the first `len` bytes visible: for encoders that know the size only afterwards.
    ///
    /// # Errors
    /// `len` is more than was claimed.
    pub fn commit_len(mut self, len: usize) -> Result<(), RingError> {
        match self.token.take() {
            Some(token) => self.producer.commit(token, len),
            None => Ok(()),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // Fails only if the ring's words were overwritten; the next claim says so.
            let _ = self.producer.abort(token);
        }
    }
}
