//! How many released positions the consumer may collect before it publishes them to producers.
//!
//! Publishing is an atomic exchange on a word that the other side reads, and a store to the slot of
//! the new guard: for a record of 64 bytes a quarter of its cost. So small frames are published in
//! batches. A batch is small relative to the ring, and nothing is held back while a producer sleeps
//! for lack of room, or may evict: an evicting producer could not take released frames that are
//! still guarded.

use crate::layout::Geometry;
use crate::memory::Memory;
use crate::packed::Position;
use crate::sync::Ordering::Relaxed;

/// Most positions in a batch: a larger one would gain little.
const SLOTS: u32 = 16;
/// A batch is at most this fraction of the ring, in slots and in bytes: to a producer the ring may
/// look smaller by it.
const PART: u32 = 8;

/// A batch is published from so many positions or units on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseBatch {
    pub(crate) slots: u32,
    pub(crate) units: u32,
}

impl ReleaseBatch {
    pub(crate) fn of(geometry: Geometry) -> Self {
        Self { slots: (geometry.slots / PART).min(SLOTS), units: geometry.units() / PART }
    }

    /// Whether the released positions between the two are to be published.
    #[inline(always)]
    pub(crate) fn is_enough(self, memory: &Memory, oldest: Position, free: Position) -> bool {
        free.sequence.wrapping_sub(oldest.sequence) >= self.slots
            || free.unit.wrapping_sub(oldest.unit) >= self.units
            || memory.control().consumer.0.evicts.load(Relaxed) != 0
            || memory.control().producer_sleep.0.load(Relaxed) != 0
    }
}
