//! Counts the requests of players by URI and status. Each thread counts its own in a table that it
//! hands to the collector each second, so that a request costs a look-up and no message; a known
//! URI costs no allocation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use http::header::CONTENT_LENGTH;
use http::uri::Authority;
use http::{Method, Uri, Version, response};
use throng_observation::masked::masked_request_path;
use throng_observation::{
    HttpRequestCounters, HttpRequestKey, HttpRequestRow, NoResponse, RequestOutcome,
};
use throng_protocol::participant::{ChannelError, KeptPath};

use crate::clock::RunClock;

/// Most distinct keys; requests of further ones are counted together, by method, outcome and
/// version.
const KEYS_MAX: usize = 100_000;

/// Most bytes of paths: servers choose them.
const PATH_BYTES_MAX: usize = 32 << 20;

/// A request in progress.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    method: Method,
    uri: Uri,
    /// In place of its path, which has a secret in it.
    kept: Option<KeptPath>,
    sent_at: Instant,
    /// Status and version of its response, once that has begun.
    response: Option<(u16, u8)>,
    /// Length of the body, where it is known.
    expected: Option<u64>,
    body_bytes: u64,
}

/// How a request ended.
#[derive(Debug)]
pub(crate) enum RequestEnd<'a> {
    /// As its server wanted, or with an error.
    Finished(&'a Result<(), ChannelError>),
    /// Its player has no use for the rest.
    Cancelled,
}

impl OpenRequest {
    /// A request that is sent now.
    pub(crate) fn new(head: &http::request::Parts, sent_at: Instant) -> Self {
        let (method, uri) = (head.method.clone(), head.uri.clone());
        let kept = head.extensions.get().cloned();
        Self { method, uri, kept, sent_at, response: None, expected: None, body_bytes: 0 }
    }

    /// Its response begins.
    pub(crate) fn answered(&mut self, head: &response::Parts) {
        let version = match head.version {
            Version::HTTP_3 => 3,
            Version::HTTP_2 => 2,
            _ => 1,
        };
        self.response = Some((head.status.as_u16(), version));
        // Responses without a body (RFC 9110 section 6.4.1).
        let has_none = matches!(head.status.as_u16(), 204 | 304) || self.method == Method::HEAD;
        let length = head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok());
        self.expected = if has_none { Some(0) } else { length };
    }

    /// Bytes of its body came.
    pub(crate) fn received(&mut self, bytes: u64) {
        self.body_bytes = self.body_bytes.saturating_add(bytes);
    }

    /// Counts it.
    pub(crate) fn end(self, now: Instant, end: RequestEnd<'_>, table: &mut RequestTable) {
        let is_whole = self.response.is_some()
            && self.expected.is_some_and(|length| self.body_bytes >= length);
        let is_cut_off = matches!(end, RequestEnd::Cancelled) && !is_whole;
        let is_broken = self.response.is_some() && matches!(end, RequestEnd::Finished(Err(_)));
        let (outcome, version) = match (self.response, end) {
            (Some((status, version)), _) => (RequestOutcome::Status(status), version),
            (None, RequestEnd::Finished(Err(error))) => {
                (RequestOutcome::NoResponse(no_response(error)), 0)
            }
            // Without a head there is no end either; a defect would show as this.
            (None, RequestEnd::Finished(Ok(()))) => {
                (RequestOutcome::NoResponse(NoResponse::Protocol), 0)
            }
            (None, RequestEnd::Cancelled) => (RequestOutcome::NoResponse(NoResponse::Cancelled), 0),
        };
        let counters = HttpRequestCounters {
            requests: 1,
            body_bytes: self.body_bytes,
            cut_off: u64::from(is_cut_off),
            broken_off: u64::from(is_broken),
        };
        // A password in the URL is nobody's business.
        let host = self.uri.authority().map(Authority::as_str).unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let kept = self.kept.as_ref().map(|KeptPath(path)| path.as_str());
        // A playlist may have signed it.
        let path = masked_request_path(kept.unwrap_or_else(|| self.uri.path()));
        let kind = RequestKind { method: &self.method, outcome, version };
        table.add((host, &path), kind, (counters, self.sent_at, now));
    }
}

pub(crate) fn no_response(error: &ChannelError) -> NoResponse {
    match error {
        ChannelError::Dns { .. } => NoResponse::Dns,
        ChannelError::NotAllowed(_) => NoResponse::NotAllowed,
        ChannelError::NoRoute(_) => NoResponse::NoRoute,
        ChannelError::Tcp(_) => NoResponse::Tcp,
        ChannelError::Tls(_) => NoResponse::Tls,
        ChannelError::Quic(_) => NoResponse::Quic,
        ChannelError::Timeout(_) => NoResponse::Timeout,
        ChannelError::Generator(_) => NoResponse::Generator,
        ChannelError::ClosedByPeer(_)
        | ChannelError::Unanswered
        | ChannelError::Truncated { .. } => NoResponse::Closed,
        ChannelError::Status(..)
        | ChannelError::Protocol(_)
        | ChannelError::Process(_)
        | ChannelError::Cors(_) => NoResponse::Protocol,
    }
}

/// What a key has besides its URI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestKind<'a> {
    pub(crate) method: &'a Method,
    pub(crate) outcome: RequestOutcome,
    pub(crate) version: u8,
}

/// Requests by URI, method, outcome and version.
#[derive(Debug)]
pub(crate) struct RequestTable {
    by_path: HashMap<Arc<str>, Vec<Counted>>,
    keys: usize,
    path_bytes: usize,
    keys_max: usize,
    is_changed: bool,
}

/// The requests of one key.
#[derive(Debug)]
struct Counted {
    host: Arc<str>,
    method: Method,
    outcome: RequestOutcome,
    version: u8,
    counters: HttpRequestCounters,
    first_at: Instant,
    last_at: Instant,
    /// Since its row was taken.
    is_changed: bool,
}

impl Default for RequestTable {
    fn default() -> Self {
        Self {
            by_path: HashMap::new(),
            keys: 0,
            path_bytes: 0,
            keys_max: KEYS_MAX,
            is_changed: false,
        }
    }
}

impl RequestTable {
    /// Whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Adds what another table counted.
    pub(crate) fn merge(&mut self, other: Self) {
        for (path, all) in other.by_path {
            self.merge_path(&path, all);
        }
    }

    /// The same, with paths as they are `shown`. Those that are shown alike count together: of two
    /// rows with one key the later one would replace the other.
    pub(crate) fn merge_shown(&mut self, other: Self, shown: impl Fn(&str) -> String) {
        for (path, all) in other.by_path {
            self.merge_path(&shown(&path), all);
        }
    }

    fn merge_path(&mut self, path: &str, all: Vec<Counted>) {
        for counted in all {
            let Counted { host, method, outcome, version, counters, first_at, last_at, .. } =
                counted;
            let kind = RequestKind { method: &method, outcome, version };
            self.add((&host, path), kind, (counters, first_at, last_at));
        }
    }

    /// Adds requests of one key, or bytes to them.
    pub(crate) fn add(
        &mut self,
        (host, path): (&str, &str),
        kind: RequestKind<'_>,
        (counters, first_at, last_at): (HttpRequestCounters, Instant, Instant),
    ) {
        self.is_changed = true;
        let known = self
            .by_path
            .get_mut(path)
            .and_then(|all| all.iter_mut().find(|one| one.is(host, kind)));
        if let Some(known) = known {
            known.counters += counters;
            known.first_at = known.first_at.min(first_at);
            known.last_at = known.last_at.max(last_at);
            known.is_changed = true;
            return;
        }
        // Few: what servers can choose of their keys is the status.
        let is_others = host.is_empty() && path == HttpRequestKey::OTHERS;
        let has_room = self.keys < self.keys_max && self.path_bytes + path.len() <= PATH_BYTES_MAX;
        if !has_room && !is_others {
            return self.add(("", HttpRequestKey::OTHERS), kind, (counters, first_at, last_at));
        }
        if !is_others {
            self.keys += 1;
            self.path_bytes += path.len();
        }
        let RequestKind { method, outcome, version } = kind;
        let (host, method) = (Arc::from(host), method.clone());
        let counted = Counted {
            host,
            method,
            outcome,
            version,
            counters,
            first_at,
            last_at,
            is_changed: true,
        };
        match self.by_path.get_mut(path) {
            Some(all) => all.push(counted),
            None => drop(self.by_path.insert(Arc::from(path), vec![counted])),
        }
    }

    /// The rows that have changed since they were last taken.
    pub(crate) fn take_changed(&mut self, clock: RunClock) -> Vec<HttpRequestRow> {
        if !std::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for (path, all) in &mut self.by_path {
            for one in all {
                if std::mem::take(&mut one.is_changed) {
                    rows.push(one.row(path, clock));
                }
            }
        }
        rows
    }
}

impl Counted {
    fn is(&self, host: &str, kind: RequestKind<'_>) -> bool {
        let same = (self.outcome, self.version) == (kind.outcome, kind.version);
        same && &*self.host == host && self.method == *kind.method
    }

    fn row(&self, path: &str, clock: RunClock) -> HttpRequestRow {
        HttpRequestRow {
            key: HttpRequestKey {
                host: self.host.to_string(),
                path: path.to_owned(),
                method: self.method.to_string(),
                outcome: self.outcome,
                version: self.version,
            },
            counters: self.counters,
            first_at: clock.run_time(self.first_at),
            last_at: clock.run_time(self.last_at),
        }
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
