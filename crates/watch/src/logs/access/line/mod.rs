//! Parses access log lines: combined (nginx, lighttpd, Apache), JSON (Caddy, nginx's `log_format …
//! escape=json`) or those of S3 servers. The format is detected for each line.

use std::borrow::Cow;

use super::{combined, json, s3};

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

    pub(super) fn of(text: &str) -> Self {
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
        text @ [b'{', ..] => json::parse(text),
        text => combined::parse(text).or_else(|| s3::parse(text)),
    }
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

/// The text before the closing quote, and the text after it. Servers escape quotes as `\"` or
/// `\x22`.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// The path of a request target: without query and fragment, and without scheme and host (RFC 9112
/// 3.2.2).
pub(super) fn path_of(uri: Cow<'_, str>) -> Cow<'_, str> {
    let begins = match uri.find("://") {
        Some(at) if !uri.starts_with('/') => uri
            .get(at + 3..)
            .and_then(|rest| rest.find('/'))
            .map_or(uri.len(), |slash| at + 3 + slash),
        _ => 0,
    };
    let ends = uri.find(['?', '#']).unwrap_or(uri.len()).max(begins);
    match uri {
        Cow::Borrowed(uri) => Cow::Borrowed(uri.get(begins..ends).unwrap_or(uri)),
        Cow::Owned(uri) => Cow::Owned(uri.get(begins..ends).unwrap_or(&uri).to_owned()),
    }
}

#[cfg(test)]
mod tests;
