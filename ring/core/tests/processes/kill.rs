//! 1,000 producers are killed at random moments while others run: each with its own lane, and
//! sharing one. With `THRONG_RING_STRICT=1` no gap above 100 ms in any living stream is allowed,
//! which only an otherwise idle machine can meet.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_ring::{Consumer, DropReason, Event, LaneStats, Producer, RingOptions};

use crate::child::{Child, Random, fork, is_whole, produce_for_ever};

const PRODUCERS: usize = 4;
const KILLS: usize = 500;
const FRAME_BYTES_MAX: u64 = 60_000;
/// A dead producer's claim that is never skipped stalls the ring for ever; a busy machine does so
/// for less than this.
const STALL: Duration = Duration::from_secs(5);

pub(crate) fn run() -> String {
    let own = kill(false);
    let shared = kill(true);
    format!("a lane each: {own}; sharing a lane: {shared}")
}

struct Crowd {
    consumer: Consumer,
    shared: bool,
    /// With the number of its only stream.
    children: Vec<(u32, Child)>,
    next_stream: u32,
    /// Arrival of the latest frame of each living stream, from its first one on.
    last_frame: BTreeMap<u32, Instant>,
    /// Between two frames of a stream whose producer lived.
    longest_gap: Duration,
    /// Number that the next frame of each stream must have.
    expected: BTreeMap<u32, u64>,
    totals: Totals,
}

#[derive(Default)]
struct Totals {
    frames: u64,
    committed: u64,
    delivered: u64,
    abandoned: u64,
}

impl Totals {
    fn add(&mut self, stats: &LaneStats) {
        assert_eq!(stats.frames_in_flight, 0, "room leaked: {stats:?}");
        self.committed += stats.committed_frames();
        self.delivered += stats.delivered_frames;
        self.abandoned += stats.abandoned_claims;
        assert!(DropReason::ALL.iter().all(|reason| stats.dropped(*reason) == 0));
    }
}

fn kill(shared: bool) -> String {
    let mut crowd = Crowd {
        consumer: Consumer::new().unwrap(),
        shared,
        children: Vec::new(),
        next_stream: 1,
        last_frame: BTreeMap::new(),
        longest_gap: Duration::ZERO,
        expected: BTreeMap::new(),
        totals: Totals::default(),
    };
    let mut random = Random(0x5EED + u64::from(shared));
    for _ in 0..KILLS {
        while crowd.children.len() < PRODUCERS {
            crowd.start();
        }
        let until = Instant::now() + Duration::from_micros(random.below(3_000));
        while Instant::now() < until {
            if crowd.drain(64) == 0 {
                crowd.consumer.wait(Duration::from_millis(1)).unwrap();
            }
            crowd.take_events();
            let stalled = crowd.last_frame.iter().find(|(_, last)| last.elapsed() >= STALL);
            assert!(
                stalled.is_none(),
                "a living stream is stuck: {stalled:?}, {:?}",
                crowd.consumer
            );
        }
        let victim = random.below(PRODUCERS as u64) as usize;
        let (stream, mut child) = crowd.children.swap_remove(victim);
        crowd.last_frame.remove(&stream);
        child.kill();
        assert_eq!(child.wait() & 0x7f, libc::SIGKILL, "a producer failed by itself");
    }
    crowd.end();
    let strict = std::env::var_os("THRONG_RING_STRICT").is_some();
    let longest_gap = crowd.longest_gap;
    assert!(
        !strict || longest_gap < Duration::from_millis(100),
        "a gap of {longest_gap:?} in a living stream"
    );
    let totals = &crowd.totals;
    // A producer counts after it commits, so one killed between the two has delivered more than it
    // counted.
    let uncounted =
        totals.delivered.checked_sub(totals.committed).expect("a committed frame was lost");
    assert!(uncounted <= (KILLS + PRODUCERS) as u64, "{uncounted} more delivered than committed");
    assert_eq!(totals.frames, totals.delivered);
    format!(
        "{KILLS} kills, {} frames checked byte by byte, {} claims put aside, longest gap of a living stream {:.1} ms",
        totals.frames,
        totals.abandoned,
        longest_gap.as_secs_f64() * 1e3
    )
}

impl Crowd {
    fn start(&mut self) {
        let stream = self.next_stream;
        self.next_stream += 1;
        let lane = self.shared.then(|| self.consumer.lanes().next()).flatten();
        let invitation = match lane {
            Some(lane) => self.consumer.invite(lane).unwrap(),
            None => self.consumer.add_lane(&RingOptions::with_size(1 << 20, 64)).unwrap().1,
        };
        let child = fork(|| {
            produce_for_ever(Producer::join(invitation).unwrap(), stream, FRAME_BYTES_MAX);
        });
        self.children.push((stream, child));
    }

    /// Takes up to `max` frames; how many there were.
    fn drain(&mut self, max: usize) -> usize {
        for count in 0..max {
            let Some(frame) = self.consumer.peek() else { return count };
            assert!(is_whole(&self.consumer, &frame), "torn: {frame:?}");
            let expected = self.expected.entry(frame.info.stream).or_insert(0);
            assert_eq!(frame.info.user_data, *expected, "lost or repeated: {frame:?}");
            *expected += 1;
            self.totals.frames += 1;
            if self.children.iter().any(|(stream, _)| *stream == frame.info.stream) {
                let last = self.last_frame.insert(frame.info.stream, Instant::now());
                self.longest_gap =
                    self.longest_gap.max(last.map_or(Duration::ZERO, |last| last.elapsed()));
            }
            self.consumer.release(frame.id).unwrap();
        }
        max
    }

    fn take_events(&mut self) {
        while let Some(event) = self.consumer.next_event() {
            match event {
                Event::LaneEnded { stats, .. } => self.totals.add(&stats),
                Event::LaneCorrupt { error, .. } => panic!("an honest lane is corrupt: {error}"),
                _ => {}
            }
        }
    }

    /// Kills the rest and reads what is left.
    fn end(&mut self) {
        self.children.clear();
        let started = Instant::now();
        while self.consumer.lanes().next().is_some() {
            self.consumer.check_liveness();
            self.drain(usize::MAX);
            self.take_events();
            assert!(started.elapsed() < STALL, "a lane does not end: {:?}", self.consumer);
        }
    }
}
