//! A thread is runnable and gets no CPU though other CPUs are idle: it is pinned, or has low priority.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, NoFinding, cpu_all, cpu_quota, ruled_out};
use crate::context::Context;

pub(super) const KEY: &str = "run_queue";
/// Share of the time runnable and not running: at a tenth every frame of 33 ms is 3 ms late.
const WAIT_MIN: f64 = 0.10;
/// At a quarter the thread does three quarters of its possible work.
const WAIT_FULL: f64 = 0.25;
/// Idle share of the host at which the wait is not caused by a lack of CPUs.
const IDLE_MIN: f64 = 0.15;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let is_seen = context.is_seen(&metric::THREAD_RUN_QUEUE_WAIT);
    let busy = context
        .host_busy_with_all()
        .filter(|_| is_seen)
        .ok_or(NoFinding::NotMonitored("how long threads wait for a CPU"))?;
    let Some((thread, wait)) = context.longest_wait() else { return Err(NoFinding::NotApplicable) };
    let is_elsewhere =
        cpu_all::is_full(context) || busy.fail() > 1.0 - IDLE_MIN || cpu_quota::is_throttled(context);
    if wait.fail() < WAIT_MIN || is_elsewhere {
        return ruled_out(format!(
            "Waiting for a CPU: {} at most ({})",
            percent(wait.fail()),
            thread.label()
        ));
    }
    let own = context.waits_of(thread);
    let crossed = context.crossed(&own, WAIT_MIN);
    Ok(Candidate {
        used: (wait.fail() / WAIT_FULL).clamp(0.0, 1.0),
        queue: wait.growth(0.02),
        crossed_at_s: crossed,
        series: own.iter().map(|wait| wait.series.id).collect(),
        evidence: vec![
            Evidence::ratio(format!("thread.run_queue_wait of {}", thread.label()), wait).crossed(crossed),
            Evidence::ratio(format!("thread.cpu of {}", thread.label()), thread.cpu).limit(1.0),
            Evidence::ratio("host.cpu.busy, of all cores", busy).limit(1.0),
        ],
        change: "Check the affinity and priority of the threads: taskset, cpuset.cpus, CPUAffinity=, nice, isolcpus".into(),
        ..Candidate::new(
            KEY,
            format!("Thread {} waits for a CPU though other CPUs are idle", thread.label()),
            "CPU affinity or priority",
        )
    })
}
