//! The consumer's process is killed again and again; a supervisor keeps the descriptors, and
//! producers notice nothing.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use throng_ring::{Consumer, LaneFds, Policy, Producer, RingOptions};

use crate::child::{fork, is_whole, put};

const RESTARTS: u64 = 20;
const FRAMES: u64 = 20_000;

pub(crate) fn run() -> String {
    let mut first = Consumer::new().unwrap();
    let (lane, invitation) = first.add_lane(&RingOptions::with_size(1 << 20, 1_024)).unwrap();
    let mut producer = fork(move || {
        let mut producer = Producer::join(invitation).unwrap();
        producer.set_policy(Policy::Wait { timeout: Duration::MAX });
        for number in 0..FRAMES {
            assert!(put(&mut producer, 1, number, 100 + number as usize % 2_000));
        }
    });
    let seen = shared_marks();
    let kept = first.export(lane).unwrap();
    drop(first);
    for restart in 0..RESTARTS {
        let fds = copy(&kept);
        // Each consumer process reads some frames, holds a few of them, and dies.
        let mut consumer = fork(move || {
            let mut consumer = Consumer::new().unwrap();
            consumer.adopt(fds).unwrap();
            let mut last = None;
            for count in 0..100 + restart * 7 {
                let Some(frame) = wait_for_frame(&mut consumer) else { break };
                assert!(is_whole(&consumer, &frame));
                // Frames that an earlier consumer released out of order are not delivered again, so
                // there may be gaps.
                assert!(
                    last.is_none_or(|last| last < frame.sequence),
                    "{} after {last:?}",
                    frame.sequence
                );
                last = Some(frame.sequence);
                seen[frame.sequence as usize].store(1, Relaxed);
                if count % 5 != 4 {
                    consumer.release(frame.id).unwrap();
                }
                if consumer.held() > 10 {
                    break;
                }
            }
            // SAFETY: ends this process the hard way.
            unsafe { libc::raise(libc::SIGKILL) };
        });
        assert_eq!(consumer.wait() & 0x7f, libc::SIGKILL, "the consumer failed");
    }
    let mut last = Consumer::new().unwrap();
    last.adopt(kept).unwrap();
    loop {
        let frame = wait_for_frame(&mut last).expect("frames go on");
        assert!(is_whole(&last, &frame));
        seen[frame.sequence as usize].store(1, Relaxed);
        last.release(frame.id).unwrap();
        if frame.sequence == FRAMES - 1 {
            break;
        }
    }
    producer.expect_success();
    let missing = seen.iter().filter(|mark| mark.load(Relaxed) == 0).count();
    assert_eq!(missing, 0, "frames that no consumer saw");
    format!("{RESTARTS} consumers killed, each of {FRAMES} frames seen")
}

fn wait_for_frame(consumer: &mut Consumer) -> Option<throng_ring::Frame> {
    for _ in 0..1_000 {
        if let Some(frame) = consumer.peek() {
            return Some(frame);
        }
        while consumer.next_event().is_some() {}
        consumer.wait(Duration::from_millis(100)).unwrap();
    }
    None
}

fn copy(fds: &LaneFds) -> LaneFds {
    LaneFds {
        memfd: fds.memfd.try_clone().unwrap(),
        frame_event: fds.frame_event.try_clone().unwrap(),
        room_event: fds.room_event.try_clone().unwrap(),
        sessions: fds.sessions.iter().map(|(n, s)| (*n, s.try_clone().unwrap())).collect(),
    }
}

/// A mark for each frame, in memory that all processes share.
fn shared_marks() -> &'static [AtomicU8] {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, never unmapped; all access is atomic.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), FRAMES as usize, protection, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts(start.cast::<AtomicU8>(), FRAMES as usize)
    }
}
