//! The threads of a process: CPU time and run queue wait of each, every second; hot threads are
//! read more often, sleeping ones only now and then, or when the process used more CPU time than
//! the threads read so far explain.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use rustix::fs::{RawDir, SeekFrom, seek};
use throng_observation::host::catalogue as metric;

use super::files::{HELP_DESCRIPTORS, HELP_RIGHTS, ReadFailures, Reader, is_out_of_descriptors};
use super::meter::{Counter, Meter, Rate, SeriesSpec, Sink};
use super::units::Units;
use crate::cpu_accounting::{clock, read_clock};
use crate::proc::schedstat::SchedStat;
use crate::proc::{schedstat, stat, status};

/// Maximum number of threads read in one process, because each needs a file descriptor; further
/// ones are only counted.
pub(crate) const THREADS_MAX: usize = 16_384;

/// Threads set their names soon after they start.
const NAME_SETTLES: Duration = Duration::from_secs(2);
/// Name and state of a thread that has run are read once in this many passes.
const LOOK_PASSES: u32 = 10;
/// After this many passes without running a thread counts as sleeping; most threads of a server
/// sleep, and reading is costly.
const SLEEPS_AFTER: u32 = 5;
/// Each sleeping thread, and the directory of threads, is read once in this many passes.
const SLEEPER_PASSES: u32 = 8;
/// Sleeping threads are read at once when the process used more CPU time than its other threads by
/// this part of the whole, and by at least this many nanoseconds.
const UNEXPLAINED_NS: u64 = 1_000_000;
const UNEXPLAINED_PART: u64 = 100;

/// Hysteresis for hot threads: similar threads do not alternate, which would cost time and fragment
/// their series.
const STAYS_HOT: f64 = 2.0;

/// A thread with its open file and meters.
#[derive(Debug)]
struct SampledThread {
    schedstat: File,
    name: Box<str>,
    born_at: Instant,
    /// The last pass in which it was listed, and in which it was read.
    pass: u32,
    read_pass: u32,
    /// Number of consecutive reads in which it had not run.
    idle_reads: u32,
    has_run: bool,
    on_cpu: Counter,
    waiting: Counter,
    cpu: Meter,
    wait: Meter,
    /// `on_cpu` at the last pass that read it.
    on_cpu_at_pass: Counter,
    /// CPU use between the last two passes that read it, in cores.
    share: f64,
    is_blocked: bool,
    /// Present once the thread has been hot.
    hot: Option<Box<Hot>>,
}

/// Further figures of hot threads.
#[derive(Debug, Default)]
struct Hot {
    /// Open only while the thread is hot.
    status: Option<File>,
    switches: [Rate; 2],
    cpus_allowed: Meter,
}

/// The threads of one process.
#[derive(Debug)]
pub(crate) struct Threads {
    pid: u32,
    process: Box<str>,
    folder: File,
    by_tid: HashMap<u32, SampledThread>,
    pass: u32,
    /// Start of the last pass.
    passed_at: Instant,
    /// Number of threads that are listed but not read.
    unread: usize,
    /// CPU time of the process at the last pass, and the part of the growth since that its threads
    /// have shown; nanoseconds.
    process_ns: Option<u64>,
    explained_ns: u64,
}

/// Buffer for directory entries.
pub(crate) type DirBuffer = [MaybeUninit<u8>];

impl Threads {
    pub(crate) fn open(pid: u32, process: &str) -> io::Result<Self> {
        let folder = File::open(format!("/proc/{pid}/task"))?;
        Ok(Self {
            pid,
            process: process.into(),
            folder,
            by_tid: HashMap::new(),
            pass: 0,
            passed_at: Instant::now(),
            unread: 0,
            process_ns: None,
            explained_ns: 0,
        })
    }

    /// Number of threads last seen in uninterruptible sleep.
    pub(crate) fn blocked(&self) -> usize {
        self.by_tid.values().filter(|thread| thread.is_blocked).count()
    }

    /// The name of its thread of this number when that was last read.
    pub(crate) fn name_of(&self, tid: u32) -> Option<&str> {
        self.by_tid.get(&tid).map(|thread| &*thread.name)
    }

    /// CPU use of each thread in the last full pass, increased by [`STAYS_HOT`] for hot ones.
    pub(crate) fn loads(&self) -> impl Iterator<Item = (f64, u32)> {
        self.by_tid.iter().map(|(tid, thread)| (thread.load(), *tid))
    }

    /// Finds new threads, reads those that run, and ends the series of those that have ended.
    /// `count` is the process's number of threads according to the kernel.
    pub(crate) fn read_all(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        dir: &mut DirBuffer,
        thread_budget: &mut usize,
        count: u64,
    ) -> io::Result<()> {
        self.pass = self.pass.wrapping_add(1);
        let began = Instant::now();
        let process_ns = process_clock_ns(self.pid);
        // If one thread ends and another starts, the count does not change: the end is noticed when
        // the thread is read, and the new thread's CPU time is unexplained.
        let known = self.by_tid.len().saturating_add(self.unread) as u64;
        let is_due = self.pass == 1 || self.pass.is_multiple_of(SLEEPER_PASSES);
        let is_scanned = is_due || count != known;
        if is_scanned {
            self.rescan(sink, reader, failures, dir, thread_budget)?;
        }
        let mut ended = self.read_matching(sink, reader, is_scanned, SampledThread::is_due);
        let came = process_ns.zip(self.process_ns).map(|(now, before)| now.saturating_sub(before));
        let allowed = |came: u64| UNEXPLAINED_NS.max(came / UNEXPLAINED_PART);
        let explained = std::mem::take(&mut self.explained_ns);
        if came.is_none_or(|came| came.saturating_sub(explained) > allowed(came)) {
            ended += self.read_matching(sink, reader, is_scanned, |_, _, _| true);
            self.explained_ns = 0; // the time of sleepers counts for the pass that ended
        }
        self.process_ns = process_ns;
        *thread_budget += ended;
        if ended > 0 && !is_scanned {
            // The ended thread may have been replaced.
            self.rescan(sink, reader, failures, dir, thread_budget)?;
        }
        self.passed_at = began;
        Ok(())
    }

    /// Reads the threads for which `is_wanted` and that were not read in this pass; returns how
    /// many have ended.
    fn read_matching(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        is_scanned: bool,
        is_wanted: impl Fn(&SampledThread, u32, u32) -> bool,
    ) -> usize {
        let (pid, process, pass) = (self.pid, &self.process, self.pass);
        let (mut ended, mut grown_ns) = (0, 0_u64);
        let now = Instant::now();
        self.by_tid.retain(|tid, thread| {
            if thread.read_pass == pass && pass != 0 {
                return true;
            }
            let mut is_here = !is_scanned || thread.pass == pass;
            if is_here && is_wanted(thread, *tid, pass) {
                thread.read_pass = pass;
                // Until it is seen to have run.
                thread.idle_reads = thread.idle_reads.saturating_add(1);
                match thread.read(sink, reader, pid, process, *tid) {
                    Ok(grown) => grown_ns = grown_ns.saturating_add(grown),
                    Err(_) => is_here = false,
                }
                thread.update_share();
            }
            if is_here {
                let is_new = now.saturating_duration_since(thread.born_at) < NAME_SETTLES;
                let may_differ = thread.has_run || thread.is_blocked;
                if is_new || (may_differ && tid.wrapping_add(pass).is_multiple_of(LOOK_PASSES)) {
                    thread.update_name(sink, reader, pid, *tid);
                }
            } else {
                thread.end(sink);
                ended += 1;
            }
            is_here
        });
        self.explained_ns = self.explained_ns.saturating_add(grown_ns);
        ended
    }

    /// Reads one thread again between two passes.
    pub(crate) fn read_hot(&mut self, sink: &Sink, reader: &mut Reader, tid: u32) {
        if let Some(thread) = self.by_tid.get_mut(&tid) {
            // The next pass notices a thread that has ended.
            let grown = thread.read(sink, reader, self.pid, &self.process, tid).unwrap_or(0);
            self.explained_ns = self.explained_ns.saturating_add(grown);
        }
    }

    /// Reads the context switches and the affinity of a hot thread.
    pub(crate) fn read_status(&mut self, sink: &Sink, reader: &mut Reader, tid: u32) {
        let (pid, process) = (self.pid, &self.process);
        let Some(thread) = self.by_tid.get_mut(&tid) else { return };
        let hot = &mut **thread.hot.get_or_insert_default();
        if hot.status.is_none() {
            hot.status = File::open(format!("/proc/{pid}/task/{tid}/status")).ok();
        }
        let Some(Ok(text)) = hot.status.as_ref().map(|file| reader.one(file)) else { return };
        let Some(switches) = status::switches(text) else { return };
        let cpus_allowed = status::cpus_allowed(text);
        let now = Instant::now();
        let (pid, tid) = (pid.to_string(), tid.to_string());
        let labels =
            [("process", &**process), ("pid", &*pid), ("tid", &*tid), ("thread", &*thread.name)];
        let [voluntary, involuntary] = &mut hot.switches;
        let spec = |metric| SeriesSpec::new(metric, &labels);
        voluntary.put(
            sink,
            now,
            switches.voluntary,
            1.0,
            &spec(&metric::THREAD_SWITCHES_VOLUNTARY),
        );
        involuntary.put(
            sink,
            now,
            switches.involuntary,
            1.0,
            &spec(&metric::THREAD_SWITCHES_INVOLUNTARY),
        );
        if let Some(cpus) = cpus_allowed {
            hot.cpus_allowed.put(sink, now, f64::from(cpus), &spec(&metric::THREAD_CPUS_ALLOWED));
        }
    }

    /// Closes the extra file of a thread that is no longer hot.
    pub(crate) fn close_status(&mut self, tid: u32) {
        if let Some(hot) = self.by_tid.get_mut(&tid).and_then(|thread| thread.hot.as_mut()) {
            hot.status = None;
        }
    }

    /// Ends all series: the process has ended. Returns the number of threads.
    pub(crate) fn end(&mut self, sink: &Sink) -> usize {
        for thread in self.by_tid.values_mut() {
            thread.end(sink);
        }
        let ended = self.by_tid.len();
        self.by_tid.clear();
        ended
    }

    fn rescan(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        dir: &mut DirBuffer,
        thread_budget: &mut usize,
    ) -> io::Result<()> {
        seek(&self.folder, SeekFrom::Start(0))?;
        let before = (self.pass > 1).then_some(self.passed_at);
        let mut unread = 0;
        let mut entries = RawDir::new(&self.folder, dir);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(Ok(tid)) = entry.file_name().to_str().map(str::parse::<u32>) else { continue };
            if let Some(thread) = self.by_tid.get_mut(&tid) {
                thread.pass = self.pass;
                continue;
            }
            if *thread_budget == 0 || self.by_tid.len() >= THREADS_MAX {
                unread += 1;
                continue;
            }
            match SampledThread::open(reader, self.pid, tid, before) {
                Ok(thread) => {
                    *thread_budget -= 1;
                    self.by_tid.insert(tid, SampledThread { pass: self.pass, ..thread });
                }
                // Gone in the meantime.
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    unread += 1;
                    if is_out_of_descriptors(&error) {
                        *thread_budget = 0; // until a thread ends; the rest is said below
                        continue;
                    }
                    let what = format!("threads of {} (PID {})", self.process, self.pid);
                    failures.report(sink, &what, &error.to_string(), HELP_RIGHTS);
                }
            }
        }
        self.unread = unread;
        if *thread_budget == 0 && unread > 0 {
            let what = format!("some threads of {} (PID {})", self.process, self.pid);
            let why = format!("no file descriptors are left for {unread} of them");
            failures.report(sink, &what, &why, HELP_DESCRIPTORS);
        } else if self.by_tid.len() >= THREADS_MAX && unread > 0 {
            let what = format!("some threads of {} (PID {})", self.process, self.pid);
            let why = format!("{THREADS_MAX} are read and {unread} are not");
            failures.report(sink, &what, &why, "their CPU time is included in that of the process");
        }
        Ok(())
    }
}

/// Whether the error means that the process or thread has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

impl SampledThread {
    /// Opens a thread. The time so far of a thread that existed before monitoring started is its
    /// baseline; a thread that started since the pass `before` counts from its birth.
    fn open(reader: &mut Reader, pid: u32, tid: u32, before: Option<Instant>) -> io::Result<Self> {
        let schedstat = File::open(format!("/proc/{pid}/task/{tid}/schedstat"))?;
        let begun = schedstat::parse(reader.one(&schedstat)?).unwrap_or_default();
        let now = Instant::now();
        let mut thread = Self {
            schedstat,
            name: "".into(),
            born_at: now,
            pass: 0,
            read_pass: 0,
            idle_reads: 0,
            has_run: true,
            on_cpu: Counter::default(),
            waiting: Counter::default(),
            cpu: Meter::default(),
            wait: Meter::default(),
            on_cpu_at_pass: Counter::default(),
            share: 0.0,
            is_blocked: false,
            hot: None,
        };
        let age = thread.read_name(reader, pid, tid).unwrap_or_default();
        thread.born_at = now.checked_sub(age).unwrap_or(now);
        thread.has_run = age < NAME_SETTLES; // else its name is read, and stays until it runs
        let (since, begun) = match before {
            None => (now, begun),
            Some(before) => {
                (since_when(now, thread.born_at, before, begun.on_cpu_ns), SchedStat::default())
            }
        };
        thread.on_cpu.begin(since, begun.on_cpu_ns);
        thread.on_cpu_at_pass = thread.on_cpu;
        thread.waiting.begin(since, begun.waiting_ns);
        Ok(thread)
    }

    fn load(&self) -> f64 {
        let is_hot = self.hot.as_ref().is_some_and(|hot| hot.status.is_some());
        if is_hot { self.share * STAYS_HOT } else { self.share }
    }

    /// Computes its CPU use since the previous pass, not since it was last read: hot threads are
    /// read so often that one which works in bursts would often appear idle.
    fn update_share(&mut self) {
        let before = std::mem::replace(&mut self.on_cpu_at_pass, self.on_cpu);
        self.share = self.on_cpu.rate_since(before).unwrap_or(0.0) * 1e-9;
    }

    /// Whether to read it in this pass regardless of the process's CPU time.
    fn is_due(&self, tid: u32, pass: u32) -> bool {
        self.idle_reads < SLEEPS_AFTER || tid.wrapping_add(pass).is_multiple_of(SLEEPER_PASSES)
    }

    /// Reads it; returns the CPU time since it was last read, nanoseconds.
    fn read(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        pid: u32,
        process: &str,
        tid: u32,
    ) -> io::Result<u64> {
        let text = reader.one(&self.schedstat)?;
        let now = Instant::now();
        let Some(times) = schedstat::parse(text) else { return Ok(0) };
        let grown_ns = self.on_cpu.grown(times.on_cpu_ns);
        let (cpu, wait) =
            (self.on_cpu.rate(now, times.on_cpu_ns), self.waiting.rate(now, times.waiting_ns));
        let share = cpu.unwrap_or(0.0) * 1e-9;
        let is_idle = share == 0.0 && wait.unwrap_or(0.0) == 0.0;
        if !is_idle {
            (self.idle_reads, self.has_run) = (0, true);
        }
        if is_idle && self.cpu.is_quiet() && self.wait.is_quiet() {
            self.cpu.repeat(sink, now);
            self.wait.repeat(sink, now);
            return Ok(grown_ns); // by far the most threads, most of the time
        }
        let (pid, tid) = (Digits::of(pid), Digits::of(tid));
        let labels = [
            ("process", process),
            ("pid", pid.text()),
            ("tid", tid.text()),
            ("thread", &*self.name),
        ];
        self.cpu.put_if_nonzero(sink, now, share, &SeriesSpec::new(&metric::THREAD_CPU, &labels));
        if let Some(wait) = wait {
            let spec = SeriesSpec::new(&metric::THREAD_RUN_QUEUE_WAIT, &labels);
            self.wait.put_if_nonzero(sink, now, wait * 1e-9, &spec);
        }
        Ok(grown_ns)
    }

    /// Reads name and state. A renamed thread starts new series.
    fn update_name(&mut self, sink: &Sink, reader: &mut Reader, pid: u32, tid: u32) {
        self.has_run = false;
        let before = std::mem::take(&mut self.name);
        self.read_name(reader, pid, tid);
        if self.name != before {
            self.end(sink);
        }
    }

    /// Reads name and state; returns the thread's age.
    fn read_name(&mut self, reader: &mut Reader, pid: u32, tid: u32) -> Option<Duration> {
        let stat = stat::parse(reader.path_one(&format!("/proc/{pid}/task/{tid}/stat")).ok()?)?;
        self.name = String::from_utf8_lossy(stat.name).into();
        self.is_blocked = stat.state == b'D';
        Some(stat.age(Units::of_this_kernel().tick_seconds, since_boot()))
    }

    fn end(&mut self, sink: &Sink) {
        let now = Instant::now();
        self.cpu.end(sink, now);
        self.wait.end(sink, now);
        if let Some(hot) = &mut self.hot {
            hot.switches.iter_mut().for_each(|rate| rate.end(sink, now));
            hot.cpus_allowed.end(sink, now);
        }
    }
}

/// From when a new thread's CPU time counts: its birth, or the previous pass if that overlooked it,
/// because the time before has been reported already. A thread's CPU time cannot exceed the elapsed
/// time.
fn since_when(now: Instant, born_at: Instant, before: Instant, on_cpu_ns: u64) -> Instant {
    let ran_since = now.checked_sub(Duration::from_nanos(on_cpu_ns)).unwrap_or(now);
    born_at.max(before).min(ran_since)
}

/// Time since boot including suspend, to which thread start times relate.
fn since_boot() -> Duration {
    clock(rustix::time::ClockId::Boottime)
}

/// CPU time of all threads of a process, including ended ones; nanoseconds. `None` if it cannot be
/// read.
fn process_clock_ns(pid: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: the pointer is to a local that outlives the call.
    if unsafe { libc::clock_getcpuclockid(i32::try_from(pid).ok()?, &raw mut clock) } != 0 {
        return None;
    }
    u64::try_from(read_clock(clock)?.as_nanos()).ok()
}

/// A number formatted without allocation.
struct Digits {
    bytes: [u8; 10],
    from: usize,
}

impl Digits {
    fn of(mut number: u32) -> Self {
        let (mut bytes, mut from) = ([b'0'; 10], 10);
        while from > 0 {
            from -= 1;
            if let Some(digit) = bytes.get_mut(from) {
                *digit = b'0' + (number % 10) as u8;
            }
            number /= 10;
            if number == 0 {
                break;
            }
        }
        Self { bytes, from }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(self.bytes.get(self.from..).unwrap_or_default()).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
