//! Blocks (RFC 9559 sections 10.1 to 10.3): the header of one or, by lacing, several frames.

use super::ebml::number;
use crate::octets::u16_at;

/// Bytes of the longest header: a lace has up to 255 sizes, each after up to eight bytes or many
/// of 255.
pub(super) const HEADER_LEN_MAX: usize = 1 << 16;

/// The header of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The number of its track.
    pub(super) track: u64,
    /// Ticks after its cluster.
    pub(super) ticks: i16,
    /// A decoder can begin with it; only in a `SimpleBlock`.
    pub(super) is_key: bool,
    /// Sizes of its frames.
    pub(super) frames: Vec<u32>,
    /// Bytes of the header.
    pub(super) len: usize,
}

impl Block {
    /// Reads the header of a block of `body_len` bytes; `Ok(None)` when more bytes are needed.
    pub(super) fn read(bytes: &[u8], body_len: u64) -> Result<Option<Self>, &'static str> {
        let Some((track, len)) = number(bytes, 8)? else { return Ok(None) };
        let (Some(ticks), Some(&flags)) = (u16_at(bytes, len), bytes.get(len + 2)) else {
            return Ok(None);
        };
        let len = len + 3;
        let track = track.unwrap_or(u64::MAX);
        let block =
            Self { track, ticks: ticks as i16, is_key: flags & 0x80 != 0, frames: Vec::new(), len };
        let left = body_len.checked_sub(len as u64).ok_or("is smaller than its header")?;
        let left = u32::try_from(left).map_err(|_| "is larger than 4 GiB")?;
        if flags & 0x06 == 0 {
            return Ok(Some(Self { frames: vec![left], ..block }));
        }
        let Some(&count) = bytes.get(len) else { return Ok(None) };
        let laces = bytes.get(len + 1..).unwrap_or_default();
        let left = left.checked_sub(1).ok_or("is smaller than its header")?;
        let read = match flags & 0x06 {
            0x02 => xiph(laces, count, left)?,
            0x06 => ebml(laces, count, left)?,
            _ => Some(fixed(count, left)?),
        };
        Ok(read.map(|(frames, laces_len)| Self { frames, len: len + 1 + laces_len, ..block }))
    }
}

const TOO_LARGE: &str = "has frames that are together larger than itself";

/// All but the last size, as bytes that add up; the last frame has the rest.
fn xiph(laces: &[u8], count: u8, left: u32) -> Result<Option<(Vec<u32>, usize)>, &'static str> {
    let (mut frames, mut at, mut total) = (Vec::new(), 0, 0_u32);
    for _ in 0..count {
        let mut size = 0_u32;
        loop {
            let Some(&byte) = laces.get(at) else { return Ok(None) };
            (size, at) = (size + u32::from(byte), at + 1);
            if byte != 255 {
                break;
            }
            if at > HEADER_LEN_MAX {
                return Err(TOO_LARGE);
            }
        }
        total = total.saturating_add(size);
        frames.push(size);
    }
    let last =
        left.checked_sub(total).and_then(|rest| rest.checked_sub(at as u32)).ok_or(TOO_LARGE)?;
    frames.push(last);
    Ok(Some((frames, at)))
}

/// The first size, then differences; the last frame has the rest.
fn ebml(laces: &[u8], count: u8, left: u32) -> Result<Option<(Vec<u32>, usize)>, &'static str> {
    let (mut frames, mut at, mut total, mut size) = (Vec::new(), 0, 0_i64, 0_i64);
    for index in 0..count {
        let Some((value, len)) = number(laces.get(at..).unwrap_or_default(), 8)? else {
            return Ok(None);
        };
        let value = value.and_then(|value| i64::try_from(value).ok()).ok_or(TOO_LARGE)?;
        at += len;
        // Differences are stored with half of their range added (section 10.3.3).
        size = if index == 0 { value } else { size + value - ((1 << (7 * len - 1)) - 1) };
        if size < 0 || size > i64::from(left) {
            return Err(TOO_LARGE);
        }
        total += size;
        frames.push(size as u32);
    }
    let last = i64::from(left) - total - at as i64;
    frames.push(u32::try_from(last).map_err(|_| TOO_LARGE)?);
    Ok(Some((frames, at)))
}

/// Frames of the same size.
fn fixed(count: u8, left: u32) -> Result<(Vec<u32>, usize), &'static str> {
    let count = u32::from(count) + 1;
    if !left.is_multiple_of(count) {
        return Err("has a lace of equal frames that does not divide it");
    }
    Ok((vec![left / count; count as usize], 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laces_have_the_sizes_of_their_frames() {
        // The examples of RFC 9559 section 10.3: 800, 500 and 1000 bytes.
        for (flags, laces, frames) in [
            (0x80, &[][..], &[2300][..]),
            (0x82, &[2, 255, 255, 255, 35, 255, 245], &[800, 500, 1000]),
            (0x86, &[2, 0x43, 0x20, 0x5e, 0xd3], &[800, 500, 1000]),
            (0x84, &[2], &[800, 800, 800]),
        ] {
            let bytes = [&[0x81, 0xff, 0xfe, flags], laces].concat();
            let total = bytes.len() as u64 + u64::from(frames.iter().sum::<u32>());
            let block = Block::read(&bytes, total).unwrap().unwrap();
            assert_eq!(
                (block.track, block.ticks, block.is_key, block.len),
                (1, -2, true, bytes.len())
            );
            assert_eq!(block.frames, frames, "{flags:x}");
            for len in 0..bytes.len() {
                assert_eq!(Block::read(&bytes[..len], total), Ok(None), "{flags:x} {len}");
            }
            assert!(
                flags == 0x80 || Block::read(&bytes, bytes.len() as u64 + 2).is_err(),
                "{flags:x}"
            );
        }
        assert_eq!(Block::read(&[0x81, 0, 0, 0], 3), Err("is smaller than its header"));
        assert_eq!(Block::read(&[0x81, 0, 0, 0], 1 << 40), Err("is larger than 4 GiB"));
    }
}
