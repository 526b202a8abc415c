//! All cores are busy: whatever runs next takes the time from something else.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::used_up;
use super::{Candidate, Evidence, Seen};
use crate::demand::Resource;
use crate::scene::{Reading, Scene};

pub(super) const KEY: &str = "cpu_full";
/// A twelfth idle is what scheduling leaves over when there is work for more.
pub(super) const BUSY_MIN: f64 = 0.92;
/// On a host that others share (the generator, a database), a full host is the server's limit only if its threads wait
/// for a CPU, or if it uses most of the host itself.
pub(super) const WAIT_MIN: f64 = 0.08;
const OWN_SHARE_MIN: f64 = 0.80;
/// A thread this busy leaves only gaps of its core; more of it idle, and another thread could do a good part more.
const HAS_CORE_MIN: f64 = 0.75;

/// Whether the CPUs of the host stopped the server, for findings that would be a consequence of it.
pub(super) fn is_full(scene: &Scene<'_>) -> bool {
    let Some(busy) = scene.host_busy() else { return false };
    let waits = scene.longest_wait().is_some_and(|(_, wait)| wait.fail() >= WAIT_MIN);
    let owns = own_share(scene).fail() >= OWN_SHARE_MIN;
    busy.fail() >= BUSY_MIN && (waits || owns) || owns && has_thread_a_core(scene)
}

/// Whether the server keeps as many threads busy as there are cores. Bursts of frames leave gaps in the seconds of each, but
/// another thread would find no core for itself.
fn has_thread_a_core(scene: &Scene<'_>) -> bool {
    let busy = scene.threads.iter().filter(|thread| thread.cpu.fail() >= HAS_CORE_MIN).count();
    scene.cpus().is_some_and(|cpus| busy as f64 >= cpus)
}

/// Whether others kept the host full at the floor already, where users were fine: that it is full does not yet explain what
/// the server's own threads do.
pub(super) fn is_full_anyhow(scene: &Scene<'_>) -> bool {
    let busy = scene.host_busy().and_then(|busy| busy.base);
    busy.is_some_and(|base| base >= BUSY_MIN) && own_share(scene).fail() < OWN_SHARE_MIN
}

/// What the watched processes use of all CPUs.
fn own_share(scene: &Scene<'_>) -> Reading {
    let cpus = scene.cpus().unwrap_or(f64::INFINITY);
    scene.sum(&metric::PROCESS_CPU).map(|cores| cores / cpus)
}

pub(super) fn check(scene: &Scene<'_>) -> Seen {
    let (Some(busy), Some(cpus)) = (scene.host_busy(), scene.cpus()) else {
        return Seen::Unseen("the CPUs of the host");
    };
    let own = own_share(scene);
    let wait = scene.longest_wait();
    let waited = wait.as_ref().map_or_else(Reading::default, |(_, wait)| *wait);
    if busy.fail() < super::score::USED_FROM {
        return Seen::Fine(format!("CPU of the host: {} of {cpus:.0} cores busy", percent(busy.fail())));
    }
    if !is_full(scene) {
        return Seen::Fine(format!(
            "CPU of the host: {} of {cpus:.0} cores busy, but the server's threads wait for a CPU only {} of the time",
            percent(busy.fail()),
            percent(waited.fail())
        ));
    }
    // Where gaps between bursts are all that is idle, the host is full as its threads are.
    let full_from = if busy.fail() < BUSY_MIN { OWN_SHARE_MIN } else { BUSY_MIN };
    let crossed = scene.crossed_metric(&metric::HOST_CPU_BUSY, full_from * cpus);
    // Its own threads' wait counts, and what its users feel of it.
    let queue = waited.growth(0.02).into_iter().chain(scene.backlog()).reduce(f64::max);
    let stall = scene.sum(&metric::HOST_PRESSURE_CPU_SOME);
    let waiting = wait.map_or_else(|| "a thread".into(), |(thread, _)| thread.label());
    let others = if own.fail() < OWN_SHARE_MIN - 0.3 {
        format!(" (the server uses {} of them: see what else runs on the host)", percent(own.fail()))
    } else {
        String::new()
    };
    Candidate {
        used: used_up(busy.fail().max(BUSY_MIN)),
        queue,
        demand: scene.demand_of(Resource::HostCpu, "").cloned(),
        crossed_at_s: crossed,
        series: scene.ids(&metric::HOST_CPU_BUSY),
        evidence: vec![
            Evidence::new("host.cpu.busy, of all cores", Unit::Ratio, busy).limit(Some(1.0)).crossed(crossed),
            Evidence::new(format!("thread.run_queue_wait of {waiting}"), Unit::Ratio, waited),
            Evidence::new("process.cpu of the server, of all cores", Unit::Ratio, own).limit(Some(1.0)),
            Evidence::new("host.pressure.cpu.some", Unit::Ratio, stall),
        ],
        change: format!(
            "More cores, or less work for each user (bitrate, codec, encryption){others}; the profile says what the time goes to"
        ),
        eases: |demand, _| {
            matches!(demand.resource, Resource::HostCpu | Resource::ProcessCpu | Resource::ThreadGroup)
        },
        ..Candidate::new(KEY, format!("All {cpus:.0} cores of the host are busy"), "CPU of the host")
    }
    .seen()
}
