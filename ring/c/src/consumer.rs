//! The consumer's side: lanes, peek, use in place, release.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

use throng_ring::{Consumer, Event, FrameId, LaneId, RingOptions};

use crate::producer::owned;
use crate::status::{Failure, ThrongRingStatus, call, exclusive, put, shared};
use crate::types::{
    ThrongRingEvent, ThrongRingEventKind, ThrongRingFrame, ThrongRingFrameInfo, ThrongRingOptions,
};

/// Reads the frames of all its producers. To be used by one thread at a time.
#[derive(Debug)]
pub struct ThrongRingConsumer {
    pub(crate) consumer: Consumer,
}

/// A consumer without lanes.
///
/// # Safety
/// `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_new(
    out: *mut *mut ThrongRingConsumer,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        let consumer = Box::into_raw(Box::new(ThrongRingConsumer { consumer: Consumer::new()? }));
        // SAFETY: the caller's promise.
        unsafe { put(out, consumer, "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Makes a lane, and a socket to pass to the producer process: inherited (its number in the
/// environment variable THRONG_RING_FD, close-on-exec removed) or sent over a socket of the
/// caller's (SCM_RIGHTS). The caller closes the socket `*fd` once the producer has it.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `options` valid, `lane` NULL
/// or valid for writes, `fd` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_add_lane(
    consumer: *mut ThrongRingConsumer,
    options: *const ThrongRingOptions,
    lane: *mut u32,
    fd: *mut c_int,
) -> ThrongRingStatus {
    call(|| {
        if fd.is_null() {
            return Err(Failure::null("fd"));
        }
        // SAFETY: the caller's promise.
        let (handle, options) =
            unsafe { (exclusive(consumer, "consumer")?, shared(options, "options")?) };
        let (id, invitation) = handle.consumer.add_lane(&size(options))?;
        // SAFETY: the caller's promise.
        unsafe { put_lane(lane, id) };
        // SAFETY: the caller's promise.
        unsafe { put(fd, OwnedFd::from(invitation).into_raw_fd(), "fd")? };
        Ok(ThrongRingStatus::Ok)
    })
}

fn size(options: &ThrongRingOptions) -> RingOptions {
    RingOptions::for_frames(options.frame_bytes, options.frames)
        .prefault(options.prefault != 0)
        .huge_pages(options.huge_pages != 0)
}

/// # Safety
/// `to` is NULL or valid for writes.
pub(crate) unsafe fn put_lane(to: *mut u32, lane: LaneId) {
    if !to.is_null() {
        // SAFETY: not NULL, and valid by the caller's promise.
        unsafe { to.write(lane.get()) };
    }
}

/// Makes a lane for the process at the other end of a connected Unix socket (from accept(2)), which
/// calls throng_ring_producer_connect() or _join(). The descriptor belongs to the library from here
/// on, also if this fails for another reason than a NULL or a negative argument. `lane` may be
/// NULL.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `fd` open and not used
/// elsewhere, `options` valid, `lane` NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_accept(
    consumer: *mut ThrongRingConsumer,
    fd: c_int,
    options: *const ThrongRingOptions,
    lane: *mut u32,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let (handle, options) =
            unsafe { (exclusive(consumer, "consumer")?, shared(options, "options")?) };
        // SAFETY: the caller's promise.
        let socket = unsafe { owned(fd)? };
        let id = handle.consumer.accept(socket, &size(options))?;
        // SAFETY: the caller's promise.
        unsafe { put_lane(lane, id) };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Sleeps until there may be a frame or an event: Ok; or Empty after `timeout_ns`. No system call
/// if there is something.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_wait(
    consumer: *mut ThrongRingConsumer,
    timeout_ns: u64,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(consumer, "consumer")? };
        let something = handle.consumer.wait(Duration::from_nanos(timeout_ns))?;
        Ok(if something { ThrongRingStatus::Ok } else { ThrongRingStatus::Empty })
    })
}

/// Longest delay of a frame in exchange for fewer wake-ups: while frames come faster than that,
/// `throng_ring_consumer_wait` finds several at once, without a wake-up. Lanes need room for the
/// frames of that time. 0, the default: woken for each.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_set_coalescing(
    consumer: *mut ThrongRingConsumer,
    most_ns: u64,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(consumer, "consumer")? };
        handle.consumer.set_coalescing(Duration::from_nanos(most_ns));
        Ok(ThrongRingStatus::Ok)
    })
}

/// The next frame of any lane: Ok, or Empty. It stays where it is until it is released; any number
/// may be held.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_peek(
    consumer: *mut ThrongRingConsumer,
    out: *mut ThrongRingFrame,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(consumer, "consumer")? };
        let Some(frame) = handle.consumer.peek() else { return Ok(ThrongRingStatus::Empty) };
        let data = handle.consumer.payload(frame.id)?.as_ptr();
        let info = ThrongRingFrameInfo {
            timestamp_ns: frame.info.timestamp_ns,
            user_data: frame.info.user_data,
            stream: frame.info.stream,
            kind: frame.info.kind,
            flags: frame.info.flags.0,
        };
        let frame = ThrongRingFrame {
            data,
            len: frame.len,
            id: frame.id.get(),
            sequence: frame.sequence,
            info,
            lane: frame.lane.get(),
            producer: frame.producer.into(),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, frame, "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Releases a frame, in any order. Its bytes must not be read after this.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_release(
    consumer: *mut ThrongRingConsumer,
    frame_id: u64,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { exclusive(consumer, "consumer")? }.consumer.release(FrameId::from(frame_id))?;
        Ok(ThrongRingStatus::Ok)
    })
}

/// The next event: Ok, or Empty. Ended lanes are freed here, so call it regularly.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_next_event(
    consumer: *mut ThrongRingConsumer,
    out: *mut ThrongRingEvent,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(consumer, "consumer")? };
        let Some(event) = handle.consumer.next_event() else { return Ok(ThrongRingStatus::Empty) };
        // SAFETY: the caller's promise.
        unsafe { put(out, plain(&event), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

fn plain(event: &Event) -> ThrongRingEvent {
    let mut plain = ThrongRingEvent {
        kind: -1,
        lane: 0,
        session: 0,
        clean: 0,
        delivered_frames: 0,
        dropped_frames: 0,
        abandoned_claims: 0,
    };
    match event {
        Event::ProducerLeft { lane, session, clean } => {
            plain.kind = ThrongRingEventKind::ProducerLeft as i32;
            (plain.lane, plain.session, plain.clean) = (lane.get(), *session, (*clean).into());
        }
        Event::LaneCorrupt { lane, .. } => {
            plain.kind = ThrongRingEventKind::LaneCorrupt as i32;
            plain.lane = lane.get();
        }
        Event::LaneEnded { lane, stats } => {
            plain.kind = ThrongRingEventKind::LaneEnded as i32;
            plain.lane = lane.get();
            plain.delivered_frames = stats.delivered_frames;
            plain.dropped_frames =
                stats.producers.iter().map(throng_ring::ProducerStats::dropped_frames).sum();
            plain.abandoned_claims = stats.abandoned_claims;
        }
        _ => {}
    }
    plain
}

/// For event loops: Ok if throng_ring_consumer_event_fd() becomes readable with the next frame or
/// event; Empty, and nothing is armed, if there is something already.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_arm(
    consumer: *mut ThrongRingConsumer,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let armed = unsafe { exclusive(consumer, "consumer")? }.consumer.arm();
        Ok(if armed { ThrongRingStatus::Ok } else { ThrongRingStatus::Empty })
    })
}

/// The descriptor to poll for reading after throng_ring_consumer_arm(); the library owns it. -1 if
/// NULL.
///
/// # Safety
/// `consumer` is NULL or a handle of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_event_fd(
    consumer: *const ThrongRingConsumer,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { consumer.as_ref() }.map_or(-1, |handle| handle.consumer.event_fd().as_raw_fd())
}

/// To be called after the descriptor became readable; then peek.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_process_events(
    consumer: *mut ThrongRingConsumer,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { exclusive(consumer, "consumer")? }.consumer.process_events()?;
        Ok(ThrongRingStatus::Ok)
    })
}

/// Closes a consumer and its lanes; frames that it held must not be read any more. NULL has no
/// effect.
///
/// # Safety
/// `consumer` is NULL or a handle of this library that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_free(consumer: *mut ThrongRingConsumer) {
    if !consumer.is_null() {
        call(|| {
            // SAFETY: made by `Box::into_raw`, and the caller gives it back once.
            drop(unsafe { Box::from_raw(consumer) });
            Ok(ThrongRingStatus::Ok)
        });
    }
}
