//! Big-endian numbers at an offset, `None` after the end: the base of all readers of untrusted
//! bytes.

/// The `N` bytes at `at`.
#[inline]
pub(crate) fn chunk_at<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    chunk_at(bytes, at).map(|b| u16::from_be_bytes(*b))
}

#[inline]
pub(crate) fn u24_at(bytes: &[u8], at: usize) -> Option<u32> {
    chunk_at(bytes, at).map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    chunk_at(bytes, at).map(|b| u32::from_be_bytes(*b))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    chunk_at(bytes, at).map(|b| u64::from_be_bytes(*b))
}

/// Whole big-endian words of `bytes`; a remainder shorter than a word is left out.
#[inline]
pub(crate) fn words(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
    bytes.chunks_exact(4).map(|word| u32_at(word, 0).unwrap_or_default())
}

/// A leb128 value has at most eight bytes (AV1 section 4.10.5).
const LEB128_LEN_MAX: usize = 8;

/// A leb128 number and the bytes after it; `None` when it does not end, or is too large.
pub(crate) fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(LEB128_LEN_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, bytes.get(index + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_past_the_end_are_nothing() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(u16_at(&bytes, 6), Some(0x0708));
        assert_eq!(u24_at(&bytes, 5), Some(0x06_0708));
        assert_eq!(u32_at(&bytes, 4), Some(0x0506_0708));
        assert_eq!(u64_at(&bytes, 0), Some(0x0102_0304_0506_0708));
        for at in [7, 8, 9, usize::MAX] {
            assert_eq!(u16_at(&bytes, at), None);
            assert_eq!(u64_at(&bytes, at), None);
        }
        assert_eq!(words(&bytes[..7]).collect::<Vec<_>>(), [0x0102_0304]);
    }

    #[test]
    fn leb128_is_little_endian_in_sevens() {
        assert_eq!(leb128(&[0xe5, 0x8e, 0x26, 9]), Some((624_485, &[9][..])));
        assert_eq!(leb128(&[]), None);
    }
}
