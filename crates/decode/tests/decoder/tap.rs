//! The reader of a tap with a ring that drops: every lost frame is counted.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use throng_decode::tap::{TapOptions, read};
use throng_observation::{Codec, tap_kind};
use throng_ring::{Flags, FrameInfo, Producer, RingError};

#[test]
fn drops_before_the_first_frame_and_behind_the_last_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("tap.sock")).unwrap();
    let options = TapOptions {
        decode: None,
        keep: true,
        ssim: false,
        participants: None,
        streams_max: 8,
        patience: Duration::from_secs(10),
    };
    let path = folder.path().to_owned();
    let reader = std::thread::spawn(move || read(&path, &options, &|| false).unwrap());
    let mut producer = Producer::join(listener.accept().unwrap().0).unwrap();
    let too_large = vec![0; producer.frame_bytes_max() + 1];
    let mut send = |bytes: &[u8], flags| {
        let info = FrameInfo {
            stream: 5 << 12 | 1,
            kind: tap_kind(Codec::Vp8, None),
            flags,
            ..FrameInfo::default()
        };
        producer.send(bytes, &info)
    };
    for _ in 0..2 {
        assert!(matches!(send(&too_large, Flags::KEYFRAME), Err(RingError::FrameTooLarge { .. })));
    }
    // Not a loss: a decoder could not have started with it.
    assert!(send(&[1; 100], Flags::NONE).unwrap());
    assert!(send(&[2; 100], Flags::KEYFRAME).unwrap());
    for _ in 0..3 {
        assert!(send(&too_large, Flags::NONE).is_err());
    }
    drop(producer);
    let tapped = reader.join().unwrap();
    assert_eq!(
        (tapped.streams, tapped.rows.iter().map(|(_, row)| row.frames_dropped).sum::<u64>()),
        (1, 2)
    );
    assert_eq!(tapped.ring_drops().unwrap(), "the ring dropped 5 of 7 frames (5 too_large)");
}
