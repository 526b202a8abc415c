//! A producer that runs as another user and has nothing but a socket.

use throng_ring::{Consumer, Policy, Producer, RingOptions};

use crate::child::{fork, is_whole, put};

const NOBODY: u32 = 65_534;

pub(crate) fn run() -> String {
    // SAFETY: asks for the own user's number.
    if unsafe { libc::geteuid() } != 0 {
        return "SKIPPED: becoming another user needs root".to_owned();
    }
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(1 << 16, 16)).unwrap();
    let mut child = fork(move || {
        // SAFETY: gives up root in this child for good.
        let changed = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0
                && libc::setgid(NOBODY) == 0
                && libc::setuid(NOBODY) == 0
        };
        assert!(changed);
        // SAFETY: asks for the own user's number.
        assert_eq!(unsafe { libc::geteuid() }, NOBODY);
        let mut producer = Producer::join(invitation).unwrap();
        producer.set_policy(Policy::Wait { timeout: std::time::Duration::MAX });
        for number in 0..1_000 {
            assert!(put(&mut producer, 1, number, number as usize % 9_000));
        }
    });
    let mut received = 0;
    while received < 1_000 {
        let Some(frame) = consumer.peek() else {
            assert!(
                consumer.wait(std::time::Duration::from_secs(20)).unwrap(),
                "stalled at {received}"
            );
            while consumer.next_event().is_some() {}
            continue;
        };
        assert!(is_whole(&consumer, &frame));
        received += 1;
        consumer.release(frame.id).unwrap();
    }
    child.expect_success();
    assert_eq!(consumer.stats(lane).unwrap().delivered_frames, 1_000);
    format!("{received} frames from user {NOBODY}")
}
