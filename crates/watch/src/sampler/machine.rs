//! The machine as a whole: CPU by mode and core, pressure (PSI), memory, disks.

use std::collections::HashMap;
use std::fs::File;
use std::time::Instant;

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::{CpuTimes, MODES};

use super::files::{ReadFailures, Reader};
use super::meter::{Meter, Rate, SeriesSpec, Sink};
use crate::proc::cpu_stat::{self, Line};
use crate::proc::diskstats::{self, Disk, SECTOR_BYTES};
use crate::proc::{meminfo, pressure, scan, softirqs, vmstat};

/// Maximum number of block devices.
const DISKS_MAX: usize = 256;
const CORES_MAX: usize = 4096;

const HOST_MODES: [&Metric; MODES] = [
    &metric::HOST_CPU_USER,
    &metric::HOST_CPU_NICE,
    &metric::HOST_CPU_SYSTEM,
    &metric::HOST_CPU_IDLE,
    &metric::HOST_CPU_IOWAIT,
    &metric::HOST_CPU_IRQ,
    &metric::HOST_CPU_SOFTIRQ,
    &metric::HOST_CPU_STEAL,
    &metric::HOST_CPU_GUEST,
    &metric::HOST_CPU_BUSY,
];
const CORE_MODES: [&Metric; MODES] = [
    &metric::CORE_USER,
    &metric::CORE_NICE,
    &metric::CORE_SYSTEM,
    &metric::CORE_IDLE,
    &metric::CORE_IOWAIT,
    &metric::CORE_IRQ,
    &metric::CORE_SOFTIRQ,
    &metric::CORE_STEAL,
    &metric::CORE_GUEST,
    &metric::CORE_BUSY,
];
/// Index of `busy`, the only mode that is written for each core in fast passes.
const BUSY: usize = MODES - 1;

/// The machine's kernel files and their meters.
#[derive(Debug)]
pub(crate) struct Machine {
    stat: Option<File>,
    diskstats: Option<File>,
    meminfo: Option<File>,
    vmstat: Option<File>,
    file_nr: Option<File>,
    softirqs: Option<File>,
    pressure: PressureFiles,
    cpus: Cpus,
    disks: HashMap<Box<[u8]>, DiskMeters>,
    memory: [Meter; 5],
    paging: [Rate; 7],
    files: Meter,
    net_rx: HashMap<u32, Rate>,
}

#[derive(Debug, Default)]
struct Cpus {
    all: Option<CpuTimes>,
    all_meters: [Meter; MODES],
    cores: HashMap<u32, Core>,
    switches: Rate,
    forks: Rate,
    running: Meter,
    blocked: Meter,
}

#[derive(Debug, Default)]
struct Core {
    /// Times of the last pass and of the last slow pass, because `busy` and the other modes are
    /// averaged over different times.
    fast: Option<CpuTimes>,
    slow: Option<CpuTimes>,
    meters: [Meter; MODES],
}

#[derive(Debug, Default)]
struct DiskMeters {
    rates: [Rate; 6],
    awaits: [Meter; 2],
    in_flight: Meter,
    before: Option<[u64; 4]>,
}

const HELP_KERNEL: &str = "the kernel was built without it";

impl Machine {
    pub(crate) fn open(sink: &Sink, failures: &mut ReadFailures) -> Self {
        let mut open = |path| failures.open(sink, path, HELP_KERNEL);
        Self {
            stat: open("/proc/stat"),
            diskstats: open("/proc/diskstats"),
            meminfo: open("/proc/meminfo"),
            vmstat: open("/proc/vmstat"),
            file_nr: open("/proc/sys/fs/file-nr"),
            softirqs: open("/proc/softirqs"),
            pressure: PressureFiles::open(sink, failures, "/proc/pressure/", "", &HOST_PRESSURE),
            cpus: Cpus::default(),
            disks: HashMap::new(),
            memory: Default::default(),
            paging: Default::default(),
            files: Meter::default(),
            net_rx: HashMap::new(),
        }
    }

    /// Reads the figures of this pass.
    pub(crate) fn read(&mut self, sink: &Sink, reader: &mut Reader, is_slow: bool) {
        if let Some(Ok(text)) = self.stat.as_ref().map(|file| reader.one(file)) {
            self.cpus.read(sink, text, is_slow);
        }
        self.pressure.read(sink, reader, &[]);
        if let Some(Ok(text)) = self.diskstats.as_ref().map(|file| reader.all(file)) {
            read_disks(&mut self.disks, sink, text);
        }
        if is_slow {
            self.read_slow(sink, reader);
        }
    }

    fn read_slow(&mut self, sink: &Sink, reader: &mut Reader) {
        if let Some(Ok(text)) = self.meminfo.as_ref().map(|file| reader.one(file)) {
            read_memory(&mut self.memory, sink, text);
        }
        if let Some(Ok(text)) = self.vmstat.as_ref().map(|file| reader.all(file)) {
            read_paging(&mut self.paging, sink, text);
        }
        if let Some(Ok(text)) = self.softirqs.as_ref().map(|file| reader.one(file)) {
            read_softirqs(&mut self.net_rx, sink, text);
        }
        if let Some(Ok(text)) = self.file_nr.as_ref().map(|file| reader.one(file)) {
            let mut fields = scan::fields(text);
            let (open, max) =
                (scan::next_number(&mut fields), fields.nth(1).and_then(scan::number));
            if let Some(open) = open {
                // Without a limit the kernel shows the largest signed number.
                let max = max.filter(|max| *max < 1 << 62).map(|max| max as f64);
                let spec = SeriesSpec::host(&metric::HOST_FILES).limit(max);
                self.files.put(sink, Instant::now(), open as f64, &spec);
            }
        }
    }
}

impl Cpus {
    fn read(&mut self, sink: &Sink, text: &[u8], is_slow: bool) {
        let now = Instant::now();
        let mut all = None;
        let mut online = 0_u32;
        for line in cpu_stat::parse(text) {
            match line {
                Line::All(times) => all = Some(times),
                Line::Core(cpu, times) => {
                    online += 1;
                    if self.cores.len() < CORES_MAX || self.cores.contains_key(&cpu) {
                        self.cores.entry(cpu).or_default().read(sink, now, cpu, times, is_slow);
                    }
                }
                Line::ContextSwitches(count) if is_slow => {
                    let spec = SeriesSpec::host(&metric::HOST_CONTEXT_SWITCHES);
                    self.switches.put(sink, now, count, 1.0, &spec);
                }
                Line::Forks(count) if is_slow => {
                    self.forks.put(sink, now, count, 1.0, &SeriesSpec::host(&metric::HOST_FORKS));
                }
                Line::Running(count) => {
                    let spec = SeriesSpec::host(&metric::HOST_PROCS_RUNNING);
                    self.running.put(sink, now, count as f64, &spec);
                }
                Line::Blocked(count) => {
                    let spec = SeriesSpec::host(&metric::HOST_PROCS_BLOCKED);
                    self.blocked.put(sink, now, count as f64, &spec);
                }
                Line::ContextSwitches(_) | Line::Forks(_) => {}
            }
        }
        let Some(times) = all else { return };
        let cores = f64::from(online.max(1));
        if let Some(shares) = self.all.replace(times).and_then(|before| times.since(&before)) {
            for ((meter, share), kind) in self.all_meters.iter_mut().zip(shares).zip(HOST_MODES) {
                meter.put(sink, now, share * cores, &SeriesSpec::host(kind).limit(Some(cores)));
            }
        }
    }
}

impl Core {
    fn read(&mut self, sink: &Sink, now: Instant, cpu: u32, times: CpuTimes, is_slow: bool) {
        let cpu = cpu.to_string();
        let labels = [("cpu", &*cpu)];
        let fast = self.fast.replace(times).and_then(|before| times.since(&before));
        if let (Some(shares), Some(meter)) = (fast, self.meters.get_mut(BUSY)) {
            let busy = shares.last().copied().unwrap_or(0.0);
            let spec = SeriesSpec::new(&metric::CORE_BUSY, &labels).limit(Some(1.0));
            meter.put(sink, now, busy, &spec);
        }
        if !is_slow {
            return;
        }
        if let Some(shares) = self.slow.replace(times).and_then(|before| times.since(&before)) {
            let modes = self.meters.iter_mut().zip(shares).zip(CORE_MODES).take(BUSY);
            for ((meter, share), kind) in modes {
                let spec = SeriesSpec::new(kind, &labels).limit(Some(1.0));
                meter.put_if_nonzero(sink, now, share, &spec);
            }
        }
    }
}

/// The PSI files of the host or of a control group.
#[derive(Debug)]
pub(crate) struct PressureFiles {
    files: Vec<(File, [&'static Metric; 2], [Rate; 2])>,
}

/// Resource, and the metrics for `some` and `full`.
pub(crate) type PressureTable = [(&'static str, [&'static Metric; 2])];

const HOST_PRESSURE: [(&str, [&Metric; 2]); 4] = [
    ("cpu", [&metric::HOST_PRESSURE_CPU_SOME, &metric::HOST_PRESSURE_CPU_FULL]),
    ("memory", [&metric::HOST_PRESSURE_MEMORY_SOME, &metric::HOST_PRESSURE_MEMORY_FULL]),
    ("io", [&metric::HOST_PRESSURE_IO_SOME, &metric::HOST_PRESSURE_IO_FULL]),
    ("irq", [&metric::HOST_PRESSURE_IRQ_FULL, &metric::HOST_PRESSURE_IRQ_FULL]),
];

impl PressureFiles {
    /// Opens the file `before` + resource + `after` for each resource of the table.
    pub(crate) fn open(
        sink: &Sink,
        failures: &mut ReadFailures,
        before: &str,
        after: &str,
        table: &PressureTable,
    ) -> Self {
        let mut files = Vec::new();
        for (resource, metrics) in table {
            let path = format!("{before}{resource}{after}");
            // Only some kernels have `irq`; its absence is not reported.
            let file = if *resource == "irq" {
                File::open(&path).ok()
            } else {
                failures.open(
                    sink,
                    &path,
                    "PSI needs CONFIG_PSI and, on some distributions, psi=1 at boot",
                )
            };
            files.extend(file.map(|file| (file, *metrics, <[Rate; 2]>::default())));
        }
        Self { files }
    }

    pub(crate) fn read(&mut self, sink: &Sink, reader: &mut Reader, labels: &[(&str, &str)]) {
        self.files.retain_mut(|(file, metrics, rates)| {
            // If PSI is compiled in but disabled, its files open but cannot be read.
            let Ok(text) = reader.one(file) else { return false };
            let pressure = pressure::parse(text);
            let now = Instant::now();
            for ((rate, total), kind) in
                rates.iter_mut().zip([pressure.some_us, pressure.full_us]).zip(*metrics)
            {
                if let Some(total) = total {
                    rate.put(sink, now, total, 1e-6, &SeriesSpec::new(kind, labels));
                }
            }
            true
        });
    }
}

fn read_disks(disks: &mut HashMap<Box<[u8]>, DiskMeters>, sink: &Sink, text: &[u8]) {
    for disk in diskstats::parse(text) {
        let was_used = disk.reads > 0 || disk.writes > 0;
        if !was_used || diskstats::is_partition(disk.name) {
            continue;
        }
        if !disks.contains_key(disk.name) {
            if disks.len() >= DISKS_MAX {
                continue;
            }
            disks.insert(disk.name.into(), DiskMeters::default());
        }
        if let Some(meters) = disks.get_mut(disk.name) {
            meters.read(sink, &disk);
        }
    }
}

impl DiskMeters {
    fn read(&mut self, sink: &Sink, disk: &Disk<'_>) {
        let now = Instant::now();
        let name = scan::text(disk.name);
        let labels = [("device", &*name)];
        let sector = SECTOR_BYTES as f64;
        let figures = [
            (disk.sectors_read, sector, &metric::DISK_READ_BYTES),
            (disk.sectors_written, sector, &metric::DISK_WRITE_BYTES),
            (disk.reads, 1.0, &metric::DISK_READS),
            (disk.writes, 1.0, &metric::DISK_WRITES),
            (disk.ms_weighted, 1e-3, &metric::DISK_QUEUE),
            (disk.ms_busy, 1e-3, &metric::DISK_BUSY),
        ];
        for (rate, (count, scale, kind)) in self.rates.iter_mut().zip(figures) {
            rate.put(sink, now, count, scale, &SeriesSpec::new(kind, &labels));
        }
        let spec = SeriesSpec::new(&metric::DISK_IN_FLIGHT, &labels);
        self.in_flight.put(sink, now, disk.in_flight as f64, &spec);
        let counts = [disk.reads, disk.ms_reading, disk.writes, disk.ms_writing];
        if let Some(before) = self.before.replace(counts) {
            let [reads, reading, writes, writing] = {
                let mut grown = counts;
                grown
                    .iter_mut()
                    .zip(before)
                    .for_each(|(now, before)| *now = now.saturating_sub(before));
                grown
            };
            let kinds = [
                (reads, reading, &metric::DISK_READ_AWAIT),
                (writes, writing, &metric::DISK_WRITE_AWAIT),
            ];
            for (meter, (requests, ms, kind)) in self.awaits.iter_mut().zip(kinds) {
                if requests > 0 {
                    let spec = SeriesSpec::new(kind, &labels);
                    meter.put(sink, now, ms as f64 / requests as f64, &spec);
                }
            }
        }
    }
}

fn read_softirqs(cpus: &mut HashMap<u32, Rate>, sink: &Sink, text: &[u8]) {
    let now = Instant::now();
    for (cpu, count) in softirqs::net_rx(text).take(CORES_MAX) {
        let number = cpu.to_string();
        let spec = [("cpu", &*number)];
        cpus.entry(cpu).or_default().put(
            sink,
            now,
            count,
            1.0,
            &SeriesSpec::new(&metric::SOFTIRQ_NET_RX, &spec),
        );
    }
}

fn read_memory(meters: &mut [Meter; 5], sink: &Sink, text: &[u8]) {
    let Some(memory) = meminfo::parse(text) else { return };
    let now = Instant::now();
    let figures = [
        (memory.available, memory.total, &metric::HOST_MEMORY_AVAILABLE),
        (memory.free, memory.total, &metric::HOST_MEMORY_FREE),
        (memory.cached, memory.total, &metric::HOST_MEMORY_CACHED),
        (memory.dirty, memory.total, &metric::HOST_MEMORY_DIRTY),
        (
            memory.swap_total.saturating_sub(memory.swap_free),
            memory.swap_total,
            &metric::HOST_MEMORY_SWAP_USED,
        ),
    ];
    for (meter, (bytes, limit, kind)) in meters.iter_mut().zip(figures) {
        meter.put(sink, now, bytes as f64, &SeriesSpec::host(kind).limit(Some(limit as f64)));
    }
}

fn read_paging(rates: &mut [Rate; 7], sink: &Sink, text: &[u8]) {
    let stat = vmstat::parse(text);
    let now = Instant::now();
    let figures = [
        (stat.faults_major, 1.0, &metric::HOST_MEMORY_FAULTS_MAJOR),
        (stat.page_in_kib, 1024.0, &metric::HOST_MEMORY_PAGE_IN),
        (stat.page_out_kib, 1024.0, &metric::HOST_MEMORY_PAGE_OUT),
        (stat.scan_direct, 1.0, &metric::HOST_MEMORY_SCAN_DIRECT),
        (stat.allocation_stalls, 1.0, &metric::HOST_MEMORY_ALLOCATION_STALLS),
        (stat.refaults_file, 1.0, &metric::HOST_MEMORY_REFAULTS_FILE),
        (stat.oom_kills, 1.0, &metric::HOST_MEMORY_OOM_KILLS),
    ];
    for (rate, (count, scale, kind)) in rates.iter_mut().zip(figures) {
        rate.put(sink, now, count, scale, &SeriesSpec::host(kind));
    }
}
