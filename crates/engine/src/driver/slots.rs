//! Who sits where on a thread. A slot that was left is given to somebody else, under another number: what is still under way
//! to who sat there (a readiness event, a timer, an answer) must not find who sits there now.

use std::collections::{HashMap, VecDeque};

use super::slot::Slot;

/// Bits of a number that say which place it is; the ones above count who sat there. A thread has a million places, more than
/// there are descriptors, and a number comes again after 4,096 visits to one place.
const PLACE_BITS: u32 = 20;

/// The slots of a thread: as many places as were ever taken at a time.
#[derive(Default)]
pub(super) struct Slots {
    places: Vec<Place>,
    /// Places that were left, the longest first.
    left: VecDeque<u32>,
    /// The number under which a participant of the run sits, while it does.
    numbers: HashMap<u32, u32>,
}

#[derive(Default)]
struct Place {
    number: u32,
    slot: Option<Box<Slot>>,
}

impl Slots {
    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.numbers.len()
    }

    /// Slots participant `who` of the run; `slot` is told the number.
    pub(super) fn take(&mut self, who: u32, slot: impl FnOnce(u32) -> Slot) -> u32 {
        let place = self.left.pop_front().unwrap_or_else(|| {
            let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
            self.places.push(Place { number: place, slot: None });
            place
        });
        let Some(taken) = self.places.get_mut(place as usize) else { return u32::MAX };
        taken.slot = Some(Box::new(slot(taken.number)));
        self.numbers.insert(who, taken.number);
        taken.number
    }

    fn place(number: u32) -> usize {
        (number & ((1 << PLACE_BITS) - 1)) as usize
    }

    /// Who sits under that number.
    pub(super) fn get(&self, number: u32) -> Option<&Slot> {
        self.places.get(Self::place(number)).filter(|place| place.number == number)?.slot.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Slot> {
        let place = self.places.get_mut(Self::place(number)).filter(|place| place.number == number)?;
        place.slot.as_deref_mut()
    }

    /// Clears a slot.
    pub(super) fn clear(&mut self, number: u32) -> Option<Box<Slot>> {
        let place = self.places.get_mut(Self::place(number)).filter(|place| place.number == number)?;
        let slot = place.slot.take()?;
        place.number = number.wrapping_add(1 << PLACE_BITS);
        self.left.push_back(number & ((1 << PLACE_BITS) - 1));
        self.numbers.remove(&slot.who());
        Some(slot)
    }

    /// Under which number participant `who` of the run sits, if it does.
    pub(super) fn number_of(&self, who: u32) -> Option<u32> {
        self.numbers.get(&who).copied()
    }

    /// All numbers that are taken.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.places.iter().filter(|place| place.slot.is_some()).map(|place| place.number).collect()
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

    fn sit(slots: &mut Slots, who: u32) -> u32 {
        let join = Join {
            participant: ParticipantId(who),
            cohort: CohortId(0),
            place: who,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        };
        slots.take(who, |number| Slot::new(number, who, Box::new(Nobody), &join, None))
    }

    #[test]
    fn a_day_of_comers_and_goers_takes_no_more_places_than_were_there_at_a_time() {
        let mut slots = Slots::default();
        let mut there: VecDeque<u32> = (0..10).map(|who| sit(&mut slots, who)).collect();
        for who in 10..100_000 {
            let gone = there.pop_front().unwrap();
            assert_eq!(slots.clear(gone).map(|slot| slot.who()), Some(who - 10));
            // What comes late for who has gone finds nobody.
            there.push_back(sit(&mut slots, who));
            assert!(
                slots.get(gone).is_none() && slots.get_mut(gone).is_none() && slots.clear(gone).is_none()
            );
        }
        assert_eq!((slots.places.len(), slots.taken(), slots.numbers().len()), (10, 10, 10));
        assert!(slots.number_of(3).is_none());
        assert_eq!(slots.number_of(99_999).and_then(|number| slots.get(number)).map(Slot::who), Some(99_999));
    }
}
