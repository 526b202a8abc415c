//! Clocks: conversion between monotonic time, the run's time, and wall-clock arrival times of the
//! kernel.

use std::time::{Duration, Instant, SystemTime};

use throng_observation::RunTime;
use throng_observation::limits::STANDSTILL_MS_MIN;

/// The run's clock: RunTime 0 on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    pub(crate) start: Instant,
}

impl RunClock {
    /// `at` as time of the run.
    pub(crate) fn run_time(self, at: Instant) -> RunTime {
        match at.checked_duration_since(self.start) {
            Some(after) => RunTime::after_start(after),
            None => RunTime(-RunTime::after_start(self.start.saturating_duration_since(at)).0),
        }
    }

    /// `at` as monotonic time.
    pub(crate) fn instant(self, at: RunTime) -> Instant {
        let distance = Duration::from_micros(at.0.unsigned_abs());
        let moved = if at.0 < 0 {
            self.start.checked_sub(distance)
        } else {
            self.start.checked_add(distance)
        };
        moved.unwrap_or(self.start)
    }
}

/// The wall clock was set if it is further ahead than this; less comes from slew and from reading
/// one clock after the other.
const STEP_MIN: Duration = Duration::from_millis(5);
/// How long after a step datagrams may be read that arrived before it.
const STEP_FELT: Duration = Duration::from_millis(100);

/// Reads both clocks and detects when the wall clock is set ahead: datagrams that arrived before
/// would look older, and one packet that seems early adds delay to all that follow.
#[derive(Debug)]
pub(crate) struct Clocks {
    last: ClockPair,
    stepped_at: Instant,
}

/// One reading of both clocks, to convert wall-clock arrival times. Taken with each batch, so that
/// slew does not accumulate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockPair {
    pub(crate) now: Instant,
    unix: Duration,
    /// How far the wall clock was set ahead within the last [`STEP_FELT`].
    step: Duration,
}

impl Clocks {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { last: ClockPair { now, unix: unix(), step: Duration::ZERO }, stepped_at: now }
    }

    pub(crate) fn read(&mut self) -> ClockPair {
        self.reading(Instant::now(), unix())
    }

    fn reading(&mut self, now: Instant, unix: Duration) -> ClockPair {
        let ahead =
            unix.saturating_sub(self.last.unix + now.saturating_duration_since(self.last.now));
        let step = if ahead >= STEP_MIN {
            self.stepped_at = now;
            ahead
        } else if now.saturating_duration_since(self.stepped_at) < STEP_FELT {
            self.last.step
        } else {
            Duration::ZERO
        };
        self.last = ClockPair { now, unix, step };
        self.last
    }
}

fn unix() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

impl ClockPair {
    /// The wall clock, since the Unix epoch.
    pub(crate) fn unix(self) -> Duration {
        self.unix
    }

    /// Monotonic arrival time of a datagram, at most now; now if the kernel gave none.
    pub(crate) fn arrival(self, unix: Option<Duration>) -> Instant {
        let age = unix.map(|unix| self.unix.saturating_sub(unix)).unwrap_or_default();
        // A datagram that looks older than the step arrived before it.
        let age = age.checked_sub(self.step).unwrap_or(age);
        self.now.checked_sub(age).unwrap_or(self.now)
    }
}

/// Notices that the machine was suspended: the monotonic clock stands still meanwhile, and the one
/// since boot goes on (clock_gettime(2)).
#[derive(Debug)]
pub(crate) struct Suspension {
    /// By how much the clock since boot is ahead.
    ahead: Duration,
}

impl Suspension {
    pub(crate) fn begin() -> Self {
        Self { ahead: suspended_since_boot() }
    }

    /// For how long it was since the last call, if it was.
    pub(crate) fn since_last(&mut self) -> Option<Duration> {
        self.reading(suspended_since_boot())
    }

    fn reading(&mut self, ahead: Duration) -> Option<Duration> {
        let time = ahead.saturating_sub(std::mem::replace(&mut self.ahead, ahead));
        (time >= Duration::from_millis(STANDSTILL_MS_MIN)).then_some(time)
    }
}

fn suspended_since_boot() -> Duration {
    let read = |clock| {
        let time = rustix::time::clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    let monotonic = read(rustix::time::ClockId::Monotonic);
    read(rustix::time::ClockId::Boottime).saturating_sub(monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_told_once_and_reading_two_clocks_is_none() {
        let mut suspension = Suspension { ahead: Duration::from_secs(7) };
        let mut read = |ms| suspension.reading(Duration::from_millis(ms));
        assert_eq!(read(7_001), None);
        assert_eq!(read(10_001), Some(Duration::from_secs(3)));
        assert_eq!((read(10_002), read(10_000)), (None, None));
        assert_eq!(Suspension::begin().since_last(), None);
    }

    #[test]
    fn moments_of_the_run_and_of_the_machine_are_the_same_line() {
        let clock = RunClock { start: Instant::now() };
        for us in [-3_000_000, -1, 0, 1, 86_400_000_000] {
            assert_eq!(clock.run_time(clock.instant(RunTime(us))), RunTime(us));
        }
    }

    #[test]
    fn an_arrival_is_as_long_ago_as_the_wall_clock_says_and_never_in_the_future() {
        let pair = ClockPair {
            now: Instant::now(),
            unix: Duration::from_secs(1000),
            step: Duration::ZERO,
        };
        let ago = |unix: Option<Duration>| pair.now.duration_since(pair.arrival(unix));
        assert_eq!(ago(Some(Duration::from_millis(999_997))), Duration::from_millis(3));
        assert_eq!(ago(Some(Duration::from_secs(1001))), Duration::ZERO);
        assert_eq!(ago(None), Duration::ZERO);
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_no_arrival() {
        let ms = Duration::from_millis;
        let mut clocks = Clocks::new();
        let (start, unix) = (clocks.last.now, clocks.last.unix);
        let mut age = |at: Duration, set: Duration, stamped: Duration| {
            let pair = clocks.reading(start + at, unix + at + set);
            pair.now.duration_since(pair.arrival(Some(unix + stamped)))
        };
        assert_eq!(age(ms(10), ms(0), ms(7)), ms(3));
        // Set ahead by 2 s: of two datagrams in one batch, one arrived before that and one after
        // it.
        assert_eq!(age(ms(15), ms(2_000), ms(12)), ms(3));
        assert_eq!(age(ms(15), ms(2_000), ms(2_014)), ms(1));
        assert_eq!(age(ms(20), ms(2_000), ms(13)), ms(7));
        assert_eq!(age(ms(1_000), ms(2_000), ms(2_995)), ms(5));
        // Set back: earlier datagrams seem to be in the future, which counts as now.
        assert_eq!(age(ms(1_005), ms(0), ms(3_001)), ms(0));
        assert_eq!(age(ms(1_010), ms(0), ms(1_008)), ms(2));
    }
}
