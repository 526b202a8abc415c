//! All cores are busy: whatever runs next takes the time from something else.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::{USED_FROM, used_up};
use super::{Candidate, CheckResult, Evidence, HOST_BUSY};
use crate::context::{Context, Reading, Thread};
use crate::demand::Resource;

pub(super) const KEY: &str = "cpu_full";
/// A twelfth idle is what scheduling leaves over when there is work for more.
pub(crate) const BUSY_MIN: f64 = 0.92;
/// Less low-priority work than this is not worth a word.
const LOW_MIN: f64 = 0.05;
/// On a host that others share (the generator, a database), a full host is the server's limit only if its threads wait
/// for a CPU, or if it uses most of the host itself.
pub(crate) const WAIT_MIN: f64 = 0.08;
const OWN_SHARE_MIN: f64 = 0.80;
/// A thread this busy leaves only gaps of its core; more of it idle, and another thread could do a good part more.
const HAS_CORE_MIN: f64 = 0.75;

/// Whether the CPUs of the host stopped the server, for findings that would be a consequence of it.
pub(super) fn is_full(context: &Context<'_>) -> bool {
    let is_busy = |busy: Option<Reading>| busy.is_some_and(|busy| busy.fail() >= BUSY_MIN);
    let owns = || owns(context) && (is_busy(context.host_busy()) || has_thread_a_core(context));
    // Work that does not make way is in the way, at whatever priority it runs.
    is_busy(context.host_busy_with_all()) && is_short(context) || owns()
}

/// Whether the server uses most of the host itself, and more than it did.
fn owns(context: &Context<'_>) -> bool {
    let own = context.own_share();
    own.fail() >= OWN_SHARE_MIN && !own.is_constant(Unit::Ratio)
}

/// Whether the server gets less CPU than it wants: its threads wait for one, more than they did, and have so much to do that
/// they would use what they wait for. A thread that wakes now and then also waits now and then, on any busy host.
fn is_short(context: &Context<'_>) -> bool {
    short_thread(context).is_some()
}

/// The thread that shows it, by the longest wait.
fn short_thread<'b>(context: &'b Context<'_>) -> Option<&'b Thread<'b>> {
    let wanted = |thread: &Thread<'_>| thread.cpu.fail() + thread.wait.fail();
    let all: f64 = context.threads.iter().map(wanted).sum();
    let wants_host = context.cpus().is_some_and(|cpus| all >= USED_FROM * cpus);
    let is_short = |thread: &&Thread<'_>| {
        let waits = thread.wait.fail() >= WAIT_MIN && !thread.wait.is_constant(Unit::Ratio);
        waits && (wants_host || wanted(thread) >= USED_FROM)
    };
    let short = context.threads.iter().filter(is_short);
    short.max_by(|a, b| a.wait.fail().total_cmp(&b.wait.fail()))
}

/// Whether the server keeps as many threads busy as there are cores. Bursts of frames leave gaps in the seconds of each, but
/// another thread would find no core for itself.
fn has_thread_a_core(context: &Context<'_>) -> bool {
    let busy = context.threads.iter().filter(|thread| thread.cpu.fail() >= HAS_CORE_MIN).count();
    context.cpus().is_some_and(|cpus| busy as f64 >= cpus)
}

/// Whether others kept the host full at the floor already, where users were fine: that it is full does not yet explain what
/// the server's own threads do.
pub(super) fn is_full_anyhow(context: &Context<'_>) -> bool {
    let busy = context.host_busy().and_then(|busy| busy.base);
    busy.is_some_and(|base| base >= BUSY_MIN) && context.own_share().fail() < OWN_SHARE_MIN
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let (Some(busy), Some(cpus)) = (context.host_busy(), context.cpus()) else {
        return CheckResult::NotMonitored("the CPUs of the host");
    };
    let own = context.own_share();
    // Another may wait longer, and did so at any load.
    let wait = short_thread(context).map(|thread| (thread, thread.wait)).or_else(|| context.longest_wait());
    let waited = wait.as_ref().map_or_else(Reading::default, |(_, wait)| *wait);
    let low = context.low_priority().map(|cores| cores / cpus);
    let made_way = if low.fail() >= LOW_MIN {
        format!(", and {} with low-priority work of others (nice), which makes way", percent(low.fail()))
    } else {
        String::new()
    };
    let is_full = is_full(context);
    if busy.fail() < USED_FROM && !is_full {
        return CheckResult::RuledOut(format!(
            "CPU of the host: {} of {cpus:.0} cores busy{made_way}",
            percent(busy.fail())
        ));
    }
    if !is_full {
        let is_constant = busy.is_constant(Unit::Ratio);
        let said = if is_constant {
            format!(
                "CPU of the host: {} of {cpus:.0} cores busy, {} before{made_way}: what does not change with the load explains nothing, and the server's threads do not want for it",
                percent(busy.fail()),
                percent(busy.before().unwrap_or(0.0))
            )
        } else {
            format!(
                "CPU of the host: {} of {cpus:.0} cores busy{made_way}, but the server's threads wait for a CPU only {} of the time",
                percent(busy.fail()),
                percent(waited.fail())
            )
        };
        return if is_constant { CheckResult::Constant(said) } else { CheckResult::RuledOut(said) };
    }
    // Where gaps between bursts are all that is idle, the host is full as its threads are.
    let full_from = if busy.fail() < BUSY_MIN { OWN_SHARE_MIN } else { BUSY_MIN };
    let crossed = context.crossed_metric(&metric::HOST_CPU_BUSY, full_from * cpus);
    // A host that low-priority work of others fills is always full; the server's threads begin to wait.
    let began_to_wait = || context.crossed(&context.waits_of(wait.as_ref()?.0), WAIT_MIN);
    let crossed = crossed.or_else(began_to_wait);
    // Its own threads' wait counts, and what its users feel of it.
    let queue = waited.growth(0.02).into_iter().chain(context.backlog()).reduce(f64::max);
    let stall = context.sum(&metric::HOST_PRESSURE_CPU_SOME);
    let waiting = wait.map_or_else(|| "a thread".into(), |(thread, _)| thread.label());
    let others = if own.fail() < OWN_SHARE_MIN - 0.3 {
        format!(" (the server uses {} of them: see what else runs on the host)", percent(own.fail()))
    } else {
        String::new()
    };
    let with_all = context.host_busy_with_all().unwrap_or_default();
    // Low-priority work makes way as a rule; where the server's threads wait all the same, it is in the way.
    let is_in_the_way = low.fail() >= LOW_MIN && busy.fail() < BUSY_MIN && with_all.fail() >= BUSY_MIN;
    let whole = if is_in_the_way { ("host.cpu.busy, of all cores", with_all) } else { (HOST_BUSY, busy) };
    let mut evidence = vec![
        Evidence::new(whole.0, Unit::Ratio, whole.1).limit(Some(1.0)).crossed(crossed),
        Evidence::new(format!("thread.run_queue_wait of {waiting}"), Unit::Ratio, waited)
            .decides_if(is_short(context)),
        Evidence::new("process.cpu of the server, of all cores", Unit::Ratio, own)
            .limit(Some(1.0))
            .decides_if(owns(context)),
        Evidence::new("host.pressure.cpu.some", Unit::Ratio, stall),
    ];
    if low.fail() >= LOW_MIN {
        evidence.insert(2, Evidence::new("host.cpu.nice of others, of all cores", Unit::Ratio, low));
    }
    let title = if is_in_the_way {
        format!(
            "All {cpus:.0} cores of the host are busy: the server waits behind others, though they run at lower priority"
        )
    } else {
        format!("All {cpus:.0} cores of the host are busy")
    };
    Candidate {
        used: used_up(busy.fail().max(BUSY_MIN)),
        queue,
        demand: context.demand_of(Resource::HostCpu, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::HOST_CPU_BUSY),
        evidence,
        change: format!(
            "More cores, or less work for each user (bitrate, codec, encryption){others}; the profile says what the time goes to"
        ),
        eases: |demand, _| {
            matches!(demand.resource, Resource::HostCpu | Resource::ProcessCpu | Resource::ThreadGroup)
        },
        ..Candidate::new(KEY, title, "CPU of the host")
    }
    .suspect()
}
