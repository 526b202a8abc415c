//! Reads `[crowd]`, or several `[[crowd]]`: their names, and the places of values that are checked
//! against others. The keys are in `scenario/keys.rs`.

use std::collections::HashSet;

use super::fields::{Fields, Reader};
use super::tree::{Node, Span, Value};
use crate::keys::{self, Keyed as _, is_name};
use crate::scenario::Cohort;

/// More cohorts than a report could show.
const COHORTS_MAX: usize = 100;

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
    let (items, is_list) = (node.one_or_many(), matches!(node.value, Value::List(_)));
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
        if !is_name(&name) || !names.insert(name.clone()) {
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
        let usual = Cohort { name, role: keys::part(reader, &mut fields), ..Cohort::usual() };
        cohorts.push(keys::read(reader, &mut fields, usual));
    }
    (cohorts, spans)
}

fn says_vp8(publish: &Node) -> bool {
    publish.get("codec").and_then(Node::as_text) == Some("vp8")
}

/// The path of a cohort in a list: by its name, as in overrides and reports, else by its index.
fn path_of(item: &Node, index: usize) -> String {
    match item.get("name").and_then(Node::as_text) {
        Some(name) if (1..=64).contains(&name.chars().count()) => format!("crowd.{name}"),
        _ => format!("crowd.{index}"),
    }
}
