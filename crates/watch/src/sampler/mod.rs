//! The sampler: reads a host periodically. It schedules the passes and owns the shared buffers.

use std::collections::{BTreeMap, HashMap};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_observation::host::HowEnded;

use crate::commands::Commands;
use crate::config::WatchedProcess;
use crate::cpu_accounting::{ChargeGuard, CpuUsage, Purpose, process_cpu};
use crate::discovery::Finder;

mod cgroup;
mod connections;
pub(crate) mod cost;
mod end;
mod facts;
pub(crate) mod files;
mod kernel_log;
mod machine;
pub(crate) mod meter;
mod namespace;
mod net;
mod own_cost;
mod places;
mod process;
mod service;
mod socket_drops;
mod sockets;
pub(crate) mod threads;
mod units;
mod watched;
mod who_ended;

use cgroup::Cgroup;
use cost::{Budget, Pace};
use files::{HELP_DESCRIPTORS, HELP_RIGHTS, ReadFailures, Reader, is_out_of_descriptors};
use kernel_log::KernelLog;
use machine::Machine;
use meter::Sink;
use net::Net;
use own_cost::OwnMeters;
use process::{Gone, Process};
use service::{AskedEnd, AskedUnit};
use units::Units;

/// Buffer size for directory entries.
const DIR_BYTES: usize = 32 * 1024;
/// File descriptors reserved for everything else.
const DESCRIPTORS_SPARE: u64 = 256;
/// A thread that used less of a core in the last pass is not read between passes.
const HOT_SHARE_MIN: f64 = 0.001;

/// Settings of a sampler.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) pace: Pace,
    pub(crate) hot_threads: usize,
    pub(crate) cpu_max: f64,
    pub(crate) is_exclusive: bool,
}

/// The watched processes, shared with other threads.
pub(crate) type SharedProcesses = Arc<Mutex<Vec<WatchedProcess>>>;

/// Samples a host.
#[derive(Debug)]
pub(crate) struct Sampler {
    settings: Settings,
    sink: Sink,
    finder: Finder,
    commands: Commands,
    shared_processes: SharedProcesses,
    reader: Reader,
    failures: ReadFailures,
    dir: Vec<MaybeUninit<u8>>,
    units: Units,
    machine: Machine,
    kernel_log: KernelLog,
    processes: HashMap<u32, Process>,
    /// Ends of this pass about which systemd is to be asked, by unit: of a service that ends with
    /// hundreds of processes one is the main one.
    to_ask: BTreeMap<String, Vec<AskedEnd>>,
    asked: Vec<AskedUnit>,
    nets: Vec<Net>,
    cgroups: Vec<Cgroup>,
    /// Whether each target has been reported as missing.
    missing: Vec<bool>,
    /// How many more threads may be opened.
    thread_budget: usize,
    hot: Vec<(u32, u32)>,
    /// The previous hot threads; kept to reuse the allocation.
    was_hot: Vec<(u32, u32)>,
    loads: Vec<(f64, u32, u32)>,
    pace: Pace,
    budget: Budget,
    own: OwnMeters,
    _cost: Option<ChargeGuard>,
    /// CPU time of this process at the start, if it does nothing but monitor.
    began: Option<Duration>,
    /// Whether the last pass opened all files of a server.
    has_opened: bool,
    pass: u32,
    /// Whether datagrams were dropped since the last full pass.
    has_drops: bool,
    facts: BTreeMap<String, String>,
}

impl Sampler {
    /// Must be called on the sampling thread, whose CPU time is charged from here on.
    pub(crate) fn new(
        settings: Settings,
        sink: Sink,
        finder: Finder,
        commands: Commands,
        shared_processes: SharedProcesses,
    ) -> Self {
        let cost = sink.rows.charge(sink.host, Purpose::Reading);
        let began = settings.is_exclusive.then(process_cpu);
        let mut failures = ReadFailures::default();
        let machine = Machine::open(&sink, &mut failures);
        let targets = finder.targets().len();
        Self {
            pace: settings.pace,
            budget: Budget::new(settings.cpu_max, Instant::now(), CpuUsage::default()),
            finder,
            commands,
            shared_processes,
            reader: Reader::new(),
            failures,
            dir: vec![MaybeUninit::uninit(); DIR_BYTES],
            units: Units::of_this_kernel(),
            machine,
            kernel_log: KernelLog::open(),
            processes: HashMap::new(),
            to_ask: BTreeMap::new(),
            asked: Vec::new(),
            nets: Vec::new(),
            cgroups: Vec::new(),
            missing: vec![false; targets],
            thread_budget: thread_budget(),
            hot: Vec::with_capacity(settings.hot_threads),
            was_hot: Vec::with_capacity(settings.hot_threads),
            loads: Vec::new(),
            own: OwnMeters::default(),
            _cost: cost,
            began,
            has_opened: false,
            pass: 0,
            has_drops: false,
            facts: BTreeMap::new(),
            settings,
            sink,
        }
    }

    /// Samples until `is_over` returns true; that function also waits.
    pub(crate) fn run(&mut self, mut is_over: impl FnMut(Duration) -> bool) {
        let mut slow_at = Instant::now();
        self.write_host_info();
        loop {
            self.slow_pass();
            self.check_own_cost();
            slow_at = next(slow_at, self.pace.slow);
            let mut fast_at = Instant::now();
            while let Some(fast) = self.pace.fast {
                fast_at = next(fast_at, fast);
                if fast_at + fast / 2 > slow_at {
                    break;
                }
                if is_over(fast_at.saturating_duration_since(Instant::now())) {
                    return self.end();
                }
                self.count_late(fast_at, fast);
                self.fast_pass();
            }
            if is_over(slow_at.saturating_duration_since(Instant::now()))
                || self.sink.rows.is_closed()
            {
                return self.end();
            }
            self.count_late(slow_at, self.pace.slow);
        }
    }

    /// A full pass.
    fn slow_pass(&mut self) {
        self.pass = self.pass.wrapping_add(1);
        let had_any = !self.processes.is_empty();
        self.kernel_log.read(Instant::now());
        self.find();
        self.has_opened = !had_any && (!self.processes.is_empty() || self.pass == 1);
        let mut ended = Vec::new();
        let Self { processes, sink, reader, failures, dir, units, thread_budget, .. } = self;
        for process in processes.values_mut() {
            match process.read(sink, reader, failures, dir, units, thread_budget) {
                Ok(()) => {}
                Err(Gone::Ended(how)) => ended.push((process.pid, how)),
                Err(Gone::Unreadable(error)) => {
                    let what = format!("{} (PID {})", process.name, process.pid);
                    let is_full = is_out_of_descriptors(&error);
                    let help = if is_full { HELP_DESCRIPTORS } else { HELP_RIGHTS };
                    failures.report(sink, &what, &error.to_string(), help);
                }
            }
        }
        ended.into_iter().for_each(|(pid, how)| self.ended(pid, how));
        self.ask();
        self.tell_asked();
        self.machine.read(&self.sink, &mut self.reader, true);
        self.read_places();
        self.choose_hot();
        for (pid, tid) in &self.hot {
            if let Some(process) = self.processes.get_mut(pid) {
                process.threads.read_status(&self.sink, &mut self.reader, *tid);
            }
        }
    }

    /// Reads the hot threads and the machine's fast-changing figures.
    fn fast_pass(&mut self) {
        self.tell_asked();
        for (pid, tid) in &self.hot {
            if let Some(process) = self.processes.get_mut(pid) {
                process.threads.read_hot(&self.sink, &mut self.reader, *tid);
            }
        }
        self.machine.read(&self.sink, &mut self.reader, false);
        for net in &mut self.nets {
            self.has_drops |= net.read(&net.sink(&self.sink), &mut self.reader, &self.units, false);
        }
    }

    /// Selects the threads that used most CPU time in the last pass.
    fn choose_hot(&mut self) {
        self.loads.clear();
        for process in self.processes.values() {
            let loads = process.threads.loads().filter(|(load, _)| *load >= HOT_SHARE_MIN);
            self.loads.extend(loads.map(|(load, tid)| (load, process.pid, tid)));
        }
        let wanted = self.settings.hot_threads;
        if self.loads.len() > wanted && wanted > 0 {
            self.loads.select_nth_unstable_by(wanted - 1, |a, b| b.0.total_cmp(&a.0));
        }
        std::mem::swap(&mut self.hot, &mut self.was_hot);
        self.hot.clear();
        self.hot.extend(self.loads.iter().take(wanted).map(|(_, pid, tid)| (*pid, *tid)));
        for (pid, tid) in self.was_hot.iter().filter(|thread| !self.hot.contains(thread)) {
            if let Some(process) = self.processes.get_mut(pid) {
                process.threads.close_status(*tid);
            }
        }
    }

    fn end(&mut self) {
        // A run may end with its server, before the next pass sees it.
        let Self { processes, reader, .. } = self;
        let ended =
            processes.values().filter_map(|process| Some((process.pid, process.ended(reader)?)));
        let ended: Vec<(u32, HowEnded)> = ended.collect();
        ended.into_iter().for_each(|(pid, how)| self.remove(pid, how));
        self.ask();
        for asked in std::mem::take(&mut self.asked) {
            let main = asked.question.wait();
            self.tell_answered(asked.ends, main.as_ref());
        }
        let now = Instant::now();
        for process in self.processes.values_mut() {
            process.end(&self.sink);
        }
        self.processes.clear();
        self.publish_processes();
        self.own.cpu.end(&self.sink, now);
        self.write_host_info();
    }
}

/// The next tick of an interval; a missed tick is skipped, not caught up with.
fn next(at: Instant, period: Duration) -> Instant {
    let (next, now) = (at + period, Instant::now());
    if next < now { now } else { next }
}

/// How many threads may be kept open, after raising the file descriptor limit to its maximum.
fn thread_budget() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let most = threads::THREADS_MAX as u64;
    let now = getrlimit(Resource::Nofile).current.unwrap_or(most * 2);
    usize::try_from(now.saturating_sub(DESCRIPTORS_SPARE).min(most)).unwrap_or(threads::THREADS_MAX)
}
