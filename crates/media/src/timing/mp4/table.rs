//! The tables of a track (ISO/IEC 14496-12 sections 8.6 and 8.7), read where they are: nothing is
//! unpacked, so that the index of a film takes as much memory as in the file, and a hostile count
//! allocates nothing.

use std::ops::Range;

use super::boxes::BoxError;
use crate::octets::{u16_at, u32_at, u64_at};

/// Version and flags, then the number of entries.
const HEADER_LEN: usize = 8;

/// Entries of one width in a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    at: usize,
    width: usize,
    pub(super) count: u32,
}

impl Table {
    /// The table in a box with these contents: a count, then entries of `width` bytes.
    pub(super) fn read(
        bytes: &[u8],
        kind: &[u8; 4],
        body: &Range<usize>,
        width: usize,
    ) -> Result<Self, BoxError> {
        let at = body.start;
        let count = body.len().checked_sub(HEADER_LEN).and_then(|_| u32_at(bytes, at + 4));
        let count = count.ok_or_else(|| BoxError::new(kind, at, "ends inside its header"))?;
        Self { at: at + HEADER_LEN, width, count }.checked(kind, body)
    }

    /// Entries that are not preceded by their number alone; to be checked.
    pub(super) fn at_offset(at: usize, width: usize, count: u32) -> Self {
        Self { at, width, count }
    }

    /// The table, when it fits into the box.
    pub(super) fn checked(self, kind: &[u8; 4], body: &Range<usize>) -> Result<Self, BoxError> {
        let room = body.end.saturating_sub(self.at) / self.width;
        if u64::from(self.count) > room as u64 {
            let problem = format!("announces {} entries and has room for {room}", self.count);
            return Err(BoxError::new(kind, body.start, problem));
        }
        Ok(self)
    }

    /// Where its box's contents begin, for errors.
    pub(super) fn at(&self) -> usize {
        self.at.saturating_sub(HEADER_LEN)
    }

    /// The 32 bits at `field` in entry `index`.
    #[inline]
    pub(super) fn u32(&self, bytes: &[u8], index: u32, field: usize) -> Option<u32> {
        u32_at(bytes, self.entry(index)? + field)
    }

    /// The 64 bits of entry `index`.
    #[inline]
    pub(super) fn u64(&self, bytes: &[u8], index: u32) -> Option<u64> {
        u64_at(bytes, self.entry(index)?)
    }

    #[inline]
    fn entry(&self, index: u32) -> Option<usize> {
        (index < self.count).then(|| self.at + index as usize * self.width)
    }
}

/// The sizes of the samples (`stsz`, `stz2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// All have the same.
    Same { size: u32, count: u32 },
    /// 32 bits each.
    Wide(Table),
    /// 16, 8 or 4 bits each.
    Narrow { bits: u8, at: usize, count: u32 },
}

impl Default for Sizes {
    fn default() -> Self {
        Self::Same { size: 0, count: 0 }
    }
}

impl Sizes {
    /// Reads the contents of an `stsz` box.
    pub(super) fn stsz(bytes: &[u8], body: &Range<usize>) -> Result<Self, BoxError> {
        let at = body.start;
        let cut = || BoxError::new(b"stsz", at, "ends inside its header");
        if body.len() < 12 {
            return Err(cut());
        }
        let (size, count) =
            (u32_at(bytes, at + 4).ok_or_else(cut)?, u32_at(bytes, at + 8).ok_or_else(cut)?);
        if size > 0 {
            return Ok(Self::Same { size, count });
        }
        Table { at: at + 12, width: 4, count }.checked(b"stsz", body).map(Self::Wide)
    }

    /// Reads the contents of an `stz2` box.
    pub(super) fn stz2(bytes: &[u8], body: &Range<usize>) -> Result<Self, BoxError> {
        let at = body.start;
        let cut = || BoxError::new(b"stz2", at, "ends inside its header");
        if body.len() < 12 {
            return Err(cut());
        }
        let bits = *bytes.get(at + 7).ok_or_else(cut)?;
        let count = u32_at(bytes, at + 8).ok_or_else(cut)?;
        if !matches!(bits, 4 | 8 | 16) {
            return Err(BoxError::new(b"stz2", at, format!("has sizes of {bits} bits")));
        }
        let needed = (u64::from(count) * u64::from(bits)).div_ceil(8);
        if needed > (body.len() - 12) as u64 {
            return Err(BoxError::new(
                b"stz2",
                at,
                format!("announces {count} entries and is too short"),
            ));
        }
        Ok(Self::Narrow { bits, at: at + 12, count })
    }

    pub(super) fn count(&self) -> u32 {
        match self {
            Self::Same { count, .. } | Self::Narrow { count, .. } => *count,
            Self::Wide(table) => table.count,
        }
    }

    /// The size of sample `index`, bytes.
    #[inline]
    pub(super) fn get(&self, bytes: &[u8], index: u32) -> u32 {
        let read = match *self {
            Self::Same { size, .. } => Some(size),
            Self::Wide(table) => table.u32(bytes, index, 0),
            Self::Narrow { count, .. } if index >= count => None,
            Self::Narrow { bits: 16, at, .. } => {
                u16_at(bytes, at + 2 * index as usize).map(u32::from)
            }
            Self::Narrow { bits: 8, at, .. } => {
                bytes.get(at + index as usize).copied().map(u32::from)
            }
            Self::Narrow { at, .. } => bytes.get(at + index as usize / 2).map(|pair| {
                let half = if index.is_multiple_of(2) { pair >> 4 } else { pair & 0x0f };
                u32::from(half)
            }),
        };
        read.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        let bytes = [&[0; 4][..], &[0xff; 4], &[0; 9]].concat();
        let error = Table::read(&bytes, b"stts", &(0..17), 8).unwrap_err();
        assert_eq!(error.problem, "announces 4294967295 entries and has room for 1");
        assert_eq!(
            Table::read(&bytes, b"stts", &(0..7), 8).unwrap_err().problem,
            "ends inside its header"
        );
        let sizes = [&[0; 8][..], &[0xff; 4], &[0; 8]].concat();
        assert_eq!(
            Sizes::stsz(&sizes, &(0..20)).unwrap_err().problem,
            "announces 4294967295 entries and has room for 2"
        );
        assert!(Sizes::stz2(&sizes, &(0..20)).is_err());
    }

    #[test]
    fn sizes_have_32_16_8_or_4_bits_or_are_all_the_same() {
        let read = |sizes: Sizes, bytes: &[u8]| -> Vec<u32> {
            (0..sizes.count() + 1).map(|i| sizes.get(bytes, i)).collect()
        };
        let wide = [&[0; 11][..], &[2], &[0, 0, 1, 0, 0, 0, 0, 7]].concat();
        assert_eq!(read(Sizes::stsz(&wide, &(0..20)).unwrap(), &wide), [256, 7, 0]);
        let same = [&[0; 7][..], &[9], &[0, 0, 0, 1]].concat();
        assert_eq!(read(Sizes::stsz(&same, &(0..12)).unwrap(), &same), [9, 9]);
        for (bits, entries, expect) in [
            (16, &[1, 0, 0, 7][..], [256, 7, 0]),
            (8, &[3, 4], [3, 4, 0]),
            (4, &[0x5f], [5, 15, 0]),
        ] {
            let bytes = [&[0, 0, 0, 0, 0, 0, 0, bits][..], &[0, 0, 0, 2], entries].concat();
            assert_eq!(
                read(Sizes::stz2(&bytes, &(0..bytes.len())).unwrap(), &bytes),
                expect,
                "{bits} bits"
            );
        }
    }
}
