//! The contract between a participant and whatever drives it.
//!
//! A participant is told the time and handed what arrived ([`Participant::handle`]); it answers with [`Output`]s,
//! drained until the answer is [`Output::Timeout`], which says until when nothing else is to be done, and why.
//! It knows no sockets, clocks or runtimes. Everything it sends goes over a [`Channel`] that it asked the driver to
//! open, so that WebRTC (one datagram channel and one WebSocket), RTSP (a stream, or a stream and pairs of datagram
//! channels), HLS (only fetches), XMPP chat (a WebSocket) and a conference of a hundred media streams on one WebSocket
//! all fit the same loop.
//!
//! ```text
//! driver:  handle(now, Start) → poll_output … → handle(now, Opened…) → poll_output … → handle(now, Datagram…)
//! ```
//! Several inputs may be handled before the outputs are drained: the driver hands over a whole batch of datagrams
//! and drains once.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use throng_observation::{Observation, Outcome, Phase, units};
use url::Url;

use crate::excerpt;

/// One member of the crowd.
pub trait Participant: Send {
    /// Takes in what happened. `now` never goes back.
    fn handle(&mut self, now: Instant, input: Input<'_>);

    /// The next thing to do, or [`Output::Timeout`] when there is nothing until then.
    ///
    /// After [`Output::Ended`] the driver drops the participant and closes its channels.
    fn poll_output(&mut self, now: Instant) -> Output;

    /// Reads here and there what the next datagram will need, so that its memory is on its way. The driver does this for
    /// several participants, whose memory then comes at the same time, before the first of them gets its datagrams. What
    /// is returned means nothing; it keeps the reads from being left out.
    fn prefetch(&self) -> u64 {
        0
    }
}

/// A channel within its participant; the participant picks the number when it asks for the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u16);

/// A fetch within its participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u32);

/// What a participant is told.
#[derive(Debug)]
pub enum Input<'a> {
    /// Join now. `intended_at` may lie before `now` when the generator was late; latencies count from it.
    Start {
        /// When the plan wanted this join.
        intended_at: Instant,
    },
    /// A channel is open.
    Opened {
        /// Which one.
        channel: Channel,
        /// How it came to be, with the local and remote addresses.
        opening: Opening,
    },
    /// A datagram arrived. It may be changed in place (decrypted), the driver does not look at it again.
    Datagram {
        /// On which channel.
        channel: Channel,
        /// From where.
        source: SocketAddr,
        /// To which address of ours, where the channel has several.
        local: Option<IpAddr>,
        /// When the kernel received it, on the clock of `now` (never later than it).
        arrived_at: Instant,
        /// The datagram's payload.
        bytes: &'a mut [u8],
    },
    /// Bytes of a stream channel arrived.
    Bytes {
        /// On which channel.
        channel: Channel,
        /// The next bytes in order.
        bytes: &'a [u8],
    },
    /// A whole message of a WebSocket arrived.
    Message {
        /// On which channel.
        channel: Channel,
        /// The message.
        message: Message,
    },
    /// A channel could not be opened, or closed; nothing more comes from it.
    Closed {
        /// Which one.
        channel: Channel,
        /// Why.
        why: ChannelError,
    },
    /// A fetch ended.
    Fetched {
        /// Which one.
        fetch: FetchId,
        /// What came back.
        result: Result<Response, ChannelError>,
    },
    /// The deadline of the last [`Output::Timeout`] has come.
    Timeout,
    /// Leave in an orderly way, as a person who closes the tab: say goodbye, then [`Output::Ended`].
    Leave {
        /// Whether others of the crowd are on their way to the same room, so that it must not end.
        others_follow: bool,
    },
}

impl Input<'_> {
    /// The channel that it concerns.
    #[must_use]
    pub fn channel(&self) -> Option<Channel> {
        match self {
            Self::Opened { channel, .. }
            | Self::Datagram { channel, .. }
            | Self::Bytes { channel, .. }
            | Self::Message { channel, .. }
            | Self::Closed { channel, .. } => Some(*channel),
            Self::Start { .. } | Self::Fetched { .. } | Self::Timeout | Self::Leave { .. } => None,
        }
    }
}

/// What a participant wants.
#[derive(Debug)]
pub enum Output {
    /// Open a channel; answered by [`Input::Opened`] or [`Input::Closed`].
    Open(Channel, Open),
    /// Send a datagram, or bytes on a stream.
    Send(Channel, Transmit),
    /// Send a message on a WebSocket.
    Signal(Channel, Message),
    /// Close a channel after what was sent on it is gone.
    Close(Channel),
    /// Fetch over HTTP; answered by [`Input::Fetched`].
    Fetch(FetchId, Box<Request>),
    /// Something was seen.
    Observed(Observation),
    /// The session is over.
    Ended(Outcome),
    /// Nothing to do before this moment, except when an input comes.
    Timeout(Instant, Why),
}

/// The reason of a deadline, so that a stuck participant explains itself.
pub type Why = &'static str;

/// What kind of channel to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// A UDP socket of its own, on the local addresses from which the peer may be reached. They choose interfaces, not the
    /// peer.
    Datagrams {
        /// Addresses that the peer may have, the likeliest first.
        toward: Vec<SocketAddr>,
        /// Where to look when there is a way to none of them.
        otherwise: Option<SocketAddr>,
        /// The peer may be elsewhere: the socket is on every address of this host that can be of use, as a browser gathers
        /// host candidates (RFC 8445 section 5.1.1.1). Loopback is one when the peer may be there.
        gathers: bool,
    },
    /// A TCP connection.
    Stream {
        /// The peer.
        to: SocketAddr,
        /// Speak TLS with this server name, or plain TCP.
        tls: Option<String>,
    },
    /// A WebSocket (RFC 6455).
    WebSocket {
        /// `ws:` or `wss:`.
        url: Url,
        /// `Sec-WebSocket-Protocol`, in order of preference.
        protocols: Vec<String>,
        /// Further request headers.
        headers: Vec<(String, String)>,
    },
}

/// How a channel, or the connection under a fetch, came to be. Moments are absent for steps not taken: a connection
/// that was reused has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Our address.
    pub local: Option<SocketAddr>,
    /// All addresses of a datagram channel that has several, [`Self::local`] among them as the first.
    pub locals: Vec<SocketAddr>,
    /// The peer's address, as pinned for this run.
    pub remote: Option<SocketAddr>,
    /// The name was resolved.
    pub resolved_at: Option<Instant>,
    /// TCP was established.
    pub connected_at: Option<Instant>,
    /// TLS was established.
    pub secured_at: Option<Instant>,
    /// The subprotocol that the WebSocket server chose.
    pub subprotocol: Option<String>,
}

impl Opening {
    /// Every address of ours; none when the driver named none.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        if self.locals.is_empty() { self.local.into_iter().collect() } else { self.locals.clone() }
    }

    /// The phases of joining that it took.
    pub(crate) fn phases(&self) -> impl Iterator<Item = Observation> + use<> {
        let moments = [
            (Phase::Resolved, self.resolved_at),
            (Phase::Connected, self.connected_at),
            (Phase::Secured, self.secured_at),
        ];
        moments.into_iter().filter_map(|(phase, at)| Some(Observation::Reached(phase, at?)))
    }
}

/// Bytes to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The peer; on a stream channel it is ignored.
    pub to: SocketAddr,
    /// From which address of ours, where the channel has several; `None` leaves it to the route.
    pub from: Option<IpAddr>,
    /// One datagram, or the next bytes of the stream.
    pub bytes: Vec<u8>,
}

/// A WebSocket message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Text.
    Text(String),
    /// Binary.
    Binary(Vec<u8>),
}

/// An HTTP request. Redirects are not followed by the driver: the participant judges them.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, absolute URI and headers.
    pub head: http::request::Parts,
    /// The body; may be empty.
    pub body: Vec<u8>,
    /// Give up after this long.
    pub timeout: Duration,
}

/// An HTTP response, body and all.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status, version and headers.
    pub head: http::response::Parts,
    /// The body.
    pub body: Vec<u8>,
    /// How its connection came to be.
    pub opening: Opening,
}

/// Why a channel is not, or no longer, there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The name did not resolve.
    #[error("cannot resolve {host}: {detail}")]
    Dns {
        /// The name.
        host: String,
        /// The resolver's words.
        detail: String,
    },
    /// The address is outside what this run may reach.
    #[error("{0} is not an allowed target")]
    NotAllowed(String),
    /// TCP did not come up, or broke.
    #[error("TCP: {0}")]
    Tcp(String),
    /// TLS did not come up.
    #[error("TLS: {0}")]
    Tls(String),
    /// The WebSocket upgrade was answered with another status than 101, and perhaps with words.
    #[error("HTTP status {}{}", status(.0), excerpt::after_colon(.1))]
    Status(u16, String),
    /// The peer broke HTTP or the WebSocket protocol.
    #[error("protocol: {0}")]
    Protocol(String),
    /// No answer in time.
    #[error("no answer within {}", within(.0))]
    Timeout(Duration),
    /// The peer closed in order, a WebSocket perhaps with a reason.
    #[error("closed by the server{}", why(.0))]
    ClosedByPeer(Option<Close>),
    /// The peer took an HTTP request and closed the connection without a word.
    #[error("the server closed the connection without an answer")]
    Unanswered,
    /// This host has no way to any of the addresses that the peer may have.
    #[error("no way to {0}")]
    NoRoute(String),
    /// This machine has no descriptor, port or memory left for it.
    #[error("generator: {0}")]
    Generator(String),
}

/// Why a peer closed a WebSocket, by its close frame (RFC 6455 section 5.5.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// The status code.
    pub code: u16,
    /// The peer's own words; may be empty.
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
        // RFC 6455 section 7.4.1, and what IANA registered since.
        let name = match self.code {
            1000 => "normal",
            1001 => "going away",
            1002 => "protocol error",
            1003 => "unsupported data",
            1007 => "data of another kind than announced",
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

/// A status with its usual words.
fn status(status: &u16) -> String {
    let words = http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
    words.map_or_else(|| status.to_string(), |words| format!("{status} {words}"))
}

impl ChannelError {
    /// What this means for a session whose channel had been open: however the connection broke, it is the signalling
    /// that closed in the middle of a session. A peer that breaks the protocol, and what is our own doing, keep their
    /// names.
    #[must_use]
    pub fn after_opening(self) -> throng_observation::Failure {
        use throng_observation::{Failure, FailureReason};
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Timeout(_) | Self::ClosedByPeer(_) | Self::Unanswered => {
                Failure::new(FailureReason::SignallingClosed, self.to_string())
            }
            other => other.into(),
        }
    }
}

impl From<ChannelError> for throng_observation::Failure {
    fn from(error: ChannelError) -> Self {
        use throng_observation::FailureReason as Reason;
        let reason = match &error {
            ChannelError::Dns { .. } => Reason::Dns,
            ChannelError::NotAllowed(_) => Reason::NotAllowed,
            ChannelError::Tcp(_) => Reason::Tcp,
            ChannelError::Tls(_) => Reason::Tls,
            ChannelError::Status(status, _) => Reason::HttpStatus(*status),
            ChannelError::Protocol(_) => Reason::Protocol,
            ChannelError::Timeout(_) => Reason::SignallingTimeout,
            ChannelError::ClosedByPeer(_) | ChannelError::Unanswered => Reason::SignallingClosed,
            ChannelError::NoRoute(_) => Reason::Ice,
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
        let close =
            |code, reason: &str| ChannelError::ClosedByPeer(Some(Close { code, reason: reason.into() }));
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
}
