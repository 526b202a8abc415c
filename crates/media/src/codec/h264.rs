//! H.264 (RFC 6184): single NAL units, STAP-A/B and FU-A/B. The interleaved MTAPs are rejected:
//! WebRTC has none.

use throng_observation::Codec;

use super::{CodecError, PayloadFacts, nal};
use crate::mark::Mark;

const SLICE: u8 = 1;
const PARTITION_A: u8 = 2;
const LAST_SLICE_TYPE: u8 = 5;
const IDR: u8 = 5;
const SEI: u8 = 6;
const SPS: u8 = 7;
const DELIMITER: u8 = 9;
const STAP_A: u8 = 24;
const STAP_B: u8 = 25;
const MTAP16: u8 = 26;
const MTAP24: u8 = 27;
const FU_A: u8 = 28;
const FU_B: u8 = 29;
const DON_LEN: usize = 2;

/// Reads one payload, which is not empty.
pub(super) fn read(payload: &[u8]) -> Result<PayloadFacts, CodecError> {
    let Some((&head, body)) = payload.split_first() else { return Ok(PayloadFacts::default()) };
    let aggregate =
        |units: &[u8]| nal::aggregate(Codec::H264, payload.len(), units, |nal| Some(single(nal)));
    match head & 0x1f {
        1..=23 => Ok(single(payload)),
        STAP_A => aggregate(body),
        STAP_B => aggregate(body.get(DON_LEN..).ok_or_else(|| truncated(payload, "STAP-B"))?),
        kind @ (FU_A | FU_B) => {
            fragment(payload, head, body, if kind == FU_B { DON_LEN } else { 0 })
        }
        MTAP16 | MTAP24 => Err(CodecError::Unsupported { codec: Codec::H264, what: "MTAP" }),
        _ => Err(CodecError::Malformed { codec: Codec::H264, what: "NAL unit type" }),
    }
}

fn truncated(payload: &[u8], what: &'static str) -> CodecError {
    CodecError::Truncated { codec: Codec::H264, what, len: payload.len() }
}

fn single(nal: &[u8]) -> PayloadFacts {
    let (head, body) = nal.split_first().map_or((0, nal), |(&head, body)| (head, body));
    PayloadFacts { mark: Mark::find_h264(nal), ..facts(head, body, true) }
}

/// Facts from a NAL unit, or its first fragment; `body` follows the NAL unit's header.
fn facts(head: u8, body: &[u8], first_fragment: bool) -> PayloadFacts {
    let kind = head & 0x1f;
    let slice = (SLICE..=LAST_SLICE_TYPE).contains(&kind);
    let starts_frame = match kind {
        // first_mb_in_slice is 0: its Exp-Golomb code is one set bit. Partitions B and C have no
        // slice header.
        SLICE | PARTITION_A | IDR => body.first().is_some_and(|&first| first & 0x80 != 0),
        // Units allowed before the first slice (section 7.4.1.2.3 of H.264).
        SEI..=DELIMITER => true,
        _ => false,
    };
    PayloadFacts {
        starts_frame: starts_frame && first_fragment,
        precedes_picture: (SEI..=DELIMITER).contains(&kind),
        key_frame: matches!(kind, IDR | SPS),
        // Other NAL units may have nal_ref_idc 0 in frames that others refer to.
        discardable: slice && head & 0x60 == 0,
        ..PayloadFacts::default()
    }
}

fn fragment(
    payload: &[u8],
    indicator: u8,
    body: &[u8],
    don: usize,
) -> Result<PayloadFacts, CodecError> {
    let (&header, body) = body.split_first().ok_or_else(|| truncated(payload, "FU header"))?;
    let body = body.get(don..).ok_or_else(|| truncated(payload, "FU-B"))?;
    if !(1..=23).contains(&(header & 0x1f)) {
        return Err(CodecError::Malformed { codec: Codec::H264, what: "fragmented NAL unit type" });
    }
    // The NAL unit's header consists of the indicator's NRI and the FU header's type (section 5.8).
    Ok(facts(indicator & 0xe0 | header & 0x1f, body, header & 0x80 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief(payload: &[u8]) -> String {
        match read(payload) {
            Ok(f) => [
                (f.starts_frame, 's'),
                (f.ends_frame, 'e'),
                (f.key_frame, 'k'),
                (f.discardable, 'd'),
                (f.mark.is_some(), 'm'),
            ]
            .iter()
            .filter_map(|&(is, letter)| is.then_some(letter))
            .collect(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn nal_units_say_what_they_are() {
        for (payload, expect) in [
            (&[0x65, 0x88][..], "sk"),         // IDR, first slice
            (&[0x65, 0x40], "k"),              // IDR, a later slice
            (&[0x67, 0x42], "sk"),             // SPS
            (&[0x68, 0xce], "s"),              // PPS
            (&[0x41, 0x9a], "s"),              // a slice that others refer to
            (&[0x01, 0x9a], "sd"),             // one that none refers to
            (&[0x01, 0x1a], "d"),              //
            (&[0x03, 0x9a], "d"),              // partition B
            (&[0x09, 0xf0], "s"),              // delimiter: nal_ref_idc 0 says nothing
            (&[0x06, 1, 1, 4, 0x80], "s"),     // SEI of another kind
            (&[0x7c, 0x85, 0x88], "sk"),       // FU-A, start, IDR
            (&[0x7c, 0x05, 0x88], "k"),        // middle
            (&[0x7c, 0x45, 0x88], "k"),        // end
            (&[0x1c, 0x81, 0x9a], "sd"),       // nal_ref_idc comes from the indicator
            (&[0x7d, 0x85, 0, 1, 0x88], "sk"), // FU-B
            (&[0x78, 0, 2, 0x67, 1, 0, 2, 0x68, 1, 0, 2, 0x65, 0x88], "sk"), // STAP-A
            (&[0x78, 0, 2, 0x01, 0x10, 0, 2, 0x01, 0x9a], "d"), // only the first unit can start the frame
            (&[0x79, 0, 1, 0, 2, 0x41, 0x9a], "s"),             // STAP-B
        ] {
            assert_eq!(brief(payload), expect, "{payload:x?}");
        }
    }

    #[test]
    fn what_does_not_fit_the_format_is_named() {
        for (payload, expect) in [
            (&[0x60][..], "H264 payload has a bad NAL unit type"),
            (&[0x7e], "H264 payload has a bad NAL unit type"),
            (&[0x7a, 0, 0], "H264 payload uses MTAP, which is not read"),
            (&[0x7b, 0, 0], "H264 payload uses MTAP, which is not read"),
            (&[0x78], "H264 payload has a bad aggregation without NAL units"),
            (&[0x78, 0], "H264 payload of 2 bytes ends inside its aggregated NAL unit"),
            (
                &[0x78, 0, 3, 0x65, 0x88],
                "H264 payload of 5 bytes ends inside its aggregated NAL unit",
            ),
            (&[0x79, 0], "H264 payload of 2 bytes ends inside its STAP-B"),
            (&[0x7c], "H264 payload of 1 bytes ends inside its FU header"),
            (&[0x7d, 0x85, 0], "H264 payload of 3 bytes ends inside its FU-B"),
            (&[0x7c, 0x9c, 0], "H264 payload has a bad fragmented NAL unit type"),
        ] {
            assert_eq!(brief(payload), expect, "{payload:x?}");
        }
    }

    #[test]
    fn marks_are_found_alone_and_aggregated() {
        let mark = Mark { frame: 7, captured_unix_ns: 1 << 60 };
        let mut nal = Vec::new();
        mark.write_h264(&mut nal);
        assert_eq!(read(&nal).unwrap().mark, Some(mark));
        let stap =
            [&[0x78, 0, 2, 0x67, 1, 0, nal.len() as u8][..], &nal, &[0, 2, 0x65, 0x88]].concat();
        assert_eq!(brief(&stap), "skm");
    }
}
