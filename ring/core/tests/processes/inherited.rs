//! A child that was forked from a process with both sides drops its copies, without effect on the
//! parent's.

use std::time::Duration;

use throng_ring::{Consumer, FrameInfo, Producer, RingError, RingOptions};

use crate::child::fork;

pub(crate) fn run() -> String {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 64)).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    for _ in 0..2 {
        producer.send(b"small", &FrameInfo::default()).unwrap();
        let frame = consumer.peek().unwrap();
        consumer.release(frame.id).unwrap();
    }
    let open = producer.claim_token(4, &FrameInfo::default()).unwrap().unwrap();
    let before = consumer.stats(lane).unwrap();
    assert_eq!(before.frames_in_flight, 3, "released, and not yet reported");

    // Bitwise copies, as in a child that continues after fork without exec. SAFETY: the parent's
    // are forgotten in the child, which drops the copies alone, and the copies in the parent.
    let copies =
        unsafe { (std::ptr::read(&raw const consumer), std::ptr::read(&raw const producer)) };
    let mut copies = Some(copies);
    fork(|| drop(copies.take())).expect_success();
    std::mem::forget(copies);

    let after = consumer.stats(lane).unwrap();
    assert_eq!(after.frames_in_flight, 3, "the child reported in the parent's name");
    let error = Consumer::new().unwrap().adopt(consumer.export(lane).unwrap()).unwrap_err();
    assert!(
        matches!(error, RingError::ConsumerAttached { .. }),
        "the child gave up the lock: {error}"
    );
    producer.commit(open, 4).unwrap();
    assert!(consumer.wait(Duration::ZERO).unwrap());
    assert_eq!(consumer.peek().map(|frame| frame.len), Some(4));
    assert_eq!(
        consumer.stats(lane).unwrap().producers.len(),
        1,
        "the child left in the parent's name"
    );
    "the parent's consumer and producer go on".to_owned()
}
