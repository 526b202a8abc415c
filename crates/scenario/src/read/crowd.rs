//! Reads `[crowd]`, or several `[[crowd]]`: size, arrival, stay.

use std::collections::HashSet;
use std::time::Duration;

use super::fields::{Fields, Reader};
use super::tree::{Node, Span, Value};
use super::{destination, is_text, place_of, ranges, role};
use crate::arrival::{ArrivalKind, Burst, Every, Poisson, Ramp};
use crate::churn::{Reconnect, Stay, StayTime};
use crate::scenario::Cohort;
use crate::units;

/// More cohorts than a report could show.
const COHORTS_MAX: usize = 100;
/// More participants than one run could hold in memory.
pub(super) const SIZE_MAX: u64 = 1_000_000;
/// Seeds that TOML can write.
pub(super) const SEED_MAX: u64 = i64::MAX as u64;

/// Places of sizes, arrivals and stays by cohort, and of own URLs and streams.
pub(super) type CrowdPlaces =
    (Vec<Option<Span>>, Vec<Option<Span>>, Vec<Option<Span>>, Vec<DestinationPlaces>);

/// Where a cohort says its own URL, and its streams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DestinationPlaces {
    pub(super) cohort: Option<Span>,
    pub(super) url: Option<Span>,
    pub(super) streams: Option<Span>,
}

/// Reads `[crowd]`; a cohort without a name is called `usual`.
pub(super) fn crowd(reader: &mut Reader, top: &mut Fields<'_>, usual: &str) -> (Vec<Cohort>, CrowdPlaces) {
    let mut cohorts: Vec<Cohort> = Vec::new();
    let mut places = CrowdPlaces::default();
    let Some(node) = top.get("crowd") else {
        reader.fail(None, "`crowd.size` is missing", "write [crowd] and under it for example size = 100");
        return (cohorts, places);
    };
    let (items, is_list): (&[Node], bool) = match &node.value {
        Value::List(items) => (items, true),
        _ => (std::slice::from_ref(node), false),
    };
    if items.is_empty() || items.len() > COHORTS_MAX {
        let message = format!("{} cohorts", items.len());
        reader.fail(Some(node.span), message, format!("write one to {COHORTS_MAX} [[crowd]] tables"));
        return (cohorts, places);
    }
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = if is_list { path_of(item, index) } else { "crowd".into() };
        let Some(mut fields) = reader.table(item, &path, "a table `[crowd]`") else { continue };
        let default_name = if items.len() > 1 { format!("crowd {}", index + 1) } else { usual.into() };
        let name_node = fields.get("name");
        let name = name_node.and_then(|node| reader.text(node, &path, "text")).unwrap_or(default_name);
        let is_short = (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control);
        if !is_short || !names.insert(name.clone()) {
            let span = place_of(name_node).or(Some(item.span));
            reader.fail(
                span,
                "a name must be new and have 1 to 64 characters",
                "give each [[crowd]] its own name",
            );
        }
        places.0.push(place_of(fields.get("size")).or(Some(item.span)));
        places.1.push(place_of(fields.get("arrival")).or(Some(item.span)));
        places.2.push(place_of(fields.get("stay")));
        let (url, streams) = (place_of(fields.get("url")), place_of(fields.get("streams")));
        places.3.push(DestinationPlaces { cohort: Some(item.span), url, streams });
        cohorts.extend(cohort(reader, &mut fields, name));
        reader.finish(&fields);
    }
    (cohorts, places)
}

/// The path of a cohort in a list, by its name where it has one: so it is called in overrides and reports.
fn path_of(item: &Node, index: usize) -> String {
    let name = match &item.value {
        Value::Table(entries) => entries.iter().find(|entry| entry.key == "name"),
        _ => None,
    };
    match name.map(|entry| &entry.node.value) {
        Some(Value::Text(name)) if (1..=64).contains(&name.chars().count()) => format!("crowd.{name}"),
        _ => format!("crowd.{index}"),
    }
}

fn cohort(reader: &mut Reader, fields: &mut Fields<'_>, name: String) -> Option<Cohort> {
    if fields.lacks("size") {
        let message = format!("`{}` is missing", fields.path_of("size"));
        reader.fail(fields.span, message, "write for example size = 100");
    }
    let size = reader.integer(fields, "size", 1, SIZE_MAX).and_then(|size| u32::try_from(size).ok());
    let arrival_path = fields.path_of("arrival");
    let arrival = match fields.get("arrival") {
        Some(node) => arrival(reader, node, &arrival_path),
        None => Some(ArrivalKind::default()),
    };
    let stay_path = fields.path_of("stay");
    let stay = fields.get("stay").and_then(|node| stay(reader, node, &stay_path));
    let source_ips = ranges(reader, fields);
    let url_path = fields.path_of("url");
    let target = fields.get("url").and_then(|node| destination::target(reader, node, &url_path));
    let streams = destination::streams(reader, fields);
    let role = role::role(reader, fields);
    let reconnect = reconnect(reader, fields);
    Some(Cohort { name, size: size?, arrival: arrival?, stay, source_ips, streams, target, role, reconnect })
}

fn reconnect(reader: &mut Reader, cohort: &mut Fields<'_>) -> Option<Reconnect> {
    let path = cohort.path_of("reconnect");
    let node = cohort.get("reconnect")?;
    let mut fields = reader.table(node, &path, "a table such as { at = \"60s\", within = \"2s\" }")?;
    let at = reader.quantity(&mut fields, "at", "60s", units::duration);
    let within = reader.quantity(&mut fields, "within", "2s", units::duration).unwrap_or_default();
    if fields.get("at").is_none() {
        reader.fail(Some(node.span), format!("`{path}.at` is missing"), "write for example at = \"60s\"");
    }
    reader.finish(&fields);
    Some(Reconnect { at: at?, within })
}

const ARRIVAL: &str = "a table such as { every = \"100ms\" }, { ramp = \"60s\" }, { burst = { size = 50, every = \"10s\" } } or { poisson = { rate = \"5/s\", seed = 7 } }";

fn arrival(reader: &mut Reader, node: &Node, path: &str) -> Option<ArrivalKind> {
    let mut fields = reader.table(node, path, ARRIVAL)?;
    let present: Vec<&'static str> =
        ["every", "ramp", "burst", "poisson"].into_iter().filter(|way| fields.get(way).is_some()).collect();
    reader.finish(&fields);
    let kind = match present.as_slice() {
        ["every"] => ArrivalKind::Every(Every {
            interval: reader.quantity(&mut fields, "every", "100ms", units::duration)?,
        }),
        ["ramp"] => {
            ArrivalKind::Ramp(Ramp { over: reader.quantity(&mut fields, "ramp", "60s", units::duration)? })
        }
        ["burst"] => burst(reader, &mut fields)?,
        ["poisson"] => poisson(reader, &mut fields)?,
        _ => {
            reader.fail(
                Some(node.span),
                format!("`{path}` must name exactly one way"),
                format!("write {ARRIVAL}"),
            );
            return None;
        }
    };
    Some(kind)
}

fn burst(reader: &mut Reader, arrival: &mut Fields<'_>) -> Option<ArrivalKind> {
    let mut fields = reader.section(arrival, "burst");
    let size = reader.integer(&mut fields, "size", 1, SIZE_MAX).and_then(|size| u32::try_from(size).ok());
    let every = reader.quantity(&mut fields, "every", "10s", units::duration);
    let has_both = fields.get("size").is_some() && fields.get("every").is_some();
    if !has_both {
        reader.fail(
            fields.span,
            "a burst needs size and every",
            "write burst = { size = 50, every = \"10s\" }",
        );
    }
    reader.finish(&fields);
    Some(ArrivalKind::Burst(Burst { size: size?, every: every? }))
}

fn poisson(reader: &mut Reader, arrival: &mut Fields<'_>) -> Option<ArrivalKind> {
    let mut fields = reader.section(arrival, "poisson");
    let place = place_of(fields.get("rate")).or(fields.span);
    let rate = reader.quantity(&mut fields, "rate", "5/s", units::rate_per_s);
    if fields.get("rate").is_none() || rate.is_some_and(|rate| rate <= 0.0) {
        reader.fail(
            place,
            "Poisson arrivals need a rate above 0",
            "write poisson = { rate = \"5/s\", seed = 7 }",
        );
        return None;
    }
    let seed = reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(1);
    reader.finish(&fields);
    Some(ArrivalKind::Poisson(Poisson { rate_per_s: rate?, seed }))
}

const STAY: &str =
    "a duration such as \"30s\" or a table such as { mean = \"30s\", seed = 1, rejoin = true }";

fn stay(reader: &mut Reader, node: &Node, path: &str) -> Option<Stay> {
    let stay = if is_text(node) {
        let text = reader.text(node, path, STAY)?;
        match units::duration(&text) {
            Ok(time) => Stay { time: StayTime::Exactly(time), rejoin: false },
            Err(error) => {
                reader.fail(Some(node.span), format!("`{path}`: {error}"), format!("write {STAY}"));
                return None;
            }
        }
    } else {
        stay_table(reader, node, path)?
    };
    if stay.mean() < Duration::from_secs(1) {
        reader.fail(Some(node.span), format!("`{path}` is shorter than 1 s"), "write at least \"1s\"");
        return None;
    }
    Some(stay)
}

fn stay_table(reader: &mut Reader, node: &Node, path: &str) -> Option<Stay> {
    let mut fields = reader.table(node, path, STAY)?;
    let is_present = (fields.get("exactly").is_some(), fields.get("mean").is_some());
    let exactly = reader.quantity(&mut fields, "exactly", "30s", units::duration);
    let mean = reader.quantity(&mut fields, "mean", "30s", units::duration);
    let seed_place = place_of(fields.get("seed"));
    let seed = reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(1);
    let rejoin = reader.boolean(&mut fields, "rejoin").unwrap_or(false);
    reader.finish(&fields);
    let time = match is_present {
        (true, false) => {
            if seed_place.is_some() {
                reader.fail(seed_place, "an exact stay draws nothing, so a seed does nothing", "remove seed");
            }
            StayTime::Exactly(exactly?)
        }
        (false, true) => StayTime::Exponential { mean: mean?, seed },
        _ => {
            let message = format!("`{path}` needs either `exactly` or `mean`");
            reader.fail(Some(node.span), message, format!("write {STAY}"));
            return None;
        }
    };
    Some(Stay { time, rejoin })
}
