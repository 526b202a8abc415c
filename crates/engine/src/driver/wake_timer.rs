//! Wakes a thread with microsecond precision (`timerfd`): the runtime's own timers count
//! milliseconds.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::sockets::watched;

/// A one-shot timer.
pub(super) struct WakeTimer {
    timer: AsyncFd<OwnedFd>,
    /// When it expires, or has expired without a read.
    set_to: Cell<Option<Instant>>,
}

impl WakeTimer {
    /// Must be called on the thread's runtime.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { timer: watched(timer)?, set_to: Cell::new(None) })
    }

    /// Sets it to expire at `at`, which is `time` from now; `time` must not be zero, which would
    /// disarm it. A thread that was woken by something else waits for the same time again, and the
    /// timer is not set again.
    pub(super) fn set(&self, at: Instant, time: Duration) {
        if self.set_to.replace(Some(at)) == Some(at) {
            return;
        }
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // The descriptor is a timer and the time is in range; nothing else can be wrong.
        let _ = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once);
    }

    /// Waits until it expires.
    pub(super) async fn expired(&self) {
        while let Ok(mut guard) = self.timer.readable().await {
            // Setting the timer has cleared an expiry that was not read.
            let read = guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0_u8; 8])?));
            if read.is_ok() {
                // There is no second expiry: checking for one would cost a system call each time.
                guard.clear_ready();
                self.set_to.set(None);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_micros(1);
    const HOUR: Duration = Duration::from_secs(3600);

    async fn is_silent(wake_timer: &WakeTimer) -> bool {
        tokio::select! {
            biased;
            () = wake_timer.expired() => false,
            () = tokio::task::yield_now() => true,
        }
    }

    #[tokio::test]
    async fn an_unread_expiry_is_not_reported_before_the_timer_expires_again() {
        let (wake_timer, now) = (WakeTimer::new().unwrap(), Instant::now());
        wake_timer.set(now, SOON);
        wake_timer.expired().await;
        wake_timer.set(now + SOON, SOON);
        // It expires while no task waits.
        wake_timer.timer.readable().await.unwrap().retain_ready();
        wake_timer.set(now + HOUR, HOUR);
        assert!(is_silent(&wake_timer).await, "an hour is not over");
    }

    #[tokio::test]
    async fn an_alarm_rings_each_time_that_it_is_set_to_the_same_moment() {
        let (wake_timer, now) = (WakeTimer::new().unwrap(), Instant::now());
        wake_timer.set(now + HOUR, HOUR);
        wake_timer.set(now + HOUR, SOON); // set already, to the same moment
        assert!(is_silent(&wake_timer).await);
        for _ in 0..2 {
            wake_timer.set(now, SOON);
            wake_timer.set(now, SOON);
            wake_timer.expired().await;
        }
    }
}
