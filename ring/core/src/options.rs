//! Size of a ring, and how its memory is allocated.

use crate::error::RingError;
use crate::layout::{ARENA_ALIGNMENT, ARENA_MAX, Geometry, SLOTS_MAX, SLOTS_MIN};

/// Size of a lane. Small is fast: a ring that fits into the cache costs half of one that goes
/// through DRAM, so that the default holds a few frames and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    arena_bytes: usize,
    slots: u32,
    prefault: bool,
    huge_pages: bool,
}

impl Default for RingOptions {
    /// Four raw 1080p frames (4:2:0, 8 bit): a 16 MiB arena, 256 descriptors.
    fn default() -> Self {
        Self::for_frames(3_110_400, 4)
    }
}

impl RingOptions {
    /// Room for at least `frames` frames of `frame_bytes` each: the next power of two. Three or
    /// four are good for raw video; a second's worth for encoded frames and packets.
    pub fn for_frames(frame_bytes: usize, frames: u32) -> Self {
        let frames = frames.max(2);
        let bytes = frame_bytes.max(1).saturating_mul(frames as usize);
        let slots = frames.saturating_mul(2).clamp(256, SLOTS_MAX).next_power_of_two();
        Self { arena_bytes: round_up(bytes), slots, prefault: false, huge_pages: false }
    }

    /// An arena of `bytes` (rounded up to a power of two, 64 KiB to 4 GiB) and so many descriptors
    /// (2 to 65,536): the frames that can be in flight.
    pub fn with_size(bytes: usize, descriptors: u32) -> Self {
        let slots = descriptors.clamp(SLOTS_MIN, SLOTS_MAX).next_power_of_two();
        Self { arena_bytes: round_up(bytes), slots, prefault: false, huge_pages: false }
    }

    /// Reserves all memory when the lane is made: a machine that lacks it fails then, and the first
    /// use of each page costs the consumer no page fault.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }

    /// Asks for huge pages on the consumer's side (transparent ones, `madvise`). The system may
    /// refuse (`/sys/kernel/mm/transparent_hugepage/shmem_enabled`); nothing else changes then.
    pub fn huge_pages(mut self, huge_pages: bool) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Bytes of the arena. The largest frame is half of it.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Descriptors: frames that can be in flight.
    pub fn descriptors(&self) -> u32 {
        self.slots
    }

    pub(crate) fn geometry(&self) -> Result<Geometry, RingError> {
        if self.arena_bytes > ARENA_MAX {
            let rule =
                "is more than a ring can be (4 GiB): fewer frames in flight are faster anyway";
            return Err(RingError::BadGeometry {
                field: "arena_bytes",
                value: self.arena_bytes as u64,
                rule,
            });
        }
        Ok(Geometry { slots: self.slots, arena_bytes: self.arena_bytes })
    }

    pub(crate) fn wants_prefault(&self) -> bool {
        self.prefault
    }

    pub(crate) fn wants_huge_pages(&self) -> bool {
        self.huge_pages
    }
}

fn round_up(bytes: usize) -> usize {
    bytes.max(ARENA_ALIGNMENT).checked_next_power_of_two().unwrap_or(usize::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_up_to_what_the_layout_allows() {
        for (frame, frames, arena, slots) in [
            (3_110_400, 4, 16 << 20, 256),
            (1, 1, 65_536, 256),
            (1_200, 1_000, 2 << 20, 2_048),
            (0, 0, 65_536, 256),
            (64, u32::MAX, 1 << 38, 65_536),
        ] {
            let options = RingOptions::for_frames(frame, frames);
            assert_eq!(
                (options.arena_bytes(), options.descriptors()),
                (arena, slots),
                "{frame} × {frames}"
            );
        }
    }

    #[test]
    fn a_ring_beyond_the_layout_is_refused() {
        let error = RingOptions::for_frames(1 << 33, 4).geometry().unwrap_err();
        assert!(error.to_string().contains("4 GiB"), "{error}");
    }
}
