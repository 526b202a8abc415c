//! `streams` of a cohort in the file.

use schemars::JsonSchema;
use serde::Serialize;

use crate::streams::{StreamDistribution, Streams};

/// The streams that a cohort is distributed over.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum StreamsFile {
    /// Round robin over this number of streams.
    Even(#[schemars(range(min = 1, max = 100_000))] u32),
    /// With a distribution.
    Table(StreamsTable),
}

/// Streams, round robin or by Zipf's law.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct StreamsTable {
    /// Number of streams.
    #[schemars(range(min = 1, max = 100_000))]
    count: u32,
    /// The exponent of Zipf's law, such as 1.0: stream `k` has a share proportional to 1 / (`k` +
    /// 1)^`zipf`. Default: round robin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 5))]
    zipf: Option<f64>,
    /// Seed of the random distribution; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::keys::SEED_MAX))]
    seed: Option<u64>,
}

pub(super) fn streams(streams: &Streams) -> StreamsFile {
    let count = streams.count();
    match streams.distribution() {
        StreamDistribution::RoundRobin => StreamsFile::Even(count),
        StreamDistribution::Zipf { exponent, seed } => {
            StreamsFile::Table(StreamsTable { count, zipf: Some(exponent), seed: Some(seed) })
        }
    }
}
