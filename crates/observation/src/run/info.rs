//! What is known of a run as a whole: before it starts, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RunPlan;
use crate::fleet::WorkerInfo;
use crate::keyed::keyed;

/// The run as a whole, as known before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of the row format; readers refuse a newer one.
    pub format: u32,
    /// The version of throng, e.g. `0.1.0`.
    pub throng_version: String,
    /// Scenario file as run, overrides applied; TOML.
    pub scenario: String,
    /// The target's URL without secrets (tokens are shown as `…`).
    pub target: String,
    /// Names of the cohorts by [`CohortId`](super::CohortId).
    pub cohorts: Vec<String>,
    /// Wall clock of [`RunTime`](crate::RunTime) 0, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// The planned duration, microseconds after RunTime 0.
    pub planned_duration_us: i64,
    /// The generator's host: CPU model, cores, kernel, governor, limits, settings; by name.
    pub generator_host: BTreeMap<String, String>,
    /// SHA-256 of the files that participants publish, hexadecimal, by path as the scenario has it.
    /// Empty in folders of earlier versions.
    pub media_files: BTreeMap<String, String>,
    /// The clock error of one-way delays, and its reason.
    pub clock: ClockError,
    /// Warnings of the preflight check: limits of this machine.
    pub warnings: Vec<String>,
    /// The workers that played it, by number; empty where this machine did.
    pub workers: Vec<WorkerInfo>,
    /// What was planned; `None` where nothing is known of it, as in folders of earlier versions
    /// whose scenario cannot be read.
    pub plan: Option<RunPlan>,
}

/// The error of one-way delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// Bound of the error, microseconds; `None` when the sender's clock is unknown.
    pub bound_us: Option<u64>,
    /// Why: `same host`, `not known`, …
    pub basis: String,
}

keyed! {
    /// How the run ended.
    #[derive(Default)]
    Ending {
        /// No ending was written: the run is in progress
        /// ([`RunData::in_progress`](super::RunData::in_progress)), or its process was killed.
        #[default]
        Unfinished = "unfinished",
        /// It ran to its end.
        Complete = "complete",
        /// A user or a signal ended it early.
        Interrupted = "interrupted",
        /// A guard ended it: consent withdrawn, target unreachable, a cap reached.
        Aborted = "aborted",
    }
}
