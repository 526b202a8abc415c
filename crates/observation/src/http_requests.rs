//! The HTTP requests of players by URI and status, so that they can be laid beside a server's
//! access log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;
use crate::{HttpRequestCounters, RunTime};

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RequestOutcome {
    /// With this status code (RFC 9110 section 15).
    Status(u16),
    /// Not at all.
    NoResponse(NoResponse),
}

keyed! {
    /// Why a request had no response.
    NoResponse {
        /// The name did not resolve.
        Dns = "dns",
        /// The consent guard does not allow the address; nothing was sent.
        NotAllowed = "not_allowed",
        /// There is no route to the server.
        NoRoute = "no_route",
        /// TCP could not be established, or broke.
        Tcp = "tcp",
        /// TLS could not be established.
        Tls = "tls",
        /// QUIC could not be established, or broke.
        Quic = "quic",
        /// The server closed the connection without a response.
        Closed = "closed",
        /// No response in time.
        Timeout = "timeout",
        /// What came was not HTTP, or broke its rules.
        Protocol = "protocol",
        /// This machine had no descriptor, port or memory left.
        Generator = "generator",
        /// The player gave the request up before its response began, most often because it left.
        Cancelled = "cancelled",
    }
}

impl NoResponse {
    /// Whether the server may have seen the request all the same, and have it in its log.
    #[must_use]
    pub fn may_have_arrived(self) -> bool {
        match self {
            Self::Dns | Self::NotAllowed | Self::NoRoute | Self::Tls | Self::Generator => false,
            Self::Tcp
            | Self::Quic
            | Self::Closed
            | Self::Timeout
            | Self::Protocol
            | Self::Cancelled => true,
        }
    }
}

impl RequestOutcome {
    /// Its stable key: the digits of the status, or the key of [`NoResponse`].
    #[must_use]
    pub fn key(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::NoResponse(why) => why.key().to_owned(),
        }
    }

    /// The inverse of [`Self::key`].
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        let status = key.parse().ok().map(Self::Status);
        status.or_else(|| NoResponse::from_key(key).map(Self::NoResponse))
    }
}

/// Requests that count together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HttpRequestKey {
    /// Host, and port where the URL names one: `live.example:8443`.
    pub host: String,
    /// Path as it was sent, without the query: queries have tokens, and differ with each request of
    /// low-latency HLS.
    pub path: String,
    /// Method.
    pub method: String,
    /// How they were answered.
    pub outcome: RequestOutcome,
    /// HTTP 1 (1.0 or 1.1), 2 or 3; 0 without a response.
    pub version: u8,
}

impl HttpRequestKey {
    /// The path of requests beyond the limit of distinct keys; their host is empty.
    pub const OTHERS: &'static str = "(others)";

    /// Whether it stands for requests beyond the limit of distinct keys.
    #[must_use]
    pub fn is_others(&self) -> bool {
        self.host.is_empty() && self.path == Self::OTHERS
    }
}

/// The requests of one key over the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequestRow {
    /// What they have in common.
    pub key: HttpRequestKey,
    /// Their sums.
    pub counters: HttpRequestCounters,
    /// When the first one was sent.
    pub first_at: RunTime,
    /// When the last one ended.
    pub last_at: RunTime,
}

/// All requests of a run by how they were answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequestTotals {
    /// Requests by outcome.
    pub by_outcome: BTreeMap<RequestOutcome, u64>,
    /// The sums of all.
    pub counters: HttpRequestCounters,
}

impl HttpRequestTotals {
    /// Adds the requests of a key.
    pub fn add(&mut self, row: &HttpRequestRow) {
        let of_outcome = self.by_outcome.entry(row.key.outcome).or_default();
        *of_outcome = of_outcome.saturating_add(row.counters.requests);
        self.counters += row.counters;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_key_of_its_own() {
        let all = NoResponse::ALL.map(RequestOutcome::NoResponse);
        for outcome in all.into_iter().chain([200, 404, 0, 999].map(RequestOutcome::Status)) {
            assert_eq!(RequestOutcome::from_key(&outcome.key()), Some(outcome));
        }
        for odd in ["", "-1", "70000", "tcp ", "none"] {
            assert_eq!(RequestOutcome::from_key(odd), None, "{odd}");
        }
    }
}
