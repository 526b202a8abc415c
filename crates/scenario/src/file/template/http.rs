//! The schema of `post` of a `chat.template`, and how it and `headers` are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::written;
use crate::chat::ChatHttp;
use crate::masked::names_a_secret;
use crate::secret::HIDDEN;

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
    let value = |name: &str, value: &str| {
        let is_shown = !names_a_secret(name) || is_of_token(value);
        if is_shown { value.to_owned() } else { HIDDEN.to_owned() }
    };
    let headers = http.headers.iter();
    headers.map(|(name, text)| (name.clone(), value(name, text.written()))).collect()
}

/// Whether all that is secret of a value is the token of the target: `Bearer {token}`,
/// `sid={token}`.
fn is_of_token(value: &str) -> bool {
    value.strip_suffix("{token}").is_some_and(|before| {
        let name = before.strip_suffix([' ', '=']).unwrap_or(before);
        name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte))
    })
}
