//! How lanes end: producers that leave unfinished claims, and lanes that their consumer closes.

use std::os::fd::OwnedFd;
use std::time::Duration;

use throng_ring::{Consumer, Event, FrameInfo, LaneId, Producer, RingError, RingOptions};

const RESERVE: u64 = 4096;
const ROWS: u64 = 8_192;
const SLOTS: u64 = 12_288;

fn lane(consumer: &mut Consumer) -> (LaneId, Producer, OwnedFd) {
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 8)).unwrap();
    let memfd = consumer.export(lane).unwrap().memfd;
    (lane, Producer::join(invitation).unwrap(), memfd)
}

fn word(memfd: &OwnedFd, at: u64) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::pread(memfd, &mut bytes, at).unwrap();
    u64::from_le_bytes(bytes)
}

fn write(memfd: &OwnedFd, at: u64, word: u64) {
    rustix::io::pwrite(memfd, &word.to_le_bytes(), at).unwrap();
}

/// Reserves that many positions of one unit each, and never owns their slots.
fn reserve(memfd: &OwnedFd, places: u64) {
    let reserved = word(memfd, RESERVE).wrapping_add(places << 32 | places);
    write(memfd, RESERVE, reserved);
}

/// Reads all there is as a program would; which lanes were closed, and which ended.
fn read_to_the_end(consumer: &mut Consumer) -> (Vec<String>, Vec<Event>) {
    let (mut closed, mut ended) = (Vec::new(), Vec::new());
    while consumer.wait(Duration::from_millis(1)).unwrap() {
        while let Some(frame) = consumer.peek() {
            consumer.release(frame.id).unwrap();
        }
        while let Some(event) = consumer.next_event() {
            match event {
                Event::LaneCorrupt { error, .. } => closed.push(error.to_string()),
                Event::LaneEnded { .. } => ended.push(event),
                _ => {}
            }
        }
    }
    (closed, ended)
}

#[test]
fn places_that_were_reserved_and_left_are_put_aside_also_after_a_clean_leave() {
    let mut consumer = Consumer::new().unwrap();
    let (_, mut producer, memfd) = lane(&mut consumer);
    producer.send(b"before", &FrameInfo::default()).unwrap();
    reserve(&memfd, 3);
    drop(producer);
    let (closed, ended) = read_to_the_end(&mut consumer);
    assert!(closed.is_empty(), "{closed:?}");
    let [Event::LaneEnded { stats, .. }] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((stats.delivered_frames, stats.abandoned_claims, stats.frames_in_flight), (1, 3, 0));
}

#[test]
fn a_process_that_leaves_places_behind_does_not_hide_the_frames_of_others() {
    let mut consumer = Consumer::new().unwrap();
    let (shared, first, memfd) = lane(&mut consumer);
    let mut second = Producer::join(consumer.invite(shared).unwrap()).unwrap();
    reserve(&memfd, 2);
    second.send(b"behind", &FrameInfo::default()).unwrap();
    assert!(consumer.peek().is_none());
    drop(first);
    assert!(consumer.wait(Duration::from_secs(20)).unwrap());
    assert!(matches!(consumer.next_event(), Some(Event::ProducerLeft { clean: true, .. })));
    let frame = consumer.peek().unwrap();
    assert_eq!(consumer.payload(frame.id).unwrap().to_vec(), b"behind");
}

#[test]
fn a_new_consumer_goes_over_what_the_one_before_had_put_aside() {
    let mut old = Consumer::new().unwrap();
    let (shared, first, memfd) = lane(&mut old);
    let mut second = Producer::join(old.invite(shared).unwrap()).unwrap();
    second.send(b"held", &FrameInfo::default()).unwrap();
    reserve(&memfd, 1);
    second.send(b"behind", &FrameInfo::default()).unwrap();
    drop(first);
    assert!(old.peek().is_some());
    old.check_liveness();
    // The dead producer's claim is skipped, but its space stays in use while an earlier frame is
    // held.
    assert!(old.peek().is_some());
    let fds = old.export(shared).unwrap();
    drop(old);

    let mut new = Consumer::new().unwrap();
    new.adopt(fds).unwrap();
    let again: Vec<_> = std::iter::from_fn(|| new.peek()).map(|frame| frame.len).collect();
    assert_eq!(again, [4, 6]);
}

#[test]
fn a_slot_that_may_be_claimed_next_is_not_slept_on() {
    let mut consumer = Consumer::new().unwrap();
    let (shared, first, memfd) = lane(&mut consumer);
    let mut second = Producer::join(consumer.invite(shared).unwrap()).unwrap();
    reserve(&memfd, 1);
    second.send(b"behind", &FrameInfo::default()).unwrap();
    let claiming = ROWS + 128 + 12;
    rustix::io::pwrite(&memfd, &1u32.to_le_bytes(), claiming).unwrap();
    drop(first);
    consumer.check_liveness();
    while consumer.next_event().is_some() {}
    assert!(consumer.peek().is_none());
    assert!(!consumer.arm(), "the end of the claim is not signalled");
    rustix::io::pwrite(&memfd, &0u32.to_le_bytes(), claiming).unwrap();
    assert_eq!(consumer.peek().map(|frame| frame.len), Some(6));
}

#[test]
fn what_cannot_be_put_aside_closes_the_lane_once_all_have_left() {
    type Spoil = fn(&OwnedFd);
    let cases: [(&str, Spoil); 3] = [
        ("neither a claim nor free", |memfd| {
            // Claimed by row 9, but in the turn before.
            write(memfd, SLOTS, 0u64.wrapping_sub(8) << 32 | 9 << 16 | 1);
            reserve(memfd, 1);
        }),
        ("more is reserved than the ring holds", |memfd| reserve(memfd, 100)),
        ("reserved after all had left", |memfd| reserve(memfd, 1 << 31)),
    ];
    for (expect, spoil) in cases {
        let mut consumer = Consumer::new().unwrap();
        let (_, producer, memfd) = lane(&mut consumer);
        spoil(&memfd);
        drop(producer);
        let (closed, ended) = read_to_the_end(&mut consumer);
        assert!(closed.len() == 1 && closed[0].contains(expect), "{closed:?}, expected {expect}");
        assert_eq!(ended.len(), 1, "{expect}");
    }
}

#[test]
fn a_lane_that_is_written_to_after_all_have_left_is_closed() {
    let mut consumer = Consumer::new().unwrap();
    let (_, mut producer, memfd) = lane(&mut consumer);
    producer.send(b"held", &FrameInfo::default()).unwrap();
    let held = consumer.peek().unwrap();
    drop(producer);
    consumer.check_liveness();
    reserve(&memfd, 1);
    let (closed, ended) = read_to_the_end(&mut consumer);
    assert!(closed.len() == 1 && closed[0].contains("after all had left"), "{closed:?}");
    assert!(ended.is_empty(), "a frame is held");
    assert_eq!(consumer.payload(held.id).unwrap().to_vec(), b"held");
    consumer.release(held.id).unwrap();
    assert_eq!(read_to_the_end(&mut consumer).1.len(), 1);
}

#[test]
fn a_consumer_gets_rid_of_a_lane_whose_process_stays() {
    let mut consumer = Consumer::new().unwrap();
    let (unwanted, mut producer, _memfd) = lane(&mut consumer);
    let (_wanted, mut other, _) = lane(&mut consumer);
    producer.send(b"held", &FrameInfo::default()).unwrap();
    let held = consumer.peek().unwrap();
    let forgotten = producer.claim_token(1, &FrameInfo::default()).unwrap().unwrap();
    while producer.send(b"fill", &FrameInfo::default()).unwrap() {}

    let stats = consumer.remove_lane(unwanted).unwrap();
    assert!(stats.closed);
    assert_eq!(stats.frames_in_flight, 8);
    assert!(matches!(consumer.remove_lane(unwanted), Err(RingError::UnknownLane { .. })));
    assert!(matches!(consumer.payload(held.id), Err(RingError::UnknownFrame { .. })));
    assert!(matches!(consumer.release(held.id), Err(RingError::UnknownFrame { .. })));
    assert_eq!(consumer.held(), 0);
    let error = (0..100).find_map(|_| producer.send(b"more", &FrameInfo::default()).err()).unwrap();
    assert!(matches!(error, RingError::Closed), "{error}");
    assert!(!producer.has_consumer());
    let _ = producer.commit(forgotten, 1);

    // It is not watched any more, and the other lane continues.
    assert!(consumer.arm());
    other.send(b"other", &FrameInfo::default()).unwrap();
    assert_eq!(consumer.peek().map(|frame| frame.len), Some(5));
}
