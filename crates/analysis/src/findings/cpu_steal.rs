//! CPU steal: the hypervisor runs other guests on the host's CPUs.

use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, HOST_BUSY, NoFinding, ruled_out};
use crate::context::Context;

pub(super) const KEY: &str = "cpu_steal";
/// 3 % of all CPUs: 30 ms of each second, as long as a frame.
pub(super) const STEAL_MIN: f64 = 0.03;
/// A tenth of the CPU time is a tenth of the capacity.
const STEAL_FULL: f64 = 0.10;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let (Some(cpus), true) = (context.cpus(), context.is_seen(&metric::HOST_CPU_STEAL)) else {
        return Err(NoFinding::NotMonitored("CPU steal"));
    };
    let steal = context.sum(&metric::HOST_CPU_STEAL).map(|cores| cores / cpus);
    if steal.fail() < STEAL_MIN {
        return ruled_out(format!("CPU steal: {} of the CPUs", percent(steal.fail())));
    }
    let crossed = context.crossed_metric(&metric::HOST_CPU_STEAL, STEAL_MIN * cpus);
    let busy = context.host_busy().unwrap_or_default();
    let wanted = busy.with(steal, |busy, steal| busy + steal);
    Ok(Candidate {
        used: (steal.fail() / STEAL_FULL).clamp(0.0, 1.0),
        // Steal that was there at the baseline did not stop this load.
        queue: steal.growth(0.005),
        crossed_at_s: crossed,
        series: context.ids(&metric::HOST_CPU_STEAL),
        evidence: vec![
            Evidence::ratio("host.cpu.steal, of all cores", steal).crossed(crossed),
            Evidence::ratio(HOST_BUSY, busy).limit(1.0),
            Evidence::ratio("busy and steal, of all cores", wanted).limit(1.0),
        ],
        change: "Use a host with dedicated CPUs (no burst credits), or measure again when the \
                 hypervisor is less loaded"
            .into(),
        ..Candidate::new(
            KEY,
            "CPU steal: the hypervisor takes CPU time that the server needs",
            "CPU of the hypervisor",
        )
    })
}
