//! What `player` says of the page around it.

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::json;
use throng_observation::Url;

use super::fields::{Fields, Reader};
use super::tree::{Entry, Node, Value};
use crate::keys::{By, Form as _, Parsed, text, time_schema};
use crate::recorded_page::{OriginRule, RecordedPage};
use crate::units;

/// `har`, with which the other keys are read.
pub(crate) const HAR: By<RecordedPage> = By {
    read: |reader, fields, _| recorded_page(reader, fields),
    write: |page| Some(page.har.as_str().into()),
    schema: |generator| FILE.schema(PhantomData, generator),
};

/// `warm`.
pub(crate) const WARM: By<RecordedPage> = By {
    read: |_, _, _| None,
    write: |page| {
        let is_warm = page.warm_milli > 0 || !page.warm_age.is_zero();
        is_warm.then(|| (f64::from(page.warm_milli) / 1e3).into())
    },
    schema: |_| json!({ "type": "number", "minimum": 0, "maximum": 1 }),
};

/// `warm_age`.
pub(crate) const WARM_AGE: By<RecordedPage> = By {
    read: |_, _, _| None,
    write: |page| (!page.warm_age.is_zero()).then(|| units::write_duration(page.warm_age).into()),
    schema: time_schema,
};

/// `origins`.
pub(crate) const ORIGINS: By<RecordedPage> = By {
    read: |_, _, _| None,
    write: |page| {
        let rules = page.origins.iter();
        let rules = rules.map(|rule| (rule.recorded.as_str(), rule.requested.as_str()));
        (!page.origins.is_empty()).then(|| rules.collect())
    },
    schema: |_| json!({ "type": "object", "additionalProperties": { "type": "string" } }),
};

const FILE: Parsed<String> = Parsed { is_removable: false, ..text("text", "watch.har") };

/// The recorded page; `None` without `har`.
fn recorded_page(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<RecordedPage> {
    let har = FILE.read(reader, fields, "har");
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
    let is_http = matches!(url.scheme(), "http" | "https");
    (is_http && url.is_of_server()).then(|| url.origin().ascii_serialization())
}
