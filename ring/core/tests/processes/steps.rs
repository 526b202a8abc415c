//! A producer is killed between two instructions of claim, write and commit, while another shares
//! its ring: at each third, or at every single one with `THRONG_RING_STRIDE=1`.

use std::os::fd::OwnedFd;

use throng_ring::{Consumer, DropReason, Policy, Producer, RingOptions};

use crate::child::{Child, fork, is_whole, put};

/// Instructions over which the kills are spread: more than those of claim, write and commit of a
/// small frame.
const INSTRUCTIONS: usize = 1_400;
const DEAD: u32 = 1;
const LIVING: u32 = 2;

pub(crate) fn run() -> String {
    format!("{}; {}", claiming(), evicting())
}

fn stride() -> usize {
    std::env::var("THRONG_RING_STRIDE").ok().and_then(|s| s.parse().ok()).unwrap_or(3)
}

fn claiming() -> String {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(1 << 16, 16)).unwrap();
    let mut living = Producer::join(invitation).unwrap();
    living.set_policy(Policy::DropNewest);
    let (mut before, mut after) = (0, 0);
    for instruction in (0..INSTRUCTIONS).step_by(stride()) {
        let socket: OwnedFd = consumer.invite(lane).unwrap().into();
        let mut child = fork(|| be_stepped(socket.try_clone().unwrap(), Policy::DropNewest));
        drop(socket);
        step(&mut child, instruction);
        child.kill();
        child.wait();
        assert!(
            put(&mut living, LIVING, instruction as u64, 40),
            "no room after {instruction} instructions"
        );
        consumer.check_liveness();
        let mut of_the_dead = 0;
        let mut came = false;
        while let Some(frame) = consumer.peek() {
            assert!(is_whole(&consumer, &frame), "torn after {instruction} instructions");
            if frame.info.stream == DEAD {
                of_the_dead += 1;
            } else {
                assert_eq!(frame.info.user_data, instruction as u64);
                came = true;
            }
            consumer.release(frame.id).unwrap();
        }
        assert!(came, "the living one's frame is stuck after {instruction} instructions");
        if of_the_dead == 0 {
            before += 1;
        } else {
            after += 1;
        }
        while consumer.next_event().is_some() {}
    }
    // No frame for the second time: the unpublished releases are published.
    assert!(consumer.peek().is_none());
    let stats = consumer.stats(lane).unwrap();
    assert_eq!((stats.frames_in_flight, stats.bytes_in_flight), (0, 0), "room leaked: {stats:?}");
    assert!(stats.delivered_frames >= stats.committed_frames(), "{stats:?}");
    assert!(
        stats.producers.iter().filter(|row| row.session != 0).count() == 1,
        "a dead one keeps its row"
    );
    assert!(
        before > 20 && after > 10,
        "the kills missed the protocol: {before} before the commit, {after} after"
    );
    format!(
        "{} kills, {before} before a commit and {after} after one, {} claims put aside, nothing stuck or torn",
        before + after,
        stats.abandoned_claims
    )
}

/// The same on a full ring, whose oldest frames the killed one evicts: only its own drop may not be
/// counted.
fn evicting() -> String {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(1 << 16, 16)).unwrap();
    let mut living = Producer::join(invitation).unwrap();
    living.set_policy(Policy::DropNewest);
    let (mut number, mut received, mut uncounted, mut kills) = (0u64, 0u64, 0u64, 0u64);
    let evicted = |consumer: &Consumer| consumer.stats(lane).unwrap().dropped(DropReason::Evicted);
    for instruction in (0..INSTRUCTIONS).step_by(2 * stride()) {
        let (before, first) = (evicted(&consumer), number);
        while put(&mut living, LIVING, number, 40) {
            number += 1;
        }
        assert_eq!(number - first, 16, "room leaked before {instruction} instructions");
        let socket: OwnedFd = consumer.invite(lane).unwrap().into();
        let mut child = fork(|| be_stepped(socket.try_clone().unwrap(), Policy::DropOldest));
        drop(socket);
        step(&mut child, instruction);
        child.kill();
        child.wait();
        kills += 1;
        consumer.check_liveness();
        let mut came = 0;
        while let Some(frame) = consumer.peek() {
            assert!(is_whole(&consumer, &frame), "torn after {instruction} instructions");
            came += u64::from(frame.info.stream == LIVING);
            consumer.release(frame.id).unwrap();
        }
        while consumer.next_event().is_some() {}
        // The ring was full of the living one's frames, and four is as many as the other puts.
        let lost = 16 - came;
        let counted = evicted(&consumer) - before;
        assert!(
            lost <= 4 && (counted..=counted + 1).contains(&lost),
            "{lost} lost, {counted} counted"
        );
        uncounted += lost - counted;
        received += came;
    }
    let stats = consumer.stats(lane).unwrap();
    assert_eq!((stats.frames_in_flight, stats.bytes_in_flight), (0, 0), "room leaked: {stats:?}");
    let dropped = stats.dropped(DropReason::Evicted);
    assert_eq!(received + dropped + uncounted, number, "{stats:?}");
    assert!(dropped > 10, "the kills missed the eviction: {stats:?}");
    format!(
        "{kills} kills of one that evicts, {dropped} frames evicted, {uncounted} of them uncounted"
    )
}

/// Joins, stops for the tracer, then puts frames until it is killed.
fn be_stepped(socket: OwnedFd, policy: Policy) {
    let mut producer = Producer::join(socket).unwrap();
    producer.set_policy(policy);
    // SAFETY: asks to be traced by the parent, and stops.
    unsafe {
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
    }
    for number in 0..4 {
        put(&mut producer, DEAD, number, 100);
    }
}

/// Waits until the child stops, then lets it run this number of instructions.
fn step(child: &mut Child, instructions: usize) {
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child.pid, &raw mut status, 0) };
    assert!(libc::WIFSTOPPED(status), "the child did not stop: {status:#x}");
    for _ in 0..instructions {
        // SAFETY: a stopped child of ours that asked to be traced.
        let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child.pid, 0, 0) };
        assert_eq!(stepped, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: as above.
        unsafe { libc::waitpid(child.pid, &raw mut status, 0) };
        assert!(libc::WIFSTOPPED(status), "the child ended while stepped: {status:#x}");
    }
}
