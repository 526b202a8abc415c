//! `arrival` of a cohort in a file.

use std::marker::PhantomData;
use std::time::Duration;

use schemars::SchemaGenerator;
use serde_json::{Map, Value as Json, json};
use throng_observation::seed;

use super::{ArrivalKind, Burst, Every, Jitter, Poisson, Ramp};
use crate::keys::Usual::{Required, Stored};
use crate::keys::{
    By, Flag, Form as _, Inner, Keyed, SEED_MAX, Whole, keys, rate, time, time_schema,
};
use crate::read::{Fields, Reader};
use crate::scenario::SIZE_MAX;
use crate::units;

const EXAMPLE: &str = "a table such as { every = \"100ms\" }, { ramp = \"60s\" }, { burst = { \
                       size = 50, every = \"10s\" } } or { poisson = { rate = \"5/s\", seed = 7 } \
                       }";

/// How it is read, written and described: exactly one kind.
pub(crate) const ARRIVAL: By<ArrivalKind> = By { read, write, schema };

const BURST: Inner = Inner("a table such as { size = 50, every = \"10s\" }");
const POISSON: Inner = Inner("a table such as { rate = \"5/s\", seed = 7 }");

impl Keyed for Burst {
    const NAME: &'static str = "BurstFile";
    const MEANING: &'static str = "Groups of `size` joins at once, `every` apart.";

    keys! {
        /// joins per group
        "size": size = Whole(1, SIZE_MAX),
            Required("write burst = { size = 50, every = \"10s\" }");
        /// between groups
        "every": every = time("10s"), Required("write burst = { size = 50, every = \"10s\" }");
    }

    fn usual() -> Self {
        Self { size: 1, every: Duration::ZERO }
    }
}

impl Keyed for Poisson {
    const NAME: &'static str = "PoissonFile";
    const MEANING: &'static str = "A Poisson process.";

    keys! {
        /// mean join rate
        "rate": rate_per_s = rate("5/s"),
            Required("write poisson = { rate = \"5/s\", seed = 7 }");
        /// the same seed gives the same arrivals
        "seed": seed = Whole(0, SEED_MAX), Stored;
    }

    fn usual() -> Self {
        Self { rate_per_s: 1.0, seed: seed::USUAL }
    }
}

fn write(arrival: &ArrivalKind) -> Option<Json> {
    match arrival {
        ArrivalKind::Every(every) => Some(regular("every", every.interval, every.jitter)),
        ArrivalKind::Ramp(ramp) => Some(regular("ramp", ramp.over, ramp.jitter)),
        ArrivalKind::Burst(burst) => Some(json!({ "burst": BURST.write(burst)? })),
        ArrivalKind::Poisson(poisson) => Some(json!({ "poisson": POISSON.write(poisson)? })),
    }
}

fn regular(kind: &str, time: Duration, jitter: Option<Jitter>) -> Json {
    let mut table = Map::new();
    table.insert(kind.into(), units::write_duration(time).into());
    table.insert("jitter".into(), jitter.is_some().into());
    table.extend(jitter.map(|jitter| ("seed".into(), jitter.seed.into())));
    table.into()
}

fn schema(generator: &mut SchemaGenerator) -> Json {
    let every = "Joins at a regular interval, such as `100ms`.";
    let ramp = "All joins evenly spaced over a time, such as `60s`.";
    let burst = BURST.schema(PhantomData::<Burst>, generator);
    let poisson = POISSON.schema(PhantomData::<Poisson>, generator);
    let only = |kind: &str, schema: Json| {
        json!({
            "type": "object",
            "properties": { kind: schema },
            "required": [kind],
            "additionalProperties": false,
        })
    };
    json!({ "anyOf": [
        regular_schema(("every", every), &[], generator),
        regular_schema(("ramp", ramp), &["ramp"], generator),
        only("burst", burst),
        only("poisson", poisson),
    ] })
}

/// That of a regular schedule. Jitter and seed alone are those of the usual one.
fn regular_schema(
    (kind, meaning): (&str, &str),
    required: &[&str],
    generator: &mut SchemaGenerator,
) -> Json {
    let mut jitter = Flag.schema(PhantomData, generator);
    let mut seed = Whole(0, SEED_MAX).schema(PhantomData::<u64>, generator);
    for (schema, meaning, default) in [
        (&mut jitter, "each join comes later, by up to the time between two", json!(true)),
        (&mut seed, "the same seed gives the same jitter", json!(seed::USUAL)),
    ] {
        if let Json::Object(schema) = schema {
            schema.insert("description".into(), meaning.into());
            schema.insert("default".into(), default);
        }
    }
    json!({
        "description": meaning,
        "type": "object",
        "properties": { kind: time_schema(generator), "jitter": jitter, "seed": seed },
        "required": required,
        "minProperties": 1,
        "dependentSchemas": { "seed": { "properties": { "jitter": { "const": true } } } },
        "additionalProperties": false,
    })
}

fn read(reader: &mut Reader, cohort: &mut Fields<'_>, key: &'static str) -> Option<ArrivalKind> {
    let path = cohort.path_of(key);
    let node = cohort.get(key)?;
    let mut fields = reader.table(node, &path, EXAMPLE)?;
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
        ["burst"] => ArrivalKind::Burst(BURST.read(reader, &mut fields, "burst")?),
        ["poisson"] => ArrivalKind::Poisson(POISSON.read(reader, &mut fields, "poisson")?),
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
