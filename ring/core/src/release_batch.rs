//! How much of what is over the consumer may keep to itself before it tells producers.
//!
//! Telling is an exchange on a word that the other side reads, and one on the slot that guards what is held: for a record
//! of 64 bytes a quarter of all that it costs. So a run of small frames is told of at once. It is short beside the ring,
//! and nothing is held back from a producer that sleeps for want of room, or where one evicts, who would otherwise find what
//! is over in his way.

use crate::layout::Geometry;
use crate::memory::Memory;
use crate::packed::Position;
use crate::sync::Ordering::Relaxed;

/// Most places in a run: what telling costs is spread over so many that more would gain little.
const SLOTS: u32 = 16;
/// A run is at most this part of the ring, in slots and in bytes: so much smaller it may look to a producer.
const PART: u32 = 8;

/// From how many places or units on producers are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseBatch {
    pub(crate) slots: u32,
    pub(crate) units: u32,
}

impl ReleaseBatch {
    pub(crate) fn of(geometry: Geometry) -> Self {
        Self { slots: (geometry.slots / PART).min(SLOTS), units: geometry.units() / PART }
    }

    /// Whether what is over between the two places is to be told.
    #[inline(always)]
    pub(crate) fn is_enough(self, memory: &Memory, oldest: Position, free: Position) -> bool {
        free.sequence.wrapping_sub(oldest.sequence) >= self.slots
            || free.unit.wrapping_sub(oldest.unit) >= self.units
            || memory.control().consumer.0.evicts.load(Relaxed) != 0
            || memory.control().producer_sleep.0.load(Relaxed) != 0
    }
}
