//! Sequence numbers: received, duplicate, reordered, late and lost packets. RFC 3550 A.1 (wrap,
//! restart) and A.3 (loss), RFC 4737 (reordering).
//!
//! Numbers are extended past their wrap. A window of the last numbers records which arrived. A hole
//! is *pending* when a later packet shows it, and *lost* when it is still open after the patience
//! (see [`SequenceMeter::new`]; 200 ms with retransmission, 100 ms without, set in `track.rs`).
//! Then, at every moment, `expected = unique arrivals + pending + lost`. A packet that arrives
//! after it was counted lost cancels its loss, so that the sum over a life is the final loss. Holes
//! where a sender may have moved on to other numbers are *excused*: none of them is lost, so that
//! one that arrives later cancels nothing.

use std::collections::VecDeque;

use crate::prefetch::Prefetcher;

/// RFC 3550 A.1: a jump forward of this much or more is a candidate for a restarted source.
const MAX_DROPOUT: i64 = 3000;

/// RFC 3550 A.1: how far behind the highest number a packet may be that is before all known ones.
const MAX_MISORDER: i64 = 100;

/// The result for a packet's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Higher than all before it.
    Next(i64),
    /// It fills a pending hole.
    Filled(i64),
    /// It fills a hole that was counted lost; the loss is cancelled.
    Late(i64),
    /// It had arrived before.
    Duplicate,
    /// Too far from the others to belong to them. If the next packet follows it, the source has
    /// restarted.
    Probation,
    /// It follows a packet in probation: the source has restarted and both packets have to be
    /// passed again.
    Restarted,
}

/// A range of numbers that a later packet showed to be missing.
#[derive(Clone, Copy, Debug)]
struct Hole {
    first: i64,
    length: u16,
    /// How many of them are still missing.
    missing: u16,
    seen_ms: u32,
}

/// Numbers of one stream.
#[derive(Debug)]
pub struct SequenceMeter {
    patience_ms: u32,
    arrived: Box<[u64]>,
    holes: VecDeque<Hole>,
    holes_max: usize,
    /// Lowest and highest extended numbers since the source began; `None` before the first packet.
    range: Option<(i64, i64)>,
    /// A packet with this number would prove a restart.
    restart_at: Option<u16>,
    /// Holes that showed before this time are excused.
    excused_below_ms: u32,
    /// The number after the last excused hole that was given up.
    excused_end: i64,
    lost: i64,
    lost_taken: i64,
    arrivals: u64,
}

impl SequenceMeter {
    /// Keeps `window` numbers (rounded up to a power of two, at least 128) and `holes_max` ranges
    /// of missing ones; counts a missing packet lost `patience_ms` after a later one arrived. The
    /// oldest holes are counted lost at once when either memory is full.
    #[must_use]
    pub fn new(window: usize, holes_max: usize, patience_ms: u32) -> Self {
        // A hole's length is 16 bits wide.
        let window = window.clamp(128, 1 << 15).next_power_of_two();
        Self {
            patience_ms,
            arrived: vec![0; window / 64].into(),
            holes: VecDeque::new(),
            holes_max: holes_max.max(1),
            range: None,
            restart_at: None,
            excused_below_ms: 0,
            excused_end: i64::MIN,
            lost: 0,
            lost_taken: 0,
            arrivals: 0,
        }
    }

    /// A packet arrived; `again` is whether it is known to be a retransmission.
    ///
    /// A retransmission from outside the window, or from before the first packet (senders probe the
    /// path with them), shows nothing about the source and counts as a duplicate.
    pub fn packet(&mut self, sequence: u16, again: bool, now_ms: u32) -> Arrival {
        let Some((lowest, highest)) = self.range else {
            let first = i64::from(sequence);
            self.range = Some((first, first));
            self.mark(first);
            return Arrival::Next(first);
        };
        let step = step(highest, sequence);
        let number = highest + step;
        if step > 0 && step < MAX_DROPOUT {
            self.restart_at = None;
            self.advance(highest, number, now_ms);
            self.range = Some((lowest, number));
            self.mark(number);
            return Arrival::Next(number);
        }
        if again && (step > 0 || number <= highest - self.window() || number < lowest) {
            return Arrival::Duplicate;
        }
        if step > 0
            || number <= highest - self.window()
            || (number < lowest && step < -MAX_MISORDER)
        {
            return self.suspect(sequence);
        }
        if number < lowest {
            self.range = Some((number, highest));
            self.extend_down(number, lowest, now_ms);
        } else if self.has(number) {
            return Arrival::Duplicate;
        }
        self.mark(number);
        self.fill(number)
    }

    /// Whether a packet with this number is too far from the highest to go on from those so far,
    /// whatever a path loses or reorders of a few.
    #[must_use]
    pub fn is_far(&self, sequence: u16) -> bool {
        self.range.is_some_and(|(_, highest)| step(highest, sequence).abs() > MAX_MISORDER)
    }

    /// Whether a packet with this number came before, or is before the first: a path may have sent
    /// it twice or reordered it, or the sender begins anew.
    #[must_use]
    pub fn is_behind(&self, sequence: u16) -> bool {
        self.range.is_some_and(|(lowest, highest)| {
            let number = highest + step(highest, sequence);
            number <= highest && (number < lowest || self.has(number))
        })
    }

    /// Holes that show before `below_ms` are excused, those that are open now too.
    pub fn excuse_below(&mut self, below_ms: u32) {
        self.excused_below_ms = below_ms;
    }

    /// Where the next packet will be marked.
    pub(super) fn prefetch(&self, prefetcher: &mut Prefetcher<'_>) {
        let highest = self.range.map_or(0, |(_, highest)| highest);
        let (word, _) = self.slot(highest);
        if let Some(word) = self.arrived.get(word) {
            prefetcher.value(word);
        }
    }

    /// Counts packets lost that have been missing for too long.
    pub fn timeout(&mut self, now_ms: u32) {
        while self
            .holes
            .front()
            .is_some_and(|hole| now_ms >= hole.seen_ms.saturating_add(self.patience_ms))
        {
            self.give_up_first();
        }
    }

    /// When [`Self::timeout`] has something to do.
    #[must_use]
    pub fn next_timeout_ms(&self) -> Option<u32> {
        self.holes.front().map(|hole| hole.seen_ms.saturating_add(self.patience_ms))
    }

    /// Counts all packets lost that are missing now.
    pub fn give_up_all(&mut self) {
        while !self.holes.is_empty() {
            self.give_up_first();
        }
    }

    /// The source restarts: missing packets are lost, the next packet is the first.
    pub fn restart(&mut self) {
        self.give_up_all();
        self.range = None;
        self.restart_at = None;
        self.excused_end = i64::MIN;
        self.arrived.fill(0);
    }

    /// All numbers below this one have arrived or are lost.
    #[must_use]
    pub fn resolved_below(&self) -> i64 {
        self.holes
            .front()
            .map_or(self.range.map_or(0, |(_, highest)| highest + 1), |hole| hole.first)
    }

    /// Unique packets that arrived, over all sources.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Packets lost so far, over all sources.
    #[must_use]
    pub fn lost(&self) -> i64 {
        self.lost
    }

    /// Change of [`Self::lost`] since the previous call.
    pub fn take_lost(&mut self) -> i64 {
        let change = self.lost - self.lost_taken;
        self.lost_taken = self.lost;
        change
    }

    /// Number of packets missing directly before `number`, the highest one.
    #[must_use]
    pub fn missing_before(&self, number: i64) -> i64 {
        let last = self.holes.back();
        last.filter(|hole| hole.first + i64::from(hole.length) == number)
            .map_or(0, |hole| i64::from(hole.length))
    }

    /// Lowest and highest extended number since the source began.
    #[must_use]
    pub fn range(&self) -> Option<(i64, i64)> {
        self.range
    }

    /// Most memory outside of this struct, bytes.
    #[cfg(test)]
    pub(super) fn memory_max(&self) -> usize {
        self.arrived.len() * 8 + self.holes_max * size_of::<Hole>()
    }

    fn window(&self) -> i64 {
        self.arrived.len() as i64 * 64
    }

    fn suspect(&mut self, sequence: u16) -> Arrival {
        if self.restart_at == Some(sequence) {
            return Arrival::Restarted;
        }
        self.restart_at = Some(sequence.wrapping_add(1));
        Arrival::Probation
    }

    /// Extends the range up to `number`, with a hole between.
    fn advance(&mut self, highest: i64, number: i64, now_ms: u32) {
        let oldest_kept = number - self.window() + 1;
        while self.holes.front().is_some_and(|hole| hole.first < oldest_kept) {
            self.give_up_first();
        }
        for n in (highest + 1).max(oldest_kept)..=number {
            self.clear(n);
        }
        let first = (highest + 1).max(oldest_kept);
        // Outside of the window: their arrival could not be recognised.
        self.lost += first - (highest + 1);
        self.open(first, number, now_ms);
    }

    fn open(&mut self, first: i64, end: i64, now_ms: u32) {
        let Ok(length @ 1..) = u16::try_from(end - first) else { return };
        if self.holes.len() >= self.holes_max {
            self.give_up_first();
        }
        self.holes.push_back(Hole { first, length, missing: length, seen_ms: now_ms });
    }

    /// A packet from before the first known one arrived: those between are missing. This happens
    /// only within the first numbers of a source, when the window has unused places for them.
    fn extend_down(&mut self, number: i64, lowest: i64, now_ms: u32) {
        for n in number..lowest {
            self.clear(n);
        }
        let length = (lowest - number) as u16;
        // `number` itself is filled by the caller.
        if self.holes.len() < self.holes_max {
            self.holes.push_front(Hole { first: number, length, missing: length, seen_ms: now_ms });
        } else {
            self.lost += i64::from(length);
        }
    }

    fn fill(&mut self, number: i64) -> Arrival {
        let hole = self
            .holes
            .iter_mut()
            .find(|h| (h.first..h.first + i64::from(h.length)).contains(&number));
        let Some(hole) = hole else {
            self.lost -= i64::from(number >= self.excused_end);
            return Arrival::Late(number);
        };
        hole.missing = hole.missing.saturating_sub(1);
        while self.holes.front().is_some_and(|hole| hole.missing == 0) {
            self.holes.pop_front();
        }
        Arrival::Filled(number)
    }

    fn give_up_first(&mut self) {
        let Some(hole) = self.holes.pop_front() else { return };
        if hole.seen_ms >= self.excused_below_ms {
            self.lost += i64::from(hole.missing);
        } else {
            self.excused_end = self.excused_end.max(hole.first + i64::from(hole.length));
        }
        while self.holes.front().is_some_and(|hole| hole.missing == 0) {
            self.holes.pop_front();
        }
    }

    fn slot(&self, number: i64) -> (usize, u64) {
        let bit = (number & (self.window() - 1)) as usize;
        (bit / 64, 1 << (bit % 64))
    }

    fn has(&self, number: i64) -> bool {
        let (word, bit) = self.slot(number);
        self.arrived.get(word).is_some_and(|w| w & bit != 0)
    }

    fn mark(&mut self, number: i64) {
        let (word, bit) = self.slot(number);
        if let Some(w) = self.arrived.get_mut(word) {
            *w |= bit;
        }
        self.arrivals += 1;
    }

    fn clear(&mut self, number: i64) {
        let (word, bit) = self.slot(number);
        if let Some(w) = self.arrived.get_mut(word) {
            *w &= !bit;
        }
    }
}

/// How far above the highest number this one is; negative below it.
fn step(highest: i64, sequence: u16) -> i64 {
    i64::from(sequence.wrapping_sub(highest as u16).cast_signed())
}

#[cfg(test)]
#[path = "sequence_tests.rs"]
mod tests;
