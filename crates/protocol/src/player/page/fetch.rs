//! A request of a page, whose body is received and dropped.

use std::time::Instant;

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use throng_observation::{Failure, FailureReason, Url};
use throng_scenario::har::PageRequest;

use super::PageContext;
use crate::excerpt::retry_after;
use crate::participant::{Demand, DownloadEvent, FetchId, Output, Request};
use crate::player::download::client::HttpClient;
use crate::player::download::cors::Origins;
use crate::player::download::transfer::{PROGRESS_TIMEOUT, REDIRECTS_MAX};

/// The request, until its body has come.
pub(super) struct PageFetch {
    fetch: FetchId,
    url: Url,
    method: Method,
    headers: HeaderMap,
    /// The status of the recorded response.
    recorded: StatusCode,
    /// It asks whether a stored response is still valid.
    is_conditional: bool,
    has_head: bool,
    has_failed: bool,
    progress_at: Instant,
    redirects: u8,
    /// Of the redirects so far.
    origins: Origins,
}

/// What became of it.
pub(super) enum FetchEvent {
    /// It goes on.
    Nothing,
    /// The server refused it; its body is received all the same, so that the connection can be used
    /// again.
    Failed(Failure),
    /// It failed, and is over.
    Broken(Failure),
    /// It is over.
    Ended,
}

impl PageFetch {
    /// Sends `request` with further headers.
    pub(super) fn begin(
        now: Instant,
        context: &mut PageContext<'_>,
        request: &PageRequest,
        conditions: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut fetch = Self {
            fetch: FetchId(0),
            url: request.url.clone(),
            method: if request.is_head { Method::HEAD } else { Method::GET },
            headers: headers(request, conditions),
            recorded: StatusCode::from_u16(request.status).unwrap_or(StatusCode::OK),
            is_conditional: !conditions.is_empty(),
            has_head: false,
            has_failed: false,
            progress_at: now,
            redirects: 0,
            origins: Origins::default(),
        };
        fetch.send(now, context)?;
        Ok(fetch)
    }

    fn send(&mut self, now: Instant, context: &mut PageContext<'_>) -> Result<(), Failure> {
        context.client.check(&self.url)?;
        let request = Request::builder(self.method.clone(), &self.url);
        let wrong = |error: http::Error| {
            Failure::new(FailureReason::Protocol, format!("{}: {error}", self.url))
        };
        let (mut head, ()) = request.body(()).map_err(wrong)?.into_parts();
        head.headers = self.headers.clone();
        // As Chromium: nothing but gzip where a proxy may look into the connection.
        let encodings =
            if self.url.scheme() == "https" { "gzip, deflate, br, zstd" } else { "gzip, deflate" };
        head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encodings));
        context.meter.page_request();
        self.fetch = context.client.send(now, &self.url, head, self.origins);
        (self.has_head, self.progress_at) = (false, now);
        Ok(())
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.fetch == fetch
    }

    /// When it has failed for want of progress; the driver waits for the head.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.has_head.then(|| self.progress_at + PROGRESS_TIMEOUT)
    }

    /// Ends a request without progress.
    pub(super) fn give_up(self, client: &mut HttpClient) -> Failure {
        client.life.push(Output::Cancel(self.fetch));
        client.failed();
        let detail = format!("{}: no data for {:.0} s", self.url, PROGRESS_TIMEOUT.as_secs_f64());
        Failure::new(FailureReason::MediaLost, detail)
    }

    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut PageContext<'_>,
        event: DownloadEvent<'_>,
    ) -> FetchEvent {
        self.progress_at = now;
        match event {
            DownloadEvent::Head { head, opening } => {
                context.client.answered(now, &self.url, &head, &opening);
                context.client.learn_cookies(now, &self.url, &head, self.origins);
                self.head(now, context, &head)
            }
            DownloadEvent::Ignored(bytes) => {
                context.meter.page_bytes(bytes);
                FetchEvent::Nothing
            }
            DownloadEvent::Body(bytes) => {
                context.meter.page_bytes(bytes.len() as u64);
                FetchEvent::Nothing
            }
            DownloadEvent::Transport(state) => {
                context.client.transport(state);
                FetchEvent::Nothing
            }
            DownloadEvent::Finished(Ok(())) => FetchEvent::Ended,
            // It is counted already.
            DownloadEvent::Finished(Err(_)) if self.has_failed => FetchEvent::Ended,
            DownloadEvent::Finished(Err(error)) => {
                context.client.failed();
                let failure: Failure =
                    if self.has_head { error.after_opening() } else { error.into() };
                let detail = format!("{}: {}", self.url, failure.detail);
                FetchEvent::Broken(Failure::new(failure.reason, detail))
            }
        }
    }

    fn head(
        &mut self,
        now: Instant,
        context: &mut PageContext<'_>,
        head: &http::response::Parts,
    ) -> FetchEvent {
        self.has_head = true;
        let status = head.status;
        let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        // A recorded redirect has its target as an entry of its own.
        if is_redirect(status) && !is_redirect(self.recorded) {
            return match location.and_then(|location| self.url.join(location).ok()) {
                Some(url) => self.redirect(now, context, url),
                None => self.broken(context, format!("{}: {status} without a Location", self.url)),
            };
        }
        context.client.life.push(Output::Demand(self.fetch, Demand::Ignore(u64::MAX)));
        let is_expected = status.is_success()
            || status == self.recorded
            || is_redirect(status)
            || (status == StatusCode::NOT_MODIFIED && self.is_conditional);
        if is_expected {
            return FetchEvent::Nothing;
        }
        context.client.failed();
        self.has_failed = true;
        let reason = match status {
            StatusCode::UNAUTHORIZED => FailureReason::Unauthorized,
            status => FailureReason::HttpStatus(status.as_u16()),
        };
        let wait = retry_after(&head.headers);
        FetchEvent::Failed(Failure::new(
            reason,
            format!("{}: HTTP status {status}{wait}", self.url),
        ))
    }

    fn redirect(&mut self, now: Instant, context: &mut PageContext<'_>, url: Url) -> FetchEvent {
        self.redirects += 1;
        if self.redirects > REDIRECTS_MAX {
            return self
                .broken(context, format!("{}: more than {REDIRECTS_MAX} redirects", self.url));
        }
        context.client.life.push(Output::Cancel(self.fetch));
        self.origins = context.client.redirected(self.origins, &self.url, &url);
        self.url = url;
        match self.send(now, context) {
            Ok(()) => FetchEvent::Nothing,
            Err(failure) => {
                context.client.failed();
                FetchEvent::Broken(failure)
            }
        }
    }

    fn broken(&self, context: &mut PageContext<'_>, detail: String) -> FetchEvent {
        context.client.failed();
        context.client.life.push(Output::Cancel(self.fetch));
        FetchEvent::Broken(Failure::new(FailureReason::Protocol, detail))
    }
}

/// The recorded headers, and those by which a stored response is asked for.
fn headers(request: &PageRequest, conditions: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers.iter().chain(conditions) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    headers
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
