//! A lane beyond one producer and one consumer process: more producers, and a consumer that takes
//! over from a dead one.

use std::ffi::c_int;
use std::os::fd::{IntoRawFd, OwnedFd};

use throng_ring::{LaneFds, LaneId};

use crate::consumer::{ThrongRingConsumer, put_lane};
use crate::producer::owned;
use crate::status::{Failure, ThrongRingStatus, call, exclusive, put, shared};

/// The descriptors that a new consumer needs to take over a lane. The holder closes all of them, or
/// passes them to throng_ring_consumer_adopt().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThrongRingLaneFds {
    /// The ring.
    pub memfd: c_int,
    /// The eventfd that wakes the consumer.
    pub frame_event: c_int,
    /// The eventfd that wakes producers.
    pub room_event: c_int,
    /// Number of sessions (producer processes) of the lane.
    pub sessions: u32,
}

/// The consumer's end of one producer process's handshake socket. As long as any process holds it,
/// that producer takes the consumer for alive.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThrongRingSession {
    /// The session's number within the lane.
    pub session: u32,
    /// The socket.
    pub fd: c_int,
}

/// Invites one more process to an existing lane; the socket `*fd` is passed on as that of
/// throng_ring_consumer_add_lane(). Processes of a lane share its memory: one that writes wildly
/// can corrupt the others' frames, which it could not from a lane of its own.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `fd` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_invite(
    consumer: *mut ThrongRingConsumer,
    lane: u32,
    fd: *mut c_int,
) -> ThrongRingStatus {
    call(|| {
        if fd.is_null() {
            return Err(Failure::null("fd"));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(consumer, "consumer")? };
        let invitation = handle.consumer.invite(LaneId::from(lane))?;
        // SAFETY: the caller's promise.
        unsafe { put(fd, OwnedFd::from(invitation).into_raw_fd(), "fd")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Copies a lane's descriptors, for a supervisor that starts a new consumer if this one dies:
/// `*out`, and its sessions into the array `sessions` of `capacity` places. InvalidArgument if that
/// is too short: nothing is copied then, and `out->sessions` is the number of sessions.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `out` valid for writes,
/// `sessions` valid for `capacity` writes, or NULL if that is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_export(
    consumer: *const ThrongRingConsumer,
    lane: u32,
    out: *mut ThrongRingLaneFds,
    sessions: *mut ThrongRingSession,
    capacity: usize,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() || (sessions.is_null() && capacity > 0) {
            return Err(Failure::null(if out.is_null() { "out" } else { "sessions" }));
        }
        // SAFETY: the caller's promise.
        let fds = unsafe { shared(consumer, "consumer")? }.consumer.export(LaneId::from(lane))?;
        let count = fds.sessions.len();
        let mut plain = ThrongRingLaneFds {
            memfd: -1,
            frame_event: -1,
            room_event: -1,
            sessions: count as u32,
        };
        if count > capacity {
            // SAFETY: the caller's promise.
            unsafe { put(out, plain, "out")? };
            return Err(Failure::invalid(format!(
                "the lane has {count} sessions, capacity is {capacity}"
            )));
        }
        for (index, (session, socket)) in fds.sessions.into_iter().enumerate() {
            // SAFETY: `index` is below `count`, which is at most `capacity`.
            let place = unsafe { sessions.add(index) };
            // SAFETY: within the caller's array.
            unsafe {
                put(place, ThrongRingSession { session, fd: socket.into_raw_fd() }, "sessions")?;
            };
        }
        plain.memfd = fds.memfd.into_raw_fd();
        plain.frame_event = fds.frame_event.into_raw_fd();
        plain.room_event = fds.room_event.into_raw_fd();
        // SAFETY: the caller's promise.
        unsafe { put(out, plain, "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Takes over a lane from a dead consumer: `fds` and their `fds->sessions` places of `sessions`,
/// from throng_ring_consumer_export(). Frames that it had peeked and not released are delivered
/// again. InUse if it is alive. The descriptors belong to the library from here on, also if this
/// fails for another reason than a NULL or a negative argument. `lane` may be NULL.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `fds` valid, `sessions` valid
/// for that many reads, or NULL if there are none, all descriptors open and not used elsewhere,
/// `lane` NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_adopt(
    consumer: *mut ThrongRingConsumer,
    fds: *const ThrongRingLaneFds,
    sessions: *const ThrongRingSession,
    lane: *mut u32,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let (handle, fds) = unsafe { (exclusive(consumer, "consumer")?, *shared(fds, "fds")?) };
        let sessions = match (sessions.is_null(), fds.sessions) {
            (_, 0) => &[],
            (true, _) => return Err(Failure::null("sessions")),
            // SAFETY: not NULL, and valid for `count` places by the caller's promise.
            (false, count) => unsafe { std::slice::from_raw_parts(sessions, count as usize) },
        };
        let all = [fds.memfd, fds.frame_event, fds.room_event].into_iter();
        if all.chain(sessions.iter().map(|session| session.fd)).any(|fd| fd < 0) {
            return Err(Failure::invalid(
                "a descriptor is negative: did the call that made it fail?",
            ));
        }
        // SAFETY: given away by the caller.
        let own = |fd| unsafe { owned(fd) };
        let taken = sessions.iter().map(|session| Ok((session.session, own(session.fd)?)));
        let fds = LaneFds {
            memfd: own(fds.memfd)?,
            frame_event: own(fds.frame_event)?,
            room_event: own(fds.room_event)?,
            sessions: taken.collect::<Result<_, Failure>>()?,
        };
        let id = handle.consumer.adopt(fds)?;
        // SAFETY: the caller's promise.
        unsafe { put_lane(lane, id) };
        Ok(ThrongRingStatus::Ok)
    })
}
