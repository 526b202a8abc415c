//! Who sits where on a worker. A seat that was left is given to somebody else, under another number: what is still under way
//! to who sat there (a readiness event, a timer, an answer) must not find who sits there now.

use std::collections::{HashMap, VecDeque};

use super::seat::Seat;

/// Bits of a number that say which place it is; the ones above count who sat there. A worker has a million places, more than
/// there are descriptors, and a number comes again after 4,096 visits to one place.
const PLACE_BITS: u32 = 20;

/// The seats of a worker: as many places as were ever taken at a time.
#[derive(Default)]
pub(super) struct Seats {
    places: Vec<Place>,
    /// Places that were left, the longest first.
    left: VecDeque<u32>,
    /// The number under which a participant of the run sits, while it does.
    numbers: HashMap<u32, u32>,
}

#[derive(Default)]
struct Place {
    number: u32,
    seat: Option<Box<Seat>>,
}

impl Seats {
    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.numbers.len()
    }

    /// Seats participant `who` of the run; `seat` is told the number.
    pub(super) fn take(&mut self, who: u32, seat: impl FnOnce(u32) -> Seat) -> u32 {
        let place = self.left.pop_front().unwrap_or_else(|| {
            let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
            self.places.push(Place { number: place, seat: None });
            place
        });
        let Some(taken) = self.places.get_mut(place as usize) else { return u32::MAX };
        taken.seat = Some(Box::new(seat(taken.number)));
        self.numbers.insert(who, taken.number);
        taken.number
    }

    fn place(number: u32) -> usize {
        (number & ((1 << PLACE_BITS) - 1)) as usize
    }

    /// Who sits under that number.
    pub(super) fn get(&self, number: u32) -> Option<&Seat> {
        self.places.get(Self::place(number)).filter(|place| place.number == number)?.seat.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Seat> {
        let place = self.places.get_mut(Self::place(number)).filter(|place| place.number == number)?;
        place.seat.as_deref_mut()
    }

    /// Clears a seat.
    pub(super) fn clear(&mut self, number: u32) -> Option<Box<Seat>> {
        let place = self.places.get_mut(Self::place(number)).filter(|place| place.number == number)?;
        let seat = place.seat.take()?;
        place.number = number.wrapping_add(1 << PLACE_BITS);
        self.left.push_back(number & ((1 << PLACE_BITS) - 1));
        self.numbers.remove(&seat.who());
        Some(seat)
    }

    /// Under which number participant `who` of the run sits, if it does.
    pub(super) fn number_of(&self, who: u32) -> Option<u32> {
        self.numbers.get(&who).copied()
    }

    /// All numbers that are taken.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.places.iter().filter(|place| place.seat.is_some()).map(|place| place.number).collect()
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

    fn sit(seats: &mut Seats, who: u32) -> u32 {
        let join = Join {
            participant: ParticipantId(who),
            cohort: CohortId(0),
            place: who,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        };
        seats.take(who, |number| Seat::new(number, who, Box::new(Nobody), &join, None))
    }

    #[test]
    fn a_day_of_comers_and_goers_takes_no_more_places_than_were_there_at_a_time() {
        let mut seats = Seats::default();
        let mut there: VecDeque<u32> = (0..10).map(|who| sit(&mut seats, who)).collect();
        for who in 10..100_000 {
            let gone = there.pop_front().unwrap();
            assert_eq!(seats.clear(gone).map(|seat| seat.who()), Some(who - 10));
            // What comes late for who has gone finds nobody.
            there.push_back(sit(&mut seats, who));
            assert!(
                seats.get(gone).is_none() && seats.get_mut(gone).is_none() && seats.clear(gone).is_none()
            );
        }
        assert_eq!((seats.places.len(), seats.taken(), seats.numbers().len()), (10, 10, 10));
        assert!(seats.number_of(3).is_none());
        assert_eq!(seats.number_of(99_999).and_then(|number| seats.get(number)).map(Seat::who), Some(99_999));
    }
}
