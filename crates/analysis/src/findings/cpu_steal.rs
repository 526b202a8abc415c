//! The hypervisor gives the CPU to somebody else: the host is smaller than it says.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, HOST_BUSY};
use crate::context::Context;

pub(super) const KEY: &str = "cpu_steal";
/// 3 % of all CPUs: 30 ms of each second in which nothing runs, as long as a frame.
pub(super) const STEAL_MIN: f64 = 0.03;
/// A tenth gone is a tenth of the capacity gone.
const STEAL_FULL: f64 = 0.10;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let (Some(cpus), true) = (context.cpus(), context.is_seen(&metric::HOST_CPU_STEAL)) else {
        return CheckResult::NotMonitored("the CPU time that the hypervisor takes");
    };
    let steal = context.sum(&metric::HOST_CPU_STEAL).map(|cores| cores / cpus);
    if steal.fail() < STEAL_MIN {
        return CheckResult::RuledOut(format!(
            "Stolen by the hypervisor: {} of the CPUs",
            percent(steal.fail())
        ));
    }
    let crossed = context.crossed_metric(&metric::HOST_CPU_STEAL, STEAL_MIN * cpus);
    let busy = context.host_busy().unwrap_or_default();
    let wanted = busy.with(steal, |busy, steal| busy + steal);
    Candidate {
        used: (steal.fail() / STEAL_FULL).clamp(0.0, 1.0),
        // What was stolen at the floor as well is the neighbourhood, and not what stopped this load.
        queue: steal.growth(0.005),
        crossed_at_s: crossed,
        series: context.ids(&metric::HOST_CPU_STEAL),
        evidence: vec![
            Evidence::new("host.cpu.steal, of all cores", Unit::Ratio, steal).crossed(crossed),
            Evidence::new(HOST_BUSY, Unit::Ratio, busy).limit(Some(1.0)),
            Evidence::new("busy and stolen, of all cores", Unit::Ratio, wanted).limit(Some(1.0)),
        ],
        change: "A host whose CPUs are its own (dedicated instance, no credits), or measure again at a quieter hour".into(),
        ..Candidate::new(KEY, "The hypervisor takes CPU time that the server wants", "CPU of the hypervisor")
    }
    .suspect()
}
