//! Requests that another origin has to allow: the preflight before, the check after.

use std::time::Instant;

use http::Method;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderName, HeaderValue,
};
use throng_observation::Url;

use super::HttpClient;
use crate::participant::{ChannelError, Demand, DownloadEvent, FetchId, Opening, Output};
use crate::player::download::cors::Origins;
use crate::player::download::encoding;
use crate::player::download::preflight::{Answer, Waiting, length};

/// Bodies of preflights up to this length are received and dropped, so that their connection can be
/// used again (`kDrainBodyBufferSize` of Chromium); with others it is closed.
const DRAINED_BYTES_MAX: u64 = 16_384;

impl HttpClient {
    /// Whether the page may have the response of `url`; an error says why not.
    pub(in crate::player) fn may_have(
        &self,
        url: &Url,
        before: Origins,
        head: &http::response::Parts,
    ) -> Result<(), ChannelError> {
        self.page.may_have(url, before, head, self.credentials).map_err(ChannelError::Cors)
    }

    /// Sends a preflight, and `request` once it is allowed.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        request: FetchId,
        url: &Url,
        head: http::request::Parts,
        origins: Origins,
        headers: Vec<HeaderName>,
    ) {
        // It has neither cookies, nor a token, nor any other header of the request.
        let (mut asks, ()) = http::Request::new(()).into_parts();
        (asks.method, asks.uri) = (Method::OPTIONS, head.uri.clone());
        asks.headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        asks.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding::accepted(url)));
        let method = HeaderValue::try_from(head.method.as_str());
        asks.headers.extend(method.ok().map(|method| (ACCESS_CONTROL_REQUEST_METHOD, method)));
        let names: Vec<_> = headers.iter().map(HeaderName::as_str).collect();
        let names = HeaderValue::try_from(names.join(","));
        asks.headers.extend(names.ok().map(|names| (ACCESS_CONTROL_REQUEST_HEADERS, names)));
        self.page.describe(url, origins, &mut asks.headers);
        let preflight = self.next_fetch();
        self.download(now, preflight, url, asks, self.head_timeout);
        let (url, asked_at) = (url.clone(), now);
        self.preflights.wait(Waiting {
            preflight,
            request,
            url,
            head,
            headers,
            origins,
            asked_at,
            is_allowed: false,
        });
    }

    /// Gives a download up, or its preflight.
    pub(in crate::player) fn cancel(&mut self, fetch: FetchId) {
        let preflight = self.preflights.take_request(fetch).map(|waiting| waiting.preflight);
        self.life.push(Output::Cancel(preflight.unwrap_or(fetch)));
    }

    /// Handles what the driver reports of preflights: a request that is not allowed has failed. Of
    /// other downloads it is returned as it is.
    pub(in crate::player) fn after_preflight<'a>(
        &mut self,
        now: Instant,
        fetch: FetchId,
        event: DownloadEvent<'a>,
    ) -> Option<(FetchId, DownloadEvent<'a>)> {
        let Some(waiting) = self.preflights.take(fetch) else { return Some((fetch, event)) };
        match event {
            DownloadEvent::Head { head, opening } => {
                let request = waiting.request;
                let refused = self.answer(now, waiting, &head, &opening).err()?;
                self.life.push(Output::Cancel(fetch));
                return Some((request, DownloadEvent::Finished(Err(refused))));
            }
            DownloadEvent::Finished(Err(error)) if !waiting.is_allowed => {
                return Some((waiting.request, DownloadEvent::Finished(Err(error))));
            }
            DownloadEvent::Finished(_) => self.allowed(now, waiting),
            DownloadEvent::Transport(state) => {
                self.transport(state);
                self.preflights.wait(waiting);
            }
            DownloadEvent::Body(_) | DownloadEvent::Ignored(_) => self.preflights.wait(waiting),
        }
        None
    }

    /// Handles the response to a preflight; an error says why the request is not allowed.
    fn answer(
        &mut self,
        now: Instant,
        waiting: Waiting,
        head: &http::response::Parts,
        opening: &Opening,
    ) -> Result<(), ChannelError> {
        let Waiting { url, origins, headers, preflight, .. } = &waiting;
        self.answered(now, url, head, opening);
        let answer = self.page.may_have(url, *origins, head, self.credentials);
        let answer = answer.and_then(|()| Answer::read(now, head, headers, self.credentials));
        let answer = answer.map_err(|why| ChannelError::Cors(format!("preflight: {why}")))?;
        self.preflights.learn(now, url, *origins, answer);
        let preflight = *preflight;
        if length(head) == Some(0) && head.version < http::Version::HTTP_2 {
            // Its end comes at once, and with it the connection that the request needs.
            self.preflights.wait(Waiting { is_allowed: true, ..waiting });
            return Ok(());
        }
        self.life.push(match length(head) {
            Some(bytes) if bytes <= DRAINED_BYTES_MAX => {
                Output::Demand(preflight, Demand::Ignore(u64::MAX))
            }
            _ => Output::Cancel(preflight),
        });
        self.allowed(now, waiting);
        Ok(())
    }

    /// Sends a request that its server allows; what the preflight took is part of its time.
    fn allowed(&mut self, now: Instant, waiting: Waiting) {
        let Waiting { request, url, mut head, origins, asked_at, .. } = waiting;
        let left = self.head_timeout.saturating_sub(now.saturating_duration_since(asked_at));
        self.page.describe(&url, origins, &mut head.headers);
        self.dispatch(now, request, &url, head, origins, left);
    }
}
