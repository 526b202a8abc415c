//! Fetches and downloads over HTTP.

use std::time::Duration;

use throng_observation::Url;

use super::{ChannelError, Opening};

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

impl Request {
    /// The begin of the head of a request for `url`, which is sent with its secrets.
    pub(crate) fn builder(method: http::Method, url: &Url) -> http::request::Builder {
        http::Request::builder().method(method).uri(url.in_clear().as_str())
    }
}

/// What a run keeps of the path of a request that has a secret in it: an extension of its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPath(pub String);

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
