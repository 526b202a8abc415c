//! The sampler: reads a host periodically. It schedules the passes and owns the shared buffers.

use std::collections::{BTreeMap, HashMap};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use throng_observation::host::{
    Culprit, HostEventKind, HowEnded, ProcessEnd, ProcessEvent, catalogue as metric,
};
use throng_observation::units::duration;

use crate::commands::Commands;
use crate::config::WatchedProcess;
use crate::cpu_accounting::{ChargeGuard, CpuUsage, Purpose, process_cpu};
use crate::discovery::{Finder, TargetProcess, command_line};

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
mod process;
mod service;
mod socket_drops;
mod sockets;
pub(crate) mod threads;
mod units;

use cgroup::Cgroup;
use cost::{Budget, Change, Pace};
use files::{HELP_DESCRIPTORS, HELP_RIGHTS, ReadFailures, Reader, is_out_of_descriptors};
use kernel_log::KernelLog;
use machine::Machine;
use meter::{Meter, Rate, SeriesSpec, Sink};
use net::Net;
use process::{Gone, Process};
use service::{AskedEnd, AskedUnit, MainEnd, Question, unit_of};
use threads::is_gone;
use units::Units;

/// Maximum number of watched processes; the rest are reported and left out.
const PROCESSES_MAX: usize = 1024;
/// Maximum number of network namespaces, and of control groups.
const PLACES_MAX: usize = 16;
/// Buffer size for directory entries.
const DIR_BYTES: usize = 32 * 1024;
/// File descriptors reserved for everything else.
const DESCRIPTORS_SPARE: u64 = 256;
/// A thread that used less of a core in the last pass is not read between passes.
const HOT_SHARE_MIN: f64 = 0.001;
/// Services about which systemd is asked at a time, each by a thread.
const ASKED_MAX: usize = 8;
/// A pass that starts later than this share of its period counts as late.
const LATE_RATIO: f64 = 0.2;

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

/// The watcher's series about itself.
#[derive(Debug, Default)]
struct OwnMeters {
    late: u64,
    cpu: Meter,
    rss: Meter,
    late_rate: Rate,
    dropped_rate: Rate,
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

    /// Reads the network namespaces and control groups of the watched processes; without targets,
    /// this process's namespace.
    fn read_places(&mut self) {
        self.open_places();
        let mut has_drops = std::mem::take(&mut self.has_drops);
        for net in &mut self.nets {
            let sink = net.sink(&self.sink);
            has_drops |= net.read(&sink, &mut self.reader, &self.units, true);
            let inside =
                self.processes.values().filter(|process| process.namespace == Some(net.namespace));
            let names = inside.map(|process| (process.pid, process.name.to_string())).collect();
            net.read_sockets(&sink, &mut self.reader, &mut self.failures, has_drops, &names);
        }
        for cgroup in &mut self.cgroups {
            cgroup.read(&self.sink, &mut self.reader, &self.units);
        }
    }

    /// Opens the namespaces and control groups of new processes. Those of ended processes stay
    /// open: a server that restarts is back in a moment, and the kernel's counters continue.
    fn open_places(&mut self) {
        let (nets, cgroups, facts) = (&mut self.nets, &mut self.cgroups, &mut self.facts);
        let (sink, reader, failures) = (&self.sink, &mut self.reader, &mut self.failures);
        for process in self.processes.values_mut().filter(|process| process.is_place_due(self.pass))
        {
            let pid = process.pid;
            let namespace = namespace::of(pid).unwrap_or(0);
            process.namespace = Some(namespace);
            if namespace != 0
                && !nets.iter().any(|net| net.namespace == namespace)
                && nets.len() < PLACES_MAX
            {
                let label = (!nets.is_empty()).then_some(&*process.name);
                let net = Net::open(pid, namespace, label, sink, failures);
                facts::add_network_facts(facts, label, &net.settings);
                nets.push(net);
            }
            let Some(path) = cgroup::of(reader, pid) else { continue };
            process.cgroup = Some(path.as_str().into());
            let cgroup = match cgroups.iter().position(|cgroup| cgroup.path == path) {
                None if cgroups.len() >= PLACES_MAX => continue,
                None => cgroups.push_mut(Cgroup::open(pid, path, sink, reader, failures)),
                Some(place) => {
                    let Some(cgroup) = cgroups.get_mut(place) else { continue };
                    cgroup.follow(pid, sink, reader, failures);
                    cgroup
                }
            };
            for ancestor in cgroup.tighter_ancestors(reader) {
                if cgroups.len() < PLACES_MAX
                    && !cgroups.iter().any(|cgroup| cgroup.path == ancestor)
                {
                    cgroups.push(Cgroup::open(pid, ancestor, sink, reader, failures));
                }
            }
        }
        if nets.is_empty() && self.finder.targets().is_empty() {
            let own = std::process::id();
            nets.push(Net::open(own, namespace::of(own).unwrap_or(0), None, sink, failures));
        }
    }

    fn find(&mut self) {
        let processes = &self.processes;
        let found = self.finder.find(
            &mut self.reader,
            &mut self.dir,
            |pid| processes.get(&pid).map(|process| (process.target, process.with_descendants)),
            |target| processes.values().any(|process| process.target == target),
        );
        match found {
            Ok(found) => found.into_iter().for_each(|new| self.watch(new)),
            Err(error) => {
                self.failures.report(
                    &self.sink,
                    "/proc",
                    &error.to_string(),
                    "mount it where the watcher runs",
                );
            }
        }
        self.report_missing();
    }

    fn watch(&mut self, new: TargetProcess) {
        if self.processes.len() >= PROCESSES_MAX {
            let what = format!("processes beyond {PROCESSES_MAX}");
            return self.failures.report(
                &self.sink,
                &what,
                "there are too many",
                "watch a narrower target",
            );
        }
        let opened = Process::open(new, &self.sink, &mut self.reader, &mut self.failures);
        match opened {
            Ok(process) => {
                let line = command_line(&mut self.reader, new.pid).unwrap_or_default();
                let detail = format!("{} (PID {}): {line}", process.name, new.pid);
                let detail = detail.trim_end_matches([':', ' ']);
                self.add_process_facts(&process);
                let found = process.event(None);
                self.processes.insert(new.pid, process);
                // Who reads the event may look for the process.
                self.publish_processes();
                self.sink.process_event(Instant::now(), found, detail);
            }
            Err(error) if is_gone(&error) => {}
            Err(error) if is_out_of_descriptors(&error) => {
                self.failures.report(
                    &self.sink,
                    "further processes",
                    &error.to_string(),
                    HELP_DESCRIPTORS,
                );
            }
            Err(error) => {
                self.failures.report(
                    &self.sink,
                    &format!("PID {}", new.pid),
                    &error.to_string(),
                    HELP_RIGHTS,
                );
            }
        }
    }

    /// A process was seen to have ended. If the kernel does not say how while its parent has not
    /// reaped it, it is asked once more in the next pass.
    fn ended(&mut self, pid: u32, how: HowEnded) {
        let Some(process) = self.processes.remove(&pid) else { return };
        let how = process.how_ended(how);
        let is_first_look = process.ended_by.set(self.killed_for_memory(&process, how)).is_ok();
        let is_asked_again =
            is_first_look && how == HowEnded::Unknown && process.is_zombie(&mut self.reader);
        self.processes.insert(pid, process);
        if !is_asked_again {
            self.remove(pid, how);
        }
    }

    fn remove(&mut self, pid: u32, how: HowEnded) {
        let Some(mut process) = self.processes.remove(&pid) else { return };
        self.publish_processes();
        self.report_end(&process, how);
        self.thread_budget += process.end(&self.sink);
        self.nets.iter_mut().for_each(|net| net.sockets.end(&self.sink, pid));
        self.finder.forget(pid);
        if let Some(missing) = self.missing.get_mut(process.target) {
            *missing = false;
        }
    }

    /// Writes an event about the end of a process, with how it ended and who ended it as far as the
    /// kernel tells.
    fn report_end(&mut self, process: &Process, how: HowEnded) {
        let how = process.how_ended(how);
        let may_be_killed = how.is_kill() || how == HowEnded::Unknown;
        let seen_by = process.ended_by.get().cloned().flatten().filter(|_| may_be_killed);
        let by = seen_by
            .or_else(|| self.killed_for_memory(process, how))
            .or_else(|| self.logged_by_kernel(process, how));
        // The command itself is reported by who started it, with its last lines.
        if how != HowEnded::Replaced && self.finder.is_command(process.pid) {
            return self.commands.note_killer(process.pid, by);
        }
        let (at, end) = (Instant::now(), ProcessEnd::new(how));
        let end = ProcessEnd { by: by.or(end.by), ..end };
        match unit_to_ask(process, &end) {
            Some(unit) => {
                let asked = AskedEnd { at, process: process.event(None), how };
                self.to_ask.entry(unit.to_owned()).or_default().push(asked);
            }
            None => self.tell_end(at, process.event(None), end),
        }
    }

    /// Asks systemd about the ends that wait for it, once for each service.
    fn ask(&mut self) {
        for (unit, ends) in std::mem::take(&mut self.to_ask) {
            let pids = ends.iter().map(|end| end.process.pid).collect();
            let has_room = self.asked.len() < ASKED_MAX;
            match has_room.then(|| Question::about(&unit, pids)).flatten() {
                Some(question) => self.asked.push(AskedUnit { ends, question }),
                None => self.tell_answered(ends, None),
            }
        }
    }

    /// Tells the ends of which systemd has said who it was, or had its time to say it.
    fn tell_asked(&mut self) {
        for asked in std::mem::take(&mut self.asked) {
            match asked.question.poll() {
                Poll::Pending => self.asked.push(asked),
                Poll::Ready(main) => self.tell_answered(asked.ends, main.as_ref()),
            }
        }
    }

    fn tell_answered(&self, ends: Vec<AskedEnd>, main: Option<&MainEnd>) {
        for AskedEnd { at, process, how } in ends {
            let by = main.filter(|main| main.pid == process.pid).map(|main| main.by.clone());
            self.tell_end(at, process, ProcessEnd { by, ..ProcessEnd::new(how) });
        }
    }

    fn tell_end(&self, at: Instant, process: ProcessEvent, end: ProcessEnd) {
        let detail = match end.how {
            HowEnded::Exit { .. } | HowEnded::Signal { .. } => {
                format!(": it ended {}", end.words())
            }
            HowEnded::Replaced => ": it executed another program".into(),
            HowEnded::Unknown => {
                end.by.as_ref().map_or_else(String::new, |by| format!(": {}", by.words()))
            }
        };
        let detail = format!("{}{detail}", process.label());
        self.sink.process_event(at, ProcessEvent { end: Some(end), ..process }, detail);
    }

    /// The control group of a process that the kernel may have killed for lack of memory, if it
    /// counted a kill there of late.
    fn killed_for_memory(&mut self, process: &Process, how: HowEnded) -> Option<Culprit> {
        let may_be_it = how.is_kill() || how == HowEnded::Unknown;
        let path = process.cgroup.as_deref().filter(|_| may_be_it)?;
        cgroup::killer(&self.cgroups, path, &mut self.reader)
    }

    /// Who ended it, where the kernel has logged that.
    fn logged_by_kernel(&mut self, process: &Process, how: HowEnded) -> Option<Culprit> {
        let now = Instant::now();
        self.kernel_log.read(now);
        let thread_name = |tid: u32| process.threads.name_of(tid);
        self.kernel_log.culprit((process.pid, &*process.name), how, now, thread_name)
    }

    /// Reports once for each target that none of its processes runs.
    fn report_missing(&mut self) {
        for (place, missing) in self.missing.iter_mut().enumerate() {
            let is_served = self.processes.values().any(|process| process.target == place);
            if !is_served && !*missing {
                let Some(target) = self.finder.targets().get(place) else { continue };
                let help = if target.is_followed() {
                    "it is watched once it starts"
                } else {
                    "it is not followed"
                };
                let detail =
                    format!("{target}: no such process runs, or it is not visible; {help}");
                self.sink.event(Instant::now(), HostEventKind::Unreadable, detail);
            }
            *missing = !is_served;
        }
    }

    fn publish_processes(&self) {
        let shared_processes = self.processes.values().map(|process| WatchedProcess {
            pid: process.pid,
            name: process.name.to_string(),
            target: process.target,
        });
        *self.shared_processes.lock().unwrap_or_else(PoisonError::into_inner) =
            shared_processes.collect();
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

    fn count_late(&mut self, due: Instant, period: Duration) {
        let late = Instant::now().saturating_duration_since(due);
        self.own.late += u64::from(late > period.mul_f64(LATE_RATIO));
    }

    /// CPU time of monitoring this host so far. If the process does nothing else, all its threads
    /// count: those that read, encrypt or draw.
    fn cpu_usage(&self) -> CpuUsage {
        let spent = self.sink.rows.cpu_usage(self.sink.host);
        match self.began {
            Some(began) => {
                let reading = process_cpu().saturating_sub(began).saturating_sub(spent.profiles);
                CpuUsage { reading, ..spent }
            }
            None => spent,
        }
    }

    fn check_own_cost(&mut self) {
        let (now, spent) = (Instant::now(), self.cpu_usage());
        if self.has_opened {
            return self.budget.exclude(now, spent);
        }
        let (sink, own) = (&self.sink, &mut self.own);
        own.late_rate.put(
            sink,
            now,
            own.late,
            1.0,
            &SeriesSpec::host(&metric::WATCHER_LATE_PASSES),
        );
        own.dropped_rate.put(
            sink,
            now,
            sink.rows.dropped(),
            1.0,
            &SeriesSpec::host(&metric::WATCHER_ROWS_DROPPED),
        );
        let Some(evaluation) = self.budget.evaluate(now, spent, self.pace) else { return };
        let spec = SeriesSpec::host(&metric::WATCHER_CPU).limit(Some(self.settings.cpu_max));
        own.cpu.put(sink, now, evaluation.cost, &spec);
        own.rss.put(
            sink,
            now,
            facts::own_rss_bytes(&self.units) as f64,
            &SeriesSpec::host(&metric::WATCHER_RSS),
        );
        if let Some(change) = evaluation.change {
            self.change_pace(now, change, evaluation.reading);
        }
        self.write_host_info();
    }

    fn change_pace(&mut self, now: Instant, change: Change, cost: f64) {
        let (kind, pace, compared) = match change {
            Change::Lower(pace) => (HostEventKind::RateLowered, pace, "more than"),
            Change::Raise(pace) => (HostEventKind::Watcher, pace, "less than half of"),
        };
        self.pace = pace;
        let fast = pace.fast.map_or_else(
            || "without fast passes".into(),
            |fast| format!("hot threads each {}", duration(fast)),
        );
        let detail = format!(
            "monitoring used {:.1} % of a core, {compared} the budget of {:.1} %: a full pass \
             each {}, {fast}",
            cost * 100.0,
            self.settings.cpu_max * 100.0,
            duration(pace.slow),
        );
        self.sink.event(now, kind, detail);
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

/// The service of which systemd is asked about an end that nothing else explains.
fn unit_to_ask<'a>(process: &'a Process, end: &ProcessEnd) -> Option<&'a str> {
    let is_explained =
        end.by.is_some() || end.how == HowEnded::Replaced || end.how.exit_code() == Some(0);
    unit_of(process.cgroup.as_deref().filter(|_| !is_explained)?)
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
