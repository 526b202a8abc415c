//! The blocks of a ring, as its reader takes them and gives them back: the only code that looks
//! into the memory that the kernel writes. It knows no socket, so that tests play the kernel.
//!
//! A block belongs to the kernel or to the reader, by its status word; whose it is, alone touches
//! its frames. Of its header the kernel reads words at any time (`prb_retire_rx_blk_timer_expired`
//! of `net/packet/af_packet.c`), so that no slice of the reader's has it.

use std::fmt;
use std::mem;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::frame::{self, Frame, RingDatagram};

/// Bytes of a block: the longest frame, of a sender with `UDP_SEGMENT`, fits.
pub(super) const BLOCK_BYTES: usize = 128 << 10;
/// Bytes of its header, `struct tpacket_block_desc` of `linux/if_packet.h`. Frames come after it.
const HEADER_BYTES: usize = 48;
/// Places in the header: the status, how many frames, where the first is.
const STATUS: usize = 8;
const FRAMES: usize = 12;
const FIRST: usize = 16;
/// `TP_STATUS_USER`.
const OF_READER: u32 = 1;

/// Bytes of a frame that are loaded ahead: its headers and the first of the payload. The CPU sees
/// by them that the rest follows.
const AHEAD_BYTES: usize = 256;

/// Where a datagram is, until [`PacketRing::release`](super::PacketRing::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// That of its ring when the block was taken.
    generation: u64,
    block: u32,
    /// Of the frame, behind the block's header.
    offset: u32,
}

/// Why there is no datagram at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDatagram {
    /// The place is of another ring, or its block was given back since: what is there is not what
    /// was found.
    Stale,
    /// The frame has no datagram of that number that is whole.
    Unreadable,
}

impl fmt::Display for NoDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => "the datagram's block was given back to the kernel",
            Self::Unreadable => "the frame has no such datagram",
        })
    }
}

impl std::error::Error for NoDatagram {}

/// A number that no ring has had. So a place is good for one ring, and from the taking of its block
/// until that is given back.
fn new_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A ring's memory and which of its blocks the reader has.
#[derive(Debug)]
pub(super) struct Blocks {
    memory: NonNull<u8>,
    count: usize,
    /// The block that the kernel hands over next.
    next: usize,
    /// How many blocks before `next` the reader has.
    held: usize,
    /// Changes whenever blocks are given back.
    generation: u64,
}

// SAFETY: the memory is this reader's alone, and shared with the kernel only by the protocol of
// block status words.
unsafe impl Send for Blocks {}

impl Blocks {
    /// `count` blocks, of which the kernel hands over the first one first.
    ///
    /// # Safety
    /// `memory` is `count` blocks of initialised bytes, aligned to 8. While this lives they stay,
    /// only the kernel has access to them, and it writes to a block only while its status is 0.
    pub(super) unsafe fn new(memory: NonNull<u8>, count: usize) -> Self {
        Self { memory, count, next: 0, held: 0, generation: new_generation() }
    }

    pub(super) fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    pub(super) fn bytes(&self) -> usize {
        self.count * BLOCK_BYTES
    }

    /// See [`PacketRing::collect`](super::PacketRing::collect).
    pub(super) fn collect(&mut self, mut each: impl FnMut(Place, Frame)) -> usize {
        let (before, generation) = (self.held, self.generation);
        while self.held < self.count && self.is_of_reader(self.next) {
            let word = |at| self.word(self.next, at).load(Ordering::Relaxed);
            // One that points into the header wraps to where no frame is.
            let (frames, mut offset) =
                (word(FRAMES), word(FIRST).wrapping_sub(HEADER_BYTES as u32));
            let contents = self.contents(self.next);
            for _ in 0..frames {
                let (next, frame) = frame::read(contents, offset as usize);
                if let Some(frame) = frame {
                    each(Place { generation, block: self.next as u32, offset }, frame);
                }
                if next == 0 {
                    break;
                }
                offset = offset.saturating_add(next);
            }
            self.next = (self.next + 1) % self.count;
            self.held += 1;
        }
        (self.held - before) * BLOCK_BYTES
    }

    /// Whether `place` is of this ring, and its block the reader's since it was found.
    pub(super) fn has(&self, place: Place) -> bool {
        place.generation == self.generation
    }

    /// Datagram number `index` of the frame that [`Self::collect`] found at `place`.
    pub(super) fn datagram(
        &mut self,
        place: Place,
        index: u16,
    ) -> Result<RingDatagram<'_>, NoDatagram> {
        if !self.has(place) {
            return Err(NoDatagram::Stale);
        }
        let contents = self.contents_mut(place.block as usize);
        let (_, frame) = frame::read(contents, place.offset as usize);
        let frame = frame.ok_or(NoDatagram::Unreadable)?;
        frame.datagram(index, contents).ok_or(NoDatagram::Unreadable)
    }

    /// See [`PacketRing::prefetch`](super::PacketRing::prefetch).
    pub(super) fn prefetch(&self, place: Place) {
        let start = place.block as usize * BLOCK_BYTES + HEADER_BYTES + place.offset as usize;
        crate::prefetch(self.memory.as_ptr().wrapping_add(start), AHEAD_BYTES);
    }

    /// Gives all blocks taken back to the kernel.
    pub(super) fn release(&mut self) {
        if self.held == 0 {
            return;
        }
        self.generation = new_generation();
        for back in 1..=mem::take(&mut self.held) {
            let block = (self.next + self.count - back) % self.count;
            // What the reader wrote comes before what the kernel will write.
            self.word(block, STATUS).store(0, Ordering::Release);
        }
    }

    fn is_of_reader(&self, block: usize) -> bool {
        // What the kernel wrote into the block comes before it (`smp_wmb` of `prb_close_block`).
        self.word(block, STATUS).load(Ordering::Acquire) & OF_READER != 0
    }

    fn word(&self, block: usize, at: usize) -> &AtomicU32 {
        // SAFETY: `block` is below `count` and `at` a multiple of 4 in its header, so that the word
        // lies in the memory; kernel and reader use it as a word of its own, and no slice has it.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(block * BLOCK_BYTES + at).cast()) }
    }

    /// What is behind the header of a block that is the reader's.
    fn contents(&self, block: usize) -> &[u8] {
        let start = block * BLOCK_BYTES + HEADER_BYTES;
        // SAFETY: `collect` has seen that the block is the reader's; the kernel then leaves its
        // frames alone. They lie in the memory, which stays while `self` lives.
        unsafe {
            std::slice::from_raw_parts(self.memory.as_ptr().add(start), BLOCK_BYTES - HEADER_BYTES)
        }
    }

    /// As [`Self::contents`].
    fn contents_mut(&mut self, block: usize) -> &mut [u8] {
        let start = block * BLOCK_BYTES + HEADER_BYTES;
        // SAFETY: `datagram` has seen that the place is of this generation: `collect` found it in a
        // block of the reader's, and none was given back since. Otherwise as in `contents`; nobody
        // else has a reference into it, since `self` is borrowed mutably.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.memory.as_ptr().add(start),
                BLOCK_BYTES - HEADER_BYTES,
            )
        }
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
