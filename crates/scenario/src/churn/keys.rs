//! `stay` and `reconnect` of a cohort in a file.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use throng_observation::seed;

use super::{Reconnect, Stay, StayTime};
use crate::file::{self, duration};
use crate::keys::Usual::{Required, Stored};
use crate::keys::{AsFile, Keyed, SEED_MAX, keys, time};
use crate::read::{Node, Reader, Value};
use crate::units;

impl Keyed for Reconnect {
    const NAME: &'static str = "ReconnectFile";
    const MEANING: &'static str = "The whole cohort leaves and joins again.";

    keys! {
        /// when they leave, from the start of the run
        "at": at = time("60s"), Required("write for example at = \"60s\"");
        /// the time over which they join again
        "within": within = time("2s"), Stored;
    }

    fn usual() -> Self {
        Self { at: Duration::ZERO, within: Duration::ZERO }
    }
}

const EXAMPLE: &str =
    "a duration such as \"30s\" or a table such as { mean = \"30s\", seed = 1, rejoin = true }";

/// How it is read, written and described.
pub(crate) const STAY: AsFile<Stay, StayFile> = AsFile { read, write };

/// The stay of each participant.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum StayFile {
    /// The same for all participants.
    Short(file::Duration),
    /// With all options.
    Table(StayTable),
}

/// `exactly` or `mean`, and whether participants that leave are replaced.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct StayTable {
    /// The same for all participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    exactly: Option<file::Duration>,
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<file::Duration>,
    /// Seed of the exponential stays; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
    /// A new participant joins when one leaves.
    #[schemars(default)]
    rejoin: bool,
}

fn write(stay: &Stay) -> StayFile {
    if let (StayTime::Constant(time), false) = (stay.time, stay.rejoin) {
        return StayFile::Short(duration(time));
    }
    let (exactly, mean, seed) = match stay.time {
        StayTime::Constant(time) => (Some(duration(time)), None, None),
        StayTime::Exponential { mean, seed } => (None, Some(duration(mean)), Some(seed)),
    };
    StayFile::Table(StayTable { exactly, mean, seed, rejoin: stay.rejoin })
}

fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<Stay> {
    let stay = if matches!(node.value, Value::Text(_)) {
        let text = reader.text(node, path, EXAMPLE)?;
        match units::duration(&text) {
            Ok(time) => Stay { time: StayTime::Constant(time), rejoin: false },
            Err(error) => {
                reader.fail(node.span, format!("`{path}`: {error}"), format!("write {EXAMPLE}"));
                return None;
            }
        }
    } else {
        stay_table(reader, node, path)?
    };
    if stay.mean() < Duration::from_secs(1) {
        reader.fail(node.span, format!("`{path}` is less than 1 s"), "write at least \"1s\"");
        return None;
    }
    Some(stay)
}

fn stay_table(reader: &mut Reader, node: &Node, path: &str) -> Option<Stay> {
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let is_present = (fields.get("exactly").is_some(), fields.get("mean").is_some());
    let exactly = reader.quantity(&mut fields, "exactly", "30s", units::duration);
    let mean = reader.quantity(&mut fields, "mean", "30s", units::duration);
    let seed_span = fields.span_of("seed");
    let seed = reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(seed::USUAL);
    let rejoin = reader.boolean(&mut fields, "rejoin").unwrap_or(false);
    reader.finish(&fields);
    let time = match is_present {
        (true, false) => {
            if seed_span.is_some() {
                let message = format!("`{path}.seed` has no effect: the stay is constant");
                reader.fail(seed_span, message, "remove seed, or write mean in place of exactly");
            }
            StayTime::Constant(exactly?)
        }
        (false, true) => StayTime::Exponential { mean: mean?, seed },
        _ => {
            let message = format!("`{path}` needs either `exactly` or `mean`");
            reader.fail(node.span, message, format!("write {EXAMPLE}"));
            return None;
        }
    };
    Some(Stay { time, rejoin })
}
