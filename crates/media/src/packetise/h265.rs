//! H.265 (RFC 7798) without DONL fields: small NAL units together in an aggregation packet, large
//! ones split into fragmentation units.

use super::nal_units;

const AGGREGATION: u8 = 48;
const FRAGMENTATION: u8 = 49;
/// Bytes of a NAL unit header, which is also the length of a payload header.
const HEADER_LEN: usize = 2;

/// Appends the RTP payloads of one access unit to `payloads`; none is longer than `payload_max`
/// bytes (at least 4). The caller sets the marker bit of the last one. NAL units without a whole
/// header are left out.
pub fn packetise(nals: &[&[u8]], payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    nal_units(nals, payload_max, aggregated, fragmented, payloads);
}

/// §4.4.2: F if any has it, the lowest layer and temporal ids of the aggregated units.
fn aggregated(group: &[&[u8]]) -> [u8; HEADER_LEN] {
    let headers = group
        .iter()
        .filter_map(|nal| nal.first_chunk::<HEADER_LEN>())
        .map(|h| u16::from_be_bytes(*h));
    let forbidden = headers.clone().fold(0, |all, header| all | (header & 0x8000));
    let layer = headers.clone().map(|header| header & 0x01f8).min().unwrap_or(0);
    let temporal = headers.map(|header| header & 7).min().unwrap_or(1);
    (forbidden | u16::from(AGGREGATION) << 9 | layer | temporal).to_be_bytes()
}

fn fragmented([high, low]: [u8; HEADER_LEN], start_and_end: u8) -> [u8; HEADER_LEN + 1] {
    [(high & 0x81) | FRAGMENTATION << 1, low, start_and_end | (high >> 1 & 0x3f)]
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
