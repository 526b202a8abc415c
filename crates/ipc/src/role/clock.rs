//! The clock that all roles share: `CLOCK_MONOTONIC` is one for all processes of a host.

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * SECOND_NS + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Sleeps until `at_ns`; returns at once if that is past.
pub(super) fn sleep_until(at_ns: u64) {
    let at = Timespec {
        tv_sec: i64::try_from(at_ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: (at_ns % SECOND_NS).cast_signed(),
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &at) == Err(rustix::io::Errno::INTR) {}
}
