//! What stopped the server: one file a finding. Each looks at one kind of limit and says that it is suspect, that it is
//! fine, or that nobody looked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::SeriesId;

use crate::context::Context;
use crate::demand::{Demand, Prediction};

mod evidence;
pub(crate) mod gate;
pub mod score;

mod generator;
mod never_connected;
mod process_stopped;
mod server_crashed;
mod signalling;

mod cpu_all;
mod cpu_bursts;
mod cpu_quota;
mod cpu_steal;
mod run_queue;
mod runtime;
mod serialised;
mod threads;

mod hot_code;

mod disk;
mod memory;
mod page_cache;

mod backpressure;
mod line;
mod path_loss;
mod softirq;
mod udp_buffer;

mod accept_queue;
mod configured_ceiling;
mod conntrack;
mod descriptors;
mod ports;

pub(crate) use cpu_all::{BUSY_MIN, WAIT_MIN};
pub use evidence::Evidence;

/// What is free of a host for its server: low-priority work of others makes way (see `Context::host_busy`).
pub(crate) const HOST_BUSY: &str = "host.cpu.busy less others' host.cpu.nice, of all cores";

/// What one finding sees.
pub(crate) enum CheckResult {
    /// It may be the cause.
    Suspect(Box<Candidate>),
    /// It was looked at and is not the limit: in what state it was.
    RuledOut(String),
    /// It looks like the limit, and did so before anybody suffered: it explains nothing.
    Constant(String),
    /// The question does not arise here; another finding tells what there is to tell.
    NotApplicable,
    /// Nobody looked: which counters are missing.
    NotMonitored(&'static str),
}

/// A finding before it is weighed against the others.
pub(crate) struct Candidate {
    pub(crate) key: &'static str,
    /// In a sentence, without a full stop.
    pub(crate) title: String,
    /// Which resource, of whom.
    pub(crate) resource: String,
    /// How used up, 0 to 1 (see [`score::used_up`]).
    pub(crate) used: f64,
    /// How much queues behind it, 0 to 1.
    pub(crate) queue: Option<f64>,
    /// Whether it refuses or throws away, which the floor did not see.
    pub(crate) refuses: bool,
    pub(crate) demand: Option<Demand>,
    pub(crate) crossed_at_s: Option<f64>,
    pub(crate) evidence: Vec<Evidence>,
    /// The series that the first line of evidence is about.
    pub(crate) series: Vec<SeriesId>,
    pub(crate) change: String,
    /// The resources that the change gives more room.
    pub(crate) eases: fn(&Demand, &Candidate) -> bool,
    /// The pool of threads that the change gives more room.
    pub(crate) pool: Option<String>,
    /// No higher score than this, where something speaks against it.
    pub(crate) at_most: f64,
}

impl Candidate {
    pub(crate) fn new(key: &'static str, title: impl Into<String>, resource: impl Into<String>) -> Self {
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
            at_most: 100.0,
        }
    }

    pub(crate) fn suspect(self) -> CheckResult {
        CheckResult::Suspect(Box::new(self))
    }
}

/// What stopped the server, or may have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Its stable key: `one_thread_full`, `cpu_quota`, … (docs/findings.md has all).
    pub finding: String,
    /// In a sentence.
    pub title: String,
    /// How sure, 0 to 100.
    pub score: f64,
    /// Which resource, of whom.
    pub resource: String,
    /// How it stands to the others.
    pub role: FindingRole,
    /// What it is told by: at least three lines.
    pub evidence: Vec<Evidence>,
    /// Numbers of the series in `run.db` that the first line is about.
    pub series: Vec<u32>,
    /// What to change.
    pub change: String,
    /// What the change would give; `null` where the demand model cannot tell.
    pub prediction: Option<Prediction>,
}

/// How a finding stands to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingRole {
    /// It stopped the server.
    Cause,
    /// It says what the cause is busy with.
    Explanation,
    /// It follows from the cause.
    Symptom,
    /// It may have part in it.
    Suspect,
}

/// The finding that the server is gone.
pub(crate) const SERVER_CRASHED: &str = server_crashed::KEY;

/// The finding that somebody stopped the server.
pub(crate) const PROCESS_STOPPED: &str = process_stopped::KEY;

/// The finding that nobody was ever connected: no resource is suspected then.
pub(crate) const NEVER_CONNECTED: &str = never_connected::KEY;

/// What is told by the crowd alone, whoever watched the server.
pub(crate) const OF_THE_CROWD: &[&str] = &[generator::KEY, never_connected::KEY, signalling::KEY];

/// A finding's key and its question, in the order of docs/findings.md.
pub(crate) type Rule = (&'static str, fn(&Context<'_>) -> CheckResult);

/// The finding that says nothing about the server.
pub(crate) const GENERATOR: &str = generator::KEY;

/// All that is looked at.
pub(crate) const RULES: &[Rule] = &[
    (generator::KEY, generator::check),
    (server_crashed::KEY, server_crashed::check),
    (process_stopped::KEY, process_stopped::check),
    (never_connected::KEY, never_connected::check),
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
    (conntrack::KEY, conntrack::check),
    (signalling::KEY, signalling::check),
    (configured_ceiling::KEY, configured_ceiling::check),
];
