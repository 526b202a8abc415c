//! A set of numbers of segments. They mostly follow each other, and of a recording there may be
//! thousands, which a viewer compares with those of all its peers: sets are compared 64 numbers at
//! a time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Numbers of one entry.
const IN_ENTRY: u64 = 64;

/// The numbers: by the place of 64 of them, a bit for each. No entry is without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberSet(BTreeMap<u64, u64>);

impl NumberSet {
    pub(super) fn contains(&self, number: u64) -> bool {
        let (place, bit) = place_of(number);
        self.bits(place) & bit != 0
    }

    pub(super) fn insert(&mut self, number: u64) {
        let (place, bit) = place_of(number);
        *self.0.entry(place).or_default() |= bit;
    }

    pub(super) fn remove(&mut self, number: u64) {
        let (place, bit) = place_of(number);
        let left = self.bits(place) & !bit;
        if left == 0 {
            self.0.remove(&place);
        } else {
            self.0.insert(place, left);
        }
    }

    /// Takes out what is below `number`.
    pub(super) fn forget_before(&mut self, number: u64) {
        let (place, bit) = place_of(number);
        self.0 = self.0.split_off(&place);
        let left = self.bits(place) & !(bit - 1);
        if left == 0 {
            self.0.remove(&place);
        } else {
            self.0.insert(place, left);
        }
    }

    /// Adds those of `other` that are `within`; some of their neighbours may be added too.
    pub(super) fn add(&mut self, other: &Self, within: &RangeInclusive<u64>) {
        if within.is_empty() {
            return;
        }
        let places = place_of(*within.start()).0..=place_of(*within.end()).0;
        for (place, bits) in other.0.range(places) {
            *self.0.entry(*place).or_default() |= bits;
        }
    }

    /// Takes out what `other` does not have.
    pub(super) fn keep_only(&mut self, other: &Self) {
        self.0.retain(|place, bits| {
            *bits &= other.bits(*place);
            *bits != 0
        });
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|(place, bits)| numbers(*place, *bits))
    }

    /// Those that `other` does not have, in order.
    pub(super) fn without(&self, other: &Self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(move |(place, bits)| numbers(*place, bits & !other.bits(*place)))
    }

    fn bits(&self, place: u64) -> u64 {
        self.0.get(&place).copied().unwrap_or(0)
    }
}

impl FromIterator<u64> for NumberSet {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let mut set = Self::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// The entry of a number, and its bit there.
fn place_of(number: u64) -> (u64, u64) {
    (number / IN_ENTRY, 1 << (number % IN_ENTRY))
}

/// The numbers of an entry.
fn numbers(place: u64, bits: u64) -> impl Iterator<Item = u64> {
    let mut left = bits;
    std::iter::from_fn(move || {
        let at = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some(place * IN_ENTRY + u64::from(at))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a set of the standard library says of the same.
    #[test]
    fn it_is_a_set() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let mut draw = || -> BTreeSet<u64> {
                let base = if rng.bool() { 0 } else { u64::MAX - 300 };
                (0..rng.usize(..80)).map(|_| base + rng.u64(..300)).collect()
            };
            let (ours, theirs) = (draw(), draw());
            let [mut set, other] =
                [&ours, &theirs].map(|of| of.iter().copied().collect::<NumberSet>());
            assert!(set.iter().eq(ours.iter().copied()));
            assert!(set.without(&other).eq(ours.difference(&theirs).copied()));
            let mut both = set.clone();
            both.keep_only(&other);
            assert!(both.iter().eq(ours.intersection(&theirs).copied()));
            let mut all = set.clone();
            all.add(&other, &(0..=u64::MAX));
            assert!(all.iter().eq(ours.union(&theirs).copied()));
            let Some(from) = ours.iter().copied().nth(rng.usize(..ours.len().max(1))) else {
                continue;
            };
            set.forget_before(from);
            assert!(set.iter().eq(ours.range(from..).copied()));
            assert!(set.contains(from));
            assert_eq!(set, ours.range(from..).copied().collect::<NumberSet>());
            set.remove(from);
            assert!(!set.contains(from), "{from}");
            assert_eq!(set, ours.range(from..).skip(1).copied().collect::<NumberSet>());
        }
    }

    #[test]
    fn what_is_far_from_a_range_is_not_added() {
        let other: NumberSet = [3, 700, 9_000].into_iter().collect();
        let mut set = NumberSet::default();
        set.add(&other, &(600..=800));
        assert!(set.iter().eq([700_u64]));
        set.add(&other, &RangeInclusive::new(1, 0));
        assert!(set.iter().eq([700_u64]));
    }
}
