//! The participant slots of a thread. A freed slot is reused under another key (generational
//! index): a readiness event, timer or answer in flight for the former participant must not reach
//! the next one.

use std::collections::{HashMap, VecDeque};

use super::slot::Slot;

/// Bits of a key that are the index; the upper bits are the generation. That allows a million
/// slots, more than there are descriptors; a key recurs after 4,096 participants in one slot.
const INDEX_BITS: u32 = 20;

/// The slots of a thread: as many as were ever occupied at a time.
#[derive(Default)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    /// Indexes of free entries, the longest free first.
    free: VecDeque<u32>,
    /// Keys of occupied slots, by index of the participant in the run.
    keys: HashMap<u32, u32>,
}

#[derive(Default)]
struct Entry {
    key: u32,
    slot: Option<Box<Slot>>,
}

impl Slots {
    /// How many are occupied.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Puts participant `id` of the run into a slot, which `slot` creates from its key; returns the
    /// key.
    pub(super) fn insert(&mut self, id: u32, slot: impl FnOnce(u32) -> Slot) -> u32 {
        let index = self.free.pop_front().unwrap_or_else(|| {
            let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
            self.entries.push(Entry { key: index, slot: None });
            index
        });
        let Some(entry) = self.entries.get_mut(index as usize) else { return u32::MAX };
        entry.slot = Some(Box::new(slot(entry.key)));
        self.keys.insert(id, entry.key);
        entry.key
    }

    fn index(key: u32) -> usize {
        (key & ((1 << INDEX_BITS) - 1)) as usize
    }

    pub(super) fn get(&self, key: u32) -> Option<&Slot> {
        self.entries.get(Self::index(key)).filter(|entry| entry.key == key)?.slot.as_deref()
    }

    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut Slot> {
        let entry = self.entries.get_mut(Self::index(key)).filter(|entry| entry.key == key)?;
        entry.slot.as_deref_mut()
    }

    /// Frees a slot.
    pub(super) fn remove(&mut self, key: u32) -> Option<Box<Slot>> {
        let entry = self.entries.get_mut(Self::index(key)).filter(|entry| entry.key == key)?;
        let slot = entry.slot.take()?;
        entry.key = key.wrapping_add(1 << INDEX_BITS);
        self.free.push_back(key & ((1 << INDEX_BITS) - 1));
        self.keys.remove(&slot.id());
        Some(slot)
    }

    /// The key of participant `id` of the run, if it has a slot.
    pub(super) fn key_of(&self, id: u32) -> Option<u32> {
        self.keys.get(&id).copied()
    }

    /// The keys of all occupied slots.
    pub(super) fn keys(&self) -> Vec<u32> {
        self.entries.iter().filter(|entry| entry.slot.is_some()).map(|entry| entry.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use throng_observation::RunTime;
    use throng_observation::run::{CohortId, ParticipantId};
    use throng_protocol::participant::{Input, Output, Participant};

    use super::*;
    use crate::config::Join;

    struct Nobody;

    impl Participant for Nobody {
        fn handle(&mut self, _now: Instant, _input: Input<'_>) {}

        fn poll_output(&mut self, now: Instant) -> Output {
            Output::Timeout(now, "nothing")
        }
    }

    fn insert(slots: &mut Slots, id: u32) -> u32 {
        let join = Join {
            participant: ParticipantId(id),
            cohort: CohortId(0),
            place: id,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        };
        slots.insert(id, |key| Slot::new(key, id, Box::new(Nobody), &join, None))
    }

    #[test]
    fn a_day_of_joins_and_leaves_takes_no_more_slots_than_were_occupied_at_a_time() {
        let mut slots = Slots::default();
        let mut present: VecDeque<u32> = (0..10).map(|id| insert(&mut slots, id)).collect();
        for id in 10..100_000 {
            let gone = present.pop_front().unwrap();
            assert_eq!(slots.remove(gone).map(|slot| slot.id()), Some(id - 10));
            // The key of a participant that has left finds nothing.
            present.push_back(insert(&mut slots, id));
            assert!(
                slots.get(gone).is_none()
                    && slots.get_mut(gone).is_none()
                    && slots.remove(gone).is_none()
            );
        }
        assert_eq!((slots.entries.len(), slots.len(), slots.keys().len()), (10, 10, 10));
        assert!(slots.key_of(3).is_none());
        assert_eq!(slots.key_of(99_999).and_then(|key| slots.get(key)).map(Slot::id), Some(99_999));
    }
}
