//! The parallelism of a runtime is the limit. It puts any task on any of its threads, so no thread
//! is full for long; yet all together use a fixed number of cores, because the runtime runs that
//! many at once, or because there is only one task at a time.

use std::ops::RangeInclusive;

use throng_observation::host::catalogue as metric;
use throng_observation::pack::Runtime;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, HOST_BUSY, NamedThread, NoFinding, ruled_out};
use crate::context::{Context, Pool, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "runtime_parallelism";
/// Cores that threads use together if one of them works at a time.
pub(super) const ONE_CORE: RangeInclusive<f64> = 0.85..=1.12;
/// Cores of one of the threads; above it the thread is full by itself.
pub(super) const TAKING_PART: RangeInclusive<f64> = 0.05..=0.80;
/// Share of the cores that the runtime uses at once: handing work between threads takes the rest,
/// and time in the kernel may come on top.
const FULL_MIN: f64 = 0.85;
const FULL_MAX: f64 = 1.15;

/// Threads between which work moves, and the number of them that run at once.
pub(super) struct Bound<'a, 'b> {
    pub(super) pool: Pool<'a, 'b>,
    pub(super) process: &'a str,
    pub(super) group: String,
    runtime: Option<Runtime>,
    /// The number of threads that the runtime runs at once, if its environment sets it.
    set_to: Option<u32>,
    pub(super) cores: Reading,
}

/// The busiest pool of threads between which work moves.
pub(super) fn bound<'a, 'b>(context: &'b Context<'a>) -> Option<Bound<'a, 'b>> {
    let set_to = |pool: &Pool<'a, 'b>| {
        let first = pool.threads.first()?;
        context
            .knowledge
            .parallelism(first.process, context.knowledge.runtime(first.process, first.name)?)
    };
    let pools = Pool::all(context)
        .into_iter()
        .filter(|pool| set_to(pool).is_some() || pool.wanders(context));
    let pool = pools.max_by(|a, b| a.used(context).total_cmp(&b.used(context)))?;
    let first = pool.threads.first()?;
    Some(Bound {
        process: first.process,
        group: first.group.clone(),
        runtime: context.knowledge.runtime(first.process, first.name),
        set_to: set_to(&pool),
        cores: pool.cores(context),
        pool,
    })
}

impl Bound<'_, '_> {
    /// The number of cores that it uses at once: the setting, or one if nothing is set.
    pub(super) fn at(&self) -> f64 {
        f64::from(self.set_to.unwrap_or(1))
    }

    fn is_full(&self) -> bool {
        let share = self.cores.fail() / self.at();
        if self.set_to.is_some() {
            (FULL_MIN..=FULL_MAX).contains(&share)
        } else {
            ONE_CORE.contains(&share)
        }
    }

    fn title(&self) -> String {
        let (process, threads) = (self.process, self.pool.threads.len());
        match (self.runtime, self.set_to) {
            (Some(runtime), Some(set)) => {
                let cores = if set == 1 { "one core".to_owned() } else { format!("{set} cores") };
                format!("{process} is limited to {cores}: {} is {set}", variable(runtime))
            }
            (Some(runtime), None) => format!(
                "{process} uses no more than one core: {} has {threads} threads, and one works at \
                 a time",
                runtime.title()
            ),
            (None, _) => format!(
                "The {threads} threads {} of {process} use no more than one core together: one \
                 works at a time",
                self.group
            ),
        }
    }

    pub(super) fn change(&self) -> String {
        match (self.runtime, self.set_to) {
            (Some(runtime), Some(_)) => runtime.change().to_owned(),
            (Some(runtime), None) => format!(
                "{}; if there are several already, all work comes from one task or waits for one \
                 lock: divide that",
                runtime.change()
            ),
            (None, _) => "Let more of them work at once: raise the setting for their number, or \
                          change what distributes the work (a lock, or a queue that one of them \
                          empties at a time)"
                .to_owned(),
        }
    }
}

fn variable(runtime: Runtime) -> &'static str {
    runtime.variable().unwrap_or("its number of threads")
}

/// Whether the runtime of a process is set to one thread at once: then its threads do not take
/// turns at a lock.
pub(super) fn is_bound(context: &Context<'_>, process: &str) -> bool {
    bound(context).is_some_and(|bound| bound.process == process && bound.set_to == Some(1))
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::THREAD_CPU) {
        return Err(NoFinding::NotMonitored("the server's threads"));
    }
    let Some(bound) = bound(context).filter(|_| !context.is_cpu_taken()) else {
        return Err(NoFinding::NotApplicable);
    };
    let (count, group, process) = (bound.pool.threads.len(), &bound.group, bound.process);
    let is_host = context.cpus().is_some_and(|cpus| bound.at() >= cpus);
    if !bound.is_full() || is_host {
        let cores = bound.cores.fail();
        return ruled_out(format!(
            "The {count} threads {group} of {process} share their work and use {cores:.1} cores"
        ));
    }
    // Several threads work in each second and use one core together: they take turns, which another
    // finding covers.
    let takes_turns = context.busiest_of_each_second(&bound.pool.threads) <= *TAKING_PART.end();
    if bound.set_to.is_none() && takes_turns {
        return Err(NoFinding::NotApplicable);
    }
    let threads: Vec<_> = bound.pool.threads.iter().map(|thread| thread.measured).collect();
    let crossed = context.crossed(&threads, FULL_MIN * bound.at());
    let of_process = context.demand_of(Resource::ProcessCpu, process);
    Ok(Candidate {
        used: used_up((bound.cores.fail() / bound.at()).max(0.95)),
        queue: context.backlog(),
        demand: of_process.and_then(|demand| demand.limited_to(bound.at())),
        crossed_at_s: crossed,
        series: threads.iter().map(|thread| thread.series.id).collect(),
        evidence: vec![
            Evidence::ratio(
                format!("CPU of the {count} threads {group} of {process}"),
                bound.cores,
            )
            .limit(bound.at())
            .crossed(crossed),
            Evidence::ratio(HOST_BUSY, context.host_busy().unwrap_or_default()).limit(1.0),
            Evidence::ratio(
                "thread.run_queue_wait, the longest of them",
                context.longest_wait().map_or_else(Reading::default, |(_, wait)| wait),
            ),
        ],
        change: bound.change(),
        eases: |demand, _| matches!(demand.resource, Resource::Thread | Resource::ThreadGroup),
        thread: bound.pool.threads.first().map(|first| NamedThread::of(context, first)),
        ..Candidate::new(KEY, bound.title(), format!("threads of {process}"))
    })
}
