//! What of the CPU limits the server, decided once for all findings by one rule: who used the CPU
//! that the thread waited for?
//!
//! On a small host a full host, a waiting thread and a full thread look alike: a thread that would
//! use a whole core runs for a part of it and waits for the rest, and which part is which changes
//! from run to run. Running and waiting together do not.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;

use super::{Context, Thread};
use crate::findings::score::USED_FROM;

/// Share of throttled periods (100 ms each by default, kernel/sched/fair.c): once in two seconds,
/// for up to 100 ms.
pub(crate) const THROTTLED_MIN: f64 = 0.05;
/// Utilisation of a full host: scheduling leaves a twelfth idle though there is work for more.
pub(crate) const BUSY_MIN: f64 = 0.92;
/// Share of the host from which it is the server's own.
pub(crate) const OWN_SHARE_MIN: f64 = 0.80;
/// Share of the time that a thread waits for a CPU from which it lacks one: less is what waking up
/// costs on a busy host.
pub(crate) const WAIT_MIN: f64 = 0.08;
/// A thread above this share of a core leaves only gaps that no other thread can use.
const HAS_CORE_MIN: f64 = 0.75;

/// What of the CPU limits the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum CpuLimit {
    /// The quota of its control group: it is throttled.
    Quota,
    /// The CPUs of the host: the server itself fills them, or they are taken while one of its
    /// threads waits.
    Host,
    /// A thread waits though CPUs are idle: it is not let onto them.
    Placement {
        /// Its place in the threads of the context.
        waiting: usize,
        /// The number of CPUs that it may run on, if these are not all.
        allowed: Option<f64>,
    },
    /// One thread has work for a whole core, and gets it.
    Thread,
    /// None of these.
    #[default]
    Enough,
}

/// Who uses the CPUs of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taker {
    Generator,
    LowPriority,
    Others,
    Server,
}

impl Taker {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Generator => "the load generator",
            Self::LowPriority => "low-priority work of others",
            Self::Others => "other processes",
            Self::Server => "the server itself",
        }
    }
}

impl<'a> Context<'a> {
    /// Decides it from the threads and the host.
    pub(super) fn decide_cpu_limit(&self) -> CpuLimit {
        if self.throttled().fail() >= THROTTLED_MIN {
            return CpuLimit::Quota;
        }
        let short = self.short_thread();
        if self.has_filled_host() {
            return CpuLimit::Host;
        }
        let displaced = short.filter(|(_, thread)| thread.is_full());
        let bound =
            displaced.and_then(|(waiting, thread)| Some((waiting, self.cpus_allowed(thread)?)));
        // A thread that is bound lacks the CPUs that are idle, unless none is.
        if let Some((waiting, allowed)) = bound.filter(|_| !self.is_host_full()) {
            return CpuLimit::Placement { waiting, allowed: Some(allowed) };
        }
        if short.is_some_and(|(_, thread)| self.leaves_too_little(thread)) {
            return CpuLimit::Host;
        }
        // On the least busy core it could not wait for longer than that is busy.
        let misplaced = displaced.filter(|(_, thread)| thread.wait.fail() > self.least_busy_core());
        if let Some((waiting, _)) = misplaced {
            return CpuLimit::Placement { waiting, allowed: None };
        }
        if self.full_threads().next().is_some() { CpuLimit::Thread } else { CpuLimit::Enough }
    }

    /// Whether a full host or a quota explains what the threads do.
    pub(crate) fn is_cpu_taken(&self) -> bool {
        match self.cpu_limit {
            CpuLimit::Quota | CpuLimit::Host => true,
            CpuLimit::Placement { .. } | CpuLimit::Thread | CpuLimit::Enough => false,
        }
    }

    /// The thread with the longest wait that shows that the server gets less CPU time than it
    /// needs: it waits longer than before, and has enough work to use the time it waits for. A
    /// thread that wakes now and then also waits now and then, on any busy host.
    pub(crate) fn short_thread(&self) -> Option<(usize, &Thread<'a>)> {
        let all: f64 =
            self.threads.iter().map(|thread| thread.cpu.fail() + thread.wait.fail()).sum();
        let wants_host = self.cpus().is_some_and(|cpus| all >= USED_FROM * cpus);
        let is_short = |thread: &Thread<'_>| {
            thread.wait.fail() >= WAIT_MIN
                && thread.waits_longer()
                && (wants_host || thread.is_full())
        };
        let short = self.threads.iter().enumerate().filter(|(_, thread)| is_short(thread));
        short.max_by(|(_, a), (_, b)| a.wait.fail().total_cmp(&b.wait.fail()))
    }

    /// Whether the server itself uses most of the host, and more than before.
    pub(crate) fn owns_host(&self) -> bool {
        let own = self.own_share();
        own.fail() >= OWN_SHARE_MIN && !own.is_constant(Unit::Ratio)
    }

    /// Whether the server itself leaves no CPU for further work of its own. It may keep as many
    /// threads busy as there are cores: bursts of frames leave gaps in the seconds of each thread,
    /// but no core is left for another one.
    fn has_filled_host(&self) -> bool {
        let busy = self.threads.iter().filter(|thread| thread.cpu.fail() >= HAS_CORE_MIN).count();
        let has_thread_a_core = || self.cpus().is_some_and(|cpus| busy as f64 >= cpus);
        let is_busy = || self.host_busy().is_some_and(|busy| busy.fail() >= BUSY_MIN);
        self.owns_host() && (is_busy() || has_thread_a_core())
    }

    /// Whether all CPUs together are idle for less time than the thread waits, or the host counts
    /// as full. Work that takes CPU time from the server counts, at any priority.
    fn leaves_too_little(&self, waiting: &Thread<'_>) -> bool {
        let busy = self.host_busy_with_all().and_then(|busy| busy.fail).zip(self.cpus());
        self.is_host_full()
            || busy.is_some_and(|(busy, cpus)| (1.0 - busy) * cpus < waiting.wait.fail())
    }

    /// Whether the host counts as full, with work of any priority.
    pub(crate) fn is_host_full(&self) -> bool {
        self.host_busy_with_all().is_some_and(|busy| busy.fail() >= BUSY_MIN)
    }

    /// The number of CPUs that a thread may run on, where these are not all of the host.
    fn cpus_allowed(&self, thread: &Thread<'_>) -> Option<f64> {
        let all = self.host.metric(metric::THREAD_CPUS_ALLOWED.name).iter();
        let mut its =
            all.filter(|one| one.label("tid") == thread.tid && one.label("pid") == thread.pid);
        let allowed = self.median(its.next()?).fail?.round();
        (allowed < self.cpus()?).then_some(allowed)
    }

    /// How busy the least busy core is; where cores were not measured, the mean of all, which is
    /// more.
    fn least_busy_core(&self) -> f64 {
        let mean = self.host_busy_with_all().map_or(1.0, |busy| busy.fail());
        let cores = self.host.metric(metric::CORE_BUSY.name).iter();
        cores.filter_map(|core| self.median(core).fail).fold(mean, f64::min)
    }

    /// Who uses most of the host's CPUs under the failing load, and the share of them.
    pub(crate) fn largest_taker(&self) -> (Taker, f64) {
        let cpus = self.cpus().unwrap_or(f64::INFINITY);
        let own = self.own_share().fail();
        let generator = self.generator_cores().fail() / cpus;
        let low_priority = self.low_priority().fail() / cpus;
        let all = self.host_busy_with_all().unwrap_or_default().fail();
        let others = (all - own - generator - low_priority).max(0.0);
        let takers = [
            (Taker::Generator, generator),
            (Taker::LowPriority, low_priority),
            (Taker::Others, others),
            (Taker::Server, own),
        ];
        takers
            .into_iter()
            .fold((Taker::Server, own), |most, one| if one.1 > most.1 { one } else { most })
    }
}
