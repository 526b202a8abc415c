//! Mixed sizes from several processes with several threads each, every byte checked.
//! `THRONG_RING_SOAK_S=600` for long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_ring::{Consumer, Event, Policy, Producer, RingOptions};

use crate::child::{Random, fork, is_whole, put};

const PROCESSES: u32 = 3;
const THREADS: u32 = 2;

pub(crate) fn run() -> String {
    let seconds =
        std::env::var("THRONG_RING_SOAK_S").ok().and_then(|s| s.parse().ok()).unwrap_or(10);
    let mut consumer = Consumer::new().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            let (_, invitation) = consumer.add_lane(&RingOptions::with_size(8 << 20, 256)).unwrap();
            fork(move || {
                produce(Producer::join(invitation).unwrap(), process, Duration::from_secs(seconds));
            })
        })
        .collect();
    let (mut frames, mut bytes) = (0u64, 0u64);
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    let mut random = Random(3);
    let mut held = Vec::new();
    let mut quiet_since = Instant::now();
    while consumer.lanes().next().is_some() {
        assert!(quiet_since.elapsed() < Duration::from_secs(20), "stalled: {consumer:?}");
        if let Some(frame) = consumer.peek() {
            assert!(is_whole(&consumer, &frame), "corrupt: {frame:?}");
            let next = next.entry(frame.info.stream).or_insert(0);
            assert_eq!(frame.sequence, *next, "lost or repeated: {frame:?}");
            *next += 1;
            (frames, bytes) = (frames + 1, bytes + frame.len as u64);
            held.push(frame.id);
            quiet_since = Instant::now();
        }
        // Several are held, and released in any order.
        while held.len() > random.below(8) as usize {
            let index = random.below(held.len() as u64) as usize;
            consumer.release(held.swap_remove(index)).unwrap();
        }
        if !consumer.wait(Duration::from_millis(100)).unwrap() {
            held.drain(..).for_each(|id| consumer.release(id).unwrap());
        }
        while let Some(event) = consumer.next_event() {
            match event {
                Event::LaneCorrupt { error, .. } => panic!("{error}"),
                Event::LaneEnded { stats, .. } => {
                    assert_eq!(stats.committed_frames(), stats.delivered_frames, "{stats:?}");
                }
                Event::ProducerLeft { .. } => {
                    held.drain(..).for_each(|id| consumer.release(id).unwrap());
                }
                _ => {}
            }
        }
    }
    children.into_iter().for_each(|mut child| child.expect_success());
    format!("{frames} frames, {:.2} GB, every byte checked", bytes as f64 / 1e9)
}

fn produce(first: Producer, process: u32, duration: Duration) {
    let mut handles: Vec<Producer> = (1..THREADS).map(|_| first.try_clone().unwrap()).collect();
    handles.push(first);
    let end = Instant::now() + duration;
    std::thread::scope(|scope| {
        for (thread, mut producer) in handles.into_iter().enumerate() {
            let stream = process * THREADS + thread as u32;
            scope.spawn(move || {
                producer.set_policy(Policy::Wait { timeout: Duration::MAX });
                let mut random = Random(u64::from(stream) + 11);
                for number in 0.. {
                    if number % 16 == 0 && Instant::now() > end {
                        return;
                    }
                    // Log-uniform from nothing to 3.1 MB: packets, encoded frames, raw pictures.
                    let bits = random.below(22);
                    let len = (random.next() & ((1 << bits) - 1)).min(3_110_400);
                    put(&mut producer, stream, number, len as usize);
                }
            });
        }
    });
}
