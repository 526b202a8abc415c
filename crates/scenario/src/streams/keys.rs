//! `streams` of a cohort in a file.

use schemars::JsonSchema;
use serde::Serialize;
use throng_observation::seed;

use super::{STREAMS_MAX, StreamDistribution, Streams, ZIPF_MAX};
use crate::keys::{AsFile, SEED_MAX};
use crate::read::{Node, Reader, Value};

const EXAMPLE: &str =
    "a number of streams such as 10, or a table such as { count = 10, zipf = 1.0, seed = 1 }";

/// How they are read, written and described.
pub(crate) const STREAMS: AsFile<Streams, StreamsFile> = AsFile { read, write };

/// The streams that a cohort is distributed over.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum StreamsFile {
    /// Round robin over this number of streams.
    Even(#[schemars(range(min = 1, max = 100_000))] u32),
    /// With a distribution.
    Table(StreamsTable),
}

/// Streams, round robin or by Zipf's law.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StreamsTable {
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
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

fn write(streams: &Streams) -> StreamsFile {
    let count = streams.count();
    match streams.distribution() {
        StreamDistribution::RoundRobin => StreamsFile::Even(count),
        StreamDistribution::Zipf { exponent, seed } => {
            StreamsFile::Table(StreamsTable { count, zipf: Some(exponent), seed: Some(seed) })
        }
    }
}

fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<Streams> {
    let most = STREAMS_MAX.into();
    match node.value {
        Value::Integer(_) => {
            let count = reader.whole(node, path, 1, most)?;
            return Some(Streams::new(count, StreamDistribution::RoundRobin));
        }
        Value::Table(_) => {}
        _ => {
            let help = "write streams = 10 or streams = { count = 10, zipf = 1.0, seed = 1 }";
            reader.fail(node.span, format!("`{path}` is not {EXAMPLE}"), help);
            return None;
        }
    }
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let count: Option<u32> = reader.integer(&mut fields, "count", 1, most);
    reader.require(&fields, "count", "write for example count = 10");
    let zipf = fields.span_of("zipf");
    let exponent = reader.positive(&mut fields, "zipf");
    if exponent.is_some_and(|exponent| exponent > ZIPF_MAX) {
        let help = "write zipf = 1.0: the second stream then has half of the first one's viewers";
        reader.fail(zipf, format!("`{path}.zipf` is above {ZIPF_MAX}"), help);
    }
    let seed_span = fields.span_of("seed");
    let seed = reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(seed::USUAL);
    if seed_span.is_some() && zipf.is_none() {
        let message = format!("`{path}.seed` has no effect without `zipf`");
        reader.fail(seed_span, message, "remove seed, or add zipf");
    }
    reader.finish(&fields);
    let zipf = |exponent| StreamDistribution::Zipf { exponent, seed };
    Some(Streams::new(count?, exponent.map_or(StreamDistribution::RoundRobin, zipf)))
}
