//! What a full CPU is busy with, from the profile of the failing load: copying, one function, encryption, system calls.
//!
//! Such a finding explains a full thread or host. Alone it says nothing: an idle server spends all of its little time
//! somewhere, too.

use throng_observation::host::catalogue as metric;
use throng_observation::host::{Family, Profile, ProfileMethod, SelfTime, SeriesId, Unit};
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, cpu_all, cpu_quota};
use crate::context::{Context, Reading};
use crate::demand::Resource;

/// A profile with fewer samples says nothing of shares (a tenth is then off by half of itself).
const SAMPLES_MIN: u64 = 50;
/// A quarter of the time to move bytes that nobody looks at.
const COPY_MIN: f64 = 0.25;
/// One function with a fifth of the time is where to begin.
const FUNCTION_MIN: f64 = 0.20;
/// Encryption is what a secure media server is for: below two fifths it is its ordinary work.
const CRYPTO_MIN: f64 = 0.40;
/// The kernel's way from the call to the card; below it the server does more of its own than of sending.
const SEND_MIN: f64 = 0.45;

/// The profile that was taken under the failing load, or the last that claims to be of it.
pub(super) fn profile_of_failure<'a>(context: &Context<'a>) -> Option<&'a Profile> {
    let within = |profile: &&&Profile| {
        let middle = profile.started_at.0.saturating_add_unsigned(profile.duration_us / 2);
        context.is_near_failure(throng_observation::RunTime(middle))
    };
    let all = &context.host.profiles;
    all.iter().rfind(within).or_else(|| all.iter().rfind(|profile| profile.moment.contains("fail"))).copied()
}

/// The time of that which is full: a thread's, or all threads'. `None` where nothing of the CPU is full.
struct Busy {
    time: SelfTime,
    floor: Option<SelfTime>,
    near: Option<SelfTime>,
    who: String,
    cpu: Reading,
    pool: Option<String>,
    resource: Resource,
    of: String,
    series: Vec<SeriesId>,
}

fn busy(context: &Context<'_>) -> Result<Busy, CheckResult> {
    let Some(profile) =
        profile_of_failure(context).filter(|profile| profile.method == ProfileMethod::CpuClock)
    else {
        return Err(CheckResult::NotMonitored("a profile of the failing load"));
    };
    let of = |moment: &str| context.host.profiles.iter().find(|other| other.moment.contains(moment)).copied();
    // The idle server, and the full one that still did well.
    let (floor, near) = (of("base"), of("full"));
    let thread = context.hottest();
    let full = thread.filter(|thread| thread.cpu.fail() >= super::threads::FULL_MIN - 0.05);
    let (time, floor, near, who, cpu, pool, resource, of) = if let Some(thread) = full {
        let own = |profile: &Profile| {
            SelfTime::of_stacks(profile, |stack| {
                stack.tid.to_string() == thread.tid && stack.pid.to_string() == thread.pid
            })
        };
        let who = format!("thread {}", thread.label());
        (
            own(profile),
            floor.map(own),
            near.map(own),
            who,
            thread.cpu,
            Some(thread.group.clone()),
            Resource::Thread,
            thread.label(),
        )
    } else if cpu_all::is_full(context) || context.throttled().fail() >= cpu_quota::THROTTLED_MIN {
        let all = SelfTime::of(profile);
        let busy = context.host_busy().unwrap_or_default();
        (
            all,
            floor.map(SelfTime::of),
            near.map(SelfTime::of),
            "the server".into(),
            busy,
            None,
            Resource::HostCpu,
            String::new(),
        )
    } else {
        return Err(CheckResult::NotApplicable);
    };
    if time.samples < SAMPLES_MIN {
        return Err(CheckResult::NotMonitored("a profile of the failing load with enough samples"));
    }
    let series =
        full.map_or_else(|| context.ids(&metric::HOST_CPU_BUSY), |thread| vec![thread.measured.series.id]);
    Ok(Busy { time, floor, near, who, cpu, pool, resource, of, series })
}

/// A candidate for a share of the busy time.
fn candidate(
    context: &Context<'_>,
    busy: &Busy,
    key: &'static str,
    what: &str,
    share: f64,
    enough: f64,
) -> Candidate {
    let shares = Evidence::new(
        format!("share of {} in {what}", busy.who),
        Unit::Ratio,
        Reading { fail: Some(share), ..Reading::default() },
    );
    let top: Vec<String> = busy
        .time
        .symbols
        .iter()
        .take(3)
        .map(|symbol| format!("{} {}", symbol.frame.symbol, percent(symbol.share)))
        .collect();
    let samples = Reading {
        base: busy.floor.as_ref().map(|floor| floor.samples as f64),
        pass: busy.near.as_ref().map(|near| near.samples as f64),
        fail: Some(busy.time.samples as f64),
        most: None,
    };
    Candidate {
        used: used_up(busy.cpu.fail()) * (share / enough).clamp(0.0, 1.0),
        queue: context.backlog(),
        demand: context.demand_of(busy.resource, &busy.of).cloned(),
        crossed_at_s: context.windows.first_bad_s.map(|second| second as f64),
        series: busy.series.clone(),
        evidence: vec![
            shares,
            Evidence::new(format!("CPU of {}", busy.who), Unit::Ratio, busy.cpu).limit(Some(1.0)).decides(),
            Evidence::new(
                format!("samples of the profile; most in {}", top.join(", ")),
                Unit::Count,
                samples,
            ),
        ],
        eases: |demand, candidate| {
            matches!(demand.resource, Resource::Thread | Resource::ThreadGroup)
                && demand.group == candidate.pool
        },
        pool: busy.pool.clone(),
        ..Candidate::new(key, String::new(), busy.who.clone())
    }
}

pub(super) fn copying(context: &Context<'_>) -> CheckResult {
    let busy = match busy(context) {
        Ok(busy) => busy,
        Err(seen) => return seen,
    };
    let share = busy.time.family(Family::Copy).own_share;
    if share < COPY_MIN {
        return CheckResult::RuledOut(format!("Copying takes {} of {}", percent(share), busy.who));
    }
    Candidate {
        title: format!("{} of {} is copying of bytes", percent(share), busy.who),
        change: "Pass buffers on where they are copied: sendfile or splice for files, writev for headers, shared memory between processes, fewer relays on the way".into(),
        ..candidate(context, &busy, "copy_dominated", "copying", share, COPY_MIN)
    }
    .suspect()
}

pub(super) fn hot_function(context: &Context<'_>) -> CheckResult {
    let busy = match busy(context) {
        Ok(busy) => busy,
        Err(seen) => return seen,
    };
    // An interpreter's loop and an address without a name tell nobody where to begin; copying, encryption, sending and
    // locks have findings of their own.
    let named = |symbol: &&throng_observation::host::SymbolTime| {
        let is_told_elsewhere = matches!(
            symbol.family,
            Some(
                Family::Interpreter
                    | Family::Copy
                    | Family::Crypto
                    | Family::Send
                    | Family::Receive
                    | Family::Lock
            )
        );
        !is_told_elsewhere && !symbol.frame.symbol.starts_with("0x")
    };
    let Some(top) = busy.time.symbols.iter().find(named).filter(|top| top.share >= FUNCTION_MIN) else {
        return CheckResult::RuledOut(format!("No function has a fifth of {}", busy.who));
    };
    let (share, name) = (top.share, &top.frame.symbol);
    Candidate {
        title: format!("{} of {} is the function {name} ({})", percent(share), busy.who, top.frame.module),
        change: format!(
            "Look at {name}: what calls it for each user and packet, and whether its result could be kept"
        ),
        ..candidate(context, &busy, "hot_function", name, share, FUNCTION_MIN)
    }
    .suspect()
}

pub(super) fn crypto(context: &Context<'_>) -> CheckResult {
    let busy = match busy(context) {
        Ok(busy) => busy,
        Err(seen) => return seen,
    };
    let share = busy.time.family(Family::Crypto).own_share;
    if share < CRYPTO_MIN {
        return CheckResult::RuledOut(format!("Encryption takes {} of {}", percent(share), busy.who));
    }
    Candidate {
        title: format!("{} of {} is encryption", percent(share), busy.who),
        change: "AES-GCM with the CPU's own instructions (AES-NI) instead of AES-CM with HMAC-SHA1, a build of libsrtp with OpenSSL, or fewer bits to encrypt".into(),
        ..candidate(context, &busy, "crypto", "encryption", share, CRYPTO_MIN)
    }
    .suspect()
}

pub(super) fn system_calls(context: &Context<'_>) -> CheckResult {
    let busy = match busy(context) {
        Ok(busy) => busy,
        Err(seen) => return seen,
    };
    let share = busy.time.family(Family::Send).share().max(busy.time.family(Family::Receive).share());
    if share < SEND_MIN {
        return CheckResult::RuledOut(format!("Sending takes {} of {}", percent(share), busy.who));
    }
    Candidate {
        title: format!("{} of {} is the kernel's way to the network", percent(share), busy.who),
        change: "Fewer, larger calls: UDP_SEGMENT (GSO) or sendmmsg for packets, larger writes for streams, larger packets".into(),
        ..candidate(context, &busy, "system_calls", "sending and receiving", share, SEND_MIN)
    }
    .suspect()
}
