//! Where things are on a server of server-sent events: `post` and `headers` of a `chat.template`,
//! in a file.

use std::marker::PhantomData;

use serde_json::json;

use super::words::{CONTENT_TYPE, HEADER, path};
use super::{ChatHttp, ChatText};
use crate::keys::Usual::Said;
use crate::keys::{By, Form as _, Keyed, Maybe, Table, in_any_case, keys, optional};
use crate::masked::{is_of_variables, names_a_secret, without_scheme};
use crate::read::http::header_path;
use crate::read::{Entry, Node, Reader, Value};
use crate::secret::{HIDDEN, may_be_shown};

const EXAMPLE: &str = "a table such as { Authorization = \"Bearer {token}\" }";

impl Keyed for ChatHttp {
    const NAME: &'static str = "PostFile";
    const MEANING: &'static str = "Where messages are sent to, on a server of server-sent events. \
        Paths are on the target's server.";

    keys! {
        /// what is said, and all that has no path of its own
        "path": post = Maybe(path("\"/say\"")), Said("the target's URL");
        /// the message of who leaves
        "leave": leave = Maybe(path("\"/leave\"")), Said("`path`");
        /// own signs of life
        "keep_alive": keep_alive = Maybe(path("\"/ping\"")), Said("`path`");
        /// answers to the server's signs of life
        "pong": pong = Maybe(path("\"/pong\"")), Said("`path`");
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

/// They are written without the secrets that they say themselves.
pub(super) const HEADERS: By<Vec<(String, ChatText)>> = By {
    read: |reader, fields, key| {
        let path = fields.path_of(key);
        headers(reader, fields.get(key)?, &path)
    },
    write: |headers| {
        let shown = |(name, text): &(String, ChatText)| (name.clone(), shown_value(name, text));
        Some(headers.iter().map(shown).collect())
    },
    schema: |generator| {
        let own: Vec<String> = OWN.iter().map(|(name, _)| in_any_case(name)).collect();
        let own = json!({ "pattern": format!("^({})$", own.join("|")) });
        let reference = json!({ "pattern": format!("^({})", REFERENCES.join("|")) });
        let name = json!({ "pattern": NAME, "not": own });
        let value = HEADER.schema(PhantomData, generator);
        let value = json!({ "allOf": [value], "not": reference });
        json!({ "type": "object", "propertyNames": name, "additionalProperties": value })
    },
};

/// The name of a header, as [`header_path`] takes it.
const NAME: &str = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";
/// What a value does not begin with.
const REFERENCES: [&str; 2] = ["env:", "file:"];

/// Headers that belong to the request, or are throng's own, and what to do about them.
const OWN: [(&str, &str); 11] = [
    ("content-type", "write post.content_type"),
    ("origin", "write chat.origin"),
    ("accept", REMOVE),
    ("cache-control", REMOVE),
    ("connection", REMOVE),
    ("content-length", REMOVE),
    ("host", REMOVE),
    ("last-event-id", REMOVE),
    ("te", REMOVE),
    ("transfer-encoding", REMOVE),
    ("upgrade", REMOVE),
];
const REMOVE: &str = "remove it";

fn help_for_own(name: &str) -> Option<&'static str> {
    OWN.iter().find(|(own, _)| *own == name).map(|(_, help)| *help)
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
    let is_reference = REFERENCES.iter().any(|begin| written.starts_with(begin));
    // Earlier versions took references for values.
    if is_reference && !reader.is_redacted() {
        let problem = "would be sent as it is written: a header of a chat is no reference";
        let help = "write {token}, and target.token = \"env:NAME\"";
        reader.fail(entry.node.span, format!("`{path}` {problem}"), help);
        return None;
    }
    Some((entry.key.clone(), HEADER.of_text(reader, &entry.node, &path, &written)?))
}

/// The value of a header, as far as it is no secret.
fn shown_value(name: &str, text: &ChatText) -> String {
    let is_harmless = HARMLESS.iter().any(|one| one.eq_ignore_ascii_case(name));
    if is_harmless || has_only_variables(text.written()) {
        text.to_string()
    } else {
        HIDDEN.to_owned()
    }
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

/// Whether all that may be a secret of a value comes from variables: `Bearer {token}`,
/// `sid={token}; lang=en`.
fn has_only_variables(value: &str) -> bool {
    let parts = || without_scheme(value).split([';', ',']).map(str::trim_start);
    parts().any(is_variable) && parts().all(is_shown)
}

/// Whether a part of a value is a variable, or has one behind its name.
fn is_variable(part: &str) -> bool {
    let value = part.split_once('=').map_or(part, |(_, value)| value);
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    is_of_variables(quoted.unwrap_or(value))
}

/// The same, or a pair that may be shown.
fn is_shown(part: &str) -> bool {
    let Some((name, _)) = part.split_once('=') else { return is_variable(part) };
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let is_plain = || !names_a_secret(name) && !names_a_session(name) && may_be_shown(part);
    is_name && !name.is_empty() && (is_variable(part) || is_plain())
}

/// Whether a name is one of a session, as in `sid`, `PHPSESSID`.
fn names_a_session(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["sid", "sess"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatVariable;

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
