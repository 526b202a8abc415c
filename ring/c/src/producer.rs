//! The producer's side: join, claim, write in place, commit or abort.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use throng_ring::{ClaimToken, FrameInfo, Policy, Producer};

use crate::status::{Failure, ThrongRingStatus, call, exclusive, put, shared};
use crate::types::{ThrongRingClaim, ThrongRingFrameInfo, ThrongRingPolicy};

/// A handle that writes frames into a ring. To be used by one thread at a time;
/// throng_ring_producer_clone() makes one for another thread.
#[derive(Debug)]
pub struct ThrongRingProducer {
    producer: Producer,
    claims: Claims,
}

/// Open claims by number, so that one that was committed before is refused and not written twice.
#[derive(Debug, Default)]
struct Claims {
    /// With the generation of each place: the upper half of its number.
    open: Vec<(u32, Option<ClaimToken>)>,
}

impl Claims {
    fn put(&mut self, token: ClaimToken) -> u64 {
        let free = self.open.iter().position(|(_, token)| token.is_none());
        let index = free.unwrap_or_else(|| {
            self.open.push((0, None));
            self.open.len() - 1
        });
        let Some((generation, place)) = self.open.get_mut(index) else { return 0 };
        *generation = generation.wrapping_add(1);
        *place = Some(token);
        u64::from(*generation) << 32 | index as u64
    }

    fn take(&mut self, id: u64) -> Result<ClaimToken, Failure> {
        let place = self.open.get_mut((id & 0xffff_ffff) as usize);
        let open = place.filter(|(generation, _)| u64::from(*generation) == id >> 32);
        let token = open.and_then(|(_, token)| token.take());
        token.ok_or_else(|| {
            Failure::not_open(format!("claim {id} is not open: it was committed or aborted before"))
        })
    }
}

impl ThrongRingProducer {
    fn boxed(producer: Producer) -> *mut Self {
        Box::into_raw(Box::new(Self { producer, claims: Claims::default() }))
    }
}

/// Joins at a socket path where a consumer accepts.
///
/// # Safety
/// `path` is a C string, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_connect(
    path: *const c_char,
    out: *mut *mut ThrongRingProducer,
) -> ThrongRingStatus {
    call(|| {
        if path.is_null() || out.is_null() {
            return Err(Failure::null(if path.is_null() { "path" } else { "out" }));
        }
        // SAFETY: not NULL, and a C string by the caller's promise.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        let producer = Producer::connect(path)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingProducer::boxed(producer), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Joins through a connected Unix socket: the descriptor of an invitation, inherited or received by
/// SCM_RIGHTS. The descriptor belongs to the library from here on, also if this fails for another
/// reason than a NULL or a negative argument.
///
/// # Safety
/// `fd` is open and not used elsewhere, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_join(
    fd: c_int,
    out: *mut *mut ThrongRingProducer,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let socket = unsafe { owned(fd)? };
        let producer = Producer::join(socket)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingProducer::boxed(producer), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// A descriptor that the caller gives away.
///
/// # Safety
/// It is negative, or open and not used elsewhere.
pub(crate) unsafe fn owned(fd: c_int) -> Result<OwnedFd, Failure> {
    if fd < 0 {
        return Err(Failure::invalid(format!(
            "descriptor {fd} is negative: did the call that made it fail?"
        )));
    }
    // SAFETY: not negative, and given away by the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Joins through the socket that this process inherited, whose number is in the environment
/// variable THRONG_RING_FD. To be called once.
///
/// # Safety
/// `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_join_inherited(
    out: *mut *mut ThrongRingProducer,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        let producer = Producer::join_inherited()?;
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingProducer::boxed(producer), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// One more handle on the same lane, for another thread.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_clone(
    producer: *const ThrongRingProducer,
    out: *mut *mut ThrongRingProducer,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let another = unsafe { shared(producer, "producer")? }.producer.try_clone()?;
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingProducer::boxed(another), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Sets the policy for a full ring, a ThrongRingPolicy. A new handle drops the newest. `timeout_ns`
/// is for Wait; UINT64_MAX means no timeout.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_set_policy(
    producer: *mut ThrongRingProducer,
    policy: i32,
    timeout_ns: u64,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let producer = unsafe { exclusive(producer, "producer")? };
        let timeout =
            if timeout_ns == u64::MAX { Duration::MAX } else { Duration::from_nanos(timeout_ns) };
        producer.producer.set_policy(match policy {
            p if p == ThrongRingPolicy::Wait as i32 => Policy::Wait { timeout },
            p if p == ThrongRingPolicy::DropNewest as i32 => Policy::DropNewest,
            p if p == ThrongRingPolicy::DropOldest as i32 => Policy::DropOldest,
            p if p == ThrongRingPolicy::DropUntilKeyframe as i32 => Policy::DropUntilKeyframe,
            other => {
                return Err(Failure::invalid(format!(
                    "there is no policy {other}: see ThrongRingPolicy"
                )));
            }
        });
        Ok(ThrongRingStatus::Ok)
    })
}

/// Bytes of the largest frame that fits this ring: half of it. 0 if `producer` is NULL.
///
/// # Safety
/// `producer` is NULL or a handle of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_frame_bytes_max(
    producer: *const ThrongRingProducer,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { producer.as_ref() }.map_or(0, |handle| handle.producer.frame_bytes_max())
}

/// Claims space for `len` bytes, to be written in place and then committed or aborted. Dropped if
/// the policy drops it. `info` may be NULL: all zeros.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses, `info` NULL or valid, `out`
/// valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_claim(
    producer: *mut ThrongRingProducer,
    len: usize,
    info: *const ThrongRingFrameInfo,
    out: *mut ThrongRingClaim,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let (handle, info) = unsafe { (exclusive(producer, "producer")?, frame_info(info)) };
        let Some(token) = handle.producer.claim_token(len, &info)? else {
            return Ok(ThrongRingStatus::Dropped);
        };
        let (data, len) = (token.as_ptr(), token.len());
        let id = handle.claims.put(token);
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingClaim { data, len, id }, "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// # Safety
/// `info` is NULL or valid for reads.
unsafe fn frame_info(info: *const ThrongRingFrameInfo) -> FrameInfo {
    // SAFETY: the caller's promise.
    unsafe { info.as_ref() }.map_or_else(FrameInfo::default, FrameInfo::from)
}

/// Makes the first `len` bytes of a claim visible to the consumer, and wakes it if it sleeps. `len`
/// may be less than was claimed; if it is more, the claim is aborted.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_commit(
    producer: *mut ThrongRingProducer,
    claim_id: u64,
    len: usize,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(producer, "producer")? };
        let token = handle.claims.take(claim_id)?;
        handle.producer.commit(token, len)?;
        Ok(ThrongRingStatus::Ok)
    })
}

/// Aborts a claim. The consumer sees only a gap in the stream's sequence.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_abort(
    producer: *mut ThrongRingProducer,
    claim_id: u64,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { exclusive(producer, "producer")? };
        let token = handle.claims.take(claim_id)?;
        handle.producer.abort(token)?;
        Ok(ThrongRingStatus::Ok)
    })
}

/// Copies a frame into the ring. Dropped if the policy drops it. `info` may be NULL; `data` too if
/// `len` is 0.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses, `data` valid for `len` bytes
/// and not within the ring, `info` NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_send(
    producer: *mut ThrongRingProducer,
    data: *const u8,
    len: usize,
    info: *const ThrongRingFrameInfo,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let (handle, info) = unsafe { (exclusive(producer, "producer")?, frame_info(info)) };
        let bytes = match (data.is_null(), len) {
            (_, 0) => &[],
            (true, _) => return Err(Failure::null("data")),
            (false, len) if len > isize::MAX as usize => {
                return Err(Failure::invalid(format!("len is {len}: no memory is that long")));
            }
            // SAFETY: not NULL, not longer than an object can be, and valid for reads by the
            // caller's promise.
            (false, len) => unsafe { std::slice::from_raw_parts(data, len) },
        };
        let sent = handle.producer.send(bytes, &info)?;
        Ok(if sent { ThrongRingStatus::Ok } else { ThrongRingStatus::Dropped })
    })
}

/// For event loops: Ok if a claim of `len` bytes would find room; Empty if not, and then the
/// descriptor of throng_ring_producer_room_fd() becomes readable when there may be.
///
/// # Safety
/// `producer` is a handle of this library that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_poll_room(
    producer: *mut ThrongRingProducer,
    len: usize,
) -> ThrongRingStatus {
    call(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { exclusive(producer, "producer")? }.producer.poll_room(len)?;
        Ok(if room { ThrongRingStatus::Ok } else { ThrongRingStatus::Empty })
    })
}

/// The eventfd of throng_ring_producer_poll_room(); the library owns it. -1 if `producer` is NULL.
///
/// # Safety
/// `producer` is NULL or a handle of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_room_fd(
    producer: *const ThrongRingProducer,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { producer.as_ref() }.map_or(-1, |handle| handle.producer.room_event().as_raw_fd())
}

/// Closes a handle; open claims are aborted. NULL has no effect.
///
/// # Safety
/// `producer` is NULL or a handle of this library that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_producer_free(producer: *mut ThrongRingProducer) {
    if !producer.is_null() {
        call(|| {
            // SAFETY: made by `Box::into_raw`, and the caller gives it back once.
            drop(unsafe { Box::from_raw(producer) });
            Ok(ThrongRingStatus::Ok)
        });
    }
}
