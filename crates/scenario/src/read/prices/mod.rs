//! Reads a price table. Every price has to be written: one that is missing is an error, what costs
//! nothing is written as 0.

use throng_observation::calendar::day_begin_us;

use super::document;
use super::fields::{Fields, Reader};
use super::tree::{Node, Value};
use crate::diagnostic::ScenarioError;
use crate::masked::masked_text;
use crate::prices::{ComputePrices, EgressPrices, EgressTier, MachinePrice, PriceTable};

#[cfg(test)]
mod tests;

/// Largest number: more is a mistake.
const NUMBER_MAX: f64 = 1e9;
/// Longest texts, characters.
const NAME_CHARS_MAX: usize = 60;
const NOTE_CHARS_MAX: usize = 400;

impl PriceTable {
    /// Reads a price file.
    ///
    /// # Errors
    /// With all errors that were found, each with its location and a hint.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        document(text, table)
    }
}

fn table(reader: &mut Reader, top: &mut Fields<'_>) -> Option<PriceTable> {
    let provider = required_text(reader, top, "provider", "\"a large cloud\"", NAME_CHARS_MAX);
    let as_of = as_of(reader, top);
    let note = text(reader, top, "note", "\"list prices, without discounts\"", NOTE_CHARS_MAX);
    let currency = required_text(reader, top, "currency", "\"EUR\"", 8);
    let compute = compute(reader, top);
    let egress = egress(reader, top);
    let storage_per_gb_month = of_section(reader, top, "storage", "per_gb_month", "0.02");
    let requests_per_million = of_section(reader, top, "requests", "per_million", "0.5");
    Some(PriceTable {
        provider: provider?,
        as_of: as_of?,
        note,
        currency: currency?,
        compute: compute?,
        egress: egress?,
        storage_per_gb_month: storage_per_gb_month?,
        requests_per_million: requests_per_million?,
    })
}

/// The date of the prices, which a reader needs to know whether they still hold.
fn as_of(reader: &mut Reader, top: &mut Fields<'_>) -> Option<String> {
    let span = top.span_of("as_of");
    let date = required_text(reader, top, "as_of", "\"2026-11\"", NAME_CHARS_MAX)?;
    if is_date(&date) {
        return Some(date);
    }
    let help =
        "write the month or the day of the prices in quotes: as_of = \"2026-11\" or \"2026-11-24\"";
    reader.fail(span, format!("`as_of` is not a date: {}", masked_text(&date)), help);
    None
}

/// A day, or a month, whose first day stands for it.
fn is_date(text: &str) -> bool {
    let is_month = text.len() == "2026-11".len();
    let begin_us = if is_month { day_begin_us(&format!("{text}-01")) } else { day_begin_us(text) };
    begin_us.is_some()
}

fn compute(reader: &mut Reader, top: &mut Fields<'_>) -> Option<ComputePrices> {
    const HELP: &str = "write [[machine]] tables, or [compute] with vcpu_hour and memory_gb_hour";
    let (machines, amounts) = (top.span_of("machine"), top.span_of("compute"));
    match (machines, amounts) {
        (Some(span), Some(_)) => {
            reader.fail(
                span,
                "compute is charged either by [[machine]] or by [compute]",
                "remove one of them",
            );
            None
        }
        (Some(_), None) => machine_types(reader, top).map(ComputePrices::Machines),
        (None, Some(_)) => {
            let mut fields = reader.section(top, "compute");
            let vcpu_hour = required_number(reader, &mut fields, "vcpu_hour", "0.04", 0.0);
            let memory_gb_hour =
                required_number(reader, &mut fields, "memory_gb_hour", "0.005", 0.0);
            reader.finish(&fields);
            Some(ComputePrices::Amounts { vcpu_hour: vcpu_hour?, memory_gb_hour: memory_gb_hour? })
        }
        (None, None) => {
            if top.lacks("machine") && top.lacks("compute") {
                reader.fail(None, "there is no price of compute", HELP);
            }
            None
        }
    }
}

fn machine_types(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Vec<MachinePrice>> {
    const EXAMPLE: &str =
        "tables [[machine]] with name, vcpus, memory_gb, network_gbit_per_s and per_hour";
    let items = items(reader, top, "machine", EXAMPLE)?;
    let mut machines: Vec<MachinePrice> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut fields) = reader.table(item, &format!("machine.{index}"), EXAMPLE) else {
            continue;
        };
        let name = required_text(reader, &mut fields, "name", "\"8 vCPU\"", NAME_CHARS_MAX);
        let mut amount = |reader: &mut Reader, key, example| {
            required_number(reader, &mut fields, key, example, f64::MIN_POSITIVE)
        };
        let vcpus = amount(reader, "vcpus", "8");
        let memory_gb = amount(reader, "memory_gb", "16");
        let network_gbit_per_s = amount(reader, "network_gbit_per_s", "10");
        let per_hour = required_number(reader, &mut fields, "per_hour", "0.34", 0.0);
        let cpu_speed =
            number(reader, &mut fields, "cpu_speed", "1.0", f64::MIN_POSITIVE).unwrap_or(1.0);
        if let Some(name) = &name
            && machines.iter().any(|machine| machine.name == *name)
        {
            let span = fields.span_of("name");
            reader.fail(
                span,
                format!("there are two machines `{name}`"),
                "give each type its own name",
            );
        }
        reader.finish(&fields);
        if let (
            Some(name),
            Some(vcpus),
            Some(memory_gb),
            Some(network_gbit_per_s),
            Some(per_hour),
        ) = (name, vcpus, memory_gb, network_gbit_per_s, per_hour)
        {
            machines.push(MachinePrice {
                name,
                vcpus,
                cpu_speed,
                memory_gb,
                network_gbit_per_s,
                per_hour,
            });
        }
    }
    Some(machines)
}

fn egress(reader: &mut Reader, top: &mut Fields<'_>) -> Option<EgressPrices> {
    const HELP: &str =
        "write [egress] with per_gb = 0.09, or with tiers; per_gb = 0 if it costs nothing";
    if top.span_of("egress").is_none() {
        if top.lacks("egress") {
            reader.fail(None, "there is no price of egress", HELP);
        }
        return None;
    }
    let mut fields = reader.section(top, "egress");
    let free_gb = number(reader, &mut fields, "free_gb", "100", 0.0).unwrap_or(0.0);
    let per_gb = number(reader, &mut fields, "per_gb", "0.09", 0.0);
    let tiers = match (fields.span_of("per_gb"), fields.span_of("tiers")) {
        (Some(span), Some(_)) => {
            reader.fail(span, "egress has either one price or tiers", "remove `per_gb` or `tiers`");
            None
        }
        (None, Some(_)) => tiers(reader, &mut fields, free_gb),
        (Some(_), None) => per_gb.map(|per_gb| vec![EgressTier { up_to_gb: None, per_gb }]),
        (None, None) => {
            if fields.lacks("per_gb") && fields.lacks("tiers") {
                reader.fail(fields.span, "`egress` has no price", HELP);
            }
            None
        }
    };
    reader.finish(&fields);
    Some(EgressPrices { free_gb, tiers: tiers? })
}

fn tiers(reader: &mut Reader, fields: &mut Fields<'_>, free_gb: f64) -> Option<Vec<EgressTier>> {
    const EXAMPLE: &str =
        "a list such as [{ up_to_gb = 10_000, per_gb = 0.09 }, { per_gb = 0.07 }]";
    let items = items(reader, fields, "tiers", EXAMPLE)?;
    let (mut tiers, mut before) = (Vec::new(), free_gb);
    for (index, item) in items.iter().enumerate() {
        let Some(mut tier) = reader.table(item, &format!("egress.tiers.{index}"), EXAMPLE) else {
            continue;
        };
        let up_to_gb = number(reader, &mut tier, "up_to_gb", "10_000", 0.0);
        let per_gb = required_number(reader, &mut tier, "per_gb", "0.09", 0.0);
        let (span, is_last) = (tier.span_of("up_to_gb"), index + 1 == items.len());
        if is_last && span.is_some() {
            let help = "the last tier has no `up_to_gb`: what is sent above it has a price too";
            reader.fail(span, format!("`egress.tiers.{index}` has an end"), help);
        } else if !is_last && span.is_none() {
            let message = format!("`egress.tiers.{index}` has no `up_to_gb`");
            reader.fail(item.span, message, "only the last tier has none");
        } else if let Some(up_to_gb) = up_to_gb
            && up_to_gb <= before
        {
            let help = "tiers rise: each ends above the one before, the first above `free_gb`";
            reader.fail(
                span,
                format!("`egress.tiers.{index}` ends at {up_to_gb} GB, not above {before}"),
                help,
            );
        }
        before = up_to_gb.unwrap_or(before);
        reader.finish(&tier);
        tiers.extend(per_gb.map(|per_gb| EgressTier { up_to_gb, per_gb }));
    }
    Some(tiers)
}

/// The tables of a list, at least one.
fn items<'t>(
    reader: &mut Reader,
    fields: &mut Fields<'t>,
    key: &'static str,
    example: &str,
) -> Option<&'t [Node]> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    match &node.value {
        Value::List(items) if (1..=PriceTable::ENTRIES_MAX).contains(&items.len()) => Some(items),
        _ => {
            let message =
                format!("`{path}` is not a list of 1 to {} tables", PriceTable::ENTRIES_MAX);
            reader.fail(node.span, message, format!("write {example}"));
            None
        }
    }
}

/// The only price of a table.
fn of_section(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    section: &'static str,
    key: &'static str,
    example: &str,
) -> Option<f64> {
    if top.span_of(section).is_none() {
        if top.lacks(section) {
            let help =
                format!("write [{section}] with {key} = {example}; {key} = 0 if it costs nothing");
            reader.fail(None, format!("there is no price of {section}"), help);
        }
        return None;
    }
    let mut fields = reader.section(top, section);
    let price = required_number(reader, &mut fields, key, example, 0.0);
    reader.finish(&fields);
    price
}

fn required_number(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
    least: f64,
) -> Option<f64> {
    reader.require(fields, key, format!("write {key} = {example}"));
    number(reader, fields, key, example, least)
}

/// A number from `least` to [`NUMBER_MAX`].
fn number(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
    least: f64,
) -> Option<f64> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let value = node.value.number();
    if (least..=NUMBER_MAX).contains(&value) {
        return Some(value);
    }
    let message = match value {
        value if value < 0.0 => format!("`{path}` is negative"),
        value if value.is_nan() => format!("`{path}` is not a number"),
        value if value < least => format!("`{path}` is 0"),
        _ => format!("`{path}` is above {NUMBER_MAX}"),
    };
    reader.fail(node.span, message, format!("write for example {key} = {example}"));
    None
}

fn required_text(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
    chars_max: usize,
) -> Option<String> {
    reader.require(fields, key, format!("write {key} = {example}"));
    text(reader, fields, key, example, chars_max)
}

fn text(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
    chars_max: usize,
) -> Option<String> {
    let (text, path, node) = reader.text_at(fields, key, &format!("text such as {example}"))?;
    if (1..=chars_max).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        return Some(text);
    }
    let message = format!("`{path}` is not one line of 1 to {chars_max} characters");
    reader.fail(node.span, message, format!("write {key} = {example}"));
    None
}
