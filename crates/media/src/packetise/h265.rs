//! H.265 (RFC 7798) without DONL fields: small NAL units together in an aggregation packet, large
//! ones split into fragmentation units.

use super::even_piece;

const AGGREGATION: u8 = 48;
const FRAGMENTATION: u8 = 49;
/// Bytes of a NAL unit header, which is also the length of a payload header.
const HEADER_LEN: usize = 2;

/// Appends the RTP payloads of one access unit to `payloads`; none is longer than `payload_max`
/// bytes (at least 4). The caller sets the marker bit of the last one. NAL units without a whole
/// header are left out.
pub fn packetise(nals: &[&[u8]], payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    let payload_max = payload_max.max(HEADER_LEN + 2);
    let mut rest = nals;
    while let Some((&first, after)) = rest.split_first() {
        let together = how_many_fit(rest, payload_max);
        if let (2.., Some((group, after))) = (together, rest.split_at_checked(together)) {
            payloads.push(aggregate(group));
            rest = after;
            continue;
        }
        rest = after;
        if first.len() > payload_max {
            fragment(first, payload_max, payloads);
        } else if first.len() >= HEADER_LEN {
            payloads.push(first.to_vec());
        }
    }
}

/// Number of the first units that fit into one aggregation packet.
fn how_many_fit(nals: &[&[u8]], payload_max: usize) -> usize {
    let mut len = HEADER_LEN;
    nals.iter()
        .take_while(|nal| {
            len += 2 + nal.len();
            nal.len() >= HEADER_LEN && nal.len() <= usize::from(u16::MAX) && len <= payload_max
        })
        .count()
}

/// §4.4.2: F if any has it, the lowest layer and temporal ids of the aggregated units.
fn aggregate(group: &[&[u8]]) -> Vec<u8> {
    let headers = group
        .iter()
        .filter_map(|nal| nal.first_chunk::<HEADER_LEN>())
        .map(|h| u16::from_be_bytes(*h));
    let forbidden = headers.clone().fold(0, |all, header| all | (header & 0x8000));
    let layer = headers.clone().map(|header| header & 0x01f8).min().unwrap_or(0);
    let temporal = headers.map(|header| header & 7).min().unwrap_or(1);
    let head = forbidden | u16::from(AGGREGATION) << 9 | layer | temporal;
    let mut payload = head.to_be_bytes().to_vec();
    for nal in group {
        // how_many_fit keeps the length within 16 bits.
        payload.extend_from_slice(&(nal.len() as u16).to_be_bytes());
        payload.extend_from_slice(nal);
    }
    payload
}

fn fragment(nal: &[u8], payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    let Some((&[high, low], body)) = nal.split_first_chunk::<HEADER_LEN>() else { return };
    let pieces = body.chunks(even_piece(body.len(), payload_max - HEADER_LEN - 1));
    let last = pieces.len().saturating_sub(1);
    for (index, piece) in pieces.enumerate() {
        let start = u8::from(index == 0) << 7;
        let end = u8::from(index == last) << 6;
        let head = [(high & 0x81) | FRAGMENTATION << 1, low, start | end | (high >> 1 & 0x3f)];
        payloads.push([&head, piece].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::PayloadReader;
    use throng_observation::Codec;

    const SPS: &[u8] = &[33 << 1, 1, 7];
    const PPS: &[u8] = &[34 << 1, 1, 8, 8];

    #[test]
    fn parameter_sets_travel_together_and_a_slice_in_pieces() {
        let idr = [&[19 << 1, 1][..], &[5; 50]].concat();
        let mut payloads = Vec::new();
        packetise(&[SPS, PPS, &idr], 30, &mut payloads);
        assert_eq!(payloads[0], [48 << 1, 1, 0, 3, 33 << 1, 1, 7, 0, 4, 34 << 1, 1, 8, 8]);
        let fragments = &payloads[1..];
        assert!(fragments.iter().all(|f| f.len() <= 30 && f[..2] == [49 << 1, 1]));
        assert_eq!(fragments[0][2], 0x80 | 19);
        assert_eq!(fragments.last().unwrap()[2], 0x40 | 19);
        assert_eq!(fragments.iter().flat_map(|f| &f[3..]).copied().collect::<Vec<_>>(), &idr[2..]);
        let mut reader = PayloadReader::new(Codec::H265);
        let facts: Vec<_> = payloads.iter().map(|payload| reader.read(payload).unwrap()).collect();
        assert!(facts.iter().any(|facts| facts.key_frame), "{facts:?}");
    }

    #[test]
    fn what_is_no_unit_is_left_out() {
        let mut payloads = Vec::new();
        packetise(&[&[], &[1], PPS], 1_000, &mut payloads);
        assert_eq!(payloads, [PPS]);
    }
}
