//! A lane that is never empty, because producers are faster than its consumer, survives more deaths
//! than it has rows for producers.

use std::io::{Read, Write};
use std::time::Duration;

use throng_ring::{Consumer, Producer, RingOptions};

use crate::child::{fork, is_whole, produce_for_ever};

/// Three times the 32 producer rows of a lane.
const DEATHS: u32 = 96;
const FRAME_BYTES_MAX: u64 = 1_000;
/// A frame each so often is slow enough for the lane to be full all along.
const PACE: Duration = Duration::from_micros(200);
/// Frames that are read in a newcomer's life.
const FRAMES: u32 = 15;

pub(crate) fn run() -> String {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(1 << 16, 64)).unwrap();
    let _faster =
        fork(|| produce_for_ever(Producer::join(invitation).unwrap(), 0, FRAME_BYTES_MAX));
    let mut frames = 0;
    for stream in 1..=DEATHS {
        let invitation = consumer.invite(lane).unwrap();
        let (mut joined, mut said) = std::io::pipe().unwrap();
        let mut newcomer = fork(|| {
            let producer = Producer::join(invitation);
            said.write_all(&[u8::from(producer.is_ok())]).unwrap();
            produce_for_ever(producer.unwrap(), stream, FRAME_BYTES_MAX);
        });
        let mut has_joined = [0];
        joined.read_exact(&mut has_joined).unwrap();
        assert_eq!(has_joined, [1], "newcomer {stream} found no place");
        for _ in 0..FRAMES {
            std::thread::sleep(PACE);
            if let Some(frame) = consumer.peek() {
                assert!(is_whole(&consumer, &frame), "torn: {frame:?}");
                consumer.release(frame.id).unwrap();
                frames += 1;
            }
        }
        newcomer.kill();
        newcomer.wait();
    }
    format!("{DEATHS} joined and were killed while {frames} frames were read")
}
