//! `arrival` of a cohort in a file.

use schemars::JsonSchema;
use serde::Serialize;
use throng_observation::seed;

use super::{ArrivalKind, Burst, Every, Jitter, Poisson, Ramp};
use crate::file::{Duration, duration};
use crate::keys::{AsFile, SEED_MAX};
use crate::read::{Fields, Node, Reader};
use crate::scenario::SIZE_MAX;
use crate::units;

const EXAMPLE: &str = "a table such as { every = \"100ms\" }, { ramp = \"60s\" }, { burst = { \
                       size = 50, every = \"10s\" } } or { poisson = { rate = \"5/s\", seed = 7 } \
                       }";

/// How it is read, written and described.
pub(crate) const ARRIVAL: AsFile<ArrivalKind, ArrivalFile> = AsFile { read, write };

/// The schedule of joins: exactly one kind.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ArrivalFile {
    /// At a regular interval.
    Every(EveryFile),
    /// Evenly spaced over a time.
    Ramp(RampFile),
    /// Groups that join at once.
    Burst(BurstsFile),
    /// A Poisson process.
    Poisson(PoissonArrivalFile),
}

/// Joins at a regular interval.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct EveryFile {
    /// Interval between joins, such as `100ms`.
    every: Duration,
    /// Each join comes later, by up to the interval, so that the joins meet all phases of what the
    /// server repeats.
    #[schemars(default = "yes")]
    jitter: bool,
    /// The same seed gives the same jitter; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

/// All joins evenly spaced over a time.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RampFile {
    /// The time until the crowd is complete, such as `60s`.
    ramp: Duration,
    /// Each join comes later, by up to the time between two of them.
    #[schemars(default = "yes")]
    jitter: bool,
    /// The same seed gives the same jitter; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

/// Groups that join at once.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BurstsFile {
    /// Size and interval of the groups.
    burst: BurstFile,
}

/// A Poisson process.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PoissonArrivalFile {
    /// Rate and seed.
    poisson: PoissonFile,
}

/// A rate: `5/s`, `30/min`, `100/h`.
#[derive(Serialize, JsonSchema)]
struct Rate(#[schemars(regex(pattern = r"^\s*\d+(\.\d*)?\s*/(s|m|min|h)\s*$"))] String);

/// Groups of `size` joins, `every` apart.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BurstFile {
    /// Joins per group.
    #[schemars(range(min = 1, max = 1_000_000))]
    size: u32,
    /// Between groups.
    every: Duration,
}

/// Poisson arrivals.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PoissonFile {
    /// Mean join rate, such as `5/s`.
    rate: Rate,
    /// The same seed gives the same arrivals; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = SEED_MAX))]
    seed: Option<u64>,
}

fn yes() -> bool {
    true
}

fn write(arrival: &ArrivalKind) -> ArrivalFile {
    match arrival {
        ArrivalKind::Every(Every { interval, jitter }) => ArrivalFile::Every(EveryFile {
            every: duration(*interval),
            jitter: jitter.is_some(),
            seed: jitter.map(|jitter| jitter.seed),
        }),
        ArrivalKind::Ramp(Ramp { over, jitter }) => ArrivalFile::Ramp(RampFile {
            ramp: duration(*over),
            jitter: jitter.is_some(),
            seed: jitter.map(|jitter| jitter.seed),
        }),
        ArrivalKind::Burst(burst) => ArrivalFile::Burst(BurstsFile {
            burst: BurstFile { size: burst.size, every: duration(burst.every) },
        }),
        ArrivalKind::Poisson(poisson) => ArrivalFile::Poisson(PoissonArrivalFile {
            poisson: PoissonFile {
                rate: Rate(format!("{}/s", poisson.rate_per_s)),
                seed: Some(poisson.seed),
            },
        }),
    }
}

fn read(reader: &mut Reader, node: &Node, path: &str) -> Option<ArrivalKind> {
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let present: Vec<&'static str> = ["every", "ramp", "burst", "poisson"]
        .into_iter()
        .filter(|kind| fields.get(kind).is_some())
        .collect();
    let of_jitter = fields.span_of("jitter").or(fields.span_of("seed"));
    reader.finish(&fields);
    if let (["burst" | "poisson"], Some(span)) = (present.as_slice(), of_jitter) {
        let message = format!("`{path}`: jitter and seed are of every and ramp");
        reader.fail(
            span,
            message,
            "remove it; the seed of a Poisson process stands in its own table",
        );
    }
    let kind = match present.as_slice() {
        ["every"] => {
            let interval = reader.quantity(&mut fields, "every", "100ms", units::duration)?;
            ArrivalKind::Every(Every { interval, jitter: jitter(reader, &mut fields) })
        }
        ["ramp"] => {
            let over = reader.quantity(&mut fields, "ramp", "60s", units::duration)?;
            ArrivalKind::Ramp(Ramp { over, jitter: jitter(reader, &mut fields) })
        }
        ["burst"] => burst(reader, &mut fields)?,
        ["poisson"] => poisson(reader, &mut fields)?,
        // `--set crowd.arrival.jitter=false` alone: of the default schedule.
        [] if of_jitter.is_some() => {
            let Every { interval, .. } = Every::default();
            ArrivalKind::Every(Every { interval, jitter: jitter(reader, &mut fields) })
        }
        _ => {
            let message =
                format!("`{path}` must have exactly one of every, ramp, burst and poisson");
            reader.fail(node.span, message, format!("write {EXAMPLE}"));
            return None;
        }
    };
    Some(kind)
}

/// The jitter of a regular schedule. A scenario that was stored without the key ran without.
fn jitter(reader: &mut Reader, arrival: &mut Fields<'_>) -> Option<Jitter> {
    let is_on = reader.boolean(arrival, "jitter").unwrap_or(!reader.is_stored());
    let span = arrival.span_of("seed");
    let seed = reader.integer(arrival, "seed", 0, SEED_MAX).unwrap_or(Jitter::default().seed);
    if !is_on && span.is_some() {
        let message = format!("`{}` has no effect: there is no jitter", arrival.path_of("seed"));
        reader.fail(span, message, "remove seed, or jitter = false");
    }
    is_on.then_some(Jitter { seed })
}

fn burst(reader: &mut Reader, arrival: &mut Fields<'_>) -> Option<ArrivalKind> {
    let mut fields = reader.section(arrival, "burst");
    let size = reader.integer(&mut fields, "size", 1, SIZE_MAX);
    let every = reader.quantity(&mut fields, "every", "10s", units::duration);
    let has_both = fields.get("size").is_some() && fields.get("every").is_some();
    if !has_both {
        let message = format!("`{}` needs both size and every", fields.path);
        reader.fail(fields.span, message, "write burst = { size = 50, every = \"10s\" }");
    }
    reader.finish(&fields);
    Some(ArrivalKind::Burst(Burst { size: size?, every: every? }))
}

fn poisson(reader: &mut Reader, arrival: &mut Fields<'_>) -> Option<ArrivalKind> {
    let mut fields = reader.section(arrival, "poisson");
    let span = fields.span_of("rate").or(fields.span);
    let rate = reader.quantity(&mut fields, "rate", "5/s", units::rate_per_s);
    if fields.get("rate").is_none() || rate.is_some_and(|rate| rate <= 0.0) {
        let message = format!("`{}` needs a rate above 0", fields.path);
        reader.fail(span, message, "write poisson = { rate = \"5/s\", seed = 7 }");
        return None;
    }
    let seed = reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(seed::USUAL);
    reader.finish(&fields);
    Some(ArrivalKind::Poisson(Poisson { rate_per_s: rate?, seed }))
}
