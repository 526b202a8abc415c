//! `streams` of a cohort as it is written.

use schemars::JsonSchema;
use serde::Serialize;

use crate::streams::{Spread, Streams};

/// Over how many streams a cohort is spread.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum StreamsFile {
    /// In turn over so many.
    Even(#[schemars(range(min = 1, max = 100_000))] u32),
    /// With all its choices.
    Table(StreamsTable),
}

/// So many streams, in turn or by Zipf's law.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct StreamsTable {
    /// How many.
    #[schemars(range(min = 1, max = 100_000))]
    count: u32,
    /// The exponent of Zipf's law, such as 1.0: stream `k` has a share proportional to 1 / (`k` + 1)^`zipf`. In turn when
    /// left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 5))]
    zipf: Option<f64>,
    /// Seed of the draw; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

pub(super) fn streams(streams: &Streams) -> StreamsFile {
    let count = streams.count();
    match streams.spread() {
        Spread::Even => StreamsFile::Even(count),
        Spread::Zipf { exponent, seed } => {
            StreamsFile::Table(StreamsTable { count, zipf: Some(exponent), seed: Some(seed) })
        }
    }
}
