//! A thread is ready and gets no CPU though others are idle: it is pinned, or of low priority.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, cpu_all, cpu_quota};
use crate::context::Context;

pub(super) const KEY: &str = "run_queue";
/// A tenth of the time ready and not running: a frame of 33 ms is then 3 ms late, every one.
const WAIT_MIN: f64 = 0.10;
/// At a quarter the thread does three quarters of what it could.
const WAIT_FULL: f64 = 0.25;
/// So much idle elsewhere that the wait is not for want of CPUs.
const IDLE_MIN: f64 = 0.15;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let is_seen = context.is_seen(&metric::THREAD_RUN_QUEUE_WAIT);
    let Some(busy) = context.host_busy_with_all().filter(|_| is_seen) else {
        return CheckResult::NotMonitored("how long threads wait for a CPU");
    };
    // Nobody does who does not run.
    let Some((thread, wait)) = context.longest_wait() else { return CheckResult::NotApplicable };
    let is_elsewhere = cpu_all::is_full(context)
        || busy.fail() > 1.0 - IDLE_MIN
        || context.throttled().fail() >= cpu_quota::THROTTLED_MIN;
    if wait.fail() < WAIT_MIN || is_elsewhere {
        return CheckResult::RuledOut(format!(
            "Waiting for a CPU: {} at most ({})",
            percent(wait.fail()),
            thread.label()
        ));
    }
    let own = context.waits_of(thread);
    let crossed = context.crossed(&own, WAIT_MIN);
    Candidate {
        used: (wait.fail() / WAIT_FULL).clamp(0.0, 1.0),
        queue: wait.growth(0.02),
        crossed_at_s: crossed,
        series: own.iter().map(|wait| wait.series.id).collect(),
        evidence: vec![
            Evidence::new(format!("thread.run_queue_wait of {}", thread.label()), Unit::Ratio, wait).crossed(crossed),
            Evidence::new(format!("thread.cpu of {}", thread.label()), Unit::Ratio, thread.cpu).limit(Some(1.0)),
            Evidence::new("host.cpu.busy, of all cores", Unit::Ratio, busy).limit(Some(1.0)),
        ],
        change: "Look at what the threads may run on and before whom: taskset, cpuset.cpus, CPUAffinity=, nice, isolcpus".into(),
        ..Candidate::new(
            KEY,
            format!("Thread {} waits for a CPU though others are idle", thread.label()),
            "CPU affinity or priority",
        )
    }
    .suspect()
}
