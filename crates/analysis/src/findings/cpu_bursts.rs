//! A thread is full for moments, again and again, though none of its seconds is: what all need at once (a key frame for every
//! viewer) keeps whoever comes next waiting, and the second's mean does not show it.
//!
//! Of a runtime that moves its work from thread to thread (Go, Tokio, the JVM) all its threads are one.
//!
//! Told by what the watcher reads ten times a second. Other limits are told by more; this one is named where there is none.

use throng_observation::host::catalogue as metric;
use throng_observation::host::{SeriesId, Unit};
use throng_observation::units::percent;

use super::runtime::{self, Bound};
use super::{Candidate, CheckResult, Evidence, cpu_all, cpu_quota};
use crate::context::{Context, Reading, Thread};

pub(super) const KEY: &str = "cpu_bursts";
/// A reading this full leaves no room; what begins and ends within a reading shows less than it was.
const FULL_MIN: f64 = 0.90;
/// Readings that tell of moments: a tenth of a second, late by as much again.
const MOMENT_US_MAX: i64 = 250_000;
/// Of the time: one moment in three seconds; and one in each second keeps every frame of it waiting.
const BURSTS_MIN: f64 = 0.03;
const BURSTS_FULL: f64 = 0.10;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::THREAD_CPU) {
        return CheckResult::NotMonitored("the server's threads");
    }
    let is_elsewhere = cpu_all::is_full(context) || context.throttled().fail() >= cpu_quota::THROTTLED_MIN;
    let bound = runtime::bound(context);
    let is_of_its_own = |thread: &&Thread<'_>| bound.as_ref().is_none_or(|bound| !bound.pool.holds(thread));
    let own = context.threads.iter().filter(is_of_its_own).map(|thread| Bursty::of_thread(context, thread));
    let bursty = own.chain(bound.as_ref().map(|bound| Bursty::of_pool(context, bound)));
    let with_room = bursty.filter(|one| one.cpu.fail() < super::threads::FULL_MIN);
    let worst = with_room.max_by(|a, b| a.share.fail().total_cmp(&b.share.fail()));
    let Some(worst) = worst.filter(|one| !is_elsewhere && one.share.fail.is_some()) else {
        return CheckResult::NotApplicable;
    };
    if worst.share.fail() < BURSTS_MIN {
        return CheckResult::RuledOut(format!(
            "No thread is full for moments: {} of the time at most",
            percent(worst.share.fail())
        ));
    }
    worst.candidate(context).suspect()
}

/// What may be full for moments: a thread, or all those among which a runtime moves its work.
struct Bursty {
    who: String,
    /// The share of the time in which it was full, and what it used in the median second, of all that it can.
    share: Reading,
    cpu: Reading,
    series: Vec<SeriesId>,
    group: String,
    change: String,
}

impl Bursty {
    fn of_thread(context: &Context<'_>, thread: &Thread<'_>) -> Self {
        Self {
            who: format!("thread {}", thread.label()),
            share: bursts(context, thread),
            cpu: thread.cpu,
            series: vec![thread.measured.series.id],
            group: thread.group.clone(),
            change: "more threads, or a faster core".to_owned(),
        }
    }

    /// Which of its threads has the work says nothing: while as many are full as the runtime runs at once, all of it is.
    fn of_pool(context: &Context<'_>, bound: &Bound<'_, '_>) -> Self {
        let shares: Vec<Reading> = bound.pool.threads.iter().map(|thread| bursts(context, thread)).collect();
        let sum = |of: fn(&Reading) -> Option<f64>| {
            let known: Vec<f64> = shares.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| (known.iter().sum::<f64>() / bound.at()).min(1.0))
        };
        let of_all = |used: f64| used / bound.at();
        Self {
            who: format!("the {} threads {} of {}", shares.len(), bound.group, bound.process),
            share: Reading {
                base: sum(|share| share.base),
                pass: sum(|share| share.pass),
                most: sum(|share| share.most),
                fail: sum(|share| share.fail),
            },
            cpu: Reading {
                base: bound.cores.base.map(of_all),
                pass: bound.cores.pass.map(of_all),
                most: bound.cores.most.map(of_all),
                fail: bound.cores.fail.map(of_all),
            },
            series: bound.pool.threads.iter().map(|thread| thread.measured.series.id).collect(),
            group: bound.group.clone(),
            change: bound.change(),
        }
    }

    fn candidate(self, context: &Context<'_>) -> Candidate {
        let Self { who, share, cpu, .. } = self;
        let of_time = percent(share.fail());
        let title = match who.strip_prefix("thread ") {
            Some(thread) => format!(
                "Thread {thread} is full for moments: {of_time} of the time, though its seconds have room"
            ),
            None => format!(
                "All that {who} can do is used up for moments: {of_time} of the time, though their seconds have room"
            ),
        };
        Candidate {
            used: (share.fail() / BURSTS_FULL).clamp(0.0, 1.0),
            queue: context.backlog(),
            crossed_at_s: context.windows.first_bad_s.map(|second| second as f64),
            series: self.series,
            evidence: vec![
                Evidence::new(
                    format!("share of the time in which {who} had no room, read each 100 ms"),
                    Unit::Ratio,
                    share,
                )
                .decides(),
                Evidence::new(format!("CPU of {who}, the median second"), Unit::Ratio, cpu).limit(Some(1.0)),
                Evidence::new(
                    "delay of the users' frames above their floor, median",
                    Unit::Milliseconds,
                    context.users.delay_ms,
                ),
            ],
            change: format!(
                "Spread what comes at once: key frames of different streams at different moments, packets of a key frame paced over the frames after it; or {}",
                self.change
            ),
            pool: Some(self.group),
            ..Candidate::new(KEY, title, who)
        }
    }
}

/// In which share of the time a thread was full, of the time in which it was read often enough.
fn bursts(context: &Context<'_>, thread: &Thread<'_>) -> Reading {
    let of = context.reading(|window| thread.measured.share_of_moments(window, FULL_MIN, MOMENT_US_MAX));
    // A thread that was too idle to be read so often was not full.
    let idle = |share: Option<f64>, cpu: Option<f64>| {
        share.or_else(|| cpu.filter(|cpu| *cpu < BURSTS_MIN).map(|_| 0.0))
    };
    Reading { base: idle(of.base, thread.cpu.base), pass: idle(of.pass, thread.cpu.pass), ..of }
}
