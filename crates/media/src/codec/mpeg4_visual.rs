//! MPEG-4 Visual (RFC 6416 section 5): the coded video without a payload header, cut at start codes
//! or anywhere.
//!
//! A picture (VOP) has its type in its own header, thus in the first of its packets only. A picture
//! of several packets is never known to be discardable: later packets could be those of another
//! picture.

use super::{CodecError, PayloadFacts};

// Start codes of ISO/IEC 14496-2 table 6-3.
const OBJECT_FIRST: u8 = 0x00;
const LAYER_LAST: u8 = 0x2f;
const VISUAL_SEQUENCE: u8 = 0xb0;
const GROUP: u8 = 0xb3;
const VISUAL_OBJECT: u8 = 0xb5;
const PICTURE: u8 = 0xb6;

/// Headers before a picture, with user data that names the encoder, are shorter than this.
const HEADERS_LEN_MAX: usize = 512;

/// `vop_coding_type` (section 6.3.5 of ISO/IEC 14496-2).
const I: u8 = 0;
const B: u8 = 2;

/// Reads one payload, which is not empty. The format has nothing that could be malformed.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    if !begins_picture(payload) {
        return Ok(PayloadFacts::default());
    }
    let coding_type = coding_type(payload);
    Ok(PayloadFacts {
        starts_frame: true,
        key_frame: coding_type == Some(I),
        discardable: coding_type == Some(B),
        ..PayloadFacts::default()
    })
}

/// Whether coded video begins a picture here, with or without the headers before it.
fn begins_picture(data: &[u8]) -> bool {
    matches!(
        data,
        [
            0,
            0,
            1,
            OBJECT_FIRST..=LAYER_LAST | VISUAL_SEQUENCE | VISUAL_OBJECT | GROUP | PICTURE,
            ..
        ]
    )
}

/// The type of the first picture that begins in `data`.
fn coding_type(data: &[u8]) -> Option<u8> {
    let headers = data.get(..HEADERS_LEN_MAX).unwrap_or(data);
    let at = headers.windows(4).position(|code| code == [0, 0, 1, PICTURE])?;
    data.get(at + 4).map(|head| head >> 6)
}

/// Whether the first picture that begins in `data` refers to no other, and whether none refers to
/// it; `None` when none begins.
pub(crate) fn picture(data: &[u8]) -> Option<(bool, bool)> {
    coding_type(data).map(|coding_type| (coding_type == I, coding_type == B))
}

#[cfg(test)]
mod tests {
    use throng_observation::Codec;

    use super::super::brief;

    #[test]
    fn start_codes_say_what_begins() {
        for (payload, expect) in [
            ("000001b3 001007 000001b6 10608d82", "sk"), // ffmpeg: a group and an I-VOP
            // GStreamer: the configuration, user data, a group, an I-VOP
            (
                "000001b0f1 000001b5a913 00000100 0000012008d48d0800f514042d14103f 000001b24c617663 \
                 000001b3001007 000001b610608d82",
                "sk",
            ),
            ("000001b6 51e0", "s"),  // P
            ("000001b6 9b20", "sd"), // B
            ("000001b6 d100", "s"),  // S (sprite)
            ("000001b6", "s"),
            ("00000120 08d48d08", "s"),
            ("000001b2 4c617663", ""), // user data can be within a picture
            ("000001b1", ""),
            ("eca3003a 0f0700fa", ""),
            ("00", ""),
        ] {
            assert_eq!(brief(Codec::Mpeg4Visual, payload), expect, "{payload}");
        }
    }
}
