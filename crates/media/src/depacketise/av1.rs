//! AV1 (RTP Payload Format For AV1, v1.0): OBU elements, reassembled across payloads, with the
//! sizes that a decoder needs and the temporal delimiter that RTP omits.

use throng_observation::Codec;

use crate::codec::CodecError;
use crate::octets::leb128;

const TEMPORAL_DELIMITER: [u8; 2] = [0x12, 0];
const HAS_SIZE: u8 = 0x02;
const HAS_EXTENSION: u8 = 0x04;

/// Appends the temporal unit that consists of `payloads`.
pub(super) fn append<'a>(
    payloads: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    out.extend_from_slice(&TEMPORAL_DELIMITER);
    let malformed = |what| CodecError::Malformed { codec: Codec::Av1, what };
    // The element that a payload left unfinished.
    let mut open: Vec<u8> = Vec::new();
    for payload in payloads {
        let Some((&aggregation, mut rest)) = payload.split_first() else { continue };
        // Z: the first element continues the previous payload's; Y: the last one continues in the
        // next; W: the number of elements, 0 when each has its length (section 4.4).
        let (continues, goes_on, count) =
            (aggregation & 0x80 != 0, aggregation & 0x40 != 0, aggregation >> 4 & 3);
        if !continues && !open.is_empty() {
            return Err(malformed("continuation"));
        }
        let mut number = 0;
        while !rest.is_empty() {
            number += 1;
            let (element, after) = if count != 0 && number == count {
                (rest, &[][..])
            } else {
                let (len, body) = leb128(rest).ok_or_else(|| malformed("element length"))?;
                body.split_at_checked(len).ok_or_else(|| malformed("element length"))?
            };
            rest = after;
            open.extend_from_slice(element);
            if !rest.is_empty() || !goes_on {
                obu(&open, out).ok_or_else(|| malformed("OBU header"))?;
                open.clear();
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(malformed("end")) }
}

/// Appends an OBU with its size; skips an empty element.
fn obu(element: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let Some(&head) = element.first() else { return Some(()) };
    if head & HAS_SIZE != 0 {
        out.extend_from_slice(element);
        return Some(());
    }
    let header_len = if head & HAS_EXTENSION != 0 { 2 } else { 1 };
    let (header, body) = element.split_at_checked(header_len)?;
    out.push(head | HAS_SIZE);
    out.extend_from_slice(header.get(1..)?);
    let mut len = body.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(body);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packetise::av1::packetise;

    #[test]
    fn a_temporal_unit_comes_back_with_its_delimiter_and_sizes() {
        // Sequence header, then a frame of 700 bytes with an extension; both with sizes.
        let frame: Vec<u8> = (0..700).map(|byte| byte as u8).collect();
        let unit =
            [&TEMPORAL_DELIMITER[..], &[0x0a, 3, 1, 2, 3], &[0x36, 0x08, 0xbc, 0x05], &frame]
                .concat();
        for payload_max in [8, 30, 1200] {
            let mut payloads = Vec::new();
            packetise(&unit, payload_max, &mut payloads);
            let mut out = Vec::new();
            append(payloads.iter().map(Vec::as_slice), &mut out).unwrap();
            assert_eq!(out, unit, "{payload_max}");
        }
    }

    #[test]
    fn counted_elements_need_no_length_at_the_last() {
        let mut out = Vec::new();
        append([&[0x20, 2, 0x08, 9, 0x30, 7, 7][..]].into_iter(), &mut out).unwrap();
        assert_eq!(out, [0x12, 0, 0x0a, 1, 9, 0x32, 2, 7, 7]);
    }
}
