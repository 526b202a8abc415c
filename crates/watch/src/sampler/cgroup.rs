//! The control groups of watched processes: CPU and quota, memory, tasks, I/O; cgroup v1, v2 and
//! mixed.

use std::cmp::Reverse;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use throng_observation::host::Culprit;
use throng_observation::host::catalogue::{self as metric, Metric};

use super::files::{ReadFailures, Reader};
use super::machine::PressureFiles;
use super::meter::{Meter, Rate, SeriesSpec, Sink};
use super::units::Units;
use crate::proc::cgroup_files::{self, CpuStat};
use crate::proc::{cgroup, mountinfo, scan};

/// How often the limits of ancestor groups are read.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Maximum number of ancestors searched: of processes for visible mounts, and of groups for limits.
const ANCESTORS_MAX: usize = 16;

/// A monitored control group.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// Its path, the label `cgroup`.
    pub(crate) path: String,
    files: Files,
    meters: Box<Meters>,
    /// When the ancestors were read, and whether one has a tighter quota, which is then reported
    /// there.
    checked_at: Option<Instant>,
    has_ancestor_quota: bool,
}

#[derive(Debug)]
struct Files {
    /// `/proc/P/cgroup` of the process by which the files were found.
    membership: Vec<u8>,
    cpu: Option<Cpu>,
    memory: Option<Memory>,
    pids: Option<Pids>,
    io: Option<(File, bool)>,
    pressure: Option<PressureFiles>,
}

#[derive(Debug)]
struct Cpu {
    stat: File,
    folder: PathBuf,
    /// Version 1 has usage in the cpuacct hierarchy: nanoseconds, and ticks by mode.
    usage: Option<File>,
    modes: Option<File>,
    is_v2: bool,
}

#[derive(Debug)]
struct Memory {
    usage: File,
    limit: PathBuf,
    hits: Option<File>,
    oom: Option<File>,
    is_v2: bool,
}

#[derive(Debug)]
struct Pids {
    current: File,
    max: PathBuf,
    events: Option<File>,
}

#[derive(Debug, Default)]
struct Meters {
    cpu: [Rate; 3],
    quota: Meter,
    throttled: Rate,
    throttled_periods: Meter,
    before: Option<(u64, u64)>,
    memory: Meter,
    hits: Rate,
    ooms: Rate,
    oom_kills: Rate,
    last: MemoryState,
    before_last: MemoryState,
    pids: Meter,
    pids_hits: Rate,
    io: [Rate; 2],
}

/// What a pass read of a group's memory.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryState {
    used_bytes: u64,
    limit_bytes: Option<u64>,
    /// Processes killed so far; `None` before the first pass.
    kills: Option<u64>,
    /// How often its limit left no memory so far; `None` where the kernel does not count it
    /// (version 1).
    ooms: Option<u64>,
}

const PRESSURE: [(&str, [&Metric; 2]); 3] = [
    ("cpu", [&metric::CGROUP_PRESSURE_CPU_SOME, &metric::CGROUP_PRESSURE_CPU_FULL]),
    ("memory", [&metric::CGROUP_PRESSURE_MEMORY_SOME, &metric::CGROUP_PRESSURE_MEMORY_FULL]),
    ("io", [&metric::CGROUP_PRESSURE_IO_SOME, &metric::CGROUP_PRESSURE_IO_FULL]),
];

/// Who killed a process of the group `path` for lack of memory; `None` if the kernel has counted no
/// kill there of late. It counts kills in the group of the victim and above, and a limit that was
/// hit in the group that has it and above: of the groups from the victim's upward the first that
/// counts is the one without memory. Where none does it was the host.
pub(crate) fn killer(groups: &[Cgroup], path: &str, reader: &mut Reader) -> Option<Culprit> {
    let own = groups.iter().find(|group| group.path == path)?;
    let used_bytes = own.used_before(reader, b"oom_kill", |pass| pass.kills)?;
    let is_above = |group: &&Cgroup| Path::new(path).starts_with(&group.path);
    let mut upward: Vec<&Cgroup> = groups.iter().filter(is_above).collect();
    upward.sort_by_key(|group| Reverse(group.path.len()));
    let full = if own.meters.last.ooms.is_some() {
        let used = |group: &Cgroup, reader: &mut Reader| {
            group.used_before(reader, b"oom", |pass| pass.ooms)
        };
        upward.into_iter().find_map(|group| Some((group, used(group, reader)?)))
    } else {
        // Version 1 does not say which: the tightest limit, as that of a slice around its services.
        let limited = upward.into_iter().filter(|group| group.meters.last.limit_bytes.is_some());
        limited.min_by_key(|group| group.meters.last.limit_bytes).map(|group| (group, used_bytes))
    };
    let limit =
        |(group, used): (&Cgroup, u64)| (group.path.clone(), group.meters.last.limit_bytes, used);
    let (group, limit_bytes, used_bytes) = full.map_or((own.path.clone(), None, used_bytes), limit);
    Some(Culprit::OutOfMemory { group, limit_bytes, used_bytes })
}

/// The group of a process: that of its cpu controller, else of memory, of pids, or of any. The root
/// of all hierarchies is the machine, which is read separately; in a container it is the
/// container's group.
pub(crate) fn of(reader: &mut Reader, pid: u32) -> Option<String> {
    let text = reader.path(&format!("/proc/{pid}/cgroup")).ok()?;
    let paths = ["cpu", "memory", "pids", ""]
        .map(|controller| cgroup::path_of(text, controller).map(|m| m.path));
    let below_root = paths.iter().flatten().find(|path| **path != "/");
    let is_container = || Path::new("/sys/fs/cgroup/cpu.max").exists();
    below_root.copied().or_else(|| is_container().then_some("/")).map(str::to_owned)
}

impl Cgroup {
    /// Opens the group of `pid`.
    pub(crate) fn open(
        pid: u32,
        path: String,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
    ) -> Self {
        Self::of_files(Files::open(pid, &path, sink, reader, failures), path)
    }

    fn of_files(files: Files, path: String) -> Self {
        Self { path, files, meters: Box::default(), checked_at: None, has_ancestor_quota: false }
    }

    /// The ancestors with tighter limits than its own; empty when the check is not due.
    pub(crate) fn tighter_ancestors(&mut self, reader: &mut Reader) -> Vec<String> {
        if self.checked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Vec::new();
        }
        self.checked_at = Some(Instant::now());
        let ancestor =
            TighterLimits::find(&self.files.membership, &Mounts::read(reader), &self.path, reader);
        self.has_ancestor_quota = ancestor.cpu.is_some();
        let mut paths: Vec<String> = ancestor.cpu.into_iter().chain(ancestor.memory).collect();
        paths.dedup();
        paths
    }

    /// What the group used before its count of `key` last grew, bytes; `None` if it has not since
    /// the pass before the last one. The kernel counts a kill before the process has ended: a pass
    /// may read the count and still find the process.
    fn used_before(
        &self,
        reader: &mut Reader,
        key: &[u8],
        count: impl Fn(&MemoryState) -> Option<u64>,
    ) -> Option<u64> {
        let file = self.files.memory.as_ref()?.oom.as_ref()?;
        let now = scan::find(reader.one(file).ok()?, key)?;
        let passes = [self.meters.last, self.meters.before_last];
        let grew = passes.iter().find(|&pass| count(pass).is_some_and(|then| now > then))?;
        Some(grew.used_bytes)
    }

    /// Reopens the files if `pid` has changed its groups: with version 1 a process joins one
    /// hierarchy after the other.
    pub(crate) fn follow(
        &mut self,
        pid: u32,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
    ) {
        let membership = reader.path(&format!("/proc/{pid}/cgroup"));
        if membership.is_ok_and(|text| text != self.files.membership) {
            self.files = Files::open(pid, &self.path, sink, reader, failures);
            self.checked_at = None;
        }
    }
}

impl Files {
    /// Opens the files of the group, as far as the kernel has them.
    fn open(
        pid: u32,
        path: &str,
        sink: &Sink,
        reader: &mut Reader,
        failures: &mut ReadFailures,
    ) -> Self {
        let groups =
            reader.path(&format!("/proc/{pid}/cgroup")).map(<[u8]>::to_vec).unwrap_or_default();
        let mounts = Mounts::read(reader);
        Self::find(groups, &mounts, path, sink, failures)
    }

    /// Opens the files of the group `path` of a process whose memberships are `groups`, located by
    /// `mounts`.
    fn find(
        groups: Vec<u8>,
        mounts: &Mounts,
        path: &str,
        sink: &Sink,
        failures: &mut ReadFailures,
    ) -> Self {
        // With version 1 a process may be in a different group of each hierarchy; one path names a
        // group.
        let folder = |controller: &str| folder(&groups, mounts, controller, path);
        let v2 = folder("").filter(|(path, is_v2)| *is_v2 && path.join("cgroup.procs").exists());
        let open = |path: PathBuf| File::open(path).ok();
        let cpu = folder("cpu").and_then(|(cpu, is_v2)| {
            let accounts = folder("cpuacct").filter(|(_, is_v2)| !is_v2).map(|(path, _)| path);
            Some(Cpu {
                stat: open(cpu.join("cpu.stat"))?,
                usage: accounts.as_ref().and_then(|path| open(path.join("cpuacct.usage"))),
                modes: accounts.as_ref().and_then(|path| open(path.join("cpuacct.stat"))),
                folder: cpu,
                is_v2,
            })
        });
        let memory = folder("memory").and_then(|(path, is_v2)| {
            let (usage, hits, oom) = if is_v2 {
                ("memory.current", "memory.events", "memory.events")
            } else {
                ("memory.usage_in_bytes", "memory.failcnt", "memory.oom_control")
            };
            Some(Memory {
                usage: open(path.join(usage))?,
                limit: path.join(memory_limit(is_v2)),
                hits: open(path.join(hits)),
                oom: open(path.join(oom)),
                is_v2,
            })
        });
        let pids = folder("pids").and_then(|(path, _)| {
            let (current, events) =
                (open(path.join("pids.current"))?, open(path.join("pids.events")));
            Some(Pids { current, max: path.join("pids.max"), events })
        });
        let io = folder(if v2.is_some() && folder("blkio").is_none_or(|(_, is_v2)| is_v2) {
            "io"
        } else {
            "blkio"
        });
        let io = io.and_then(|(path, is_v2)| {
            let name = if is_v2 { "io.stat" } else { "blkio.throttle.io_service_bytes" };
            Some((open(path.join(name))?, is_v2))
        });
        let pressure =
            v2.filter(|(path, _)| path.join("cpu.pressure").exists()).map(|(path, _)| {
                let before = format!("{}/", path.display());
                PressureFiles::open(sink, failures, &before, ".pressure", &PRESSURE)
            });
        Self { membership: groups, cpu, memory, pids, io, pressure }
    }
}

impl Cgroup {
    /// Reads the group; missing files are skipped.
    pub(crate) fn read(&mut self, sink: &Sink, reader: &mut Reader, units: &Units) {
        let labels = [("cgroup", &*self.path)];
        let meters = &mut *self.meters;
        if let Some(cpu) = &self.files.cpu {
            cpu.read(sink, reader, units, meters, &labels, !self.has_ancestor_quota);
        }
        if let Some(memory) = &self.files.memory {
            memory.read(sink, reader, meters, &labels);
        }
        if let Some(pids) = &self.files.pids {
            pids.read(sink, reader, meters, &labels);
        }
        if let Some((file, is_v2)) = &self.files.io
            && let Ok(text) = reader.all(file)
        {
            let (read, written) =
                if *is_v2 { cgroup_files::io_stat(text) } else { cgroup_files::blkio_bytes(text) };
            let [reads, writes] = &mut meters.io;
            let now = Instant::now();
            reads.put(sink, now, read, 1.0, &SeriesSpec::new(&metric::CGROUP_READ_BYTES, &labels));
            let spec = SeriesSpec::new(&metric::CGROUP_WRITE_BYTES, &labels);
            writes.put(sink, now, written, 1.0, &spec);
        }
        if let Some(pressure) = &mut self.files.pressure {
            pressure.read(sink, reader, &labels);
        }
    }
}

impl Cpu {
    fn read(
        &self,
        sink: &Sink,
        reader: &mut Reader,
        units: &Units,
        meters: &mut Meters,
        labels: &[(&str, &str)],
        is_tightest: bool,
    ) {
        let quota = quota(&self.folder, self.is_v2, reader).filter(|_| is_tightest);
        let Ok(text) = reader.one(&self.stat) else { return };
        let now = Instant::now();
        let CpuStat { usage_us, user_us, system_us, periods, throttled_periods, throttled_us } =
            cgroup_files::cpu_stat(text);
        let spec = |kind| SeriesSpec::new(kind, labels).limit(quota);
        let kinds = [&metric::CGROUP_CPU, &metric::CGROUP_CPU_USER, &metric::CGROUP_CPU_SYSTEM];
        for ((rate, us), kind) in
            meters.cpu.iter_mut().zip([usage_us, user_us, system_us]).zip(kinds)
        {
            if let Some(us) = us {
                rate.put(sink, now, us, 1e-6, &spec(kind));
            }
        }
        if let Some(cores) = quota {
            meters.quota.put(sink, now, cores, &SeriesSpec::new(&metric::CGROUP_CPU_QUOTA, labels));
        }
        if let Some(us) = throttled_us {
            let spec = SeriesSpec::new(&metric::CGROUP_THROTTLED, labels);
            meters.throttled.put(sink, now, us, 1e-6, &spec);
        }
        if let (Some(periods), Some(throttled)) = (periods, throttled_periods)
            && let Some((periods_before, throttled_before)) =
                meters.before.replace((periods, throttled))
        {
            let passed = periods.saturating_sub(periods_before);
            let held = throttled.saturating_sub(throttled_before);
            let share = if passed == 0 { 0.0 } else { held as f64 / passed as f64 };
            let spec = SeriesSpec::new(&metric::CGROUP_THROTTLED_PERIODS, labels).limit(Some(1.0));
            meters.throttled_periods.put(sink, now, share, &spec);
        }
        let [all, user, system] = &mut meters.cpu;
        if let Some(ns) = self.usage.as_ref().and_then(|file| level(reader, file)) {
            all.put(sink, now, ns, 1e-9, &spec(&metric::CGROUP_CPU));
        }
        if let Some(Ok(text)) = self.modes.as_ref().map(|file| reader.one(file)) {
            let modes = [
                (user, &b"user"[..], &metric::CGROUP_CPU_USER),
                (system, b"system", &metric::CGROUP_CPU_SYSTEM),
            ];
            for (rate, name, kind) in modes {
                if let Some(ticks) = scan::find(text, name) {
                    rate.put(sink, now, ticks, units.tick_seconds, &spec(kind));
                }
            }
        }
    }
}

/// The CPU quota of a group, in cores.
fn quota(folder: &Path, is_v2: bool, reader: &mut Reader) -> Option<f64> {
    let mut file =
        |name: &str| reader.path(&folder.join(name).to_string_lossy()).map(<[u8]>::to_vec).ok();
    if is_v2 {
        cgroup_files::cpu_max(&file("cpu.max")?)
    } else {
        cgroup_files::cfs_quota(&file("cpu.cfs_quota_us")?, &file("cpu.cfs_period_us")?)
    }
}

/// The ancestor groups with the tightest limits, if tighter than the group's own: a pod limits its
/// containers, a slice its services.
#[derive(Debug, Default, PartialEq, Eq)]
struct TighterLimits {
    cpu: Option<String>,
    memory: Option<String>,
}

impl TighterLimits {
    fn find(groups: &[u8], mounts: &Mounts, path: &str, reader: &mut Reader) -> Self {
        let of_cpu = |path: &str, reader: &mut Reader| {
            let (folder, is_v2) = folder(groups, mounts, "cpu", path)?;
            quota(&folder, is_v2, reader)
        };
        let of_memory = |path: &str, reader: &mut Reader| {
            let (folder, is_v2) = folder(groups, mounts, "memory", path)?;
            let limit = folder.join(memory_limit(is_v2));
            Some(reader.path(&limit.to_string_lossy()).ok().and_then(cgroup_files::level)? as f64)
        };
        Self { cpu: tightest(path, reader, of_cpu), memory: tightest(path, reader, of_memory) }
    }
}

/// The ancestor of `path` with the lowest limit, if lower than that of `path`.
fn tightest(
    path: &str,
    reader: &mut Reader,
    limit: impl Fn(&str, &mut Reader) -> Option<f64>,
) -> Option<String> {
    let mut least = limit(path, reader).unwrap_or(f64::INFINITY);
    let mut found = None;
    for ancestor in Path::new(path).ancestors().skip(1).filter_map(Path::to_str).take(ANCESTORS_MAX)
    {
        if let Some(limit) = limit(ancestor, reader).filter(|limit| *limit < least) {
            (least, found) = (limit, Some(ancestor.to_owned()));
        }
    }
    found
}

/// The name of a group's memory limit file.
fn memory_limit(is_v2: bool) -> &'static str {
    if is_v2 { "memory.max" } else { "memory.limit_in_bytes" }
}

impl Pids {
    fn read(&self, sink: &Sink, reader: &mut Reader, meters: &mut Meters, labels: &[(&str, &str)]) {
        let now = Instant::now();
        if let Some(count) = level(reader, &self.current) {
            let max = reader.path(&self.max.to_string_lossy()).ok().and_then(cgroup_files::level);
            let spec =
                SeriesSpec::new(&metric::CGROUP_PIDS, labels).limit(max.map(|max| max as f64));
            meters.pids.put(sink, now, count as f64, &spec);
        }
        let events = self.events.as_ref().and_then(|file| reader.one(file).ok());
        if let Some(hits) = events.and_then(|text| scan::find(text, b"max")) {
            let spec = SeriesSpec::new(&metric::CGROUP_PIDS_LIMIT_HITS, labels);
            meters.pids_hits.put(sink, now, hits, 1.0, &spec);
        }
    }
}

impl Memory {
    fn read(&self, sink: &Sink, reader: &mut Reader, meters: &mut Meters, labels: &[(&str, &str)]) {
        let limit = reader.path(&self.limit.to_string_lossy()).ok().and_then(cgroup_files::level);
        let now = Instant::now();
        meters.before_last = meters.last;
        meters.last.limit_bytes = limit;
        if let Some(bytes) = level(reader, &self.usage) {
            meters.last.used_bytes = bytes;
            let spec = SeriesSpec::new(&metric::CGROUP_MEMORY, labels)
                .limit(limit.map(|limit| limit as f64));
            meters.memory.put(sink, now, bytes as f64, &spec);
        }
        if let Some(Ok(text)) = self.hits.as_ref().map(|file| reader.one(file)) {
            let hits =
                if self.is_v2 { scan::find(text, b"max") } else { cgroup_files::level(text) };
            if let Some(hits) = hits {
                let spec = SeriesSpec::new(&metric::CGROUP_MEMORY_LIMIT_HITS, labels);
                meters.hits.put(sink, now, hits, 1.0, &spec);
            }
        }
        if let Some(Ok(text)) = self.oom.as_ref().map(|file| reader.one(file)) {
            let kinds = [
                (&mut meters.ooms, &b"oom"[..], &metric::CGROUP_MEMORY_OOMS),
                (&mut meters.oom_kills, b"oom_kill", &metric::CGROUP_MEMORY_OOM_KILLS),
            ];
            for (rate, name, kind) in kinds {
                if let Some(count) = scan::find(text, name) {
                    rate.put(sink, now, count, 1.0, &SeriesSpec::new(kind, labels));
                }
            }
            meters.last.kills = scan::find(text, b"oom_kill");
            meters.last.ooms = scan::find(text, b"oom");
        }
    }
}

fn level(reader: &mut Reader, file: &File) -> Option<u64> {
    cgroup_files::level(reader.one(file).ok()?)
}

/// The control group mounts that a process sees.
#[derive(Debug, Default)]
struct Mounts {
    /// Its `/proc/P/mountinfo`.
    text: Vec<u8>,
    /// The path of its root directory; empty for this process.
    root: String,
}

impl Mounts {
    /// The mounts of this process or, if it has none, of its nearest ancestor: `ip netns exec`
    /// mounts a `/sys` without them.
    fn read(reader: &mut Reader) -> Self {
        let mut pid = std::process::id();
        for generation in 0..ANCESTORS_MAX {
            let root = if generation == 0 { String::new() } else { format!("/proc/{pid}/root") };
            let text = reader
                .path(&format!("/proc/{pid}/mountinfo"))
                .map(<[u8]>::to_vec)
                .unwrap_or_default();
            let is_there = |mount: mountinfo::CgroupMount<'_>| {
                Path::new(&format!("{root}{}", mount.point)).exists()
            };
            if mountinfo::parse(&text).any(is_there) {
                return Self { text, root };
            }
            let status = reader.path(&format!("/proc/{pid}/status"));
            let parent = status.ok().and_then(|text| scan::find(text, b"PPid"));
            match parent.and_then(|parent| u32::try_from(parent).ok()) {
                Some(parent) if parent > 0 => pid = parent,
                _ => break,
            }
        }
        Self::default()
    }
}

/// The directory of a process's group, or of an ancestor, for `controller`, and whether it is
/// version 2. A container sees its own part of the hierarchy as the mount's root, and nothing above
/// it.
fn folder(groups: &[u8], mounts: &Mounts, controller: &str, path: &str) -> Option<(PathBuf, bool)> {
    let of_v2 = || cgroup::parse(groups).find(|membership| membership.controllers.is_empty());
    let membership =
        if controller.is_empty() { of_v2() } else { cgroup::path_of(groups, controller) }?;
    if !Path::new(membership.path).starts_with(path) {
        return None;
    }
    let is_v2 = membership.controllers.is_empty();
    let mount = mountinfo::parse(&mounts.text).find(|mount| {
        mount.is_v2 == is_v2
            && (is_v2 || mount.options.split(',').any(|option| option == controller))
    })?;
    let root = mount.root.trim_end_matches('/');
    let is_below = |path: &str| Path::new(path).starts_with(mount.root);
    if is_below(membership.path) && !is_below(path) {
        return None;
    }
    let below = path.strip_prefix(root).filter(|_| is_below(path)).unwrap_or(path);
    let point = format!("{}{}", mounts.root, mount.point);
    let folder = Path::new(&point).join(below.trim_start_matches('/'));
    // The path comes from the kernel, but `..` in it (a group outside the container) cannot be
    // resolved.
    (!below.contains("..") && !mount.point.contains('\\')).then_some((folder, is_v2))
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
