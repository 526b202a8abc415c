//! Counters of a lane, for its consumer and for a third process.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

use throng_ring::{DropReason, LaneId, LaneStats, ProducerStats};

use crate::consumer::ThrongRingConsumer;
use crate::status::{Failure, ThrongRingStatus, call, put, shared};

/// Counters of a lane since it was made. Each is exact; together they are of slightly different
/// moments.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrongRingStats {
    /// Size of the arena, bytes.
    pub arena_bytes: u64,
    /// Bytes of the arena that are claimed, committed or held at the moment.
    pub bytes_in_flight: u64,
    /// Frames committed by all producers.
    pub committed_frames: u64,
    /// Their payload.
    pub committed_bytes: u64,
    /// Aborted claims of all producers.
    pub aborted_frames: u64,
    /// Frames that the consumer released.
    pub delivered_frames: u64,
    /// Their payload.
    pub delivered_bytes: u64,
    /// Claims of dead producers that were skipped.
    pub abandoned_claims: u64,
    /// Dropped: there was no room, and the policy was to drop the newest.
    pub dropped_full: u64,
    /// Dropped: there was no room before the policy's timeout.
    pub dropped_timed_out: u64,
    /// Dropped: they were the oldest when another frame needed their space.
    pub dropped_evicted: u64,
    /// Dropped: a frame of the same stream was dropped before, and these were no key frames.
    pub dropped_until_keyframe: u64,
    /// Dropped: the policy was to drop the oldest, but the consumer held it.
    pub dropped_held_by_consumer: u64,
    /// Dropped: larger than half the ring.
    pub dropped_too_large: u64,
    /// Frames that fit at a time.
    pub descriptors: u32,
    /// Frames that are claimed, committed or held at the moment.
    pub frames_in_flight: u32,
    /// Consumers so far: 2 after one restart.
    pub consumer_epoch: u32,
    /// Process id of the latest consumer, as it sees itself.
    pub consumer_pid: u32,
    /// 1 if the consumer closed the lane because a producer corrupted it, else 0.
    pub closed: u32,
    /// Producer handles that are open at the moment.
    pub producers: u32,
}

impl From<&LaneStats> for ThrongRingStats {
    fn from(stats: &LaneStats) -> Self {
        let sum = |figure: fn(&ProducerStats) -> u64| stats.producers.iter().map(figure).sum();
        Self {
            arena_bytes: stats.arena_bytes as u64,
            bytes_in_flight: stats.bytes_in_flight,
            committed_frames: stats.committed_frames(),
            committed_bytes: sum(|producer| producer.committed_bytes),
            aborted_frames: sum(|producer| producer.aborted_frames),
            delivered_frames: stats.delivered_frames,
            delivered_bytes: stats.delivered_bytes,
            abandoned_claims: stats.abandoned_claims,
            dropped_full: stats.dropped(DropReason::Full),
            dropped_timed_out: stats.dropped(DropReason::TimedOut),
            dropped_evicted: stats.dropped(DropReason::Evicted),
            dropped_until_keyframe: stats.dropped(DropReason::UntilKeyframe),
            dropped_held_by_consumer: stats.dropped(DropReason::HeldByConsumer),
            dropped_too_large: stats.dropped(DropReason::TooLarge),
            descriptors: stats.descriptors,
            frames_in_flight: stats.frames_in_flight,
            consumer_epoch: stats.consumer_epoch,
            consumer_pid: stats.consumer_pid,
            closed: stats.closed.into(),
            producers: stats.producers.iter().filter(|producer| producer.session != 0).count()
                as u32,
        }
    }
}

/// Counters of a lane of this consumer.
///
/// # Safety
/// `consumer` is a handle of this library that no other thread uses, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_consumer_stats(
    consumer: *const ThrongRingConsumer,
    lane: u32,
    out: *mut ThrongRingStats,
) -> ThrongRingStatus {
    call(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let stats = unsafe { shared(consumer, "consumer")? }.consumer.stats(LaneId::from(lane))?;
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingStats::from(&stats), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}

/// Counters of the lane behind a path such as /proc/PID/fd/N: for a third process, without effect
/// on either side.
///
/// # Safety
/// `path` is a C string, `out` valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn throng_ring_stats_open(
    path: *const c_char,
    out: *mut ThrongRingStats,
) -> ThrongRingStatus {
    call(|| {
        if path.is_null() || out.is_null() {
            return Err(Failure::null(if path.is_null() { "path" } else { "out" }));
        }
        // SAFETY: not NULL, and a C string by the caller's promise.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        let stats = LaneStats::open(path)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, ThrongRingStats::from(&stats), "out")? };
        Ok(ThrongRingStatus::Ok)
    })
}
