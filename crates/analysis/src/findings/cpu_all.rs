//! All CPUs of the host are busy.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::score::{USED_FROM, used_up};
use super::{Candidate, CheckResult, Evidence, HOST_BUSY, NoFinding, ruled_out, thread_log};
use crate::context::{BUSY_MIN, Context, CpuLimit, OWN_SHARE_MIN, Reading, Thread, WAIT_MIN};
use crate::demand::Resource;

pub(super) const KEY: &str = "cpu_full";
/// Low-priority work below this share of the CPUs is not mentioned.
const LOW_MIN: f64 = 0.05;

/// Whether other processes kept the host full at the baseline already, where service was good: then
/// a full host does not explain what the server's threads do.
pub(super) fn is_full_anyhow(context: &Context<'_>) -> bool {
    let busy = context.host_busy().and_then(|busy| busy.base);
    busy.is_some_and(|base| base >= BUSY_MIN) && context.own_share().fail() < OWN_SHARE_MIN
}

/// The CPUs of the host and the server's part in their use, in the three windows.
struct HostCpu<'c> {
    cpus: f64,
    /// Without low-priority work of other processes.
    busy: Reading,
    /// All of it.
    busy_with_all: Reading,
    /// What the watched processes use.
    own: Reading,
    /// Low-priority work of other processes.
    low_priority: Reading,
    /// The thread that waits for a CPU, and its share of the time.
    waiting: Option<(&'c Thread<'c>, Reading)>,
}

impl<'c> HostCpu<'c> {
    fn of(context: &'c Context<'_>) -> Option<Self> {
        let cpus = context.cpus()?;
        // The longest wait may be that of a thread that waits as long under any load.
        let waiting = context.short_thread().map(|(_, thread)| (thread, thread.wait));
        Some(Self {
            cpus,
            busy: context.host_busy()?,
            busy_with_all: context.host_busy_with_all().unwrap_or_default(),
            own: context.own_share(),
            low_priority: context.low_priority().map(|cores| cores / cpus),
            waiting: waiting.or_else(|| context.longest_wait()),
        })
    }

    fn waited(&self) -> Reading {
        self.waiting.map_or_else(Reading::default, |(_, wait)| wait)
    }

    fn has_low_priority(&self) -> bool {
        self.low_priority.fail() >= LOW_MIN
    }

    /// Why the host's CPUs are not the limit.
    fn ruled_out(&self) -> CheckResult {
        let yielding = if self.has_low_priority() {
            format!(
                ", and {} with low-priority work of others (nice), which yields",
                percent(self.low_priority.fail())
            )
        } else {
            String::new()
        };
        let state = format!(
            "CPU of the host: {} of {:.0} cores busy",
            percent(self.busy.fail()),
            self.cpus
        );
        if self.busy.fail() < USED_FROM {
            ruled_out(format!("{state}{yielding}"))
        } else if self.busy.is_constant(Unit::Ratio) {
            Err(NoFinding::Constant(format!(
                "{state}, {} before{yielding}: it does not change with the load, so it is not the \
                 cause, and the server's threads do not lack CPU time",
                percent(self.busy.before().unwrap_or(0.0))
            )))
        } else {
            ruled_out(format!(
                "{state}{yielding}, but the server's threads wait for a CPU only {} of the time",
                percent(self.waited().fail())
            ))
        }
    }

    fn crossed(&self, context: &Context<'_>) -> Option<f64> {
        // If only gaps between bursts are idle, the host is as full as the server's threads.
        let full_from = if self.busy.fail() < BUSY_MIN { OWN_SHARE_MIN } else { BUSY_MIN };
        // A host that low-priority work fills is always busy: then the time at which the server's
        // threads began to wait.
        let began_to_wait = || context.crossed(&context.waits_of(self.waiting?.0), WAIT_MIN);
        context.crossed_metric(&metric::HOST_CPU_BUSY, full_from * self.cpus).or_else(began_to_wait)
    }

    /// Low-priority work yields as a rule; if the server's threads wait all the same, it does not.
    fn is_low_priority_in_the_way(&self) -> bool {
        self.has_low_priority()
            && self.busy.fail() < BUSY_MIN
            && self.busy_with_all.fail() >= BUSY_MIN
    }

    fn title(&self, context: &Context<'_>) -> String {
        let (taker, share) = context.largest_taker();
        let (cpus, share, taker) = (self.cpus, percent(share), taker.name());
        match context.short_thread().filter(|_| !context.is_host_full()) {
            Some((_, thread)) => format!(
                "The host leaves thread {} too little CPU time: {share} of its {cpus:.0} cores \
                 are used by {taker}",
                thread.label()
            ),
            None if self.is_low_priority_in_the_way() => format!(
                "All {cpus:.0} cores of the host are busy: the server waits for other processes, \
                 though they run at lower priority"
            ),
            None => format!("All {cpus:.0} cores of the host are busy: {share} of them by {taker}"),
        }
    }

    fn evidence(&self, context: &Context<'_>, crossed: Option<f64>) -> Vec<Evidence> {
        let (name, busy) = if self.is_low_priority_in_the_way() {
            ("host.cpu.busy, of all cores", self.busy_with_all)
        } else {
            (HOST_BUSY, self.busy)
        };
        let waiting = self.waiting.map_or_else(|| "a thread".into(), |(thread, _)| thread.label());
        let mut evidence = vec![
            Evidence::ratio(name, busy).limit(1.0).crossed(crossed),
            Evidence::ratio(format!("thread.run_queue_wait of {waiting}"), self.waited())
                .decides_if(context.short_thread().is_some()),
            Evidence::ratio("process.cpu of the server, of all cores", self.own)
                .limit(1.0)
                .decides_if(context.owns_host()),
            Evidence::ratio("host.pressure.cpu.some", context.sum(&metric::HOST_PRESSURE_CPU_SOME)),
        ];
        if self.has_low_priority() {
            let line = Evidence::ratio("host.cpu.nice of others, of all cores", self.low_priority);
            evidence.insert(2, line);
        }
        evidence.extend(thread_log::of_all(context));
        evidence
    }
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let host = HostCpu::of(context).ok_or(NoFinding::NotMonitored("the CPUs of the host"))?;
    if context.cpu_limit != CpuLimit::Host {
        return host.ruled_out();
    }
    let crossed = host.crossed(context);
    let others = if host.own.fail() < OWN_SHARE_MIN - 0.3 {
        format!(
            " (the server uses {} of them: check what else runs on the host)",
            percent(host.own.fail())
        )
    } else {
        String::new()
    };
    Ok(Candidate {
        used: used_up(host.busy.fail().max(BUSY_MIN)),
        // The wait of its own threads counts, and the delay of its users.
        queue: host.waited().growth(0.02).into_iter().chain(context.backlog()).reduce(f64::max),
        demand: context.demand_of(Resource::HostCpu, "").cloned(),
        crossed_at_s: crossed,
        series: context.ids(&metric::HOST_CPU_BUSY),
        evidence: host.evidence(context, crossed),
        change: format!(
            "Use more cores, or reduce the work for each user (bitrate, codec, \
             encryption){others}; the profile shows what the time is spent on"
        ),
        eases: |demand, _| {
            matches!(
                demand.resource,
                Resource::HostCpu | Resource::ProcessCpu | Resource::ThreadGroup
            )
        },
        ..Candidate::new(KEY, host.title(context), "CPU of the host")
    })
}
