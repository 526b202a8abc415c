//! Health of an engine thread by second: CPU time, run-queue wait, loop lag, drops.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use throng_observation::limits::{LATE_DEADLINES_MIN, STANDSTILL_MS_MIN, STEAL_RATIO_MAX};
use throng_observation::run::GeneratorRow;
use throng_observation::{Distribution, RunTime};

use super::collector_sender::DriverEvent;
use super::io_context::IoContext;
use crate::clock::RunClock;
use crate::health::parse_schedstat;

/// A thread that stood still for so long may itself have made the silence after which datagrams
/// found no room: what it could not read is missing before them.
const STALL: Duration = Duration::from_millis(STANDSTILL_MS_MIN);

/// How long after a stall drops are its own.
const AFTER_STALL: Duration = Duration::from_secs(3);

/// A thread's measurements of itself in the current second.
pub(super) struct ThreadHealth {
    second: i64,
    stalled_at: Option<Instant>,
    /// When the loop last met a deadline.
    looked_at: Instant,
    /// How late the first deadline of a second was that fell due while the thread stood still,
    /// microseconds.
    stood_us: BTreeMap<i64, u64>,
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
            looked_at: now,
            stood_us: BTreeMap::new(),
            lag_us: Distribution::new(),
            cpu: thread_cpu(),
            queue_wait_ns,
            schedstat,
        }
    }

    /// Records that the loop was `late` for its tick.
    pub(super) fn record_lag(&mut self, clock: RunClock, now: Instant, late: Duration) {
        if late >= STALL {
            self.stalled_at = Some(now);
        }
        let looked_at = std::mem::replace(&mut self.looked_at, now);
        if now.saturating_duration_since(looked_at) >= STALL {
            for (second, late_us) in stood_still(clock.run_time(looked_at), clock.run_time(now)) {
                let most = self.stood_us.entry(second).or_default();
                *most = late_us.max(*most);
            }
        }
        self.lag_us.record(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
    }

    /// The row of the second that ended, if one has, and of those after it in which the thread
    /// stood still.
    pub(super) fn finish_second(
        &mut self,
        clock: RunClock,
        now: Instant,
        io: &mut IoContext,
    ) -> Vec<GeneratorRow> {
        let second = clock.run_time(now).second();
        if second == self.second {
            return Vec::new();
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
        let later = self.stood_us.split_off(&second);
        let stood_us = std::mem::replace(&mut self.stood_us, later);
        let own_us = stood_us.get(&ended).copied().unwrap_or(0);
        let row = GeneratorRow {
            second: ended,
            thread: Some(io.thread),
            cpu_us: u64::try_from(cpu.saturating_sub(self.cpu).as_micros()).unwrap_or(u64::MAX),
            run_queue_wait_us: queue_wait.saturating_sub(self.queue_wait_ns) / 1000,
            lag_p99_us: lag_p99(&self.lag_us).max(own_us),
            lag_max_us: self.lag_us.quantile(1.0).unwrap_or(0).max(own_us),
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
        let (thread, ring_bytes) = (row.thread, row.ring_bytes);
        let mut rows = vec![row];
        for (second, late_us) in stood_us.into_iter().filter(|(second, _)| *second > ended) {
            rows.push(GeneratorRow {
                second,
                thread,
                lag_p99_us: late_us,
                lag_max_us: late_us,
                ring_bytes,
                ..GeneratorRow::default()
            });
        }
        rows
    }
}

/// The seconds in which a thread stood still `from` a moment `to` another, each with how late its
/// first deadline was that fell due meanwhile, microseconds. Seconds that were hardly touched are
/// left out.
fn stood_still(from: RunTime, to: RunTime) -> impl Iterator<Item = (i64, u64)> {
    (from.second()..=to.second()).filter_map(move |second| {
        let begin = from.0.max(second * 1_000_000);
        let part_us = to.0.min((second + 1) * 1_000_000) - begin;
        let is_touched = part_us as f64 > STEAL_RATIO_MAX * 1e6;
        is_touched.then(|| (second, (to.0 - begin).unsigned_abs()))
    })
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
    fn each_second_in_which_a_thread_stood_still_is_late_as_long_as_it_still_did() {
        let stood = |from_ms: i64, to_ms: i64| {
            let at = |ms: i64| RunTime(ms * 1000);
            let late = stood_still(at(from_ms), at(to_ms));
            late.map(|(second, late_us)| (second, late_us / 1000)).collect::<Vec<_>>()
        };
        assert_eq!(stood(3_400, 6_400), [(3, 3_000), (4, 2_400), (5, 1_400), (6, 400)]);
        assert_eq!(stood(3_000, 6_000), [(3, 3_000), (4, 2_000), (5, 1_000)]);
        assert_eq!(stood(3_980, 6_980), [(4, 2_980), (5, 1_980), (6, 980)], "20 ms of second 3");
        assert_eq!(stood(3_100, 3_700), [(3, 600)]);
        assert_eq!(stood(-300, 400), [(-1, 700), (0, 400)]);
    }

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
