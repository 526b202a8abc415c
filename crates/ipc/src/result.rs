//! The schema of `ipc.json`: stable keys, versioned. Absent figures are `null`, never 0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::role::{LatencyNs, SideReport};
use crate::{Assumptions, CpuProfile, Plan, ReadMode, Transport, cost};

/// The version of `ipc.json`'s shape. Keys are only ever added within a version.
pub const IPC_VERSION: u32 = 1;

/// Cost of passing frames, by transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IpcReport {
    /// Version of this shape, see `IPC_VERSION`.
    pub ipc_version: u32,
    /// The answer in one sentence.
    pub headline: String,
    /// Whether the measurement was ended early; then unmeasured rows are absent.
    pub partial: bool,
    /// When it ended, microseconds since the Unix epoch.
    pub ended_at_unix_us: i64,
    /// The machine that measured.
    pub machine: Machine,
    /// Frames that were passed.
    pub workload: WorkloadSummary,
    /// Price, streams and frame rate behind the cost per year.
    pub assumptions: Assumptions,
    /// One row a transport.
    pub rows: Vec<Row>,
}

/// The machine that measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The processor's name, as /proc/cpuinfo says it.
    pub cpu: Option<String>,
    /// Logical processors that this process may use.
    pub cores: Option<u32>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Load average over the last minute, at the end; load beyond the two measured processes
    /// disturbed the figures.
    pub load_1m: Option<f64>,
}

/// The workload, in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSummary {
    /// Mean size of a frame, bytes.
    pub frame_bytes_mean: f64,
    /// Largest frame, bytes.
    pub frame_bytes_max: u32,
    /// Number of frame sizes that the producers cycle through; 1 if all frames are of one size.
    pub sizes: usize,
    /// Frames a second that each producer offers; `null`: as fast as the transport takes them.
    pub fps: Option<f64>,
    /// Number of sending processes.
    pub producers: u8,
    /// How much of a frame the consumer reads.
    pub reading: ReadMode,
    /// How long each transport was measured in each round, seconds.
    pub duration_s: f64,
    /// Rounds of which each row is the median.
    pub rounds: u32,
}

/// One transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Its key.
    pub transport: Transport,
    /// Its display name.
    pub name: String,
    /// Whether it was measured.
    pub outcome: Outcome,
    /// Why it was not measured.
    pub reason: Option<String>,
    /// Remark on the row.
    pub note: Option<String>,
    /// `null` unless it was measured.
    pub figures: Option<Measured>,
}

/// Whether a transport was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every frame arrived unchanged.
    Measured,
    /// The machine lacks something that it needs.
    Missing,
    /// It failed: a frame was lost or changed, or a process died.
    Failed,
}

/// Figures of a transport, from the median round by CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Frames received, all unchanged.
    pub frames: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes received per second.
    pub bytes_per_second: f64,
    /// Frames received per second, of all producers together.
    pub frames_per_second: f64,
    /// Frames not sent in time because the transport was too slow; 0 without an offered rate.
    pub frames_not_sent: u64,
    /// CPU seconds per gigabyte (10^9 bytes), of all processes together, including kernel time.
    pub cpu_s_per_gb: f64,
    /// The producers' part.
    pub cpu_s_per_gb_producer: f64,
    /// The consumer's part.
    pub cpu_s_per_gb_consumer: f64,
    /// The same for each round, in the order they were measured.
    pub cpu_s_per_gb_rounds: Vec<f64>,
    /// CPU of all processes for one frame, microseconds.
    pub cpu_us_per_frame: f64,
    /// Share of that CPU time that was spent in the kernel, 0 to 1.
    pub kernel_ratio: Option<f64>,
    /// From the intended send time of a frame (offered rate) or its send time (full speed) until
    /// the consumer has it.
    pub latency: Option<Latency>,
    /// Delay from the intended send time of a frame until it was sent; `null` without an offered
    /// rate.
    pub send_delay: Option<Latency>,
    /// Context switches of all processes for one frame.
    pub context_switches_per_frame: f64,
    /// System calls; `null` when they were not counted.
    pub system_calls: Option<SystemCalls>,
    /// CPU profile; `null` if none was recorded.
    pub cpu_profile: Option<CpuProfile>,
    /// Cores that one stream keeps busy at the assumed rate.
    pub cores_per_stream: f64,
    /// Cost of all streams per year, in the currency of the price.
    pub cost_per_year: f64,
}

/// Latencies, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Median.
    pub us_p50: f64,
    /// 99th percentile.
    pub us_p99: f64,
    /// The longest.
    pub us_max: f64,
    /// Number of samples: each frame, or one in 16 of small frames at full speed.
    pub samples: u64,
}

impl Latency {
    fn of(latency: LatencyNs) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            us_p50: us(latency.p50),
            us_p99: us(latency.p99),
            us_max: us(latency.max),
            samples: latency.samples,
        }
    }
}

/// System calls, counted by the kernel (tracepoint `raw_syscalls:sys_enter`) in a pass of their
/// own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemCalls {
    /// Of all producers, per frame.
    pub per_frame_producer: Option<f64>,
    /// Of the consumer, per frame.
    pub per_frame_consumer: Option<f64>,
    /// Why they could not be counted.
    pub missing: Option<String>,
}

impl SystemCalls {
    /// Of both sides together, per frame; `None` if one of them could not be counted.
    #[must_use]
    pub fn per_frame(&self) -> Option<f64> {
        Some(self.per_frame_producer? + self.per_frame_consumer?)
    }
}

/// The JSON Schema of `ipc.json` (draft 2020-12), as kept in `docs/ipc.schema.json`.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(IpcReport).to_value()
}

/// The reports of both sides of one pass.
pub(crate) struct Sides {
    /// A baseline has none.
    pub(crate) producers: Vec<SideReport>,
    pub(crate) consumer: SideReport,
    /// Only of a pass that is profiled.
    pub(crate) spent: Option<CpuProfile>,
}

impl Sides {
    /// CPU seconds per gigabyte of the producers and of the consumer, each by the bytes that it
    /// passed itself.
    fn cpu_s_per_gb(&self) -> (f64, f64) {
        let per_gb = |cpu_ns: u64, bytes: u64| cpu_ns as f64 / bytes.max(1) as f64;
        let cpu_ns = self.producers.iter().map(|side| side.cpu_ns).sum();
        let bytes = self.producers.iter().map(|side| side.bytes).sum();
        (per_gb(cpu_ns, bytes), per_gb(self.consumer.cpu_ns, self.consumer.bytes))
    }

    fn total(&self) -> f64 {
        let (producer, consumer) = self.cpu_s_per_gb();
        producer + consumer
    }

    fn all(&self) -> impl Iterator<Item = &SideReport> {
        self.producers.iter().chain([&self.consumer])
    }

    /// The figures of a row, from the median round; `None` if nothing was measured.
    pub(crate) fn figures(
        rounds: &[Self],
        inspected: Option<&Self>,
        plan: &Plan,
    ) -> Option<Measured> {
        let mut order: Vec<_> = rounds.iter().filter(|sides| sides.consumer.frames > 0).collect();
        order.sort_by(|a, b| a.total().total_cmp(&b.total()));
        let sides = *order.get(order.len().saturating_sub(1) / 2)?;
        let (producer, consumer) = sides.cpu_s_per_gb();
        let received = &sides.consumer;
        // Since the first frame was sent: if only one arrived there is no time between arrivals.
        let left_ns =
            sides.producers.iter().map(|side| side.first_ns).min().unwrap_or(received.first_ns);
        let seconds = received.last_ns.saturating_sub(left_ns).max(1) as f64 / 1e9;
        let frames = received.frames as f64;
        let bytes_per_frame = received.bytes as f64 / frames;
        let system_ns: u64 = sides.all().map(|side| side.system_ns).sum();
        let split_ns = system_ns + sides.all().map(|side| side.user_ns).sum::<u64>();
        let late = sides
            .producers
            .iter()
            .filter_map(|side| side.latency)
            .max_by_key(|latency| latency.p99);
        let cores_per_stream = cost::cores_per_stream(
            producer + consumer,
            plan.workload.sizes.mean_bytes(),
            &plan.assumptions,
        );
        Some(Measured {
            frames: received.frames,
            bytes: received.bytes,
            bytes_per_second: received.bytes as f64 / seconds,
            frames_per_second: frames / seconds,
            frames_not_sent: sides.producers.iter().map(|side| side.frames_not_sent).sum(),
            cpu_s_per_gb: producer + consumer,
            cpu_s_per_gb_producer: producer,
            cpu_s_per_gb_consumer: consumer,
            cpu_s_per_gb_rounds: rounds.iter().map(Self::total).collect(),
            cpu_us_per_frame: (producer + consumer) * bytes_per_frame / 1e3,
            kernel_ratio: (split_ns > 0).then(|| system_ns as f64 / split_ns as f64),
            latency: received.latency.map(Latency::of),
            send_delay: late.map(Latency::of),
            context_switches_per_frame: sides.all().map(|side| side.context_switches).sum::<u64>()
                as f64
                / frames,
            system_calls: inspected.map(Self::system_calls),
            cpu_profile: inspected.and_then(|sides| sides.spent.clone()),
            cores_per_stream,
            cost_per_year: cost::per_year(cores_per_stream, &plan.assumptions),
        })
    }

    fn system_calls(&self) -> SystemCalls {
        let mut missing = None;
        let mut per_frame = |side: &SideReport| match &side.system_calls {
            Some(Ok(calls)) if side.frames > 0 => Some(*calls as f64 / side.frames as f64),
            Some(Err(reason)) => {
                missing.get_or_insert_with(|| reason.clone());
                None
            }
            _ => None,
        };
        let mut producers = SideReport { system_calls: Some(Ok(0)), ..SideReport::default() };
        for side in &self.producers {
            producers.frames += side.frames;
            producers.system_calls = match (producers.system_calls, &side.system_calls) {
                (Some(Ok(sum)), Some(Ok(calls))) => Some(Ok(sum + calls)),
                (Some(Ok(_)), other) => other.clone(),
                (wrong, _) => wrong,
            };
        }
        let producer = if self.producers.is_empty() { Some(0.0) } else { per_frame(&producers) };
        let consumer = per_frame(&self.consumer);
        SystemCalls { per_frame_producer: producer, per_frame_consumer: consumer, missing }
    }
}

impl IpcReport {
    /// Makes the report of all rows, with its headline.
    pub(crate) fn new(plan: &Plan, machine: Machine, rows: Vec<Row>, partial: bool) -> Self {
        let workload = &plan.workload;
        let mut report = Self {
            ipc_version: IPC_VERSION,
            headline: String::new(),
            partial,
            ended_at_unix_us: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
            machine,
            workload: WorkloadSummary {
                frame_bytes_mean: workload.sizes.mean_bytes(),
                frame_bytes_max: workload.sizes.max_bytes(),
                sizes: workload.sizes.distinct(),
                fps: workload.fps,
                producers: workload.producers,
                reading: plan.reading,
                duration_s: plan.duration.as_secs_f64(),
                rounds: plan.rounds.max(1),
            },
            assumptions: plan.assumptions,
            rows,
        };
        report.headline = report.sentence();
        report
    }

    /// `ipc.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        throng_report::to_json(self)
    }

    /// Reads `ipc.json`.
    ///
    /// # Errors
    /// It is not an `ipc.json`, or one of a newer version.
    pub fn from_json(json: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            ipc_version: u32,
        }
        let Version { ipc_version } =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        if ipc_version > IPC_VERSION {
            return Err(format!(
                "it is of version {ipc_version}, this throng reads up to {IPC_VERSION}"
            ));
        }
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// Rows with figures, except baselines.
    pub(crate) fn passed(&self) -> impl Iterator<Item = (&Row, &Measured)> {
        self.rows
            .iter()
            .filter(|row| !row.transport.is_baseline())
            .filter_map(|row| Some((row, row.figures.as_ref()?)))
    }

    /// Whether a transport failed.
    #[must_use]
    pub fn has_failed_rows(&self) -> bool {
        self.rows.iter().any(|row| row.outcome == Outcome::Failed)
    }

    /// Whether anything was measured.
    #[must_use]
    pub fn has_figures(&self) -> bool {
        self.rows.iter().any(|row| row.figures.is_some())
    }

    fn sentence(&self) -> String {
        let by_cpu = |a: &(&Row, &Measured), b: &(&Row, &Measured)| {
            a.1.cpu_s_per_gb.total_cmp(&b.1.cpu_s_per_gb)
        };
        match (self.passed().max_by(by_cpu), self.passed().min_by(by_cpu)) {
            (Some((dear, most)), Some((cheap, least))) if dear.transport != cheap.transport => {
                format!(
                    "{} takes {} times the CPU of {}: {} streams cost {} a year by the one, {} by \
                     the other",
                    dear.name,
                    cost::figure(most.cpu_s_per_gb / least.cpu_s_per_gb.max(f64::MIN_POSITIVE)),
                    cheap.name,
                    cost::grouped(f64::from(self.assumptions.streams)),
                    cost::money(most.cost_per_year),
                    cost::money(least.cost_per_year),
                )
            }
            (Some((row, figures)), _) => {
                format!(
                    "{} takes {} CPU seconds per GB",
                    row.name,
                    cost::figure(figures.cpu_s_per_gb)
                )
            }
            _ => "No transport was measured".into(),
        }
    }
}

impl Machine {
    /// This machine.
    pub(crate) fn read() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let cpu = read("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        Self {
            cpu,
            cores: std::thread::available_parallelism()
                .ok()
                .and_then(|cores| u32::try_from(cores.get()).ok()),
            kernel: read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            load_1m: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
