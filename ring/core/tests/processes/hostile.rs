//! Producers that overwrite everything they can reach, or punch holes into it, without effect on an
//! honest one.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use throng_ring::{Consumer, Event, Policy, Producer, RingOptions};

use crate::child::{Child, Random, fork, is_whole, put};

/// The words before the arena of a ring with 64 descriptors: header, control block, rows, slots.
const HEAD_BYTES: usize = 65_536;
const HONEST: u32 = 7;

fn duration() -> Duration {
    let seconds =
        std::env::var("THRONG_RING_HOSTILE_S").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    Duration::from_secs(seconds)
}

pub(crate) fn run() -> String {
    let mut consumer = Consumer::new().unwrap();
    let options = RingOptions::with_size(1 << 20, 64);
    let (honest, invitation) = consumer.add_lane(&options).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    producer.set_policy(Policy::DropNewest);
    let (mut attacker, mut attacks) = (attack(&mut consumer, &options, 1), 1u64);
    let (mut sent, mut received, mut foreign, mut refused, mut bytes) =
        (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut held = std::collections::VecDeque::new();
    let end = Instant::now() + duration();
    while Instant::now() < end {
        sent += u64::from(put(&mut producer, HONEST, sent, 300));
        for _ in 0..16 {
            let Some(frame) = consumer.peek() else { break };
            if frame.lane == honest {
                assert!(is_whole(&consumer, &frame));
                assert_eq!(frame.info.user_data, received);
                received += 1;
                consumer.release(frame.id).unwrap();
                continue;
            }
            // Whatever it says it is: every byte of it can be read.
            let copy = consumer.payload(frame.id).unwrap().to_vec();
            foreign += 1;
            bytes += copy.iter().map(|byte| u64::from(byte & 1)).sum::<u64>();
            held.push_back(frame.id);
            if held.len() > 5 {
                consumer.release(held.pop_front().unwrap()).unwrap();
            }
        }
        while let Some(event) = consumer.next_event() {
            if let Event::LaneCorrupt { lane, error } = event {
                assert_ne!(lane, honest, "{error}");
                refused += 1;
                held.drain(..).for_each(|id| consumer.release(id).unwrap());
                drop(attacker);
                consumer.check_liveness();
                assert!(has_left(&mut consumer, lane), "an attacker's death is hidden");
                attacks += 1;
                attacker = attack(&mut consumer, &options, attacks);
            }
        }
    }
    drop(attacker);
    held.drain(..).for_each(|id| consumer.release(id).unwrap());
    while let Some(frame) = consumer.peek() {
        received += u64::from(frame.lane == honest);
        consumer.release(frame.id).unwrap();
    }
    assert_eq!(sent, received, "the honest lane lost frames");
    assert!(attacks > 3 && refused > 2, "the attacks had no effect: {attacks}, {refused}");
    format!(
        "{attacks} attackers, {refused} lanes closed, {foreign} of their frames read ({bytes} odd bytes), \
         {received} honest frames all there"
    )
}

/// Whether the end of a lane's only process was detected. It may have written into its socket
/// before.
fn has_left(consumer: &mut Consumer, of: throng_ring::LaneId) -> bool {
    std::iter::from_fn(|| consumer.next_event())
        .any(|event| matches!(event, Event::ProducerLeft { lane, .. } if lane == of))
}

/// A child that first follows the protocol, then overwrites words at random, with random or with
/// plausible values.
fn attack(consumer: &mut Consumer, options: &RingOptions, seed: u64) -> Child {
    let (lane, invitation) = consumer.add_lane(options).unwrap();
    let fds = consumer.export(lane).unwrap();
    fork(move || {
        let socket = OwnedFd::from(invitation);
        let mut producer = Producer::join(socket.try_clone().unwrap()).unwrap();
        let words = map(&fds.memfd);
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        loop {
            for number in 0..random.below(200) {
                // Its own words are broken too, so it ignores errors and full rings.
                let _ = producer.send(&[number as u8; 500], &throng_ring::FrameInfo::default());
            }
            for _ in 0..1 + random.below(3) {
                scribble(words, &mut random);
            }
            abuse([&socket, &fds.frame_event, &fds.room_event], &fds.memfd, &mut random);
        }
    })
}

/// Attacks by its other descriptors: bytes into the socket and the eventfds until they would block,
/// and holes in the memory.
fn abuse(written_to: [&OwnedFd; 3], memfd: &OwnedFd, random: &mut Random) {
    if let Some(fd) = written_to.get(random.below(12) as usize) {
        let bytes = (random.next() >> 1).to_ne_bytes();
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: a write of eight bytes of ours that does not block; any result is acceptable.
        unsafe {
            if libc::poll(&raw mut poll, 1, 0) == 1 {
                libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
            }
        }
    }
    if random.below(40) == 0 {
        let offset = 4096 * random.below(HEAD_BYTES as u64 / 4096 + 256) as libc::off_t;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the seals forbid other sizes, not holes: the pages read as zeros from here on.
        assert_eq!(unsafe { libc::fallocate(memfd.as_raw_fd(), mode, offset, 4096) }, 0);
    }
}

fn map(memfd: &OwnedFd) -> &'static [AtomicU64] {
    // SAFETY: a shared mapping of the ring's first bytes, which lasts as long as the child; all
    // access is atomic.
    unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            HEAD_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            memfd.as_raw_fd(),
            0,
        );
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts(start.cast::<AtomicU64>(), HEAD_BYTES / 8)
    }
}

fn scribble(words: &[AtomicU64], random: &mut Random) {
    let (slots, slot_words) = (12_288 / 8, 8);
    let index = match random.below(4) {
        0 => random.below(words.len() as u64) as usize,
        // The control block: reserve, release, sleep words.
        1 => 512 + 16 * random.below(5) as usize,
        _ => slots + slot_words * random.below(64) as usize + random.below(3) as usize,
    };
    let old = words[index].load(Ordering::Relaxed);
    let new = match random.below(6) {
        0 => random.next(),
        1 => u64::MAX,
        2 => 0,
        3 => old ^ 1 << random.below(64),
        4 => old.wrapping_add(1 << 32),
        _ => old & !0xffff_ffff | random.below(20_000),
    };
    words[index].store(new, Ordering::Release);
}
