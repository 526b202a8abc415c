//! Preflights: whether a server lets another origin's page send headers that a form could not send
//! (Fetch standard, CORS-preflight fetch and cache; the limits are Chromium's).
//!
//! ```text
//! OPTIONS /live.m3u8                                ─────▶
//!   Access-Control-Request-Method: GET
//!   Access-Control-Request-Headers: authorization
//!                                                   ◀─────   204, Access-Control-Allow-Headers:
//!                                                             authorization
//! GET /live.m3u8, Authorization: Bearer …           ─────▶
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE,
    CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::{HeaderMap, StatusCode};
use throng_observation::Url;
use throng_scenario::CredentialsPolicy;

use super::cors::{Origins, joined};
use crate::participant::FetchId;

/// How long an answer is kept that does not say it, and the longest that one is kept.
const KEPT: Duration = Duration::from_secs(5);
const KEPT_MAX: Duration = Duration::from_secs(2 * 3_600);

/// Most answers that are kept.
const ANSWERS_MAX: usize = 1_024;

/// Longest value of a header that needs no preflight.
const SAFE_LEN_MAX: usize = 128;

/// Headers that no script can set, and `User-Agent`, which stands for the browser's own.
const OF_BROWSER: [&str; 21] = [
    "accept-charset",
    "accept-encoding",
    "access-control-request-headers",
    "access-control-request-method",
    "connection",
    "content-length",
    "cookie",
    "cookie2",
    "date",
    "dnt",
    "expect",
    "host",
    "keep-alive",
    "origin",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// The preflights of a player, and what servers have answered.
#[derive(Debug, Default)]
pub(in crate::player) struct Preflights {
    /// By URL. Its method, credentials mode and page do not change.
    answers: HashMap<Url, Answer>,
    waiting: Vec<Waiting>,
}

/// A request that waits for its preflight.
#[derive(Debug)]
pub(in crate::player) struct Waiting {
    pub(in crate::player) preflight: FetchId,
    pub(in crate::player) request: FetchId,
    pub(in crate::player) url: Url,
    pub(in crate::player) head: http::request::Parts,
    /// What the server has to allow.
    pub(in crate::player) headers: Vec<HeaderName>,
    pub(in crate::player) origins: Origins,
    pub(in crate::player) asked_at: Instant,
    /// The server has allowed it, and the end of its answer is awaited.
    pub(in crate::player) is_allowed: bool,
}

/// What a server allows.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::player) struct Answer {
    headers: AllowedHeaders,
    kept: Duration,
    until: Instant,
}

#[derive(Debug, PartialEq, Eq)]
enum AllowedHeaders {
    /// `*`.
    All,
    /// In lower case.
    Named(Vec<String>),
}

impl Preflights {
    /// Whether a kept answer allows a request to `url` with these headers.
    pub(in crate::player) fn allow(
        &mut self,
        now: Instant,
        url: &Url,
        before: Origins,
        headers: &[HeaderName],
    ) -> bool {
        if before.is_opaque() {
            return false;
        }
        let Some(answer) = self.answers.get(url) else { return false };
        let allows = now < answer.until && headers.iter().all(|name| answer.headers.has(name));
        if !allows {
            self.answers.remove(url);
        }
        allows
    }

    /// Keeps an answer for as long as it says. That to a page which was not named is no other
    /// request's.
    pub(in crate::player) fn learn(
        &mut self,
        now: Instant,
        url: &Url,
        before: Origins,
        answer: Answer,
    ) {
        if answer.kept.is_zero() || before.is_opaque() {
            return;
        }
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.retain(|_, answer| now < answer.until);
        }
        if self.answers.len() >= ANSWERS_MAX
            && let Some((first, _)) = self.answers.iter().min_by_key(|(_, answer)| answer.until)
        {
            let first = first.clone();
            self.answers.remove(&first);
        }
        self.answers.insert(url.clone(), answer);
    }

    pub(in crate::player) fn wait(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Takes what waits for this preflight.
    pub(in crate::player) fn take(&mut self, preflight: FetchId) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.preflight == preflight)?;
        Some(self.waiting.swap_remove(at))
    }

    /// Takes this request, if it waits.
    pub(in crate::player) fn take_request(&mut self, request: FetchId) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.request == request)?;
        Some(self.waiting.swap_remove(at))
    }
}

impl Answer {
    /// What a server allows by its response, which the page may have, if that is all of `wanted`;
    /// an error says why not.
    pub(in crate::player) fn read(
        now: Instant,
        head: &http::response::Parts,
        wanted: &[HeaderName],
        credentials: CredentialsPolicy,
    ) -> Result<Self, String> {
        if !head.status.is_success() {
            return Err(format!("HTTP status {}", head.status.as_u16()));
        }
        list(&head.headers, &ACCESS_CONTROL_ALLOW_METHODS)?;
        let names = list(&head.headers, &ACCESS_CONTROL_ALLOW_HEADERS)?;
        // `Authorization` too, which the standard excepts: Chromium 156 does not.
        let is_all =
            credentials != CredentialsPolicy::Include && names.iter().any(|name| name == "*");
        let headers = if is_all { AllowedHeaders::All } else { AllowedHeaders::Named(names) };
        let refused: Vec<_> =
            wanted.iter().filter(|name| !headers.has(name)).map(HeaderName::as_str).collect();
        if !refused.is_empty() {
            return Err(format!("Access-Control-Allow-Headers lacks {}", refused.join(", ")));
        }
        let kept = kept(&head.headers);
        Ok(Self { headers, kept, until: now + kept })
    }
}

impl AllowedHeaders {
    fn has(&self, name: &HeaderName) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|known| known == name.as_str()),
        }
    }
}

/// The tokens of a list, in lower case.
fn list(headers: &HeaderMap, name: &HeaderName) -> Result<Vec<String>, String> {
    let text = joined(headers, name).unwrap_or_default().to_ascii_lowercase();
    let tokens = text.split(',').map(str::trim).filter(|token| !token.is_empty());
    let read = |token: &str| HeaderName::try_from(token).map(|_| token.to_owned());
    tokens.map(read).collect::<Result<_, _>>().map_err(|_| format!("{name} is not a list of names"))
}

fn kept(headers: &HeaderMap) -> Duration {
    let text = joined(headers, &ACCESS_CONTROL_MAX_AGE);
    match text.and_then(|text| text.parse::<i64>().ok()) {
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(KEPT_MAX),
        None => KEPT,
    }
}

/// The names of headers that need a preflight, sorted.
pub(in crate::player) fn unsafe_headers(headers: &HeaderMap) -> Vec<HeaderName> {
    let is_unsafe = |(name, value): &(&HeaderName, &HeaderValue)| {
        !OF_BROWSER.contains(&name.as_str())
            && !name.as_str().starts_with("sec-")
            && !name.as_str().starts_with("proxy-")
            && !is_safe(name.as_str(), value.as_bytes())
    };
    let mut names: Vec<_> =
        headers.iter().filter(is_unsafe).map(|(name, _)| name.clone()).collect();
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    names
}

/// CORS-safelisted request-headers.
fn is_safe(name: &str, value: &[u8]) -> bool {
    let is_language = |byte: &u8| byte.is_ascii_alphanumeric() || b" *,-.;=".contains(byte);
    let is_plain = |byte: &u8| {
        (*byte >= b' ' || *byte == b'\t') && *byte != 0x7f && !b"\"():<>?@[\\]{}".contains(byte)
    };
    let is_value = match name {
        "accept" => value.iter().all(is_plain),
        "accept-language" | "content-language" => value.iter().all(is_language),
        "range" => is_simple_range(value),
        _ => false,
    };
    is_value && value.len() <= SAFE_LEN_MAX
}

/// `bytes=5-` or `bytes=5-9`.
fn is_simple_range(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).ok().and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = text.and_then(|text| text.split_once('-')) else { return false };
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    match number(first) {
        Some(first) => last.is_empty() || number(last).is_some_and(|last| first <= last),
        None => false,
    }
}

/// The length of a body, where the response says it.
pub(in crate::player) fn length(head: &http::response::Parts) -> Option<u64> {
    if head.status == StatusCode::NO_CONTENT {
        return Some(0);
    }
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // It overrides the length (RFC 9112 section 6.3).
        return None;
    }
    head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// For the mutation tests: whether a page may have the response of `url` with this head, and
/// whether it allows `Authorization` if it answers a preflight.
#[doc(hidden)]
pub fn permission_by(
    now: Instant,
    page: &Url,
    url: &Url,
    head: &http::response::Parts,
    credentials: CredentialsPolicy,
) -> [Result<(), String>; 2] {
    let (page, before) = (super::cors::Embedding::at(page, true), Origins::default());
    let of_preflight = Answer::read(now, head, &[http::header::AUTHORIZATION], credentials);
    [page.may_have(url, before, head, credentials), of_preflight.map(|_| ())]
}

#[cfg(test)]
mod tests;
