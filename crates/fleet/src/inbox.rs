//! The batches of one worker, each once and in order, however often and in whatever order they are
//! delivered.

use std::collections::BTreeMap;

/// Batches of a worker that arrived. They are numbered from 0 by the worker.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// The number of the next batch to hand on.
    next: u64,
    /// Batches after it, by number; an empty one was given up by the worker.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    bytes_max: usize,
    duplicates: u64,
    given_up: u64,
}

/// What became of a batch that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is kept until those before it have come.
    Taken,
    /// It came before; it was dropped and counted.
    Duplicate,
    /// There is no room until those before it have come: it was not taken, and must be delivered
    /// again.
    NoRoom,
}

/// Most batches that wait for an earlier one.
const EARLY_MAX: usize = 65_536;

impl Inbox {
    /// An inbox that keeps at most `bytes_max` bytes of batches that came before their turn.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Takes batch `number`; without bytes it is one that the worker gave up. The one whose turn it
    /// is always has room.
    pub fn take(&mut self, number: u64, bytes: Vec<u8>) -> Arrival {
        if number < self.next || self.early.contains_key(&number) {
            self.duplicates = self.duplicates.saturating_add(1);
            return Arrival::Duplicate;
        }
        let is_full = self.early_bytes.saturating_add(bytes.len()) > self.bytes_max
            || self.early.len() >= EARLY_MAX;
        if number > self.next && is_full {
            return Arrival::NoRoom;
        }
        self.early_bytes = self.early_bytes.saturating_add(bytes.len());
        self.early.insert(number, bytes);
        Arrival::Taken
    }

    /// The next batch in order, once it is there: its number and bytes. Batches that were given up
    /// are passed over.
    pub fn pop(&mut self) -> Option<(u64, Vec<u8>)> {
        loop {
            let number = self.next;
            let bytes = self.early.remove(&number)?;
            self.early_bytes = self.early_bytes.saturating_sub(bytes.len());
            self.next = number.saturating_add(1);
            if !bytes.is_empty() {
                return Some((number, bytes));
            }
            self.given_up = self.given_up.saturating_add(1);
        }
    }

    /// All batches below this number were handed on: what the worker may forget.
    #[must_use]
    pub fn confirmed(&self) -> u64 {
        self.next
    }

    /// Batches that came more than once.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Batches that the worker gave up because its spool was full: their rows are missing from the
    /// run.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Batches that wait for an earlier one.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.early.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn batches_come_once_and_in_order(deliveries in prop::collection::vec(0..20_u64, 0..200)) {
            let mut inbox = Inbox::new(usize::MAX);
            let mut out = Vec::new();
            for number in deliveries.into_iter().chain(0..20) {
                inbox.take(number, vec![number as u8 + 1]);
                while let Some((number, bytes)) = inbox.pop() {
                    prop_assert_eq!(bytes, vec![number as u8 + 1]);
                    out.push(number);
                }
                prop_assert_eq!(inbox.confirmed(), out.len() as u64);
            }
            prop_assert_eq!(out, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_comes_too_early_has_a_bound_and_the_next_one_always_fits() {
        let mut inbox = Inbox::new(10);
        assert_eq!(inbox.take(3, vec![0; 6]), Arrival::Taken);
        assert_eq!(inbox.take(2, vec![0; 6]), Arrival::NoRoom);
        assert_eq!(inbox.take(u64::MAX, vec![0; 4]), Arrival::Taken);
        assert_eq!(inbox.take(0, vec![0; 60]), Arrival::Taken);
        assert_eq!(inbox.take(0, vec![0; 60]), Arrival::Duplicate);
        assert_eq!(inbox.pop().map(|(number, _)| number), Some(0));
        assert_eq!(inbox.pop(), None);
        assert_eq!((inbox.waiting(), inbox.duplicates()), (2, 1));
    }

    #[test]
    fn what_the_worker_gave_up_is_passed_over_and_counted() {
        let mut inbox = Inbox::new(10);
        inbox.take(1, vec![7]);
        assert_eq!(inbox.pop(), None);
        inbox.take(0, Vec::new());
        assert_eq!(inbox.pop(), Some((1, vec![7])));
        assert_eq!((inbox.given_up(), inbox.confirmed()), (1, 2));
    }
}
