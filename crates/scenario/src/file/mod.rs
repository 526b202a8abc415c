//! The schema of the scenario file: types for the JSON Schema and for writing TOML, which leaves
//! out what is `None`.

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

mod written;
pub(crate) use written::duration;

use crate::canary::Canary;
use crate::conversation::Conversation;
use crate::keys::Table;
use crate::room::RoomConfig;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::scenario::Cohort;
use crate::tap::Tap;
use crate::target::TargetTable;
use crate::watch::WatchTable;

/// A throng scenario: the server under load, the crowd, the run and its objectives.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "throng scenario", deny_unknown_fields)]
struct File {
    /// Objectives of the run: `metric [quantile] < threshold`, such as `video.loss p95 < 1%`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    objectives: Vec<String>,
    target: Table<TargetTable>,
    crowd: OneOrMany<Table<Cohort>>,
    #[schemars(default)]
    run: Table<RunTimes>,
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    stream: Table<Stream>,
    conversation: Option<Table<Conversation>>,
    room: Option<Table<RoomConfig>>,
    /// Processes that are monitored during the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<Table<WatchTable>>")]
    watch: Vec<Table<WatchTable>>,
    /// Participants whose received video is decoded, to validate the quality metrics.
    tap: Option<Table<Tap>>,
    /// Real browsers that join with the crowd, to validate the metrics of the virtual participants.
    canary: Option<Table<Canary>>,
    #[schemars(default)]
    output: Table<OutputConfig>,
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    caps: Table<Caps>,
}

/// One, or a list of several.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany<T> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

/// A duration: `100ms`, `1.5s`, `2m`, `1h30m`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Duration(
    #[schemars(regex(pattern = r"^\s*(\d+(\.\d*)?\s*(ns|us|µs|ms|s|m|min|h)\s*)+$"))] String,
);

/// A bit rate: `256kbit/s`, `1.5Mbit/s`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BitRate(
    #[schemars(regex(pattern = r"^\s*\d+(\.\d*)?\s*[kKMG]?(bit/s|bps)\s*$"))] String,
);

/// A rate above 0: `5/s`, `30/min`, `100/h`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rate(
    #[schemars(regex(pattern = r"^\s*(0*[1-9]\d*(\.\d*)?|0+\.\d*[1-9]\d*)\s*/(s|m|min|h)\s*$"))]
    String,
);

/// The JSON Schema (draft 2020-12) of the scenario file, for editors that support TOML.
#[must_use]
pub fn json_schema() -> Schema {
    schema_for!(File)
}
