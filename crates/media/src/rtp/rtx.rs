//! Retransmissions (RFC 4588): the payload of an RTX packet is the original sequence number and the
//! original payload.

use crate::octets::u16_at;

/// Splits the payload of an RTX packet into the original sequence number (OSN) and the original
/// payload.
///
/// `None` for a payload too short for an OSN: a padding-only probe on the RTX stream, which repairs
/// nothing.
#[inline]
#[must_use]
pub fn original_packet(rtx_payload: &[u8]) -> Option<(u16, &[u8])> {
    Some((u16_at(rtx_payload, 0)?, rtx_payload.get(2..)?))
}

/// Appends the payload of an RTX packet that repeats `payload`, first sent as `original_sequence`.
pub fn write_rtx_payload(out: &mut Vec<u8>, original_sequence: u16, payload: &[u8]) {
    out.extend_from_slice(&original_sequence.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_comes_back() {
        let mut rtx = Vec::new();
        write_rtx_payload(&mut rtx, 0xfffe, &[1, 2, 3]);
        assert_eq!(original_packet(&rtx), Some((0xfffe, &[1, 2, 3][..])));
        assert_eq!(original_packet(&rtx[..2]), Some((0xfffe, &[][..])));
        assert_eq!(original_packet(&rtx[..1]), None);
    }
}
