//! The answer of a matrix: what each cell measured, what the factors did, which verdicts a change
//! of one factor confirmed.
//!
//! ```text
//! run.db -> RunFigures (one cell at a time)      cells -> MatrixReport -> text, matrix.json, page
//! ```

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::experiment::{Confirmation, FactorEffect, Interaction, NamedLimit};
use throng_analysis::reasons::Reason;

use crate::Quantity;

mod figures;
pub use figures::figures;

mod summarise;
pub use summarise::{MatrixInput, summarise};

mod environment;

mod proof;
pub use proof::{
    ProofBlock, ProofInput, ProofPair, ProofShrink, ProofVariant, RepeatedPair, RunId,
    VariantProof, is_lost, with_proofs,
};
pub(crate) mod proof_text;

mod ratio_bound;
pub use ratio_bound::RatioBound;

mod so_far;
pub use so_far::so_far;

pub mod text;

#[cfg(test)]
mod figures_tests;
#[cfg(test)]
pub(crate) mod proof_tests;
#[cfg(test)]
pub(crate) mod tests;

/// The version of the shape of `matrix.json`. Keys are only ever added within a version.
pub const MATRIX_VERSION: u32 = 1;

/// `matrix.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixReport {
    /// Version of this shape, see `MATRIX_VERSION`.
    pub matrix_version: u32,
    /// The answer in one sentence.
    pub headline: String,
    /// The matrix's title; `null` if it has none.
    pub name: Option<String>,
    /// Whether runs are missing that were planned and can still be made (`throng matrix --resume`).
    pub partial: bool,
    /// What is measured in each cell.
    pub measure: MatrixMeasure,
    /// Planned runs of each cell.
    pub repeats: u32,
    /// The seed of the order.
    pub seed: u64,
    /// `random`, `written`, or `abba` (a proof).
    pub order: String,
    /// The factors.
    pub factors: Vec<MatrixFactor>,
    /// The cells, in the order of the file.
    pub cells: Vec<MatrixCell>,
    /// What the factors did to each measured quantity; the first is the answer of the matrix.
    pub responses: Vec<MatrixResponse>,
    /// Verdicts that a change of one factor confirms or refutes.
    pub confirmations: Vec<Confirmation>,
    /// Of a proof (`throng prove`): what each variant did to the baseline. Empty for a matrix.
    #[serde(default)]
    pub proofs: Vec<VariantProof>,
    /// How the figures were made, in sentences.
    pub method: Vec<String>,
    /// What a reader must know about this matrix: cells that differ in their environment, ceilings
    /// that were reached.
    pub notes: Vec<String>,
    /// The throng that made this report.
    pub throng_version: String,
}

/// What is measured in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatrixMeasure {
    /// How well the crowd was served while it was held.
    #[default]
    Hold,
    /// The largest crowd that was served well.
    Find,
}

/// A factor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixFactor {
    /// Its name.
    pub name: String,
    /// Its levels; the others are compared with the first.
    pub levels: Vec<String>,
}

/// A cell: one level of each factor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixCell {
    /// Its number, from 1.
    pub number: usize,
    /// The index of the level of each factor.
    pub levels: Vec<usize>,
    /// Its levels in words: `files=30 storage=disk`.
    pub name: String,
    /// Its runs.
    pub runs: Vec<MatrixRun>,
    /// Valid runs.
    pub valid_runs: usize,
    /// What most of its valid runs say.
    pub verdict: CellVerdict,
    /// The finding that most of its valid runs name (docs/findings.md); `null` if there is none.
    pub finding: Option<String>,
    /// The resource of that finding: `cpu`, `disk`, `memory`, `network`, `sockets`; `null` for
    /// other findings.
    pub resource: Option<String>,
    /// Valid runs that name the limit of this finding, by whichever finding; without one, those
    /// with this verdict.
    pub agreeing_runs: usize,
    /// Means of the figures of its valid runs; `null` without any.
    pub means: Option<CellMeans>,
}

/// The verdict on a cell.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CellVerdict {
    /// No run was made yet.
    #[default]
    Pending,
    /// It cannot be run here; its runs say why.
    Skipped,
    /// No run is valid: the server did not start, throng failed, or a run was cut off.
    Failed,
    /// No run is valid: the generator was the limit, or a search could not decide.
    Invalid,
    /// Nothing failed.
    Served,
    /// A finding stands out.
    Bottleneck,
    /// Two limits at once; `finding` is the first.
    CoBottleneck,
    /// A finding is likely, not proven.
    Suspect,
    /// Service failed, and no resource that was measured is full.
    Unattributed,
    /// Service failed, and the server was not watched.
    NotMonitored,
}

/// A run of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixRun {
    /// Which run of the cell, from 1.
    pub repeat: u32,
    /// Its place in the order in which runs were made, from 1; `null` before it was.
    pub place: Option<usize>,
    /// How it ended.
    pub status: RunStatus,
    /// Why it is not valid; `null` if it is.
    pub reason: Option<String>,
    /// Its run folder, relative to the matrix's; `null` if the crowd never came.
    pub folder: Option<String>,
    /// What happened to the server, in sentences.
    pub notes: Vec<String>,
    /// This machine before and during the run: CPU model, kernel, governor, load average, CPU
    /// steal, the share of its CPU time that others used (`others_ratio`; not where it is not known
    /// which processes are the server's) and that was left while the crowd was judged
    /// (`idle_ratio`); of a fleet its workers (`played_by`).
    pub environment: BTreeMap<String, String>,
    /// The command that does the same by hand, against a server that runs.
    pub command: Option<String>,
    /// What was measured; `null` without a run folder.
    pub figures: Option<RunFigures>,
}

/// How a run of a cell ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It was not made yet, or was cut off; `--resume` makes it.
    #[default]
    Pending,
    /// Its figures count.
    Valid,
    /// The generator was the limit, or a search could not decide: no verdict.
    Invalid,
    /// The cell cannot be run on this machine.
    Skipped,
    /// The server did not start, or throng failed.
    Failed,
}

/// What a run measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// The seconds of the run that these figures are of: the hold.
    pub window_s: [f64; 2],
    /// Users that should have been served, mean.
    pub users: f64,
    /// User-seconds with good service ÷ user-seconds (docs/find.md); users that failed to join are
    /// bad. `null` for a search.
    pub served_ratio: Option<f64>,
    /// Which clauses made seconds of the hold bad, in a search those of the load that failed; the
    /// most frequent first.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// The largest crowd that was served well; 0 if none was. `null` for a hold.
    pub capacity: Option<u32>,
    /// The smallest crowd that was not; `null` for a hold, or if none failed.
    #[serde(default)]
    pub first_failing: Option<u32>,
    /// The verdict of the search, as in `summary.json`.
    pub capacity_verdict: Option<String>,
    /// Bits per second that the crowd received.
    pub received_bps: f64,
    /// CPU of the server's processes, in cores; `null` where it was not watched.
    pub server_cpu_cores: Option<f64>,
    /// Share of the host's CPU time idle, without waiting for I/O.
    pub idle_ratio: Option<f64>,
    /// Share of the host's CPU time idle while a task waited for I/O.
    pub iowait_ratio: Option<f64>,
    /// Bytes per second that the server's processes read from disks.
    pub disk_read_bytes_per_s: Option<f64>,
    /// Idle and iowait over the run.
    pub curves: Option<CpuCurves>,
    /// The functions with most CPU time in the profile of the loaded server; empty without a
    /// profile.
    pub hot_functions: Vec<HotFunction>,
    /// The verdict on the cause.
    pub verdict: CellVerdict,
    /// The finding; `null` if there is none.
    pub finding: Option<String>,
    /// The name of the thread that is the limit; `null` if it is none.
    #[serde(default)]
    pub thread: Option<String>,
    /// The setting that gives this thread room; `null` where none is known.
    #[serde(default)]
    pub setting: Option<String>,
    /// The finding as a sentence.
    pub title: String,
    /// Its score, 0 to 100.
    pub score: Option<f64>,
    /// Its first lines of evidence: counter, value at rest, under the load that passed, under the
    /// one that failed.
    pub evidence: Vec<String>,
}

/// CPU of the host over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCurves {
    /// The second at which each point begins.
    pub seconds: Vec<i64>,
    /// Share idle, without waiting for I/O.
    pub idle: Vec<Option<f64>>,
    /// Share idle while a task waited for I/O.
    pub iowait: Vec<Option<f64>>,
}

/// A function of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotFunction {
    /// Its name.
    pub function: String,
    /// The file that it is in.
    pub module: String,
    /// Its share of the samples.
    pub share: f64,
}

/// Means over the valid runs of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellMeans {
    /// See [`RunFigures::served_ratio`].
    pub served_ratio: Option<f64>,
    /// See [`RunFigures::capacity`].
    pub capacity: Option<f64>,
    /// See [`RunFigures::received_bps`].
    pub received_bps: Option<f64>,
    /// See [`RunFigures::server_cpu_cores`].
    pub server_cpu_cores: Option<f64>,
    /// See [`RunFigures::idle_ratio`].
    pub idle_ratio: Option<f64>,
    /// See [`RunFigures::iowait_ratio`].
    pub iowait_ratio: Option<f64>,
}

/// What the factors did to one measured quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixResponse {
    /// Its stable key: `served_ratio`, `capacity`, `server_cpu_cores`, `iowait_ratio`,
    /// `received_bps`.
    pub key: String,
    /// Its name.
    pub name: String,
    /// A difference below this does not matter, in the unit of the response.
    pub margin: f64,
    /// Standard deviation of a run; `null` without repeats.
    pub deviation: Option<f64>,
    /// Degrees of freedom of that.
    pub freedom: usize,
    /// The effect of each factor.
    pub effects: Vec<FactorEffect>,
    /// The interaction of each pair of factors.
    pub interactions: Vec<Interaction>,
}

/// What the answer ends with while runs are missing.
const NOT_FINISHED: &str = "; not finished";

impl MatrixReport {
    /// The same while runs are made: pairs that are made once more may follow those that are
    /// planned.
    #[must_use]
    pub fn in_progress(mut self) -> Self {
        if !self.partial {
            self.partial = true;
            self.headline.push_str(NOT_FINISHED);
        }
        self
    }

    /// The quantity that the report is about.
    pub(crate) fn service(&self) -> Quantity {
        match self.measure {
            MatrixMeasure::Hold => Quantity::Served,
            MatrixMeasure::Find => Quantity::Capacity,
        }
    }

    /// `matrix.json`: indented JSON with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

/// The figures of the valid runs of a cell.
fn valid(cell: &MatrixCell) -> impl Iterator<Item = &RunFigures> {
    let runs = cell.runs.iter().filter(|run| run.status == RunStatus::Valid);
    runs.filter_map(|run| run.figures.as_ref())
}

impl RunFigures {
    /// Its value of a quantity; `None` if it has none.
    pub(crate) fn value(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Served => self.served_ratio,
            Quantity::Capacity => self.capacity.map(f64::from),
            Quantity::Received => Some(self.received_bps),
            Quantity::ServerCpu => self.server_cpu_cores,
            Quantity::Iowait => self.iowait_ratio,
            // Those are of whole runs.
            Quantity::Metric { .. } | Quantity::ServerCpuPerUser | Quantity::ServerMemory => None,
        }
    }

    /// The limit that it names; `None` if service was good or no cause is named.
    pub(crate) fn limit(&self) -> Option<NamedLimit> {
        let finding = self.finding.clone().filter(|_| self.verdict.names_a_cause())?;
        Some(NamedLimit { finding, thread: self.thread.clone(), setting: self.setting.clone() })
    }
}

impl CellVerdict {
    /// Whether service failed and the cause is named, for sure or probably.
    #[must_use]
    pub fn names_a_cause(self) -> bool {
        matches!(self, Self::Bottleneck | Self::CoBottleneck | Self::Suspect)
    }

    /// In a few words, for cells without a finding.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Pending => "not run yet",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::Served => "served well",
            Self::Bottleneck => "bottleneck",
            Self::CoBottleneck => "two limits at once",
            Self::Suspect => "suspect",
            Self::Unattributed => "cause not found",
            Self::NotMonitored => "cause not known: not watched",
        }
    }
}

/// The JSON Schema of `matrix.json` (draft 2020-12), as kept in `docs/matrix.schema.json`.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(MatrixReport).to_value()
}
