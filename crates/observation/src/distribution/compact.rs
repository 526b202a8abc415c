//! The form in which distributions travel between machines, some bytes a cell: exact, and no larger
//! in memory than what was read allows.
//!
//! Nothing for an empty one, or a byte for the form, then numbers in base 128 with the lowest bits
//! first (LEB128):
//! - *list*: for each cell the distance of its number from the one before, and its count.
//! - *histogram*: the count of each cell from number 0 on, zeros included. A histogram in memory
//!   has a count for each cell up to its largest value. A few bytes that stand for it would let a
//!   hostile sender multiply its bytes by thousands; so the zeros are written out, and are what
//!   deflate takes away.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CELLS_MAX, Cell, Distribution, Samples, add, lay_out, lowest_of, number_of};

const LIST: u8 = 0;
const HISTOGRAM: u8 = 1;

/// The number of the cell of the largest value.
const NUMBER_MAX: u32 = (56 << 7) + 255;

/// Why bytes are not a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum CompactError {
    #[error("form {0} of a distribution is not known")]
    Form(u8),
    #[error("the distribution ends within a number, or has one of more than 32 bits")]
    Number,
    #[error("the list of a distribution has a cell, a count or a length that no list has")]
    List,
    #[error("the distribution has more cells than there are values")]
    TooLong,
}

impl Distribution {
    /// Calls `take` with number and count of each cell that has samples, ascending.
    pub(super) fn each_cell(&self, mut take: impl FnMut(u32, u32)) {
        match self.0.as_deref() {
            None => {}
            Some(Samples { cells, histogram: None }) => {
                cells.iter().for_each(|cell| take(cell.number(), cell.count()));
            }
            Some(Samples { histogram: Some(histogram), .. }) => histogram
                .iter_recorded()
                .for_each(|seen| take(number_of(seen.value_iterated_to()), seen.count_at_value())),
        }
    }

    fn to_compact(&self) -> Vec<u8> {
        let (mut cells, mut is_list) = (0, true);
        self.each_cell(|number, count| {
            cells += 1;
            is_list &= Cell::new_listed(number, count).is_some();
        });
        let is_list = is_list && cells <= CELLS_MAX;
        if cells == 0 {
            return Vec::new();
        }
        let mut bytes = vec![if is_list { LIST } else { HISTOGRAM }];
        let mut next = 0;
        self.each_cell(|number, count| {
            if is_list {
                put(&mut bytes, number - next);
            } else {
                bytes.extend((next..number).map(|_| 0));
            }
            put(&mut bytes, count);
            next = number + 1;
        });
        bytes
    }

    fn from_compact(bytes: &[u8]) -> Result<Self, CompactError> {
        match bytes.split_first() {
            None => Ok(Self::new()),
            Some((&LIST, cells)) => list(cells),
            Some((&HISTOGRAM, counts)) => histogram(counts),
            Some((form, _)) => Err(CompactError::Form(*form)),
        }
    }
}

fn list(mut bytes: &[u8]) -> Result<Distribution, CompactError> {
    let (mut cells, mut next) = (Vec::new(), 0_u32);
    while !bytes.is_empty() {
        let number = next.checked_add(get(&mut bytes)?).ok_or(CompactError::List)?;
        let cell = Cell::new_listed(number, get(&mut bytes)?).ok_or(CompactError::List)?;
        if cells.len() == CELLS_MAX {
            return Err(CompactError::List);
        }
        cells.push(cell);
        next = number + 1;
    }
    cells.shrink_to_fit();
    Ok(Distribution(Some(Box::new(Samples { cells, histogram: None }))))
}

fn histogram(mut bytes: &[u8]) -> Result<Distribution, CompactError> {
    let (mut histogram, mut number) = (lay_out(&[]), 0);
    while !bytes.is_empty() {
        let count = get(&mut bytes)?;
        if number > NUMBER_MAX {
            return Err(CompactError::TooLong);
        }
        if count > 0 {
            add(&mut histogram, lowest_of(number), count);
        }
        number += 1;
    }
    Ok(Distribution::of(histogram))
}

fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn get(bytes: &mut &[u8]) -> Result<u32, CompactError> {
    let mut number = 0_u64;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first().ok_or(CompactError::Number)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return u32::try_from(number).map_err(|_| CompactError::Number);
        }
    }
    Err(CompactError::Number)
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_compact())
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Compact;

        impl Visitor<'_> for Compact {
            type Value = Distribution;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the compact form of a distribution")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Distribution, E> {
                Distribution::from_compact(bytes).map_err(E::custom)
            }
        }

        deserializer.deserialize_bytes(Compact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all magnitudes, mixed.
    fn mixed(samples: u32) -> Distribution {
        let mut d = Distribution::new();
        for n in 0..samples {
            d.record(u64::from(n.wrapping_mul(2_654_435_761)) << (n % 33) >> (n % 29));
        }
        d
    }

    #[test]
    fn a_distribution_comes_back_with_all_its_quantiles_and_merges_alike() {
        let mut huge = Distribution::new();
        huge.record_many(u64::MAX, 3);
        huge.record_many(7, u32::MAX);
        let mut cleared = mixed(5_000);
        cleared.clear();
        let small = (0..40).map(|samples| mixed(samples * samples * 5));
        for d in small.chain([huge, cleared, mixed(100_000)]) {
            let bytes = d.to_compact();
            let back = Distribution::from_compact(&bytes).unwrap();
            assert_eq!(back.to_compact(), bytes);
            assert_eq!(
                (back.count(), back.mean(), back.quantiles(1.0)),
                (d.count(), d.mean(), d.quantiles(1.0))
            );
            for quantile in (0..=100).map(|n| f64::from(n) / 100.0) {
                assert_eq!(back.quantile(quantile), d.quantile(quantile));
            }
            let (mut here, mut there) = (mixed(700), mixed(700));
            here.merge(&d);
            there.merge(&back);
            assert_eq!(here.to_compact(), there.to_compact());
        }
    }

    #[test]
    fn a_list_takes_two_or_three_bytes_a_cell() {
        let mut d = Distribution::new();
        (0..100).for_each(|n| d.record(20_000 + 1_000 * n));
        let mut cells = 0;
        d.each_cell(|_, _| cells += 1);
        assert!(d.to_compact().len() <= 3 + 2 * cells, "{} bytes", d.to_compact().len());
        assert!(Distribution::new().to_compact().is_empty());
    }

    #[test]
    fn bytes_that_are_no_distribution_are_refused() {
        let long = [vec![HISTOGRAM], vec![1; NUMBER_MAX as usize + 2]].concat();
        for (bytes, why) in [
            (&[9][..], CompactError::Form(9)),
            (&[LIST, 5], CompactError::Number),
            (&[LIST, 0x80], CompactError::Number),
            (&[LIST, 1, 0xff, 0xff, 0xff, 0xff, 0x7f], CompactError::Number),
            (&[LIST, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 1], CompactError::Number),
            (&[LIST, 1, 0], CompactError::List),
            (&[LIST, 0xff, 0xff, 0xff, 0xff, 0x0f, 1], CompactError::List),
            (&[LIST, 1, 0xff, 0xff, 0x7f], CompactError::List),
            (&long, CompactError::TooLong),
        ] {
            assert_eq!(Distribution::from_compact(bytes).err(), Some(why), "{bytes:?}");
        }
        let cells = [vec![LIST], [0, 1].repeat(CELLS_MAX + 1)].concat();
        assert_eq!(Distribution::from_compact(&cells).err(), Some(CompactError::List));
    }
}
