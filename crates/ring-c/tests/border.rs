//! What a careless C caller can do: NULLs, ids twice, numbers out of range. Codes and sentences, never a crash.
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
    let (mut consumer, mut producer, mut fd) = (null_mut(), null_mut(), -1);
    let options = ThrongRingOptions { frame_bytes: 1_000, frames: 4, prefault: 0 };
    unsafe {
        assert_eq!(throng_ring_consumer_new(&mut consumer), Status::Ok);
        assert_eq!(throng_ring_consumer_add_lane(consumer, &options, null_mut(), &mut fd), Status::Ok);
        assert_eq!(throng_ring_producer_join(fd, &mut producer), Status::Ok);
    }
    (consumer, producer)
}

fn no_claim() -> ThrongRingClaim {
    ThrongRingClaim { data: null_mut(), len: 0, id: 0 }
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
            (throng_ring_consumer_peek(consumer, null_mut()), "out"),
            (throng_ring_consumer_release(null_mut(), 0), "consumer"),
            (throng_ring_consumer_next_event(consumer, null_mut()), "out"),
            (throng_ring_consumer_arm(null_mut()), "consumer"),
            (throng_ring_consumer_process_events(null_mut()), "consumer"),
            (throng_ring_producer_connect(null(), &mut null_mut()), "path"),
            (throng_ring_producer_connect(c"x".as_ptr(), null_mut()), "out"),
            (throng_ring_producer_join(0, null_mut()), "out"),
            (throng_ring_producer_join_inherited(null_mut()), "out"),
            (throng_ring_producer_another(null(), &mut null_mut()), "producer"),
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
        assert_eq!((throng_ring_producer_room_fd(null()), throng_ring_consumer_event_fd(null())), (-1, -1));
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
        assert_eq!(throng_ring_producer_abort(producer, old), Status::NotOpen, "its place was used anew");
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
        assert_eq!(throng_ring_producer_claim(producer, max + 1, null(), &mut no_claim()), Status::TooLarge);
        assert_eq!(throng_ring_producer_join(-1, &mut null_mut()), Status::InvalidArgument);
        let options = ThrongRingOptions { frame_bytes: usize::MAX, frames: u32::MAX, prefault: 0 };
        let status = throng_ring_consumer_add_lane(consumer, &options, null_mut(), &mut 0);
        assert_eq!(status, Status::InvalidArgument, "{}", message());
        throng_ring_consumer_free(consumer);
        let send = || throng_ring_producer_send(producer, [0; 30_000].as_ptr(), 30_000, null());
        assert!((0..10).any(|_| send() == Status::ConsumerGone), "a full ring finds out");
        assert!(message().contains("the consumer has gone"), "{}", message());
        throng_ring_producer_free(producer);
    }
}
