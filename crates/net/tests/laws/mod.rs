//! What must hold of the frames of a packet ring for any bytes.

use throng_net::packet_ring::{FrameKind, read_any_frame};

/// A block, from its first frame on: the datagrams of a frame lie within it, one behind the other,
/// and there are no more than it says.
pub(crate) fn packet_frame(bytes: &[u8]) {
    let mut block = bytes.to_vec();
    let mut at = 0_u32;
    for _ in 0..100 {
        let (next, frame) = read_any_frame(&block, at as usize);
        if let Some(frame) = frame {
            let count = frame.datagrams();
            let mut length = 0;
            for index in 0..count {
                let datagram = frame.datagram(index, &mut block).expect("a datagram of a frame");
                assert_eq!(datagram.bytes.len(), frame.length_of(index));
                length += datagram.bytes.len();
            }
            match frame.kind {
                FrameKind::Datagrams { .. } => assert_eq!(length, frame.length()),
                FrameKind::Fragment | FrameKind::TooLong | FrameKind::Damaged => {
                    assert_eq!(count, 0);
                }
            }
            assert!(frame.datagram(count, &mut block).is_none());
        }
        if next == 0 {
            break;
        }
        at = at.saturating_add(next);
    }
}
