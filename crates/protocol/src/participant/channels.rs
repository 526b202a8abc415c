//! Channels: how they are opened, and what goes over them.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use throng_observation::{Observation, Phase, Url};
use throng_scenario::Secret;

use super::{Channel, ChannelError};

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
    /// Why [`Alternative`](super::HttpVersion::Alternative) could not be reached, for this download
    /// or one before.
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
