//! H.264 (RFC 6184): single NAL units, those of aggregations, and those reassembled from fragments.

use throng_observation::Codec;

use super::{START_CODE, aggregated};
use crate::codec::CodecError;

/// Appends the units of one payload.
pub(super) fn append(payload: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let Some((&head, body)) = payload.split_first() else { return Ok(()) };
    let truncated = |what| CodecError::Truncated { codec: Codec::H264, what, len: payload.len() };
    match head & 0x1f {
        1..=23 => {
            out.extend_from_slice(&START_CODE);
            out.extend_from_slice(payload);
            Ok(())
        }
        24 => aggregated(Codec::H264, body, out),
        // STAP-B has a decoding order number of 16 bits first.
        25 => aggregated(Codec::H264, body.get(2..).ok_or_else(|| truncated("STAP-B"))?, out),
        kind @ (28 | 29) => {
            let (&said, piece) = body.split_first().ok_or_else(|| truncated("FU header"))?;
            // FU-B has the decoding order number after its header.
            let skipped = if kind == 29 { 2 } else { 0 };
            let piece = piece.get(skipped..).ok_or_else(|| truncated("FU-B"))?;
            if said & 0x80 != 0 {
                out.extend_from_slice(&START_CODE);
                out.push(head & 0xe0 | said & 0x1f);
            }
            out.extend_from_slice(piece);
            Ok(())
        }
        26 | 27 => Err(CodecError::Unsupported { codec: Codec::H264, what: "MTAP" }),
        _ => Err(CodecError::Malformed { codec: Codec::H264, what: "NAL unit type" }),
    }
}
