//! The producers' half of the protocol: claim a place, commit or abort it, evict the oldest to make room.
//!
//! Lock-free: a claim is one compare-and-swap on `reserve` that only fails when a rival's succeeded.

use crate::drop_reason::DropReason;
use crate::layout::ROWS;
use crate::memory::Memory;
use crate::packed::{Position, SlotState, StateWord};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What a producer remembers between claims, so as to leave the consumer's cache line alone while there is room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedPositions {
    /// `reserve` as this producer left it. As long as it stands so, `release` can only have grown since.
    reserve: Position,
    release: Position,
}

impl CachedPositions {
    pub(crate) fn new(memory: &Memory) -> Self {
        let release = Position::unpack(memory.control().release.0.load(Acquire));
        Self { reserve: release, release }
    }
}

/// What a try to claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimAttempt {
    Claimed(Position),
    Full,
    /// The shared words contradict each other.
    Corrupt(&'static str),
}

/// What a try to evict came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Something became free, or somebody else made progress: try to claim again.
    Progress,
    /// The oldest is in the consumer's hands, or a producer still writes it: no room can be made.
    Held,
    /// There is nothing to evict.
    Empty,
}

/// What a producer says about a frame when it commits.
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

/// Takes the next place of `units`, if there is room.
#[inline(always)]
pub(crate) fn try_claim(memory: &Memory, seen: &mut CachedPositions, owner: u16, units: u32) -> ClaimAttempt {
    let control = memory.control();
    let geometry = memory.geometry();
    loop {
        // Acquire: `release` as read below is at least what the one who moved `reserve` there had seen.
        let reserve = Position::unpack(control.reserve.0.load(Acquire));
        let refresh = reserve != seen.reserve;
        if refresh {
            // Rivals claimed meanwhile, so what was seen may be any age. SYNC POINT with `advance_release`: what the consumer
            // read of the old payload happens before what is written over it.
            seen.release = Position::unpack(control.release.0.load(Acquire));
            seen.reserve = reserve;
        }
        let slots_used = reserve.sequence.wrapping_sub(seen.release.sequence);
        let units_used = reserve.unit.wrapping_sub(seen.release.unit);
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
                if release != seen.release {
                    seen.release = release;
                    continue;
                }
            }
            return ClaimAttempt::Full;
        }
        let next = reserve.after(units);
        // SYNC POINT with `cursor::abandonment`: while this stands, a place that nobody owns may be about to be ours.
        let claiming = &memory.rows()[usize::from(owner) % ROWS].claiming;
        claiming.store(1, Relaxed);
        let won =
            control.reserve.0.compare_exchange_weak(reserve.pack(), next.pack(), AcqRel, Relaxed).is_ok();
        if won {
            seen.reserve = next;
            mark_claimed(memory, reserve, owner, units);
        }
        claiming.store(0, Release);
        if won {
            return ClaimAttempt::Claimed(reserve);
        }
    }
}

/// Makes the slot of a reserved place ours. The consumer has given back what was there, or `release` would not have let
/// us here; nobody else has the place, and it is taken from no producer that lives.
#[inline(always)]
fn mark_claimed(memory: &Memory, place: Position, owner: u16, units: u32) {
    let slot = memory.slot(place.sequence);
    let claimed = StateWord { sequence: place.sequence, owner, stage: SlotState::Claimed };
    // SYNC POINT with `Cursor::peek`: whoever sees us here sees that `release` had gone past who was here before.
    slot.state.store(claimed.pack(), Release);
    slot.units.store(units, Relaxed);
    // SYNC POINT with `Cursor::extent_of_dead`: whoever sees this place in `start` sees `units`.
    slot.start.store(place.pack(), Release);
}

/// Makes a claimed frame visible. False if the claim is not open.
#[inline(always)]
pub(crate) fn commit(memory: &Memory, place: Position, owner: u16, descriptor: &Descriptor) -> bool {
    let slot = memory.slot(place.sequence);
    let claimed = StateWord { sequence: place.sequence, owner, stage: SlotState::Claimed };
    if slot.state.load(Relaxed) != claimed.pack() {
        return false;
    }
    slot.len.store(descriptor.len, Relaxed);
    slot.stream.store(descriptor.stream, Relaxed);
    slot.kind_flags.store(u32::from(descriptor.kind) | u32::from(descriptor.flags) << 16, Relaxed);
    slot.timestamp_ns.store(descriptor.timestamp_ns, Relaxed);
    slot.sequence.store(descriptor.sequence, Relaxed);
    slot.user_data.store(descriptor.user_data, Relaxed);
    // SYNC POINT with `Cursor::peek`: descriptor and payload are seen by whoever sees the frame committed.
    slot.state
        .compare_exchange(claimed.pack(), claimed.at(SlotState::Committed).pack(), AcqRel, Relaxed)
        .is_ok()
}

/// Gives up a claim. False if it is not open.
pub(crate) fn abort(memory: &Memory, place: Position, owner: u16) -> bool {
    let claimed = StateWord { sequence: place.sequence, owner, stage: SlotState::Claimed };
    let aborted = claimed.at(SlotState::Aborted);
    let slot = memory.slot(place.sequence);
    slot.state.compare_exchange(claimed.pack(), aborted.pack(), AcqRel, Relaxed).is_ok()
}

/// Aborts whatever a producer that goes still has open.
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

/// Drops the oldest frame, or finishes giving back one that is over already. The drop is counted with the producer
/// whose frame it was.
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
        // Who wins this compare-and-swap decides: the consumer peeks it, or it is gone.
        SlotState::Committed => {
            let evicted = state.at(SlotState::Evicted).pack();
            if slot.state.compare_exchange(word, evicted, AcqRel, Relaxed).is_err() {
                return Eviction::Progress;
            }
            let row = &memory.rows()[usize::from(state.owner) % ROWS];
            row.dropped[DropReason::Evicted as usize].fetch_add(1, Relaxed);
        }
        SlotState::Released | SlotState::Aborted | SlotState::Evicted => {}
        // The extent of a poisoned claim is for the consumer to find out.
        SlotState::Claimed | SlotState::Peeked | SlotState::Poisoned => return Eviction::Held,
    }
    advance_release(memory, release, release.after(slot.units.load(Relaxed)));
    Eviction::Progress
}

/// Moves `release` on from one place to another, between which all is over; does nothing if somebody else moved it before.
/// No slot is reused until then, so that `units` still stood there when they were read if the compare-and-swap succeeds.
#[inline(always)]
pub(crate) fn advance_release(memory: &Memory, from: Position, to: Position) -> bool {
    // SYNC POINT with `try_claim`. Acquire as well: an evicting producer passes on what the consumer released.
    memory.control().release.0.compare_exchange(from.pack(), to.pack(), AcqRel, Acquire).is_ok()
}
