//! Deadlines of a thread's slots: a heap in which a deadline that moved later keeps its entry,
//! which is checked again when it expires. Participants move their deadlines with every packet, and
//! most never expire.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Deadlines of slots, at most a few entries per slot.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

/// A slot's own part of its deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    /// When it expires, if ever.
    pub(crate) due: Option<Instant>,
    /// The time of its earliest entry in the heap.
    armed: Option<Instant>,
}

impl Timers {
    /// Sets the deadline of `slot` to `due`; `None`: never.
    pub(crate) fn set(&mut self, slot: u32, deadline: &mut Deadline, due: Option<Instant>) {
        deadline.due = due;
        if let Some(due) = due
            && deadline.armed.is_none_or(|armed| due < armed)
        {
            deadline.armed = Some(due);
            self.heap.push(Reverse((due, slot)));
        }
    }

    /// When [`Self::pop`] may next return an entry.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// An expired entry: its time and its slot.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let Reverse(entry) = *self.heap.peek()?;
        if entry.0 > now {
            return None;
        }
        self.heap.pop();
        Some(entry)
    }

    /// Whether the deadline of `slot`, popped with its entry `at`, has expired; if not, adds an
    /// entry for it.
    pub(crate) fn is_due(
        &mut self,
        slot: u32,
        deadline: &mut Deadline,
        at: Instant,
        now: Instant,
    ) -> bool {
        if deadline.armed != Some(at) {
            return false;
        }
        deadline.armed = None;
        match deadline.due {
            Some(due) if due <= now => true,
            due => {
                self.set(slot, deadline, due);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_deadline_fires_once_at_its_latest_setting() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        let fired = |timers: &mut Timers, deadline: &mut Deadline, ms| {
            let mut count = 0;
            while let Some((entry, slot)) = timers.pop(at(ms)) {
                count += u32::from(timers.is_due(slot, deadline, entry, at(ms)));
            }
            count
        };
        timers.set(7, &mut deadline, Some(at(10)));
        timers.set(7, &mut deadline, Some(at(30))); // later: waits for the first entry
        assert_eq!(fired(&mut timers, &mut deadline, 20), 0);
        assert_eq!(timers.next(), Some(at(30)));
        timers.set(7, &mut deadline, Some(at(25))); // earlier: a second entry
        assert_eq!(fired(&mut timers, &mut deadline, 26), 1);
        timers.set(7, &mut deadline, None);
        assert_eq!(fired(&mut timers, &mut deadline, 100), 0);
    }

    #[test]
    fn a_deadline_that_moves_with_every_packet_does_not_grow_the_heap() {
        let start = Instant::now();
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        for ms in 0..10_000 {
            let now = start + Duration::from_millis(ms);
            timers.set(0, &mut deadline, Some(now + Duration::from_millis(100)));
            while let Some((entry, slot)) = timers.pop(now) {
                assert!(!timers.is_due(slot, &mut deadline, entry, now));
            }
            assert!(timers.heap.len() <= 2);
        }
    }
}
