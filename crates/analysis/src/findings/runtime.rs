//! A runtime puts any task on any of its threads: no thread is full for long, and yet all of them together use so many cores
//! and no more, because the runtime works on so many at once, or because one task after the other is all there is.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::pack::Runtime;

use super::score::used_up;
use super::serialised::{ONE_CORE, TAKING_PART};
use super::{Candidate, CheckResult, Evidence, HOST_BUSY, cpu_all, cpu_quota};
use crate::context::{Context, Pool, Reading};
use crate::demand::{Demand, Resource};

pub(super) const KEY: &str = "runtime_parallelism";
/// Of the cores that the runtime works on at once: the rest goes to handing work from thread to thread, and what a thread does
/// in the kernel may come on top.
const FULL_MIN: f64 = 0.85;
const FULL_MAX: f64 = 1.15;

/// Threads whose work goes from one to the other, and how many of them work at once.
pub(super) struct Bound<'a, 'b> {
    pub(super) pool: Pool<'a, 'b>,
    pub(super) process: &'a str,
    pub(super) group: String,
    runtime: Option<Runtime>,
    /// On how many threads the runtime works at once, where its environment says so.
    set_to: Option<u32>,
    pub(super) cores: Reading,
}

/// The busiest threads of which none has work of its own.
pub(super) fn bound<'a, 'b>(context: &'b Context<'a>) -> Option<Bound<'a, 'b>> {
    let set_to = |pool: &Pool<'a, 'b>| {
        let first = pool.threads.first()?;
        context.knowledge.parallelism(first.process, context.knowledge.runtime(first.process, first.name)?)
    };
    let pools = Pool::all(context).into_iter().filter(|pool| set_to(pool).is_some() || pool.wanders(context));
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
    /// The cores that it works on at once: what it is set to, or one where nothing is known and it uses one.
    pub(super) fn at(&self) -> f64 {
        f64::from(self.set_to.unwrap_or(1))
    }

    fn is_full(&self) -> bool {
        let share = self.cores.fail() / self.at();
        if self.set_to.is_some() { (FULL_MIN..=FULL_MAX).contains(&share) } else { ONE_CORE.contains(&share) }
    }

    fn title(&self) -> String {
        let (process, threads) = (self.process, self.pool.threads.len());
        match (self.runtime, self.set_to) {
            (Some(runtime), Some(set)) => {
                let cores = if set == 1 { "one core".to_owned() } else { format!("{set} cores") };
                format!("{process} works on {cores} and no more: {} is {set}", variable(runtime))
            }
            (Some(runtime), None) => format!(
                "{process} uses one core and no more: {} has {threads} threads here, and one works at a time",
                runtime.title()
            ),
            (None, _) => format!(
                "The {threads} threads {} of {process} use one core together and no more: one works at a time",
                self.group
            ),
        }
    }

    pub(super) fn change(&self) -> String {
        match (self.runtime, self.set_to) {
            (Some(runtime), Some(_)) => runtime.change().to_owned(),
            (Some(runtime), None) => format!(
                "{}; where it has them, all work comes from one task or stands under one lock: divide that",
                runtime.change()
            ),
            (None, _) => "More of them at work at once: the setting for their number, or what hands the work out (a lock, or one queue that one of them empties at a time)".to_owned(),
        }
    }
}

fn variable(runtime: Runtime) -> &'static str {
    runtime.variable().unwrap_or("its number of threads")
}

/// Whether the runtime of a process is set to no more than one thread at once: then nobody takes turns at a lock.
pub(super) fn is_bound(context: &Context<'_>, process: &str) -> bool {
    bound(context).is_some_and(|bound| bound.process == process && bound.set_to == Some(1))
}

/// The model of a process, ended at so many cores.
pub(super) fn ended_at(demand: &Demand, cores: f64) -> Option<Demand> {
    let ends = (0.95 * cores - demand.idle) / demand.per_user;
    (demand.curve.is_none() && ends.is_finite() && ends > 0.0).then(|| Demand {
        limit: Some(cores),
        users: Some(ends),
        users_low: Some(ends * 0.9),
        users_high: Some(ends * 1.1),
        ..demand.clone()
    })
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::THREAD_CPU) {
        return CheckResult::NotMonitored("the server's threads");
    }
    let is_elsewhere = cpu_all::is_full(context) || context.throttled().fail() >= cpu_quota::THROTTLED_MIN;
    let Some(bound) = bound(context).filter(|_| !is_elsewhere) else { return CheckResult::NotApplicable };
    let (count, group, process) = (bound.pool.threads.len(), &bound.group, bound.process);
    let is_host = context.cpus().is_some_and(|cpus| bound.at() >= cpus);
    if !bound.is_full() || is_host {
        let cores = bound.cores.fail();
        return CheckResult::RuledOut(format!(
            "The {count} threads {group} of {process} share their work and use {cores:.1} cores"
        ));
    }
    // Several at work in each second, and one core's worth in all: they take turns, which another finding tells.
    let takes_turns = context.busiest_of_each_second(&bound.pool.threads) <= *TAKING_PART.end();
    if bound.set_to.is_none() && takes_turns {
        return CheckResult::NotApplicable;
    }
    let threads: Vec<_> = bound.pool.threads.iter().map(|thread| thread.measured).collect();
    let crossed = context.crossed(&threads, FULL_MIN * bound.at());
    let of_process = context.demand_of(Resource::ProcessCpu, process);
    Candidate {
        used: used_up((bound.cores.fail() / bound.at()).max(0.95)),
        queue: context.backlog(),
        demand: of_process.and_then(|demand| ended_at(demand, bound.at())),
        crossed_at_s: crossed,
        series: threads.iter().map(|thread| thread.series.id).collect(),
        evidence: vec![
            Evidence::new(
                format!("CPU of the {count} threads {group} of {process}"),
                Unit::Ratio,
                bound.cores,
            )
            .limit(Some(bound.at()))
            .crossed(crossed),
            Evidence::new(HOST_BUSY, Unit::Ratio, context.host_busy().unwrap_or_default()).limit(Some(1.0)),
            Evidence::new(
                "thread.run_queue_wait of them, the longest",
                Unit::Ratio,
                context.longest_wait().map_or_else(Reading::default, |(_, wait)| wait),
            ),
        ],
        change: bound.change(),
        eases: |demand, _| matches!(demand.resource, Resource::Thread | Resource::ThreadGroup),
        ..Candidate::new(KEY, bound.title(), format!("threads of {process}"))
    }
    .suspect()
}
