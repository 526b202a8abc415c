//! Offsets in the shared memory. `ring/docs/layout.md` is the specification; a test here keeps both
//! equal.

use crate::packed::{Position, SlotState, StateWord, UNIT};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The first eight bytes of a ring, "THRNGRNG" when printed.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"THRNGRNG");
/// Must be equal on both sides: the meaning of the words below.
pub(crate) const ABI_MAJOR: u16 = 2;
/// May differ: additions that the other side may ignore.
pub(crate) const ABI_MINOR: u16 = 0;

pub(crate) const HEADER_OFFSET: usize = 0;
pub(crate) const CONTROL_OFFSET: usize = 4096;
pub(crate) const ROWS_OFFSET: usize = 8192;
pub(crate) const SLOTS_OFFSET: usize = 12288;
/// Rows of the producer table: handles that can be open on one lane at a time.
pub(crate) const ROWS: usize = if cfg!(loom) { 4 } else { 32 };
/// The arena starts at a multiple of this, the largest page size in use (arm64, ppc64), so that it
/// can be mapped twice.
pub(crate) const ARENA_ALIGNMENT: usize = 65536;
pub(crate) const ARENA_MAX: usize = 1 << 32;
pub(crate) const SLOTS_MIN: u32 = 2;
pub(crate) const SLOTS_MAX: u32 = 1 << 16;

/// Written once before another process sees the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) magic: u64,
    pub(crate) abi_major: u16,
    pub(crate) abi_minor: u16,
    pub(crate) rows: u32,
    pub(crate) slots: u32,
    pub(crate) unit_bytes: u32,
    pub(crate) arena_offset: u64,
    pub(crate) arena_bytes: u64,
    pub(crate) lane: u64,
}

/// Bytes of [`Header`].
pub(crate) const HEADER_BYTES: usize = 48;

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &self.magic.to_le_bytes());
        put(8, &self.abi_major.to_le_bytes());
        put(10, &self.abi_minor.to_le_bytes());
        put(12, &self.rows.to_le_bytes());
        put(16, &self.slots.to_le_bytes());
        put(20, &self.unit_bytes.to_le_bytes());
        put(24, &self.arena_offset.to_le_bytes());
        put(32, &self.arena_bytes.to_le_bytes());
        put(40, &self.lane.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        fn take<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
            std::array::from_fn(|i| bytes[at + i])
        }
        Self {
            magic: u64::from_le_bytes(take(bytes, 0)),
            abi_major: u16::from_le_bytes(take(bytes, 8)),
            abi_minor: u16::from_le_bytes(take(bytes, 10)),
            rows: u32::from_le_bytes(take(bytes, 12)),
            slots: u32::from_le_bytes(take(bytes, 16)),
            unit_bytes: u32::from_le_bytes(take(bytes, 20)),
            arena_offset: u64::from_le_bytes(take(bytes, 24)),
            arena_bytes: u64::from_le_bytes(take(bytes, 32)),
            lane: u64::from_le_bytes(take(bytes, 40)),
        }
    }
}

/// A word alone on two cache lines: the adjacent-line prefetcher pulls them in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// The words that producers and consumer share.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Control {
    /// Position of the next claim. Producers move it.
    pub(crate) reserve: CachePadded<AtomicU64>,
    /// Position up to which everything is released. The consumer moves it, and producers that
    /// evict.
    pub(crate) release: CachePadded<AtomicU64>,
    /// How the sleeping consumer wants to be woken: [`crate::wake::Sleep`] bits, 0 awake.
    pub(crate) consumer_sleep: CachePadded<AtomicU32>,
    /// The same for producers that wait for room.
    pub(crate) producer_sleep: CachePadded<AtomicU32>,
    pub(crate) consumer: CachePadded<ConsumerWords>,
}

/// Words that only the consumer writes, except `evicts`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ConsumerWords {
    /// Attached consumers so far: 1 for the first, one more each time that another takes over.
    pub(crate) epoch: AtomicU32,
    /// Process id of the latest.
    pub(crate) pid: AtomicU32,
    /// 1 once the consumer closed the lane because a producer corrupted it.
    pub(crate) closed: AtomicU32,
    /// How often it woke sleeping producers (a system call each).
    pub(crate) wakes: AtomicU32,
    /// How often it slept (a system call each).
    pub(crate) sleeps: AtomicU64,
    pub(crate) delivered_frames: AtomicU64,
    pub(crate) delivered_bytes: AtomicU64,
    /// Claims of dead producers that were skipped.
    pub(crate) abandoned_claims: AtomicU64,
    /// 1 once a producer may evict; then releases are published at once. Here because the consumer
    /// checks it for each frame and has this cache line at hand.
    pub(crate) evicts: AtomicU32,
    pub(crate) reserved: AtomicU32,
    /// Position up to which the consumer has released all frames, published or not: for its
    /// successor if it is killed.
    pub(crate) done: AtomicU64,
}

/// Reasons for which a producer can drop a frame, in the order of [`Row::dropped`].
pub(crate) const REASONS: usize = 6;

/// Words that one producer handle writes about itself; counters only grow, also across owners of
/// the row.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Row {
    /// Session of the process that uses the row, 0 when free.
    pub(crate) session: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// How often it slept waiting for room.
    pub(crate) sleeps: AtomicU32,
    /// 1 from before it reserves a position until it has marked the slot.
    pub(crate) claiming: AtomicU32,
    pub(crate) committed_frames: AtomicU64,
    pub(crate) committed_bytes: AtomicU64,
    pub(crate) aborted_frames: AtomicU64,
    /// How often it woke the consumer (a system call each).
    pub(crate) wakes: AtomicU64,
    pub(crate) dropped: [AtomicU64; REASONS],
}

/// A descriptor; apart from the payload, so that payload can never be taken for one.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) state: AtomicU64,
    /// The [`Position`] of this frame, written by the owner after `units`.
    pub(crate) start: AtomicU64,
    pub(crate) units: AtomicU32,
    pub(crate) len: AtomicU32,
    pub(crate) stream: AtomicU32,
    /// `kind` in the low half, `flags` in the high half.
    pub(crate) kind_flags: AtomicU32,
    pub(crate) timestamp_ns: AtomicU64,
    pub(crate) sequence: AtomicU64,
    pub(crate) user_data: AtomicU64,
    pub(crate) reserved: AtomicU64,
}

/// Sizes of a ring, checked once; everything else follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) slots: u32,
    pub(crate) arena_bytes: usize,
}

impl Geometry {
    pub(crate) fn arena_offset(self) -> usize {
        (SLOTS_OFFSET + self.slots as usize * size_of::<Slot>()).next_multiple_of(ARENA_ALIGNMENT)
    }

    pub(crate) fn total_bytes(self) -> usize {
        self.arena_offset() + self.arena_bytes
    }

    /// Units in the arena; at most 2^26.
    pub(crate) fn units(self) -> u32 {
        (self.arena_bytes / UNIT) as u32
    }

    pub(crate) fn header(self, lane: u64) -> Header {
        Header {
            magic: MAGIC,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            rows: ROWS as u32,
            slots: self.slots,
            unit_bytes: UNIT as u32,
            arena_offset: self.arena_offset() as u64,
            arena_bytes: self.arena_bytes as u64,
            lane,
        }
    }
}

/// Writes the words of an empty ring into zeroed memory. `first` is where counting starts: zero,
/// except in tests of the wrap-around.
pub(crate) fn start(control: &Control, slots: &[Slot], first: Position) {
    for (index, slot) in slots.iter().enumerate() {
        // Each slot looks as if a frame before its first use had been released.
        let count = slots.len() as u32;
        let ahead = (index as u32).wrapping_sub(first.sequence) & (count - 1);
        let sequence = first.sequence.wrapping_add(ahead).wrapping_sub(count);
        let before = StateWord { sequence, owner: 0, stage: SlotState::Released };
        slot.start.store(Position { sequence, unit: u32::MAX }.pack(), Ordering::Relaxed);
        slot.state.store(before.pack(), Ordering::Relaxed);
    }
    control.reserve.0.store(first.pack(), Ordering::Relaxed);
    control.consumer.0.done.store(first.pack(), Ordering::Relaxed);
    control.release.0.store(first.pack(), Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// `name: offset` pairs as ring/docs/layout.md states them; a change here is a change of the
    /// ABI.
    #[test]
    fn the_layout_is_the_one_that_is_specified() {
        assert_eq!(MAGIC, 0x474e_5247_4e52_4854);
        let header = Geometry { slots: 256, arena_bytes: 1 << 20 }.header(7);
        assert_eq!(header.arena_offset, 65536);
        assert_eq!(Header::from_bytes(&header.to_bytes()), header);
        assert_eq!(offset_of!(Header, lane) + 8, HEADER_BYTES);

        assert_eq!(offset_of!(Control, reserve), 0);
        assert_eq!(offset_of!(Control, release), 128);
        assert_eq!(offset_of!(Control, consumer_sleep), 256);
        assert_eq!(offset_of!(Control, producer_sleep), 384);
        assert_eq!(offset_of!(Control, consumer), 512);
        assert_eq!(offset_of!(ConsumerWords, epoch), 0);
        assert_eq!(offset_of!(ConsumerWords, pid), 4);
        assert_eq!(offset_of!(ConsumerWords, closed), 8);
        assert_eq!(offset_of!(ConsumerWords, wakes), 12);
        assert_eq!(offset_of!(ConsumerWords, sleeps), 16);
        assert_eq!(offset_of!(ConsumerWords, delivered_frames), 24);
        assert_eq!(offset_of!(ConsumerWords, delivered_bytes), 32);
        assert_eq!(offset_of!(ConsumerWords, abandoned_claims), 40);
        assert_eq!(offset_of!(ConsumerWords, evicts), 48);
        assert_eq!(offset_of!(ConsumerWords, done), 56);

        assert_eq!(size_of::<Row>(), 128);
        assert_eq!(ROWS * size_of::<Row>(), SLOTS_OFFSET - ROWS_OFFSET);
        assert_eq!(offset_of!(Row, session), 0);
        assert_eq!(offset_of!(Row, pid), 4);
        assert_eq!(offset_of!(Row, sleeps), 8);
        assert_eq!(offset_of!(Row, claiming), 12);
        assert_eq!(offset_of!(Row, committed_frames), 16);
        assert_eq!(offset_of!(Row, committed_bytes), 24);
        assert_eq!(offset_of!(Row, aborted_frames), 32);
        assert_eq!(offset_of!(Row, wakes), 40);
        assert_eq!(offset_of!(Row, dropped), 48);

        assert_eq!(size_of::<Slot>(), 64);
        assert_eq!(offset_of!(Slot, state), 0);
        assert_eq!(offset_of!(Slot, start), 8);
        assert_eq!(offset_of!(Slot, units), 16);
        assert_eq!(offset_of!(Slot, len), 20);
        assert_eq!(offset_of!(Slot, stream), 24);
        assert_eq!(offset_of!(Slot, kind_flags), 28);
        assert_eq!(offset_of!(Slot, timestamp_ns), 32);
        assert_eq!(offset_of!(Slot, sequence), 40);
        assert_eq!(offset_of!(Slot, user_data), 48);
        assert!(size_of::<Control>() <= ROWS_OFFSET - CONTROL_OFFSET);
    }
}
