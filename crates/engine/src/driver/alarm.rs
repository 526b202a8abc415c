//! Wakes a worker to the microsecond: the runtime's own timers know milliseconds only.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::sockets::watched;

/// A timer that rings once.
pub(super) struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// To be called on the worker's runtime.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { timer: watched(timer)? })
    }

    /// Lets it ring after `time`, which is not zero (zero would silence it).
    pub(super) fn set(&self, time: Duration) {
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // The descriptor is a timer and the time is in range, which is all that can be wrong.
        let _ = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once);
    }

    /// Waits until it rings.
    pub(super) async fn rings(&self) {
        while let Ok(mut guard) = self.timer.readable().await {
            // What is left of an earlier ring is not there to be read: setting the timer took it away.
            let rung = guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0_u8; 8])?));
            if rung.is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_that_rang_and_was_not_heard_is_silent_until_it_is_due_again() {
        let alarm = Alarm::new().unwrap();
        alarm.set(Duration::from_micros(1));
        alarm.rings().await;
        alarm.set(Duration::from_micros(1));
        // It rings while nobody listens.
        alarm.timer.readable().await.unwrap().retain_ready();
        alarm.set(Duration::from_secs(3600));
        tokio::select! {
            biased;
            () = alarm.rings() => panic!("an hour is not over"),
            () = tokio::task::yield_now() => {}
        }
    }
}
