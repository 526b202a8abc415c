//! The findings, one file each. A finding checks one kind of limit and reports it as suspect, ruled
//! out, or not monitored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::SeriesId;

use crate::context::{Context, Thread};
use crate::demand::{Demand, Prediction};

mod evidence;
pub(crate) mod gate;
pub mod score;

mod ended;
mod generator;
mod never_connected;
mod never_served;
mod process_stopped;
mod server_crashed;
mod signalling;
mod source_stopped;

mod cpu_all;
mod cpu_bursts;
mod cpu_quota;
mod cpu_steal;
mod run_queue;
mod runtime;
mod serialised;
mod thread_log;
mod threads;

mod hot_code;

mod disk;
mod memory;
mod page_cache;

mod backpressure;
mod line;
mod path_loss;
mod softirq;
mod tcp_memory;
mod udp_buffer;

mod accept_queue;
mod address_limit;
mod configured_ceiling;
mod conntrack;
mod descriptors;
mod ports;
mod tasks;

pub use evidence::Evidence;
pub(crate) use threads::is_any_of_its_pool;

/// The evidence line of [`Context::host_busy`]: busy CPUs of the host without the low-priority work
/// of other processes.
pub(crate) const HOST_BUSY: &str = "host.cpu.busy less others' host.cpu.nice, of all cores";
/// Names of evidence lines that several findings have: the same line is shown once.
pub(crate) const FRAME_DELAY: &str = "delay of the users' frames above their minimum, median";
pub(crate) const PACKETS_LOST: &str = "packets lost for good";
pub(crate) const WAITING: &str =
    "time that players stalled or waited for playback to begin, of their time";
pub(crate) const NOT_DELIVERED: &str =
    "media time that players wanted and did not receive, of the time";
pub(crate) const CONNECTED: &str = "connected participants";
const NOT_SERVED: &str = "bad user-seconds of users that were not served at all";

/// The result of a check: a candidate for the bottleneck, or why there is none.
pub(crate) type CheckResult = Result<Candidate, NoFinding>;

/// Why a check has no candidate.
pub(crate) enum NoFinding {
    /// It is not the limit; the sentence gives its state.
    RuledOut(String),
    /// It looks like the limit, but looked the same before service went bad, so it explains
    /// nothing.
    Constant(String),
    /// The check does not apply here; another finding covers it.
    NotApplicable,
    /// The counters that the check needs were not recorded; names them.
    NotMonitored(&'static str),
}

/// The result of a check whose limit is ruled out.
fn ruled_out(state: impl Into<String>) -> CheckResult {
    Err(NoFinding::RuledOut(state.into()))
}

/// A suspect limit before it is ranked against the others.
pub(crate) struct Candidate {
    pub(crate) key: &'static str,
    /// The finding as a sentence without a full stop.
    pub(crate) title: String,
    /// The resource and its owner.
    pub(crate) resource: String,
    /// Utilisation, 0 to 1 (see [`score::used_up`]).
    pub(crate) used: f64,
    /// Growth of its queue, 0 to 1.
    pub(crate) queue: Option<f64>,
    /// Whether it refuses or drops work that it did not refuse at the baseline.
    pub(crate) refuses: bool,
    pub(crate) demand: Option<Demand>,
    pub(crate) crossed_at_s: Option<f64>,
    pub(crate) evidence: Vec<Evidence>,
    /// The series that the first line of evidence is about.
    pub(crate) series: Vec<SeriesId>,
    pub(crate) change: String,
    /// Whether the change relieves a resource.
    pub(crate) eases: fn(&Demand, &Candidate) -> bool,
    /// The thread pool that the change relieves.
    pub(crate) pool: Option<String>,
    /// The thread that is the limit, if it is one.
    pub(crate) thread: Option<NamedThread>,
    /// Upper bound of the score, below 100 where the evidence is incomplete.
    pub(crate) at_most: f64,
    /// Whether it ended or stopped the server: whatever else is full then is a symptom.
    pub(crate) ends_service: bool,
}

impl Candidate {
    pub(crate) fn new(
        key: &'static str,
        title: impl Into<String>,
        resource: impl Into<String>,
    ) -> Self {
        Self {
            key,
            title: title.into(),
            resource: resource.into(),
            used: 0.0,
            queue: None,
            refuses: false,
            demand: None,
            crossed_at_s: None,
            evidence: Vec::new(),
            series: Vec::new(),
            change: String::new(),
            eases: |_, _| false,
            pool: None,
            thread: None,
            at_most: 100.0,
            ends_service: false,
        }
    }
}

/// A thread by its name: of a pool any of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedThread {
    pub(crate) name: String,
    /// The name of the setting that gives it room; `None` where none is known.
    pub(crate) setting: Option<String>,
}

impl NamedThread {
    fn of(context: &Context<'_>, thread: &Thread<'_>) -> Self {
        let setting = context.knowledge.thread_setting(thread.process, thread.name);
        Self { name: thread.name.to_owned(), setting }
    }
}

/// A limit that stopped the server, or may have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Its stable key: `one_thread_full`, `cpu_quota`, … (docs/findings.md lists all).
    pub finding: String,
    /// The finding as a sentence.
    pub title: String,
    /// Confidence, 0 to 100.
    pub score: f64,
    /// The resource and its owner.
    pub resource: String,
    /// The name of the thread that is the limit; `null` if it is none.
    #[serde(default)]
    pub thread: Option<String>,
    /// The setting that gives this thread room; `null` where none is known.
    #[serde(default)]
    pub setting: Option<String>,
    /// Its relation to the other findings.
    pub role: FindingRole,
    /// The counters that show it: at least three lines.
    pub evidence: Vec<Evidence>,
    /// Numbers of the series in `run.db` behind the first line of evidence.
    pub series: Vec<u32>,
    /// The recommended change.
    pub change: String,
    /// The predicted effect of the change; `null` where the demand model gives none.
    pub prediction: Option<Prediction>,
}

/// The relation of a finding to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingRole {
    /// It stopped the server.
    Cause,
    /// It shows what the cause spends its time on.
    Explanation,
    /// It is a consequence of the cause.
    Symptom,
    /// It may contribute.
    Suspect,
}

/// The finding that a server process ended.
pub(crate) const SERVER_CRASHED: &str = server_crashed::KEY;

/// The finding that a server process was stopped (SIGSTOP).
pub(crate) const PROCESS_STOPPED: &str = process_stopped::KEY;

/// The finding that memory is exhausted.
pub(crate) const MEMORY: &str = memory::KEY;

/// The finding that the source of the media stopped.
pub(crate) const SOURCE_STOPPED: &str = source_stopped::KEY;

/// The findings that no participant ever connected, and that none was ever served: no resource is
/// suspected then.
pub(crate) const NEVER: [&str; 2] = [never_connected::KEY, never_served::KEY];

/// Findings from the participants and the generator alone: they need no watcher and are made once,
/// not per host.
pub(crate) const CLIENT_SIDE: &[&str] = &[
    generator::KEY,
    never_connected::KEY,
    never_served::KEY,
    source_stopped::KEY,
    signalling::KEY,
    address_limit::KEY,
];

/// A finding's key and its check, in the order of docs/findings.md.
pub(crate) type Rule = (&'static str, fn(&Context<'_>) -> CheckResult);

/// The finding that the generator was the limit; it says nothing about the server.
pub(crate) const GENERATOR: &str = generator::KEY;

/// The keys of all findings, in the order of docs/findings.md.
pub fn keys() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|(key, _)| *key)
}

/// All findings.
pub(crate) const RULES: &[Rule] = &[
    (generator::KEY, generator::check),
    (server_crashed::KEY, server_crashed::check),
    (process_stopped::KEY, process_stopped::check),
    (never_connected::KEY, never_connected::check),
    (never_served::KEY, never_served::check),
    (source_stopped::KEY, source_stopped::check),
    ("one_thread_full", threads::full::check),
    ("single_threaded", threads::single::check),
    ("uneven_threads", threads::uneven::check),
    (runtime::KEY, runtime::check),
    ("gil", serialised::gil),
    ("lock_contention", serialised::locks),
    (cpu_all::KEY, cpu_all::check),
    (cpu_quota::KEY, cpu_quota::check),
    (cpu_steal::KEY, cpu_steal::check),
    (run_queue::KEY, run_queue::check),
    (cpu_bursts::KEY, cpu_bursts::check),
    ("copy_dominated", hot_code::copying),
    ("hot_function", hot_code::hot_function),
    ("crypto", hot_code::crypto),
    ("system_calls", hot_code::system_calls),
    (disk::KEY, disk::check),
    (page_cache::KEY, page_cache::check),
    (memory::KEY, memory::check),
    (udp_buffer::KEY, udp_buffer::check),
    (softirq::KEY, softirq::check),
    (line::KEY, line::check),
    (backpressure::KEY, backpressure::check),
    (path_loss::KEY, path_loss::check),
    (descriptors::KEY, descriptors::check),
    (ports::KEY, ports::check),
    (accept_queue::KEY, accept_queue::check),
    (tcp_memory::KEY, tcp_memory::check),
    (conntrack::KEY, conntrack::check),
    (tasks::KEY, tasks::check),
    (signalling::KEY, signalling::check),
    (address_limit::KEY, address_limit::check),
    (configured_ceiling::KEY, configured_ceiling::check),
];
