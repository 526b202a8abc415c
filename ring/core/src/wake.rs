//! Sleeping and waking without a lost wake-up, and without a system call while the other side is awake.
//!
//! Who wants to sleep writes down how to be woken, fences, looks once more, then sleeps. Who made something to see
//! fences, then looks whether anybody sleeps. One of the two fences comes first; whoever comes second sees the other.

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
    /// Somebody polls the eventfd.
    pub(crate) const EVENT: u32 = 2;
}

/// Says that we are about to sleep. Look once more after this, and only then sleep. The word as it stands now.
pub(crate) fn announce(word: &AtomicU32, how: u32) -> u32 {
    let before = word.fetch_or(how, Relaxed);
    // SYNC POINT with `is_anybody_asleep`.
    fence(SeqCst);
    before | how
}

/// Who sleeps, asked after something was made visible; they count as woken by this.
pub(crate) fn sleepers(word: &AtomicU32) -> u32 {
    if is_anybody_asleep(word) { word.swap(0, AcqRel) } else { 0 }
}

/// [`sleepers`] for callers whose last step was an atomic read-modify-write that made something visible.
pub(crate) fn sleepers_after_rmw(word: &AtomicU32) -> u32 {
    if is_anybody_asleep_after_rmw(word) { word.swap(0, AcqRel) } else { 0 }
}

/// Whether anybody sleeps, asked after something was made visible. Those who do go on sleeping.
pub(crate) fn is_anybody_asleep(word: &AtomicU32) -> bool {
    // SYNC POINT with `announce`.
    fence(SeqCst);
    word.load(Relaxed) != 0
}

/// [`is_anybody_asleep`] for callers whose last step was an atomic read-modify-write that made something visible.
///
/// On x86 such an instruction is a full barrier by itself, so that only the compiler is left to be told: a second barrier
/// would be a tenth of what a small frame costs. Elsewhere, and under the model checker, it is the fence.
pub(crate) fn is_anybody_asleep_after_rmw(word: &AtomicU32) -> bool {
    #[cfg(any(loom, not(target_arch = "x86_64")))]
    fence(SeqCst);
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    word.load(Relaxed) != 0
}

/// Wakes those whom [`sleepers`] named. A full eventfd counter means that a wake-up is pending: as good.
#[cfg(not(loom))]
pub(crate) fn wake(word: &AtomicU32, how: u32, event: BorrowedFd<'_>) {
    if how & Sleep::FUTEX != 0 {
        let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), i32::MAX as u32);
    }
    if how & Sleep::EVENT != 0 {
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }
}

/// Sleeps until the word changes from `value`, or the time is over, or a signal came: the caller looks again anyway.
#[cfg(not(loom))]
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let waited = rustix::thread::futex::wait(
        word,
        rustix::thread::futex::Flags::empty(),
        value,
        Some(&timespec(timeout)),
    );
    debug_assert!(matches!(waited, Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT)), "{waited:?}");
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
