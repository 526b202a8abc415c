//! Many runs of one scenario in the order of time: a figure of each, and where it changed.
//!
//! The arithmetic is in `throng_analysis::comparison::trend`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::comparison::trend::TrendMark;
use throng_analysis::comparison::{ComparisonVerdict, Direction};

use crate::html::OverTime;

mod summarise;
pub use summarise::summarise;

pub mod text;

#[cfg(test)]
mod tests;

/// The version of the shape of `trend.json`. Keys are only ever added within a version.
pub const TREND_VERSION: u32 = 1;

/// `throng trend --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendReport {
    /// Version of this shape, see `TREND_VERSION`.
    pub trend_version: u32,
    /// The answer in one sentence.
    pub headline: String,
    /// The runs, the oldest first.
    pub runs: Vec<TrendRun>,
    /// The share of a figure that does not matter.
    pub margin_ratio: f64,
    /// The quantities, those of the question first.
    pub quantities: Vec<TrendQuantity>,
    /// Whether the newest run is away from those before it, for the worse.
    pub newest_is_worse: bool,
    /// How changes are found, in sentences.
    pub method: Vec<String>,
    /// The throng that made this report.
    pub throng_version: String,
    /// How the newest of the runs went, in their order: of the page alone.
    #[serde(skip)]
    pub(crate) over_time: Vec<OverTime>,
}

/// A run of a trend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendRun {
    /// Its folder, as given.
    pub folder: String,
    /// Wall clock of its first intended join, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// The throng that made it.
    pub throng_version: String,
    /// Its answer in one sentence.
    pub headline: String,
    /// What limited the server (docs/findings.md); `null` if nothing failed.
    pub limit: Option<String>,
    /// Why its figures are shown, but neither judged nor a reference: it is partial or invalid, or
    /// of another machine or load than the newest run that counts. `null` if it counts.
    pub excluded: Option<String>,
    /// What changed with it: another version of throng, another target, another limit.
    pub remarks: Vec<String>,
}

/// A quantity over the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendQuantity {
    /// Its stable key, as in `compare.json`.
    pub key: String,
    /// Its name.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// In which direction it is better.
    pub better: Direction,
    /// The figure of each run, in the order of [`TrendReport::runs`]; `null` where a run has none.
    pub values: Vec<Option<f64>>,
    /// The median that each was compared with.
    pub medians: Vec<Option<f64>>,
    /// What each is against those before it.
    pub marks: Vec<TrendMark>,
    /// The changes, the oldest first.
    pub changes: Vec<TrendChange>,
}

/// A figure that is away from those before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendChange {
    /// The place of the run in [`TrendReport::runs`], from 0.
    pub run: usize,
    /// `change` or `outlier`.
    pub mark: TrendMark,
    /// Better or worse.
    pub verdict: ComparisonVerdict,
    /// The median before.
    pub from: f64,
    /// The figure.
    pub to: f64,
    /// How many deviations away (modified z-score); `null` if those before were all equal.
    pub score: Option<f64>,
}

impl TrendReport {
    /// `trend.json`: indented JSON with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

/// The JSON Schema of `trend.json` (draft 2020-12), as kept in `docs/trend.schema.json`.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(TrendReport).to_value()
}
