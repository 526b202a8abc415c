//! The download of one resource, or of a range of it: the check of its response, redirects, and how
//! much of its body is asked for.
//!
//! Demands count bytes as they are received. Those of an encoded body are all delivered: which of
//! the decoded ones are behind them is known only after that.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, HeaderValue, LOCATION,
};
use http::{HeaderMap, Method, StatusCode};
use throng_observation::{Failure, FailureReason, Url};

use super::client::HttpClient;
use super::cors::Origins;
use super::encoding::{DecodeError, Decoder};
use crate::excerpt::retry_after;
use crate::participant::{ChannelError, Demand, DownloadEvent, FetchId, Output};

/// Redirects that are followed, as by browsers (Fetch standard, section 4.4).
pub(in crate::player) const REDIRECTS_MAX: u8 = 20;

/// Without a byte for so long although some were asked for, a download has failed.
pub(in crate::player) const PROGRESS_TIMEOUT: Duration = Duration::from_secs(20);

/// One download.
#[derive(Debug)]
pub(in crate::player) struct Transfer {
    fetch: FetchId,
    method: Method,
    url: Url,
    /// First byte of the resource that is wanted, and the last, if not all.
    range: Option<(u64, Option<u64>)>,
    /// The server sends all of the resource, though a part was asked for.
    is_whole: bool,
    /// Bytes of the body before the first wanted one.
    unwanted: u64,
    /// Bytes that were asked for and have not come; the unwanted ones are not among them.
    outstanding: u64,
    /// Bytes of the body that have not come, where its length is known.
    remaining: Option<u64>,
    progress_at: Instant,
    has_head: bool,
    redirects: u8,
    /// Where the requests before this one were made.
    origins: Origins,
    /// Of an encoded body.
    decoder: Option<Decoder>,
    /// What an encoded body may still become.
    decoded_left: usize,
    /// Its strong validator and the length of its body, where the server says both.
    version: Option<(String, u64)>,
    /// What the browser's cache asks with.
    conditions: Vec<(HeaderName, HeaderValue)>,
    /// What was cached is still what the server has (304).
    is_unchanged: bool,
    /// Headers of the response.
    headers: HeaderMap,
}

/// What a download did.
#[derive(Debug)]
pub(in crate::player) enum TransferEvent<'a> {
    /// Its response is usable. `total_bytes` is the length of the whole resource, where the server
    /// says it.
    Begun { total_bytes: Option<u64> },
    /// The next bytes, decoded; of `received` ones on the wire.
    Bytes { bytes: Cow<'a, [u8]>, received: u64 },
    /// The next bytes, which were not wanted for reading.
    Ignored(u64),
    /// All of it was received.
    Complete,
    /// There will be no more of it.
    Failed(TransferError),
    /// Nothing that the player needs to know.
    Nothing,
}

/// Why a download failed.
#[derive(Debug)]
pub(in crate::player) struct TransferError {
    pub(in crate::player) failure: Failure,
    /// Whether the same request may succeed later: the server, or the way to it, is to blame, not
    /// the request.
    pub(in crate::player) may_retry: bool,
    /// Nothing came in time.
    pub(in crate::player) is_timeout: bool,
    /// The server answered that the resource is not to be had (4xx).
    pub(in crate::player) is_refused: bool,
}

impl TransferError {
    /// What came cannot be read, and may be readable the next time.
    pub(in crate::player) fn unreadable(failure: Failure) -> Self {
        Self { may_retry: true, ..Self::lasting(failure) }
    }

    /// A failure that will not pass by itself.
    pub(in crate::player) fn lasting(failure: Failure) -> Self {
        Self { failure, may_retry: false, is_timeout: false, is_refused: false }
    }
}

impl Transfer {
    /// Requests `url`, or a range of it.
    pub(in crate::player) fn begin(
        now: Instant,
        client: &mut HttpClient,
        url: &Url,
        range: Option<(u64, Option<u64>)>,
    ) -> Result<Self, Failure> {
        Self::begin_with(now, client, (Method::GET, url), range, Vec::new())
    }

    /// Requests `url` unless it is what the cache has: `conditions` are its validators.
    pub(in crate::player) fn begin_if(
        now: Instant,
        client: &mut HttpClient,
        url: &Url,
        conditions: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Self, Failure> {
        Self::begin_with(now, client, (Method::GET, url), None, conditions)
    }

    /// Requests the head of the response only (HEAD).
    pub(in crate::player) fn begin_head(
        now: Instant,
        client: &mut HttpClient,
        url: &Url,
    ) -> Result<Self, Failure> {
        Self::begin_with(now, client, (Method::HEAD, url), None, Vec::new())
    }

    fn begin_with(
        now: Instant,
        client: &mut HttpClient,
        (method, url): (Method, &Url),
        range: Option<(u64, Option<u64>)>,
        conditions: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Self, Failure> {
        let fetch = client.request(now, (&method, url), range, &conditions, Origins::default())?;
        Ok(Self {
            fetch,
            method,
            url: url.clone(),
            range,
            is_whole: false,
            unwanted: 0,
            outstanding: 0,
            remaining: None,
            progress_at: now,
            has_head: false,
            redirects: 0,
            origins: Origins::default(),
            decoder: None,
            decoded_left: usize::MAX,
            version: None,
            conditions,
            is_unchanged: false,
            headers: HeaderMap::new(),
        })
    }

    /// An encoded body may become at most so many bytes.
    pub(in crate::player) fn limit_decoded(&mut self, bytes_max: usize) {
        self.decoded_left = bytes_max;
    }

    /// Whether its body is encoded: bytes to ignore are delivered too.
    pub(in crate::player) fn is_encoded(&self) -> bool {
        self.decoder.is_some()
    }

    pub(in crate::player) fn fetch(&self) -> FetchId {
        self.fetch
    }

    /// Where its bytes come from: after redirects not where it was requested.
    pub(in crate::player) fn url(&self) -> &Url {
        &self.url
    }

    /// Its strong validator (`ETag`) and the length of its body: bodies of which both are equal are
    /// the same.
    pub(in crate::player) fn version(&self) -> Option<&(String, u64)> {
        self.version.as_ref().filter(|_| self.decoder.is_none() && self.unwanted == 0)
    }

    /// Whether what was cached is still what the server has: nothing else comes.
    pub(in crate::player) fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// The headers of its response; empty before it.
    pub(in crate::player) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Bytes that were asked for and have not come.
    pub(in crate::player) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Whether the response has begun: only then is its body asked for.
    pub(in crate::player) fn has_head(&self) -> bool {
        self.has_head
    }

    /// Whether the server knows no ranges: what is elsewhere comes in its turn.
    pub(in crate::player) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether all of the body has come; its end is still to be reported.
    pub(in crate::player) fn is_received(&self) -> bool {
        self.remaining == Some(0)
    }

    fn received(&mut self, now: Instant, bytes: u64) {
        self.progress_at = now;
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(bytes));
    }

    /// Asks for more of the body.
    pub(in crate::player) fn demand(
        &mut self,
        now: Instant,
        client: &mut HttpClient,
        demand: Demand,
    ) {
        if self.outstanding == 0 {
            self.progress_at = now;
        }
        let (Demand::Deliver(bytes) | Demand::Ignore(bytes)) = demand;
        self.outstanding = self.outstanding.saturating_add(bytes);
        let demand = if self.is_encoded() { Demand::Deliver(bytes) } else { demand };
        client.life.push(Output::Demand(self.fetch, demand));
    }

    /// Gives the download up.
    pub(in crate::player) fn cancel(self, client: &mut HttpClient) {
        client.cancel(self.fetch);
    }

    /// When it has failed for want of progress; `None` while nothing is asked for, or the driver
    /// waits for the head.
    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        (self.has_head && self.outstanding > 0).then(|| self.progress_at + PROGRESS_TIMEOUT)
    }

    /// The failure of a download without progress, or that should have been complete at `late_at`,
    /// after `limit`.
    pub(in crate::player) fn overdue(
        &self,
        now: Instant,
        late_at: Instant,
        limit: Duration,
    ) -> Option<TransferError> {
        if self.next_timeout().is_some_and(|at| now >= at) {
            return Some(self.stuck());
        }
        (now >= late_at)
            .then(|| self.timed_out(&format!("not complete within {:.0} s", limit.as_secs_f64())))
    }

    /// The failure of a download without progress.
    pub(in crate::player) fn stuck(&self) -> TransferError {
        self.timed_out(&format!("no data for {:.0} s", PROGRESS_TIMEOUT.as_secs_f64()))
    }

    fn timed_out(&self, what: &str) -> TransferError {
        let detail = format!("{}: {what}", self.url);
        let failure = Failure::new(FailureReason::MediaLost, detail);
        TransferError { may_retry: true, is_timeout: true, ..TransferError::lasting(failure) }
    }

    /// Handles what the driver reports of this download.
    pub(in crate::player) fn handle<'a>(
        &mut self,
        now: Instant,
        client: &mut HttpClient,
        event: DownloadEvent<'a>,
    ) -> TransferEvent<'a> {
        match event {
            DownloadEvent::Head { head, opening } => {
                client.answered(now, &self.url, &head, &opening);
                client.learn_cookies(now, &self.url, &head, self.origins);
                (self.has_head, self.progress_at) = (true, now);
                match self.head(now, client, &head) {
                    Ok(event) => event,
                    Err(error) => TransferEvent::Failed(self.give_up(client, error)),
                }
            }
            DownloadEvent::Body(bytes) => {
                self.received(now, bytes.len() as u64);
                let received = bytes.len() as u64;
                self.outstanding = self.outstanding.saturating_sub(received);
                match self.decode(bytes) {
                    Ok(bytes) => TransferEvent::Bytes { bytes, received },
                    Err(error) => TransferEvent::Failed(self.give_up(client, error)),
                }
            }
            DownloadEvent::Ignored(bytes) => {
                self.received(now, bytes);
                let unwanted = bytes.min(self.unwanted);
                self.unwanted -= unwanted;
                let wanted = bytes - unwanted;
                self.outstanding = self.outstanding.saturating_sub(wanted);
                if wanted > 0 { TransferEvent::Ignored(wanted) } else { TransferEvent::Nothing }
            }
            DownloadEvent::Transport(state) => {
                client.transport(state);
                TransferEvent::Nothing
            }
            DownloadEvent::Finished(Ok(())) => {
                match self.decoder.as_mut().map_or(Ok(()), Decoder::finish) {
                    Ok(()) => TransferEvent::Complete,
                    Err(error) => {
                        client.failed();
                        TransferEvent::Failed(self.undecodable(&error))
                    }
                }
            }
            DownloadEvent::Finished(Err(error)) => {
                client.failed();
                let may_retry =
                    !matches!(error, ChannelError::NotAllowed(_) | ChannelError::Cors(_));
                let is_timeout = matches!(error, ChannelError::Timeout(_));
                let failure: Failure =
                    if self.has_head { error.after_opening() } else { error.into() };
                let detail = format!("{}: {}", self.url, failure.detail);
                let failure = Failure::new(failure.reason, detail);
                TransferEvent::Failed(TransferError {
                    failure,
                    may_retry,
                    is_timeout,
                    is_refused: false,
                })
            }
        }
    }

    /// Gives the download up because of what came of it.
    pub(in crate::player) fn give_up(
        &self,
        client: &mut HttpClient,
        error: TransferError,
    ) -> TransferError {
        client.failed();
        client.cancel(self.fetch);
        error
    }

    fn decode<'a>(&mut self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, TransferError> {
        let Some(decoder) = &mut self.decoder else { return Ok(Cow::Borrowed(bytes)) };
        let decoded = decoder.decode(bytes, self.decoded_left);
        let decoded = decoded.map_err(|error| self.undecodable(&error))?;
        self.decoded_left = self.decoded_left.saturating_sub(decoded.len());
        Ok(Cow::Owned(decoded))
    }

    /// The decoder of the body, where the response says that one is needed.
    fn begin_decoding(&mut self, head: &http::response::Parts) -> Result<(), TransferError> {
        self.decoder = Decoder::of(&head.headers).map_err(|error| self.undecodable(&error))?;
        match &self.decoder {
            // Positions in an encoded body are not those of the resource.
            Some(decoder) if self.range.is_some() => {
                let what = format!(
                    "Content-Encoding `{}` in the response to a request with Range, which accepts \
                     `identity` only",
                    decoder.name()
                );
                Err(self.broken(&what))
            }
            _ => Ok(()),
        }
    }

    fn undecodable(&self, error: &DecodeError) -> TransferError {
        let name = self.decoder.as_ref().map_or("?", Decoder::name);
        match error {
            DecodeError::Unknown(name) => {
                self.broken(&format!("unknown Content-Encoding `{name}`"))
            }
            DecodeError::TooLong => self.broken(&format!(
                "its body of Content-Encoding `{name}` becomes longer than what is read of such a \
                 resource"
            )),
            DecodeError::Broken(why) => TransferError::unreadable(
                self.broken(&format!("its body is not what Content-Encoding `{name}` says: {why}"))
                    .failure,
            ),
        }
    }

    fn head<'a>(
        &mut self,
        now: Instant,
        client: &mut HttpClient,
        head: &http::response::Parts,
    ) -> Result<TransferEvent<'a>, TransferError> {
        client.may_have(&self.url, self.origins, head).map_err(|error| self.withheld(error))?;
        if self.method == Method::HEAD && head.status.is_success() {
            // It describes the body of another response.
            return Ok(TransferEvent::Begun { total_bytes: None });
        }
        self.headers.clone_from(&head.headers);
        if head.status == StatusCode::NOT_MODIFIED && !self.conditions.is_empty() {
            self.is_unchanged = true;
            return Ok(TransferEvent::Begun { total_bytes: None });
        }
        let length = number(head.headers.get(CONTENT_LENGTH));
        self.remaining = length;
        self.version = strong_validator(head).zip(length);
        let total_bytes = match head.status {
            StatusCode::PARTIAL_CONTENT => {
                self.begin_decoding(head)?;
                self.check_range(client, head)?
            }
            status if status.is_success() => {
                self.begin_decoding(head)?;
                self.whole(client, head);
                length.filter(|_| !self.is_encoded())
            }
            status if status.is_redirection() => return self.redirect(now, client, head),
            _ => return Err(self.refused(head)),
        };
        Ok(TransferEvent::Begun { total_bytes })
    }

    /// The server sends all of the resource. If a later part was wanted, what comes before is
    /// received and dropped, as browsers do.
    fn whole(&mut self, client: &mut HttpClient, head: &http::response::Parts) {
        // To a request from the first byte on, 200 is an answer of servers that know ranges too;
        // Chromium then believes what they say.
        let accepts = head.headers.get(ACCEPT_RANGES).is_some_and(|value| value == "bytes");
        self.is_whole = self.range.is_some_and(|(first, _)| first > 0 || !accepts);
        let Some((first, _)) = self.range.filter(|(first, last)| *first > 0 || last.is_some())
        else {
            return;
        };
        client.anomaly(format!("{}: 200 instead of 206: the server ignores Range", self.url));
        if first > 0 {
            self.unwanted = first;
            // Demands of before are served in their order: the wanted bytes must not be delivered
            // for these.
            client.life.push(Output::Demand(self.fetch, Demand::Ignore(first)));
        }
    }

    /// The length of the whole resource, if the response says it, once its range is the one that
    /// was wanted.
    fn check_range(
        &self,
        client: &mut HttpClient,
        head: &http::response::Parts,
    ) -> Result<Option<u64>, TransferError> {
        let text = head.headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let Some((first, total)) = text.and_then(content_range) else {
            let detail = format!("206 with the Content-Range `{}`", text.unwrap_or("(none)"));
            return Err(self.broken(&detail));
        };
        match self.range {
            None => client.anomaly(format!("{}: 206 without a Range in the request", self.url)),
            Some((wanted, _)) if wanted != first => {
                return Err(
                    self.broken(&format!("Content-Range begins at {first}, Range at {wanted}"))
                );
            }
            Some(_) => {}
        }
        Ok(total)
    }

    fn redirect<'a>(
        &mut self,
        now: Instant,
        client: &mut HttpClient,
        head: &http::response::Parts,
    ) -> Result<TransferEvent<'a>, TransferError> {
        let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(url) = location.and_then(|location| self.url.join(location).ok()) else {
            return Err(self.refused(head));
        };
        self.redirects += 1;
        if self.redirects > REDIRECTS_MAX {
            return Err(self.broken(&format!("more than {REDIRECTS_MAX} redirects")));
        }
        client.cancel(self.fetch);
        self.origins = client.redirected(self.origins, &self.url, &url);
        let fetch =
            client.request(now, (&self.method, &url), self.range, &self.conditions, self.origins);
        self.fetch = fetch.map_err(TransferError::lasting)?;
        (self.url, self.has_head) = (url, false);
        // What was asked for of the body must be asked for again.
        self.outstanding = 0;
        Ok(TransferEvent::Nothing)
    }

    fn refused(&self, head: &http::response::Parts) -> TransferError {
        let status = head.status;
        let words = status.canonical_reason().map(|words| format!(" {words}")).unwrap_or_default();
        let wait = retry_after(&head.headers);
        let detail = format!("{}: HTTP status {}{words}{wait}", self.url, status.as_u16());
        // hls.js repeats no 4xx. One of them is the answer of an alternative that is not
        // responsible (RFC 7838 section 6).
        let may_retry = status.is_server_error() || status == StatusCode::MISDIRECTED_REQUEST;
        let reason = match status {
            StatusCode::UNAUTHORIZED => FailureReason::Unauthorized,
            status => FailureReason::HttpStatus(status.as_u16()),
        };
        let (failure, is_refused) = (Failure::new(reason, detail), status.is_client_error());
        TransferError { may_retry, is_refused, ..TransferError::lasting(failure) }
    }

    /// The page may not have the response. hls.js does not repeat such requests.
    fn withheld(&self, error: ChannelError) -> TransferError {
        let failure: Failure = error.into();
        let detail = format!("{}: {}", self.url, failure.detail);
        TransferError::lasting(Failure::new(failure.reason, detail))
    }

    fn broken(&self, what: &str) -> TransferError {
        let detail = format!("{}: {what}", self.url);
        let failure = Failure::new(FailureReason::Protocol, detail);
        TransferError::lasting(failure)
    }
}

/// The `ETag` of a response, unless it is a weak one (RFC 9110 section 8.8.3).
fn strong_validator(head: &http::response::Parts) -> Option<String> {
    let text = head.headers.get(ETAG)?.to_str().ok()?;
    text.starts_with('"').then(|| text.to_owned())
}

fn number(value: Option<&http::HeaderValue>) -> Option<u64> {
    value?.to_str().ok()?.trim().parse().ok()
}

/// First byte and complete length of `bytes 0-499/1234` or `bytes 0-499/*` (RFC 9110 section 14.4).
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (unit, rest) = text.trim().split_once(' ')?;
    let (range, total) = rest.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    (unit.eq_ignore_ascii_case("bytes") && first <= last && total.is_none_or(|total| last < total))
        .then_some((first, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_or_refused() {
        for (text, expect) in [
            ("bytes 0-499/1234", Some((0, Some(1234)))),
            ("BYTES 5-5/6", Some((5, Some(6)))),
            ("bytes 0-499/*", Some((0, None))),
            ("bytes */1234", None),
            ("bytes 500-499/1234", None),
            ("bytes 0-1234/1234", None),
            ("items 0-1/2", None),
            ("bytes 0-18446744073709551616/*", None),
            ("bytes", None),
            ("", None),
        ] {
            assert_eq!(content_range(text), expect, "{text}");
        }
    }
}
