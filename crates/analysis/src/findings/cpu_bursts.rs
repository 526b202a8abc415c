//! A thread is saturated in short bursts though no whole second is: work for all users at once (a
//! key frame for every viewer) delays what comes next, and the mean of the second does not show it.
//!
//! The threads of a runtime that moves work between them (Go, Tokio, the JVM) count as one.
//!
//! Detected from readings of the watcher at ten a second. Other limits have stronger evidence, so
//! this one is named only where there is no other, and no other of the CPU ([`CpuLimit`]) but a
//! thread that is far from full.

use throng_observation::host::SeriesId;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::runtime::{self, Bound};
use super::{
    Candidate, CheckResult, Evidence, NamedThread, NoFinding, ruled_out, thread_log, threads,
};
use crate::context::{Context, CpuLimit, Reading, Thread};

pub(super) const KEY: &str = "cpu_bursts";
/// Utilisation of a saturated reading; a burst that begins or ends within a reading shows as less.
const FULL_MIN: f64 = 0.90;
/// Longest reading that shows bursts: a tenth of a second, and as much again of lateness.
const MOMENT_US_MAX: i64 = 250_000;
/// A thread that is used up by less than this has room in its seconds, so that a burst is what it
/// is short of.
const USED_MIN: f64 = 0.5;
/// Share of the time: one burst of 100 ms in three seconds. With one in each second every frame
/// waits.
const BURSTS_MIN: f64 = 0.03;
const BURSTS_FULL: f64 = 0.10;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::THREAD_CPU) {
        return Err(NoFinding::NotMonitored("the server's threads"));
    }
    let is_elsewhere = match context.cpu_limit {
        CpuLimit::Enough => false,
        CpuLimit::Thread => context.full_threads().any(|thread| threads::used(thread) >= USED_MIN),
        CpuLimit::Quota | CpuLimit::Host | CpuLimit::Placement { .. } => true,
    };
    let bound = runtime::bound(context);
    let is_of_its_own =
        |thread: &&Thread<'_>| bound.as_ref().is_none_or(|bound| !bound.pool.holds(thread));
    let own = context
        .threads
        .iter()
        .filter(is_of_its_own)
        .map(|thread| Bursty::of_thread(context, thread));
    let bursty = own.chain(bound.as_ref().map(|bound| Bursty::of_pool(context, bound)));
    let with_room = bursty.filter(|one| one.cpu.fail() < threads::FULL_MIN);
    let worst = with_room.max_by(|a, b| a.share.fail().total_cmp(&b.share.fail()));
    let worst = worst
        .filter(|one| !is_elsewhere && one.share.fail.is_some())
        .ok_or(NoFinding::NotApplicable)?;
    if worst.share.fail() < BURSTS_MIN {
        return ruled_out(format!(
            "No thread is saturated in bursts: {} of the time at most",
            percent(worst.share.fail())
        ));
    }
    Ok(worst.candidate(context))
}

/// A thread, or all threads of a runtime that moves work between them.
struct Bursty {
    who: String,
    /// The share of the time in which it was saturated, and its utilisation in the median second.
    share: Reading,
    cpu: Reading,
    series: Vec<SeriesId>,
    group: String,
    /// Of a pool the first of its threads: they share one name.
    thread: Option<NamedThread>,
    /// What the server's log says of the thread.
    said: Vec<Evidence>,
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
            thread: Some(NamedThread::of(context, thread)),
            said: thread_log::evidence(context, thread),
            change: "more threads, or a faster core".to_owned(),
        }
    }

    /// The runtime is saturated while as many of its threads are full as it runs at once, whichever
    /// they are.
    fn of_pool(context: &Context<'_>, bound: &Bound<'_, '_>) -> Self {
        let shares: Vec<Reading> =
            bound.pool.threads.iter().map(|thread| bursts(context, thread)).collect();
        Self {
            who: format!("The {} threads {} of {}", shares.len(), bound.group, bound.process),
            share: Reading::combined(&shares, |shares| {
                (shares.iter().sum::<f64>() / bound.at()).min(1.0)
            }),
            cpu: bound.cores.map(|used| used / bound.at()),
            series: bound.pool.threads.iter().map(|thread| thread.measured.series.id).collect(),
            group: bound.group.clone(),
            thread: bound.pool.threads.first().map(|first| NamedThread::of(context, first)),
            said: Vec::new(),
            change: bound.change(),
        }
    }

    fn candidate(self, context: &Context<'_>) -> Candidate {
        let Self { who, share, cpu, .. } = self;
        let of_time = percent(share.fail());
        let name = who.replacen("The ", "the ", 1);
        let title = match who.strip_prefix("thread ") {
            Some(thread) => format!(
                "Thread {thread} is saturated in bursts: {of_time} of the time, though its mean \
                 utilisation is lower"
            ),
            None => format!(
                "{who} are saturated together in bursts: {of_time} of the time, though their mean \
                 utilisation is lower"
            ),
        };
        let mut evidence = vec![
            Evidence::ratio(
                format!("share of readings of 100 ms in which {name} had no idle time"),
                share,
            )
            .decides(),
            Evidence::ratio(format!("CPU of {name}, the median second"), cpu).limit(1.0),
            context.users.first_evidence(),
        ];
        evidence.extend(self.said);
        Candidate {
            used: (share.fail() / BURSTS_FULL).clamp(0.0, 1.0),
            queue: context.backlog(),
            crossed_at_s: context.first_bad_s(),
            series: self.series,
            evidence,
            change: format!(
                "Spread the bursts: send key frames of different streams at different times, pace \
                 the packets of a key frame over the following frames; or use {}",
                self.change
            ),
            pool: Some(self.group),
            thread: self.thread,
            ..Candidate::new(KEY, title, name)
        }
    }
}

/// The share of the time in which a thread was saturated, of the time in which it was read often
/// enough.
fn bursts(context: &Context<'_>, thread: &Thread<'_>) -> Reading {
    let of =
        context.reading(|window| thread.measured.share_of_moments(window, FULL_MIN, MOMENT_US_MAX));
    // The watcher reads idle threads less often: such a thread was not saturated.
    let idle = |share: Option<f64>, cpu: Option<f64>| {
        share.or_else(|| cpu.filter(|cpu| *cpu < BURSTS_MIN).map(|_| 0.0))
    };
    Reading { base: idle(of.base, thread.cpu.base), pass: idle(of.pass, thread.cpu.pass), ..of }
}
