//! JSON: Caddy's, and what users make of nginx's `log_format … escape=json`.

use std::borrow::Cow;

use serde::Deserialize;

use super::line::{AccessLine, Protocol, path_of, words_of};
use super::time;

/// Both layouts: Caddy's with a `request` object, nginx's flat. Field names are nginx's variables,
/// Caddy's names, and common choices of users.
#[derive(Deserialize)]
struct Json<'a> {
    #[serde(borrow)]
    request: Option<Request<'a>>,
    #[serde(borrow)]
    request_uri: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "path", alias = "url")]
    uri: Option<Cow<'a, str>>,
    #[serde(default)]
    status: Option<Number>,
    #[serde(default, alias = "size", alias = "bytes")]
    bytes_sent: Option<Number>,
    #[serde(default)]
    body_bytes_sent: Option<Number>,
    #[serde(borrow, alias = "server_protocol", alias = "proto")]
    protocol: Option<Cow<'a, str>>,
    /// Seconds.
    #[serde(default, alias = "duration")]
    request_time: Option<Number>,
    #[serde(borrow, alias = "request_method")]
    method: Option<Cow<'a, str>>,
    /// Caddy's, nginx's three, and common names. A log may have several.
    #[serde(default)]
    ts: Option<Time<'a>>,
    #[serde(default)]
    msec: Option<Time<'a>>,
    #[serde(default)]
    time: Option<Time<'a>>,
    #[serde(default)]
    time_local: Option<Time<'a>>,
    #[serde(default)]
    time_iso8601: Option<Time<'a>>,
    #[serde(default, rename = "@timestamp")]
    timestamp: Option<Time<'a>>,
    #[serde(borrow)]
    http_user_agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    user_agent: Option<Cow<'a, str>>,
}

/// A time as a number or as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time<'a> {
    Seconds(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

impl Time<'_> {
    fn unix_s(&self) -> Option<f64> {
        match self {
            Self::Seconds(seconds) => time::plausible(*seconds),
            Self::Text(text) => time::unix_s(text),
        }
    }
}

/// Caddy's is an object; nginx's `$request` is `GET /x HTTP/1.1`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Request<'a> {
    Fields {
        #[serde(borrow)]
        uri: Cow<'a, str>,
        #[serde(borrow, default)]
        proto: Cow<'a, str>,
        #[serde(borrow, default)]
        method: Cow<'a, str>,
        #[serde(borrow, default)]
        headers: Headers<'a>,
    },
    Line(#[serde(borrow)] Cow<'a, str>),
}

/// The request's headers, by their names in Go.
#[derive(Default, Deserialize)]
struct Headers<'a> {
    #[serde(borrow, default, rename = "User-Agent")]
    user_agent: Vec<Cow<'a, str>>,
}

/// Numbers may be quoted: nginx configurations often do so.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(f64),
    Quoted(String),
}

impl Number {
    fn value(&self) -> Option<f64> {
        let value = match self {
            Self::Plain(value) => *value,
            Self::Quoted(text) => text.parse().ok()?,
        };
        (value.is_finite() && value >= 0.0).then_some(value)
    }
}

/// Parses a line of JSON.
pub(super) fn parse(line: &[u8]) -> Option<AccessLine<'_>> {
    let json: Json<'_> = serde_json::from_slice(line).ok()?;
    let times =
        [&json.ts, &json.msec, &json.time_iso8601, &json.time, &json.time_local, &json.timestamp];
    let at_unix_s = times.into_iter().flatten().find_map(Time::unix_s);
    let of_line = json.http_user_agent.or(json.user_agent);
    let (method, uri, protocol, user_agent) = match json.request {
        Some(Request::Fields { uri, proto, method, headers }) => {
            (method, uri, Protocol::of(&proto), headers.user_agent.into_iter().next())
        }
        Some(Request::Line(request)) => {
            let (method, uri, protocol) = words_of(request.as_bytes());
            let [method, uri] = [method, uri].map(|word| Cow::Owned(word.into_owned()));
            (method, uri, protocol, of_line)
        }
        None => {
            let protocol = Protocol::of(json.protocol.as_deref().unwrap_or_default());
            // As the client sent it, before the server rewrote it.
            let uri = json.request_uri.or(json.uri)?;
            (json.method.unwrap_or_default(), uri, protocol, of_line)
        }
    };
    let status = json.status.and_then(|status| status.value()).filter(|status| *status <= 999.0)?;
    let bytes = json.body_bytes_sent.or(json.bytes_sent).and_then(|bytes| bytes.value());
    Some(AccessLine {
        method,
        path: path_of(uri),
        status: status as u16,
        bytes: bytes.unwrap_or(0.0) as u64,
        protocol,
        duration_ms: json
            .request_time
            .and_then(|seconds| seconds.value())
            .map(|seconds| seconds * 1e3),
        at_unix_s,
        user_agent: user_agent.filter(|agent| agent != "-"),
    })
}
