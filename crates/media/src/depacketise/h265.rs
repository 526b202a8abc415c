//! H.265 (RFC 7798) without DONL fields: single NAL units, those of aggregations, and those
//! reassembled from fragments.

use throng_observation::Codec;

use super::{START_CODE, aggregated};
use crate::codec::CodecError;

/// Appends the units of one payload.
pub(super) fn append(payload: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let truncated = |what| CodecError::Truncated { codec: Codec::H265, what, len: payload.len() };
    let (&[high, low], body) =
        payload.split_first_chunk::<2>().ok_or_else(|| truncated("payload header"))?;
    match high >> 1 & 0x3f {
        48 => aggregated(Codec::H265, body, out),
        49 => {
            let (&said, piece) = body.split_first().ok_or_else(|| truncated("FU header"))?;
            if said & 0x80 != 0 {
                out.extend_from_slice(&START_CODE);
                out.extend_from_slice(&[high & 0x81 | (said & 0x3f) << 1, low]);
            }
            out.extend_from_slice(piece);
            Ok(())
        }
        50.. => {
            Err(CodecError::Unsupported { codec: Codec::H265, what: "PACI or a reserved type" })
        }
        _ => {
            out.extend_from_slice(&START_CODE);
            out.extend_from_slice(payload);
            Ok(())
        }
    }
}
