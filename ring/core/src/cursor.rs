//! The consumer's half of the protocol, a lane: peek ahead, release in any order, put aside what the dead left.
//!
//! The consumer keeps its own copies of all positions. A shared field is loaded once into a local, checked, then used;
//! the first contradiction closes the lane.
//!
//! Producers that evict take the oldest place or none. So only the oldest that the consumer has is marked as its own: that
//! one *guards* all behind it, which are read without a word to anybody. And small frames are given back in runs
//! ([`crate::release_batch`]), so that a run costs the two exchanges that each of its frames would.
//!
//! What every frame passes is inlined by force, here and in `claim`: descriptions that were handed from function to function
//! through memory took two fifths of the time of a small record.

use std::collections::VecDeque;
use std::ptr::NonNull;

use crate::claim::{Descriptor, advance_release};
use crate::memory::Memory;
use crate::packed::{Position, SlotState, StateWord, UNIT};
use crate::release_batch::ReleaseBatch;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Looks at a word that changes under us. An honest one changes once or twice while it is dealt with; for another there
/// is the next call.
const TRIES: u32 = 8;

/// A broken rule: which, and at which descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) sequence: u32,
    pub(crate) what: &'static str,
}

/// A frame that was peeked: its descriptor's sequence number is its name within the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peeked {
    pub(crate) sequence: u32,
    pub(crate) owner: u16,
    pub(crate) descriptor: Descriptor,
}

/// What came of giving a frame back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// Bytes of payload that it had.
    pub(crate) len: u32,
    /// Producers were told of room.
    pub(crate) told: bool,
}

/// Between what was given back and the next frame to peek.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Position,
    len: u32,
    owner: u16,
    /// Given back by the user, or nothing to use: an aborted or dead claim.
    over: bool,
}

/// Where the consumer stands in one lane.
#[derive(Debug)]
pub(crate) struct Cursor {
    next: Position,
    /// Where `release` stands, as we left it. If it is not `next`, its slot is marked as ours, and guards all up to `next`.
    oldest: Position,
    /// Places from the first still in use up to `next`, without gaps. What lies between `oldest` and the first of them is
    /// over, and nobody was told yet.
    entries: VecDeque<Entry>,
    release_batch: ReleaseBatch,
    /// Somebody moved `release` away from a place that we guard.
    trespassed: bool,
}

impl Cursor {
    /// Begins where everything before was given back: what an earlier consumer held comes again.
    pub(crate) fn new(memory: &Memory) -> Self {
        publish_for_killed_consumer(memory);
        let next = Position::unpack(memory.control().release.0.load(Acquire));
        let entries = VecDeque::with_capacity(memory.geometry().slots.min(64) as usize);
        Self {
            next,
            oldest: next,
            entries,
            release_batch: ReleaseBatch::of(memory.geometry()),
            trespassed: false,
        }
    }

    /// The same with another measure of what may be held back.
    #[cfg(test)]
    pub(crate) fn with_release_batch(self, release_batch: ReleaseBatch) -> Self {
        Self { release_batch, ..self }
    }

    /// Whether a look at the next slot would find something: for the decision to sleep. Costs one load.
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

    /// Frames and other places not given back yet.
    pub(crate) fn held(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.over).count()
    }

    /// Whether places are reserved that were not seen yet.
    pub(crate) fn is_behind(&self, memory: &Memory) -> bool {
        Position::unpack(memory.control().reserve.0.load(Acquire)).sequence != self.next.sequence
    }

    /// Whether all places before `until` were seen.
    pub(crate) fn is_past(&self, until: u32) -> bool {
        until.wrapping_sub(self.next.sequence) as i32 <= 0
    }

    pub(crate) fn is_full(&self, memory: &Memory) -> bool {
        self.next.sequence.wrapping_sub(self.oldest.sequence) >= memory.geometry().slots
    }

    /// Whether nothing is ours: what comes next has no guard before it.
    fn is_unguarded(&self) -> bool {
        self.oldest == self.next
    }

    /// The next committed frame, in the order of claims; gives nothing back. Looks at no more places than a ring at rest
    /// can hold: a producer that claims and aborts, or evicts, without end would keep us from other lanes. So there may
    /// be a frame behind after nothing was found, and [`Cursor::is_ready`] says so.
    #[inline(always)]
    pub(crate) fn peek(&mut self, memory: &Memory) -> Result<Option<Peeked>, Violation> {
        // One more than there are slots, since going on where evictions left `release` is a step too.
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
                // The slot's new owner had seen `release` beyond our place, and we have seen that owner's word.
                self.follow(memory, "its slot was reused before it was given back")?;
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
                    // An evicter may go over it as we do, and it is another's place by now.
                    Err(violation) => self.follow(memory, violation.what)?,
                },
            }
        }
        Ok(None)
    }

    /// There is nothing to peek. A lane whose `release` somebody moved from under us comes to that soon, for no producer
    /// finds room any more: so the frames before it need not be asked.
    #[inline(always)]
    fn nothing(&self) -> Result<Option<Peeked>, Violation> {
        if self.trespassed {
            Err(self.violation("`release` was moved while its place was held"))
        } else {
            Ok(None)
        }
    }

    /// Marks the frame at `next` as ours. False if a producer evicted it meanwhile.
    #[inline(always)]
    fn guard(&self, memory: &Memory, word: u64, state: StateWord) -> bool {
        // Where a guard stands, this is not of an earlier one.
        memory.control().consumer.0.done.store(self.next.pack(), Relaxed);
        let slot = memory.slot(self.next.sequence);
        slot.state.compare_exchange(word, state.at(SlotState::Peeked).pack(), AcqRel, Acquire).is_ok()
    }

    /// Reads the descriptor of a committed frame that is marked as ours, or guarded: no honest producer touches it.
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
        let entry = Entry { place: self.next, len: descriptor.len, owner: state.owner, over: false };
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

    /// Goes over a place with nothing to use: an aborted claim, one of the dead, a frame that an earlier consumer released.
    fn pass(&mut self, memory: &Memory, units: u32) -> Result<(), Violation> {
        let place = self.next;
        if self.is_unguarded() {
            if !advance_release(memory, place, place.after(units)) {
                // An evicter was faster, and what we read as extent may be of the slot's next turn.
                return self.follow(memory, "it is over, but cannot be given back");
            }
            self.next = place.after(units);
            self.oldest = self.next;
            return Ok(());
        }
        self.next = place.after(units);
        if !self.entries.is_empty() {
            self.entries.push_back(Entry { place, len: 0, owner: 0, over: true });
        } else if self.release_batch.is_enough(memory, self.oldest, self.next) {
            self.tell(memory);
        }
        Ok(())
    }

    /// Producers that evict went past `next`, which nothing of ours guards: goes on where they left `release`. If they did
    /// not, what we found there is wrong.
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
            // Not reused yet, so what was read belongs to it.
            if start != self.next.pack() || units == 0 || units > memory.geometry().units() {
                return Err(self.violation("evicted, with an extent that cannot be"));
            }
            advance_release(memory, self.next, self.next.after(units));
        }
        self.follow(memory, "evicted, but cannot be given back")
    }

    /// Payload of a held frame. The pointer is good for `len` bytes until the frame is released.
    #[inline(always)]
    pub(crate) fn payload(&self, memory: &Memory, sequence: u32) -> Option<(NonNull<u8>, usize)> {
        let entry = self.entries.get(self.index(sequence)?)?;
        Some((memory.payload(entry.place.unit), entry.len as usize))
    }

    /// Position of a held frame among the entries.
    #[inline(always)]
    fn index(&self, sequence: u32) -> Option<usize> {
        let first = self.entries.front()?.place.sequence;
        let index = sequence.wrapping_sub(first) as usize;
        self.entries.get(index).filter(|entry| !entry.over).map(|_| index)
    }

    /// Gives a frame back, in any order; the room becomes free once all before it were given back, and once so many are
    /// that it is worth telling. Its bytes, and whether producers were told of room; or nothing if it is not held.
    #[inline(always)]
    pub(crate) fn release(&mut self, memory: &Memory, sequence: u32) -> Option<Released> {
        let index = self.index(sequence)?;
        let entry = self.entries.get_mut(index)?;
        let len = entry.len;
        if index > 0 {
            entry.over = true;
            let released = StateWord { sequence, owner: entry.owner, stage: SlotState::Released };
            // Should we die, a new consumer does not hand it out again. SYNC POINT with `evict_oldest`: our reads of the
            // payload happen before anything that follows from this.
            memory.slot(sequence).state.store(released.pack(), Release);
            return Some(Released { len, told: false });
        }
        self.entries.pop_front();
        while self.entries.front().is_some_and(|entry| entry.over) {
            self.entries.pop_front();
        }
        memory.control().consumer.0.done.store(self.free().pack(), Release);
        let told = self.release_batch.is_enough(memory, self.oldest, self.free()) && self.tell(memory);
        Some(Released { len, told })
    }

    /// Up to where all is over.
    #[inline(always)]
    fn free(&self) -> Position {
        self.entries.front().map_or(self.next, |first| first.place)
    }

    /// Tells producers of all room that there is. False if they know.
    #[inline(always)]
    pub(crate) fn tell(&mut self, memory: &Memory) -> bool {
        let free = self.free();
        if free == self.oldest {
            return false;
        }
        if let Some(first) = self.entries.front() {
            // The new guard. Nobody else writes there while the old one stands; whoever sees `release` there sees it.
            let ours =
                StateWord { sequence: first.place.sequence, owner: first.owner, stage: SlotState::Peeked };
            memory.slot(first.place.sequence).state.store(ours.pack(), Relaxed);
        }
        self.trespassed |= !advance_release(memory, self.oldest, free);
        self.oldest = free;
        true
    }

    /// Puts aside what producers left that are known to be dead: at most all places before `until`. Never touches
    /// what a living producer owns, or is about to own. How many claims were put aside: at most as many as there are slots, the next call goes on.
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

    /// Whether the claim at a place is one of the dead: owned by one, put aside already, or reserved before `until`
    /// and owned by nobody, or by nobody yet.
    pub(crate) fn may_be_abandoned(
        &self,
        memory: &Memory,
        sequence: u32,
        is_dead: &dyn Fn(u16) -> bool,
        until: u32,
    ) -> bool {
        let state = StateWord::unpack(memory.slot(sequence).state.load(Acquire));
        state.is_some_and(|state| abandonment(memory, sequence, state, is_dead, until) != Abandonment::No)
    }

    /// Marks the slot of a dead claim as poisoned. False if it is not one, or changes all the time.
    fn poison(&self, memory: &Memory, sequence: u32, is_dead: &dyn Fn(u16) -> bool, until: u32) -> bool {
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

    /// How far the poisoned claim at `next` reaches: by its own words if it lived to write them, else up to where the
    /// following one starts. Nothing if the following owner is alive and about to write that.
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
                // Poisoned before it wrote its place, as this one: the last of such a run carries all their extents.
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

/// A consumer that was killed had given back more than it told of: nothing of that comes again. Its guard still stands at
/// `release` then; where none does, evicting producers went on, and what it wrote down is old.
fn publish_for_killed_consumer(memory: &Memory) {
    let control = memory.control();
    let release = Position::unpack(control.release.0.load(Acquire));
    let done = Position::unpack(control.consumer.0.done.load(Acquire));
    let guard = StateWord::unpack(memory.slot(release.sequence).state.load(Acquire));
    let is_guarded =
        guard.is_some_and(|state| state.sequence == release.sequence && state.stage == SlotState::Peeked);
    let is_ahead = (1..=memory.geometry().slots).contains(&done.sequence.wrapping_sub(release.sequence))
        && done.unit.wrapping_sub(release.unit) <= memory.geometry().units();
    if is_guarded && is_ahead {
        advance_release(memory, release, done);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abandonment {
    /// Its owner lives, or it is committed, or over.
    No,
    /// Nobody owns it, and somebody who lives is about to own a place: a few instructions on it is either his or due. To
    /// be asked again, for nobody tells when.
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
        SlotState::Claimed if state.sequence == sequence && is_dead(state.owner) => Abandonment::Due,
        // SYNC POINT with `try_claim`: `until` was read from `reserve` after this place was reserved. So we see its
        // claimer say that it claims, or else that it has done so and the slot as it left it, and what we read there before
        // is not there any more.
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

/// Whether a living producer is between reserving a place and making it its own.
fn is_anybody_claiming(memory: &Memory, is_dead: &dyn Fn(u16) -> bool) -> bool {
    let mut rows = memory.rows().iter().zip(0..);
    rows.any(|(row, owner)| row.claiming.load(Acquire) != 0 && !is_dead(owner))
}
