//! Annex-B byte streams (ITU-T H.264 and H.265, Annex B): NAL units after start codes, and H.264
//! access units.

/// Iterates over the NAL units of a byte stream, without start codes and trailing zero bytes. Bytes
/// before the first start code and empty units are skipped.
#[must_use]
pub fn nal_units(stream: &[u8]) -> NalUnits<'_> {
    NalUnits { rest: after_start_code(stream) }
}

/// See [`nal_units`].
#[derive(Clone, Debug)]
pub struct NalUnits<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for NalUnits<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let rest = self.rest?;
            let end = find_start_code(rest).unwrap_or(rest.len());
            let (unit, tail) = rest.split_at_checked(end)?;
            self.rest = after_start_code(tail);
            // trailing_zero_8bits, and the zero byte of a four-byte start code.
            let len = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if let Some(unit) = unit.get(..len).filter(|unit| !unit.is_empty()) {
                return Some(unit);
            }
        }
    }
}

/// Offset of the next `00 00 01`.
fn find_start_code(bytes: &[u8]) -> Option<usize> {
    bytes.windows(3).position(|window| window == [0, 0, 1])
}

fn after_start_code(bytes: &[u8]) -> Option<&[u8]> {
    find_start_code(bytes).and_then(|at| bytes.get(at + 3..))
}

/// An H.264 access unit: one coded picture with its other NAL units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessUnit<'a> {
    /// Its NAL units in order.
    pub nals: Vec<&'a [u8]>,
    /// It contains an IDR slice (type 5).
    pub key_frame: bool,
}

/// Iterates over the access units of an H.264 byte stream (clause 7.4.1.2.3): a unit begins with
/// the first access unit delimiter, SPS, PPS, SEI or slice whose first macroblock is 0, after a
/// slice of the previous unit.
#[must_use]
pub fn h264_access_units(stream: &[u8]) -> H264AccessUnits<'_> {
    H264AccessUnits { units: nal_units(stream), pending: None }
}

/// See [`h264_access_units`].
#[derive(Clone, Debug)]
pub struct H264AccessUnits<'a> {
    units: NalUnits<'a>,
    /// The NAL unit that ended the last access unit and begins the next.
    pending: Option<&'a [u8]>,
}

impl<'a> Iterator for H264AccessUnits<'a> {
    type Item = AccessUnit<'a>;

    fn next(&mut self) -> Option<AccessUnit<'a>> {
        let first = self.pending.take().or_else(|| self.units.next())?;
        let mut unit = AccessUnit { nals: vec![first], key_frame: nal_type(first) == 5 };
        let mut has_slice = is_slice(first);
        for nal in self.units.by_ref() {
            if has_slice && begins_access_unit(nal) {
                self.pending = Some(nal);
                break;
            }
            has_slice |= is_slice(nal);
            unit.key_frame |= nal_type(nal) == 5;
            unit.nals.push(nal);
        }
        Some(unit)
    }
}

fn nal_type(nal: &[u8]) -> u8 {
    nal.first().map_or(0, |head| head & 0x1f)
}

fn is_slice(nal: &[u8]) -> bool {
    matches!(nal_type(nal), 1..=5)
}

fn begins_access_unit(nal: &[u8]) -> bool {
    match nal_type(nal) {
        // first_mb_in_slice is the first ue(v) of the slice header; 0 is the single bit 1.
        1 | 2 | 5 => nal.get(1).is_some_and(|byte| byte & 0x80 != 0),
        6..=9 | 14..=18 => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_end_where_the_next_begins() {
        for (stream, expect) in [
            (&[0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 2][..], &[&[0x67, 1][..], &[0x68, 2]][..]),
            (&[0, 0, 1, 0x67, 1, 0, 0, 0, 0, 1, 0x68], &[&[0x67, 1], &[0x68]]), // trailing zeros are not the unit's
            (&[9, 9, 0, 0, 1, 0x41], &[&[0x41]]),                               // leading rubbish
            (&[0, 0, 1, 0, 0, 1, 0x41], &[&[0x41]]),                            // an empty unit
            (&[0, 0, 1], &[]),
            (&[0x41, 0x42], &[]),
            (&[], &[]),
        ] {
            assert_eq!(nal_units(stream).collect::<Vec<_>>(), expect, "{stream:?}");
        }
    }

    #[test]
    fn a_picture_takes_its_parameter_sets_and_slices_with_it() {
        let nals: [&[u8]; 7] = [
            &[0x67, 1],
            &[0x68, 1],
            &[0x65, 0x88],
            &[0x65, 0x08],
            &[0x41, 0x9a],
            &[0x06, 5],
            &[0x41, 0x9b],
        ];
        let stream: Vec<u8> = nals.iter().flat_map(|nal| [&[0, 0, 0, 1], *nal].concat()).collect();
        let units: Vec<_> = h264_access_units(&stream).collect();
        assert_eq!(units.iter().map(|unit| unit.nals.len()).collect::<Vec<_>>(), [4, 1, 2]);
        assert_eq!(
            units.iter().map(|unit| unit.key_frame).collect::<Vec<_>>(),
            [true, false, false]
        );
        assert_eq!(units.concat_nals(), nals);
    }

    trait ConcatNals<'a> {
        fn concat_nals(&self) -> Vec<&'a [u8]>;
    }

    impl<'a> ConcatNals<'a> for Vec<AccessUnit<'a>> {
        fn concat_nals(&self) -> Vec<&'a [u8]> {
            self.iter().flat_map(|unit| unit.nals.iter().copied()).collect()
        }
    }
}
