//! What a full CPU spends its time on, from the profile of the failing load: copying, one function,
//! encryption, system calls.
//!
//! Such a finding explains a full thread or host. Alone it means nothing: an idle server also
//! spends its time somewhere.

use throng_observation::host::catalogue as metric;
use throng_observation::host::{Family, Profile, ProfileMethod, SelfTime, SeriesId};
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading};
use crate::demand::Resource;

/// Least samples of a profile: with fewer, a share of a tenth is off by half.
const SAMPLES_MIN: u64 = 50;
/// Share of the time spent on moving bytes without reading them.
const COPY_MIN: f64 = 0.25;
/// Share of the time of one function.
const FUNCTION_MIN: f64 = 0.20;
/// Share of the time spent on encryption: below two fifths it is the ordinary work of a secure
/// media server.
const CRYPTO_MIN: f64 = 0.40;
/// Share of the time spent in the kernel between system call and network card.
const SEND_MIN: f64 = 0.45;

/// The profile taken under the failing load, or the last one labelled as such.
pub(super) fn profile_of_failure<'a>(context: &Context<'a>) -> Option<&'a Profile> {
    let within = |profile: &&&Profile| {
        let middle = profile.started_at.0.saturating_add_unsigned(profile.duration_us / 2);
        context.is_near_failure(throng_observation::RunTime(middle))
    };
    let all = &context.host.profiles;
    all.iter()
        .rfind(within)
        .or_else(|| all.iter().rfind(|profile| profile.moment.contains("fail")))
        .copied()
}

/// The profile of what is full: a thread, or the server on a full host.
struct Busy {
    time: SelfTime,
    /// The same at the baseline, and under a full load with good service.
    baseline: Option<SelfTime>,
    near_limit: Option<SelfTime>,
    /// "thread …" or "the server".
    name: String,
    cpu: Reading,
    pool: Option<String>,
    resource: Resource,
    of: String,
    series: Vec<SeriesId>,
}

fn busy(context: &Context<'_>) -> Result<Busy, NoFinding> {
    let Some(profile) =
        profile_of_failure(context).filter(|profile| profile.method == ProfileMethod::CpuClock)
    else {
        return Err(NoFinding::NotMonitored("a profile of the failing load"));
    };
    let of = |moment: &str| {
        context.host.profiles.iter().find(|other| other.moment.contains(moment)).copied()
    };
    let thread = context.hottest();
    let full = thread.filter(|thread| thread.cpu.fail() >= super::threads::FULL_MIN - 0.05);
    let (baseline, near_limit) = (of("base"), of("full"));
    let busy = if let Some(thread) = full {
        let own = |profile: &Profile| {
            SelfTime::of_stacks(profile, |stack| {
                stack.tid.to_string() == thread.tid && stack.pid.to_string() == thread.pid
            })
        };
        Busy {
            time: own(profile),
            baseline: baseline.map(own),
            near_limit: near_limit.map(own),
            name: format!("thread {}", thread.label()),
            cpu: thread.cpu,
            pool: Some(thread.group.clone()),
            resource: Resource::Thread,
            of: thread.label(),
            series: vec![thread.measured.series.id],
        }
    } else if context.is_cpu_taken() {
        Busy {
            time: SelfTime::of(profile),
            baseline: baseline.map(SelfTime::of),
            near_limit: near_limit.map(SelfTime::of),
            name: "the server".into(),
            cpu: context.host_busy().unwrap_or_default(),
            pool: None,
            resource: Resource::HostCpu,
            of: String::new(),
            series: context.ids(&metric::HOST_CPU_BUSY),
        }
    } else {
        return Err(NoFinding::NotApplicable);
    };
    if busy.time.samples < SAMPLES_MIN {
        return Err(NoFinding::NotMonitored("a profile of the failing load with enough samples"));
    }
    Ok(busy)
}

/// The candidate for `what`, which takes `share` of the time; `enough` is the share from which it
/// counts.
fn candidate(
    context: &Context<'_>,
    busy: &Busy,
    key: &'static str,
    what: &str,
    share: f64,
    enough: f64,
) -> Candidate {
    let shares =
        Evidence::ratio(format!("share of {} in {what}", busy.name), Reading::at_failure(share));
    let top: Vec<String> = busy
        .time
        .symbols
        .iter()
        .take(3)
        .map(|symbol| format!("{} {}", symbol.frame.symbol, percent(symbol.share)))
        .collect();
    let samples = Reading {
        base: busy.baseline.as_ref().map(|time| time.samples as f64),
        pass: busy.near_limit.as_ref().map(|time| time.samples as f64),
        fail: Some(busy.time.samples as f64),
        ..Reading::default()
    };
    Candidate {
        used: used_up(busy.cpu.fail()) * (share / enough).clamp(0.0, 1.0),
        queue: context.backlog(),
        demand: context.demand_of(busy.resource, &busy.of).cloned(),
        crossed_at_s: context.first_bad_s(),
        series: busy.series.clone(),
        evidence: vec![
            shares,
            Evidence::ratio(format!("CPU of {}", busy.name), busy.cpu).limit(1.0).decides(),
            Evidence::count(format!("samples of the profile; most in {}", top.join(", ")), samples),
        ],
        eases: |demand, candidate| {
            matches!(demand.resource, Resource::Thread | Resource::ThreadGroup)
                && demand.group == candidate.pool
        },
        pool: busy.pool.clone(),
        ..Candidate::new(key, String::new(), busy.name.clone())
    }
}

pub(super) fn copying(context: &Context<'_>) -> CheckResult {
    let busy = busy(context)?;
    let share = busy.time.family(Family::Copy).own_share;
    if share < COPY_MIN {
        return ruled_out(format!("Copying takes {} of {}", percent(share), busy.name));
    }
    Ok(Candidate {
        title: format!("{} of {} is spent on copying bytes", percent(share), busy.name),
        change: "Avoid the copies: sendfile or splice for files, writev for headers, shared \
                 memory between processes, fewer relays"
            .into(),
        ..candidate(context, &busy, "copy_dominated", "copying", share, COPY_MIN)
    })
}

pub(super) fn hot_function(context: &Context<'_>) -> CheckResult {
    let busy = busy(context)?;
    // The loop of an interpreter and an address without a symbol are no starting point; copying,
    // encryption, sending and locks have findings of their own.
    let named = |symbol: &&throng_observation::host::SymbolTime| {
        let has_own_finding = matches!(
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
        !has_own_finding && !symbol.frame.symbol.starts_with("0x")
    };
    let Some(top) = busy.time.symbols.iter().find(named).filter(|top| top.share >= FUNCTION_MIN)
    else {
        return ruled_out(format!("No function takes a fifth of {}", busy.name));
    };
    let (share, name) = (top.share, &top.frame.symbol);
    Ok(Candidate {
        title: format!(
            "{} of {} is the function {name} ({})",
            percent(share),
            busy.name,
            top.frame.module
        ),
        change: format!(
            "Optimise {name}: what calls it for each user and packet, and can its result be cached?"
        ),
        ..candidate(context, &busy, "hot_function", name, share, FUNCTION_MIN)
    })
}

pub(super) fn crypto(context: &Context<'_>) -> CheckResult {
    let busy = busy(context)?;
    let share = busy.time.family(Family::Crypto).own_share;
    if share < CRYPTO_MIN {
        return ruled_out(format!("Encryption takes {} of {}", percent(share), busy.name));
    }
    Ok(Candidate {
        title: format!("{} of {} is spent on encryption", percent(share), busy.name),
        change: "Use AES-GCM with the CPU's instructions (AES-NI) instead of AES-CM with \
                 HMAC-SHA1, a build of libsrtp with OpenSSL, or send fewer bits"
            .into(),
        ..candidate(context, &busy, "crypto", "encryption", share, CRYPTO_MIN)
    })
}

pub(super) fn system_calls(context: &Context<'_>) -> CheckResult {
    let busy = busy(context)?;
    let share =
        busy.time.family(Family::Send).share().max(busy.time.family(Family::Receive).share());
    if share < SEND_MIN {
        return ruled_out(format!("Sending takes {} of {}", percent(share), busy.name));
    }
    Ok(Candidate {
        title: format!("{} of {} is spent in the kernel's network path", percent(share), busy.name),
        change: "Make fewer, larger calls: UDP_SEGMENT (GSO) or sendmmsg for packets, larger \
                 writes for streams, larger packets"
            .into(),
        ..candidate(context, &busy, "system_calls", "sending and receiving", share, SEND_MIN)
    })
}
