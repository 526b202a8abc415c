//! The library as a user sees it, both sides in one process: policies, fairness, restarts, errors.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use throng_ring::{
    Consumer, DropReason, Event, Flags, Frame, FrameInfo, LaneStats, Policy, Producer, RingError,
    RingOptions,
};

/// 64 KiB, 8 frames.
fn small() -> RingOptions {
    RingOptions::with_size(65_536, 8)
}

fn pair() -> (Consumer, Producer) {
    let mut consumer = Consumer::new().unwrap();
    let (_, invitation) = consumer.add_lane(&small()).unwrap();
    (consumer, Producer::join(invitation).unwrap())
}

fn of_stream(stream: u32) -> FrameInfo {
    FrameInfo { stream, ..FrameInfo::default() }
}

fn key() -> FrameInfo {
    FrameInfo { flags: Flags::KEYFRAME, ..FrameInfo::default() }
}

fn all(consumer: &mut Consumer) -> Vec<Frame> {
    std::iter::from_fn(|| consumer.peek()).collect()
}

fn text(consumer: &Consumer, frame: &Frame) -> String {
    String::from_utf8(consumer.payload(frame.id).unwrap().to_vec()).unwrap()
}

#[test]
fn a_frame_arrives_as_it_was_sent() {
    let (mut consumer, mut producer) = pair();
    let info = FrameInfo {
        stream: 5,
        kind: 9,
        flags: Flags::KEYFRAME,
        timestamp_ns: 77,
        user_data: 1 << 60,
    };
    let mut claim = producer.claim(100, &info).unwrap().unwrap();
    claim.bytes_mut()[..5].copy_from_slice(b"hello");
    claim.commit_len(5).unwrap();
    assert!(consumer.wait(Duration::ZERO).unwrap());
    let frame = consumer.peek().unwrap();
    assert_eq!((frame.info, frame.len, frame.sequence), (info, 5, 0));
    assert_eq!(text(&consumer, &frame), "hello");
    assert_eq!(consumer.payload(frame.id).unwrap().as_ptr() as usize % 64, 0);
    consumer.release(frame.id).unwrap();
    assert!(matches!(consumer.release(frame.id), Err(RingError::UnknownFrame { .. })));
    assert!(matches!(consumer.payload(frame.id), Err(RingError::UnknownFrame { .. })));
    assert!(consumer.peek().is_none());
}

#[test]
fn a_claim_that_is_dropped_is_aborted() {
    let (mut consumer, mut producer) = pair();
    drop(producer.claim(10, &of_stream(0)).unwrap().unwrap());
    producer.send(b"next", &of_stream(0)).unwrap();
    let frame = consumer.peek().unwrap();
    assert_eq!((text(&consumer, &frame).as_str(), frame.sequence), ("next", 1), "the gap shows");
    assert!(frame.info.flags.contains(Flags::DISCONTINUITY));
    assert_eq!(consumer.stats(frame.lane).unwrap().producers[0].aborted_frames, 1);
}

#[test]
fn frames_of_up_to_half_the_ring_are_contiguous_wherever_they_start() {
    let (mut consumer, mut producer) = pair();
    let max = producer.frame_bytes_max();
    assert_eq!(max, 32_768);
    for turn in 0..50u8 {
        let len = max - usize::from(turn) * 331;
        assert!(producer.send(&vec![turn; len], &of_stream(0)).unwrap());
        let frame = consumer.peek().unwrap();
        assert_eq!(consumer.payload(frame.id).unwrap().to_vec(), vec![turn; len]);
        consumer.release(frame.id).unwrap();
    }
    let error = producer.send(&vec![0; max + 1], &of_stream(0)).unwrap_err();
    assert!(error.to_string().contains("up to 32768 bytes"), "{error}");
}

#[test]
fn several_claims_may_be_open_and_end_in_any_order() {
    let (mut consumer, mut producer) = pair();
    let mut tokens: Vec<_> = (0..3)
        .map(|stream| producer.claim_token(8, &of_stream(stream)).unwrap().unwrap())
        .collect();
    producer.commit(tokens.remove(2), 8).unwrap();
    producer.abort(tokens.remove(1)).unwrap();
    assert!(consumer.peek().is_none(), "the first is open");
    let error = {
        let token = tokens.remove(0);
        producer.commit(token, 9).unwrap_err()
    };
    assert!(matches!(error, RingError::CommitTooLong { len: 9, claimed: 8 }));
    let streams: Vec<u32> = all(&mut consumer).iter().map(|frame| frame.info.stream).collect();
    assert_eq!(streams, [2], "a claim that was committed too long is aborted");
}

/// Fills the ring, then sends one more under each policy: which frame is lost, and under which
/// reason.
#[test]
fn every_policy_loses_what_it_says_and_counts_it() {
    for (policy, reason, left) in [
        (Policy::DropNewest, DropReason::Full, ["0", "1", "2", "3", "4", "5", "6", "7"]),
        (
            Policy::Wait { timeout: Duration::ZERO },
            DropReason::TimedOut,
            ["0", "1", "2", "3", "4", "5", "6", "7"],
        ),
        (Policy::DropUntilKeyframe, DropReason::Full, ["0", "1", "2", "3", "4", "5", "6", "7"]),
        (Policy::DropOldest, DropReason::Evicted, ["1", "2", "3", "4", "5", "6", "7", "8"]),
    ] {
        let (mut consumer, mut producer) = pair();
        producer.set_policy(policy);
        for number in 0..9 {
            let sent = producer.send(number.to_string().as_bytes(), &key()).unwrap();
            assert_eq!(sent, number < 8 || policy == Policy::DropOldest, "{policy:?}: {number}");
        }
        let lane = consumer.lanes().next().unwrap();
        let stats = consumer.stats(lane).unwrap();
        for other in DropReason::ALL {
            assert_eq!(stats.dropped(other), u64::from(other == reason), "{policy:?}: {other}");
        }
        let frames = all(&mut consumer);
        let texts: Vec<String> = frames.iter().map(|frame| text(&consumer, frame)).collect();
        assert_eq!(texts, left, "{policy:?}");
    }
}

#[test]
fn until_a_keyframe_only_the_stream_that_lost_one_is_dropped() {
    let (mut consumer, mut producer) = pair();
    producer.set_policy(Policy::DropUntilKeyframe);
    for _ in 0..8 {
        assert!(producer.send(b"fill", &of_stream(1)).unwrap());
    }
    assert!(!producer.send(b"lost", &of_stream(1)).unwrap());
    for frame in all(&mut consumer) {
        consumer.release(frame.id).unwrap();
    }
    assert!(!producer.send(b"delta", &of_stream(1)).unwrap(), "no key frame");
    assert!(producer.send(b"other", &of_stream(2)).unwrap(), "lost nothing");
    let keyframe = FrameInfo { flags: Flags::KEYFRAME, ..of_stream(1) };
    assert!(producer.send(b"key", &keyframe).unwrap());
    assert!(producer.send(b"delta", &of_stream(1)).unwrap());
    let frames = all(&mut consumer);
    let seen: Vec<_> = frames
        .iter()
        .map(|f| (text(&consumer, f), f.sequence, f.info.flags.contains(Flags::DISCONTINUITY)))
        .collect();
    let expect = [("other", 0, false), ("key", 10, true), ("delta", 11, false)];
    assert_eq!(seen, expect.map(|(text, sequence, gap)| (text.to_owned(), sequence, gap)));
    let stats = consumer.stats(frames[0].lane).unwrap();
    assert_eq!((stats.dropped(DropReason::Full), stats.dropped(DropReason::UntilKeyframe)), (1, 1));
}

#[test]
fn what_the_consumer_holds_is_never_evicted() {
    let (mut consumer, mut producer) = pair();
    producer.set_policy(Policy::DropOldest);
    for number in 0..8 {
        producer.send(number.to_string().as_bytes(), &key()).unwrap();
    }
    let held = consumer.peek().unwrap();
    assert!(!producer.send(b"8", &key()).unwrap());
    assert_eq!(text(&consumer, &held), "0");
    assert_eq!(consumer.stats(held.lane).unwrap().dropped(DropReason::HeldByConsumer), 1);
    consumer.release(held.id).unwrap();
    assert!(producer.send(b"9", &key()).unwrap());
}

#[test]
fn a_waiting_producer_continues_when_there_is_room() {
    let (mut consumer, mut producer) = pair();
    producer.set_policy(Policy::Wait { timeout: Duration::MAX });
    let writer = std::thread::spawn(move || {
        for number in 0..10_000u32 {
            assert!(producer.send(&number.to_le_bytes(), &of_stream(0)).unwrap());
        }
    });
    for number in 0..10_000u32 {
        let frame = loop {
            match consumer.peek() {
                Some(frame) => break frame,
                None => {
                    assert!(consumer.wait(Duration::from_secs(20)).unwrap(), "stalled at {number}");
                }
            }
        };
        assert_eq!(consumer.payload(frame.id).unwrap().to_vec(), number.to_le_bytes());
        consumer.release(frame.id).unwrap();
    }
    writer.join().unwrap();
}

#[test]
fn threads_of_a_process_share_a_lane() {
    let (mut consumer, first) = pair();
    let mut handles: Vec<Producer> = (0..3).map(|_| first.try_clone().unwrap()).collect();
    handles.push(first);
    std::thread::scope(|scope| {
        for (thread, mut producer) in handles.into_iter().enumerate() {
            scope.spawn(move || {
                producer.set_policy(Policy::Wait { timeout: Duration::MAX });
                for number in 0..2_000u32 {
                    let bytes = vec![number as u8; 1 + number as usize % 3_000];
                    assert!(producer.send(&bytes, &of_stream(thread as u32)).unwrap());
                }
            });
        }
        let mut next = [0u64; 4];
        while next.iter().sum::<u64>() < 8_000 {
            let Some(frame) = consumer.peek() else {
                assert!(consumer.wait(Duration::from_secs(20)).unwrap());
                while consumer.next_event().is_some() {}
                continue;
            };
            let expect = &mut next[frame.info.stream as usize];
            assert_eq!(frame.sequence, *expect, "each producer's frames stay in order");
            let bytes = consumer.payload(frame.id).unwrap().to_vec();
            assert_eq!(bytes, vec![*expect as u8; 1 + *expect as usize % 3_000]);
            *expect += 1;
            consumer.release(frame.id).unwrap();
        }
    });
}

#[test]
fn lanes_take_turns_by_bytes() {
    let mut consumer = Consumer::new().unwrap();
    let options = RingOptions::with_size(1 << 22, 4_096);
    let mut producers: Vec<Producer> =
        (0..3).map(|_| Producer::join(consumer.add_lane(&options).unwrap().1).unwrap()).collect();
    // As much from each; one in packets, one in large frames, one in between.
    for (producer, (len, count)) in
        producers.iter_mut().zip([(1_000, 1_500), (500_000, 3), (50_000, 30)])
    {
        for _ in 0..count {
            assert!(producer.send(&vec![1; len], &of_stream(0)).unwrap());
        }
    }
    let mut bytes = std::collections::BTreeMap::new();
    while bytes.values().sum::<usize>() < 2_250_000 {
        let frame = consumer.peek().unwrap();
        *bytes.entry(frame.lane).or_insert(0) += frame.len;
        consumer.release(frame.id).unwrap();
    }
    let (least, most) = (bytes.values().min().unwrap(), bytes.values().max().unwrap());
    assert!(bytes.len() == 3 && *most < 2 * *least, "{bytes:?}");
}

#[test]
fn a_lane_ends_when_its_producers_have_gone_and_all_is_read() {
    let (mut consumer, mut producer) = pair();
    producer.send(b"last", &of_stream(0)).unwrap();
    drop(producer);
    assert!(consumer.wait(Duration::from_secs(5)).unwrap());
    let frame = consumer.peek().unwrap();
    consumer.check_liveness();
    assert!(matches!(consumer.next_event(), Some(Event::ProducerLeft { clean: true, .. })));
    assert!(consumer.next_event().is_none(), "a frame is held");
    assert_eq!(text(&consumer, &frame), "last");
    consumer.release(frame.id).unwrap();
    let Some(Event::LaneEnded { stats, lane }) = consumer.next_event() else {
        panic!("the lane did not end")
    };
    assert_eq!(
        (stats.committed_frames(), stats.delivered_frames, stats.frames_in_flight),
        (1, 1, 0)
    );
    assert_eq!(consumer.lanes().count(), 0);
    assert!(matches!(consumer.stats(lane), Err(RingError::UnknownLane { .. })));
    let (again, _invitation) = consumer.add_lane(&small()).unwrap();
    assert_ne!(again, lane, "an old number names no new lane");
}

#[test]
fn a_byte_on_the_socket_hides_no_end() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let mut consumer = Consumer::new().unwrap();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let lane = consumer.accept(ours, &small()).unwrap();
    let producer = Producer::join(theirs.try_clone().unwrap()).unwrap();
    theirs.write_all(b"x").unwrap();
    consumer.check_liveness();
    assert!(consumer.next_event().is_none(), "it lives");
    drop((producer, theirs));
    consumer.check_liveness();
    assert!(matches!(consumer.next_event(), Some(Event::ProducerLeft { clean: true, .. })));
    assert!(
        matches!(consumer.next_event(), Some(Event::LaneEnded { lane: ended, .. }) if ended == lane)
    );

    // The other direction: extra bytes from the consumer's side do not keep it alive.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    consumer.accept(ours.try_clone().unwrap(), &small()).unwrap();
    let producer = Producer::join(theirs).unwrap();
    ours.write_all(b"x").unwrap();
    assert!(producer.has_consumer());
    drop((consumer, ours));
    assert!(!producer.has_consumer());
}

#[test]
fn a_consumer_continues_where_the_dead_one_stopped() {
    let (mut old, mut producer) = pair();
    for number in 0..4 {
        producer.send(number.to_string().as_bytes(), &key()).unwrap();
    }
    let frames = all(&mut old);
    old.release(frames[0].id).unwrap();
    old.release(frames[2].id).unwrap();
    let fds = old.export(frames[0].lane).unwrap();
    let mut new = Consumer::new().unwrap();
    let error = new.adopt(old.export(frames[0].lane).unwrap()).unwrap_err();
    let pid = std::process::id().to_string();
    assert!(
        matches!(error, RingError::ConsumerAttached { .. }) && error.to_string().contains(&pid),
        "{error}"
    );
    drop(old);
    assert!(producer.has_consumer(), "a supervisor holds the socket");
    producer.send(b"meanwhile", &key()).unwrap();
    let lane = new.adopt(fds).unwrap();
    let again: Vec<_> =
        all(&mut new).iter().map(|frame| (text(&new, frame), frame.sequence)).collect();
    let expect = [("1", 1), ("3", 3), ("meanwhile", 4)].map(|(t, s)| (t.to_owned(), s));
    assert_eq!(again, expect, "not released means delivered again");
    assert_eq!(new.stats(lane).unwrap().consumer_epoch, 2);
    producer.send(b"after", &key()).unwrap();
    assert!(new.peek().is_some());
}

/// A lane of 64 frames, which are published eight at a time; five were sent, read and released.
fn lane_with_five_held_back() -> (Consumer, Producer, LaneStats) {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 64)).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    for _ in 0..5 {
        producer.send(b"small", &of_stream(0)).unwrap();
        let frame = consumer.peek().unwrap();
        consumer.release(frame.id).unwrap();
    }
    let stats = consumer.stats(lane).unwrap();
    (consumer, producer, stats)
}

#[test]
fn small_frames_become_free_in_runs_and_at_the_latest_when_nothing_is_left() {
    let in_flight = |consumer: &Consumer| {
        let lane = consumer.lanes().next().unwrap();
        consumer.stats(lane).unwrap().frames_in_flight
    };
    let (mut consumer, mut producer, stats) = lane_with_five_held_back();
    assert_eq!((stats.frames_in_flight, stats.delivered_frames), (5, 5));
    assert!(consumer.peek().is_none());
    assert_eq!(in_flight(&consumer), 5, "at its producer's heels");
    assert!(consumer.peek().is_none());
    assert_eq!(in_flight(&consumer), 0, "idle");
    for _ in 0..8 {
        producer.send(b"small", &of_stream(0)).unwrap();
    }
    all(&mut consumer).iter().for_each(|frame| consumer.release(frame.id).unwrap());
    assert_eq!(in_flight(&consumer), 0, "a run of eight");

    let (mut consumer, _producer, _) = lane_with_five_held_back();
    assert!(!consumer.wait(Duration::ZERO).unwrap());
    assert_eq!(in_flight(&consumer), 0, "about to sleep");
    let (mut consumer, _producer, _) = lane_with_five_held_back();
    assert!(consumer.arm());
    assert_eq!(in_flight(&consumer), 0, "about to poll");

    let (mut consumer, mut producer, _) = lane_with_five_held_back();
    producer.send(b"small", &of_stream(0)).unwrap();
    let frame = consumer.peek().unwrap();
    assert!(consumer.arm());
    assert_eq!(in_flight(&consumer), 1);
    consumer.release(frame.id).unwrap();
    assert_eq!(in_flight(&consumer), 0, "polls already, and may not be woken before there is room");

    let (mut consumer, mut producer, _) = lane_with_five_held_back();
    while producer.send(b"small", &of_stream(0)).unwrap() {}
    assert!(!producer.poll_room(5).unwrap());
    let frame = consumer.peek().unwrap();
    consumer.release(frame.id).unwrap();
    assert_eq!(in_flight(&consumer), 58, "reported to the waiting consumer");

    let (mut consumer, mut producer, _) = lane_with_five_held_back();
    producer.set_policy(Policy::DropOldest);
    producer.send(b"small", &of_stream(0)).unwrap();
    let frame = consumer.peek().unwrap();
    consumer.release(frame.id).unwrap();
    assert_eq!(in_flight(&consumer), 0, "nothing stands in an evicter's way");

    let (consumer, _producer, stats) = lane_with_five_held_back();
    let kept = consumer.export(consumer.lanes().next().unwrap()).unwrap();
    drop(consumer);
    let left = LaneStats::read(kept.memfd.as_fd()).unwrap();
    assert_eq!(
        (stats.frames_in_flight, left.frames_in_flight),
        (5, 0),
        "nothing comes again after a clean end"
    );
}

#[test]
fn a_lane_that_waits_for_its_turn_still_signals_its_free_slots() {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(16 << 20, 64)).unwrap();
    let (_, _other) = consumer.add_lane(&small()).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    // Less than an eighth of the lane, and far more than one turn's share.
    producer.send(&[0; 1_500_000], &key()).unwrap();
    let frame = consumer.peek().unwrap();
    consumer.release(frame.id).unwrap();
    assert!(consumer.peek().is_none());
    assert!(consumer.peek().is_none());
    assert_eq!(consumer.stats(lane).unwrap().frames_in_flight, 0);
}

#[test]
fn a_producer_that_outlives_its_consumer_is_notified() {
    for policy in [Policy::DropNewest, Policy::DropOldest, Policy::Wait { timeout: Duration::MAX }]
    {
        let (consumer, mut producer) = pair();
        producer.set_policy(policy);
        drop(consumer);
        assert!(!producer.has_consumer());
        let error = (0..10_000).find_map(|_| producer.send(b"frame", &key()).err()).unwrap();
        assert!(
            matches!(error, RingError::ConsumerGone { unread_frames: 1..=8 }),
            "{policy:?}: {error:?}"
        );
    }
}

fn readable(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default())).unwrap() == 1
}

#[test]
fn while_both_sides_are_awake_neither_sleeps_or_wakes() {
    let (mut consumer, mut producer) = pair();
    producer.set_policy(Policy::Wait { timeout: Duration::MAX });
    for number in 0..1_000u32 {
        assert!(producer.send(&number.to_le_bytes(), &key()).unwrap());
        let frame = consumer.peek().unwrap();
        consumer.release(frame.id).unwrap();
    }
    let stats = consumer.stats(consumer.lanes().next().unwrap()).unwrap();
    assert_eq!((stats.consumer_sleeps, stats.consumer_wakes), (0, 0));
    assert_eq!((stats.producers[0].sleeps, stats.producers[0].wakes), (0, 0));
}

/// Sends so many frames, one each `gap`, to a consumer that coalesces; how often it slept until it
/// was woken.
fn sleeps_behind(gap: Duration, frames: u64, coalescing: Duration) -> u64 {
    let mut consumer = Consumer::new().unwrap();
    consumer.set_coalescing(coalescing);
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 1_024)).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    let sending = std::thread::spawn(move || {
        for _ in 0..frames {
            std::thread::sleep(gap);
            assert!(producer.send(b"frame", &key()).unwrap());
        }
        producer
    });
    let mut expected = 0;
    while expected < frames {
        assert!(consumer.wait(Duration::from_secs(60)).unwrap());
        while let Some(frame) = consumer.peek() {
            assert_eq!(frame.sequence, expected);
            consumer.release(frame.id).unwrap();
            expected += 1;
        }
    }
    let _producer = sending.join().unwrap();
    consumer.stats(lane).unwrap().consumer_sleeps
}

#[test]
fn a_consumer_that_may_be_late_is_woken_for_few_of_many_frames_and_for_each_of_few() {
    let often = Duration::from_micros(200);
    let woken_for_each = sleeps_behind(often, 500, Duration::ZERO);
    let coalesced = sleeps_behind(often, 500, Duration::from_millis(20));
    assert!(
        coalesced * 3 < woken_for_each,
        "{coalesced} and {woken_for_each} sleeps for 500 frames"
    );
    let seldom = sleeps_behind(Duration::from_millis(20), 10, Duration::from_millis(1));
    assert!(seldom >= 5, "{seldom} sleeps for 10 frames");
}

#[test]
fn one_wake_up_serves_a_quarter_of_the_ring() {
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 64)).unwrap();
    let mut producer = Producer::join(invitation).unwrap();
    while producer.send(b"fill", &key()).unwrap() {}
    assert!(!producer.poll_room(4).unwrap());
    for released in 1..=16 {
        let frame = consumer.peek().unwrap();
        consumer.release(frame.id).unwrap();
        assert_eq!(readable(producer.room_event()), released == 16, "{released} of 64");
    }
    assert_eq!(consumer.stats(lane).unwrap().consumer_wakes, 1);
}

/// The consumer holds nearly all frames and goes to sleep: a producer that can use the remaining
/// room is woken, and does not have to wait for its own timer of 100 ms.
#[test]
fn both_sides_never_sleep_while_there_is_room() {
    type Sleep = fn(&mut Consumer);
    let ways: [(&str, Sleep); 3] = [
        ("wait", |consumer| assert!(!consumer.wait(Duration::from_millis(1)).unwrap())),
        ("wait for no time", |consumer| assert!(!consumer.wait(Duration::ZERO).unwrap())),
        ("arm", |consumer| assert!(consumer.arm())),
    ];
    for (way, sleep) in ways {
        let (mut consumer, mut producer) = pair();
        while producer.send(b"fill", &key()).unwrap() {}
        assert!(!producer.poll_room(4).unwrap());
        let mut held: Vec<Frame> = (0..7).map(|_| consumer.peek().unwrap()).collect();
        consumer.release(held.remove(0).id).unwrap();
        assert!(!readable(producer.room_event()), "one of eight, and there is more to peek");
        consumer.peek().unwrap();
        sleep(&mut consumer);
        assert!(readable(producer.room_event()), "{way}");
        assert!(producer.send(b"room", &key()).unwrap());
        assert!(consumer.wait(Duration::from_secs(20)).unwrap());
    }
}

#[test]
fn an_event_loop_is_woken_by_a_descriptor() {
    let (mut consumer, mut producer) = pair();
    for round in 0..3 {
        assert!(consumer.arm());
        assert!(!readable(consumer.event_fd()), "{round}");
        producer.send(b"frame", &key()).unwrap();
        assert!(readable(consumer.event_fd()), "{round}");
        consumer.process_events().unwrap();
        assert!(!readable(consumer.event_fd()), "{round}");
        assert!(!consumer.arm(), "there is a frame already");
        let frame = consumer.peek().unwrap();
        consumer.release(frame.id).unwrap();
    }
    while producer.send(b"fill", &key()).unwrap() {}
    assert!(!producer.poll_room(5).unwrap());
    assert!(!readable(producer.room_event()));
    for frame in all(&mut consumer) {
        consumer.release(frame.id).unwrap();
    }
    assert!(readable(producer.room_event()));
    assert!(producer.poll_room(5).unwrap());
    drop(producer);
    assert!(readable(consumer.event_fd()), "an end is news too");
}

#[test]
fn statistics_are_read_by_anybody_with_the_descriptor() {
    let (mut consumer, mut producer) = pair();
    for _ in 0..3 {
        producer.send(&[0; 100], &key()).unwrap();
    }
    let frame = consumer.peek().unwrap();
    consumer.release(frame.id).unwrap();
    let mine = throng_ring::rings_of_process(std::process::id()).unwrap();
    let stats: Vec<LaneStats> = mine.iter().filter_map(|path| LaneStats::open(path).ok()).collect();
    let expect = consumer.stats(frame.lane).unwrap();
    assert!(stats.contains(&expect), "{stats:?}");
    assert_eq!((expect.delivered_frames, expect.delivered_bytes), (1, 100));
    assert_eq!((expect.frames_in_flight, expect.bytes_in_flight), (2, 256));
    assert_eq!((expect.committed_frames(), expect.producers[0].committed_bytes), (3, 300));
}

/// A memfd with this content, with these seals.
fn memfd(content: &[u8], size: u64, seals: SealFlags) -> OwnedFd {
    let fd =
        rustix::fs::memfd_create("not-a-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .unwrap();
    rustix::fs::ftruncate(&fd, size).unwrap();
    rustix::io::pwrite(&fd, content, 0).unwrap();
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}

#[test]
fn what_is_no_ring_is_refused_with_the_mend() {
    let (consumer, _producer) = pair();
    let lane = consumer.lanes().next().unwrap();
    let good = consumer.export(lane).unwrap().memfd;
    let mut header = [0u8; 48];
    rustix::io::pread(&good, &mut header, 0).unwrap();
    let size = 2 * 65_536;
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = header;
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
    let cases: Vec<(OwnedFd, &str)> = vec![
        (file, "not a memfd"),
        (memfd(&header, size, SealFlags::SHRINK), "lacks the seals GROW|SEAL"),
        (memfd(&header, size, SealFlags::GROW | SealFlags::SEAL), "lacks the seals SHRINK"),
        (memfd(&header, 20, all), "it was cut"),
        (memfd(&header, size - 4096, all), "it was cut"),
        (memfd(&with(0, b"RIFF"), size, all), "no ring here"),
        (memfd(&with(8, &[1, 0]), size, all), "layout version 1, this library supports 2"),
        (memfd(&with(16, &7u32.to_le_bytes()), size, all), "slots is 7: must be a power of two"),
        (memfd(&with(16, &0u32.to_le_bytes()), size, all), "slots is 0"),
        (memfd(&with(16, &(1u32 << 17).to_le_bytes()), size, all), "slots is 131072"),
        (memfd(&with(20, &128u32.to_le_bytes()), size, all), "unit_bytes is 128"),
        (memfd(&with(24, &4096u64.to_le_bytes()), size, all), "arena_offset is 4096"),
        (memfd(&with(32, &(1u64 << 60).to_le_bytes()), size, all), "arena_bytes is"),
        (memfd(&with(32, &u64::MAX.to_le_bytes()), size, all), "arena_bytes is"),
        (memfd(&with(32, &(1u64 << 20).to_le_bytes()), size, all), "needs 1114112"),
        (memfd(&with(12, &33u32.to_le_bytes()), size, all), "rows is 33"),
    ];
    for (fd, expect) in cases {
        let error = LaneStats::read(fd.as_fd()).unwrap_err();
        assert!(error.to_string().contains(expect), "{error}\nexpected {expect}");
        let mut fds = consumer.export(lane).unwrap();
        fds.memfd = fd;
        let error = Consumer::new().unwrap().adopt(fds).unwrap_err();
        assert!(error.to_string().contains(expect), "{error}\nexpected {expect}");
    }
}

#[test]
fn what_comes_over_the_socket_is_checked_too() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let join = |message: &[u8]| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(message).unwrap();
        drop(ours);
        Producer::join(theirs).unwrap_err().to_string()
    };
    assert!(join(b"").contains("the consumer closed the socket"));
    assert!(join(b"HTTP/1.1 400").contains("another size"));
    assert!(join(&[0x55; 32]).contains("no ring here"));
    let mut hello = [0u8; 32];
    hello[..8].copy_from_slice(b"THRNGRNG");
    assert!(join(&hello).contains("layout version 0, this library supports 2"));
    hello[8] = 2;
    assert!(join(&hello).contains("session 0"));
    hello[12] = 1;
    assert!(join(&hello).contains("three descriptors"));
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert!(Producer::join(file).unwrap_err().to_string().contains("no socket"));
    let error = Producer::connect("/nonexistent/ring.sock").unwrap_err();
    assert!(error.to_string().contains("connecting to the consumer's socket failed"), "{error}");
    let error = Producer::join_inherited().unwrap_err();
    assert!(error.to_string().contains("THRONG_RING_FD"), "{error}");
}

#[test]
fn a_ring_travels_over_a_socket_with_a_path() {
    use std::os::unix::net::UnixListener;
    let folder = std::env::temp_dir().join(format!("throng-ring-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("ring.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let producer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut producer = Producer::connect(path).unwrap();
            producer.send(b"over a path", &key()).unwrap();
        }
    });
    let mut consumer = Consumer::new().unwrap();
    consumer.accept(listener.accept().unwrap().0, &small()).unwrap();
    producer.join().unwrap();
    let frame = consumer.peek().unwrap();
    assert_eq!(text(&consumer, &frame), "over a path");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_table_without_free_rows_is_an_error() {
    let (_consumer, first) = pair();
    let mut others: Vec<Producer> = (1..32).map(|_| first.try_clone().unwrap()).collect();
    assert!(matches!(first.try_clone(), Err(RingError::TooManyProducers { max: 32 })));
    others.pop();
    assert!(first.try_clone().is_ok());
}
