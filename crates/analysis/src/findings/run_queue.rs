//! A thread is runnable and gets no CPU though other CPUs are idle: it is not let onto them.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, NamedThread, NoFinding, ruled_out, thread_log};
use crate::context::{Context, CpuLimit, Reading, Thread, WAIT_MIN};
use crate::knowledge::is_low_priority;

pub(super) const KEY: &str = "run_queue";
/// At a quarter the thread does three quarters of its possible work.
const WAIT_FULL: f64 = 0.25;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let is_seen = context.is_seen(&metric::THREAD_RUN_QUEUE_WAIT);
    let busy = context
        .host_busy_with_all()
        .filter(|_| is_seen)
        .ok_or(NoFinding::NotMonitored("how long threads wait for a CPU"))?;
    let CpuLimit::Placement { waiting, allowed } = context.cpu_limit else {
        let (thread, wait) = context.longest_wait().ok_or(NoFinding::NotApplicable)?;
        let (wait, thread) = (percent(wait.fail()), thread.label());
        return ruled_out(format!("Waiting for a CPU: {wait} at most ({thread})"));
    };
    let thread = context.threads.get(waiting).ok_or(NoFinding::NotApplicable)?;
    let own = context.waits_of(thread);
    let crossed = context.crossed(&own, WAIT_MIN);
    let label = thread.label();
    let mut evidence = vec![
        Evidence::ratio(format!("thread.run_queue_wait of {label}"), thread.wait).crossed(crossed),
        Evidence::ratio(format!("thread.cpu of {label}"), thread.cpu).limit(1.0),
        Evidence::ratio("host.cpu.busy, of all cores", busy).limit(1.0),
    ];
    if let Some(allowed) = allowed {
        let name = format!("CPUs that {label} may run on");
        evidence.push(Evidence::count(name, Reading::at_failure(allowed)).limit(context.cpus()));
    }
    evidence.extend(thread_log::evidence(context, thread));
    let (why, change) = why(context, thread, allowed);
    Ok(Candidate {
        used: (thread.wait.fail() / WAIT_FULL).clamp(0.0, 1.0),
        queue: thread.wait.growth(0.02),
        crossed_at_s: crossed,
        series: own.iter().map(|wait| wait.series.id).collect(),
        evidence,
        change,
        thread: Some(NamedThread::of(context, thread)),
        ..Candidate::new(
            KEY,
            format!("Thread {label} waits for a CPU though other CPUs are idle{why}"),
            format!("CPUs of thread {label}"),
        )
    })
}

/// What keeps the thread from the idle CPUs, for the title, and what to change: its affinity only
/// where it is bound, and its priority only where that is lowered.
fn why(context: &Context<'_>, thread: &Thread<'_>, allowed: Option<f64>) -> (String, String) {
    let is_known = context.is_seen(&metric::THREAD_CPUS_ALLOWED);
    if let Some(allowed) = allowed {
        let cpus = context.cpus().unwrap_or(0.0);
        let why = format!(": it may run on {allowed:.0} of {cpus:.0}");
        return (why, "Let it run on more CPUs: taskset, cpuset.cpus, CPUAffinity=".into());
    }
    if is_low_priority(context.host, thread.process) {
        let change = "Raise the priority of the server: nice, renice, Nice= of its unit".into();
        return (": it runs at lowered priority".into(), change);
    }
    let change = if is_known {
        "Find out what holds the CPU on which it waits: a thread of real-time priority, \
         interrupts, or isolated CPUs (isolcpus), onto which the kernel moves nothing"
    } else {
        "Check on which CPUs the thread may run: taskset -p, cpuset.cpus, CPUAffinity=, isolcpus"
    };
    (String::new(), change.into())
}
