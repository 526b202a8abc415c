//! Measurements of a watched host during a run: series of samples, events, profiles.
//!
//! One shape for all of it, whether a figure comes from `/proc`, a server's log, its admin API or a
//! Prometheus endpoint: a [`HostSeries`] says once what is measured, a [`HostSample`] is a moment
//! and a value. [`catalogue`] defines the metrics.

use crate::{RunTime, units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub mod catalogue;
pub mod cgroup;
mod cpu_times;
mod device;
mod lives;
pub mod measured;
pub mod mountinfo;
mod process;
mod profile;
mod traffic;
pub use profile::{Frame, Profile, ProfileMethod, Stack};
mod family;
pub use family::Family;
mod names;
pub use names::HostNames;
mod self_time;
pub use cpu_times::{CpuTimes, MODES};
pub use device::{is_stacked_disk, is_upper_interface, lowest};
pub use lives::Life;
pub use process::{Culprit, HowEnded, ProcessEnd, ProcessEvent, ServiceResult};
pub use self_time::{Change, FamilyTime, SelfTime, SymbolTime, ThreadTime, compare};
pub use traffic::{AccountedTraffic, accounted_traffic};

/// A watched host, numbered in the order of the scenario's `[[watch]]`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct HostId(pub u8);

/// A series of a host, numbered in the order in which it was first seen; never used twice in a run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SeriesId(pub u32);

/// The unit of the values of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain number of things, now.
    #[default]
    Count,
    /// Things per second.
    PerSecond,
    /// Bytes, now.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A share of one: of one core for CPU time, of the wall clock for waiting, of a limit for a
    /// level.
    Ratio,
    /// Milliseconds.
    Milliseconds,
}

impl Unit {
    /// The symbol written after a value.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        units::Unit::from(self).symbol()
    }
}

impl From<Unit> for units::Unit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Count => Self::Count,
            Unit::PerSecond => Self::PerSecond,
            Unit::Bytes => Self::Bytes,
            Unit::BytesPerSecond => Self::BytesPerSecond,
            Unit::Ratio => Self::Ratio,
            Unit::Milliseconds => Self::Milliseconds,
        }
    }
}

/// A metric of one labelled object, such as the CPU time of a thread, and its limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSeries {
    /// Its number.
    pub id: SeriesId,
    /// On which host.
    pub host: HostId,
    /// The metric: a name of the [`catalogue`], or the endpoint's own name of a scraped one.
    pub metric: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The object: `process`, `pid`, `tid`, `thread`, `cpu`, `device`, `interface`, `pattern`,
    /// `uri_group`, …
    pub labels: BTreeMap<String, String>,
    /// The value that it cannot exceed, where one is known (open file limit, line rate, quota), in
    /// [`Self::unit`].
    pub limit: Option<f64>,
}

/// The value of a series at a moment. It holds until the series' next sample; samples that would
/// repeat it need not be written, but the last of them before it changes. NaN ends the series: its
/// value is unknown from then on (the thread ended, the file is unreadable).
///
/// For rates and ratios the value is the mean over the time since the previous reading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Which series.
    pub series: SeriesId,
    /// When it was read.
    pub at: RunTime,
    /// The value, in the series' unit.
    pub value: f64,
}

/// The kind of an event on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostEventKind {
    /// A watched process was found.
    ProcessFound,
    /// A watched process ended; [`HostEvent::process`] says how, where that can be known.
    ProcessEnded,
    /// Something could not be read; the detail says what, why, and what to do about it.
    Unreadable,
    /// The watcher could not keep its pace and reads less often.
    RateLowered,
    /// The watcher became unreachable, or reachable again.
    Watcher,
    /// A log line worth keeping whole: the first of its pattern.
    LogLine,
    /// A mark set by the run: a phase or a level of load began.
    Mark,
}

/// Something that happened on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostEvent {
    /// Where.
    pub host: HostId,
    /// When.
    pub at: RunTime,
    /// What.
    pub kind: HostEventKind,
    /// A sentence for a person.
    pub detail: String,
    /// The process that was found or ended; `None` of other events, and in runs of versions without
    /// it.
    pub process: Option<ProcessEvent>,
}

impl HostEvent {
    /// An event that is not about one process.
    #[must_use]
    pub fn new(host: HostId, at: RunTime, kind: HostEventKind, detail: impl Into<String>) -> Self {
        Self { host, at, kind, detail: detail.into(), process: None }
    }
}

/// The fact that tells machines apart while they run: `/proc/sys/kernel/random/boot_id`. Containers
/// of one machine have the same, and each boot has another.
pub const BOOT_ID_FACT: &str = "boot_id";

/// Facts of a host as a whole, read once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostInfo {
    /// Which.
    pub host: HostId,
    /// Its name: the scenario's, else the host name.
    pub name: String,
    /// Facts by name: `kernel`, `cpus`, `memory_bytes`, `net.core.rmem_max`, `limits.open_files`, …
    pub facts: BTreeMap<String, String>,
    /// Bound of the error of its times against the run's clock, microseconds; 0 on the same host.
    pub clock_error_us: u64,
    /// CPU time of the watcher itself, microseconds.
    pub watcher_cpu_us: u64,
    /// Peak resident set of the watcher itself, bytes.
    pub watcher_rss_bytes: u64,
}

/// A row on its way from a watcher to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum HostRow {
    /// The host as a whole; a later one replaces it.
    Info(HostInfo),
    /// A series begins; before its first sample.
    Series(HostSeries),
    /// A value.
    Sample(HostSample),
    /// An event.
    Event(HostEvent),
    /// A profile, whole.
    Profile(Box<Profile>),
}

/// All rows of the watched hosts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostData {
    /// The hosts.
    pub hosts: Vec<HostInfo>,
    /// The series, by number.
    pub series: Vec<HostSeries>,
    /// The samples, by series and time.
    pub samples: Vec<HostSample>,
    /// The events, in order.
    pub events: Vec<HostEvent>,
    /// Profiles, in order.
    pub profiles: Vec<Profile>,
}
