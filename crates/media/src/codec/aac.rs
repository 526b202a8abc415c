//! AAC: with AU headers (RFC 3640, modes AAC-hbr and AAC-lbr), or in LATM (RFC 6416 section 6).
//!
//! SDP says which format it is and how wide its fields are; a payload does not. But the sizes in a
//! payload must add up to its length, which a wrong reading hardly meets. Both formats allow a
//! frame to be cut into several packets.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts, WHOLE_AUDIO_FRAME};
use crate::octets::u16_at;

/// Bits of an AU header, and of the size within it: AAC-hbr and AAC-lbr (RFC 3640 sections 3.3.6
/// and 3.3.5).
const MODES: [(usize, usize); 2] = [(16, 13), (8, 6)];

/// Keeps which of the two formats the stream has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    is_latm: bool,
    has_headers: bool,
}

/// What the sizes in a payload show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    /// They add up to the length of the payload.
    Whole,
    /// The one frame is longer than the payload.
    Part,
}

impl Reader {
    /// Reads one payload, which is not empty.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<PayloadFacts, CodecError> {
        // A part fits by its one size only: it shows no format, unless a whole frame did before.
        let headers = (!self.is_latm).then(|| with_headers(payload)).flatten();
        let latm = (!self.has_headers).then(|| latm(payload)).flatten();
        match (headers, latm) {
            (Some(Sizes::Whole), _) => {
                self.has_headers = true;
                Ok(WHOLE_AUDIO_FRAME)
            }
            (_, Some(Sizes::Whole)) => {
                self.is_latm = true;
                Ok(WHOLE_AUDIO_FRAME)
            }
            // Each part of an access unit has the same AU header, the first as well as the last.
            (Some(Sizes::Part), _) => Ok(PART),
            (_, Some(Sizes::Part)) => Ok(PART),
            // The later parts of a frame in LATM have no header.
            (None, None) if self.is_latm => Ok(PART),
            (None, None) => Err(error(payload)),
        }
    }
}

/// A part of a frame: needs no other frame, like every one, but which part it is is not known.
const PART: PayloadFacts =
    PayloadFacts { starts_frame: false, ends_frame: false, ..WHOLE_AUDIO_FRAME };

/// Why a payload is in neither format.
fn error(payload: &[u8]) -> CodecError {
    let section = u16_at(payload, 0).map(|bits| 2 + usize::from(bits).div_ceil(8));
    match section {
        Some(len) if len <= payload.len() => {
            CodecError::Malformed { codec: Codec::Aac, what: "AU size" }
        }
        _ => CodecError::Truncated { codec: Codec::Aac, what: "AU headers", len: payload.len() },
    }
}

/// The AU header section (RFC 3640 section 3.2.1) in the mode in which its sizes fit.
fn with_headers(payload: &[u8]) -> Option<Sizes> {
    let bits = usize::from(u16_at(payload, 0)?);
    let (headers, data) = payload.get(2..)?.split_at_checked(bits.div_ceil(8))?;
    let fits = |(header_bits, size_bits): (usize, usize)| {
        if bits == 0 || bits % header_bits != 0 {
            return None;
        }
        let size = |header: &[u8]| {
            let header = header.iter().fold(0, |value, &byte| value << 8 | usize::from(byte));
            header >> (header_bits - size_bits)
        };
        let total: usize = headers.chunks_exact(header_bits / 8).map(size).sum();
        match total {
            0 => None,
            _ if total == data.len() => Some(Sizes::Whole),
            _ if bits == header_bits && total > data.len() && !data.is_empty() => Some(Sizes::Part),
            _ => None,
        }
    };
    let [high, low] = MODES.map(fits);
    [high, low].into_iter().flatten().find(|sizes| *sizes == Sizes::Whole).or(high).or(low)
}

/// PayloadLengthInfo and payload (ISO/IEC 14496-3 section 1.7.3), once or several times. With
/// `cpresent=1` a bit precedes, which is set where no configuration follows.
fn latm(payload: &[u8]) -> Option<Sizes> {
    let whole_or_part = elements(payload);
    if whole_or_part == Some(Sizes::Whole) || payload.first()? & 0x80 == 0 {
        return whole_or_part;
    }
    let shifted = payload.windows(2).map_while(|pair| {
        let &[high, low] = pair else { return None };
        Some(high << 1 | low >> 7)
    });
    match length_info(shifted) {
        Some((len, info)) if 1 + info + len == payload.len() => Some(Sizes::Whole),
        _ => whole_or_part,
    }
}

fn elements(payload: &[u8]) -> Option<Sizes> {
    let mut rest = payload;
    let mut is_first = true;
    while !rest.is_empty() {
        let (len, info) = length_info(rest.iter().copied())?;
        let data = rest.get(info..)?;
        match data.get(len..) {
            Some(_) if len == 0 => return None,
            Some(after) => rest = after,
            None if is_first && !data.is_empty() => return Some(Sizes::Part),
            None => return None,
        }
        is_first = false;
    }
    Some(Sizes::Whole)
}

/// A length, the sum of bytes of which all but the last are 255, and its own length.
fn length_info(bytes: impl Iterator<Item = u8>) -> Option<(usize, usize)> {
    let (mut len, mut info) = (0, 0);
    for byte in bytes {
        (len, info) = (len + usize::from(byte), info + 1);
        if byte != 255 {
            return Some((len, info));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::PayloadReader;
    use super::*;

    fn frame(head: &[u8], data_len: usize) -> Vec<u8> {
        [head, &vec![0x21; data_len]].concat()
    }

    fn read(payloads: &[Vec<u8>]) -> Vec<String> {
        let mut reader = PayloadReader::new(Codec::Aac);
        payloads.iter().map(|payload| super::super::letters(reader.read(payload))).collect()
    }

    #[test]
    fn sizes_that_add_up_are_whole_frames() {
        for (what, head, data_len) in [
            (
                "ffmpeg: AAC-hbr, six frames",
                &[0, 0x60, 8, 0x10, 8, 0x10, 4, 0x90, 5, 0xd0, 6, 0xf0, 5, 0xd0][..],
                1256,
            ),
            ("GStreamer: one", &[0, 0x10, 8, 0x10], 258),
            ("AAC-lbr, two", &[0, 0x10, 20 << 2, 21 << 2], 41),
            ("LATM", &[255, 3], 258),
            ("LATM, shorter than 255", &[20], 20),
        ] {
            assert_eq!(read(&[frame(head, data_len)]), ["sekd"], "{what}");
            assert_ne!(read(&[frame(head, data_len + 1)]), ["sekd"], "{what}");
        }
        let several = [frame(&[20], 20), frame(&[21], 21)].concat();
        assert_eq!(read(&[several]), ["sekd"]);
        // cpresent=1: a set bit, then the length 4 in the next eight, then the data and 7 bits of
        // padding.
        assert_eq!(read(&[vec![0x82, 0x10, 0x90, 0x90, 0x90, 0x80]]), ["sekd"]);
    }

    #[test]
    fn parts_of_a_frame_are_not_whole() {
        assert_eq!(
            read(&[frame(&[0, 0x10, 0x7d, 0], 500), frame(&[0, 0x10, 0x7d, 0], 100)]),
            ["kd", "kd"]
        );
        let latm = [frame(&[255, 3], 258), frame(&[255, 255, 10], 300), frame(&[0x21], 219)];
        assert_eq!(read(&latm), ["sekd", "kd", "kd"]);
    }

    #[test]
    fn what_fits_neither_format_is_named() {
        let known = frame(&[0, 0x10, 8, 0x10], 258);
        for (payload, expect) in [
            (frame(&[0, 0x20, 8, 0x10, 8, 0x10], 258), "mpeg4-generic payload has a bad AU size"),
            (vec![0], "mpeg4-generic payload of 1 bytes ends inside its AU headers"),
            (vec![0, 0x20, 8], "mpeg4-generic payload of 3 bytes ends inside its AU headers"),
            (
                frame(&[255, 3], 258),
                "mpeg4-generic payload of 260 bytes ends inside its AU headers",
            ),
        ] {
            assert_eq!(read(&[known.clone(), payload])[1], expect);
        }
    }
}
