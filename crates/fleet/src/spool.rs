//! The batches of a worker that the coordinator has not confirmed yet: a bounded list in memory.
//!
//! When it is full, something is given up, and counted by what it was. First what a later row
//! replaces ([`BatchKind::Interim`]): nothing is missing in the end. Then whole seconds, the oldest
//! first: the merge leaves them out and marks them, and a view of the run wants the newest. Only
//! when nothing else is left, the oldest of what is said once ([`BatchKind::Lasting`]): how
//! participants ended. Of a batch that is given up the number remains, without bytes, so that the
//! coordinator does not wait for it.

use std::collections::VecDeque;

use throng_observation::run::Row;

/// What the rows of a batch are worth: ascending in the order in which batches are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchKind {
    /// A later row replaces each of them: participants that have not ended.
    Interim,
    /// Figures of a second, and its end. Sums of HTTP requests are among them: a later row replaces
    /// them too, but it may never come.
    Second,
    /// Said once: the ends of participants, tracks and players over their lives, changes of layers,
    /// events.
    Lasting,
}

impl BatchKind {
    /// All, in the order in which they are given up.
    pub const ALL: [Self; 3] = [Self::Interim, Self::Second, Self::Lasting];

    /// The kind of batch that a row belongs into.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        match row {
            Row::Participant(row) if row.outcome.is_none() => Self::Interim,
            Row::Crowd(_)
            | Row::Series(_)
            | Row::Sent(_)
            | Row::Playback(_)
            | Row::Chat(_)
            | Row::SecondClosed(_)
            | Row::HttpRequests(_)
            | Row::Generator(_) => Self::Second,
            Row::Participant(_)
            | Row::Track(_)
            | Row::Player(_)
            | Row::LayerSwitch(_)
            | Row::Event(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => Self::Lasting,
        }
    }

    pub(crate) fn to_byte(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_byte() == byte)
    }
}

/// A batch that is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its number: the first of a worker has 0, and none is left out.
    pub number: u64,
    /// What its rows are worth.
    pub kind: BatchKind,
    /// Its bytes; none when it was given up. It is sent all the same.
    pub bytes: Vec<u8>,
}

impl Batch {
    /// What it takes of the bound.
    fn room(&self) -> usize {
        if self.bytes.is_empty() { 0 } else { self.bytes.len() + OVERHEAD }
    }
}

/// What was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Batches.
    pub batches: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The list. Above its bound it takes 8 bytes for each batch that it has, and some 40 for each that
/// was given up: 4 MB after a day without a coordinator, at a batch a second.
#[derive(Clone, Debug, Default)]
pub struct Spool {
    /// Their numbers follow one another.
    batches: VecDeque<Batch>,
    /// The numbers of those that have bytes, of each kind, ascending: without them each batch would
    /// cost a look at all that was given up before.
    kept: [VecDeque<u64>; BatchKind::ALL.len()],
    next: u64,
    bytes: usize,
    bytes_max: usize,
    given_up: [GivenUp; BatchKind::ALL.len()],
}

/// Memory of a batch besides its bytes.
const OVERHEAD: usize = size_of::<Batch>();

impl Spool {
    /// An empty list for at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Adds a batch and returns its number. Older batches, or this one, are given up when it is
    /// full.
    pub fn push(&mut self, kind: BatchKind, bytes: Vec<u8>) -> u64 {
        let number = self.next;
        self.add(kind, bytes);
        number
    }

    /// Adds a batch; how many it looked at to make room.
    fn add(&mut self, kind: BatchKind, bytes: Vec<u8>) -> usize {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        let batch = Batch { number, kind, bytes };
        if let Some(kept) = self.kept.get_mut(kind as usize).filter(|_| !batch.bytes.is_empty()) {
            kept.push_back(number);
        }
        self.bytes += batch.room();
        self.batches.push_back(batch);
        self.make_room()
    }

    /// Forgets all batches below `end`, which the coordinator has taken.
    pub fn confirm(&mut self, end: u64) {
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.number < end) {
            self.bytes = self.bytes.saturating_sub(batch.room());
        }
        for kept in &mut self.kept {
            while kept.pop_front_if(|number| *number < end).is_some() {}
        }
    }

    /// The batches from number `from` on, in order: what to send after a connection was made again.
    /// Those that were given up are among them, without bytes.
    pub fn unsent(&self, from: u64) -> impl Iterator<Item = &Batch> {
        let skipped = self.batches.partition_point(|batch| batch.number < from);
        self.batches.range(skipped..)
    }

    /// The number of the next batch.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What was given up of one kind.
    #[must_use]
    pub fn given_up(&self, kind: BatchKind) -> GivenUp {
        self.given_up.get(kind as usize).copied().unwrap_or_default()
    }

    /// Bytes in use, of the batches and of the list.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether everything was confirmed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Gives up what there is too much of; how many batches it looked at.
    fn make_room(&mut self) -> usize {
        let first = self.batches.front().map_or(self.next, |batch| batch.number);
        let mut looked_at = 0;
        for (kept, given_up) in self.kept.iter_mut().zip(&mut self.given_up) {
            while self.bytes > self.bytes_max
                && let Some(number) = kept.pop_front()
            {
                looked_at += 1;
                let place = usize::try_from(number.saturating_sub(first)).ok();
                let batch = place.and_then(|place| self.batches.get_mut(place));
                let Some(batch) = batch.filter(|batch| batch.number == number) else { continue };
                self.bytes = self.bytes.saturating_sub(batch.room());
                given_up.batches += 1;
                given_up.bytes += std::mem::take(&mut batch.bytes).len() as u64;
            }
        }
        looked_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 4 * (OVERHEAD + 100);

    fn kept(spool: &Spool) -> Vec<u64> {
        spool.unsent(0).filter(|batch| !batch.bytes.is_empty()).map(|batch| batch.number).collect()
    }

    #[test]
    fn batches_are_sent_again_until_they_are_confirmed() {
        let mut spool = Spool::new(ROOM);
        for number in 0..3 {
            assert_eq!(spool.push(BatchKind::Second, vec![1; 10]), number);
        }
        assert_eq!(kept(&spool), [0, 1, 2]);
        assert_eq!(spool.unsent(2).map(|batch| batch.number).collect::<Vec<_>>(), [2]);
        spool.confirm(2);
        assert_eq!((kept(&spool), spool.bytes()), (vec![2], OVERHEAD + 10));
        spool.confirm(2);
        spool.confirm(u64::MAX);
        assert!(spool.is_empty() && spool.bytes() == 0 && spool.next() == 3);
    }

    #[test]
    fn ends_of_participants_are_given_up_after_all_seconds_and_what_is_replaced_before_them() {
        use BatchKind::{Interim, Lasting, Second};
        let mut spool = Spool::new(ROOM);
        for kind in [Lasting, Second, Interim, Second] {
            spool.push(kind, vec![1; 100]);
        }
        assert_eq!(kept(&spool), [0, 1, 2, 3]);
        spool.push(Lasting, vec![1; 100]);
        assert_eq!(kept(&spool), [0, 1, 3, 4]);
        spool.push(Lasting, vec![1; 100]);
        assert_eq!(kept(&spool), [0, 3, 4, 5], "the oldest second first");
        spool.push(Lasting, vec![1; 100]);
        assert_eq!(kept(&spool), [0, 4, 5, 6]);
        spool.push(Lasting, vec![1; 100]);
        assert_eq!(kept(&spool), [4, 5, 6, 7]);
        assert_eq!(spool.bytes(), ROOM);
        assert_eq!(spool.unsent(0).count(), 8, "each number is still sent");
        assert_eq!(spool.given_up(Second), GivenUp { batches: 2, bytes: 200 });
        assert_eq!(spool.given_up(Interim), GivenUp { batches: 1, bytes: 100 });
        assert_eq!(spool.given_up(Lasting), GivenUp { batches: 1, bytes: 100 });
    }

    /// A day without a coordinator: nothing is confirmed, and each batch needs the room of another.
    #[test]
    fn a_full_list_looks_at_each_batch_once() {
        let mut spool = Spool::new(ROOM);
        for count in 1..=1_000 {
            let kind = BatchKind::ALL[count % 3];
            let looked_at = spool.add(kind, vec![1; 100]);
            assert_eq!(looked_at, usize::from(count > 4), "batch {count}");
        }
        // What was confirmed is not looked at, and the next batches have its room.
        spool.confirm(1_000);
        let looked_at = (0..8).map(|_| spool.add(BatchKind::Lasting, vec![1; 100]));
        assert_eq!(looked_at.collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(kept(&spool), [1_004, 1_005, 1_006, 1_007]);
        // One without bytes takes no room.
        assert_eq!(spool.add(BatchKind::Interim, Vec::new()), 0);
    }
}
