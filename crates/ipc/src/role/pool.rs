//! The frames that a producer sends, prepared in memory: enough of them that large ones come from
//! memory and not from a cache, as a decoder's do.

use crate::frame::{self, FrameHeader, HEADER_BYTES, TAIL_BYTES};
use crate::transport::{Transport, splice_slots};

/// More than the last level cache of most machines.
const POOL_BYTES: usize = 64 << 20;
/// GStreamer holds up to four frames at a time, which must not be written meanwhile.
const SLOTS_MIN: usize = 6;
const SLOTS_MAX: usize = 512;
const PAGE_BYTES: usize = 4096;

/// Number of frames in a producer's pool.
pub(crate) fn slots(transport: Transport, frame_bytes_max: usize, frame_bytes_min: usize) -> usize {
    let slots = (POOL_BYTES / frame_bytes_max.max(1)).clamp(SLOTS_MIN, SLOTS_MAX);
    if transport == Transport::Vmsplice { slots.max(splice_slots(frame_bytes_min)) } else { slots }
}

/// Frames of one producer, each in its slot.
pub(super) struct Pool {
    memory: Vec<u8>,
    /// Offset of the first slot, so that slots are page-aligned.
    first: usize,
    stride: usize,
    producer: u8,
    /// Length of the last frame of each slot: its tail lies within the body of a longer one.
    lengths: Vec<usize>,
}

impl Pool {
    pub(super) fn new(producer: u8, slots: usize, frame_bytes_max: usize) -> Self {
        let align = if frame_bytes_max >= PAGE_BYTES { PAGE_BYTES } else { 64 };
        let stride = frame_bytes_max.next_multiple_of(align);
        let memory = vec![0; stride * slots + PAGE_BYTES];
        let first = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let mut pool =
            Self { memory, first, stride, producer, lengths: vec![frame_bytes_max; slots] };
        for slot in 0..slots {
            let seed = frame::seed(producer, slot as u64);
            frame::fill(frame::body_mut(pool.slot_mut(slot, frame_bytes_max)), seed);
        }
        pool
    }

    fn slot_mut(&mut self, slot: usize, bytes: usize) -> &mut [u8] {
        let at = self.first + slot * self.stride;
        self.memory.get_mut(at..at + bytes.min(self.stride)).unwrap_or_default()
    }

    /// The slot of frame number `sequence`, and its seed.
    pub(super) fn place(&self, sequence: u64) -> (usize, u64) {
        let slot = (sequence % self.lengths.len().max(1) as u64) as usize;
        (slot, frame::seed(self.producer, slot as u64))
    }

    /// The frame of that slot, with header and tail written.
    pub(super) fn frame(&mut self, slot: usize, header: &FrameHeader) -> &[u8] {
        let bytes = header.bytes as usize;
        let last = self.lengths.get(slot).copied().unwrap_or(bytes);
        if bytes != last {
            let stride = self.stride;
            let body = frame::body_mut(self.slot_mut(slot, stride));
            let end = last.saturating_sub(HEADER_BYTES);
            frame::refill(body, header.seed, end.saturating_sub(TAIL_BYTES)..end);
            if let Some(length) = self.lengths.get_mut(slot) {
                *length = bytes;
            }
        }
        let frame = self.slot_mut(slot, bytes);
        header.write(frame);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;

    #[test]
    fn frames_of_changing_sizes_are_whole() {
        let mut pool = Pool::new(1, 3, 5000);
        for (sequence, bytes) in
            [5000, 48, 49, 5000, 100, 60, 4999, 5000, 3000, 64, 5000].into_iter().enumerate()
        {
            let (slot, seed) = pool.place(sequence as u64);
            let header = FrameHeader {
                kind: Kind::Measured,
                producer: 1,
                sequence: sequence as u64,
                bytes,
                seed,
                due_ns: 0,
            };
            let frame = pool.frame(slot, &header);
            assert_eq!(FrameHeader::read(frame), Ok(header));
            assert_eq!(frame::check_body(frame, &header), Ok(()), "{sequence}");
        }
    }

    #[test]
    fn a_pool_is_larger_than_a_cache_and_never_too_large() {
        for (bytes, expect) in [(64, 512), (1200, 512), (3_110_400, 21), (200 << 20, 6)] {
            assert_eq!(slots(Transport::Tcp, bytes, bytes), expect);
        }
        assert!(slots(Transport::Vmsplice, 5 << 20, 48) * (5 << 20) < 2 << 30);
    }
}
