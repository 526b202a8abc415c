//! VP8 (RFC 7741): a payload descriptor with a 15-bit picture id, then a piece of the frame.

use super::even_piece;

/// Bytes of the written descriptor: X, I, and 15 bits of picture id.
const DESCRIPTOR_LEN: usize = 4;

/// Appends the RTP payloads of one frame to `payloads`; none is longer than `payload_max` bytes (at
/// least 5). The caller sets the marker bit of the last one. `picture_id` grows by one a frame and
/// wraps at 2^15.
///
/// The frame is split without regard to its partitions, as RFC 7741 §4.4 allows; only the first
/// payload has the bit for the start of a partition.
pub fn packetise(frame: &[u8], picture_id: u16, payload_max: usize, payloads: &mut Vec<Vec<u8>>) {
    let piece_max = payload_max.saturating_sub(DESCRIPTOR_LEN).max(1);
    let [id_high, id_low] = (picture_id & 0x7fff).to_be_bytes();
    for (index, piece) in frame.chunks(even_piece(frame.len(), piece_max)).enumerate() {
        let extended_and_start = 0x80 | u8::from(index == 0) << 4;
        payloads.push([&[extended_and_start, 0x80, 0x80 | id_high, id_low], piece].concat());
    }
}

/// Whether a VP8 frame can be decoded without any other: the inverted P bit of its first byte (RFC
/// 6386 §9.1).
#[must_use]
pub fn is_key_frame(frame: &[u8]) -> bool {
    frame.first().is_some_and(|byte| byte & 1 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_first_payload_starts_the_partition() {
        let mut payloads = Vec::new();
        packetise(&[7; 10], 0x8123, 9, &mut payloads);
        assert_eq!(
            payloads,
            [
                vec![0x90, 0x80, 0x81, 0x23, 7, 7, 7, 7, 7],
                vec![0x80, 0x80, 0x81, 0x23, 7, 7, 7, 7, 7]
            ]
        );
    }

    #[test]
    fn key_frames_have_a_clear_first_bit() {
        assert!(is_key_frame(&[0x10]));
        assert!(!is_key_frame(&[0x11]));
        assert!(!is_key_frame(&[]));
    }

    proptest! {
        #[test]
        fn what_is_packetised_comes_back(frame in prop::collection::vec(any::<u8>(), 0..3000), payload_max in 5_usize..1300) {
            let mut payloads = Vec::new();
            packetise(&frame, 1, payload_max, &mut payloads);
            prop_assert!(payloads.iter().all(|payload| payload.len() <= payload_max));
            prop_assert_eq!(payloads.iter().flat_map(|payload| &payload[DESCRIPTOR_LEN..]).copied().collect::<Vec<_>>(), frame);
        }
    }
}
