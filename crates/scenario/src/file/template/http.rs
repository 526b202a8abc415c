//! The schema of `post` of a `chat.template`, and how it and `headers` are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::written;
use crate::chat::{ChatHttp, ChatText};
use crate::masked::names_a_secret;
use crate::secret::{HIDDEN, may_be_shown};

/// Where messages are sent to, on a server of server-sent events. Paths are on the target's server.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PostFile {
    /// What is said, and all that has no path of its own; default: the target's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    path: Option<String>,
    /// The message of who leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    leave: Option<String>,
    /// Own signs of life.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    keep_alive: Option<String>,
    /// Answers to the server's signs of life.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    pong: Option<String>,
    /// `Content-Type` of what is sent; default `text/plain;charset=UTF-8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
}

/// As in a file; `None` if all is default.
pub(super) fn post(http: &ChatHttp) -> Option<PostFile> {
    let of_post = ChatHttp { stream: None, headers: Vec::new(), replay: false, ..http.clone() };
    (of_post != ChatHttp::default()).then(|| PostFile {
        path: http.post.as_ref().map(written),
        leave: http.leave.as_ref().map(written),
        keep_alive: http.keep_alive.as_ref().map(written),
        pong: http.pong.as_ref().map(written),
        content_type: http.content_type.clone(),
    })
}

/// The headers without the secrets that they say themselves.
pub(super) fn headers(http: &ChatHttp) -> BTreeMap<String, String> {
    let value = |name: &str, text: &ChatText| {
        let is_harmless = HARMLESS.iter().any(|one| one.eq_ignore_ascii_case(name));
        if is_harmless || is_of_variables(text) { written(text) } else { HIDDEN.to_owned() }
    };
    http.headers.iter().map(|(name, text)| (name.clone(), value(name, text))).collect()
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
            let http = ChatHttp { headers: vec![(name.to_owned(), text)], ..ChatHttp::default() };
            let shown = if is_shown { value } else { HIDDEN };
            assert_eq!(headers(&http).get(name).map(String::as_str), Some(shown), "{value}");
        }
    }
}
