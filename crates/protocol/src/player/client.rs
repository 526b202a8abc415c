//! The HTTP client of a player: requests and their counts, redirects that are allowed, the state of its connections.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderValue, RANGE};
use throng_observation::{Failure, FailureReason, MediaPath, Observation, RefusedDestination};
use throng_scenario::Secret;
use url::{Host, Url};

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

/// The client of one player.
pub(super) struct HttpClient {
    version: HttpVersion,
    token: Option<Secret>,
    /// The host that the token is for: it is sent to no other.
    host: Option<String>,
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
        version: HttpVersion,
        (token, url): (Option<Secret>, &Url),
        may_reach: MayReach,
        head_timeout: Duration,
    ) -> Self {
        Self {
            version,
            token,
            host: url.host_str().map(str::to_owned),
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

    /// Requests `url`, or the bytes from `range.0` to `range.1`, inclusive.
    pub(super) fn get(&mut self, url: &Url, range: Option<(u64, Option<u64>)>) -> Result<FetchId, Failure> {
        self.check(url)?;
        let protocol = |e: http::Error| Failure::new(FailureReason::Protocol, format!("{url}: {e}"));
        let (mut head, ()) = http::Request::get(url.as_str()).body(()).map_err(protocol)?.into_parts();
        // As a media element sends them; a body in another encoding would have other offsets.
        head.headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some((first, last)) = range {
            let text = last.map_or_else(|| format!("bytes={first}-"), |last| format!("bytes={first}-{last}"));
            head.headers.extend(HeaderValue::try_from(text).ok().map(|value| (RANGE, value)));
        }
        if let Some(token) = self.token.as_ref().filter(|_| url.host_str() == self.host.as_deref()) {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            head.headers.extend(value.ok().map(|value| (AUTHORIZATION, value)));
        }
        let fetch = FetchId(self.next_fetch);
        self.next_fetch = self.next_fetch.wrapping_add(1);
        self.counters.requests += 1;
        let request = Request { head, body: Vec::new(), timeout: self.head_timeout };
        self.outputs.push_back(Output::Download(fetch, Box::new(request), self.version));
        Ok(fetch)
    }

    /// Whether `url` may be requested. Names are checked by the driver, by what they resolve to.
    fn check(&mut self, url: &Url) -> Result<(), Failure> {
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

    /// A request was answered over a connection that was opened like this.
    pub(super) fn answered(&mut self, version: http::Version, opening: &Opening) {
        if opening.connected_at.is_some() {
            self.counters.connections += 1;
        }
        if !std::mem::replace(&mut self.has_reported_phases, true) {
            self.outputs.extend(opening.phases().map(Output::Observed));
        }
        let (path, at) = match version {
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
