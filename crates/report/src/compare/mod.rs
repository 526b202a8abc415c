//! Two sides of runs compared: what became better or worse, with intervals, and whether they may be
//! compared at all.
//!
//! ```text
//! run.db -> MeasuredRun (one at a time)
//! both sides -> CompareReport -> text, compare.json, page, JUnit
//! ```
//! The arithmetic is in `throng_analysis::comparison`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::comparison::machines::FactDifference;
use throng_analysis::comparison::{Basis, ComparisonVerdict, Direction};

use crate::html::OverTime;

mod rows;
pub use rows::CompareRows;

mod measured;
pub use measured::MeasuredRun;

mod sides;
pub(crate) use sides::{machine_differences, scenario_differences};

mod summarise;
pub use summarise::{CompareOptions, summarise};

mod junit;
pub use junit::suite;

pub mod text;

#[cfg(test)]
pub(crate) mod tests;

/// The version of the shape of `compare.json`. Keys are only ever added within a version.
pub const COMPARE_VERSION: u32 = 1;

/// `throng compare --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareReport {
    /// Version of this shape, see `COMPARE_VERSION`.
    pub compare_version: u32,
    /// The answer.
    pub outcome: CompareOutcome,
    /// The answer in one sentence.
    pub headline: String,
    /// Why the sides cannot be compared; empty if they can.
    pub refusals: Vec<String>,
    /// The side that is compared with.
    pub base: CompareSide,
    /// The side that is judged.
    pub new: CompareSide,
    /// The share of the base's figure that does not matter.
    pub margin_ratio: f64,
    /// The quantities that both sides measured, those of the question first: the capacity or the
    /// service, and the objectives.
    pub quantities: Vec<ComparedQuantity>,
    /// The objectives that both sides have.
    pub objectives: Vec<ComparedObjective>,
    /// What one side lacks, in sentences.
    pub not_compared: Vec<String>,
    /// What limited each side, and whether that moved.
    pub limits: ComparedLimits,
    /// Facts in which the machines differ.
    pub machine_differences: Vec<FactDifference>,
    /// Keys in which the scenarios differ.
    pub scenario_differences: Vec<ScenarioDifference>,
    /// What a reader must know, in sentences.
    pub notes: Vec<String>,
    /// How the figures were made, in sentences.
    pub method: Vec<String>,
    /// The throng that made this report.
    pub throng_version: String,
    /// How the first runs of the base and of the new side went: of the page alone.
    #[serde(skip)]
    pub(crate) over_time: [Vec<OverTime>; 2],
}

/// The answer of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareOutcome {
    /// Nothing is worse, and what was asked is better.
    Better,
    /// Nothing is worse, and what was asked is the same.
    Same,
    /// Nothing is worse, and what was asked is not decided.
    NotDecided,
    /// Something is worse.
    Worse,
    /// The sides cannot be compared.
    #[default]
    NotComparable,
}

/// One side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareSide {
    /// Its runs.
    pub runs: Vec<ComparedRun>,
    /// Runs that count.
    pub usable_runs: usize,
}

/// A run of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Its folder, as given.
    pub folder: String,
    /// Wall clock of its first intended join, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// The throng that made it.
    pub throng_version: String,
    /// The target's URL, without secrets.
    pub target: String,
    /// Its answer in one sentence.
    pub headline: String,
    /// Why it does not count: it is partial, or its generator was the limit; `null` if it counts.
    pub excluded: Option<String>,
}

/// A quantity of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedQuantity {
    /// Its stable key: `capacity`, `served_ratio`, `video.delay p95`, `server_cpu_ms_per_user_s`, …
    pub key: String,
    /// Its name.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// In which direction it is better.
    pub better: Direction,
    /// Whether it is what was asked: the capacity or the service, or an objective. The answer needs
    /// a decision on these.
    pub is_asked: bool,
    /// Mean over the runs of the base; `null` if it was never reached.
    pub base: Option<f64>,
    /// Mean over the new runs.
    pub new: Option<f64>,
    /// New − base.
    pub difference: Option<f64>,
    /// The same as a share of the base; `null` if the base is 0.
    pub difference_ratio: Option<f64>,
    /// 95 % interval of the difference; `null` without a basis for one.
    pub interval: Option<[f64; 2]>,
    /// Where the interval comes from.
    pub interval_from: Basis,
    /// How large a difference does not matter, in the unit of the quantity.
    pub margin: f64,
    /// The p-value after Holm's correction for the number of quantities.
    pub p_corrected: Option<f64>,
    /// Better, the same or worse.
    pub verdict: ComparisonVerdict,
    /// The figure of each run of the base that counts, in their order; `null` where it was never
    /// reached.
    pub base_runs: Vec<Option<f64>>,
    /// The same of the new side.
    pub new_runs: Vec<Option<f64>>,
    /// Why nothing was decided, if there is a reason to name.
    pub note: Option<String>,
}

/// An objective of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedObjective {
    /// As the scenario writes it.
    pub text: String,
    /// The key of its quantity.
    pub quantity: String,
    /// Runs of the base that met it, and runs that count.
    pub base_met: [usize; 2],
    /// The same of the new side.
    pub new_met: [usize; 2],
    /// Whether its quantity became better or worse.
    pub verdict: ComparisonVerdict,
}

/// What limited each side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedLimits {
    /// The finding that most runs of the base name (docs/findings.md); `null` if nothing failed.
    pub base: Option<String>,
    /// The same of the new side.
    pub new: Option<String>,
    /// In a sentence: whether the limit moved. `null` if nothing failed on either side.
    pub statement: Option<String>,
}

/// A key in which the scenarios differ.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct ScenarioDifference {
    /// The key, or `media PATH` for a published file with other contents.
    pub key: String,
    /// Its value in the first run of the base; `null` if it is absent.
    pub base: Option<String>,
    /// Its value in another run.
    pub new: Option<String>,
    /// Whether it changes the load: then the sides had other crowds, and a difference need not come
    /// from the server.
    pub changes_load: bool,
}

impl CompareReport {
    /// `compare.json`: indented JSON with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

impl CompareOutcome {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "same",
            Self::NotDecided => "not decided",
            Self::Worse => "worse",
            Self::NotComparable => "not comparable",
        }
    }
}

/// The JSON Schema of `compare.json` (draft 2020-12), as kept in `docs/compare.schema.json`.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(CompareReport).to_value()
}
