//! The consumer's half of the protocol for one lane: peek ahead, release in any order, skip claims
//! of dead producers.
//!
//! The consumer keeps its own copies of all positions. A shared field is loaded once into a local,
//! checked, then used; the first contradiction closes the lane.
//!
//! Producers that evict take the oldest position or none. So the consumer marks only the oldest
//! frame that it holds: that one *guards* all behind it, which are read without writing to shared
//! memory. Small frames are released in batches ([`crate::release_batch`]), so that a batch costs
//! the two atomic exchanges that each of its frames would.
//!
//! What every frame passes is inlined by force, here and in `claim`: descriptions that were handed
//! from function to function through memory took two fifths of the time of a small record.

use std::collections::VecDeque;
use std::ptr::NonNull;

use crate::claim::{Descriptor, advance_release};
use crate::memory::Memory;
use crate::packed::{Position, SlotState, StateWord, UNIT};
use crate::release_batch::ReleaseBatch;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Attempts on a word that changes concurrently. An honest producer changes it once or twice
/// meanwhile; otherwise the next call tries again.
const TRIES: u32 = 8;

/// A broken rule: which, and at which descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) sequence: u32,
    pub(crate) what: &'static str,
}

/// A peeked frame; its descriptor's sequence number identifies it within the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peeked {
    pub(crate) sequence: u32,
    pub(crate) owner: u16,
    pub(crate) descriptor: Descriptor,
}

/// Result of releasing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// Bytes of payload that it had.
    pub(crate) len: u32,
    /// `release` was moved, so producers may have more room.
    pub(crate) published: bool,
}

/// A position between `oldest` and the next frame to peek.
#[derive(Clone, Copy, Debug)]
struct Entry {
    position: Position,
    len: u32,
    owner: u16,
    /// Released by the user, or without a frame: an aborted or abandoned claim.
    released: bool,
}

/// The consumer's positions in one lane.
#[derive(Debug)]
pub(crate) struct Cursor {
    next: Position,
    /// `release` as this consumer left it. If it is not `next`, its slot is marked as peeked and
    /// guards all up to `next`.
    oldest: Position,
    /// Positions from the first still in use up to `next`, without gaps. Those between `oldest` and
    /// the first of them are released and not published yet.
    entries: VecDeque<Entry>,
    release_batch: ReleaseBatch,
    /// A producer moved `release` although the guard was in place.
    release_moved: bool,
}

impl Cursor {
    /// Starts at `release`: frames that an earlier consumer held are delivered again.
    pub(crate) fn new(memory: &Memory) -> Self {
        publish_for_killed_consumer(memory);
        let next = Position::unpack(memory.control().release.0.load(Acquire));
        let entries = VecDeque::with_capacity(memory.geometry().slots.min(64) as usize);
        Self {
            next,
            oldest: next,
            entries,
            release_batch: ReleaseBatch::of(memory.geometry()),
            release_moved: false,
        }
    }

    /// With another batch size.
    #[cfg(test)]
    pub(crate) fn with_release_batch(self, release_batch: ReleaseBatch) -> Self {
        Self { release_batch, ..self }
    }

    /// Whether the next slot has something to read: for the decision to sleep. Costs one load.
    pub(crate) fn is_ready(&self, memory: &Memory) -> bool {
        if self.is_full(memory) {
            return false;
        }
        let before = self.next.sequence.wrapping_sub(memory.geometry().slots);
        let state = StateWord::unpack(memory.slot(self.next.sequence).state.load(Acquire));
        match state {
            Some(state) if state.sequence == before => false,
            Some(state) if state.sequence == self.next.sequence => {
                !matches!(state.stage, SlotState::Claimed | SlotState::Poisoned)
            }
            _ => true,
        }
    }

    /// Positions not released yet.
    pub(crate) fn held(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.released).count()
    }

    /// Whether positions are reserved that the cursor has not reached.
    pub(crate) fn is_behind(&self, memory: &Memory) -> bool {
        Position::unpack(memory.control().reserve.0.load(Acquire)).sequence != self.next.sequence
    }

    /// Whether the cursor has passed all positions before `until`.
    pub(crate) fn is_past(&self, until: u32) -> bool {
        until.wrapping_sub(self.next.sequence) as i32 <= 0
    }

    pub(crate) fn is_full(&self, memory: &Memory) -> bool {
        self.next.sequence.wrapping_sub(self.oldest.sequence) >= memory.geometry().slots
    }

    /// Whether nothing is held, so that the next position has no guard before it.
    fn is_unguarded(&self) -> bool {
        self.oldest == self.next
    }

    /// The next committed frame, in the order of claims. Looks at no more positions than the ring
    /// has slots, since a producer that claims and aborts (or evicts) without end would otherwise
    /// starve other lanes. So there may be a frame although this returns none; [`Cursor::is_ready`]
    /// distinguishes them.
    #[inline(always)]
    pub(crate) fn peek(&mut self, memory: &Memory) -> Result<Option<Peeked>, Violation> {
        // One more than there are slots, since moving to where evictions left `release` is a step
        // too.
        for _ in 0..=memory.geometry().slots {
            if self.is_full(memory) {
                break;
            }
            let slot = memory.slot(self.next.sequence);
            // SYNC POINT with `commit`.
            let word = slot.state.load(Acquire);
            let state = StateWord::unpack(word).ok_or(self.violation("its state is no state"))?;
            if state.sequence != self.next.sequence {
                let before = self.next.sequence.wrapping_sub(memory.geometry().slots);
                if state.sequence == before {
                    return self.nothing();
                }
                // The slot's new owner saw `release` beyond this position, and that owner's state
                // word was read.
                self.follow(memory, "its slot was reused before it was released")?;
                continue;
            }
            match state.stage {
                SlotState::Claimed | SlotState::Poisoned => return self.nothing(),
                SlotState::Committed | SlotState::Peeked => {
                    if self.is_unguarded() && !self.guard(memory, word, state) {
                        continue;
                    }
                    return self.take(memory, state).map(Some);
                }
                SlotState::Evicted if !self.is_unguarded() => {
                    return Err(self.violation("evicted behind a frame that is held"));
                }
                SlotState::Evicted => self.finish_eviction(memory)?,
                SlotState::Aborted | SlotState::Released => match self.extent(memory) {
                    Ok(units) => self.pass(memory, units)?,
                    // An evicting producer may have moved past it too, and the slot may have a new
                    // owner by now.
                    Err(violation) => self.follow(memory, violation.what)?,
                },
            }
        }
        Ok(None)
    }

    /// There is nothing to peek. A lane whose `release` was moved past the guard gets here soon,
    /// since no producer finds room any more; so the check is only made here.
    #[inline(always)]
    fn nothing(&self) -> Result<Option<Peeked>, Violation> {
        if self.release_moved {
            Err(self.violation("`release` was moved while its position was held"))
        } else {
            Ok(None)
        }
    }

    /// Marks the frame at `next` as peeked. False if a producer evicted it meanwhile.
    #[inline(always)]
    fn guard(&self, memory: &Memory, word: u64, state: StateWord) -> bool {
        // So that `done` never belongs to an earlier guard.
        memory.control().consumer.0.done.store(self.next.pack(), Relaxed);
        let slot = memory.slot(self.next.sequence);
        slot.state
            .compare_exchange(word, state.at(SlotState::Peeked).pack(), AcqRel, Acquire)
            .is_ok()
    }

    /// Reads the descriptor of a committed frame that is marked as peeked or guarded; only a
    /// malicious producer changes it.
    #[inline(always)]
    fn take(&mut self, memory: &Memory, state: StateWord) -> Result<Peeked, Violation> {
        let units = self.extent(memory)?;
        let slot = memory.slot(state.sequence);
        let kind_flags = slot.kind_flags.load(Relaxed);
        let descriptor = Descriptor {
            len: slot.len.load(Relaxed),
            stream: slot.stream.load(Relaxed),
            kind: kind_flags as u16,
            flags: (kind_flags >> 16) as u16,
            timestamp_ns: slot.timestamp_ns.load(Relaxed),
            sequence: slot.sequence.load(Relaxed),
            user_data: slot.user_data.load(Relaxed),
        };
        if u64::from(descriptor.len) > u64::from(units) * UNIT as u64 {
            return Err(self.violation("its length is beyond its extent"));
        }
        let entry =
            Entry { position: self.next, len: descriptor.len, owner: state.owner, released: false };
        self.entries.push_back(entry);
        self.next = self.next.after(units);
        Ok(Peeked { sequence: state.sequence, owner: state.owner, descriptor })
    }

    /// Units of the slot at `next`, checked: it starts where it must and the ring holds it.
    #[inline(always)]
    fn extent(&self, memory: &Memory) -> Result<u32, Violation> {
        let slot = memory.slot(self.next.sequence);
        let (start, units) = (slot.start.load(Acquire), slot.units.load(Relaxed));
        if start != self.next.pack() {
            return Err(self.violation("it does not start where the one before ended"));
        }
        if units == 0 {
            return Err(self.violation("it has no extent"));
        }
        self.fits(memory, units)?;
        Ok(units)
    }

    #[inline(always)]
    fn fits(&self, memory: &Memory, units: u32) -> Result<(), Violation> {
        let held = self.next.unit.wrapping_sub(self.oldest.unit);
        if u64::from(held) + u64::from(units) > u64::from(memory.geometry().units()) {
            return Err(self.violation("its extent is beyond the ring"));
        }
        Ok(())
    }

    /// Skips a position without a frame to deliver: an aborted or abandoned claim, or a frame that
    /// an earlier consumer released.
    fn pass(&mut self, memory: &Memory, units: u32) -> Result<(), Violation> {
        let position = self.next;
        if self.is_unguarded() {
            if !advance_release(memory, position, position.after(units)) {
                // An evicting producer was faster, and the extent read here may be of the slot's
                // next use.
                return self.follow(memory, "it is done, but `release` cannot move past it");
            }
            self.next = position.after(units);
            self.oldest = self.next;
            return Ok(());
        }
        self.next = position.after(units);
        if !self.entries.is_empty() {
            self.entries.push_back(Entry { position, len: 0, owner: 0, released: true });
        } else if self.release_batch.is_enough(memory, self.oldest, self.next) {
            self.publish(memory);
        }
        Ok(())
    }

    /// Continues at `release` after producers evicted past `next`, which is possible only while
    /// nothing is held. If they did not, the slot is corrupt.
    fn follow(&mut self, memory: &Memory, what: &'static str) -> Result<(), Violation> {
        let release = Position::unpack(memory.control().release.0.load(Acquire));
        if !self.is_unguarded() || release == self.next {
            return Err(self.violation(what));
        }
        (self.oldest, self.next) = (release, release);
        Ok(())
    }

    /// The next frame was dropped by a producer that may have died before it moved `release`.
    fn finish_eviction(&mut self, memory: &Memory) -> Result<(), Violation> {
        let slot = memory.slot(self.next.sequence);
        let (start, units) = (slot.start.load(Acquire), slot.units.load(Relaxed));
        if Position::unpack(memory.control().release.0.load(Acquire)) == self.next {
            // Not reused yet, so the extent belongs to it.
            if start != self.next.pack() || units == 0 || units > memory.geometry().units() {
                return Err(self.violation("evicted, with an extent that cannot be"));
            }
            advance_release(memory, self.next, self.next.after(units));
        }
        self.follow(memory, "evicted, but `release` cannot move past it")
    }

    /// Payload of a held frame. The pointer is good for `len` bytes until the frame is released.
    #[inline(always)]
    pub(crate) fn payload(&self, memory: &Memory, sequence: u32) -> Option<(NonNull<u8>, usize)> {
        let entry = self.entries.get(self.index(sequence)?)?;
        Some((memory.payload(entry.position.unit), entry.len as usize))
    }

    /// Position of a held frame among the entries.
    #[inline(always)]
    fn index(&self, sequence: u32) -> Option<usize> {
        let first = self.entries.front()?.position.sequence;
        let index = sequence.wrapping_sub(first) as usize;
        self.entries.get(index).filter(|entry| !entry.released).map(|_| index)
    }

    /// Releases a frame, in any order. Its space becomes free once all frames before it are
    /// released and the batch is large enough to publish. None if the frame is not held.
    #[inline(always)]
    pub(crate) fn release(&mut self, memory: &Memory, sequence: u32) -> Option<Released> {
        let index = self.index(sequence)?;
        let entry = self.entries.get_mut(index)?;
        let len = entry.len;
        if index > 0 {
            entry.released = true;
            let released = StateWord { sequence, owner: entry.owner, stage: SlotState::Released };
            // If this process dies, a new consumer does not return it again. SYNC POINT with
            // `evict_oldest`: the reads of the payload here happen before anything that follows
            // from this.
            memory.slot(sequence).state.store(released.pack(), Release);
            return Some(Released { len, published: false });
        }
        self.entries.pop_front();
        while self.entries.front().is_some_and(|entry| entry.released) {
            self.entries.pop_front();
        }
        memory.control().consumer.0.done.store(self.free().pack(), Release);
        let published =
            self.release_batch.is_enough(memory, self.oldest, self.free()) && self.publish(memory);
        Some(Released { len, published })
    }

    /// The position up to which all frames are released.
    #[inline(always)]
    fn free(&self) -> Position {
        self.entries.front().map_or(self.next, |first| first.position)
    }

    /// Publishes all released positions to producers. False if there is nothing new.
    #[inline(always)]
    pub(crate) fn publish(&mut self, memory: &Memory) -> bool {
        let free = self.free();
        if free == self.oldest {
            return false;
        }
        if let Some(first) = self.entries.front() {
            // The new guard. No other process writes there while the old one is in place; a reader
            // that sees `release` there sees it.
            let ours = StateWord {
                sequence: first.position.sequence,
                owner: first.owner,
                stage: SlotState::Peeked,
            };
            memory.slot(first.position.sequence).state.store(ours.pack(), Relaxed);
        }
        self.release_moved |= !advance_release(memory, self.oldest, free);
        self.oldest = free;
        true
    }

    /// Skips claims of producers that are known to be dead, at most all positions before `until`.
    /// Never touches a claim that a living producer owns or is about to own. Returns how many
    /// claims were skipped: at most one per slot; the next call continues.
    pub(crate) fn recover(
        &mut self,
        memory: &Memory,
        is_dead: &dyn Fn(u16) -> bool,
        until: u32,
    ) -> Result<u64, Violation> {
        let mut put_aside = 0;
        for _ in 0..memory.geometry().slots {
            if self.is_full(memory) || !self.is_behind(memory) {
                break;
            }
            let sequence = self.next.sequence;
            if !self.poison(memory, sequence, is_dead, until) {
                break;
            }
            let Some(units) = self.extent_of_dead(memory, is_dead, until)? else { break };
            self.fits(memory, units)?;
            self.pass(memory, units)?;
            put_aside += 1;
        }
        Ok(put_aside)
    }

    /// Sequence number of the next slot to look at.
    pub(crate) fn next_sequence(&self) -> u32 {
        self.next.sequence
    }

    /// Whether the claim at a position may be abandoned: owned by a dead session, poisoned already,
    /// or reserved before `until` and without an owner yet.
    pub(crate) fn may_be_abandoned(
        &self,
        memory: &Memory,
        sequence: u32,
        is_dead: &dyn Fn(u16) -> bool,
        until: u32,
    ) -> bool {
        let state = StateWord::unpack(memory.slot(sequence).state.load(Acquire));
        state.is_some_and(|state| {
            abandonment(memory, sequence, state, is_dead, until) != Abandonment::No
        })
    }

    /// Marks the slot of an abandoned claim as poisoned. False if it is not abandoned, or keeps
    /// changing.
    fn poison(
        &self,
        memory: &Memory,
        sequence: u32,
        is_dead: &dyn Fn(u16) -> bool,
        until: u32,
    ) -> bool {
        let slot = memory.slot(sequence);
        for _ in 0..TRIES {
            let word = slot.state.load(Acquire);
            let Some(state) = StateWord::unpack(word) else { return false };
            match abandonment(memory, sequence, state, is_dead, until) {
                Abandonment::No | Abandonment::Pending => return false,
                Abandonment::Poisoned => return true,
                Abandonment::Due => {}
            }
            let poisoned = StateWord { sequence, owner: state.owner, stage: SlotState::Poisoned };
            if slot.state.compare_exchange(word, poisoned.pack(), AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
        false
    }

    /// Extent of the poisoned claim at `next`: from its own slot if its owner wrote it, else up to
    /// where the following claim starts. None if the following owner is alive and about to write
    /// that.
    fn extent_of_dead(
        &self,
        memory: &Memory,
        is_dead: &dyn Fn(u16) -> bool,
        until: u32,
    ) -> Result<Option<u32>, Violation> {
        let slot = memory.slot(self.next.sequence);
        // SYNC POINT with `mark_claimed`.
        if slot.start.load(Acquire) == self.next.pack() {
            return Ok(Some(slot.units.load(Relaxed)));
        }
        let following = self.next.sequence.wrapping_add(1);
        for _ in 0..TRIES {
            let reserve = Position::unpack(memory.control().reserve.0.load(Acquire));
            if reserve.sequence == following {
                return Ok(Some(reserve.unit.wrapping_sub(self.next.unit)));
            }
            if reserve.sequence.wrapping_sub(self.next.sequence) > memory.geometry().slots {
                return Err(self.violation("more is reserved than the ring holds"));
            }
            let start = Position::unpack(memory.slot(following).start.load(Acquire));
            if start.sequence == following {
                return Ok(Some(start.unit.wrapping_sub(self.next.unit)));
            }
            let state = StateWord::unpack(memory.slot(following).state.load(Acquire));
            if state.is_some_and(|s| s.sequence == following && s.stage == SlotState::Poisoned) {
                // Poisoned before it wrote its position, as this one: the last of such a run gets
                // the extent of all.
                return Ok(Some(0));
            }
            if !self.poison(memory, following, is_dead, until) {
                break;
            }
        }
        Ok(None)
    }

    pub(crate) fn violation(&self, what: &'static str) -> Violation {
        Violation { sequence: self.next.sequence, what }
    }
}

/// Publishes what a killed consumer had released but not published, so that it is not delivered
/// again. Its guard is still at `release` then; if it is not, evicting producers have moved on and
/// `done` is out of date.
fn publish_for_killed_consumer(memory: &Memory) {
    let control = memory.control();
    let release = Position::unpack(control.release.0.load(Acquire));
    let done = Position::unpack(control.consumer.0.done.load(Acquire));
    let guard = StateWord::unpack(memory.slot(release.sequence).state.load(Acquire));
    let is_guarded = guard.is_some_and(|state| {
        state.sequence == release.sequence && state.stage == SlotState::Peeked
    });
    let is_ahead = (1..=memory.geometry().slots)
        .contains(&done.sequence.wrapping_sub(release.sequence))
        && done.unit.wrapping_sub(release.unit) <= memory.geometry().units();
    if is_guarded && is_ahead {
        advance_release(memory, release, done);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abandonment {
    /// Its owner is alive, or the frame is committed or done.
    No,
    /// It has no owner, and a living producer is about to own some position: within a few
    /// instructions this is either owned or `Due`. The caller must look again, since nothing will
    /// wake it.
    Pending,
    /// Its owner is dead.
    Due,
    /// It is poisoned already.
    Poisoned,
}

fn abandonment(
    memory: &Memory,
    sequence: u32,
    state: StateWord,
    is_dead: &dyn Fn(u16) -> bool,
    until: u32,
) -> Abandonment {
    let before = sequence.wrapping_sub(memory.geometry().slots);
    let is_reserved = (until.wrapping_sub(sequence) as i32) > 0;
    match state.stage {
        SlotState::Poisoned if state.sequence == sequence => Abandonment::Poisoned,
        SlotState::Claimed if state.sequence == sequence && is_dead(state.owner) => {
            Abandonment::Due
        }
        // SYNC POINT with `try_claim`: `until` was read from `reserve` after this position was
        // reserved. So either its producer's `claiming` flag is seen, or that it was cleared and
        // the slot as the producer left it; then the state read before is out of date and the
        // compare-and-swap on it fails.
        stage if stage != SlotState::Claimed && state.sequence == before && is_reserved => {
            if is_anybody_claiming(memory, is_dead) {
                Abandonment::Pending
            } else {
                Abandonment::Due
            }
        }
        _ => Abandonment::No,
    }
}

/// Whether a living producer is between reserving a position and marking its slot.
fn is_anybody_claiming(memory: &Memory, is_dead: &dyn Fn(u16) -> bool) -> bool {
    let mut rows = memory.rows().iter().zip(0..);
    rows.any(|(row, owner)| row.claiming.load(Acquire) != 0 && !is_dead(owner))
}
