//! The requests of one member: the event stream, opened as an EventSource opens it (HTML standard,
//! section 9.2), and what is posted.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, ORIGIN,
};
use http::response::Parts;
use http::{Method, StatusCode};
use throng_observation::{Failure, FailureReason, Url};
use throng_scenario::ChatText;

use super::parser::EventParser;
use crate::chat::session::{Answer, Incoming, Post, PostId};
use crate::chat::template::{FilledPath, TemplateConfig};
use crate::participant::{
    ChannelError, Demand, DownloadEvent, FetchId, HttpVersion, KeptPath, Opening, Output, Request,
};

/// Time between two connections where the stream does not say it: that of Chromium, and about that
/// of other browsers.
const RETRY: Duration = Duration::from_secs(3);
/// Bounds of what a stream may say, so that one that ends at once is no flood.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(3_600);

/// Most redirects of one request (Fetch standard, section 4.5).
const REDIRECTS_MAX: u32 = 20;

/// Longest answer to what is posted that is read, bytes; the rest is given up.
const ANSWER_LEN_MAX: usize = 64 * 1024;

/// `Content-Type` of what is posted, where the template has none: that of a text in a page.
const TEXT: &str = "text/plain;charset=UTF-8";

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What happened.
#[derive(Debug)]
pub(in crate::chat) enum LinkEvent {
    /// The event stream is open.
    Opened(Box<Opening>),
    /// Something came.
    Came(Incoming),
    /// The event stream is over; `is_final`: an EventSource does not open it again.
    Broken { failure: Failure, is_final: bool },
}

/// The requests of one member.
pub(in crate::chat) struct EventLink {
    config: TemplateConfig,
    url: Url,
    /// The origin of the page, where it is not that of the server.
    origin: Option<String>,
    next_fetch: u32,
    stream: Option<Stream>,
    last_event_id: String,
    retry: Duration,
    posts: BTreeMap<FetchId, Posted>,
    /// How many streams were opened: what was posted for another one tells its session nothing.
    generation: u32,
    bytes_received: u64,
}

/// The stream of one connection.
struct Stream {
    fetch: FetchId,
    url: Url,
    redirects: u32,
    is_open: bool,
    parser: EventParser,
}

/// What was posted and is not answered.
struct Posted {
    id: PostId,
    generation: u32,
    status: Option<StatusCode>,
    retry_after: String,
    body: Vec<u8>,
}

impl EventLink {
    /// `url`: the target's, for what has no path of its own.
    pub(in crate::chat) fn new(config: TemplateConfig, url: Url, origin: Option<String>) -> Self {
        let own = url.origin().ascii_serialization();
        Self {
            origin: origin.filter(|origin| *origin != own),
            config,
            url,
            next_fetch: 0,
            stream: None,
            last_event_id: String::new(),
            retry: RETRY,
            posts: BTreeMap::new(),
            generation: 0,
            bytes_received: 0,
        }
    }

    /// How long after a broken stream the next one is opened.
    pub(in crate::chat) fn reconnect_after(&self) -> Duration {
        self.retry
    }

    /// Whether the server sends what was said while the stream was broken.
    pub(in crate::chat) fn replays(&self) -> bool {
        self.config.template.http.replay && !self.last_event_id.is_empty()
    }

    /// Whether nothing that was posted waits for its answer.
    pub(in crate::chat) fn is_idle(&self) -> bool {
        self.posts.is_empty()
    }

    pub(in crate::chat) fn take_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_received)
    }

    /// Opens the stream.
    pub(in crate::chat) fn connect(&mut self) -> Result<Vec<Output>, Failure> {
        self.generation = self.generation.wrapping_add(1);
        let path = self.config.template.http.stream.as_ref();
        let path = path.map(|path| self.config.path(path, &self.config.nick));
        let url = self.place(path.as_ref())?;
        self.open(url, path.and_then(|path| path.kept), 0)
    }

    fn open(
        &mut self,
        url: Url,
        kept: Option<KeptPath>,
        redirects: u32,
    ) -> Result<Vec<Output>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if !self.last_event_id.is_empty() {
            let id = HeaderValue::from_bytes(self.last_event_id.as_bytes()).ok();
            headers.extend(id.map(|id| (LAST_EVENT_ID, id)));
        }
        let (fetch, outputs) = self.request(Method::GET, (&url, kept), headers, Vec::new())?;
        let parser = EventParser::new(self.last_event_id.clone());
        self.stream = Some(Stream { fetch, url, redirects, is_open: false, parser });
        Ok(outputs)
    }

    /// Sends what the session has to say.
    pub(in crate::chat) fn post(&mut self, post: Post) -> Result<Vec<Output>, Failure> {
        let url = self.place(post.path.as_ref())?;
        let kept = post.path.and_then(|path| path.kept);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        let kind = self.config.template.http.content_type.as_ref();
        let kind = kind.map_or(TEXT, ChatText::written);
        headers.extend(HeaderValue::try_from(kind).ok().map(|kind| (CONTENT_TYPE, kind)));
        let body = post.body.into_bytes();
        let (fetch, outputs) = self.request(Method::POST, (&url, kept), headers, body)?;
        self.posts.insert(
            fetch,
            Posted {
                id: post.id,
                generation: self.generation,
                status: None,
                retry_after: String::new(),
                body: Vec::new(),
            },
        );
        Ok(outputs)
    }

    /// A path on the target's server; the target's URL without one.
    fn place(&self, path: Option<&FilledPath>) -> Result<Url, Failure> {
        let Some(path) = path else { return Ok(self.url.clone()) };
        let url = self.url.join(&path.whole).ok();
        let url = url.filter(|url| url.origin() == self.url.origin());
        url.ok_or_else(|| {
            let own = shown(&self.url);
            Failure::new(FailureReason::Protocol, format!("a path is not on the server {own}"))
        })
    }

    fn request(
        &mut self,
        method: Method,
        (url, kept): (&Url, Option<KeptPath>),
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(FetchId, Vec<Output>), Failure> {
        let is_own = url.origin() == self.url.origin();
        // Browsers send the origin with each POST, and with what goes to another origin than the
        // page's.
        let own = || shown(&self.url);
        let origin = match &self.origin {
            Some(origin) => Some(origin.clone()),
            None if method == Method::POST || !is_own => Some(own()),
            None => None,
        };
        headers
            .extend(origin.and_then(|origin| Some((ORIGIN, HeaderValue::try_from(origin).ok()?))));
        // What is for the target's server is for no other.
        for (name, value) in self.config.template.http.headers.iter().filter(|_| is_own) {
            let value = self.config.filled(value, &self.config.nick, "");
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        let request = Request::builder(method, url).body(());
        let (mut head, ()) = request
            .map_err(|error| {
                Failure::new(FailureReason::Protocol, format!("{}: {error}", shown(url)))
            })?
            .into_parts();
        head.headers = headers;
        // A redirect may lead to the token.
        if let Some(kept) = kept.or_else(|| self.config.kept_of(url.in_clear().path())) {
            head.extensions.insert(kept);
        }
        let fetch = FetchId(self.next_fetch);
        self.next_fetch = self.next_fetch.wrapping_add(1) & 0x0fff_ffff;
        let request = Request { head, body, timeout: self.config.answer_within };
        let download = Output::Download(fetch, Box::new(request), HttpVersion::Negotiated);
        Ok((fetch, vec![download, Output::Demand(fetch, Demand::Deliver(u64::MAX))]))
    }

    /// Gives up the stream and, unless `keeps_posts`, what is not answered.
    pub(in crate::chat) fn close(&mut self, keeps_posts: bool) -> Vec<Output> {
        let stream = self.stream.take().map(|stream| stream.fetch);
        let posts = if keeps_posts { BTreeMap::new() } else { std::mem::take(&mut self.posts) };
        stream.into_iter().chain(posts.into_keys()).map(Output::Cancel).collect()
    }

    /// Something of a request; `outputs` gets what follows at once.
    pub(in crate::chat) fn handle(
        &mut self,
        fetch: FetchId,
        event: DownloadEvent<'_>,
        outputs: &mut Vec<Output>,
    ) -> Vec<LinkEvent> {
        if let DownloadEvent::Body(bytes) = &event {
            self.bytes_received += bytes.len() as u64;
        }
        if self.stream.as_ref().is_some_and(|stream| stream.fetch == fetch) {
            return self.of_stream(event, outputs);
        }
        self.of_post(fetch, event, outputs).into_iter().collect()
    }

    fn of_stream(&mut self, event: DownloadEvent<'_>, outputs: &mut Vec<Output>) -> Vec<LinkEvent> {
        let Some(stream) = &mut self.stream else { return Vec::new() };
        let result = match event {
            DownloadEvent::Head { head, opening } => match redirection(&stream.url, &head) {
                Some(to) => self.redirected(to, outputs),
                None => usable(&head).map(|()| {
                    stream.is_open = true;
                    vec![LinkEvent::Opened(opening)]
                }),
            },
            DownloadEvent::Body(_) if !stream.is_open => Ok(Vec::new()),
            DownloadEvent::Body(bytes) => {
                let result = stream.parser.feed(bytes);
                stream.parser.last_event_id().clone_into(&mut self.last_event_id);
                let retry = stream.parser.retry().map(|retry| retry.clamp(RETRY_MIN, RETRY_MAX));
                self.retry = retry.unwrap_or(self.retry);
                let came = |event| LinkEvent::Came(Incoming::Event(event));
                let events = result.map(|events| events.into_iter().map(came).collect());
                events.map_err(|error| {
                    (Failure::new(FailureReason::Protocol, error.to_string()), false)
                })
            }
            DownloadEvent::Finished(result) => {
                let was_open = stream.is_open;
                self.stream = None;
                Err((ended(result, was_open), false))
            }
            DownloadEvent::Ignored(_) | DownloadEvent::Transport(_) => Ok(Vec::new()),
        };
        result.unwrap_or_else(|(failure, is_final)| vec![LinkEvent::Broken { failure, is_final }])
    }

    fn redirected(
        &mut self,
        to: Option<Url>,
        outputs: &mut Vec<Output>,
    ) -> Checked<Vec<LinkEvent>> {
        let Some(stream) = self.stream.take() else { return Ok(Vec::new()) };
        outputs.push(Output::Cancel(stream.fetch));
        let lost = |what: &str| {
            let detail = format!("{}: {what}", shown(&stream.url));
            (Failure::new(FailureReason::Protocol, detail), false)
        };
        let to = to.ok_or_else(|| lost("a redirect to nowhere"))?;
        if stream.url.scheme() == "https" && to.scheme() != "https" {
            let detail = format!("{}: a redirect from TLS to clear text", shown(&stream.url));
            return Err((Failure::new(FailureReason::MixedContent, detail), true));
        }
        if stream.redirects >= REDIRECTS_MAX {
            return Err(lost("too many redirects"));
        }
        let opened = self.open(to, None, stream.redirects + 1);
        outputs.extend(opened.map_err(|failure| (failure, false))?);
        Ok(Vec::new())
    }

    fn of_post(
        &mut self,
        fetch: FetchId,
        event: DownloadEvent<'_>,
        outputs: &mut Vec<Output>,
    ) -> Option<LinkEvent> {
        let posted = self.posts.get_mut(&fetch)?;
        let result = match event {
            DownloadEvent::Head { head, .. } => {
                posted.status = Some(head.status);
                posted.retry_after = crate::excerpt::retry_after(&head.headers);
                return None;
            }
            DownloadEvent::Body(bytes) => {
                let room = ANSWER_LEN_MAX.saturating_sub(posted.body.len());
                posted.body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
                if bytes.len() <= room {
                    return None;
                }
                outputs.push(Output::Cancel(fetch));
                Ok(())
            }
            DownloadEvent::Ignored(_) | DownloadEvent::Transport(_) => return None,
            DownloadEvent::Finished(result) => result,
        };
        let posted =
            self.posts.remove(&fetch).filter(|posted| posted.generation == self.generation)?;
        let answer = result.and_then(|()| {
            let status = posted.status.ok_or(ChannelError::Unanswered)?;
            Ok(Answer {
                status: status.as_u16(),
                retry_after: posted.retry_after,
                body: String::from_utf8_lossy(&posted.body).into_owned(),
            })
        });
        Some(LinkEvent::Came(Incoming::Answer(posted.id, answer)))
    }
}

/// The server of a URL: its path may have the token in it.
fn shown(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// A failure, and whether an EventSource does not open the stream again.
type Checked<T> = Result<T, (Failure, bool)>;

/// Where a response sends the request; `Some(None)`: to no URL.
fn redirection(from: &Url, head: &Parts) -> Option<Option<Url>> {
    let is_redirect = matches!(head.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let to = head.headers.get(LOCATION).filter(|_| is_redirect)?;
    let url = to.to_str().ok().and_then(|to| from.join(to).ok());
    Some(url.filter(|url| matches!(url.scheme(), "http" | "https")))
}

/// Whether a response is an event stream. An EventSource gives up where it is not.
fn usable(head: &Parts) -> Checked<()> {
    let wrong = |reason, detail: String| Err((Failure::new(reason, detail), true));
    if head.status == StatusCode::NO_CONTENT {
        let detail = "HTTP status 204 No Content: the server wants no further connection";
        return wrong(FailureReason::RoomEnded, detail.to_owned());
    }
    if head.status != StatusCode::OK {
        let wait = crate::excerpt::retry_after(&head.headers);
        let detail = format!("HTTP status {}{wait} in place of an event stream", head.status);
        return wrong(FailureReason::HttpStatus(head.status.as_u16()), detail);
    }
    let text = |name| {
        head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or("")
    };
    let kind = text(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("text/event-stream") {
        let kind = crate::excerpt::excerpt(kind);
        return wrong(
            FailureReason::Protocol,
            format!("`{kind}` in place of text/event-stream (Content-Type)"),
        );
    }
    let encoding = text(CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        let encoding = crate::excerpt::excerpt(encoding);
        let detail =
            format!("an event stream in the encoding `{encoding}`, which was not asked for");
        return wrong(FailureReason::Protocol, detail);
    }
    Ok(())
}

/// Why a stream is over.
fn ended(result: Result<(), ChannelError>, was_open: bool) -> Failure {
    match result {
        Ok(()) => {
            Failure::new(FailureReason::SignallingClosed, "the server ended the event stream")
        }
        Err(error) if was_open => error.after_opening(),
        Err(error) => error.into(),
    }
}
