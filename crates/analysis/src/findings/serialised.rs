//! Many threads use one core together because they take turns: at Python's global interpreter lock,
//! or at a lock of another program.

use std::collections::BTreeMap;

use throng_observation::host::catalogue as metric;
use throng_observation::host::{Family, Profile, ProfileMethod, SelfTime};
use throng_observation::units::percent;

use super::hot_code::profile_of_failure;
use super::runtime::{self, ONE_CORE, TAKING_PART};
use super::score::{CAP_COMPANY, used_up};
use super::{Candidate, CheckResult, Evidence, HOST_BUSY, NoFinding, cpu_all, ruled_out};
use crate::context::{Context, CpuLimit, Reading, Thread};
use crate::demand::Resource;

const THREADS_MIN: usize = 2;
/// Share of CPU samples in locks. An uncontended lock costs a few percent; a fifth is contention.
const LOCK_SHARE_MIN: f64 = 0.20;
const LOCK_SHARE_FULL: f64 = 0.40;
/// Voluntary context switches a second. Waking up for a lock is one: threads that take turns have
/// hundreds a second, and more with more users.
const SWITCHES_MIN: f64 = 500.0;

/// A process whose threads take turns on one core.
struct Turns<'a, 'b> {
    process: &'a str,
    pid: &'a str,
    /// The threads that take turns.
    threads: Vec<&'b Thread<'a>>,
    cores: Reading,
    is_python: bool,
}

/// The busiest process, if its threads use one core together.
fn turns<'a, 'b>(context: &'b Context<'a>) -> Result<Turns<'a, 'b>, NoFinding> {
    if !context.is_seen(&metric::THREAD_CPU) {
        return Err(NoFinding::NotMonitored("the server's threads"));
    }
    let first = context.threads.first().ok_or(NoFinding::NotApplicable)?;
    let mut by_process: BTreeMap<&str, Vec<&Thread<'_>>> = BTreeMap::new();
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
    let is_full_anyhow = context.cpu_limit == CpuLimit::Host && cpu_all::is_full_anyhow(context);
    if context.is_cpu_taken() && !is_full_anyhow {
        return Err(NoFinding::NotApplicable);
    }
    // Threads at a lock take turns within each second; work that moves between threads by the
    // second is no lock.
    if taking_part.len() < THREADS_MIN
        || !is_one_core
        || context.busiest_of_each_second(&threads) > *TAKING_PART.end()
        || runtime::is_bound(context, process)
    {
        return Err(NoFinding::NotApplicable);
    }
    let executable =
        context.host.info.and_then(|info| info.facts.get(&format!("{process}.executable")));
    let in_profile = profile_of_failure(context).is_some_and(|profile| {
        profile.frames.iter().any(|f| {
            f.symbol == "take_gil"
                || f.module.starts_with("libpython")
                || f.module.starts_with("python3")
        })
    });
    let is_python = process.starts_with("python")
        || executable.is_some_and(|path| path.contains("python"))
        || in_profile;
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
        demand: demand.and_then(|demand| demand.limited_to(1.0)),
        crossed_at_s: crossed,
        series: own.iter().map(|thread| thread.series.id).collect(),
        evidence: vec![
            Evidence::ratio(format!("CPU of all threads of {}", turns.process), turns.cores)
                .limit(1.0)
                .crossed(crossed),
            Evidence::count(
                format!("threads of {} that take turns (each below a core)", turns.process),
                Reading::at_failure(turns.threads.len() as f64),
            ),
            Evidence::ratio(HOST_BUSY, context.host_busy().unwrap_or_default()).limit(1.0),
        ],
        change,
        eases: |demand, _| matches!(demand.resource, Resource::Thread | Resource::ThreadGroup),
        ..Candidate::new(key, title, format!("threads of {}", turns.process))
    }
}

pub(super) fn gil(context: &Context<'_>) -> CheckResult {
    let turns = turns(context)?;
    if !turns.is_python {
        return Err(NoFinding::NotApplicable);
    }
    let title = format!(
        "The {} threads of {} share one core: Python's global interpreter lock",
        turns.threads.len(),
        turns.process
    );
    let change = "Use several processes (multiprocessing, more workers of the application \
                  server), or a free-threaded Python (3.13t and later)";
    Ok(candidate(context, &turns, "gil", title, change.into()))
}

pub(super) fn locks(context: &Context<'_>) -> CheckResult {
    let samples = LockSamples::of(context);
    let share = samples.0.fail();
    let process = context.threads.first().map_or("the server", |thread| thread.process);
    match turns(context) {
        Ok(turns) if turns.is_python => Err(NoFinding::NotApplicable),
        Ok(turns) => by_turns(context, &turns, &samples),
        Err(why) if share < LOCK_SHARE_MIN => Err(why),
        Err(_) => Ok(Candidate {
            used: (share / LOCK_SHARE_FULL).clamp(0.0, 1.0),
            queue: context.backlog(),
            evidence: vec![
                samples.evidence(),
                Evidence::ratio("process.cpu of the server", context.sum(&metric::PROCESS_CPU)),
            ],
            change: LOCK_CHANGE.into(),
            ..Candidate::new(LOCK_KEY, LOCK_TITLE, format!("locks of {process}"))
        }),
    }
}

const LOCK_KEY: &str = "lock_contention";
const LOCK_TITLE: &str = "The server's threads wait for each other: lock contention";
const LOCK_CHANGE: &str = "Split the lock, shorten its critical section, or give each thread its \
                           own (more processes, more rooms); more threads make it worse";

/// The share of profile samples in locks.
struct LockSamples(Reading);

impl LockSamples {
    fn of(context: &Context<'_>) -> Self {
        let is_of_cpu = |profile: &&Profile| profile.method == ProfileMethod::CpuClock;
        let share = |profile: &Profile| SelfTime::of(profile).family(Family::Lock).share();
        let at = |moment: &str| {
            let mut all = context.host.profiles.iter().copied().filter(is_of_cpu);
            all.find(|other| other.moment.contains(moment)).map(share)
        };
        let fail = profile_of_failure(context).filter(is_of_cpu).map(share);
        Self(Reading { base: at("base"), pass: at("full"), fail, ..Reading::default() })
    }

    fn evidence(&self) -> Evidence {
        Evidence::ratio("share of samples in locks", self.0)
    }
}

/// Lock contention of threads that share one core: context switches or lock samples have to show
/// it.
fn by_turns(context: &Context<'_>, turns: &Turns<'_, '_>, samples: &LockSamples) -> CheckResult {
    let mut candidate = candidate(context, turns, LOCK_KEY, LOCK_TITLE.into(), LOCK_CHANGE.into());
    let switches = context.host.metric(metric::THREAD_SWITCHES_VOLUNTARY.name).iter();
    let own: Vec<_> = switches.filter(|series| series.label("pid") == turns.pid).collect();
    let switches =
        context.reading(|window| own.iter().filter_map(|s| s.mean(window)).reduce(|a, b| a + b));
    let is_switching =
        switches.fail() >= SWITCHES_MIN && switches.growth(10.0).is_none_or(|g| g > 0.1);
    let is_locking = samples.0.fail.is_some_and(|share| share >= LOCK_SHARE_MIN / 2.0);
    // Many threads may use one core together by chance.
    if !is_switching && !is_locking {
        candidate.at_most = CAP_COMPANY;
    }
    if candidate.used < 0.5 && candidate.at_most <= CAP_COMPANY {
        return ruled_out(format!(
            "Locks: no sign of contention ({} of samples)",
            percent(samples.0.fail())
        ));
    }
    let all = context.sum(&metric::THREAD_SWITCHES_VOLUNTARY);
    candidate.evidence.push(samples.evidence());
    candidate.evidence.push(Evidence::per_second("thread.switches_voluntary, all threads", all));
    Ok(candidate)
}
