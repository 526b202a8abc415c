//! Reads `[[only]]` and `[[except]]`: cells by the levels of some factors.

use super::super::fields::{Fields, Reader};
use super::super::tree::{Entry, Value};
use super::words::scalar;
use crate::matrix::{CellFilter, Factor};
use crate::suggestion::nearest;

pub(super) fn filters(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    key: &'static str,
    factors: &[Factor],
) -> Vec<CellFilter> {
    let Some(node) = top.get(key) else { return Vec::new() };
    let mut filters = Vec::new();
    for item in node.one_or_many() {
        let Value::Table(entries) = &item.value else {
            let help = format!("write [[{key}]] with storage = \"tmpfs\" below it");
            reader.fail(item.span, format!("`{key}` is not a table of factors"), help);
            continue;
        };
        if entries.is_empty() {
            reader.fail(item.span, format!("`{key}` names no factor"), "write storage = \"tmpfs\"");
        }
        let levels = entries.iter().filter_map(|entry| levels(reader, entry, factors));
        filters.push(CellFilter { levels: levels.collect() });
    }
    filters
}

/// The factor and the levels that an entry names.
fn levels(reader: &mut Reader, entry: &Entry, factors: &[Factor]) -> Option<(usize, Vec<usize>)> {
    let Some(place) = factors.iter().position(|factor| factor.name == entry.key) else {
        let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        let help = match nearest(&entry.key, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the factors are {}", names.join(", ")),
        };
        let shown: String = entry.key.chars().take(60).collect();
        reader.fail(entry.key_span, format!("unknown factor `{shown}`"), help);
        return None;
    };
    let factor = factors.get(place)?;
    let mut found = Vec::new();
    for item in entry.node.one_or_many() {
        let name = scalar(item);
        match factor.levels.iter().position(|level| Some(&level.name) == name.as_ref()) {
            Some(level) => found.push(level),
            None => {
                let names: Vec<&str> =
                    factor.levels.iter().map(|level| level.name.as_str()).collect();
                let message = format!("`{}` has no such level", factor.name);
                reader.fail(item.span, message, format!("its levels are {}", names.join(", ")));
            }
        }
    }
    Some((place, found))
}
