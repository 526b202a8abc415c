//! The segments that a viewer has.

use std::collections::BTreeMap;

use throng_media::timing::WholeSegment;

use super::super::number_set::NumberSet;

/// The segments.
#[derive(Debug, Default)]
pub(super) struct Held {
    segments: BTreeMap<u64, WholeSegment>,
    numbers: NumberSet,
    bytes: u64,
}

impl Held {
    pub(super) fn get(&self, number: u64) -> Option<&WholeSegment> {
        self.segments.get(&number)
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(number)
    }

    /// Which they are.
    pub(super) fn numbers(&self) -> &NumberSet {
        &self.numbers
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of those from this one on.
    pub(super) fn bytes_from(&self, number: u64) -> u64 {
        self.segments.range(number..).map(|(_, segment)| segment.bytes()).sum()
    }

    pub(super) fn insert(&mut self, number: u64, segment: WholeSegment) {
        self.bytes += segment.bytes();
        self.numbers.insert(number);
        if let Some(before) = self.segments.insert(number, segment) {
            self.bytes -= before.bytes();
        }
    }

    pub(super) fn forget_before(&mut self, number: u64) {
        let later = self.segments.split_off(&number);
        let gone = std::mem::replace(&mut self.segments, later);
        self.bytes -= gone.values().map(WholeSegment::bytes).sum::<u64>();
        self.numbers.forget_before(number);
    }

    /// From which one on they are kept, so that with another one of so many bytes there are at most
    /// `count_max` of them with `bytes_max`. Of those from `played_before` on all are kept.
    pub(super) fn fits_from(
        &self,
        bytes: u64,
        (count_max, bytes_max): (usize, u64),
        played_before: u64,
    ) -> u64 {
        let (mut count, mut bytes) = (self.segments.len() + 1, self.bytes.saturating_add(bytes));
        let mut from = 0;
        for (number, segment) in self.segments.range(..played_before) {
            if count <= count_max && bytes <= bytes_max {
                break;
            }
            (count, bytes) = (count - 1, bytes - segment.bytes());
            from = number + 1;
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 0 to 9 of 100 bytes each.
    fn ten() -> Held {
        let mut held = Held::default();
        (0..10).for_each(|number| held.insert(number, WholeSegment::opaque(100)));
        held
    }

    #[test]
    fn what_was_played_first_goes_when_there_is_no_room_and_nothing_else() {
        let held = ten();
        assert_eq!((held.bytes(), held.bytes_from(7)), (1_000, 300));
        for (limits, played_before, from) in [
            ((usize::MAX, u64::MAX), 8, 0),
            ((11, 1_100), 8, 0),
            ((10, u64::MAX), 8, 1),
            ((usize::MAX, 800), 8, 3),
            ((usize::MAX, 800), 2, 2),
            ((1, 1), 0, 0),
        ] {
            assert_eq!(held.fits_from(100, limits, played_before), from, "{limits:?}");
        }
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let mut held = ten();
        held.forget_before(4);
        assert_eq!((held.bytes(), held.has(3), held.has(4)), (600, false, true));
        assert!(held.get(3).is_none() && held.numbers().iter().eq(4..10_u64));
        held.insert(4, WholeSegment::opaque(50));
        assert_eq!(held.bytes(), 550);
    }
}
