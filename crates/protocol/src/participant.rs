//! The interface between a participant and its driver.
//!
//! The driver passes the time and the events of a participant to [`Participant::handle`], then
//! drains its [`Output`]s until it returns [`Output::Timeout`], which names the next deadline and
//! the reason for it. A participant has no access to sockets, clocks or runtimes. Everything it
//! sends goes over a [`Channel`] that it asked the driver to open, so that WebRTC (one datagram
//! channel and one WebSocket), RTSP (a stream, or a stream and pairs of datagram channels), HTTP
//! video (only downloads), a chat (a WebSocket) and a conference of a hundred media streams on one
//! WebSocket all fit the same loop.
//!
//! ```text
//! driver:  handle(now, Start) → poll_output … → handle(now, Opened…) → poll_output …
//!          → handle(now, Datagram…)
//! ```
//! Several inputs may be handled before the outputs are drained: the driver passes a whole batch of
//! datagrams and drains once.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

pub use throng_media::prefetch::{LEVELS as PREFETCH_LEVELS, Prefetcher};
use throng_observation::{Observation, Outcome, Phase, units};
use throng_scenario::Secret;
use url::Url;

use crate::excerpt;

/// One member of the crowd.
pub trait Participant: Send {
    /// Handles an event. `now` never decreases.
    fn handle(&mut self, now: Instant, input: Input<'_>);

    /// The next output, or [`Output::Timeout`] when there is none until a deadline.
    ///
    /// After [`Output::Ended`] the driver drops the participant and closes its channels.
    fn poll_output(&mut self, now: Instant) -> Output;

    /// From now on datagrams may be passed so long after they arrived, without any order among
    /// participants: what arrived in the last `lag` before the `now` of a call may be still to
    /// come. 0 until the driver calls this. Whoever judges that a packet is missing judges as of
    /// then.
    fn receive_lag(&mut self, lag: Duration) {
        let _ = lag;
    }

    /// Names the memory that the next datagram will need beside this value itself: see
    /// [`throng_media::prefetch`]. Levels count from 0; this is called with one after the other,
    /// below [`PREFETCH_LEVELS`].
    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        let _ = (level, prefetcher);
    }
}

/// A channel, numbered within its participant; the participant chooses the number when it opens the
/// channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u16);

/// An HTTP fetch, numbered within its participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u32);

/// An event for a participant.
#[derive(Debug)]
pub enum Input<'a> {
    /// Join now. `intended_at` is before `now` when the generator was late; latencies count from
    /// it.
    Start {
        /// The intended time of this join.
        intended_at: Instant,
    },
    /// A channel is open.
    Opened {
        /// Its number.
        channel: Channel,
        /// How it was opened, with the local and remote addresses.
        opening: Opening,
    },
    /// A datagram arrived. The participant may change it in place (decrypt it); the driver does not
    /// read it again.
    Datagram {
        /// The channel.
        channel: Channel,
        /// The sender's address.
        source: SocketAddr,
        /// The local address that received it, where the channel has several.
        local: Option<IpAddr>,
        /// When the kernel received it, on the clock of `now`; never later than `now`.
        arrived_at: Instant,
        /// The datagram's payload.
        bytes: &'a mut [u8],
    },
    /// Bytes of a stream channel arrived.
    Bytes {
        /// The channel.
        channel: Channel,
        /// The next bytes, in order.
        bytes: &'a [u8],
    },
    /// A write on a stream channel has waited because the peer did not read, or the line was too
    /// slow.
    Blocked {
        /// The channel.
        channel: Channel,
        /// How long.
        duration: Duration,
    },
    /// A complete WebSocket message arrived.
    Message {
        /// The channel.
        channel: Channel,
        /// The message.
        message: Message,
    },
    /// A channel could not be opened, or was closed; it reports nothing further.
    Closed {
        /// Its number.
        channel: Channel,
        /// The reason.
        why: ChannelError,
    },
    /// A fetch ended.
    Fetched {
        /// Its number.
        fetch: FetchId,
        /// The response, or why there is none.
        result: Result<Response, ChannelError>,
    },
    /// Something of a download arrived.
    Download {
        /// The download.
        fetch: FetchId,
        /// What.
        event: DownloadEvent<'a>,
    },
    /// The deadline of the last [`Output::Timeout`] has passed.
    Timeout,
    /// Leave in an orderly way, like a closed browser tab: sign off, then output [`Output::Ended`].
    Leave {
        /// Whether other participants will join the same room, so that it must not be destroyed.
        others_follow: bool,
    },
}

impl Input<'_> {
    /// The channel of the event.
    #[must_use]
    pub fn channel(&self) -> Option<Channel> {
        match self {
            Self::Opened { channel, .. }
            | Self::Datagram { channel, .. }
            | Self::Bytes { channel, .. }
            | Self::Blocked { channel, .. }
            | Self::Message { channel, .. }
            | Self::Closed { channel, .. } => Some(*channel),
            Self::Start { .. }
            | Self::Fetched { .. }
            | Self::Download { .. }
            | Self::Timeout
            | Self::Leave { .. } => None,
        }
    }
}

/// A request or report of a participant to its driver.
#[derive(Debug)]
pub enum Output {
    /// Open a channel; answered by [`Input::Opened`] or [`Input::Closed`].
    Open(Channel, Open),
    /// Send a datagram, or bytes on a stream.
    Send(Channel, Transmit),
    /// Send a message on a WebSocket.
    Signal(Channel, Message),
    /// Close a channel after everything queued on it is sent.
    Close(Channel),
    /// Fetch over HTTP; answered by [`Input::Fetched`].
    Fetch(FetchId, Box<Request>),
    /// Request over HTTP and read the body bit by bit: answered by [`Input::Download`], with the
    /// head, then with as much of the body as [`Output::Demand`] asks for, then with its end.
    /// Without demand nothing is read, so that flow control (the TCP window, or that of HTTP/2 or
    /// QUIC) holds the server back, as a player does whose buffer is full. The request's timeout is
    /// that of the head, and includes the wait for a connection where all six HTTP/1.1 connections
    /// to the origin are in use; the participant has its own deadlines for the body, and cancels.
    Download(FetchId, Box<Request>, HttpVersion),
    /// Read this much more of a download's body, after what was demanded before. May precede the
    /// head. The end of a body is reported without further demand where `Content-Length` tells that
    /// no byte is left; without it (chunked), the end is found by reading, so that a participant
    /// that wants all of it demands more than there is.
    Demand(FetchId, Demand),
    /// Give up a download: its connection is closed (HTTP/1.1), or the stream is reset (HTTP/2,
    /// HTTP/3). No further input of it follows.
    Cancel(FetchId),
    /// An observation for the collector.
    Observed(Observation),
    /// The session is over.
    Ended(Outcome),
    /// Nothing to do before this moment unless an input arrives.
    Timeout(Instant, Why),
}

impl Output {
    /// Nothing to do before a deadline. One that has passed without any work would make the driver
    /// spin.
    #[inline]
    pub(crate) fn wait(now: Instant, (at, why): (Instant, Why)) -> Self {
        Self::Timeout(at.max(now + Duration::from_millis(1)), why)
    }
}

/// Longer than any run: a participant that waits for nothing but an input waits so long.
pub(crate) const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The reason of a deadline, shown in traces of a participant that is stuck.
pub type Why = &'static str;

/// In the arguments of [`Open::Process`]: the path of the file that only the program reads.
pub const TOLD: &str = "{told}";

/// What kind of channel to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// A UDP socket on the local addresses that have a route to the peer. The addresses below
    /// select interfaces; they do not restrict the peer.
    Datagrams {
        /// Addresses that the peer may have, the most likely first.
        toward: Vec<SocketAddr>,
        /// The address to try when there is no route to any of them.
        otherwise: Option<SocketAddr>,
        /// The peer may have other addresses: the socket uses every suitable address of this host,
        /// as a browser gathers host candidates (RFC 8445 section 5.1.1.1). Loopback is included
        /// when the peer may be there.
        gathers: bool,
    },
    /// UDP sockets for RTP and RTCP with neighbouring ports, the lower one even (RFC 3550 section
    /// 11), on the local address that has a route to the peer. Each is opened as a channel of its
    /// own; if they cannot be, the channel of RTP is closed.
    RtpPair {
        /// The channel of the RTCP socket; that of the RTP socket is the one that is opened.
        rtcp: Channel,
        /// The address of the peer.
        toward: SocketAddr,
    },
    /// A TCP connection.
    Stream {
        /// The peer.
        to: StreamPeer,
        /// Use TLS with this server name; `None` for plain TCP.
        tls: Option<String>,
    },
    /// A program of this machine as a stream: what is sent is its standard input, what arrives is
    /// its standard output. Closing the channel ends its input; it is killed if it does not end
    /// soon.
    Process {
        /// Its name, looked up in `PATH`.
        program: &'static str,
        /// Its arguments, which all users of the machine see. [`TOLD`] stands for the path of a
        /// file with `told`.
        arguments: Vec<String>,
        /// What it reads and nobody else: lines `option=value` with keys and passwords.
        told: Option<Secret>,
        /// The address in them that the participant uses, where the server's name has several.
        chosen: Option<IpAddr>,
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

/// The peer of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamPeer {
    /// An address.
    Address(SocketAddr),
    /// A host name, which the driver resolves, or an address as text; and a port.
    Host {
        /// The name, or an IP address as in URLs.
        host: String,
        /// The port.
        port: u16,
    },
}

/// How a channel, or the connection of a fetch, was opened. A moment is absent if its step was not
/// needed: a reused connection has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The local address.
    pub local: Option<SocketAddr>,
    /// All local addresses of a datagram channel that has several; the first is [`Self::local`].
    pub locals: Vec<SocketAddr>,
    /// The peer's address, pinned for this run.
    pub remote: Option<SocketAddr>,
    /// When the name was resolved.
    pub resolved_at: Option<Instant>,
    /// When TCP was established; absent for QUIC, whose one handshake ends with TLS.
    pub connected_at: Option<Instant>,
    /// When TLS was established.
    pub secured_at: Option<Instant>,
    /// The subprotocol that the WebSocket server chose.
    pub subprotocol: Option<String>,
    /// Why [`HttpVersion::Alternative`] could not be reached, for this download or one before.
    pub alternative_failed: Option<Box<ChannelError>>,
}

impl Opening {
    /// All local addresses; empty when the driver named none.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        if self.locals.is_empty() { self.local.into_iter().collect() } else { self.locals.clone() }
    }

    /// The phases of joining that were needed.
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
    /// The peer; ignored on a stream channel.
    pub to: SocketAddr,
    /// The local address to send from, where the channel has several; `None` leaves the choice to
    /// routing.
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

/// An HTTP request. The driver does not follow redirects: the participant decides on them.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, absolute URI and headers.
    pub head: http::request::Parts,
    /// The body; may be empty.
    pub body: Vec<u8>,
    /// When to give up.
    pub timeout: Duration,
}

/// What arrived of a download.
#[derive(Debug)]
pub enum DownloadEvent<'a> {
    /// The head of the response.
    Head {
        /// Status, version and headers.
        head: Box<http::response::Parts>,
        /// How its connection was opened; without moments if it was open before.
        opening: Box<Opening>,
    },
    /// The next bytes of the body.
    Body(&'a [u8]),
    /// So many bytes of the body were received and dropped unread ([`Demand::Ignore`]). The driver
    /// adds up what arrives and reports it at most every [`IGNORED_EVERY`], and before whatever
    /// else follows.
    Ignored(u64),
    /// The state of the connection, about once a second while the body is read, and before the end.
    Transport(TransportState),
    /// The end: the body is complete, or the reason why it is not ([`ChannelError::Truncated`]
    /// where the server ended it regularly after fewer bytes than `Content-Length` said), or why
    /// there is no response. Not sent for cancelled downloads.
    Finished(Result<(), ChannelError>),
}

/// The version of HTTP that a download uses. Connections are kept per participant, origin and
/// version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// As a browser that knows nothing of the server: HTTP/2 or HTTP/1.1 by ALPN over TLS, HTTP/1.1
    /// without TLS.
    #[default]
    Negotiated,
    /// HTTP/1.1 (RFC 9112), a connection for each download at a time.
    Http1,
    /// HTTP/2 (RFC 9113), over TLS by ALPN, else with prior knowledge (section 3.3).
    Http2,
    /// HTTP/3 (RFC 9114) over QUIC; `https:` only.
    Http3,
    /// HTTP/3 at this port of the same host if it can be reached there soon, else as
    /// [`Self::Negotiated`] (RFC 7838). Where it could not be reached,
    /// [`Opening::alternative_failed`] of a later response says so.
    Alternative(u16),
}

/// How much of a body to read, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// So many bytes, delivered as [`DownloadEvent::Body`].
    Deliver(u64),
    /// So many bytes, dropped by the driver without a copy for the participant:
    /// [`DownloadEvent::Ignored`].
    Ignore(u64),
}

/// How often ignored bytes are reported while more of them are due.
pub const IGNORED_EVERY: Duration = Duration::from_millis(100);

/// The state of a connection as its transport sees it: `tcp_info` of Linux
/// (`include/uapi/linux/tcp.h`), or the QUIC library's. A figure is absent where the transport does
/// not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportState {
    /// Number of the connection within the participant: downloads on one connection share the
    /// figures below.
    pub connection: u32,
    /// Smoothed round-trip time, microseconds (`tcpi_rtt`).
    pub round_trip_us: Option<u32>,
    /// Segments or packets that were sent again since the connection began (`tcpi_total_retrans`).
    pub retransmitted: Option<u64>,
    /// Segments that arrived out of order since the connection began, a sign of loss on the way
    /// here (`tcpi_rcv_ooopack`).
    pub received_out_of_order: Option<u64>,
    /// Bytes received on the connection since it began, protocol overhead above TCP or QUIC
    /// included (`tcpi_bytes_received`).
    pub received_bytes: Option<u64>,
}

/// An HTTP response with its whole body.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status, version and headers.
    pub head: http::response::Parts,
    /// The body.
    pub body: Vec<u8>,
    /// How its connection was opened.
    pub opening: Opening,
}

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
    pub fn after_opening(self) -> throng_observation::Failure {
        use throng_observation::{Failure, FailureReason};
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

impl From<ChannelError> for throng_observation::Failure {
    fn from(error: ChannelError) -> Self {
        use throng_observation::FailureReason as Reason;
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
