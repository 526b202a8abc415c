//! The producers' half of the protocol: claim a position, commit or abort it, evict the oldest
//! frame to make room.
//!
//! Lock-free: a claim is one compare-and-swap on `reserve` that only fails when another producer's
//! succeeded.

use crate::drop_reason::DropReason;
use crate::layout::ROWS;
use crate::memory::Memory;
use crate::packed::{Position, SlotState, StateWord};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Copies of the two positions that a producer keeps between claims, to stay off the consumer's
/// cache line while there is room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedPositions {
    /// `reserve` as this producer left it. While it is unchanged, `release` can only have grown
    /// since.
    reserve: Position,
    release: Position,
}

impl CachedPositions {
    pub(crate) fn new(memory: &Memory) -> Self {
        let release = Position::unpack(memory.control().release.0.load(Acquire));
        Self { reserve: release, release }
    }
}

/// Result of one attempt to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimAttempt {
    Claimed(Position),
    Full,
    /// The shared words contradict each other.
    Corrupt(&'static str),
}

/// Result of one attempt to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Space became free, or another process made progress: try to claim again.
    Progress,
    /// The consumer holds the oldest frame, or a producer still writes it: no room can be made.
    Held,
    /// There is nothing to evict.
    Empty,
}

/// Metadata of a frame, written at its commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) len: u32,
    pub(crate) stream: u32,
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) timestamp_ns: u64,
    pub(crate) sequence: u64,
    pub(crate) user_data: u64,
}

/// Claims the next position with `units` of payload, if there is room.
#[inline(always)]
pub(crate) fn try_claim(
    memory: &Memory,
    cached: &mut CachedPositions,
    owner: u16,
    units: u32,
) -> ClaimAttempt {
    let control = memory.control();
    let geometry = memory.geometry();
    loop {
        // Acquire: `release` as read below is at least as new as it was for the producer that moved
        // `reserve` there.
        let reserve = Position::unpack(control.reserve.0.load(Acquire));
        let refresh = reserve != cached.reserve;
        if refresh {
            // Other producers claimed meanwhile, so the cached copy may be of any age. SYNC POINT
            // with `advance_release`: what the consumer read of the old payload happens before what
            // is written over it.
            cached.release = Position::unpack(control.release.0.load(Acquire));
            cached.reserve = reserve;
        }
        let slots_used = reserve.sequence.wrapping_sub(cached.release.sequence);
        let units_used = reserve.unit.wrapping_sub(cached.release.unit);
        if slots_used > geometry.slots || units_used > geometry.units() {
            // `release` was read after `reserve` and may have overtaken it.
            if Position::unpack(control.reserve.0.load(Acquire)) != reserve {
                continue;
            }
            return ClaimAttempt::Corrupt("more is in flight than the ring holds");
        }
        if slots_used == geometry.slots || units_used > geometry.units() - units {
            if !refresh {
                let release = Position::unpack(control.release.0.load(Acquire));
                if release != cached.release {
                    cached.release = release;
                    continue;
                }
            }
            return ClaimAttempt::Full;
        }
        let next = reserve.after(units);
        // SYNC POINT with `cursor::abandonment`: while this is set, an unowned position may be
        // about to become this producer's.
        let claiming = &memory.rows()[usize::from(owner) % ROWS].claiming;
        claiming.store(1, Relaxed);
        let won = control
            .reserve
            .0
            .compare_exchange_weak(reserve.pack(), next.pack(), AcqRel, Relaxed)
            .is_ok();
        if won {
            cached.reserve = next;
            mark_claimed(memory, reserve, owner, units);
        }
        claiming.store(0, Release);
        if won {
            return ClaimAttempt::Claimed(reserve);
        }
    }
}

/// Marks the slot of a reserved position as claimed by `owner`. Its previous frame has been
/// released, because `release` permitted the reservation; no other producer has the position.
#[inline(always)]
fn mark_claimed(memory: &Memory, position: Position, owner: u16, units: u32) {
    let slot = memory.slot(position.sequence);
    let claimed = StateWord { sequence: position.sequence, owner, stage: SlotState::Claimed };
    // SYNC POINT with `Cursor::peek`: a reader that sees this claim also sees that `release` is
    // past the previous owner.
    slot.state.store(claimed.pack(), Release);
    slot.units.store(units, Relaxed);
    // SYNC POINT with `Cursor::extent_of_dead`: a reader that sees this position in `start` sees
    // `units`.
    slot.start.store(position.pack(), Release);
}

/// Makes a claimed frame visible. False if the claim is not open.
#[inline(always)]
pub(crate) fn commit(
    memory: &Memory,
    position: Position,
    owner: u16,
    descriptor: &Descriptor,
) -> bool {
    let slot = memory.slot(position.sequence);
    let claimed = StateWord { sequence: position.sequence, owner, stage: SlotState::Claimed };
    if slot.state.load(Relaxed) != claimed.pack() {
        return false;
    }
    slot.len.store(descriptor.len, Relaxed);
    slot.stream.store(descriptor.stream, Relaxed);
    slot.kind_flags.store(u32::from(descriptor.kind) | u32::from(descriptor.flags) << 16, Relaxed);
    slot.timestamp_ns.store(descriptor.timestamp_ns, Relaxed);
    slot.sequence.store(descriptor.sequence, Relaxed);
    slot.user_data.store(descriptor.user_data, Relaxed);
    // SYNC POINT with `Cursor::peek`: a reader that sees the frame committed sees descriptor and
    // payload.
    slot.state
        .compare_exchange(claimed.pack(), claimed.at(SlotState::Committed).pack(), AcqRel, Relaxed)
        .is_ok()
}

/// Aborts a claim. False if it is not open.
pub(crate) fn abort(memory: &Memory, position: Position, owner: u16) -> bool {
    let claimed = StateWord { sequence: position.sequence, owner, stage: SlotState::Claimed };
    let aborted = claimed.at(SlotState::Aborted);
    let slot = memory.slot(position.sequence);
    slot.state.compare_exchange(claimed.pack(), aborted.pack(), AcqRel, Relaxed).is_ok()
}

/// Aborts all open claims of a producer that leaves; how many there were.
pub(crate) fn abort_all(memory: &Memory, owner: u16) -> u64 {
    let mut aborted = 0;
    for slot in memory.slots() {
        let word = slot.state.load(Acquire);
        let Some(state) = StateWord::unpack(word) else { continue };
        if state.owner == owner && state.stage == SlotState::Claimed {
            let over = state.at(SlotState::Aborted).pack();
            aborted += u64::from(slot.state.compare_exchange(word, over, AcqRel, Relaxed).is_ok());
        }
    }
    aborted
}

/// Drops the oldest frame, or moves `release` past one that is done. The drop is counted for the
/// producer that committed the frame.
pub(crate) fn evict_oldest(memory: &Memory) -> Eviction {
    let control = memory.control();
    let release = Position::unpack(control.release.0.load(Acquire));
    let reserve = Position::unpack(control.reserve.0.load(Acquire));
    if release.sequence == reserve.sequence {
        return Eviction::Empty;
    }
    let slot = memory.slot(release.sequence);
    let word = slot.state.load(Acquire);
    let Some(state) = StateWord::unpack(word) else { return Eviction::Held };
    if state.sequence != release.sequence {
        let moved = Position::unpack(control.release.0.load(Acquire)) != release;
        return if moved { Eviction::Progress } else { Eviction::Held };
    }
    match state.stage {
        // This compare-and-swap decides: either the consumer peeks the frame, or it is evicted.
        SlotState::Committed => {
            let evicted = state.at(SlotState::Evicted).pack();
            if slot.state.compare_exchange(word, evicted, AcqRel, Relaxed).is_err() {
                return Eviction::Progress;
            }
            let row = &memory.rows()[usize::from(state.owner) % ROWS];
            row.dropped[DropReason::Evicted as usize].fetch_add(1, Relaxed);
        }
        SlotState::Released | SlotState::Aborted | SlotState::Evicted => {}
        // Only the consumer determines the extent of a poisoned claim.
        SlotState::Claimed | SlotState::Peeked | SlotState::Poisoned => return Eviction::Held,
    }
    advance_release(memory, release, release.after(slot.units.load(Relaxed)));
    Eviction::Progress
}

/// Moves `release` forward over positions that are all done; false if another process moved it
/// first. No slot is reused before that, so `units` was still valid when it was read if the
/// compare-and-swap succeeds.
#[inline(always)]
pub(crate) fn advance_release(memory: &Memory, from: Position, to: Position) -> bool {
    // SYNC POINT with `try_claim`. Acquire as well: an evicting producer passes on what the
    // consumer released.
    memory.control().release.0.compare_exchange(from.pack(), to.pack(), AcqRel, Acquire).is_ok()
}
