//! Many threads, one core's worth of work: they take turns. In Python the turn is the interpreter's global lock;
//! elsewhere it is some lock of the program.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::{Family, Profile, ProfileMethod, SelfTime};
use throng_observation::units::percent;

use super::hot_code::profile_of_failure;
use super::score::{CAP_COMPANY, used_up};
use super::{Candidate, CheckResult, Evidence, HOST_BUSY, cpu_all, cpu_quota, runtime};
use crate::context::{Context, Reading, Thread};
use crate::demand::Resource;

/// Together they use one core and no more.
pub(super) const ONE_CORE: std::ops::RangeInclusive<f64> = 0.85..=1.12;
/// Threads that take part, and at most so much each: else one of them is full by itself.
pub(super) const TAKING_PART: std::ops::RangeInclusive<f64> = 0.05..=0.80;
const THREADS_MIN: usize = 2;
/// Of the samples of what runs. An uncontended lock costs a few percent; a fifth is a queue.
const LOCK_SHARE_MIN: f64 = 0.20;
const LOCK_SHARE_FULL: f64 = 0.40;
/// Waking up for a turn is a context switch: a thread that takes turns has hundreds a second, and more with more users.
const SWITCHES_MIN: f64 = 500.0;

struct Turns<'a, 'b> {
    process: &'a str,
    pid: &'a str,
    threads: Vec<&'b Thread<'a>>,
    cores: Reading,
    is_python: bool,
}

/// The process whose threads use one core together.
fn turns<'a, 'b>(context: &'b Context<'a>) -> Result<Turns<'a, 'b>, CheckResult> {
    if !context.is_seen(&metric::THREAD_CPU) {
        return Err(CheckResult::NotMonitored("the server's threads"));
    }
    let Some(first) = context.threads.first() else {
        return Err(CheckResult::NotApplicable);
    };
    let mut by_process: std::collections::BTreeMap<&str, Vec<&Thread<'_>>> =
        std::collections::BTreeMap::new();
    for thread in context.threads.iter().filter(|thread| !thread.is_always_busy()) {
        by_process.entry(thread.pid).or_default().push(thread);
    }
    let busiest = by_process.into_values().max_by(|a, b| {
        let cores = |list: &[&Thread<'_>]| list.iter().map(|thread| thread.cpu.fail()).sum::<f64>();
        cores(a).total_cmp(&cores(b))
    });
    let threads = busiest.unwrap_or_default();
    let process = threads.first().map_or(first.process, |thread| thread.process);
    let pid = threads.first().map_or(first.pid, |thread| thread.pid);
    let cores = context.used_together(&context.threads_of(pid));
    let taking_part: Vec<&Thread<'_>> =
        threads.iter().filter(|thread| TAKING_PART.contains(&thread.cpu.fail())).copied().collect();
    let is_one_core = ONE_CORE.contains(&cores.fail());
    let is_cpu_short = cpu_all::is_full(context) && !cpu_all::is_full_anyhow(context);
    if is_cpu_short || context.throttled().fail() >= cpu_quota::THROTTLED_MIN {
        return Err(CheckResult::NotApplicable);
    }
    // Who takes turns shares each second with others; work that one thread at a time has is no turn.
    if taking_part.len() < THREADS_MIN
        || !is_one_core
        || context.busiest_of_each_second(&threads) > *TAKING_PART.end()
        || runtime::is_bound(context, process)
    {
        return Err(CheckResult::NotApplicable);
    }
    let executable = context.host.info.and_then(|info| info.facts.get(&format!("{process}.executable")));
    let in_profile = profile_of_failure(context).is_some_and(|profile| {
        profile.frames.iter().any(|f| {
            f.symbol == "take_gil" || f.module.starts_with("libpython") || f.module.starts_with("python3")
        })
    });
    let is_python =
        process.starts_with("python") || executable.is_some_and(|path| path.contains("python")) || in_profile;
    Ok(Turns { process, pid, threads: taking_part, cores, is_python })
}

fn candidate(
    context: &Context<'_>,
    turns: &Turns<'_, '_>,
    key: &'static str,
    title: String,
    change: String,
) -> Candidate {
    let own: Vec<_> = turns.threads.iter().map(|thread| thread.measured).collect();
    let crossed = context.crossed(&own, *ONE_CORE.start());
    let demand = context.demand_of(Resource::ProcessCpu, turns.process);
    Candidate {
        used: used_up(turns.cores.fail()),
        queue: context.backlog(),
        demand: demand.and_then(|demand| runtime::ended_at(demand, 1.0)),
        crossed_at_s: crossed,
        series: own.iter().map(|thread| thread.series.id).collect(),
        evidence: vec![
            Evidence::new(format!("CPU of all threads of {}", turns.process), Unit::Ratio, turns.cores)
                .limit(Some(1.0))
                .crossed(crossed),
            Evidence::new(
                format!("threads of {} that take part (each below a core)", turns.process),
                Unit::Count,
                Reading { fail: Some(turns.threads.len() as f64), ..Reading::default() },
            ),
            Evidence::new(HOST_BUSY, Unit::Ratio, context.host_busy().unwrap_or_default()).limit(Some(1.0)),
        ],
        change,
        eases: |demand, _| matches!(demand.resource, Resource::Thread | Resource::ThreadGroup),
        ..Candidate::new(key, title, format!("threads of {}", turns.process))
    }
}

pub(super) fn gil(context: &Context<'_>) -> CheckResult {
    let turns = match turns(context) {
        Ok(turns) => turns,
        Err(seen) => return seen,
    };
    if !turns.is_python {
        return CheckResult::NotApplicable;
    }
    let title = format!(
        "The {} threads of {} share one core: Python's global interpreter lock",
        turns.threads.len(),
        turns.process
    );
    let change = "Several processes (multiprocessing, more workers of the application server), or a free-threaded Python (3.13t and later)";
    candidate(context, &turns, "gil", title, change.into()).suspect()
}

pub(super) fn locks(context: &Context<'_>) -> CheckResult {
    let profile = profile_of_failure(context).filter(|profile| profile.method == ProfileMethod::CpuClock);
    let in_locks = |profile: &Profile| SelfTime::of(profile).family(Family::Lock).share();
    let lock_share = profile.map(in_locks);
    let at = |moment: &str| {
        let mut all = context.host.profiles.iter().filter(|other| other.method == ProfileMethod::CpuClock);
        all.find(|other| other.moment.contains(moment)).map(|profile| in_locks(profile))
    };
    let turns = match turns(context) {
        Ok(turns) if turns.is_python => return CheckResult::NotApplicable,
        Ok(turns) => Some(turns),
        Err(seen) if lock_share.unwrap_or(0.0) < LOCK_SHARE_MIN => return seen,
        Err(_) => None,
    };
    let title = "The server's threads wait for each other: a lock";
    let change = "Split the lock, shorten what is done under it, or give each thread its own (more processes, more rooms); more threads make it worse";
    let switches = context.sum(&metric::THREAD_SWITCHES_VOLUNTARY);
    let share_line = Evidence::new(
        "share of samples in locks",
        Unit::Ratio,
        Reading { base: at("base"), pass: at("full"), fail: lock_share, most: None },
    );
    let Some(turns) = turns else {
        let share = lock_share.unwrap_or(0.0);
        let busy = context.sum(&metric::PROCESS_CPU);
        return Candidate {
            used: (share / LOCK_SHARE_FULL).clamp(0.0, 1.0),
            queue: context.backlog(),
            evidence: vec![share_line, Evidence::new("process.cpu of the server", Unit::Ratio, busy)],
            change: change.into(),
            ..Candidate::new("lock_contention", title, "locks of the server")
        }
        .suspect();
    };
    let mut candidate = candidate(context, &turns, "lock_contention", title.into(), change.into());
    let of_process: Vec<_> = context
        .host
        .metric(metric::THREAD_SWITCHES_VOLUNTARY.name)
        .iter()
        .filter(|series| series.label("pid") == turns.pid)
        .copied()
        .collect();
    let own_switches =
        context.reading(|window| of_process.iter().filter_map(|s| s.mean(window)).reduce(|a, b| a + b));
    let is_switching =
        own_switches.fail() >= SWITCHES_MIN && own_switches.growth(10.0).is_none_or(|g| g > 0.1);
    let is_locking = lock_share.is_some_and(|share| share >= LOCK_SHARE_MIN / 2.0);
    // One core's worth of work on many threads happens by chance: something has to show the turns.
    if !is_switching && !is_locking {
        candidate.at_most = CAP_COMPANY;
    }
    candidate.evidence.push(share_line);
    candidate.evidence.push(Evidence::new(
        "thread.switches_voluntary, all threads",
        Unit::PerSecond,
        switches,
    ));
    if candidate.used < 0.5 && candidate.at_most <= CAP_COMPANY {
        return CheckResult::RuledOut(format!(
            "Locks: nothing shows turns ({} of samples)",
            percent(lock_share.unwrap_or(0.0))
        ));
    }
    candidate.suspect()
}
