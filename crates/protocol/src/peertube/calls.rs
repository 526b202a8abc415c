//! The requests of the page: each is a download that is read whole.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, ORIGIN, REFERER,
};
use http::{Method, StatusCode};
use throng_observation::{Failure, FailureReason, PlaybackCounters, Url};

use crate::excerpt::retry_after;
use crate::life::Life;
use crate::participant::{
    ChannelError, Demand, DownloadEvent, FetchId, HttpVersion, Opening, Output, Request,
};

/// How long a response may take after its head should have been there.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the server may hold a poll of socket.io: more than its `pingInterval` and
/// `pingTimeout`, 45 s.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest body that is read.
const BODY_LEN_MAX: usize = 8 << 20;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Page,
    Video,
    Live,
    LivechatSettings,
    LivechatRoom,
    /// What the page recommends, by search.
    Recommended,
    /// What the page shows, and nothing follows from.
    Other,
    Heartbeat,
    /// Of socket.io: the handshake, a poll, a message.
    Handshake,
    Poll,
    Message,
}

/// What came of one.
pub(super) enum Called {
    /// A usable response.
    Body(Vec<u8>),
    /// None; why.
    Failed(Failure),
}

/// Requests under way.
pub(super) struct Calls {
    version: HttpVersion,
    page: Url,
    timeout: Duration,
    next: u32,
    open: BTreeMap<FetchId, Open>,
    counters: PlaybackCounters,
    /// What failed before it was sent, or is given up.
    ended: Vec<(Call, Called)>,
}

struct Open {
    call: Call,
    late_at: Instant,
    status: Option<StatusCode>,
    retry_after: String,
    is_gzip: bool,
    body: Vec<u8>,
    is_too_long: bool,
}

impl Calls {
    pub(super) fn new(page: Url, version: HttpVersion, timeout: Duration) -> Self {
        let (open, counters) = (BTreeMap::new(), PlaybackCounters::default());
        Self { version, page, timeout, next: 0, open, counters, ended: Vec::new() }
    }

    pub(super) fn get(&mut self, now: Instant, life: &mut Life<()>, call: Call, url: &Url) {
        self.send(now, life, call, (Method::GET, url), None);
    }

    pub(super) fn post(
        &mut self,
        now: Instant,
        life: &mut Life<()>,
        call: Call,
        url: &Url,
        body: (&'static str, String),
    ) {
        self.send(now, life, call, (Method::POST, url), Some(body));
    }

    fn send(
        &mut self,
        now: Instant,
        life: &mut Life<()>,
        call: Call,
        (method, url): (Method, &Url),
        body: Option<(&'static str, String)>,
    ) {
        let request = Request::builder(method, url).body(());
        let (mut head, ()) = match request.map(http::Request::into_parts) {
            Ok(parts) => parts,
            Err(error) => {
                self.counters.requests_failed += 1;
                let why = Failure::new(FailureReason::Protocol, error.to_string());
                return self.ended.push((call, Called::Failed(why)));
            }
        };
        let accept = if call == Call::Page {
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/\
             apng,*/*;q=0.8"
        } else {
            "application/json, text/plain, */*"
        };
        head.headers.insert(ACCEPT, HeaderValue::from_static(accept));
        head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if call != Call::Page {
            head.headers.extend(
                HeaderValue::try_from(self.page.in_clear().as_str())
                    .ok()
                    .map(|value| (REFERER, value)),
            );
        }
        let mut bytes = Vec::new();
        if let Some((kind, text)) = body {
            head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            let origin = HeaderValue::try_from(self.page.origin().ascii_serialization()).ok();
            head.headers.extend(origin.map(|value| (ORIGIN, value)));
            bytes = text.into_bytes();
        }
        let fetch = FetchId(self.next);
        self.next = self.next.wrapping_add(1) & 0x0fff_ffff;
        self.counters.requests += 1;
        let timeout = if call == Call::Poll { POLL_TIMEOUT } else { self.timeout };
        let late_at = now + timeout + BODY_TIMEOUT;
        let open = Open {
            call,
            late_at,
            status: None,
            retry_after: String::new(),
            is_gzip: false,
            body: Vec::new(),
            is_too_long: false,
        };
        self.open.insert(fetch, open);
        let request = Request { head, body: bytes, timeout };
        life.push(Output::Download(fetch, Box::new(request), self.version));
        life.push(Output::Demand(fetch, Demand::Deliver(u64::MAX)));
    }

    /// Handles what the driver reports of a request, and tells when one is over.
    pub(super) fn handle(
        &mut self,
        fetch: FetchId,
        event: DownloadEvent<'_>,
        mut opened: impl FnMut(&Opening),
    ) -> Option<(Call, Called)> {
        let open = self.open.get_mut(&fetch)?;
        match event {
            DownloadEvent::Head { head, opening } => {
                match head.version {
                    http::Version::HTTP_3 => self.counters.responses_http3 += 1,
                    http::Version::HTTP_2 => self.counters.responses_http2 += 1,
                    _ => self.counters.responses_http1 += 1,
                }
                self.counters.connections +=
                    u64::from(opening.connected_at.is_some() || opening.secured_at.is_some());
                opened(&opening);
                open.status = Some(head.status);
                open.retry_after = retry_after(&head.headers);
                open.is_gzip =
                    head.headers.get(CONTENT_ENCODING).is_some_and(|value| value == "gzip");
                None
            }
            DownloadEvent::Body(bytes) => {
                self.counters.other_bytes += bytes.len() as u64;
                open.is_too_long |= open.body.len() + bytes.len() > BODY_LEN_MAX;
                if !open.is_too_long {
                    open.body.extend_from_slice(bytes);
                }
                None
            }
            DownloadEvent::Ignored(_) | DownloadEvent::Transport(_) => None,
            DownloadEvent::Finished(result) => {
                let open = self.open.remove(&fetch)?;
                let call = open.call;
                let called = match result {
                    Ok(()) => open.finish(),
                    Err(error) => Called::Failed(open.broken(error)),
                };
                self.counters.requests_failed += u64::from(matches!(called, Called::Failed(..)));
                Some((call, called))
            }
        }
    }

    /// Gives up what is late or too long, and what `gives_up` names; then tells what has ended so.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        life: &mut Life<()>,
        gives_up: impl Fn(Call) -> bool,
    ) -> Vec<(Call, Called)> {
        self.open.retain(|fetch, open| {
            let is_late = now >= open.late_at;
            if is_late || open.is_too_long {
                let why = if is_late {
                    Failure::new(FailureReason::SignallingTimeout, "no end of the response in time")
                } else {
                    Failure::new(FailureReason::Protocol, "a body that is too long")
                };
                self.counters.requests_failed += 1;
                self.ended.push((open.call, Called::Failed(why)));
            } else if !gives_up(open.call) {
                return true;
            }
            life.push(Output::Cancel(*fetch));
            false
        });
        std::mem::take(&mut self.ended)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.open.values().map(|open| open.late_at).min()
    }

    pub(super) fn take_counters(&mut self) -> PlaybackCounters {
        let mut counters = std::mem::take(&mut self.counters);
        counters.page_requests = counters.requests;
        counters.page_requests_failed = counters.requests_failed;
        counters.page_bytes = counters.other_bytes;
        counters
    }
}

impl Open {
    fn bad_status(&self) -> Option<StatusCode> {
        self.status.filter(|status| !status.is_success())
    }

    /// Why a request failed that broke.
    fn broken(&self, error: ChannelError) -> Failure {
        match (self.bad_status(), self.status) {
            (Some(bad), _) => {
                Failure::new(FailureReason::HttpStatus(bad.as_u16()), error.to_string())
            }
            (None, Some(_)) => error.after_opening(),
            (None, None) => error.into(),
        }
    }

    fn finish(self) -> Called {
        use std::io::Read;
        let unreadable = |why: String| Called::Failed(Failure::new(FailureReason::Protocol, why));
        if let Some(bad) = self.bad_status() {
            let why = format!("HTTP status {bad}{}", self.retry_after);
            return Called::Failed(Failure::new(FailureReason::HttpStatus(bad.as_u16()), why));
        }
        if self.is_too_long {
            return unreadable(format!("a body of more than {BODY_LEN_MAX} bytes"));
        }
        if !self.is_gzip {
            return Called::Body(self.body);
        }
        let mut decoded = Vec::new();
        let limit = BODY_LEN_MAX as u64 + 1;
        match GzDecoder::new(&self.body[..]).take(limit).read_to_end(&mut decoded) {
            Ok(length) if length <= BODY_LEN_MAX => Called::Body(decoded),
            Ok(_) => unreadable(format!("a body of more than {BODY_LEN_MAX} bytes, decoded")),
            Err(error) => unreadable(format!("a body that is not gzip: {error}")),
        }
    }
}
