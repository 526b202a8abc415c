//! Sleeping and waking without a lost wake-up, and without a system call while the other side is
//! awake.
//!
//! The sleeper announces how to be woken, fences, checks once more, then sleeps. The waker
//! publishes its change, fences, then checks for sleepers. One of the two fences comes first; the
//! side whose fence is second sees the other.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;

use crate::sync::Ordering::{AcqRel, Relaxed, SeqCst};
use crate::sync::{AtomicU32, fence};

/// Bits of a sleep word.
pub(crate) struct Sleep;

impl Sleep {
    /// A thread waits on the word itself.
    pub(crate) const FUTEX: u32 = 1;
    /// A thread polls the eventfd.
    pub(crate) const EVENT: u32 = 2;
}

/// Announces that the caller is about to sleep; it must check once more before it does. Returns the
/// word's new value.
pub(crate) fn announce(word: &AtomicU32, how: u32) -> u32 {
    let before = word.fetch_or(how, Relaxed);
    // SYNC POINT with `is_anybody_asleep`.
    fence(SeqCst);
    before | how
}

/// The sleepers, to be called after a change was published. Clears the word: the caller must wake
/// them.
pub(crate) fn sleepers(word: &AtomicU32) -> u32 {
    if is_anybody_asleep(word) { word.swap(0, AcqRel) } else { 0 }
}

/// [`sleepers`] for callers whose last step was the atomic read-modify-write that published the
/// change.
pub(crate) fn sleepers_after_rmw(word: &AtomicU32) -> u32 {
    if is_anybody_asleep_after_rmw(word) { word.swap(0, AcqRel) } else { 0 }
}

/// Whether there is a sleeper, to be called after a change was published. Leaves the word as it is.
pub(crate) fn is_anybody_asleep(word: &AtomicU32) -> bool {
    // SYNC POINT with `announce`.
    fence(SeqCst);
    word.load(Relaxed) != 0
}

/// [`is_anybody_asleep`] for callers whose last step was the atomic read-modify-write that
/// published the change.
///
/// On x86 such an instruction is a full barrier by itself, so only the compiler needs a barrier: a
/// second one would be a tenth of the cost of a small frame. Elsewhere, and under the model
/// checker, it is the fence.
pub(crate) fn is_anybody_asleep_after_rmw(word: &AtomicU32) -> bool {
    #[cfg(any(loom, not(target_arch = "x86_64")))]
    fence(SeqCst);
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    word.load(Relaxed) != 0
}

/// Wakes those that [`sleepers`] returned. A full eventfd counter means that a wake-up is pending:
/// as good.
#[cfg(not(loom))]
pub(crate) fn wake(word: &AtomicU32, how: u32, event: BorrowedFd<'_>) {
    if how & Sleep::FUTEX != 0 {
        let _ = rustix::thread::futex::wake(
            word,
            rustix::thread::futex::Flags::empty(),
            i32::MAX as u32,
        );
    }
    if how & Sleep::EVENT != 0 {
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }
}

/// Sleeps until the word changes from `value`, the timeout passes or a signal comes; the caller
/// checks again anyway.
#[cfg(not(loom))]
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let waited = rustix::thread::futex::wait(
        word,
        rustix::thread::futex::Flags::empty(),
        value,
        Some(&timespec(timeout)),
    );
    let is_known = matches!(waited, Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT));
    debug_assert!(is_known, "{waited:?}");
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
