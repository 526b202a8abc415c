//! Reads `[crowd]`, or several `[[crowd]]`: size, arrival, stay.

use std::collections::HashSet;
use std::time::Duration;

use throng_observation::seed;

use super::fields::{Fields, Form, Reader};
use super::tree::{Node, Span, Value};
use super::{destination, role, target};
use crate::arrival::{ArrivalKind, Burst, Every, Jitter, Poisson, Ramp};
use crate::churn::{Stay, StayTime};
use crate::keys::{self, SEED_MAX};
use crate::scenario::Cohort;
use crate::units;

/// More cohorts than a report could show.
const COHORTS_MAX: usize = 100;
/// More participants than one run could hold in memory.
pub(super) const SIZE_MAX: u64 = 1_000_000;

/// Locations of a cohort's values that are checked against others.
#[derive(Clone, Copy, Debug)]
pub(super) struct CohortSpans {
    pub(super) cohort: Span,
    /// Of the size, or of the cohort.
    pub(super) size: Span,
    /// Of the arrival, or of the cohort.
    pub(super) arrival: Span,
    pub(super) stay: Option<Span>,
    pub(super) url: Option<Span>,
    pub(super) streams: Option<Span>,
    pub(super) player: Option<Span>,
    pub(super) chat: Option<super::chat::ChatSpans>,
    pub(super) publish: Option<Span>,
    /// `publish.codec` says VP8.
    pub(super) has_vp8: bool,
}

/// Reads `[crowd]`; a cohort without a name gets `default_name`.
pub(super) fn crowd(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    default_name: &str,
) -> (Vec<Cohort>, Vec<CohortSpans>) {
    let (mut cohorts, mut spans) = (Vec::new(), Vec::new());
    let Some(node) = top.get("crowd") else {
        reader.fail(
            None,
            "`crowd.size` is missing",
            "write [crowd] and under it for example size = 100",
        );
        return (cohorts, spans);
    };
    let (items, is_list): (&[Node], bool) = match &node.value {
        Value::List(items) => (items, true),
        _ => (std::slice::from_ref(node), false),
    };
    if items.is_empty() || items.len() > COHORTS_MAX {
        let message = format!("`crowd` has {} cohorts", items.len());
        reader.fail(node.span, message, format!("write 1 to {COHORTS_MAX} [[crowd]] tables"));
        return (cohorts, spans);
    }
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = if is_list { path_of(item, index) } else { "crowd".into() };
        let Some(mut fields) = reader.table(item, &path, "a table `[crowd]`") else { continue };
        let default_name =
            if items.len() > 1 { format!("crowd {}", index + 1) } else { default_name.into() };
        let name_node = fields.get("name");
        let name =
            name_node.and_then(|node| reader.text(node, &path, "text")).unwrap_or(default_name);
        let is_short =
            (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control);
        if !is_short || !names.insert(name.clone()) {
            let message = format!("`{path}.name` must be unique and have 1 to 64 characters");
            let span = name_node.map_or(item.span, |node| node.span);
            reader.fail(span, message, "give each [[crowd]] its own name");
        }
        spans.push(CohortSpans {
            cohort: item.span,
            size: fields.span_of("size").unwrap_or(item.span),
            arrival: fields.span_of("arrival").unwrap_or(item.span),
            stay: fields.span_of("stay"),
            url: fields.span_of("url"),
            streams: fields.span_of("streams"),
            player: fields.span_of("player"),
            chat: super::chat::ChatSpans::of(&mut fields),
            publish: fields.span_of("publish"),
            has_vp8: fields.get("publish").is_some_and(says_vp8),
        });
        cohorts.extend(cohort(reader, &mut fields, name));
        reader.finish(&fields);
    }
    (cohorts, spans)
}

fn says_vp8(publish: &Node) -> bool {
    let Value::Table(entries) = &publish.value else { return false };
    let is_vp8 = |node: &Node| matches!(&node.value, Value::Text(name) if name == "vp8");
    entries.iter().any(|entry| entry.key == "codec" && is_vp8(&entry.node))
}

/// The path of a cohort in a list: by its name, as in overrides and reports, else by its index.
fn path_of(item: &Node, index: usize) -> String {
    let name = match &item.value {
        Value::Table(entries) => entries.iter().find(|entry| entry.key == "name"),
        _ => None,
    };
    match name.map(|entry| &entry.node.value) {
        Some(Value::Text(name)) if (1..=64).contains(&name.chars().count()) => {
            format!("crowd.{name}")
        }
        _ => format!("crowd.{index}"),
    }
}

fn cohort(reader: &mut Reader, fields: &mut Fields<'_>, name: String) -> Option<Cohort> {
    if fields.lacks("size") {
        let message = format!("`{}` is missing", fields.path_of("size"));
        reader.fail(fields.span, message, "write for example size = 100");
    }
    let size = reader.integer(fields, "size", 1, SIZE_MAX);
    let arrival_path = fields.path_of("arrival");
    let arrival = match fields.get("arrival") {
        Some(node) => arrival(reader, node, &arrival_path),
        None => Some(ArrivalKind::default()),
    };
    let starts_at =
        reader.quantity(fields, "starts_at", "10m", units::duration).unwrap_or_default();
    let stay_path = fields.path_of("stay");
    let stay = fields.get("stay").and_then(|node| stay(reader, node, &stay_path));
    let expected = "a list of addresses such as [\"127.0.0.2-127.0.0.20\"]";
    let source_ips = reader.networks(fields, "source_ips", expected);
    let url_path = fields.path_of("url");
    let target = fields.get("url").and_then(|node| target::target_url(reader, node, &url_path));
    let streams = destination::streams(reader, fields);
    let role = role::role(reader, fields);
    let expected = "a table such as { at = \"60s\", within = \"2s\" }";
    let reconnect = keys::optional(reader, fields, "reconnect", expected);
    Some(Cohort {
        name,
        size: size?,
        arrival: arrival?,
        starts_at,
        stay,
        source_ips,
        streams,
        target,
        role,
        reconnect,
    })
}

const ARRIVAL: &str = "a table such as { every = \"100ms\" }, { ramp = \"60s\" }, { burst = { \
                       size = 50, every = \"10s\" } } or { poisson = { rate = \"5/s\", seed = 7 } \
                       }";

fn arrival(reader: &mut Reader, node: &Node, path: &str) -> Option<ArrivalKind> {
    let mut fields = reader.table(node, path, ARRIVAL)?;
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
            reader.fail(node.span, message, format!("write {ARRIVAL}"));
            return None;
        }
    };
    Some(kind)
}

/// The jitter of a regular schedule. A scenario that was stored without the key ran without.
fn jitter(reader: &mut Reader, arrival: &mut Fields<'_>) -> Option<Jitter> {
    let is_on = reader.boolean(arrival, "jitter").unwrap_or(reader.form != Form::Written);
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

const STAY: &str =
    "a duration such as \"30s\" or a table such as { mean = \"30s\", seed = 1, rejoin = true }";

fn stay(reader: &mut Reader, node: &Node, path: &str) -> Option<Stay> {
    let stay = if matches!(node.value, Value::Text(_)) {
        let text = reader.text(node, path, STAY)?;
        match units::duration(&text) {
            Ok(time) => Stay { time: StayTime::Constant(time), rejoin: false },
            Err(error) => {
                reader.fail(node.span, format!("`{path}`: {error}"), format!("write {STAY}"));
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
    let mut fields = reader.table(node, path, STAY)?;
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
            reader.fail(node.span, message, format!("write {STAY}"));
            return None;
        }
    };
    Some(Stay { time, rejoin })
}
