//! Reads what `player` says of HTTP: versions, further headers, and the page that the player is
//! embedded in.

use url::Url;

use super::fields::{Fields, Reader};
use super::tree::{Entry, Node, Value};
use crate::http::{HttpMix, HttpVersionPolicy};
use crate::keys::Named as _;
use crate::secret::{HIDDEN, TokenSource};
use crate::suggestion::nearest;

/// Largest weight of a version.
const WEIGHT_MAX: f64 = 1e6;

/// Headers that throng sets itself, or whose change would break the framing of messages.
const OWN_HEADERS: [&str; 13] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// `http`: a version for all, or a table of weights.
pub(super) fn versions(reader: &mut Reader, fields: &mut Fields<'_>) -> HttpMix {
    let path = fields.path_of("http");
    let Some(node) = fields.get("http") else { return HttpMix::default() };
    let Value::Table(entries) = &node.value else {
        return reader.named::<HttpVersionPolicy>(fields, "http").unwrap_or_default().into();
    };
    let mut weights = Vec::new();
    for entry in entries {
        let Some(policy) = HttpVersionPolicy::of_name(&entry.key) else {
            let names = HttpVersionPolicy::names();
            let help = nearest(&entry.key, names.iter().copied())
                .map(|near| format!("did you mean \"{near}\"?"))
                .unwrap_or_else(|| format!("the versions are \"{}\"", names.join("\", \"")));
            let shown: String = entry.key.chars().take(60).collect();
            reader.fail(entry.key_span, format!("unknown version `{shown}` in `{path}`"), help);
            continue;
        };
        match number(&entry.node).filter(|weight| (0.0..=WEIGHT_MAX).contains(weight)) {
            Some(weight) => weights.push((policy, (weight * 1e3).round() as u32)),
            None => reader.fail(
                entry.node.span,
                format!("`{path}.\"{}\"` is not a weight from 0 to 1000000", entry.key),
                "write http = { \"3\" = 41, \"2\" = 51, \"1.1\" = 8 }",
            ),
        }
    }
    if weights.iter().all(|(_, weight_milli)| *weight_milli == 0) && reader.is_clean() {
        let help = "write http = { \"3\" = 41, \"2\" = 51, \"1.1\" = 8 }";
        reader.fail(node.span, format!("`{path}` has no weight above 0"), help);
    }
    HttpMix::weighted(weights)
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Integer(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}

/// `headers`: further ones, with their values.
pub(super) fn headers(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<(String, TokenSource)> {
    let path = fields.path_of("headers");
    let Some(node) = fields.get("headers") else { return Vec::new() };
    let Value::Table(entries) = &node.value else {
        let expected = "a table such as { Accept-Language = \"en\", X-Session = \"env:SESSION\" }";
        reader.fail(node.span, format!("`{path}` is not {expected}"), format!("write {expected}"));
        return Vec::new();
    };
    entries.iter().filter_map(|entry| header(reader, entry, &path)).collect()
}

fn header(reader: &mut Reader, entry: &Entry, path: &str) -> Option<(String, TokenSource)> {
    let shown: String = entry.key.chars().take(60).collect();
    // A token (RFC 9110 section 5.6.2).
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if entry.key.is_empty() || !entry.key.bytes().all(is_token) {
        let help = "write letters, digits and hyphens, such as X-Session";
        reader.fail(
            entry.key_span,
            format!("`{shown}` in `{path}` is not the name of a header"),
            help,
        );
        return None;
    }
    let lower = entry.key.to_ascii_lowercase();
    if OWN_HEADERS.contains(&lower.as_str()) {
        let help = match lower.as_str() {
            "authorization" => "write target.token, which is sent as Authorization: Bearer",
            _ => "remove it",
        };
        reader.fail(
            entry.key_span,
            format!("`{shown}` in `{path}`: throng sets this header itself"),
            help,
        );
        return None;
    }
    let path = format!("{path}.{shown}");
    let text = reader.text(&entry.node, &path, "text")?;
    let source = TokenSource::parse(&text);
    let problem = match &source {
        TokenSource::Inline(secret) if reader.is_redacted() && secret.expose() == HIDDEN => None,
        TokenSource::Inline(secret) if secret.expose().contains(HIDDEN) => {
            Some("was redacted when this scenario was stored")
        }
        TokenSource::Inline(secret) if !is_value(secret.expose()) => {
            Some("has characters that are not printable ASCII, or begins or ends with a space")
        }
        TokenSource::Environment(name) | TokenSource::File(name) if name.is_empty() => {
            Some("has no name after `env:` or `file:`")
        }
        _ => None,
    };
    if let Some(problem) = problem {
        let help = "write the value, or env:NAME or file:PATH to keep it out of this file";
        reader.fail(entry.node.span, format!("`{path}` {problem}"), help);
        return None;
    }
    Some((entry.key.clone(), source))
}

/// `page`: the URL of the page that the player is embedded in.
pub(super) fn page(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    headers: &[(String, TokenSource)],
) -> Option<Url> {
    const HELP: &str = "write page = \"https://www.example.com/watch\"";
    let path = fields.path_of("page");
    let node = fields.get("page")?;
    let text = reader.text(node, &path, "text such as \"https://www.example.com/watch\"")?;
    let page = match Url::parse(&text) {
        Ok(page) => page,
        Err(error) => {
            reader.fail(node.span, format!("`{path}` is not a URL: {error}"), HELP);
            return None;
        }
    };
    let problem = if !matches!(page.scheme(), "http" | "https") {
        Some("is not the URL of a page of http or https")
    } else if page.fragment().is_some() {
        Some("has a fragment, which browsers do not send")
    } else if !page.username().is_empty() || page.password().is_some() {
        Some("has a user name or password, which browsers do not send")
    } else {
        None
    };
    if let Some(problem) = problem {
        reader.fail(node.span, format!("`{path}` {problem}"), HELP);
        return None;
    }
    let names = ["origin", "referer"];
    if let Some((name, _)) =
        headers.iter().find(|(name, _)| names.contains(&&*name.to_ascii_lowercase()))
    {
        let message =
            format!("`{path}`: `{name}` is sent for this page, and headers has another one");
        reader.fail(node.span, message, format!("remove headers.{name}, or page"));
        return None;
    }
    Some(page)
}

/// A field value without anything that a proxy could read in another way (RFC 9110 section 5.5).
fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && text.trim() == text
}
