//! The HTTP client of a player: requests and their counts, redirects that are allowed, the state of its connections.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, COOKIE, HeaderName, HeaderValue, RANGE};
use http::{Method, StatusCode};
use throng_media::quality::WallClock;
use throng_observation::{Failure, FailureReason, MediaPath, Observation, RefusedDestination};
use throng_scenario::{CredentialsPolicy, HttpVersionPolicy, Secret, TokenSource};
use url::{Host, Url};

use super::alternatives::Alternatives;
use super::cookies::{CookieJar, is_cross_site};
use super::encoding;
use crate::participant::{FetchId, HttpVersion, Opening, Output, Request, TransportState};
use crate::webrtc::MayReach;

/// Connections whose figures are kept; of more, the oldest are forgotten.
const CONNECTIONS_MAX: usize = 16;

/// Counts since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HttpCounters {
    pub(super) requests: u64,
    pub(super) requests_failed: u64,
    pub(super) connections: u64,
    pub(super) retransmitted: u64,
    pub(super) received_out_of_order: u64,
    /// Responses over HTTP/1.1, HTTP/2, HTTP/3.
    pub(super) responses: [u64; 3],
}

/// Where a chain of redirects has been so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origins {
    /// At another origin than the page's: back there, it is as foreign (Fetch standard: response tainting "cors").
    has_left: bool,
}

/// Adds to what `player.headers` may say.
fn add_cookies(headers: &mut http::HeaderMap, cookies: &str) {
    let given = headers.get(COOKIE).and_then(|value| value.to_str().ok());
    let all = given.map_or_else(|| cookies.to_owned(), |given| format!("{given}; {cookies}"));
    if let Ok(mut value) = HeaderValue::try_from(all) {
        value.set_sensitive(true);
        headers.insert(COOKIE, value);
    }
}

/// The client of one player.
pub(super) struct HttpClient {
    version: HttpVersionPolicy,
    alternatives: Alternatives,
    token: Option<Secret>,
    /// Further headers.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The host that token and headers are for: they are sent to no other.
    host: Option<String>,
    /// The page that the player is in; as long as none is given, one of the same origin as the media.
    page: Url,
    credentials: CredentialsPolicy,
    cookies: CookieJar,
    /// Cookies expire by the wall clock; without one none are kept.
    clock: Option<WallClock>,
    may_reach: MayReach,
    head_timeout: Duration,
    next_fetch: u32,
    counters: HttpCounters,
    /// The last figures of each connection.
    connections: Vec<TransportState>,
    has_reported_phases: bool,
    path: Option<MediaPath>,
    outputs: VecDeque<Output>,
}

impl HttpClient {
    pub(super) fn new(
        version: HttpVersionPolicy,
        (token, url): (Option<Secret>, &Url),
        may_reach: MayReach,
        head_timeout: Duration,
    ) -> Self {
        Self {
            version,
            alternatives: Alternatives::default(),
            token,
            headers: Vec::new(),
            host: url.host_str().map(str::to_owned),
            page: url.clone(),
            credentials: CredentialsPolicy::default(),
            cookies: CookieJar::default(),
            clock: None,
            may_reach,
            head_timeout,
            next_fetch: 0,
            counters: HttpCounters::default(),
            connections: Vec::new(),
            has_reported_phases: false,
            path: None,
            outputs: VecDeque::new(),
        }
    }

    /// Keeps cookies, of these requests.
    pub(super) fn keep_cookies(&mut self, credentials: CredentialsPolicy, clock: WallClock) {
        (self.credentials, self.clock) = (credentials, Some(clock));
    }

    /// Further headers of requests to the host of the URL. Values that are not known are left out.
    pub(super) fn add_headers(&mut self, headers: &[(String, TokenSource)]) {
        for (name, value) in headers {
            let TokenSource::Inline(value) = value else { continue };
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value.expose()))
            {
                // Neither printed nor kept in the compression tables of HTTP/2 and HTTP/3.
                value.set_sensitive(true);
                self.headers.push((name, value));
            }
        }
    }

    /// Requests `url`, or the bytes from `range.0` to `range.1`, inclusive. `origins` are those of the redirects before it.
    pub(super) fn request(
        &mut self,
        now: Instant,
        (method, url): (&Method, &Url),
        range: Option<(u64, Option<u64>)>,
        origins: Origins,
    ) -> Result<FetchId, Failure> {
        self.check(url)?;
        let protocol = |e: http::Error| Failure::new(FailureReason::Protocol, format!("{url}: {e}"));
        let request = http::Request::builder().method(method.clone()).uri(url.as_str());
        let (mut head, ()) = request.body(()).map_err(protocol)?.into_parts();
        head.headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        // In another encoding a part of the body would have other offsets (Fetch standard, section 4.6).
        let encodings = if range.is_some() { "identity" } else { encoding::accepted(url) };
        head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encodings));
        if let Some((first, last)) = range {
            let text = last.map_or_else(|| format!("bytes={first}-"), |last| format!("bytes={first}-{last}"));
            head.headers.extend(HeaderValue::try_from(text).ok().map(|value| (RANGE, value)));
        }
        Ok(self.send(now, url, head, origins))
    }

    /// Sends a request for `url`, which was checked ([`Self::check`]), with what all requests have. `origins` are those of the
    /// redirects before it.
    pub(super) fn send(
        &mut self,
        now: Instant,
        url: &Url,
        mut head: http::request::Parts,
        origins: Origins,
    ) -> FetchId {
        if let Some(token) = self.token.as_ref().filter(|_| url.host_str() == self.host.as_deref()) {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            head.headers.extend(value.ok().map(|value| (AUTHORIZATION, value)));
        }
        if url.host_str() == self.host.as_deref() {
            for (name, value) in &self.headers {
                head.headers.insert(name, value.clone());
            }
        }
        if let Some(unix_s) = self.cookie_time(now, url, origins)
            && let Some(cookies) = self.cookies.header(unix_s, url, is_cross_site(&self.page, url))
        {
            add_cookies(&mut head.headers, &cookies);
        }
        let fetch = FetchId(self.next_fetch);
        self.next_fetch = self.next_fetch.wrapping_add(1);
        self.counters.requests += 1;
        let request = Request { head, body: Vec::new(), timeout: self.head_timeout };
        let version = self.version(now, url);
        self.outputs.push_back(Output::Download(fetch, Box::new(request), version));
        fetch
    }

    /// The origins of requests that end in one to `url`.
    pub(super) fn origins(&self, before: Origins, url: &Url) -> Origins {
        Origins { has_left: before.has_left || url.origin() != self.page.origin() }
    }

    /// The wall clock, seconds since 1970, if this request brings cookies.
    fn cookie_time(&self, now: Instant, url: &Url, before: Origins) -> Option<i64> {
        let brings = match self.credentials {
            CredentialsPolicy::Include => true,
            CredentialsPolicy::SameOrigin => !self.origins(before, url).has_left,
            CredentialsPolicy::Omit => false,
        };
        let unix_ns = self.clock.filter(|_| brings)?.unix_ns(now);
        i64::try_from(unix_ns / 1_000_000_000).ok()
    }

    /// Keeps the cookies of a response, whatever its status, if its request could bring some.
    pub(super) fn learn_cookies(
        &mut self,
        now: Instant,
        url: &Url,
        head: &http::response::Parts,
        before: Origins,
    ) {
        if let Some(unix_s) = self.cookie_time(now, url, before) {
            self.cookies.store(unix_s, url, &head.headers, is_cross_site(&self.page, url));
        }
    }

    fn version(&self, now: Instant, url: &Url) -> HttpVersion {
        match self.version {
            HttpVersionPolicy::Negotiated => HttpVersion::Negotiated,
            HttpVersionPolicy::Http1 => HttpVersion::Http1,
            HttpVersionPolicy::Http2 => HttpVersion::Http2,
            HttpVersionPolicy::Http3 => HttpVersion::Http3,
            HttpVersionPolicy::Browser => {
                self.alternatives.port(now, url).map_or(HttpVersion::Negotiated, HttpVersion::Alternative)
            }
        }
    }

    /// Whether `url` may be requested. Names are checked by the driver, by what they resolve to.
    pub(super) fn check(&mut self, url: &Url) -> Result<(), Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            let detail = format!("{url} is not an HTTP URL");
            return Err(Failure::new(FailureReason::Protocol, detail));
        }
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            _ => return Ok(()),
        };
        if (self.may_reach)(ip) {
            return Ok(());
        }
        let place = SocketAddr::new(ip, url.port_or_known_default().unwrap_or(0));
        self.observe(Observation::Refused(RefusedDestination::Redirect, place));
        Err(Failure::new(FailureReason::NotAllowed, format!("{place} is not an allowed target")))
    }

    /// A request for `url` was answered over a connection that was opened like this.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        url: &Url,
        head: &http::response::Parts,
        opening: &Opening,
    ) {
        self.learn_alternatives(now, url, head, opening);
        // QUIC has one handshake, which ends when TLS is established.
        if opening.connected_at.is_some() || opening.secured_at.is_some() {
            self.counters.connections += 1;
        }
        if !std::mem::replace(&mut self.has_reported_phases, true) {
            self.outputs.extend(opening.phases().map(Output::Observed));
        }
        let (path, at) = match head.version {
            http::Version::HTTP_3 => (MediaPath::Http3, 2),
            http::Version::HTTP_2 => (MediaPath::Http2, 1),
            _ => (MediaPath::Http1, 0),
        };
        self.counters.responses[at] += 1;
        if self.path.is_none() {
            self.path = Some(path);
            self.observe(Observation::Path(path));
        }
    }

    fn learn_alternatives(
        &mut self,
        now: Instant,
        url: &Url,
        head: &http::response::Parts,
        opening: &Opening,
    ) {
        if self.version != HttpVersionPolicy::Browser {
            return;
        }
        if let Some(error) = &opening.alternative_failed
            && let Some(port) = self.alternatives.broke(now, url)
        {
            let host = url.host_str().unwrap_or_default();
            self.anomaly(format!("{host}: Alt-Svc offers HTTP/3 at port {port}, but: {error}"));
        }
        if head.status == StatusCode::MISDIRECTED_REQUEST {
            self.alternatives.forget(url);
        } else {
            self.alternatives.learn(now, url, &head.headers);
        }
    }

    /// A request had no usable response.
    pub(super) fn failed(&mut self) {
        self.counters.requests_failed += 1;
    }

    /// The state of a connection.
    pub(super) fn transport(&mut self, state: TransportState) {
        let at = self.connections.iter().position(|known| known.connection == state.connection);
        let before = at.map(|at| self.connections.swap_remove(at)).unwrap_or_default();
        let more = |now: Option<u64>, before: Option<u64>| {
            now.map_or(0, |now| now.saturating_sub(before.unwrap_or(0)))
        };
        self.counters.retransmitted += more(state.retransmitted, before.retransmitted);
        self.counters.received_out_of_order +=
            more(state.received_out_of_order, before.received_out_of_order);
        if self.connections.len() >= CONNECTIONS_MAX {
            self.connections.remove(0);
        }
        self.connections.push(state);
    }

    /// Takes the counts since the last call.
    pub(super) fn take_counters(&mut self) -> HttpCounters {
        std::mem::take(&mut self.counters)
    }

    pub(super) fn observe(&mut self, observation: Observation) {
        self.output(Output::Observed(observation));
    }

    /// Something broke HTTP, or was odd, and could be lived with.
    pub(super) fn anomaly(&mut self, detail: String) {
        self.observe(Observation::ProtocolAnomaly { place: "http", detail });
    }

    pub(super) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}
