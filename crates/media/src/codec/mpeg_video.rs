//! MPEG-1 and MPEG-2 video (RFC 2250 section 3): a header of 4 bytes, 8 or more in MPEG-2, then
//! whole slices.
//!
//! Some senders (GStreamer's `rtpmpvpay` among them) leave the header zero. Then the picture's own
//! header has its type, but only in the packet where it begins: so the pictures of such a sender
//! are never known to be discardable when they take several packets.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts};
use crate::octets::{chunk_at, u16_at};

const HEADER_LEN: usize = 4;
/// The MPEG-2 extension follows (T, section 3.4).
const T: u8 = 0x04;
/// Further extensions follow it; their first byte is their length in words (E, section 3.4.1).
const E: u8 = 0x40;
/// A composite display extension of 4 bytes follows it (D).
const D: u8 = 0x01;

const PICTURE: u8 = 0x00;
const SEQUENCE: u8 = 0xb3;
const GROUP: u8 = 0xb8;

/// Sequence header, its extensions with two quantiser matrices, and a group header are shorter than
/// this.
const HEADERS_LEN_MAX: usize = 512;

/// `picture_coding_type` (ISO/IEC 13818-2 table 6-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureType {
    /// Refers to no other.
    I,
    /// Refers to one before it.
    P,
    /// Refers to others, and none refers to it.
    B,
    /// Has only the lowest frequencies, and refers to no other (MPEG-1).
    D,
}

impl PictureType {
    fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::I),
            2 => Some(Self::P),
            3 => Some(Self::B),
            4 => Some(Self::D),
            _ => None,
        }
    }

    pub(crate) fn is_key(self) -> bool {
        matches!(self, Self::I | Self::D)
    }
}

/// Reads one payload, which is not empty.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let &[first, _, flags, _] = chunk_at(payload, 0).ok_or_else(|| truncated(payload, "header"))?;
    let data = payload.get(HEADER_LEN + extension_len(payload, first)?..);
    let data = data.ok_or_else(|| truncated(payload, "extensions"))?;
    let starts_frame = begins_picture(data);
    let picture = match flags & 7 {
        0 if starts_frame => picture_type(data),
        0 => None,
        code => Some(PictureType::of(code).ok_or_else(|| malformed("picture type"))?),
    };
    Ok(PayloadFacts {
        starts_frame,
        key_frame: picture.is_some_and(PictureType::is_key),
        discardable: picture == Some(PictureType::B),
        ..PayloadFacts::default()
    })
}

fn extension_len(payload: &[u8], first: u8) -> Result<usize, CodecError> {
    if first & T == 0 {
        return Ok(0);
    }
    let &[head, _, _, last] =
        chunk_at(payload, HEADER_LEN).ok_or_else(|| truncated(payload, "MPEG-2 extension"))?;
    let len = 4 + if last & D != 0 { 4 } else { 0 };
    if head & E == 0 {
        return Ok(len);
    }
    let &words = payload.get(HEADER_LEN + len).ok_or_else(|| truncated(payload, "extensions"))?;
    if words == 0 {
        return Err(malformed("length of extensions"));
    }
    Ok(len + 4 * usize::from(words))
}

fn truncated(payload: &[u8], what: &'static str) -> CodecError {
    CodecError::Truncated { codec: Codec::MpegVideo, what, len: payload.len() }
}

fn malformed(what: &'static str) -> CodecError {
    CodecError::Malformed { codec: Codec::MpegVideo, what }
}

/// Whether coded video begins a picture here, with or without the headers before it.
pub(crate) fn begins_picture(data: &[u8]) -> bool {
    matches!(data, [0, 0, 1, PICTURE | SEQUENCE | GROUP, ..])
}

/// The type of the first picture that begins in `data`, which begins with a start code.
pub(crate) fn picture_type(data: &[u8]) -> Option<PictureType> {
    let headers = data.get(..HEADERS_LEN_MAX).unwrap_or(data);
    let at = headers.windows(4).position(|code| code == [0, 0, 1, PICTURE])?;
    // temporal_reference has 10 bits, picture_coding_type the next 3 (section 6.2.3 of ISO/IEC
    // 13818-2).
    PictureType::of((u16_at(data, at + 4)? >> 3) as u8 & 7)
}

#[cfg(test)]
mod tests {
    use super::super::brief;
    use super::*;

    #[test]
    fn packets_of_ffmpeg_have_the_type_in_their_header() {
        for (payload, expect) in [
            // The first packet of a sequence: S, B, I; sequence header, extension, group, picture.
            (
                "00003100000001b328016835ffffe018000001b5148a00010000000001b80008004000000100000f",
                "sk",
            ),
            ("000009009117294a445ca529117294bb4005a086", "k"), // the end of a slice of that picture
            ("000019000000010223f95805c08601218023001a", "k"),
            ("00c01a220000010000d7fffb80000001b5811df3", "s"), // P
            ("004013440000010000580ffffb800000", "sd"),        // B
            ("00401b44000001021a", "d"),
            ("04003100 00000000 000001b3", "sk"), // with the extension of MPEG-2
            ("04003100 40000001 00000000 01000000 000001b8", "sk"), // and all that may follow it
        ] {
            assert_eq!(brief(Codec::MpegVideo, payload), expect, "{payload}");
        }
    }

    #[test]
    fn packets_of_gstreamer_have_it_in_the_picture_only() {
        for (payload, expect) in [
            (
                "00000000 000001b328016835ffffe018 000001b5148a00010000 000001b800080040 00000100000ffff8",
                "sk",
            ),
            ("00000000 00000100 0057fffb80", "s"),
            ("00000000 00000100 009ffffb80", "sd"),
            ("00000000 00000100", "s"),
            ("00000000 090006097ffa8bd8de3803e0", ""),
        ] {
            assert_eq!(brief(Codec::MpegVideo, payload), expect, "{payload}");
        }
    }

    #[test]
    fn what_does_not_fit_the_format_is_named() {
        for (payload, expect) in [
            ("000031", "MPV payload of 3 bytes ends inside its header"),
            ("04003100 400000", "MPV payload of 7 bytes ends inside its MPEG-2 extension"),
            ("04003100 40000000", "MPV payload of 8 bytes ends inside its extensions"),
            ("04003100 40000000 02000000", "MPV payload of 12 bytes ends inside its extensions"),
            ("04003100 40000000 00000000", "MPV payload has a bad length of extensions"),
            ("00003500 000001b3", "MPV payload has a bad picture type"),
        ] {
            assert_eq!(brief(Codec::MpegVideo, payload), expect, "{payload}");
        }
    }
}
