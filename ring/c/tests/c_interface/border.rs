//! Misuse by a C caller (NULLs, ids used twice, numbers out of range) returns codes and messages,
//! never a crash.
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each call breaks or keeps the contract in plain sight"
)]

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use throng_ring_c::ThrongRingStatus as Status;
use throng_ring_c::*;

fn message() -> String {
    unsafe { CStr::from_ptr(throng_ring_error_message()) }.to_str().unwrap().to_owned()
}

fn pair() -> (*mut ThrongRingConsumer, *mut ThrongRingProducer) {
    let (consumer, producer, _) = lane_of_two();
    (consumer, producer)
}

fn lane_of_two() -> (*mut ThrongRingConsumer, *mut ThrongRingProducer, u32) {
    let (mut consumer, mut producer, mut lane, mut fd) = (null_mut(), null_mut(), 0, -1);
    let options = ThrongRingOptions { frame_bytes: 1_000, frames: 4, prefault: 0, huge_pages: 0 };
    unsafe {
        assert_eq!(throng_ring_consumer_new(&mut consumer), Status::Ok);
        assert_eq!(
            throng_ring_consumer_add_lane(consumer, &options, &mut lane, &mut fd),
            Status::Ok
        );
        assert_eq!(throng_ring_producer_join(fd, &mut producer), Status::Ok);
    }
    (consumer, producer, lane)
}

fn no_claim() -> ThrongRingClaim {
    ThrongRingClaim { data: null_mut(), len: 0, id: 0 }
}

fn no_fds() -> ThrongRingLaneFds {
    ThrongRingLaneFds { memfd: -1, frame_event: -1, room_event: -1, sessions: 1 }
}

fn stats(consumer: *const ThrongRingConsumer, lane: u32) -> ThrongRingStats {
    let mut stats = std::mem::MaybeUninit::uninit();
    unsafe {
        let status = throng_ring_consumer_stats(consumer, lane, stats.as_mut_ptr());
        assert_eq!(status, Status::Ok, "{}", message());
        stats.assume_init()
    }
}

#[test]
fn every_null_is_named() {
    let (consumer, producer) = pair();
    let mut claim = no_claim();
    unsafe {
        for (status, named) in [
            (throng_ring_consumer_new(null_mut()), "out"),
            (throng_ring_consumer_add_lane(null_mut(), null(), null_mut(), &mut 0), "consumer"),
            (throng_ring_consumer_add_lane(consumer, null(), null_mut(), &mut 0), "options"),
            (throng_ring_consumer_accept(consumer, 0, null(), null_mut()), "options"),
            (throng_ring_consumer_wait(null_mut(), 0), "consumer"),
            (throng_ring_consumer_set_coalescing(null_mut(), 0), "consumer"),
            (throng_ring_consumer_peek(consumer, null_mut()), "out"),
            (throng_ring_consumer_release(null_mut(), 0), "consumer"),
            (throng_ring_consumer_next_event(consumer, null_mut()), "out"),
            (throng_ring_consumer_arm(null_mut()), "consumer"),
            (throng_ring_consumer_process_events(null_mut()), "consumer"),
            (throng_ring_consumer_invite(consumer, 0, null_mut()), "fd"),
            (throng_ring_consumer_export(consumer, 0, null_mut(), null_mut(), 0), "out"),
            (throng_ring_consumer_export(consumer, 0, &mut no_fds(), null_mut(), 1), "sessions"),
            (throng_ring_consumer_adopt(consumer, null(), null(), null_mut()), "fds"),
            (throng_ring_consumer_adopt(consumer, &no_fds(), null(), null_mut()), "sessions"),
            (throng_ring_consumer_stats(consumer, 0, null_mut()), "out"),
            (throng_ring_stats_open(null(), null_mut()), "path"),
            (throng_ring_producer_connect(null(), &mut null_mut()), "path"),
            (throng_ring_producer_connect(c"x".as_ptr(), null_mut()), "out"),
            (throng_ring_producer_join(0, null_mut()), "out"),
            (throng_ring_producer_join_inherited(null_mut()), "out"),
            (throng_ring_producer_clone(null(), &mut null_mut()), "producer"),
            (throng_ring_producer_set_policy(null_mut(), 0, 0), "producer"),
            (throng_ring_producer_claim(null_mut(), 1, null(), &mut claim), "producer"),
            (throng_ring_producer_claim(producer, 1, null(), null_mut()), "out"),
            (throng_ring_producer_commit(null_mut(), 0, 0), "producer"),
            (throng_ring_producer_abort(null_mut(), 0), "producer"),
            (throng_ring_producer_send(producer, null(), 1, null()), "data"),
            (throng_ring_producer_poll_room(null_mut(), 1), "producer"),
        ] {
            assert_eq!(status, Status::NullPointer, "{named}");
        }
        assert_eq!(throng_ring_producer_send(producer, null(), 1, null()), Status::NullPointer);
        assert_eq!(message(), "data is NULL");
        assert_eq!(throng_ring_producer_frame_bytes_max(null()), 0);
        assert_eq!(
            (throng_ring_producer_room_fd(null()), throng_ring_consumer_event_fd(null())),
            (-1, -1)
        );
        throng_ring_producer_free(null_mut());
        throng_ring_consumer_free(null_mut());
        throng_ring_producer_free(producer);
        throng_ring_consumer_free(consumer);
    }
}

#[test]
fn a_claim_and_a_frame_end_once() {
    let (consumer, producer) = pair();
    let mut claim = no_claim();
    let mut frame = std::mem::MaybeUninit::uninit();
    unsafe {
        assert_eq!(throng_ring_producer_claim(producer, 3, null(), &mut claim), Status::Ok);
        claim.data.copy_from(b"abc".as_ptr(), 3);
        assert_eq!(throng_ring_producer_commit(producer, claim.id, 3), Status::Ok);
        assert_eq!(throng_ring_producer_commit(producer, claim.id, 3), Status::NotOpen);
        assert!(message().contains("committed or aborted before"));
        let old = claim.id;
        assert_eq!(throng_ring_producer_claim(producer, 3, null(), &mut claim), Status::Ok);
        assert_eq!(
            throng_ring_producer_abort(producer, old),
            Status::NotOpen,
            "its place was used anew"
        );
        assert_eq!(throng_ring_producer_commit(producer, claim.id, 4), Status::TooLarge);
        assert_eq!(throng_ring_consumer_peek(consumer, frame.as_mut_ptr()), Status::Ok);
        let frame = frame.assume_init();
        assert_eq!(std::slice::from_raw_parts(frame.data, frame.len), b"abc");
        assert_eq!(throng_ring_consumer_release(consumer, frame.id), Status::Ok);
        assert_eq!(throng_ring_consumer_release(consumer, frame.id), Status::NotOpen);
        let mut none = std::mem::MaybeUninit::uninit();
        assert_eq!(throng_ring_consumer_peek(consumer, none.as_mut_ptr()), Status::Empty);
        throng_ring_producer_free(producer);
        throng_ring_consumer_free(consumer);
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let (consumer, producer) = pair();
    unsafe {
        assert_eq!(throng_ring_producer_set_policy(producer, 9, 0), Status::InvalidArgument);
        assert_eq!(message(), "there is no policy 9: see ThrongRingPolicy");
        let max = throng_ring_producer_frame_bytes_max(producer);
        assert_eq!(
            throng_ring_producer_claim(producer, max + 1, null(), &mut no_claim()),
            Status::TooLarge
        );
        assert_eq!(throng_ring_producer_join(-1, &mut null_mut()), Status::InvalidArgument);
        let options = ThrongRingOptions {
            frame_bytes: usize::MAX,
            frames: u32::MAX,
            prefault: 0,
            huge_pages: 0,
        };
        let status = throng_ring_consumer_add_lane(consumer, &options, null_mut(), &mut 0);
        assert_eq!(status, Status::InvalidArgument, "{}", message());
        throng_ring_consumer_free(consumer);
        let send = || throng_ring_producer_send(producer, [0; 30_000].as_ptr(), 30_000, null());
        assert!((0..10).any(|_| send() == Status::ConsumerGone), "a full ring finds out");
        assert!(message().contains("the consumer has gone"), "{}", message());
        throng_ring_producer_free(producer);
    }
}

#[test]
fn a_second_producer_process_is_invited_to_a_lane() {
    let (consumer, first, lane) = lane_of_two();
    let (mut second, mut fd) = (null_mut(), -1);
    unsafe {
        assert_eq!(throng_ring_consumer_invite(consumer, 99, &mut fd), Status::NotOpen);
        assert_eq!(throng_ring_consumer_invite(consumer, lane, &mut fd), Status::Ok);
        assert_eq!(throng_ring_producer_join(fd, &mut second), Status::Ok);
        for producer in [first, second] {
            assert_eq!(throng_ring_producer_send(producer, b"x".as_ptr(), 1, null()), Status::Ok);
        }
        let reported = stats(consumer, lane);
        assert_eq!(
            (reported.producers, reported.committed_frames, reported.frames_in_flight),
            (2, 2, 2)
        );
        throng_ring_producer_free(first);
        throng_ring_producer_free(second);
        throng_ring_consumer_free(consumer);
    }
}

#[test]
fn a_new_consumer_continues_where_one_stopped() {
    let (old, producer, old_lane) = lane_of_two();
    let mut new = null_mut();
    let (mut fds, mut session, mut lane) =
        (no_fds(), ThrongRingSession { session: 0, fd: -1 }, u32::MAX);
    let mut frame = std::mem::MaybeUninit::uninit();
    unsafe {
        for byte in [1u8, 2] {
            assert_eq!(throng_ring_producer_send(producer, &byte, 1, null()), Status::Ok);
        }
        assert_eq!(throng_ring_consumer_peek(old, frame.as_mut_ptr()), Status::Ok);
        assert_eq!(throng_ring_consumer_release(old, frame.assume_init_ref().id), Status::Ok);

        let status = throng_ring_consumer_export(old, old_lane, &mut fds, null_mut(), 0);
        assert_eq!(
            (status, fds.sessions, fds.memfd),
            (Status::InvalidArgument, 1, -1),
            "{}",
            message()
        );
        assert_eq!(
            throng_ring_consumer_export(old, old_lane, &mut fds, &mut session, 1),
            Status::Ok
        );
        assert_eq!(throng_ring_consumer_new(&mut new), Status::Ok);
        throng_ring_consumer_free(old);
        assert_eq!(
            throng_ring_consumer_adopt(new, &fds, &session, &mut lane),
            Status::Ok,
            "{}",
            message()
        );

        assert_eq!(throng_ring_consumer_peek(new, frame.as_mut_ptr()), Status::Ok);
        let frame = frame.assume_init();
        assert_eq!((frame.sequence, *frame.data, frame.lane), (1, 2, lane));
        assert_eq!(
            throng_ring_producer_send(producer, &3, 1, null()),
            Status::Ok,
            "it did not notice"
        );
        assert_eq!(stats(new, lane).consumer_epoch, 2);
        throng_ring_producer_free(producer);
        throng_ring_consumer_free(new);
    }
}

#[test]
fn a_lane_whose_consumer_lives_is_not_adopted() {
    let (old, producer, old_lane) = lane_of_two();
    let mut new = null_mut();
    let (mut fds, mut session) = (no_fds(), ThrongRingSession { session: 0, fd: -1 });
    unsafe {
        let negative = throng_ring_consumer_adopt(old, &no_fds(), &session, null_mut());
        assert_eq!(negative, Status::InvalidArgument, "{}", message());
        assert_eq!(
            throng_ring_consumer_export(old, old_lane, &mut fds, &mut session, 1),
            Status::Ok
        );
        assert_eq!(throng_ring_consumer_new(&mut new), Status::Ok);
        assert_eq!(throng_ring_consumer_adopt(new, &fds, &session, null_mut()), Status::InUse);
        for handle in [old, new] {
            throng_ring_consumer_free(handle);
        }
        throng_ring_producer_free(producer);
    }
}

#[test]
fn drops_are_reported_by_reason_also_to_a_third_process() {
    let (consumer, producer, lane) = lane_of_two();
    unsafe {
        let send = |len| throng_ring_producer_send(producer, [0; 40_000].as_ptr(), len, null());
        assert_eq!(send(40_000), Status::TooLarge);
        let dropped = (0..100).filter(|_| send(30_000) == Status::Dropped).count() as u64;
        let reported = stats(consumer, lane);
        assert_eq!((reported.dropped_too_large, reported.dropped_full), (1, dropped));
        assert_eq!(reported.committed_bytes, 30_000 * (100 - dropped));

        let (mut fds, mut session) = (no_fds(), ThrongRingSession { session: 0, fd: -1 });
        assert_eq!(
            throng_ring_consumer_export(consumer, lane, &mut fds, &mut session, 1),
            Status::Ok
        );
        let path = std::ffi::CString::new(format!("/proc/self/fd/{}", fds.memfd)).unwrap();
        let mut opened = std::mem::MaybeUninit::uninit();
        assert_eq!(
            throng_ring_stats_open(path.as_ptr(), opened.as_mut_ptr()),
            Status::Ok,
            "{}",
            message()
        );
        assert_eq!(opened.assume_init(), reported);
        assert_eq!(
            throng_ring_stats_open(c"/dev/null".as_ptr(), opened.as_mut_ptr()),
            Status::NotARing
        );
        throng_ring_producer_free(producer);
        throng_ring_consumer_free(consumer);
    }
}

#[test]
fn huge_pages_can_be_asked_for() {
    let (mut consumer, mut lane, mut fd) = (null_mut(), 0, -1);
    let options = ThrongRingOptions { frame_bytes: 1 << 20, frames: 4, prefault: 1, huge_pages: 1 };
    unsafe {
        assert_eq!(throng_ring_consumer_new(&mut consumer), Status::Ok);
        assert_eq!(
            throng_ring_consumer_add_lane(consumer, &options, &mut lane, &mut fd),
            Status::Ok
        );
        assert_eq!(stats(consumer, lane).arena_bytes, 4 << 20);
        throng_ring_consumer_free(consumer);
    }
}
