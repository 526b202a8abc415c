//! Reads the file of a proof: `[[variant]]` tables, the first of which is the baseline, or
//! `[shrink]`.

use std::time::Duration;

use super::super::fields::{Fields, Reader};
use super::factor::{self, NAME_CHARS_MAX};
use super::words::Known;
use super::{hold, items, names_of_levels, search, without_factors};
use crate::matrix::{
    Factor, Level, Matrix, Measure, Order, SearchKeys, Server, Shrink, ShrunkResource, VARIANT,
};
use crate::units;

const VARIANTS_MAX: usize = 16;
const PAIRS_MAX: u64 = 100;
const PAIRS: u32 = 4;
/// Where neither `hold` nor `[find]` says it: ten seconds show whether a crowd beyond the limit is
/// served, and a minute finds the limit within a tenth.
const HOLD: Duration = Duration::from_secs(10);
const BUDGET: Duration = Duration::from_secs(60);
/// Pairs count if others used the machine alike before and during both runs, within this share of
/// its CPU time.
const BUSY_DIFFERENCE: f64 = 0.25;
/// What is left of a shrunk resource by default, and the bounds: less than 5 % is lost in the noise
/// of a run, and a tenth of a resource is another server.
const LEFT: f64 = 0.8;
const LEFT_MIN: f64 = 0.1;
const LEFT_MAX: f64 = 0.95;
/// The longest name of an interface (`IFNAMSIZ` without its end).
const INTERFACE_BYTES_MAX: usize = 15;

pub(super) fn proof(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    flag: Option<&str>,
) -> Option<Matrix> {
    let mut names = names_of_levels(items(top.get("variant")));
    names.push(VARIANT.to_owned());
    let (matrix, known) = without_factors(reader, top, names, measure);
    let pairs = pairs(reader, top);
    let busy_difference = busy_difference(reader, top);
    let written = variants(reader, top, &known);
    let shrink = shrinks(reader, top, flag);
    let is_table = top.get("shrink").is_some();
    let matrix = matrix?;
    let levels = match shrink {
        _ if is_table && flag.is_none() && written.len() > 1 => {
            let help = "remove [shrink], or all variants after the first";
            reader.fail(
                top.span_of("shrink"),
                "a proof shrinks a resource or compares variants",
                help,
            );
            return None;
        }
        Some([accused, placebo]) => shrunk(written.into_iter().next(), &accused, &placebo),
        None => written,
    };
    if levels.len() < 2 && reader.is_clean() && top.lacks("variant") {
        let help =
            "write two [[variant]] tables with names; the first is the baseline. Or a [shrink]";
        reader.fail(None, "there is nothing to compare", help);
    } else if levels.len() < 2 && reader.is_clean() {
        let help = "write a second [[variant]]; the first is the baseline. Or a [shrink]";
        reader.fail(
            top.span_of("variant"),
            "there is one variant, and nothing to compare it with",
            help,
        );
    }
    let factor = Factor { name: VARIANT.to_owned(), levels, relieves: None };
    let node = top.get("variant").or(top.get("shrink"));
    if let Some(node) = node {
        factor::check_variables(reader, node, &factor, &matrix.variables);
    }
    let measure = match matrix.measure {
        // A crowd beyond the limit can only be served better. How far a capacity follows a shrunk
        // resource, or which of two configurations has more, are questions about capacities.
        Measure::Auto { search, .. }
            if !factor.levels.iter().any(|level| level.relieves.is_some()) =>
        {
            Measure::Find(search)
        }
        measure => measure,
    };
    let factors = vec![factor];
    let order = Order::Abba;
    Some(Matrix { measure, order, pairs: Some(pairs), busy_difference, factors, ..matrix })
}

/// What is measured: `hold`, `find`, or what is chosen with them where the file has both or
/// neither.
fn measure(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Measure> {
    let (is_held, is_search) = (top.get("hold").is_some(), top.get("find").is_some());
    let hold = if is_held { hold(reader, top) } else { Some(HOLD) };
    let usual = SearchKeys { budget: BUDGET, start: None, ceiling: None };
    let search = if is_search { search(reader, top) } else { Some(usual) };
    match (is_held, is_search) {
        (true, false) => hold.map(Measure::Hold),
        (false, true) => search.map(Measure::Find),
        (true, true) | (false, false) => Some(Measure::Auto { hold: hold?, search: search? }),
    }
}

fn busy_difference(reader: &mut Reader, top: &mut Fields<'_>) -> f64 {
    let share = reader.positive(top, "busy_difference").unwrap_or(BUSY_DIFFERENCE);
    if share > 1.0 {
        let help = "write 0.25 for a quarter of the CPU time of this machine, 1 to ignore it";
        reader.fail(top.span_of("busy_difference"), "`busy_difference` must be at most 1", help);
    }
    share
}

fn pairs(reader: &mut Reader, top: &mut Fields<'_>) -> u32 {
    let pairs = reader.integer(top, "pairs", 2, PAIRS_MAX).unwrap_or(PAIRS);
    if pairs % 2 == 1 {
        let help = format!("write {}: two pairs are a block, A B B A", pairs + 1);
        reader.fail(top.span_of("pairs"), "`pairs` must be even", help);
    }
    pairs
}

fn variants(reader: &mut Reader, top: &mut Fields<'_>, known: &Known) -> Vec<Level> {
    const TABLES: &str = "tables [[variant]] with a name";
    let Some(node) = top.get("variant") else { return Vec::new() };
    let nodes = items(Some(node));
    if nodes.is_empty() || nodes.len() > VARIANTS_MAX {
        let help = format!("write 2 to {VARIANTS_MAX} {TABLES}");
        reader.fail(node.span, format!("`variant` is not {TABLES}"), help);
        return Vec::new();
    }
    let mut levels: Vec<Level> = Vec::new();
    for (index, item) in nodes.iter().enumerate() {
        let path = format!("variant.{index}");
        let Some(mut fields) = reader.table(item, &path, "a table `[[variant]]` with a name")
        else {
            continue;
        };
        let level = factor::level_of(reader, &mut fields, (Vec::new(), Server::default()), known);
        let more = reader.positive(&mut fields, "more");
        if more.is_some_and(|more| more <= 1.0) {
            let message = format!("`{path}.more` must be above 1");
            reader.fail(fields.span_of("more"), message, "write more = 2 for twice as much");
        }
        if more.is_some() && level.as_ref().is_some_and(|level| level.relieves.is_none()) {
            let message = format!("`{path}.more` says how much, but not of what");
            reader.fail(fields.span_of("more"), message, "write relieves = \"cpu\" with it");
        }
        reader.finish(&fields);
        let Some(level) = level else { continue };
        if index == 0 && level.relieves.is_some() {
            let help = "the first variant is the baseline; a later one has more than it";
            reader.fail(fields.span_of("relieves"), "the baseline relieves nothing", help);
        }
        let is_short = (1..=NAME_CHARS_MAX).contains(&level.name.chars().count());
        if !is_short || levels.iter().any(|other| other.name == level.name) {
            let message = format!("`{path}`: the name of a variant must be unique and short");
            reader.fail(item.span, message, "give each variant its own name");
        }
        levels.push(Level { more, ..level });
    }
    levels
}

/// What is shrunk, and the placebo, by the table and the flag, which goes before it.
fn shrinks(reader: &mut Reader, top: &mut Fields<'_>, flag: Option<&str>) -> Option<[Shrink; 2]> {
    let is_table = top.get("shrink").is_some();
    if !is_table && flag.is_none() {
        return None;
    }
    let mut fields = reader.section(top, "shrink");
    let resource = reader.word(&mut fields, "resource", &ShrunkResource::KEYS);
    let to = reader.positive(&mut fields, "to");
    let placebo = reader.word(&mut fields, "placebo", &ShrunkResource::KEYS);
    let interface =
        reader.text_of(&mut fields, "interface", "the name of an interface such as \"eth0\"");
    let rate = reader.quantity(&mut fields, "rate", "1Gbit/s", units::bit_rate);
    reader.finish(&fields);
    let (of_flag, to_of_flag) = flag.map(|text| by_flag(reader, text)).unwrap_or_default();
    let Some(key) = of_flag.or(resource) else {
        if reader.is_clean() {
            let help = format!("write resource = one of {}", ShrunkResource::KEYS.join(", "));
            reader.fail(fields.span, "`shrink.resource` is missing", help);
        }
        return None;
    };
    let to = to_of_flag.or(to).unwrap_or(LEFT);
    if !(LEFT_MIN..=LEFT_MAX).contains(&to) {
        let message = format!("a resource is shrunk to {LEFT_MIN} to {LEFT_MAX} of it");
        reader.fail(fields.span_of("to"), message, "write to = 0.8, or --shrink cpu=0.8");
    }
    let placebo =
        placebo.unwrap_or_else(|| if key == "nofile" { "cpu" } else { "nofile" }.to_owned());
    if placebo == key {
        let help = format!("choose another one of {}", ShrunkResource::KEYS.join(", "));
        reader.fail(fields.span_of("placebo"), "the placebo is the accused resource", help);
    }
    let is_name = |name: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-@".contains(c);
        (1..=INTERFACE_BYTES_MAX).contains(&name.len())
            && name.chars().all(is_plain)
            && !name.starts_with(['-', '.'])
    };
    if interface.as_ref().is_some_and(|name| !is_name(name)) {
        let help = "write the name that `ip link` shows, such as \"eth0\"";
        reader.fail(
            fields.span_of("interface"),
            "`shrink.interface` is no name of an interface",
            help,
        );
    }
    let line = interface.zip(rate);
    if line.is_none() && [key.as_str(), placebo.as_str()].contains(&"network") && reader.is_clean()
    {
        let help = "write interface = \"eth0\" and rate = \"1Gbit/s\" in [shrink]: only a named \
                    interface is touched";
        reader.fail(fields.span, "the interface to shrink, or its rate, is not known", help);
    }
    let of = |key: &str, is_placebo: bool| {
        Some(Shrink { resource: resource_of(key, line.as_ref())?, to, is_placebo })
    };
    Some([of(&key, false)?, of(&placebo, true)?])
}

/// `cpu`, `cpu=0.8`.
fn by_flag(reader: &mut Reader, text: &str) -> (Option<String>, Option<f64>) {
    let (key, share) = text.split_once('=').map_or((text, None), |(key, share)| (key, Some(share)));
    let keys = ShrunkResource::KEYS;
    let shown: String = text.chars().take(60).collect();
    if !keys.contains(&key) {
        let help = format!("write --shrink with one of {}", keys.join(", "));
        reader.fail(None, format!("--shrink {shown}: no resource that can be shrunk"), help);
        return (None, None);
    }
    let share = share
        .map(|share| share.parse::<f64>().ok().filter(|share| share.is_finite() && *share > 0.0));
    if share == Some(None) {
        reader.fail(
            None,
            format!("--shrink {shown}: no share"),
            format!("write --shrink {key}=0.8"),
        );
    }
    (Some(key.to_owned()), share.flatten())
}

fn resource_of(key: &str, line: Option<&(String, f64)>) -> Option<ShrunkResource> {
    Some(match key {
        "cpu" => ShrunkResource::Cpu,
        "memory" => ShrunkResource::Memory,
        "disk" => ShrunkResource::Disk,
        "nofile" => ShrunkResource::Nofile,
        "rmem" => ShrunkResource::Rmem,
        "network" => {
            let (interface, rate_bps) = line?.clone();
            ShrunkResource::Network { interface, rate_bps }
        }
        _ => return None,
    })
}

/// The baseline, the baseline with less of the accused resource, and the one with less of the
/// placebo.
fn shrunk(baseline: Option<Level>, accused: &Shrink, placebo: &Shrink) -> Vec<Level> {
    let baseline =
        baseline.unwrap_or_else(|| Level { name: "baseline".to_owned(), ..Level::default() });
    // A filter at the full rate has a burst and a queue of its own: everyone has it, so that only
    // the rate differs.
    let whole = |but: Option<&Shrink>| -> Vec<Shrink> {
        let is_line = |one: &&Shrink| matches!(one.resource, ShrunkResource::Network { .. });
        let lines = [accused, placebo].into_iter().filter(is_line).filter(|one| Some(*one) != but);
        lines.map(|one| Shrink { to: 1.0, ..one.clone() }).collect()
    };
    let level = |shrink: &Shrink| Level {
        name: format!("{}-at-{}", shrink.resource.key(), shrink.to),
        shrink: whole(Some(shrink)).into_iter().chain([shrink.clone()]).collect(),
        ..baseline.clone()
    };
    vec![Level { shrink: whole(None), ..baseline.clone() }, level(accused), level(placebo)]
}
