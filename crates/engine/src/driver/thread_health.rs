//! Health of an engine thread by second: CPU time, run-queue wait, loop lag, drops.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use throng_observation::Distribution;
use throng_observation::limits::LATE_DEADLINES_MIN;
use throng_observation::run::GeneratorRow;

use super::collector_sender::DriverEvent;
use super::io_context::IoContext;
use crate::clock::RunClock;
use crate::health::parse_schedstat;

/// A thread that stood still for so long may itself have made the silence after which datagrams
/// found no room: what it could not read is missing before them.
const STALL: Duration = Duration::from_millis(500);

/// How long after a stall drops are its own.
const AFTER_STALL: Duration = Duration::from_secs(3);

/// A thread's measurements of itself in the current second.
pub(super) struct ThreadHealth {
    second: i64,
    stalled_at: Option<Instant>,
    lag_us: Distribution,
    cpu: Duration,
    queue_wait_ns: u64,
    schedstat: Option<File>,
}

impl ThreadHealth {
    /// Starts measuring; must be called on the thread that is measured.
    pub(super) fn start(clock: RunClock, now: Instant) -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        let queue_wait_ns = queue_wait_ns(schedstat.as_ref());
        Self {
            second: clock.run_time(now).second(),
            stalled_at: None,
            lag_us: Distribution::new(),
            cpu: thread_cpu(),
            queue_wait_ns,
            schedstat,
        }
    }

    /// Records that the loop was `late` for its tick.
    pub(super) fn record_lag(&mut self, now: Instant, late: Duration) {
        if late >= STALL {
            self.stalled_at = Some(now);
        }
        self.lag_us.record(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
    }

    /// The row of the second that ended, if one has.
    pub(super) fn finish_second(
        &mut self,
        clock: RunClock,
        now: Instant,
        io: &mut IoContext,
    ) -> Option<GeneratorRow> {
        let second = clock.run_time(now).second();
        if second == self.second {
            return None;
        }
        let ended = std::mem::replace(&mut self.second, second);
        let cpu = thread_cpu();
        let queue_wait = queue_wait_ns(self.schedstat.as_ref());
        let mut of_rings = io.rings.finish_second(io.clocks.read());
        for (kind, detail) in io.rings.take_news() {
            io.collector.push(DriverEvent::Receive { at: now, thread: io.thread, kind, detail });
        }
        let mut drops = std::mem::take(&mut io.drops);
        if self.stalled_at.is_some_and(|at| now.saturating_duration_since(at) < AFTER_STALL) {
            drops.received += std::mem::take(&mut drops.burst);
            of_rings.dropped += std::mem::take(&mut of_rings.burst);
        }
        if drops.burst > 0 {
            let (thread, dropped, silent) = (io.thread, drops.burst, drops.silent);
            io.collector.push(DriverEvent::Burst {
                second: ended,
                thread,
                dropped,
                silent,
                by_ring: false,
            });
        }
        if of_rings.burst > 0 {
            let (thread, dropped, silent) = (io.thread, of_rings.burst, of_rings.silent);
            io.collector.push(DriverEvent::Burst {
                second: ended,
                thread,
                dropped,
                silent,
                by_ring: true,
            });
        }
        let row = GeneratorRow {
            second: ended,
            thread: Some(io.thread),
            cpu_us: u64::try_from(cpu.saturating_sub(self.cpu).as_micros()).unwrap_or(u64::MAX),
            run_queue_wait_us: queue_wait.saturating_sub(self.queue_wait_ns) / 1000,
            lag_p99_us: lag_p99(&self.lag_us),
            lag_max_us: self.lag_us.quantile(1.0).unwrap_or(0),
            socket_drops: drops.received.saturating_add(of_rings.dropped),
            ring_drops: of_rings.dropped,
            ring_datagrams: of_rings.delivered,
            ring_bytes: io.rings.bytes(),
            send_drops: drops.sent,
            sent_bytes: std::mem::take(&mut io.sent_bytes),
            observations_dropped: io.collector.take_dropped(),
            ..GeneratorRow::default()
        };
        self.lag_us.clear();
        (self.cpu, self.queue_wait_ns) = (cpu, queue_wait);
        Some(row)
    }
}

/// The 99th percentile of the lateness, but at most the [`LATE_DEADLINES_MIN`]-th largest, or the
/// smallest of fewer.
fn lag_p99(lag_us: &Distribution) -> u64 {
    let all = lag_us.count() as f64;
    // Half a rank below: the quantile is of the next whole one, whatever rounding does.
    let rank = (all - f64::from(LATE_DEADLINES_MIN) + 1.0).max(1.0) - 0.5;
    lag_us.quantile((rank / all.max(1.0)).min(0.99)).unwrap_or(0)
}

fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn queue_wait_ns(schedstat: Option<&File>) -> u64 {
    let mut bytes = [0; 128];
    let read = schedstat.and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
    let text = bytes.get(..read).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(parse_schedstat).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_deadline_of_an_idle_thread_is_no_late_second() {
        let lag = |on_time: u32, late: u32| {
            let mut all = Distribution::new();
            all.record_many(100, on_time);
            all.record_many(60_000, late);
            lag_p99(&all) > 20_000
        };
        assert!(!lag(9, 1) && !lag(8, 2), "an idle thread looks ten times a second");
        assert!(lag(7, 3));
        assert!(lag(0, 1) && lag(0, 2), "a thread that stood still had no other deadline");
        assert!(!lag(1, 1) && !lag(0, 0));
        assert!(lag(980, 20) && !lag(995, 5), "of many it is the 99th percentile");
    }
}
