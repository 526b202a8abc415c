//! Parses access log lines: combined (nginx, lighttpd, Apache), JSON (Caddy, nginx's `log_format … escape=json`) or those of
//! S3 servers. The format is detected for each line.

use std::borrow::Cow;

use serde::Deserialize;

use super::{s3, time};

/// An answered request.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessLine<'a> {
    /// The method; empty if the log has none.
    pub method: Cow<'a, str>,
    /// The path, without scheme, host and query.
    pub path: Cow<'a, str>,
    /// The response's status code; 0 if the log has none.
    pub status: u16,
    /// Bytes sent: the body, and the headers if the log counts them.
    pub bytes: u64,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// From the request's first byte to the response's last, milliseconds, if the log has it.
    pub duration_ms: Option<f64>,
    /// When it was logged, or began, as the server decides: seconds since 1970, if the log has it.
    pub at_unix_s: Option<f64>,
    /// `User-Agent` of the request, if the log has it.
    pub user_agent: Option<Cow<'a, str>>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP/0.9, 1.0 and 1.1.
    H1,
    /// HTTP/2.
    H2,
    /// HTTP/3.
    H3,
    /// Unknown, or another version.
    Other,
}

impl Protocol {
    /// The value of the label `protocol`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
            Self::Other => "other",
        }
    }

    fn of(text: &str) -> Self {
        match text.strip_prefix("HTTP/") {
            Some(version) if version.starts_with('1') || version.starts_with('0') => Self::H1,
            Some("2" | "2.0") => Self::H2,
            Some("3" | "3.0") => Self::H3,
            _ => Self::Other,
        }
    }
}

/// Parses a line; `None` if it has none of the formats.
#[must_use]
pub fn parse(line: &[u8]) -> Option<AccessLine<'_>> {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    match line.get(start..)? {
        json @ [b'{', ..] => parse_json(json),
        text => parse_combined(text).or_else(|| s3::parse(text)),
    }
}

/// `HOST IDENT USER [TIME] "METHOD URI PROTOCOL" STATUS BYTES …`: the rest of the line is ignored, so formats with
/// appended fields are parsed too.
fn parse_combined(line: &[u8]) -> Option<AccessLine<'_>> {
    let mark = b"] \"";
    let close = line.windows(mark.len()).position(|window| window == mark)?;
    let (before, after) = (line.get(..close)?, line.get(close + mark.len()..)?);
    let time = before.iter().rposition(|byte| *byte == b'[').and_then(|open| before.get(open + 1..));
    let (request, rest) = quoted(after)?;
    let mut fields = rest.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let status = decimal(fields.next()?).filter(|status| *status <= 999)?;
    let bytes = match fields.next()? {
        b"-" => 0,
        digits => decimal(digits)?,
    };
    let (method, uri, protocol) = words_of(request);
    Some(AccessLine {
        method,
        path: path_of(uri),
        status: status as u16,
        bytes,
        protocol,
        duration_ms: None,
        at_unix_s: time.and_then(|time| time::unix_s(&text_of(time))),
        user_agent: user_agent_of(rest),
    })
}

/// The second text in quotes: the first is `Referer`.
fn user_agent_of(rest: &[u8]) -> Option<Cow<'_, str>> {
    let after_quote = |text: &[u8]| text.iter().position(|byte| *byte == b'"').map(|at| at + 1);
    let (_referer, rest) = quoted(rest.get(after_quote(rest)?..)?)?;
    let (agent, _) = quoted(rest.get(after_quote(rest)?..)?)?;
    Some(text_of(agent)).filter(|agent| agent != "-")
}

/// Method, URI and protocol of `GET /x HTTP/1.1`.
pub(super) fn words_of(request: &[u8]) -> (Cow<'_, str>, Cow<'_, str>, Protocol) {
    let mut words = request.split(|byte| *byte == b' ');
    let (method, uri, protocol) = (words.next(), words.next(), words.next_back());
    // What is not HTTP has no URI, and no method either.
    let method = method.filter(|_| uri.is_some()).unwrap_or_default();
    let protocol = Protocol::of(&text_of(protocol.unwrap_or_default()));
    (text_of(method), text_of(uri.unwrap_or_default()), protocol)
}

pub(super) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The text before the closing quote, and the text after it. Servers escape quotes as `\"` or `\x22`.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// Both layouts: Caddy's with a `request` object, nginx's flat. Field names are nginx's variables, Caddy's names, and
/// common choices of users.
#[derive(Deserialize)]
struct Json<'a> {
    #[serde(borrow)]
    request: Option<Request<'a>>,
    #[serde(borrow, alias = "request_uri", alias = "path", alias = "url")]
    uri: Option<Cow<'a, str>>,
    #[serde(default)]
    status: Option<Number>,
    #[serde(default, alias = "body_bytes_sent", alias = "size", alias = "bytes")]
    bytes_sent: Option<Number>,
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

fn parse_json(line: &[u8]) -> Option<AccessLine<'_>> {
    let json: Json<'_> = serde_json::from_slice(line).ok()?;
    let times = [&json.ts, &json.msec, &json.time_iso8601, &json.time, &json.time_local, &json.timestamp];
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
            (json.method.unwrap_or_default(), json.uri?, protocol, of_line)
        }
    };
    let status = json.status.and_then(|status| status.value()).filter(|status| *status <= 999.0)?;
    Some(AccessLine {
        method,
        path: path_of(uri),
        status: status as u16,
        bytes: json.bytes_sent.and_then(|bytes| bytes.value()).unwrap_or(0.0) as u64,
        protocol,
        duration_ms: json.request_time.and_then(|seconds| seconds.value()).map(|seconds| seconds * 1e3),
        at_unix_s,
        user_agent: user_agent.filter(|agent| agent != "-"),
    })
}

/// The path of a request target: without query and fragment, and without scheme and host (RFC 9112 3.2.2).
pub(super) fn path_of(uri: Cow<'_, str>) -> Cow<'_, str> {
    let begins = match uri.find("://") {
        Some(at) if !uri.starts_with('/') => {
            uri.get(at + 3..).and_then(|rest| rest.find('/')).map_or(uri.len(), |slash| at + 3 + slash)
        }
        _ => 0,
    };
    let ends = uri.find(['?', '#']).unwrap_or(uri.len()).max(begins);
    match uri {
        Cow::Borrowed(uri) => Cow::Borrowed(uri.get(begins..ends).unwrap_or(uri)),
        Cow::Owned(uri) => Cow::Owned(uri.get(begins..ends).unwrap_or(&uri).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, path: &str, status: u16, bytes: u64, protocol: Protocol) {
        let got = parse(line.as_bytes()).unwrap_or_else(|| panic!("not read: {line}"));
        assert_eq!(
            (&*got.path, got.status, got.bytes, got.protocol),
            (path, status, bytes, protocol),
            "{line}"
        );
    }

    #[test]
    fn combined_lines_of_nginx_lighttpd_and_apache_are_read() {
        check(
            r#"127.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET /hls/s1/0.ts HTTP/1.1" 200 221000 "-" "curl/7.88""#,
            "/hls/s1/0.ts",
            200,
            221_000,
            Protocol::H1,
        );
        check(
            r#"::1 localhost:8082 - [20/Nov/2026:10:00:00 +0000] "GET /a.m3u8?_HLS_msn=1 HTTP/2.0" 304 - "" "x""#,
            "/a.m3u8",
            304,
            0,
            Protocol::H2,
        );
        check(
            r#"10.0.0.1 - u [20/Nov/2026:10:00:00 +0000] "GET http://h:80/p/q#f HTTP/3.0" 101 12 "-" "-" 0.123 "up""#,
            "/p/q",
            101,
            12,
            Protocol::H3,
        );
        check(r#"1.2.3.4 - - [t] "GET /say\"hi\" HTTP/1.0" 404 1 "#, r#"/say\"hi\""#, 404, 1, Protocol::H1);
        // Not HTTP at all: nginx logs it with status 400.
        check(r#"1.2.3.4 - - [t] "\x16\x03\x01" 400 157 "-" "-""#, "", 400, 157, Protocol::Other);
        check(r#"1.2.3.4 - - [t] "-" 408 0 "-" "-""#, "", 408, 0, Protocol::Other);
    }

    #[test]
    fn json_lines_of_caddy_and_nginx_are_read() {
        check(
            r#"{"level":"info","ts":1.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","proto":"HTTP/3.0","method":"GET","host":"h","uri":"/vod/x.mp4?a=1","headers":{"A":["b"]}},"duration":0.25,"size":4600000,"status":206}"#,
            "/vod/x.mp4",
            206,
            4_600_000,
            Protocol::H3,
        );
        check(
            r#"{"uri":"/a/b","status":"502","bytes_sent":"157","server_protocol":"HTTP/1.1","request_time":"0.004"}"#,
            "/a/b",
            502,
            157,
            Protocol::H1,
        );
        check(
            r#" {"request":"GET /x?y HTTP/2.0","status":200,"body_bytes_sent":9}"#,
            "/x",
            200,
            9,
            Protocol::H2,
        );
        let timed = parse(br#"{"uri":"/","status":200,"request_time":0.25}"#).unwrap();
        assert_eq!(timed.duration_ms, Some(250.0));
    }

    #[test]
    fn method_time_and_user_agent_are_read_where_the_log_has_them() {
        let at = 1_795_632_000.0;
        for (line, method, at_unix_s, user_agent) in [
            (
                r#"::1 - - [25/Nov/2026:18:40:00 +0000] "GET /a HTTP/1.1" 200 5 "http://b/\"c" "throng/0.1.0" x"#,
                "GET",
                Some(at),
                Some("throng/0.1.0"),
            ),
            (
                r#"::1 - - [25/Nov/2026:18:40:00 +0000] "HEAD /a HTTP/1.1" 200 5 "-" "-""#,
                "HEAD",
                Some(at),
                None,
            ),
            (r#"::1 - - [25/Nov/2026:18:40:00 +0000] "GET /a HTTP/1.1" 200 5"#, "GET", Some(at), None),
            (r#"::1 - - [t] "x" 400 5 "-""#, "", None, None),
            (
                r#"{"ts":1795632000,"request":{"proto":"HTTP/2.0","method":"GET","uri":"/a","headers":{"User-Agent":["Mozilla/5.0"],"B":[]}},"status":200}"#,
                "GET",
                Some(at),
                Some("Mozilla/5.0"),
            ),
            (
                r#"{"msec":"1795632000.000","time_local":"?","request":"GET /a HTTP/1.1","status":"200","http_user_agent":"x\"y"}"#,
                "GET",
                Some(at),
                Some("x\"y"),
            ),
            (
                r#"{"time_iso8601":"2026-11-25T18:40:00+00:00","request_method":"POST","uri":"/a","status":200}"#,
                "POST",
                Some(at),
                None,
            ),
            (r#"{"ts":"2026/11/25 18:40:00","uri":"/a","status":200}"#, "", None, None),
        ] {
            let read = parse(line.as_bytes()).unwrap_or_else(|| panic!("not read: {line}"));
            assert_eq!(
                (&*read.method, read.at_unix_s, read.user_agent.as_deref()),
                (method, at_unix_s, user_agent),
                "{line}"
            );
        }
    }

    #[test]
    fn lines_in_another_format_are_refused() {
        for line in [
            "",
            " ",
            "{",
            "{}",
            "hello",
            r#"[t] "GET / HTTP/1.1""#,
            r#"[t] "GET / HTTP/1.1" 99999 1"#,
            r#"[t] "GET / HTTP/1.1" 200 -5"#,
            r#"{"uri":"/","status":-1}"#,
            r#"{"uri":"/","status":1e300}"#,
            r#"{"request":{"uri":7},"status":200}"#,
            r#"] "unclosed 200 1"#,
            r#"{"level":"info","msg":"serving"}"#,
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(parse(b"] \"\xff\xfe \xff HTTP/1.1\" 200 1").map(|line| line.status), Some(200));
    }

    #[test]
    fn truncated_and_mutated_lines_do_not_panic() {
        let line =
            br#"{"request":{"proto":"HTTP/2.0","uri":"/vod/x.mp4"},"duration":0.25,"size":46,"status":206}"#;
        let combined = br#"1.2.3.4 - - [t] "GET http://h/say\"hi HTTP/1.0" 404 1 "-" "x""#;
        for text in [&line[..], &combined[..]] {
            for end in 0..text.len() {
                let _ = parse(&text[..end]);
                let mut changed = text.to_vec();
                changed[end] = changed[end].wrapping_mul(7).wrapping_add(end as u8);
                let _ = parse(&changed);
            }
        }
    }
}
