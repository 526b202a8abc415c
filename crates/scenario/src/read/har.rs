//! Reads what `player` says of the page around it.

use std::time::Duration;

use url::Url;

use super::fields::{Fields, Reader};
use super::tree::{Entry, Node, Value};
use crate::recorded_page::{OriginRule, RecordedPage};
use crate::units;

/// The recorded page; `None` without `har`.
pub(super) fn recorded_page(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<RecordedPage> {
    let path = fields.path_of("har");
    let har = fields.get("har").and_then(|node| {
        let text = reader.text(node, &path, "text such as \"watch.har\"")?;
        if text.is_empty() {
            reader.fail(node.span, format!("`{path}` is empty"), "write har = \"watch.har\"");
        }
        Some(text)
    });
    let warm_milli = reader.share_milli(fields, "warm", "0.3");
    let warm_age = reader.quantity(fields, "warm_age", "1h", units::duration);
    let origins = origins(reader, fields);
    let needs = [("warm", "har"), ("warm_age", "har"), ("origins", "har"), ("warm_age", "warm")];
    for (key, needed) in needs {
        let Some(span) = fields.span_of(key).filter(|_| fields.get(needed).is_none()) else {
            continue;
        };
        let message = format!("`{}` has no effect without {needed}", fields.path_of(key));
        reader.fail(span, message, format!("add {needed}, or remove it"));
        break;
    }
    let warm_age = warm_age.unwrap_or(Duration::ZERO);
    har.map(|har| RecordedPage { har, warm_milli: warm_milli.unwrap_or(0), warm_age, origins })
}

/// Where requests of further origins go.
fn origins(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<OriginRule> {
    let path = fields.path_of("origins");
    let Some(node) = fields.get("origins") else { return Vec::new() };
    let Value::Table(entries) = &node.value else {
        let expected = "a table such as { \"https://static.example\" = \"http://127.0.0.1:8080\" }";
        reader.fail(node.span, format!("`{path}` is not {expected}"), format!("write {expected}"));
        return Vec::new();
    };
    entries.iter().filter_map(|entry| rule(reader, entry, &path)).collect()
}

fn rule(reader: &mut Reader, entry: &Entry, path: &str) -> Option<OriginRule> {
    let recorded = origin(&entry.key);
    if recorded.is_none() {
        not_origin(reader, entry.key_span, &entry.key, path);
    }
    let Node { value, span } = &entry.node;
    let text = match value {
        Value::Text(text) => text.as_str(),
        _ => "value",
    };
    let requested = origin(text);
    if requested.is_none() {
        not_origin(reader, *span, text, path);
    }
    Some(OriginRule { recorded: recorded?, requested: requested? })
}

fn not_origin(reader: &mut Reader, span: super::tree::Span, text: &str, path: &str) {
    let shown: String = text.chars().take(60).collect();
    let help = "write scheme, host and port, such as \"https://static.example:8443\"";
    reader.fail(span, format!("`{path}`: `{shown}` is not an origin"), help);
}

/// An origin of HTTP, serialised.
fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    let is_http = matches!(url.scheme(), "http" | "https");
    (is_plain && is_anonymous && is_http).then(|| url.origin().ascii_serialization())
}
