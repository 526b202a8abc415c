//! A thread has one core. When that is full the thread is, however idle the host looks; which of three findings it is
//! depends on whom it shares its work with.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, HOST_BUSY, cpu_all, cpu_quota, runtime};
use crate::context::{Context, Pool, Reading, Thread};
use crate::demand::Resource;

pub(super) mod full;
pub(super) mod single;
pub(super) mod uneven;

/// From here on a thread is full: the rest goes to waking up and to the kernel's bookkeeping.
pub(super) const FULL_MIN: f64 = 0.92;
/// A hot thread that is steadily above this in most seconds is full, though bursts leave gaps in some.
const STEADY_MIN: f64 = 0.85;
/// What others of a process may do beside its one busy thread.
const OTHERS_MAX: f64 = 0.10;
/// Threads that share work: below this mean the work is there and is not shared.
const EVEN_MIN: f64 = 0.60;

/// What kind of full thread it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// It shares its work with nobody that could take more, but a setting makes more of them.
    Full,
    /// It is all that the process has.
    Single,
    /// Its like have room.
    Uneven,
}

struct Hot<'a, 'b> {
    thread: &'b Thread<'a>,
    /// All of its pool, itself among them.
    pool: Vec<&'b Thread<'a>>,
    shape: Shape,
}

/// The full thread, or why there is none.
fn hot<'a, 'b>(context: &'b Context<'a>) -> Result<Hot<'a, 'b>, CheckResult> {
    if !context.is_seen(&metric::THREAD_CPU) {
        return Err(CheckResult::NotMonitored("the server's threads"));
    }
    let mut full = context.threads.iter().filter(|thread| thread.is_full() && !thread.is_always_busy());
    let Some(thread) = full.find(|thread| !is_any_of_its_pool(context, thread)) else {
        return Err(none_is_full(context));
    };
    let used = thread.cpu.fail();
    if context.throttled().fail() >= cpu_quota::THROTTLED_MIN {
        return Err(CheckResult::NotApplicable);
    }
    if cpu_all::is_full(context) {
        return Err(CheckResult::NotApplicable);
    }
    let pool = Pool::of(context, thread).threads;
    let mean = pool.iter().map(|thread| thread.cpu.fail()).sum::<f64>() / pool.len().max(1) as f64;
    let of_process: f64 =
        context.threads.iter().filter(|other| other.pid == thread.pid).map(|other| other.cpu.fail()).sum();
    let has_setting = context
        .knowledge
        .thread(thread.process, thread.name)
        .is_some_and(|known| known.setting.as_ref().is_some_and(|setting| setting.unit == "thread"));
    let is_of_runtime = context.knowledge.runtime(thread.process, thread.name).is_some();
    // Of a runtime that puts any task on any thread, one that keeps its thread has work that cannot be shared.
    let shape = if pool.len() > 1 && mean < EVEN_MIN && !is_of_runtime {
        Shape::Uneven
    } else if !has_setting && of_process - used < OTHERS_MAX {
        Shape::Single
    } else {
        Shape::Full
    };
    Ok(Hot { thread, pool, shape })
}

/// Whether a thread is any of those that share its work, so that what they do together has to be looked at.
fn is_any_of_its_pool(context: &Context<'_>, thread: &Thread<'_>) -> bool {
    Pool::of(context, thread).wanders(context) || runtime::is_bound(context, thread.process)
}

/// No thread whose work grew is full; one that is always busy looks as if it were.
fn none_is_full(context: &Context<'_>) -> CheckResult {
    let always = context.threads.iter().find(|thread| thread.is_always_busy());
    if let Some(thread) = always.filter(|thread| thread.is_full()) {
        return CheckResult::Constant(format!(
            "Thread {} is busy at every load alike ({} before, {} under the load that failed): what does not change with the load explains nothing",
            thread.label(),
            percent(thread.cpu.before().unwrap_or(0.0)),
            percent(thread.cpu.fail())
        ));
    }
    // A full one that is any of its pool is told with its pool.
    context.hottest().filter(|thread| !thread.is_full()).map_or(CheckResult::NotApplicable, |thread| {
        CheckResult::RuledOut(format!(
            "The busiest thread, {}, used {} of its core",
            thread.label(),
            percent(thread.cpu.fail())
        ))
    })
}

/// What all three say alike.
fn candidate(
    context: &Context<'_>,
    hot: &Hot<'_, '_>,
    key: &'static str,
    title: String,
    change: String,
) -> Candidate {
    let (thread, used) = (hot.thread, hot.thread.cpu.fail());
    let own = [thread.measured];
    let crossed = context.crossed(&own, FULL_MIN);
    let busy = context.host_busy().unwrap_or_default();
    let users = &context.users;
    let mut evidence = vec![
        Evidence::new(format!("thread.cpu of {}", thread.label()), Unit::Ratio, thread.cpu)
            .limit(Some(1.0))
            .crossed(crossed),
        Evidence::new(
            "delay of the users' frames above their floor, median",
            Unit::Milliseconds,
            users.delay_ms,
        ),
        Evidence::new(HOST_BUSY, Unit::Ratio, busy).limit(Some(1.0)),
    ];
    if thread.wait.fail.is_some() {
        evidence.push(Evidence::new(
            format!("thread.run_queue_wait of {}", thread.label()),
            Unit::Ratio,
            thread.wait,
        ));
    }
    if hot.pool.len() > 1 {
        let rest = |of: fn(&Reading) -> Option<f64>| {
            let values: Vec<f64> = hot.pool.iter().filter_map(|thread| of(&thread.cpu)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let mean = Reading {
            base: rest(|r| r.base),
            pass: rest(|r| r.pass),
            fail: rest(|r| r.fail),
            most: rest(|r| r.most),
        };
        let name = format!("mean of the {} threads {}", hot.pool.len(), thread.group);
        evidence.push(Evidence::new(name, Unit::Ratio, mean).limit(Some(1.0)));
    }
    // Nearly full in the median and never far below is full: bursts of frames leave gaps in a second.
    let share = if thread.steady >= STEADY_MIN { used.max(FULL_MIN) } else { used };
    Candidate {
        used: used_up(share),
        queue: context.backlog(),
        demand: context.demand_of(Resource::Thread, &thread.label()).cloned(),
        crossed_at_s: crossed,
        series: vec![thread.measured.series.id],
        evidence,
        change,
        eases: |demand, candidate| {
            matches!(demand.resource, Resource::Thread | Resource::ThreadGroup)
                && demand.group == candidate.pool
        },
        pool: Some(thread.group.clone()),
        ..Candidate::new(key, title, format!("thread {}", thread.label()))
    }
}

/// What the packs know to change; else what is true of any program.
fn change(context: &Context<'_>, thread: &Thread<'_>, otherwise: &str) -> String {
    let known = context.knowledge.thread(thread.process, thread.name);
    let help = known.map(throng_observation::pack::ThreadMeaning::help).filter(|help| !help.is_empty());
    help.unwrap_or_else(|| otherwise.to_owned())
}
