//! Makes the plan of a page from its recording.

use std::collections::HashSet;
use std::time::Duration;

use throng_observation::Url;
use throng_observation::calendar::iso_us;

use super::cache::when_warm;
use super::document::{Entry, Header, Leaf, Log};
use super::kind::{Kind, is_document, is_get};
use super::left_out::LeftOut;
use super::order::{Span, followed, followed_by};
use super::plan::{PagePlan, PageRequest, PlayerStart, WhenWarm};
use super::{HarError, beginning};
use crate::recorded_page::OriginRule;

/// Longest time from the begin of a page to a request of it.
const SINCE_BEGIN_MAX_US: i64 = 86_400 * 1_000_000;

/// Longest beginning of a value that is shown.
const VALUE_CHARS_MAX: usize = 60;

/// Headers that the client sets itself, those of one connection, those that the state of the
/// recording browser's cache decided, and credentials of the recording.
const NOT_REPEATED: [&str; 22] = [
    "accept-encoding",
    "authorization",
    "cache-control",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "pragma",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Where requests of recorded origins go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOrigins {
    /// The origin of the target.
    target: String,
    rules: Vec<OriginRule>,
}

impl PageOrigins {
    /// By `rules`, then those of the page to the origin of `target`, then those of that origin to
    /// itself; others nowhere.
    #[must_use]
    pub fn new(target: &Url, rules: &[OriginRule]) -> Self {
        Self { target: target.origin().ascii_serialization(), rules: rules.to_vec() }
    }

    /// Where requests for a recorded origin go; `page` is that of the recorded page.
    fn requested<'a>(&'a self, recorded: &str, page: &str) -> Option<&'a str> {
        match self.rules.iter().find(|rule| rule.recorded == recorded) {
            Some(rule) => Some(&rule.requested),
            None => (recorded == page || recorded == self.target).then_some(&self.target),
        }
    }
}

/// An entry that is repeated, if its origin is one that gets load.
struct Repeated<'a> {
    entry: &'a Entry,
    url: Url,
    status: u16,
    span: Span,
}

impl PagePlan {
    /// Reads a HAR file, for caches that were filled `warm_age` before.
    ///
    /// # Errors
    /// When it is not one, or has no page; names the entry and the field.
    pub fn read(bytes: &[u8], origins: &PageOrigins, warm_age: Duration) -> Result<Self, HarError> {
        let log = Log::read(bytes)?;
        let mut left_out = LeftOut::default();
        let (mut repeated, media_us) = entries(&log, &mut left_out)?;
        repeated.sort_by_key(|repeated| repeated.span.0);
        let document = repeated.iter().position(|r| is_document(r.entry) && !is_redirect(r.status));
        let document = document.ok_or_else(|| {
            HarError::of_file(
                "none of its entries is a page (text/html): record the load of the page from its \
                 begin",
            )
        })?;
        // Redirects to the page are before it.
        let (page, document_us) = repeated
            .get(document)
            .map(|document| (document.url.origin().ascii_serialization(), document.span.0))
            .unwrap_or_default();
        let mut kept: Vec<(Repeated<'_>, Url)> = Vec::new();
        for one in repeated {
            match requested(&one.url, origins, &page) {
                Some(url) => kept.push((one, url)),
                None => {
                    *left_out.origins.entry(one.url.origin().ascii_serialization()).or_default() +=
                        1;
                }
            }
        }
        let base_us = kept.first().map_or(document_us, |(one, _)| one.span.0);
        check_length(&kept, base_us)?;
        let spans: Vec<Span> = kept.iter().map(|(one, _)| one.span).collect();
        let begins = followed(&spans, spans.iter().map(|(begin_us, _)| *begin_us), base_us);
        let player = player_start(&log, &spans, media_us, base_us);
        let mut requests: Vec<PageRequest> = kept
            .into_iter()
            .zip(&begins)
            .map(|((one, url), begins)| {
                let is_of_page = (is_document(one.entry) || is_redirect(one.status))
                    && one.span.0 <= document_us;
                let headers = pairs(&one.entry.response.headers.0);
                PageRequest {
                    url,
                    is_head: !is_get(&one.entry.request.method),
                    headers: sent_headers(&one.entry.request.headers.0, origins, &page),
                    status: one.status,
                    is_document: is_of_page,
                    begins: *begins,
                    followers: Vec::new(),
                    when_warm: if is_get(&one.entry.request.method) {
                        when_warm(one.status, &headers, warm_age)
                    } else {
                        WhenWarm::Requested
                    },
                }
            })
            .collect();
        for (index, begins) in begins.iter().enumerate() {
            let followed = begins.request.and_then(|followed| requests.get_mut(followed));
            followed.into_iter().for_each(|followed| followed.followers.push(index));
        }
        if requests.is_empty() {
            let help = format!("all of its requests go elsewhere; name {page} in `origins`");
            return Err(HarError::of_file(help));
        }
        Ok(Self { requests, player, left_out })
    }
}

/// The entries of the first page that may be repeated, and when the first of media began.
fn entries<'a>(
    log: &'a Log,
    left_out: &mut LeftOut,
) -> Result<(Vec<Repeated<'a>>, Option<i64>), HarError> {
    let first_page = log.pages.0.first().and_then(|page| page.id.text());
    let (mut repeated, mut media_us) = (Vec::new(), None::<i64>);
    let mut seen = HashSet::new();
    for (index, entry) in log.entries.0.iter().enumerate() {
        let number = index + 1;
        if entry.pageref.text().zip(first_page).is_some_and(|(of, first)| of != first) {
            left_out.other_pages += 1;
            continue;
        }
        let url = url(number, &entry.request.url)?;
        let status = status(number, &entry.response.status)?;
        let is_again = !seen.insert(url.clone()) && matches!(entry.from_cache, Leaf::Text(_));
        let span = || span(number, entry);
        match Kind::of(entry, &url, status) {
            Kind::Repeated if is_again => left_out.cached += 1,
            Kind::Repeated => repeated.push(Repeated { entry, url, status, span: span()? }),
            Kind::Media => {
                left_out.media += 1;
                let (begin_us, _) = span()?;
                media_us = Some(media_us.map_or(begin_us, |first_us| first_us.min(begin_us)));
            }
            Kind::Method => left_out.methods += 1,
            Kind::WebSocket => left_out.websockets += 1,
            Kind::NotHttp => left_out.not_http += 1,
            Kind::Unanswered => left_out.unanswered += 1,
        }
    }
    Ok((repeated, media_us))
}

fn problem(number: usize, field: &'static str, value: &Leaf, expected: &str) -> HarError {
    let problem = match value {
        Leaf::Absent => "is missing".to_owned(),
        Leaf::Text(text) => {
            let shown = beginning(text, VALUE_CHARS_MAX);
            format!("is `{}`, not {expected}", shown.escape_debug())
        }
        Leaf::Number(_) | Leaf::Other => format!("is not {expected}"),
    };
    HarError { place: Some((number, field)), problem }
}

fn url(number: usize, value: &Leaf) -> Result<Url, HarError> {
    let parsed = value.text().and_then(|text| Url::parse(text).ok());
    let mut url = parsed.ok_or_else(|| problem(number, "request.url", value, "a URL"))?;
    url.remove_fragment();
    Ok(url)
}

/// The status; 0 without a response, as Chromium writes it, or -1.
fn status(number: usize, value: &Leaf) -> Result<u16, HarError> {
    match value.number() {
        Some(status) if status <= 0.0 => Ok(0),
        Some(status) if (100.0..=599.0).contains(&status) => Ok(status as u16),
        _ => Err(problem(number, "response.status", value, "an HTTP status")),
    }
}

/// Begin and end, microseconds since 1970.
fn span(number: usize, entry: &Entry) -> Result<Span, HarError> {
    let begin_us = entry.started.text().and_then(iso_us).ok_or_else(|| {
        problem(
            number,
            "startedDateTime",
            &entry.started,
            "a date such as 2026-11-25T18:30:00.123Z",
        )
    })?;
    let time_ms = match &entry.time {
        Leaf::Absent => 0.0,
        Leaf::Number(time_ms) => *time_ms,
        other => return Err(problem(number, "time", other, "a number of milliseconds")),
    };
    let length_us = (time_ms.max(0.0) * 1e3).min(SINCE_BEGIN_MAX_US as f64) as i64;
    Ok((begin_us, begin_us.saturating_add(length_us)))
}

fn check_length(kept: &[(Repeated<'_>, Url)], base_us: i64) -> Result<(), HarError> {
    match kept.last() {
        Some((last, _)) if last.span.0 - base_us > SINCE_BEGIN_MAX_US => Err(HarError::of_file(
            "its requests begin more than a day apart: record one visit of the page",
        )),
        _ => Ok(()),
    }
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The URL where a recorded one is requested.
fn requested(recorded: &Url, origins: &PageOrigins, page: &str) -> Option<Url> {
    let origin = origins.requested(&recorded.origin().ascii_serialization(), page)?;
    let mut url = Url::parse(origin).ok()?;
    url.set_path(recorded.in_clear().path());
    url.set_query(recorded.in_clear().query());
    Some(url)
}

/// Where there is media, the player begins with it; else when the page was loaded.
fn player_start(log: &Log, spans: &[Span], media_us: Option<i64>, base_us: i64) -> PlayerStart {
    if let Some(media_us) = media_us {
        let after = followed_by(spans, media_us.min(base_us + SINCE_BEGIN_MAX_US), base_us);
        return PlayerStart::At(after);
    }
    let page = log.pages.0.first();
    let started_us = page.and_then(|page| page.started.text()).and_then(iso_us);
    let on_load_ms = page.and_then(|page| page.timings.on_load.number()).filter(|ms| *ms >= 0.0);
    let loaded_us = started_us.zip(on_load_ms).map(|(started_us, ms)| {
        started_us.saturating_add((ms * 1e3).min(SINCE_BEGIN_MAX_US as f64) as i64)
    });
    let is_before = |end_us: i64| loaded_us.is_none_or(|loaded_us| end_us <= loaded_us);
    let before = spans.iter().enumerate().filter(|(_, (_, end_us))| is_before(*end_us));
    PlayerStart::Loaded(before.map(|(index, _)| index).collect())
}

fn pairs(headers: &[Header]) -> Vec<(String, String)> {
    let pair =
        |header: &Header| Some((header.name.text()?.to_owned(), header.value.text()?.to_owned()));
    headers.iter().filter_map(pair).collect()
}

/// The headers of a request that are repeated; those that name the page's origin name the one that
/// stands for it.
fn sent_headers(headers: &[Header], origins: &PageOrigins, page: &str) -> Vec<(String, String)> {
    // A token, and visible characters (RFC 9110 sections 5.6.2 and 5.5).
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_valid = |(name, value): &(String, String)| {
        !name.is_empty()
            && name.bytes().all(is_token)
            && value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    let renamed = |(name, value): (String, String)| {
        let name = name.to_ascii_lowercase();
        let value = match name.as_str() {
            "origin" | "referer" => elsewhere(&value, origins, page).unwrap_or(value),
            _ => value,
        };
        (name, value)
    };
    let sent = pairs(headers).into_iter().filter(is_valid).map(renamed);
    sent.filter(|(name, _)| !NOT_REPEATED.contains(&name.as_str())).collect()
}

/// A URL or an origin, on the origin where its requests go.
fn elsewhere(value: &str, origins: &PageOrigins, page: &str) -> Option<String> {
    let recorded = Url::parse(value).ok()?.origin().ascii_serialization();
    let requested = origins.requested(&recorded, page)?;
    Some(format!("{requested}{}", value.strip_prefix(&recorded)?))
}
