//! Cost of a frame: CPU time of both processes, compared with one memcpy measured in the same run.
//!
//! `cargo bench -p throng-ring -- [--gb GB] [--repeat N] [--only records]`. CPU time is `getrusage`
//! after a warm-up that touches every page; each figure is the median of the repetitions, with the
//! lowest and highest.

use std::io::{Read, Write};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use throng_ring::{Consumer, FrameInfo, Invitation, Policy, Producer, RingOptions};

/// A raw 1080p picture, 4:2:0.
const PICTURE: usize = 3_110_400;
/// Pictures that are copied before a floor is measured.
const WARM_UP: u64 = 20;
/// Source pictures: 50 MB, more than caches hold, as a decoder's pictures would be.
const SOURCES: usize = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1)?.parse().ok())
    };
    let gb: f64 = value("--gb").unwrap_or(2.0);
    let repeat: usize = value("--repeat").unwrap_or(3.0) as usize;
    let pictures = (gb * 1e9 / PICTURE as f64) as u64;
    let only_records = arguments.iter().any(|argument| argument == "records");
    let mut table = Table::default();
    for _ in 0..repeat.max(1) {
        records(&mut table);
        if only_records {
            continue;
        }
        let floor = memcpy(pictures, || {});
        table.add("memcpy of a picture, 16 MiB of targets", "CPU-s/GB", floor, None);
        let woken = memcpy_and_wake(pictures);
        table.add(
            "that, and a byte each through a pipe to a sleeping reader",
            "CPU-s/GB",
            woken,
            None,
        );
        for (name, fill, goal) in [
            ("picture copied in, read untouched", Fill::Copy, 1.1),
            ("picture filled in place, read untouched", Fill::Set, f64::INFINITY),
            ("picture claimed and committed, nothing written", Fill::Nothing, 0.3),
        ] {
            let run = transfer(1, false, PICTURE, pictures, fill, Duration::ZERO);
            table.add(name, "CPU-s/GB", run.cpu_per_gb(), None);
            table.add(name, "× memcpy", run.cpu_per_gb() / floor, goal.is_finite().then_some(goal));
            if fill == Fill::Copy {
                table.add(name, "× memcpy and pipe", run.cpu_per_gb() / woken, None);
                let name = "consumer, woken for each picture";
                table.add(name, "µs of CPU", run.consumer_cpu_s * 1e6 / run.frames, None);
                let name = "picture copied in, seen up to 1 ms late";
                let run = transfer(1, false, PICTURE, pictures, fill, Duration::from_millis(1));
                table.add(name, "× memcpy", run.cpu_per_gb() / floor, None);
            }
        }
        table.add(
            "consumer, peek and release of a waiting picture",
            "µs of CPU",
            busy_consumer(),
            Some(2.0),
        );
        table.add("round trip, both asleep", "µs", round_trip(5_000), Some(40.0));
        table.add(
            "floor: round trip of a byte through two pipes",
            "µs",
            pipes_round_trip(5_000),
            None,
        );
        table.add("8 producers, mixed sizes: most to least bytes", "ratio", fairness(), Some(2.0));
    }
    table.print();
}

/// The cost of messages that are too small for their bytes to matter.
fn records(table: &mut Table) {
    let messages = 3_000_000;
    let two_lines = two_lines(messages);
    table.add("floor: two cache lines passed by plain stores", "µs of CPU, both", two_lines, None);
    for (name, bytes, producers, shared, goal) in [
        ("1,200-byte record", 1_200, 1, false, Some(0.3)),
        ("64-byte record", 64, 1, false, Some(0.1)),
        ("1,200-byte record, 4 producers, a lane each", 1_200, 4, false, None),
        ("1,200-byte record, 4 producers share a lane", 1_200, 4, true, None),
        ("64-byte record, 4 producers, a lane each", 64, 4, false, None),
        ("64-byte record, 4 producers share a lane", 64, 4, true, None),
    ] {
        let run = transfer(producers, shared, bytes, messages, Fill::Copy, Duration::ZERO);
        let us = run.cpu_s() * 1e6 / run.frames;
        table.add(name, "µs of CPU, both", us, goal);
        if (bytes, producers) == (64, 1) {
            table.add(name, "× that floor", us / two_lines, None);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Copy,
    Set,
    Nothing,
}

#[derive(Default)]
struct Table {
    rows: Vec<(&'static str, &'static str, Vec<f64>, Option<f64>)>,
}

impl Table {
    fn add(&mut self, what: &'static str, unit: &'static str, value: f64, goal: Option<f64>) {
        match self.rows.iter_mut().find(|row| row.0 == what && row.1 == unit) {
            Some(row) => row.2.push(value),
            None => self.rows.push((what, unit, vec![value], goal)),
        }
    }

    #[expect(clippy::print_stdout, reason = "the result of a benchmark")]
    fn print(&mut self) {
        println!(
            "| What | Unit | Median | Lowest to highest | Goal | |\n|---|---|---:|---:|---:|---|"
        );
        for (what, unit, values, goal) in &mut self.rows {
            values.sort_by(f64::total_cmp);
            let median = values[values.len() / 2];
            let (low, high) = (values[0], values[values.len() - 1]);
            let verdict = goal.map_or("", |goal| if median <= goal { "met" } else { "**missed**" });
            let goal = goal.map_or(String::new(), |goal| format!("≤ {goal}"));
            println!(
                "| {what} | {unit} | {median:.3} | {low:.3} to {high:.3} | {goal} | {verdict} |"
            );
        }
    }
}

/// CPU time of this process so far, s.
fn cpu_s() -> f64 {
    // SAFETY: all-zero is a valid `rusage`, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Words in which children report: CPU time in ns and frames, for the consumer and each producer;
/// then free ones.
fn board() -> &'static [AtomicU64] {
    // SAFETY: a new mapping of zeroes, never unmapped; all access is atomic.
    unsafe { std::slice::from_raw_parts(shared(4096).cast(), 512) }
}

/// Memory that children share.
fn shared(bytes: usize) -> *const u8 {
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which touches none that there is.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.cast::<u8>().cast_const()
}

fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: this process has one thread; the child leaves by `_exit`.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            work();
            libc::_exit(0);
        }
        pid
    }
}

fn wait(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0, "a child failed");
}

fn sources() -> Vec<Vec<u8>> {
    (0..SOURCES)
        .map(|i| {
            (0..PICTURE).map(|k| (k.wrapping_mul(2_654_435_761) >> 7) as u8 ^ i as u8).collect()
        })
        .collect()
}

/// One copy of each picture; CPU-seconds per GB. `then` follows each.
fn memcpy(pictures: u64, mut then: impl FnMut()) -> f64 {
    let sources = sources();
    let mut targets = vec![1u8; 5 * PICTURE];
    let mut copy = |count: u64| {
        for i in 0..count as usize {
            targets[i % 5 * PICTURE..][..PICTURE].copy_from_slice(&sources[i % SOURCES]);
            then();
        }
        std::hint::black_box(&targets);
    };
    copy(WARM_UP);
    let before = cpu_s();
    copy(pictures);
    (cpu_s() - before) / (pictures as f64 * PICTURE as f64 / 1e9)
}

/// The lower bound of a copy that wakes a sleeping process, by any means: a byte through a pipe,
/// which that process reads. CPU-seconds per GB, both processes.
fn memcpy_and_wake(pictures: u64) -> f64 {
    let (mut there, mut to_there) = std::io::pipe().unwrap();
    let cpu_ns = &board()[0];
    let child = fork(|| {
        let mut read = |count: u64| (0..count).for_each(|_| there.read_exact(&mut [0]).unwrap());
        read(WARM_UP);
        let before = cpu_s();
        read(pictures);
        cpu_ns.store(((cpu_s() - before) * 1e9) as u64, Relaxed);
    });
    let ours = memcpy(pictures, || to_there.write_all(&[1]).unwrap());
    wait(child);
    ours + cpu_ns.load(Relaxed) as f64 / (pictures as f64 * PICTURE as f64)
}

/// The cost on this machine of passing two cache lines from one process to another, one after the
/// other in a ring of 512: a record of 64 bytes and its descriptor. Without any checks; µs of CPU a
/// record, both processes.
fn two_lines(records: u64) -> f64 {
    const SLOTS: u64 = 512;
    #[repr(align(64))]
    struct Line([AtomicU64; 8]);
    let lines = |count: u64| -> &'static [Line] {
        // SAFETY: shared by the child that is forked next and never unmapped; all zeroes are lines,
        // all access is atomic.
        unsafe {
            std::slice::from_raw_parts(
                shared(count as usize * size_of::<Line>()).cast(),
                count as usize,
            )
        }
    };
    let (slots, payloads, words) = (lines(SLOTS), lines(SLOTS), lines(4));
    let (released, cpu_ns) = (&words[0].0[0], &words[2].0[0]);
    let child = fork(|| {
        let (before, mut seen) = (cpu_s(), 0);
        for record in 0..records {
            while record - seen >= SLOTS {
                std::hint::spin_loop();
                seen = released.load(Acquire);
            }
            let at = (record % SLOTS) as usize;
            payloads[at].0.iter().for_each(|word| word.store(record, Relaxed));
            slots[at].0.iter().skip(1).for_each(|word| word.store(record, Relaxed));
            slots[at].0[0].store(record + 1, Release);
        }
        cpu_ns.store(((cpu_s() - before) * 1e9) as u64, Relaxed);
    });
    let (before, mut sum) = (cpu_s(), 0);
    for record in 0..records {
        let at = (record % SLOTS) as usize;
        while slots[at].0[0].load(Acquire) != record + 1 {
            std::hint::spin_loop();
        }
        sum ^= slots[at].0[1].load(Relaxed) ^ payloads[at].0[0].load(Relaxed);
        released.store(record + 1, Release);
    }
    let consumer_s = cpu_s() - before;
    std::hint::black_box(sum);
    wait(child);
    (consumer_s + cpu_ns.load(Relaxed) as f64 / 1e9) * 1e6 / records as f64
}

struct Run {
    producer_cpu_s: f64,
    consumer_cpu_s: f64,
    frames: f64,
    bytes: usize,
}

impl Run {
    fn cpu_s(&self) -> f64 {
        self.producer_cpu_s + self.consumer_cpu_s
    }

    fn cpu_per_gb(&self) -> f64 {
        self.cpu_s() / (self.frames * self.bytes as f64 / 1e9)
    }
}

/// The given number of frames from each of `producers` to one consumer, all of them processes.
fn transfer(
    producers: usize,
    shared: bool,
    bytes: usize,
    frames: u64,
    fill: Fill,
    coalescing: Duration,
) -> Run {
    let board = board();
    let mut consumer = Consumer::new().unwrap();
    consumer.set_coalescing(coalescing);
    let options = if bytes == PICTURE {
        RingOptions::for_frames(PICTURE, 4)
    } else {
        RingOptions::with_size(1 << 20, 4096)
    };
    let each = frames / producers as u64;
    let mut children = Vec::new();
    let mut first = None;
    for producer in 0..producers {
        let invitation = match first.filter(|_| shared) {
            Some(lane) => consumer.invite(lane).unwrap(),
            None => {
                let (lane, invitation) = consumer.add_lane(&options).unwrap();
                first = Some(lane);
                invitation
            }
        };
        children.push(fork(|| produce(invitation, bytes, each, fill, &board[2 + producer])));
    }
    let warm_up = warm_up(bytes) * producers as u64;
    let total = warm_up + each * producers as u64;
    let (mut count, mut before, mut sum) = (0, 0.0, 0u64);
    while count < total {
        let Some(frame) = consumer.peek() else {
            consumer.wait(Duration::from_secs(1)).unwrap();
            while consumer.next_event().is_some() {}
            continue;
        };
        let mut first = [0; 1];
        consumer.payload(frame.id).unwrap().copy_to(0, &mut first);
        sum += u64::from(first[0]);
        consumer.release(frame.id).unwrap();
        count += 1;
        if count == warm_up {
            before = cpu_s();
        }
    }
    let consumer_cpu_s = cpu_s() - before;
    std::hint::black_box(sum);
    children.into_iter().for_each(wait);
    let producer_cpu_s = (0..producers).map(|p| board[2 + p].load(Relaxed) as f64 / 1e9).sum();
    Run { producer_cpu_s, consumer_cpu_s, frames: (each * producers as u64) as f64, bytes }
}

/// Frames until every page of the ring was touched by both sides.
fn warm_up(bytes: usize) -> u64 {
    (40_000_000 / bytes as u64).max(20)
}

fn produce(invitation: Invitation, bytes: usize, frames: u64, fill: Fill, cpu_ns: &AtomicU64) {
    let mut producer = Producer::join(invitation).unwrap();
    producer.set_policy(Policy::Wait { timeout: Duration::MAX });
    let sources = if bytes == PICTURE { sources() } else { vec![vec![7; bytes]] };
    let mut put = |count: u64| {
        for i in 0..count as usize {
            match fill {
                Fill::Copy => assert!(
                    producer
                        .send(&sources[i % sources.len()][..bytes], &FrameInfo::default())
                        .unwrap()
                ),
                Fill::Set | Fill::Nothing => {
                    let mut claim = producer.claim(bytes, &FrameInfo::default()).unwrap().unwrap();
                    if fill == Fill::Set {
                        claim.bytes_mut().fill(i as u8);
                    }
                    claim.commit().unwrap();
                }
            }
        }
    };
    put(warm_up(bytes));
    let before = cpu_s();
    put(frames);
    cpu_ns.store(((cpu_s() - before) * 1e9) as u64, Relaxed);
}

/// The cost of the consumer's calls when frames are waiting: neither sleep nor wake-up; µs of CPU a
/// picture.
fn busy_consumer() -> f64 {
    const ROUNDS: u32 = 20_000;
    let mut consumer = Consumer::new().unwrap();
    let (_, invitation) = consumer.add_lane(&RingOptions::for_frames(PICTURE, 4)).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    let mut spent = Duration::ZERO;
    for _ in 0..ROUNDS {
        for _ in 0..4 {
            producer.claim(PICTURE, &FrameInfo::default()).unwrap().unwrap().commit().unwrap();
        }
        let started = Instant::now();
        while let Some(frame) = consumer.peek() {
            std::hint::black_box(consumer.payload(frame.id).unwrap().as_ptr());
            consumer.release(frame.id).unwrap();
        }
        spent += started.elapsed();
    }
    spent.as_secs_f64() * 1e6 / f64::from(4 * ROUNDS)
}

/// One byte there and back between two processes that both sleep in between; µs.
fn round_trip(rounds: u32) -> f64 {
    let options = RingOptions::with_size(65_536, 16);
    let (mut here, mut there) = (Consumer::new().unwrap(), Consumer::new().unwrap());
    let (_, to_there) = there.add_lane(&options).unwrap();
    let (_, to_here) = here.add_lane(&options).unwrap();
    let child = fork(move || {
        let mut back = Producer::join(to_here).unwrap();
        for _ in 0..rounds {
            receive(&mut there);
            back.send(&[1], &FrameInfo::default()).unwrap();
        }
    });
    let mut forth = Producer::join(to_there).unwrap();
    let started = Instant::now();
    for _ in 0..rounds {
        forth.send(&[1], &FrameInfo::default()).unwrap();
        receive(&mut here);
    }
    let us = started.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    wait(child);
    us
}

/// The same by two pipes: the cost of a wake-up on this machine, by any transport. Microseconds.
fn pipes_round_trip(rounds: u32) -> f64 {
    let (mut there, mut to_there) = std::io::pipe().unwrap();
    let (mut here, mut to_here) = std::io::pipe().unwrap();
    let child = fork(|| {
        for _ in 0..rounds {
            there.read_exact(&mut [0]).unwrap();
            to_here.write_all(&[1]).unwrap();
        }
    });
    let started = Instant::now();
    for _ in 0..rounds {
        to_there.write_all(&[1]).unwrap();
        here.read_exact(&mut [0]).unwrap();
    }
    let us = started.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    wait(child);
    us
}

fn receive(consumer: &mut Consumer) {
    loop {
        if let Some(frame) = consumer.peek() {
            consumer.release(frame.id).unwrap();
            return;
        }
        consumer.wait(Duration::from_secs(1)).unwrap();
        while consumer.next_event().is_some() {}
    }
}

/// Eight producers that always have a frame, each of another size: the ratio of their delivered
/// bytes.
fn fairness() -> f64 {
    let mut consumer = Consumer::new().unwrap();
    let sizes = [200, 1_200, 5_000, 20_000, 60_000, 150_000, 400_000, 1_000_000];
    let mut children = Vec::new();
    let mut lanes = Vec::new();
    for size in sizes {
        let (lane, invitation) =
            consumer.add_lane(&RingOptions::with_size(4 << 20, 4_096)).unwrap();
        lanes.push(lane);
        children.push(fork(move || {
            let mut producer = Producer::join(invitation).unwrap();
            producer.set_policy(Policy::Wait { timeout: Duration::MAX });
            let bytes = vec![1; size];
            // Until it is killed.
            while producer.send(&bytes, &FrameInfo::default()).unwrap_or(false) {}
        }));
    }
    let mut bytes = vec![0u64; sizes.len()];
    let mut next = vec![0; sizes.len()];
    let mut copy = vec![0; 1_000_000];
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        let Some(frame) = consumer.peek() else {
            consumer.wait(Duration::from_millis(10)).unwrap();
            continue;
        };
        let lane = lanes.iter().position(|lane| *lane == frame.lane).unwrap();
        assert_eq!(frame.sequence, next[lane], "lost");
        next[lane] += 1;
        bytes[lane] += frame.len as u64;
        // A consumer with work to do, so that all lanes have something waiting.
        consumer.payload(frame.id).unwrap().copy_to(0, &mut copy);
        std::hint::black_box(&copy);
        consumer.release(frame.id).unwrap();
    }
    for child in children {
        // SAFETY: a child of ours that was not waited for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
    let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
    *most as f64 / (*least).max(1) as f64
}
