//! Motion JPEG (RFC 2435): every picture stands alone; each packet has the offset of its data
//! within the picture.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts};
use crate::octets::{chunk_at, u16_at, u24_at};

const HEADER_LEN: usize = 8;
/// Types in which a restart marker header follows (section 3.1.7).
const WITH_RESTARTS: std::ops::RangeInclusive<u8> = 64..=127;
const RESTART_HEADER_LEN: usize = 4;
/// From this Q on, the first packet of a picture contains its quantisation tables (section 3.1.8).
const WITH_TABLES: u8 = 128;
/// With this Q the tables may differ in every picture, so all pictures have them.
const OWN_TABLES: u8 = 255;
const TABLE_HEADER_LEN: usize = 4;

/// Reads one payload, which is not empty.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let &[.., kind, q, _, _] =
        chunk_at::<HEADER_LEN>(payload, 0).ok_or_else(|| truncated(payload, "header"))?;
    let mut at = HEADER_LEN;
    if WITH_RESTARTS.contains(&kind) {
        at += RESTART_HEADER_LEN;
        if payload.len() < at {
            return Err(truncated(payload, "restart marker header"));
        }
    }
    let starts_frame = u24_at(payload, 1) == Some(0);
    if starts_frame && q >= WITH_TABLES {
        let len = u16_at(payload, at + 2)
            .ok_or_else(|| truncated(payload, "quantisation table header"))?;
        if len == 0 && q == OWN_TABLES {
            return Err(CodecError::Malformed {
                codec: Codec::Jpeg,
                what: "length of quantisation tables",
            });
        }
        if payload.len() < at + TABLE_HEADER_LEN + usize::from(len) {
            return Err(truncated(payload, "quantisation tables"));
        }
    }
    Ok(PayloadFacts { starts_frame, key_frame: true, discardable: true, ..PayloadFacts::default() })
}

fn truncated(payload: &[u8], what: &'static str) -> CodecError {
    CodecError::Truncated { codec: Codec::Jpeg, what, len: payload.len() }
}

#[cfg(test)]
mod tests {
    use super::super::brief;
    use super::*;

    #[test]
    fn the_first_packet_has_offset_zero_and_all_stand_alone() {
        for (payload, expect) in [
            ("0000000001ff502d 00000004 08080809 0b0b", "skd"),
            ("0000056801ff502d 94e65fda", "kd"),
            ("0000000001ff502d 00000003 080808", "skd"),
            ("0000000001 50 502d ff", "skd"),
            ("00000000 41 50 502d 0010ffff ff", "skd"), // with restart markers
            ("00000000 01 80 502d 00000000 ff", "skd"), // tables known from an earlier picture
            ("00010000 01 ff 502d", "kd"),
        ] {
            assert_eq!(brief(Codec::Jpeg, payload), expect, "{payload}");
        }
    }

    #[test]
    fn what_does_not_fit_the_format_is_named() {
        for (payload, expect) in [
            ("0000000001ff50", "JPEG payload of 7 bytes ends inside its header"),
            (
                "0000000041ff502d 0010ff",
                "JPEG payload of 11 bytes ends inside its restart marker header",
            ),
            (
                "0000000001ff502d 000000",
                "JPEG payload of 11 bytes ends inside its quantisation table header",
            ),
            (
                "0000000001ff502d 00000003 0808",
                "JPEG payload of 14 bytes ends inside its quantisation tables",
            ),
            (
                "0000000001ff502d 00000000 0808",
                "JPEG payload has a bad length of quantisation tables",
            ),
        ] {
            assert_eq!(brief(Codec::Jpeg, payload), expect, "{payload}");
        }
    }
}
