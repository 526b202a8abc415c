//! Where things are on a server of server-sent events: `post` and `headers` of a `chat.template`,
//! in a file.

use std::collections::BTreeMap;

use super::keys::{SentTo, text_of, written};
use super::{ChatHttp, ChatText, ChatVariable};
use crate::keys::Usual::Said;
use crate::keys::{AsFile, By, Keyed, Maybe, Table, keys, optional};
use crate::masked::names_a_secret;
use crate::read::http::{header_path, is_value};
use crate::read::{Entry, Node, Reader, Value};
use crate::secret::{HIDDEN, may_be_shown};

const EXAMPLE: &str = "a table such as { Authorization = \"Bearer {token}\" }";

impl Keyed for ChatHttp {
    const NAME: &'static str = "PostFile";
    const MEANING: &'static str = "Where messages are sent to, on a server of server-sent events. \
        Paths are on the target's server.";

    keys! {
        /// what is said, and all that has no path of its own
        "path": post = Maybe(SentTo("\"/say\"")), Said("the target's URL");
        /// the message of who leaves
        "leave": leave = Maybe(SentTo("\"/leave\"")), Said("`path`");
        /// own signs of life
        "keep_alive": keep_alive = Maybe(SentTo("\"/ping\"")), Said("`path`");
        /// answers to the server's signs of life
        "pong": pong = Maybe(SentTo("\"/pong\"")), Said("`path`");
        /// `Content-Type` of what is sent
        "content_type": content_type = Maybe(CONTENT_TYPE), Said("`text/plain;charset=UTF-8`");
    }

    fn usual() -> Self {
        Self::default()
    }
}

/// With this table the requests begin; the keys beside it are read after it.
pub(super) const POST: By<ChatHttp> = By {
    read: |reader, fields, key| {
        let expected = "a table such as { path = \"/say\", content_type = \"application/json\" }";
        optional(reader, fields, key, expected)
    },
    write: |http| {
        let table = Table::of(http);
        if table.is_empty() { None } else { serde_json::to_value(table).ok() }
    },
    schema: |generator| generator.subschema_for::<Table<ChatHttp>>().to_value(),
};

const CONTENT_TYPE: AsFile<String, String> = AsFile { read: content_type, write: String::clone };

/// They are written without the secrets that they say themselves.
pub(super) const HEADERS: AsFile<Vec<(String, ChatText)>, BTreeMap<String, String>> = AsFile {
    read: headers,
    write: |headers| {
        let shown = |(name, text): &(String, ChatText)| (name.clone(), shown_value(name, text));
        headers.iter().map(shown).collect()
    },
};

/// What to do about a header that belongs to the request, or is throng's own; `None` of others.
fn help_for_own(name: &str) -> Option<&'static str> {
    match name {
        "content-type" => Some("write post.content_type"),
        "origin" => Some("write chat.origin"),
        "accept" | "cache-control" | "connection" | "content-length" | "host" | "last-event-id"
        | "te" | "transfer-encoding" | "upgrade" => Some("remove it"),
        _ => None,
    }
}

/// What a header may have in it: the nickname may change while the stream is open.
const IN_HEADERS: [ChatVariable; 3] =
    [ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];

fn content_type(reader: &mut Reader, node: &Node, path: &str) -> Option<String> {
    let text = reader.text(node, path, "text such as \"application/json\"")?;
    let is_type =
        text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    if is_type && is_value(&text) {
        return Some(text);
    }
    reader.fail(
        node.span,
        format!("`{path}` is not the type of a body"),
        "write content_type = \"application/json\"",
    );
    None
}

fn headers(reader: &mut Reader, node: &Node, path: &str) -> Option<Vec<(String, ChatText)>> {
    let Value::Table(entries) = &node.value else {
        reader.fail(node.span, format!("`{path}` is not {EXAMPLE}"), format!("write {EXAMPLE}"));
        return None;
    };
    let headers = entries.iter().filter_map(|entry| header(reader, entry, path));
    let mut headers: Vec<_> = headers.collect();
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some(headers)
}

fn header(reader: &mut Reader, entry: &Entry, path: &str) -> Option<(String, ChatText)> {
    let path = header_path(reader, entry, path, help_for_own)?;
    let written = reader.text(&entry.node, &path, "text")?;
    let is_reference = ["env:", "file:"].iter().any(|begin| written.starts_with(begin));
    // Earlier versions took references for values.
    let problem = if reader.is_redacted() && (written == HIDDEN || is_reference) {
        None
    } else if written.contains(HIDDEN) {
        Some("was redacted when this scenario was stored")
    } else if is_reference {
        Some("would be sent as it is written: a header of a chat is no reference")
    } else if is_value(&written) {
        None
    } else {
        Some("has characters that are not printable ASCII, or begins or ends with a space")
    };
    if let Some(problem) = problem {
        let message = format!("`{path}` {problem}");
        let help = if is_reference {
            "write {token}, and target.token = \"env:NAME\""
        } else {
            "write for example \"Bearer {token}\""
        };
        reader.fail(entry.node.span, message, help);
        return None;
    }
    Some((entry.key.clone(), text_of(reader, &entry.node, &path, &written, &IN_HEADERS)?))
}

/// The value of a header, as far as it is no secret.
fn shown_value(name: &str, text: &ChatText) -> String {
    let is_harmless = HARMLESS.iter().any(|one| one.eq_ignore_ascii_case(name));
    if is_harmless || is_of_variables(text) { written(text) } else { HIDDEN.to_owned() }
}

/// Headers that say no secret.
const HARMLESS: [&str; 7] = [
    "accept",
    "accept-language",
    "cache-control",
    "content-type",
    "origin",
    "user-agent",
    "x-requested-with",
];

/// Words before what a server knows somebody by.
const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];

/// Stands for a variable. No header has it.
const VARIABLE: &str = "\0";

/// Whether all that may be a secret of a value comes from variables: `Bearer {token}`,
/// `sid={token}; lang=en`.
fn is_of_variables(text: &ChatText) -> bool {
    let filled = text.filled(|_| VARIABLE);
    let is_scheme = |word: &str| SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(word));
    let credentials = filled.split_once(' ').filter(|(word, _)| is_scheme(word));
    let value = credentials.map_or(filled.as_str(), |(_, value)| value);
    filled.contains(VARIABLE) && value.split([';', ',']).all(|part| is_shown(part.trim_start()))
}

/// Whether a part of a value is a variable, or has one behind its name, or is a pair that may be
/// shown.
fn is_shown(part: &str) -> bool {
    let is_variable = |value: &str| {
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value = quoted.unwrap_or(value);
        !value.is_empty() && value.trim_start_matches(VARIABLE).is_empty()
    };
    let Some((name, value)) = part.split_once('=') else { return is_variable(part) };
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let is_plain = || !names_a_secret(name) && !names_a_session(name) && may_be_shown(part);
    is_name && !name.is_empty() && (is_variable(value) || is_plain())
}

/// Whether a name is one of a session, as in `sid`, `PHPSESSID`.
fn names_a_session(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["sid", "sess"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Form as _;

    #[test]
    fn of_headers_only_variables_and_what_is_known_to_be_harmless_are_shown() {
        for (name, value, is_shown) in [
            ("X-Session", "S3CRET", false),
            ("X-Up", "Bearer S3CRET", false),
            ("X-Room", "S3CRET{token}", false),
            ("X-Room", "{room}S3CRET", false),
            ("X-Room", "{S3CRET}", false),
            ("Authorization", "S3CRET {token}", false),
            ("Authorization", "Bearer {token} S3CRET", false),
            ("Cookie", "sid={token}; auth=S3CRET", false),
            ("Cookie", "sid={token}; PHPSESSID=S3CRET", false),
            ("Cookie", "lang=en", false),
            ("Authorization", "Bearer {token}", true),
            ("Authorization", "Token token={token}", true),
            ("Authorization", "Token token=\"{token}\", user={n}", true),
            ("X-Auth-User", "{n}", true),
            ("X-Room-Key", "{room}", true),
            ("Cookie", "sid={token}", true),
            ("Cookie", "sid={token}; lang=en", true),
            ("User-Agent", "Mozilla/5.0 (X11)", true),
            ("X-Requested-With", "XMLHttpRequest", true),
        ] {
            let allowed = [ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];
            let text = ChatText::parse(value, &allowed).unwrap();
            let written = HEADERS.write(&vec![(name.to_owned(), text)]).unwrap();
            let shown = if is_shown { value } else { HIDDEN };
            assert_eq!(written[name], shown, "{value}");
        }
    }
}
