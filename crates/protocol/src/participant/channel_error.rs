//! What ends a channel or a fetch, and as what failure of a session it counts.

use std::fmt;
use std::time::Duration;

use throng_observation::{Failure, FailureReason, units};

use crate::excerpt;

/// Why a channel could not be opened, or was closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The name did not resolve.
    #[error("cannot resolve {host}: {detail}")]
    Dns {
        /// The name.
        host: String,
        /// The resolver's message.
        detail: String,
    },
    /// The address is not an allowed target of this run.
    #[error("{0} is not an allowed target")]
    NotAllowed(String),
    /// The page that asks may not: a browser would not let it (CORS).
    #[error("CORS: {0}")]
    Cors(String),
    /// TCP could not be established, or broke.
    #[error("TCP: {0}")]
    Tcp(String),
    /// QUIC, the transport of HTTP/3, could not be established, or broke.
    #[error("QUIC: {0}")]
    Quic(String),
    /// TLS could not be established.
    #[error("TLS: {0}")]
    Tls(String),
    /// The WebSocket upgrade was answered with another status than 101, and possibly with an
    /// explanation.
    #[error("HTTP status {}{}", status(.0), excerpt::after_colon(.1))]
    Status(u16, String),
    /// The peer broke HTTP or the WebSocket protocol.
    #[error("protocol: {0}")]
    Protocol(String),
    /// No answer in time.
    #[error("no answer within {}", within(.0))]
    Timeout(Duration),
    /// The peer closed the connection regularly; a WebSocket may carry a reason.
    #[error("closed by the server{}", why(.0))]
    ClosedByPeer(Option<Close>),
    /// The peer accepted an HTTP request and closed the connection without a response.
    #[error("the server closed the connection without an answer")]
    Unanswered,
    /// A body ended early.
    #[error("the body ended after {received} of {expected} bytes")]
    Truncated {
        /// Bytes of the body that arrived.
        received: u64,
        /// Bytes that `Content-Length` announced.
        expected: u64,
    },
    /// A program could not be started, or ended by itself; with its last words.
    #[error("{0}")]
    Process(String),
    /// This host has no route to any of the addresses that the peer may have.
    #[error("no route to {0}")]
    NoRoute(String),
    /// This machine has no descriptor, port or memory left for the channel.
    #[error("generator: {0}")]
    Generator(String),
}

/// Why a peer closed a WebSocket, by its close frame (RFC 6455 section 5.5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// The status code.
    pub code: u16,
    /// The peer's reason; may be empty.
    pub reason: String,
}

impl From<u16> for Close {
    fn from(code: u16) -> Self {
        Self { code, reason: String::new() }
    }
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}", self.code)?;
        // RFC 6455 section 7.4.1 and the IANA registry.
        let name = match self.code {
            1000 => "normal",
            1001 => "going away",
            1002 => "protocol error",
            1003 => "unsupported data",
            1007 => "invalid payload data",
            1008 => "policy violation",
            1009 => "message too big",
            1011 => "internal error",
            1012 => "service restart",
            1013 => "try again later",
            1014 => "bad gateway",
            3000 => "unauthorized",
            3003 => "forbidden",
            _ => "",
        };
        if !name.is_empty() {
            write!(f, " ({name})")?;
        }
        f.write_str(&excerpt::after_colon(&self.reason))
    }
}

fn why(close: &Option<Close>) -> String {
    close.as_ref().map_or_else(String::new, |close| format!(", {close}"))
}

fn within(time: &Duration) -> String {
    units::duration(*time)
}

/// A status with its reason phrase.
fn status(status: &u16) -> String {
    let words =
        http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
    words.map_or_else(|| status.to_string(), |words| format!("{status} {words}"))
}

/// What is wrong where a server answers an upgrade as it answers a browser.
const NO_WEBSOCKET: &str = "an answer of HTTP to the upgrade: there is no WebSocket at this URL";

impl ChannelError {
    /// The error of an upgrade that was answered with another status than 101: with when to come
    /// again, and the words of the server.
    #[must_use]
    pub fn not_upgraded(status: u16, headers: &http::HeaderMap, words: &str) -> Self {
        // A page, or where it is: who refuses an upgrade says so by an error.
        if status < 400 {
            return Self::Status(status, NO_WEBSOCKET.to_owned());
        }
        let wait = excerpt::retry_after(headers);
        let said = format!("{}{}", wait.trim_start_matches(", "), excerpt::after_colon(words));
        Self::Status(status, said.trim_start_matches(": ").to_owned())
    }

    /// The failure of a session whose open channel was lost: however the connection broke, the
    /// reason is that signalling closed during the session. Protocol errors of the peer, and errors
    /// of the generator, keep their reasons.
    #[must_use]
    pub fn after_opening(self) -> Failure {
        match self {
            Self::Tcp(_)
            | Self::Quic(_)
            | Self::Tls(_)
            | Self::Timeout(_)
            | Self::ClosedByPeer(_)
            | Self::Unanswered
            | Self::Truncated { .. } => {
                Failure::new(FailureReason::SignallingClosed, self.to_string())
            }
            other => other.into(),
        }
    }
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        use FailureReason as Reason;
        let reason = match &error {
            ChannelError::Dns { .. } => Reason::Dns,
            ChannelError::NotAllowed(_) => Reason::NotAllowed,
            ChannelError::Cors(_) => Reason::Cors,
            ChannelError::Tcp(_) => Reason::Tcp,
            ChannelError::Quic(_) => Reason::Quic,
            ChannelError::Tls(_) => Reason::Tls,
            ChannelError::Status(status, _) => Reason::HttpStatus(*status),
            ChannelError::Protocol(_) => Reason::Protocol,
            ChannelError::Timeout(_) => Reason::SignallingTimeout,
            ChannelError::ClosedByPeer(_)
            | ChannelError::Unanswered
            | ChannelError::Truncated { .. } => Reason::SignallingClosed,
            ChannelError::NoRoute(_) => Reason::Ice,
            ChannelError::Process(_) => Reason::SignallingClosed,
            ChannelError::Generator(_) => Reason::Generator,
        };
        Self::new(reason, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_the_server_said_and_nothing_of_how_we_hold_it() {
        let close = |code, reason: &str| {
            ChannelError::ClosedByPeer(Some(Close { code, reason: reason.into() }))
        };
        for (error, expect) in [
            (ChannelError::ClosedByPeer(None), "closed by the server"),
            (close(1000, ""), "closed by the server, code 1000 (normal)"),
            (
                close(1008, "wrong\u{1b}[m PIN"),
                "closed by the server, code 1008 (policy violation): wrong [m PIN",
            ),
            (close(4321, "bye"), "closed by the server, code 4321: bye"),
            (ChannelError::Unanswered, "the server closed the connection without an answer"),
            (ChannelError::Timeout(Duration::from_millis(10_000)), "no answer within 10.00 s"),
            (ChannelError::Status(401, String::new()), "HTTP status 401 Unauthorized"),
            (ChannelError::Status(799, "no\nroom".into()), "HTTP status 799: no room"),
        ] {
            assert_eq!(error.to_string(), expect);
        }
    }

    #[test]
    fn an_upgrade_that_was_refused_says_when_to_come_again() {
        let mut headers = http::HeaderMap::new();
        let words = |headers: &http::HeaderMap, said| {
            ChannelError::not_upgraded(429, headers, said).to_string()
        };
        assert_eq!(words(&headers, "slowly"), "HTTP status 429 Too Many Requests: slowly");
        headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("7"));
        assert_eq!(words(&headers, ""), "HTTP status 429 Too Many Requests: Retry-After: 7");
        assert_eq!(
            words(&headers, "slowly"),
            "HTTP status 429 Too Many Requests: Retry-After: 7: slowly"
        );
    }

    #[test]
    fn a_web_page_in_place_of_a_websocket_is_told_as_that() {
        for (status, expect) in [(200, "200 OK"), (302, "302 Found")] {
            let error =
                ChannelError::not_upgraded(status, &http::HeaderMap::new(), "<html>hello</html>");
            assert_eq!(error.to_string(), format!("HTTP status {expect}: {NO_WEBSOCKET}"));
        }
    }
}
