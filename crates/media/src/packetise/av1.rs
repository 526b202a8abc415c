//! AV1 (RTP Payload Format For AV1, Alliance for Open Media, v1.0): the OBUs of a temporal unit as
//! elements with a length each (W = 0), split where a payload is full.

use crate::octets::leb128;

const TEMPORAL_DELIMITER: u8 = 2;
const TILE_LIST: u8 = 8;
const SEQUENCE_HEADER: u8 = 1;
const HAS_SIZE: u8 = 0x02;
const HAS_EXTENSION: u8 = 0x04;

/// The first element continues the last payload's.
const CONTINUES: u8 = 0x80;
/// The last element continues in the next payload.
const CONTINUED: u8 = 0x40;
/// A coded video sequence begins.
const NEW_SEQUENCE: u8 = 0x08;

/// Appends the RTP payloads of one temporal unit (low-overhead format, as in IVF) to `payloads`;
/// none is longer than `payload_max` bytes (at least 8). The caller sets the marker bit of the last
/// one. Temporal delimiters and tile lists are left out, as §5 requires, and so is everything after
/// a damaged OBU.
pub fn packetise(unit: &[u8], payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    let payload_max = payload_max.clamp(8, 0x3fff);
    let first = payloads.len();
    let mut payload = vec![if starts_sequence(unit) { NEW_SEQUENCE } else { 0 }];
    for (head, body) in obus(unit) {
        if matches!(obu_type(head[0]), TEMPORAL_DELIMITER | TILE_LIST) {
            continue;
        }
        let element = [&[head[0] & !HAS_SIZE], &head[1..], body].concat();
        let mut rest = element.as_slice();
        while !rest.is_empty() {
            // Two bytes of length reach 16 383.
            let room = payload_max.saturating_sub(payload.len() + 2);
            if room == 0 {
                payloads.push(std::mem::replace(&mut payload, vec![0]));
                continue;
            }
            let (piece, after) = rest.split_at(room.min(rest.len()));
            payload
                .extend_from_slice(&[0x80 | (piece.len() & 0x7f) as u8, (piece.len() >> 7) as u8]);
            payload.extend_from_slice(piece);
            rest = after;
            if !rest.is_empty() {
                if let Some(aggregation) = payload.first_mut() {
                    *aggregation |= CONTINUED;
                }
                payloads.push(std::mem::replace(&mut payload, vec![CONTINUES]));
            }
        }
    }
    if payload.len() > 1 || payloads.len() == first {
        payloads.push(payload);
    }
}

/// Whether a temporal unit begins a coded video sequence: it holds a sequence header (§4.4, N bit).
#[must_use]
pub fn starts_sequence(unit: &[u8]) -> bool {
    obus(unit).any(|(head, _)| obu_type(head[0]) == SEQUENCE_HEADER)
}

fn obu_type(head: u8) -> u8 {
    head >> 3 & 0x0f
}

/// The OBUs of a temporal unit: header (one or two bytes) and payload without the size field.
fn obus(unit: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = unit;
    std::iter::from_fn(move || {
        let head_len = if rest.first()? & HAS_EXTENSION != 0 { 2 } else { 1 };
        let (head, after) = rest.split_at_checked(head_len)?;
        let (body, after) = if head.first()? & HAS_SIZE != 0 {
            let (size, body) = leb128(after)?;
            body.split_at_checked(size)?
        } else {
            (after, &[][..])
        };
        rest = after;
        Some((head, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::PayloadReader;
    use throng_observation::Codec;

    /// Reassembles the elements of payloads.
    fn elements(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut elements: Vec<Vec<u8>> = Vec::new();
        for payload in payloads {
            let (aggregation, mut rest) = payload.split_first().unwrap();
            let mut continues = aggregation & CONTINUES != 0;
            while !rest.is_empty() {
                let (len, after) = leb128(rest).unwrap();
                let (piece, after) = after.split_at(len);
                if continues {
                    elements.last_mut().unwrap().extend_from_slice(piece);
                } else {
                    elements.push(piece.to_vec());
                }
                continues = false;
                rest = after;
            }
        }
        elements
    }

    fn unit() -> Vec<u8> {
        let mut unit = vec![TEMPORAL_DELIMITER << 3 | HAS_SIZE, 0];
        unit.extend([SEQUENCE_HEADER << 3 | HAS_SIZE, 3, 7, 7, 7]);
        unit.extend([6 << 3 | HAS_SIZE, 0xac, 2]); // a frame of 300 bytes
        unit.extend([0x10; 300]);
        unit
    }

    #[test]
    fn units_come_back_without_delimiter_and_sizes() {
        let mut payloads = Vec::new();
        packetise(&unit(), 100, &mut payloads);
        assert!(payloads.iter().all(|payload| payload.len() <= 100));
        assert_eq!(payloads[0][0] & NEW_SEQUENCE, NEW_SEQUENCE);
        assert!(payloads[1..].iter().all(|payload| payload[0] & NEW_SEQUENCE == 0));
        let expect = [vec![SEQUENCE_HEADER << 3, 7, 7, 7], [&[6 << 3][..], &[0x10; 300]].concat()];
        assert_eq!(elements(&payloads), expect);
        let mut reader = PayloadReader::new(Codec::Av1);
        assert!(reader.read(&payloads[0]).unwrap().key_frame);
    }

    #[test]
    fn damage_ends_the_unit_and_nothing_else() {
        let whole = unit();
        for len in 0..whole.len() {
            let mut payloads = Vec::new();
            packetise(&whole[..len], 50, &mut payloads);
            assert!(
                !payloads.is_empty() && payloads.iter().all(|payload| payload.len() <= 50),
                "{len}"
            );
        }
    }
}
