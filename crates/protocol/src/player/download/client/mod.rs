//! The HTTP client of a player: requests and their counts, redirects that are allowed, the state of
//! its connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName, HeaderValue, RANGE};
use http::{Method, StatusCode};
use throng_media::quality::WallClock;
use throng_observation::{
    Detail, Failure, FailureReason, MediaPath, Observation, PlaybackCounters, RefusedDestination,
    Url,
};
use throng_scenario::{CredentialsPolicy, HttpVersionPolicy, IpProtocol, Secret};
use url::{Host, Origin};

use super::alternatives::Alternatives;
use super::cookies::CookieJar;
use super::cors::{Embedding, Origins};
use super::encoding;
use super::preflight::{Preflights, unsafe_headers};
use crate::life::Life;
use crate::participant::{FetchId, HttpVersion, Opening, Output, Request, TransportState};
use crate::webrtc::MayReach;

mod credentials;
mod permission;

/// Connections whose figures are kept; of more, the oldest are forgotten.
const CONNECTIONS_MAX: usize = 16;

/// The client of one player.
pub(in crate::player) struct HttpClient {
    version: HttpVersionPolicy,
    alternatives: Alternatives,
    token: Option<Secret>,
    /// Further headers.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The origin that token and headers are for: they are sent to no other.
    origin: Origin,
    /// The page that the player is in.
    page: Embedding,
    preflights: Preflights,
    credentials: CredentialsPolicy,
    cookies: CookieJar,
    /// Cookies expire by the wall clock; without one none are kept.
    clock: Option<WallClock>,
    may_reach: MayReach,
    head_timeout: Duration,
    next_fetch: u32,
    counters: PlaybackCounters,
    /// The last figures of each connection.
    connections: Vec<TransportState>,
    has_reported_phases: bool,
    path: Option<MediaPath>,
    /// That of the player, all of whose outputs go through it.
    pub(in crate::player) life: Life<()>,
}

impl HttpClient {
    pub(in crate::player) fn new(
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
            origin: url.origin(),
            page: Embedding::unsaid(url),
            preflights: Preflights::default(),
            credentials: CredentialsPolicy::default(),
            cookies: CookieJar::default(),
            clock: None,
            may_reach,
            head_timeout,
            next_fetch: 0,
            counters: PlaybackCounters::default(),
            connections: Vec::new(),
            has_reported_phases: false,
            path: None,
            life: Life::new(),
        }
    }

    /// The player is in this page.
    pub(in crate::player) fn embed(&mut self, page: Embedding) {
        self.page = page;
    }

    /// The origin of the page that the player is in.
    pub(in crate::player) fn origin(&self) -> String {
        self.page.url().origin().ascii_serialization()
    }

    /// Requests `url`, or the bytes from `range.0` to `range.1`, inclusive. `origins` are those of
    /// the redirects before it, `conditions` what the browser's cache adds.
    pub(in crate::player) fn request(
        &mut self,
        now: Instant,
        (method, url): (&Method, &Url),
        range: Option<(u64, Option<u64>)>,
        conditions: &[(HeaderName, HeaderValue)],
        origins: Origins,
    ) -> Result<FetchId, Failure> {
        self.check(url)?;
        let protocol =
            |e: http::Error| Failure::new(FailureReason::Protocol, format!("{url}: {e}"));
        let request = Request::builder(method.clone(), url);
        let (mut head, ()) = request.body(()).map_err(protocol)?.into_parts();
        head.headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        // In another encoding a part of the body would have other offsets (Fetch standard, section
        // 4.6).
        let encodings = if range.is_some() { "identity" } else { encoding::accepted(url) };
        head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encodings));
        if let Some((first, last)) = range {
            let text = last
                .map_or_else(|| format!("bytes={first}-"), |last| format!("bytes={first}-{last}"));
            head.headers.extend(HeaderValue::try_from(text).ok().map(|value| (RANGE, value)));
        }
        self.authorize(url, origins, &mut head.headers);
        let (fetch, headers) = (self.next_fetch(), unsafe_headers(&head.headers));
        // The cache is below the page, which needs no permission for them.
        head.headers.extend(conditions.iter().cloned());
        let needs_preflight = !headers.is_empty() && self.page.needs_permission(url, origins);
        if needs_preflight && !self.preflights.allow(now, url, origins, &headers) {
            self.ask(now, fetch, url, head, origins, headers);
        } else {
            self.page.describe(url, origins, &mut head.headers);
            self.dispatch(now, fetch, url, head, origins, self.head_timeout);
        }
        Ok(fetch)
    }

    /// Sends a request of the page for `url`, which was checked ([`Self::check`]), with what all
    /// requests have. `origins` are those of the redirects before it.
    pub(in crate::player) fn send(
        &mut self,
        now: Instant,
        url: &Url,
        mut head: http::request::Parts,
        origins: Origins,
    ) -> FetchId {
        self.authorize(url, origins, &mut head.headers);
        let fetch = self.next_fetch();
        self.dispatch(now, fetch, url, head, origins, self.head_timeout);
        fetch
    }

    fn next_fetch(&mut self) -> FetchId {
        let fetch = FetchId(self.next_fetch);
        self.next_fetch = self.next_fetch.wrapping_add(1);
        fetch
    }

    /// Sends a request with the cookies that it brings.
    fn dispatch(
        &mut self,
        now: Instant,
        fetch: FetchId,
        url: &Url,
        mut head: http::request::Parts,
        origins: Origins,
        timeout: Duration,
    ) {
        self.add_cookies(now, url, origins, &mut head.headers);
        self.download(now, fetch, url, head, timeout);
    }

    fn download(
        &mut self,
        now: Instant,
        fetch: FetchId,
        url: &Url,
        head: http::request::Parts,
        timeout: Duration,
    ) {
        self.counters.requests += 1;
        let request = Request { head, body: Vec::new(), timeout };
        let version = self.version(now, url);
        self.life.push(Output::Download(fetch, Box::new(request), version));
    }

    /// The origins of requests that end in one to `from`, which redirects to `to`.
    pub(in crate::player) fn redirected(&self, before: Origins, from: &Url, to: &Url) -> Origins {
        before.redirected(&self.page, from, to)
    }

    fn version(&self, now: Instant, url: &Url) -> HttpVersion {
        match self.version {
            HttpVersionPolicy::Negotiated => HttpVersion::Negotiated,
            HttpVersionPolicy::Http1 => HttpVersion::Http1,
            HttpVersionPolicy::Http2 => HttpVersion::Http2,
            HttpVersionPolicy::Http3 => HttpVersion::Http3,
            HttpVersionPolicy::Browser => self
                .alternatives
                .port(now, url)
                .map_or(HttpVersion::Negotiated, HttpVersion::Alternative),
        }
    }

    /// Whether `url` may be requested. Names are checked by the driver, by what they resolve to.
    pub(in crate::player) fn check(&mut self, url: &Url) -> Result<(), Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            let detail = format!("{url} is not an HTTP URL");
            return Err(Failure::new(FailureReason::Protocol, detail));
        }
        if self.page.is_mixed(url) {
            let why = "mixed content: what names it came by https, and it would not";
            return Err(Failure::new(FailureReason::MixedContent, format!("{url}: {why}")));
        }
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            _ => return Ok(()),
        };
        let place = SocketAddr::new(ip, url.port_or_known_default().unwrap_or(0));
        let protocol = match self.version {
            HttpVersionPolicy::Http3 => IpProtocol::Udp,
            HttpVersionPolicy::Negotiated
            | HttpVersionPolicy::Http1
            | HttpVersionPolicy::Http2
            | HttpVersionPolicy::Browser => IpProtocol::Tcp,
        };
        if (self.may_reach)(protocol, place) {
            return Ok(());
        }
        self.life.observe(Observation::Refused(RefusedDestination::Redirect, place));
        Err(Failure::new(FailureReason::NotAllowed, format!("{place} is not an allowed target")))
    }

    /// A request for `url` was answered over a connection that was opened like this.
    pub(in crate::player) fn answered(
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
            self.life.extend(opening.phases().map(Output::Observed));
        }
        let (path, responses) = match head.version {
            http::Version::HTTP_3 => (MediaPath::Http3, &mut self.counters.responses_http3),
            http::Version::HTTP_2 => (MediaPath::Http2, &mut self.counters.responses_http2),
            _ => (MediaPath::Http1, &mut self.counters.responses_http1),
        };
        *responses += 1;
        if self.path.is_none() {
            self.path = Some(path);
            self.life.observe(Observation::Path(path));
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
    pub(in crate::player) fn failed(&mut self) {
        self.counters.requests_failed += 1;
    }

    /// The state of a connection.
    pub(in crate::player) fn transport(&mut self, state: TransportState) {
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

    /// Takes what was counted of requests and connections since the last call; the other sums are
    /// 0.
    pub(in crate::player) fn take_counters(&mut self) -> PlaybackCounters {
        std::mem::take(&mut self.counters)
    }

    /// Something broke HTTP, or was odd, and could be lived with.
    pub(in crate::player) fn anomaly(&mut self, detail: impl Into<Detail>) {
        self.life.anomaly("http", detail);
    }
}
