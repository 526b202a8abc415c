//! A watched process: CPU, memory, faults, I/O, descriptors.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use throng_observation::host::{Culprit, HowEnded, ProcessEnd, ProcessEvent, catalogue as metric};

use super::end::EndWatch;
use super::files::{HELP_RIGHTS, ReadFailures, Reader};
use super::meter::{Meter, Rate, SeriesSpec, Sink};
use super::threads::{DirBuffer, Threads, is_gone};
use super::units::Units;
use crate::discovery::{TargetProcess, other_thread};
use crate::proc::stat::{self, Stat};
use crate::proc::{io as proc_io, limits, statm};

/// How often limits are read, which can change, and how often descriptors are counted where that is
/// expensive.
const SLOW_EVERY: Duration = Duration::from_secs(5);

/// A process may execute another program, or be moved to another control group, soon after its
/// start.
const SETTLES: Duration = Duration::from_secs(30);
/// Namespace and control group of an older process are checked once in this many passes.
const LOOK_PASSES: u32 = 16;

/// Why a process is not read any more.
#[derive(Debug)]
pub(crate) enum Gone {
    /// It ended, or executed another program.
    Ended(HowEnded),
    /// Its files cannot be read, but it may live.
    Unreadable(io::Error),
}

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        if is_gone(&error) { Self::Ended(HowEnded::Unknown) } else { Self::Unreadable(error) }
    }
}

/// A watched process with its open files and meters.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: Box<str>,
    pub(crate) threads: Threads,
    /// Whether its descendants are watched as well.
    pub(crate) with_descendants: bool,
    /// Index of its target.
    pub(crate) target: usize,
    /// The inode of its network namespace, once looked up; 0 if it may not be read.
    pub(crate) namespace: Option<u64>,
    /// The path of its control group, once looked up.
    pub(crate) cgroup: Option<Box<str>>,
    /// Who ended it, as far as was known when its end was first seen.
    pub(crate) ended_by: OnceCell<Option<Culprit>>,
    started_ticks: u64,
    opened_at: Instant,
    end_watch: EndWatch,
    stat: File,
    statm: File,
    io: Option<File>,
    fds_path: String,
    fd_limit: Option<u64>,
    slow_at: Option<Instant>,
    meters: Box<Meters>,
}

#[derive(Debug, Default)]
struct Meters {
    cpu: [Rate; 3],
    threads: Meter,
    blocked: Meter,
    stopped: Meter,
    rss: Meter,
    faults: [Rate; 2],
    blkio: Rate,
    io: [Rate; 4],
    fds: Meter,
}

impl Process {
    /// Opens a process; files that cannot be read are reported and left out.
    pub(crate) fn open(
        found: TargetProcess,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
    ) -> io::Result<Self> {
        let TargetProcess { pid, with_descendants, target } = found;
        let file = File::open(format!("/proc/{pid}/stat"))?;
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat has an unknown format");
        let stat = stat::parse(reader.one(&file)?).ok_or_else(invalid)?;
        let (name, started_ticks) =
            (String::from_utf8_lossy(stat.name).into_owned(), stat.started_ticks);
        let io = failures.open(sink, &format!("/proc/{pid}/io"), HELP_RIGHTS);
        Ok(Self {
            pid,
            threads: Threads::open(pid, &name)?,
            name: name.into(),
            with_descendants,
            target,
            namespace: None,
            cgroup: None,
            ended_by: OnceCell::new(),
            started_ticks,
            opened_at: Instant::now(),
            end_watch: EndWatch::open(pid),
            stat: file,
            statm: File::open(format!("/proc/{pid}/statm"))?,
            io,
            fds_path: format!("/proc/{pid}/fd"),
            fd_limit: None,
            slow_at: None,
            meters: Box::default(),
        })
    }

    /// Reads the process and all its threads.
    pub(crate) fn read(
        &mut self,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
        dir: &mut DirBuffer,
        units: &Units,
        thread_budget: &mut usize,
    ) -> Result<(), Gone> {
        let threads = self.read_stat(sink, reader, units)?;
        self.threads.read_all(sink, reader, failures, dir, thread_budget, threads)?;
        let now = Instant::now();
        let pid = self.pid.to_string();
        let labels = [("process", &*self.name), ("pid", &*pid)];
        let meters = &mut *self.meters;
        let blocked = self.threads.blocked() as f64;
        let spec = SeriesSpec::new(&metric::PROCESS_THREADS_BLOCKED, &labels);
        meters.blocked.put(sink, now, blocked, &spec);
        if let Some(pages) = statm::resident_pages(reader.one(&self.statm)?) {
            let bytes = pages as f64 * units.page_bytes as f64;
            meters.rss.put(sink, now, bytes, &SeriesSpec::new(&metric::PROCESS_RSS, &labels));
        }
        if let Some(file) = &self.io {
            match reader.one(file) {
                Ok(text) => read_io(sink, now, text, &mut meters.io, &labels),
                Err(error) => {
                    failures.report(
                        sink,
                        &format!("/proc/{}/io", self.pid),
                        &error.to_string(),
                        HELP_RIGHTS,
                    );
                    self.io = None;
                }
            }
        }
        self.read_descriptors(sink, reader, failures);
        Ok(())
    }

    /// Reads `/proc/P/stat`; returns the number of threads.
    fn read_stat(&mut self, sink: &Sink, reader: &mut Reader, units: &Units) -> Result<u64, Gone> {
        let text = reader.one(&self.stat)?;
        let now = Instant::now();
        let Some(stat) = stat::parse(text) else { return Ok(0) };
        if let Some(how) = self.end_of(&stat) {
            return Err(Gone::Ended(how));
        }
        let (threads, has_lost_main_thread) = (stat.threads, stat.has_lost_main_thread());
        let pid = self.pid.to_string();
        let labels = [("process", &*self.name), ("pid", &*pid)];
        let spec = |metric| SeriesSpec::new(metric, &labels);
        let meters = &mut *self.meters;
        let tick = units.tick_seconds;
        let ticks =
            [stat.user_ticks.saturating_add(stat.system_ticks), stat.user_ticks, stat.system_ticks];
        let kinds = [&metric::PROCESS_CPU, &metric::PROCESS_CPU_USER, &metric::PROCESS_CPU_SYSTEM];
        for ((rate, ticks), kind) in meters.cpu.iter_mut().zip(ticks).zip(kinds) {
            rate.put(sink, now, ticks, tick, &spec(kind));
        }
        let [minor, major] = &mut meters.faults;
        minor.put(sink, now, stat.faults_minor, 1.0, &spec(&metric::PROCESS_FAULTS_MINOR));
        major.put(sink, now, stat.faults_major, 1.0, &spec(&metric::PROCESS_FAULTS_MAJOR));
        meters.blkio.put(sink, now, stat.blkio_ticks, tick, &spec(&metric::PROCESS_BLKIO_WAIT));
        meters.threads.put(sink, now, stat.threads as f64, &spec(&metric::PROCESS_THREADS));
        // Stopped by SIGSTOP or job control (T), or by a debugger (t).
        let is_stopped = matches!(stat.state, b'T' | b't');
        meters.stopped.put(
            sink,
            now,
            f64::from(u8::from(is_stopped)),
            &spec(&metric::PROCESS_STOPPED),
        );
        if has_lost_main_thread {
            self.read_by_another_thread();
        }
        Ok(threads)
    }

    /// Reads memory and descriptors by a thread that goes on.
    fn read_by_another_thread(&mut self) {
        let Some(folder) = other_thread(self.pid) else { return };
        if let Ok(statm) = File::open(format!("{folder}/statm")) {
            self.statm = statm;
        }
        self.fds_path = format!("{folder}/fd");
    }

    /// How it ended, if `stat` says so.
    fn end_of(&self, stat: &Stat<'_>) -> Option<HowEnded> {
        if stat.is_over() {
            return Some(stat.how_ended(self.is_visible()));
        }
        // A process found between its fork and its exec, or as `ip netns exec`, gets its name now.
        if self.opened_at.elapsed() < SETTLES && stat.name != self.name.as_bytes() {
            return Some(HowEnded::Replaced);
        }
        // Its PID belongs to another process.
        (stat.started_ticks != self.started_ticks).then_some(HowEnded::Unknown)
    }

    /// Whether the kernel shows this process's exit status to the watcher.
    fn is_visible(&self) -> bool {
        let own = rustix::process::geteuid();
        own.is_root() || self.stat.metadata().is_ok_and(|file| file.uid() == own.as_raw())
    }

    /// How it ended, if it has; nothing else is read.
    pub(crate) fn ended(&self, reader: &mut Reader) -> Option<HowEnded> {
        match reader.one(&self.stat) {
            Ok(text) => stat::parse(text).and_then(|stat| self.end_of(&stat)),
            Err(error) => is_gone(&error).then_some(HowEnded::Unknown),
        }
    }

    /// Whether it has ended and its parent has not reaped it.
    pub(crate) fn is_zombie(&self, reader: &mut Reader) -> bool {
        let text = reader.one(&self.stat).ok();
        text.and_then(stat::parse).is_some_and(|stat| stat.is_over())
    }

    /// How it ended, where `how` does not tell: its parent may have reaped it.
    pub(crate) fn how_ended(&self, how: HowEnded) -> HowEnded {
        if how == HowEnded::Unknown { self.end_watch.how() } else { how }
    }

    /// An event about it.
    pub(crate) fn event(&self, end: Option<ProcessEnd>) -> ProcessEvent {
        let target = u32::try_from(self.target).unwrap_or(u32::MAX);
        ProcessEvent { target, name: self.name.to_string(), pid: self.pid, end }
    }

    fn read_descriptors(&mut self, sink: &Sink, reader: &mut Reader, failures: &mut ReadFailures) {
        let now = Instant::now();
        let is_slow_due = self.slow_at.is_none_or(|at| now >= at);
        // Since Linux 6.2 the directory's size is the number of entries; before, it is 0 and they
        // must be counted.
        let size = match std::fs::metadata(&self.fds_path) {
            Ok(metadata) => metadata.size(),
            Err(_) => return,
        };
        let mut count = (size > 0).then_some(size);
        if is_slow_due {
            self.slow_at = Some(now + SLOW_EVERY);
            if let Ok(text) = reader.path(&format!("/proc/{}/limits", self.pid)) {
                self.fd_limit = limits::open_files(text);
            }
            if count.is_none() {
                match std::fs::read_dir(&self.fds_path) {
                    Ok(entries) => count = Some(entries.count() as u64),
                    Err(error) => {
                        failures.report(sink, &self.fds_path, &error.to_string(), HELP_RIGHTS);
                    }
                }
            }
        }
        if let Some(count) = count {
            let pid = self.pid.to_string();
            let labels = [("process", &*self.name), ("pid", &*pid)];
            let spec = SeriesSpec::new(&metric::PROCESS_FDS, &labels)
                .limit(self.fd_limit.map(|limit| limit as f64));
            self.meters.fds.put(sink, now, count as f64, &spec);
        }
    }

    /// Whether to check its namespace and control group in this pass.
    pub(crate) fn is_place_due(&self, pass: u32) -> bool {
        self.namespace.is_none()
            || self.opened_at.elapsed() < SETTLES
            || self.pid.wrapping_add(pass).is_multiple_of(LOOK_PASSES)
    }

    /// Ends all series of the process; returns how many threads were open.
    pub(crate) fn end(&mut self, sink: &Sink) -> usize {
        let now = Instant::now();
        let Meters { cpu, threads, blocked, stopped, rss, faults, blkio, io, fds } =
            &mut *self.meters;
        cpu.iter_mut().chain(faults).chain(io).chain([blkio]).for_each(|rate| rate.end(sink, now));
        [threads, blocked, stopped, rss, fds].into_iter().for_each(|meter| meter.end(sink, now));
        self.threads.end(sink)
    }
}

fn read_io(sink: &Sink, now: Instant, text: &[u8], rates: &mut [Rate; 4], labels: &[(&str, &str)]) {
    let Some(io) = proc_io::parse(text) else { return };
    let figures = [
        (io.read_bytes, &metric::PROCESS_READ_BYTES),
        (io.write_bytes, &metric::PROCESS_WRITE_BYTES),
        (io.read_chars, &metric::PROCESS_READ_CHARS),
        (io.write_chars, &metric::PROCESS_WRITE_CHARS),
    ];
    for (rate, (count, kind)) in rates.iter_mut().zip(figures) {
        rate.put(sink, now, count, 1.0, &SeriesSpec::new(kind, labels));
    }
}
