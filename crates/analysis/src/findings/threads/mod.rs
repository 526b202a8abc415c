//! A thread can use one core. If that is full, the thread is saturated however idle the host is.
//! The way in which it shares its work decides which of three findings it is.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, Evidence, HOST_BUSY, NamedThread, NoFinding, runtime, thread_log};
use crate::context::{Context, CpuLimit, Pool, Reading, Thread, WAIT_MIN};
use crate::demand::Resource;

pub(super) mod full;
pub(super) mod single;
pub(super) mod uneven;

/// Utilisation of a full thread: wake-ups and the kernel's bookkeeping take the rest.
pub(super) const FULL_MIN: f64 = 0.92;
/// A thread above this in most seconds is full, though bursts leave gaps in some.
const STEADY_MIN: f64 = 0.85;
/// Cores that the other threads of a single-threaded process may use.
const OTHERS_MAX: f64 = 0.10;
/// Mean utilisation of a pool below which its work is not shared evenly.
const EVEN_MIN: f64 = 0.60;

/// The kind of a full thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The pool is full, or a setting can add threads to it.
    Full,
    /// It does all work of its process.
    Single,
    /// Other threads of its pool are not full.
    Uneven,
}

/// The full thread.
struct Hot<'a, 'b> {
    thread: &'b Thread<'a>,
    /// All threads of its pool, including itself.
    pool: Vec<&'b Thread<'a>>,
}

/// The full thread of the wanted kind, or why there is none.
fn hot<'a, 'b>(context: &'b Context<'a>, wanted: Shape) -> Result<Hot<'a, 'b>, NoFinding> {
    if !context.is_seen(&metric::THREAD_CPU) {
        return Err(NoFinding::NotMonitored("the server's threads"));
    }
    let thread =
        context.full_threads().max_by(|a, b| a.wanted().fail().total_cmp(&b.wanted().fail()));
    let thread = thread.ok_or_else(|| none_is_full(context))?;
    if context.cpu_limit != CpuLimit::Thread {
        return Err(NoFinding::NotApplicable);
    }
    let pool = Pool::of(context, thread).threads;
    let mean = pool.iter().map(|thread| thread.cpu.fail()).sum::<f64>() / pool.len().max(1) as f64;
    let of_process: f64 = context
        .threads
        .iter()
        .filter(|other| other.pid == thread.pid)
        .map(|other| other.cpu.fail())
        .sum();
    let has_setting = context.knowledge.thread(thread.process, thread.name).is_some_and(|known| {
        known.setting.as_ref().is_some_and(|setting| setting.unit == "thread")
    });
    let is_of_runtime = context.knowledge.runtime(thread.process, thread.name).is_some();
    // In a runtime that puts any task on any thread, a thread that stays the busiest has work that
    // cannot be shared.
    let shape = if pool.len() > 1 && mean < EVEN_MIN && !is_of_runtime {
        Shape::Uneven
    } else if !has_setting && of_process - thread.cpu.fail() < OTHERS_MAX {
        Shape::Single
    } else {
        Shape::Full
    };
    if shape == wanted { Ok(Hot { thread, pool }) } else { Err(NoFinding::NotApplicable) }
}

/// Whether work moves between the threads of its pool, so that only the pool as a whole can be
/// judged.
pub(crate) fn is_any_of_its_pool(context: &Context<'_>, thread: &Thread<'_>) -> bool {
    Pool::of(context, thread).wanders(context) || runtime::is_bound(context, thread.process)
}

/// How far a full thread is used up, 0 to 1. One that is nearly full in the median and steady is
/// full: bursts of frames leave gaps in a second.
pub(super) fn used(thread: &Thread<'_>) -> f64 {
    let wanted = thread.wanted().fail();
    used_up(if thread.steady >= STEADY_MIN { wanted.max(FULL_MIN) } else { wanted })
}

/// Why no thread is a candidate: none whose work grew is full. A thread that is always busy looks
/// full.
fn none_is_full(context: &Context<'_>) -> NoFinding {
    let always = context.threads.iter().find(|thread| thread.is_always_busy() && thread.is_full());
    if let Some(thread) = always {
        return NoFinding::Constant(format!(
            "Thread {} is as busy at every load ({} before, {} under the load that failed): it \
             does not change with the load, so it is not the cause",
            thread.label(),
            percent(thread.cpu.before().unwrap_or(0.0)),
            percent(thread.cpu.fail())
        ));
    }
    // A full thread of a pool between whose threads work moves is covered by the finding of the
    // pool.
    let hottest = context.hottest().filter(|thread| !thread.is_full());
    hottest.map_or(NoFinding::NotApplicable, |thread| {
        let used = percent(thread.cpu.fail());
        NoFinding::RuledOut(format!(
            "The busiest thread, {}, used {used} of its core",
            thread.label()
        ))
    })
}

/// The part that the three findings have in common.
fn candidate(
    context: &Context<'_>,
    hot: &Hot<'_, '_>,
    key: &'static str,
    title: String,
    change: String,
) -> Candidate {
    let (thread, wanted, waits) = (hot.thread, hot.thread.wanted(), hot.thread.waits_longer());
    let mut parts = vec![thread.measured];
    if waits {
        parts.extend(context.waits_of(thread));
    }
    let crossed = context.crossed(&parts, FULL_MIN);
    let alone = crossed.filter(|_| !waits);
    let busy = context.host_busy().unwrap_or_default();
    let mut evidence = vec![
        Evidence::ratio(format!("thread.cpu of {}", thread.label()), thread.cpu)
            .limit(1.0)
            .crossed(alone),
        context.users.first_evidence(),
        Evidence::ratio(HOST_BUSY, busy).limit(1.0),
    ];
    if thread.wait.fail.is_some() {
        evidence.push(Evidence::ratio(
            format!("thread.run_queue_wait of {}", thread.label()),
            thread.wait,
        ));
    }
    if waits {
        // Which part of its work waits changes from run to run; both together decide.
        let name = format!("thread.cpu and thread.run_queue_wait of {}, together", thread.label());
        evidence.push(Evidence::ratio(name, wanted).limit(1.0).crossed(crossed).decides());
    }
    if hot.pool.len() > 1 {
        let cpu: Vec<Reading> = hot.pool.iter().map(|thread| thread.cpu).collect();
        let mean =
            Reading::combined(&cpu, |values| values.iter().sum::<f64>() / values.len() as f64);
        let name = format!("mean of the {} threads {}", hot.pool.len(), thread.group);
        evidence.push(Evidence::ratio(name, mean).limit(1.0));
    }
    evidence.extend(thread_log::evidence(context, thread));
    // The demand of its CPU time says nothing of when it is full where others take a part of its
    // core.
    let is_shared = waits && thread.wait.fail() >= WAIT_MIN;
    let demand = context.demand_of(Resource::Thread, &thread.label()).filter(|_| !is_shared);
    let title = if is_shared {
        let (taker, taken) = context.largest_taker();
        let (wait, taken) = (percent(thread.wait.fail()), percent(taken));
        format!(
            "{title}, for which it waits {wait} of the time ({taken} of the host's CPUs are used \
             by {})",
            taker.name()
        )
    } else {
        title
    };
    Candidate {
        used: used(thread),
        queue: context.backlog(),
        demand: demand.cloned(),
        crossed_at_s: crossed,
        series: vec![thread.measured.series.id],
        evidence,
        change,
        eases: |demand, candidate| {
            matches!(demand.resource, Resource::Thread | Resource::ThreadGroup)
                && demand.group == candidate.pool
        },
        pool: Some(thread.group.clone()),
        thread: Some(NamedThread::of(context, thread)),
        ..Candidate::new(key, title, format!("thread {}", thread.label()))
    }
}

/// The recommendation of the knowledge pack, or `otherwise` if it has none.
fn change(context: &Context<'_>, thread: &Thread<'_>, otherwise: &str) -> String {
    let known = context.knowledge.thread(thread.process, thread.name);
    let help =
        known.map(throng_observation::pack::ThreadMeaning::help).filter(|help| !help.is_empty());
    help.unwrap_or_else(|| otherwise.to_owned())
}
