//! When producers that sleep for lack of room are woken: late enough that one wake-up serves many
//! small frames, and never so late that both sides sleep.
//!
//! A release that does not wake leaves the sleep word as it is. So each later release sees the
//! sleeper again, and at the latest the consumer does when it finds nothing to peek or goes to
//! sleep itself.

use crate::cursor::Cursor;
use crate::memory::Memory;
use crate::packed::Position;
use crate::sync::AtomicU32;
use crate::sync::Ordering::{AcqRel, Acquire};
use crate::wake;

/// Which producers to wake after a release: none before a quarter of slots and units is free,
/// unless the consumer has nothing else to do. Clears the sleep word. Costs one load while no
/// producer sleeps.
pub(crate) fn sleepers_after_release(memory: &Memory, cursor: &Cursor) -> u32 {
    // Space becomes free by a compare-and-swap, which is the read-modify-write that this check
    // needs before it.
    if !wake::is_anybody_asleep_after_rmw(word(memory)) {
        return 0;
    }
    let free = Free::of(memory);
    if free.is_quarter(memory) || (free.is_any() && !cursor.is_ready(memory)) {
        take(memory)
    } else {
        0
    }
}

/// Which producers to wake when the consumer finds nothing to peek, or is about to sleep: all, if
/// any room is free.
pub(crate) fn sleepers_when_idle(memory: &Memory) -> u32 {
    if wake::is_anybody_asleep(word(memory)) && Free::of(memory).is_any() {
        take(memory)
    } else {
        0
    }
}

fn word(memory: &Memory) -> &AtomicU32 {
    &memory.control().producer_sleep.0
}

fn take(memory: &Memory) -> u32 {
    word(memory).swap(0, AcqRel)
}

/// Free space by the shared words, which is accurate enough for a wake-up: one too many costs a
/// system call.
struct Free {
    slots: u32,
    units: u32,
}

impl Free {
    fn of(memory: &Memory) -> Self {
        let (control, geometry) = (memory.control(), memory.geometry());
        let release = Position::unpack(control.release.0.load(Acquire));
        let reserve = Position::unpack(control.reserve.0.load(Acquire));
        let free = |size: u32, reserve: u32, release: u32| {
            // More in use than there is: producers evict and claim meanwhile. A needless wake-up is
            // harmless.
            size.checked_sub(reserve.wrapping_sub(release)).unwrap_or(size)
        };
        Self {
            slots: free(geometry.slots, reserve.sequence, release.sequence),
            units: free(geometry.units(), reserve.unit, release.unit),
        }
    }

    fn is_any(&self) -> bool {
        self.slots > 0 && self.units > 0
    }

    fn is_quarter(&self, memory: &Memory) -> bool {
        let geometry = memory.geometry();
        // A ring has at most 2^16 slots and 2^26 units, and 2 slots at least.
        self.slots >= geometry.slots.div_ceil(4) && self.units >= geometry.units().div_ceil(4)
    }
}
