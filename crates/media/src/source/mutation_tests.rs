//! Damaged media files become errors, or clips that can be played.

use std::sync::Arc;

use super::{Format, Player, read};
use crate::container::{ivf, mjr, ogg, pcap};

#[test]
fn damaged_files_never_break_a_sender() {
    let packet = |sequence: u8, key: u8| {
        [
            &[0x80, 0xe0, 0, sequence, 0, 0, 9, sequence, 0, 0, 0, 5, 0x90, 0xc0, 3, 200, key][..],
            &[7; 30],
        ]
        .concat()
    };
    let (first, second) = (packet(1, 0), packet(2, 1));
    let opus = b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0OpusTags\xf8\x01\x02";
    let files = [
        ivf::tests::file(&[&[0x10, 1, 2, 3], &[0x11; 60]]),
        ogg::tests::page(1, 2, &[19, 8, 3], opus),
        mjr::tests::file(r#"{"t":"v","c":"vp8"}"#, &[&first, &second]),
        pcap::tests::file(&[&first, &second]),
        [&[0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x65, 0x88, 7, 0, 0, 1, 0x41, 0x9a][..], &[5; 40]]
            .concat(),
    ];
    let mut rng = fastrand::Rng::with_seed(0x7468_726f);
    for good in &files {
        assert!(read(good, &Format::default()).is_ok());
        for _ in 0..3_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.usize(1..5) {
                let at = rng.usize(..bytes.len());
                match rng.u8(..3) {
                    0 => bytes[at] = rng.u8(..),
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, rng.u8(..)),
                }
            }
            let Ok(clip) = read(&bytes, &Format::default()) else { continue };
            let clip = Arc::new(clip);
            let mut player = Player::new(Arc::clone(&clip));
            let mut due = player.next_due();
            for _ in 0..20 {
                let frame = player.advance();
                assert!(player.next_due() > due);
                due = player.next_due();
                let mut payload = Vec::new();
                for packet in 0..clip.packet_count(&frame) {
                    assert!(clip.write_payload(&frame, packet, 1, &mut payload));
                }
                assert!(!payload.is_empty() || clip.payload_len(&frame, 0) == 0);
                player.request_key_frame();
            }
        }
    }
}
