//! What `player` says of HTTP: versions, further headers, and the page that the player is embedded
//! in.

use serde_json::{Value as Json, json};
use throng_observation::Url;

use super::fields::{Fields, Reader};
use super::tree::{Entry, Value};
use crate::http::{HttpMix, HttpVersionPolicy};
use crate::keys::{By, Named as _};
use crate::player::PlayerConfig;
use crate::secret::{HIDDEN, TokenSource};
use crate::suggestion::nearest;
use crate::url_template::OF_PAGES;

/// Largest weight of a version.
const WEIGHT_MAX: f64 = 1e6;

/// What to do about a header that throng sets itself, or whose change would break the framing of
/// messages; `None` of others.
fn help_for_own(name: &str) -> Option<&'static str> {
    match name {
        "authorization" => Some("write target.token, which is sent as Authorization: Bearer"),
        "accept-encoding" | "connection" | "content-length" | "host" | "keep-alive"
        | "proxy-connection" | "range" | "te" | "trailer" | "transfer-encoding" | "upgrade"
        | "expect" => Some("remove it"),
        _ => None,
    }
}

/// `http`: a version for all, or a table of weights.
pub(crate) const VERSIONS: By<HttpMix> = By {
    read: |reader, fields, _| Some(versions(reader, fields)),
    write: |mix| match mix.only() {
        Some(HttpVersionPolicy::Negotiated) => None,
        Some(policy) => Some(policy.name().into()),
        None => Some(mix.entries().map(|(policy, milli)| (policy.name(), weight(milli))).collect()),
    },
    schema: |_| {
        let names = HttpVersionPolicy::names();
        let weight = json!({ "type": "number", "minimum": 0, "maximum": WEIGHT_MAX });
        let name = json!({ "enum": names });
        json!({ "anyOf": [
            { "type": "string", "enum": names },
            { "type": "object", "minProperties": 1, "propertyNames": name,
              "additionalProperties": weight },
        ] })
    },
};

fn weight(milli: u32) -> Json {
    (f64::from(milli) / 1e3).into()
}

fn versions(reader: &mut Reader, fields: &mut Fields<'_>) -> HttpMix {
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
        let weight = entry.node.value.number();
        if (0.0..=WEIGHT_MAX).contains(&weight) {
            weights.push((policy, (weight * 1e3).round() as u32));
        } else {
            reader.fail(
                entry.node.span,
                format!("`{path}.\"{}\"` is not a weight from 0 to 1000000", entry.key),
                "write http = { \"3\" = 41, \"2\" = 51, \"1.1\" = 8 }",
            );
        }
    }
    if weights.iter().all(|(_, weight_milli)| *weight_milli == 0) && reader.is_clean() {
        let help = "write http = { \"3\" = 41, \"2\" = 51, \"1.1\" = 8 }";
        reader.fail(node.span, format!("`{path}` has no weight above 0"), help);
    }
    HttpMix::weighted(weights)
}

/// `headers`: further ones, with their values, of which secrets are not written.
pub(crate) const HEADERS: By<Vec<(String, TokenSource)>> = By {
    read: |reader, fields, _| Some(headers(reader, fields)),
    write: |headers| {
        Some(headers.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect())
    },
    schema: |_| json!({ "type": "object", "additionalProperties": { "type": "string" } }),
};

fn headers(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<(String, TokenSource)> {
    let path = fields.path_of("headers");
    let Some(node) = fields.get("headers") else { return Vec::new() };
    let Value::Table(entries) = &node.value else {
        let expected = "a table such as { Accept-Language = \"en\", X-Session = \"env:SESSION\" }";
        reader.fail(node.span, format!("`{path}` is not {expected}"), format!("write {expected}"));
        return Vec::new();
    };
    entries.iter().filter_map(|entry| header(reader, entry, &path)).collect()
}

/// The path of a header in the table at `path`; `None` if its name is none, or that of one that
/// throng sets itself, of which `help_for_own` (by the name in lower case) says what to do.
pub(crate) fn header_path(
    reader: &mut Reader,
    entry: &Entry,
    path: &str,
    help_for_own: fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let shown: String = entry.key.chars().take(60).collect();
    // A token (RFC 9110 section 5.6.2).
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if entry.key.is_empty() || !entry.key.bytes().all(is_token) {
        let help = "write letters, digits and hyphens, such as X-Session";
        let message = format!("`{shown}` in `{path}` is not the name of a header");
        reader.fail(entry.key_span, message, help);
        return None;
    }
    if let Some(help) = help_for_own(&entry.key.to_ascii_lowercase()) {
        let message = format!("`{shown}` in `{path}`: throng sets this header itself");
        reader.fail(entry.key_span, message, help);
        return None;
    }
    Some(format!("{path}.{shown}"))
}

fn header(reader: &mut Reader, entry: &Entry, path: &str) -> Option<(String, TokenSource)> {
    let path = header_path(reader, entry, path, help_for_own)?;
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

/// `page`: the URL of the page that the player is embedded in. It is written without what may be a
/// secret of its query.
pub(crate) const PAGE: By<Url> = By {
    read: page,
    write: |page| Some(page.shown(OF_PAGES).into()),
    schema: |_| json!({ "type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?:[^#]+$" }),
};

fn page(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<Url> {
    const HELP: &str = "write page = \"https://www.example.com/watch\"";
    let expected = "text such as \"https://www.example.com/watch\"";
    let (text, path, node) = reader.text_at(fields, key, expected)?;
    let page = match Url::parse(&text) {
        Ok(page) => page,
        Err(error) => {
            reader.fail(node.span, format!("`{path}` is not a URL: {error}"), HELP);
            return None;
        }
    };
    // The same as it is in a URL.
    let is_hidden = text.contains(HIDDEN) || text.to_ascii_uppercase().contains("%E2%80%A6");
    let problem = if is_hidden && !reader.is_redacted() {
        Some("was redacted when this scenario was stored")
    } else if !matches!(page.scheme(), "http" | "https") {
        Some("is not the URL of a page of http or https")
    } else if text.contains('#') {
        Some("has a fragment, which browsers do not send")
    } else if page.has_user() {
        Some("has a user name or password, which browsers do not send")
    } else {
        None
    };
    if let Some(problem) = problem {
        reader.fail(node.span, format!("`{path}` {problem}"), HELP);
        return None;
    }
    Some(page)
}

/// Headers that are sent for the page say nothing else.
pub(crate) fn check_page(reader: &mut Reader, fields: &mut Fields<'_>, player: &PlayerConfig) {
    let names = ["origin", "referer"];
    let mut headers = player.headers.iter().filter(|_| player.page.is_some());
    if let Some((name, _)) = headers.find(|(name, _)| names.contains(&&*name.to_ascii_lowercase()))
    {
        let path = fields.path_of("page");
        let message =
            format!("`{path}`: `{name}` is sent for this page, and headers has another one");
        reader.fail(fields.span_of("page"), message, format!("remove headers.{name}, or page"));
    }
}

/// A field value without anything that a proxy could read in another way (RFC 9110 section 5.5).
pub(crate) fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && text.trim() == text
}
