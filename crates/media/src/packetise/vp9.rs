//! VP9 (RFC 9628) in non-flexible mode without layers: a payload descriptor with a 15-bit picture
//! id, then a piece of the frame.

use super::even_piece;

/// Bytes of the written descriptor: flags, and 15 bits of picture id.
const DESCRIPTOR_LEN: usize = 3;
const PICTURE_ID: u8 = 0x80;
const INTER_PREDICTED: u8 = 0x40;
const BEGINS: u8 = 0x08;
const ENDS: u8 = 0x04;

/// Appends the RTP payloads of one frame (or superframe) to `payloads`; none is longer than
/// `payload_max` bytes (at least 4). The caller sets the marker bit of the last one. `picture_id`
/// grows by one a frame and wraps at 2^15.
pub fn packetise(frame: &[u8], picture_id: u16, payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    let piece_max = payload_max.saturating_sub(DESCRIPTOR_LEN).max(1);
    let [id_high, id_low] = (picture_id & 0x7fff).to_be_bytes();
    let inter = if is_key_frame(frame) { 0 } else { INTER_PREDICTED };
    let pieces = frame.chunks(even_piece(frame.len(), piece_max));
    let last = pieces.len().saturating_sub(1);
    for (index, piece) in pieces.enumerate() {
        let begins = if index == 0 { BEGINS } else { 0 };
        let ends = if index == last { ENDS } else { 0 };
        payloads
            .push([&[PICTURE_ID | inter | begins | ends, 0x80 | id_high, id_low], piece].concat());
    }
}

/// Whether a VP9 frame can be decoded without any other: its uncompressed header shows a key frame
/// (VP9 bitstream specification §6.2: marker, profile, show_existing_frame, frame_type).
#[must_use]
pub fn is_key_frame(frame: &[u8]) -> bool {
    let Some(&head) = frame.first() else { return false };
    let profile = (head >> 5 & 1) | (head >> 3 & 2);
    // Profile 3 has one more reserved bit before show_existing_frame.
    let (existing, kind) =
        if profile == 3 { (head >> 2 & 1, head >> 1 & 1) } else { (head >> 3 & 1, head >> 2 & 1) };
    head >> 6 == 2 && existing == 0 && kind == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::PayloadReader;
    use throng_observation::Codec;

    #[test]
    fn frames_read_back_as_what_they_are() {
        for (head, key) in
            [(0x82, true), (0x86, false), (0x8a, false), (0xb0, true), (0xb2, false), (0x40, false)]
        {
            let frame = [&[head][..], &[9; 40]].concat();
            assert_eq!(is_key_frame(&frame), key, "{head:x}");
            let mut payloads = Vec::new();
            packetise(&frame, 0x8123, 20, &mut payloads);
            let mut reader = PayloadReader::new(Codec::Vp9);
            let facts: Vec<_> =
                payloads.iter().map(|payload| reader.read(payload).unwrap()).collect();
            assert!(payloads.iter().all(|payload| payload.len() <= 20));
            assert_eq!(facts.iter().filter(|f| f.starts_frame).count(), 1);
            assert!(facts[0].starts_frame && facts.last().unwrap().ends_frame);
            assert!(facts.iter().all(|f| f.picture_id == Some((0x0123, 15))));
            let body: Vec<u8> =
                payloads.iter().flat_map(|p| &p[DESCRIPTOR_LEN..]).copied().collect();
            assert_eq!(body, frame);
        }
        assert!(!is_key_frame(&[]));
    }
}
