//! QUIC connections (RFC 9000): the windows and time limits of Chromium, the trust of TLS over TCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    AsyncUdpSocket, ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig,
    TransportConfig, VarInt,
};
use socket2::{Domain, Protocol, Socket, Type};
use throng_observation::units;
use throng_protocol::participant::{ChannelError, Opening};
use throng_scenario::IpProtocol;

use super::super::origin::Origin;
use super::socket::{Broken, QuicSocket};
use crate::sockets::race::first_to_accept;
use crate::sockets::tcp::{Allowed, source_toward};
use crate::sockets::tls::in_words;
use crate::sockets::{Dialer, Host};

/// Flow-control windows of a stream and a connection, bytes: those of Chromium
/// (`kQuicStreamMaxRecvWindowSize` and `kQuicSessionMaxRecvWindowSize` in
/// net/quic/quic_context.cc). A body that is not read makes the server stop after so many bytes.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

/// A connection without packets is given up after this (`kIdleConnectionTimeout` in
/// net/quic/quic_context.h).
const IDLE: Duration = Duration::from_secs(30);

/// A ping is sent after this time without packets, so that a paused download keeps its connection
/// (`kPingTimeoutSecs` of quiche). Chromium does so only while a request is open; quinn, as long as
/// the connection is.
const PING: Duration = Duration::from_secs(15);

/// Streams that the server may open: control, and the two of QPACK (RFC 9114 section 6.2), with
/// some to spare for reserved types.
const UNIDIRECTIONAL_STREAMS: u32 = 16;

/// TLS alerts in QUIC's error codes (RFC 9001 section 4.8).
const CRYPTO_ERRORS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;

/// An open connection and its socket.
pub(super) struct Quic {
    pub(super) connection: Connection,
    broken: Broken,
    /// Keeps the endpoint; it ends after the connection was closed.
    _endpoint: Endpoint,
}

/// Connects to `origin`, from `source` if given and of the same family. `connected_at` stays empty:
/// QUIC has one handshake, at the end of which TLS is established.
pub(super) async fn connect(
    dialer: &Dialer,
    source: Option<IpAddr>,
    origin: &Origin,
    tls: Arc<rustls::ClientConfig>,
) -> Result<(Quic, Opening), ChannelError> {
    let config = config(tls).map_err(ChannelError::Tls)?;
    tokio::time::timeout(dialer.timeout, connect_without_timeout(dialer, source, origin, config))
        .await
        .unwrap_or_else(|_| {
            let within = units::duration(dialer.timeout);
            Err(ChannelError::Quic(format!("no answer from {origin} (UDP) within {within}")))
        })
}

async fn connect_without_timeout(
    dialer: &Dialer,
    source: Option<IpAddr>,
    origin: &Origin,
    config: ClientConfig,
) -> Result<(Quic, Opening), ChannelError> {
    let mut opening = Opening::default();
    let Allowed { addresses, of_several } =
        dialer.addresses(IpProtocol::Udp, (&origin.host, origin.port), &mut opening).await?;
    let attempts = |ip| {
        let (remote, source) = (SocketAddr::new(ip, origin.port), source_toward(ip, source));
        attempt(remote, source, origin, config.clone(), dialer.receive_buffer_bytes)
    };
    let ((quic, local), ip) = first_to_accept(&addresses, attempts).await?;
    dialer.connected(&origin.host, ip, of_several);
    opening.secured_at = Some(Instant::now());
    (opening.local, opening.remote) = (Some(local), Some(SocketAddr::new(ip, origin.port)));
    Ok((quic, opening))
}

async fn attempt(
    remote: SocketAddr,
    source: Option<IpAddr>,
    origin: &Origin,
    config: ClientConfig,
    receive_buffer_bytes: usize,
) -> Result<(Quic, SocketAddr), ChannelError> {
    let ours = |e: io::Error| match e.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            ChannelError::Quic(format!("{remote}: {e}"))
        }
        _ => ChannelError::Generator(format!("UDP socket toward {remote}: {e}")),
    };
    let socket = bound(remote, source, receive_buffer_bytes).map_err(ours)?;
    let local = socket.local_addr().map_err(ours)?;
    let (socket, broken) = QuicSocket::new(socket).map_err(ours)?;
    let socket = Arc::new(socket);
    let of_endpoint = Arc::clone(&socket) as Arc<dyn AsyncUdpSocket>;
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint =
        Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, of_endpoint, runtime)
            .map_err(ours)?;
    let name = match &origin.host {
        Host::Name(name) => name.clone(),
        Host::Ip(ip) => ip.to_string(),
    };
    let connecting = endpoint
        .connect_with(config, remote, &name)
        .map_err(|e| ChannelError::Quic(format!("{remote}: {e}")))?;
    let came = tokio::select! {
        came = connecting => came,
        () = socket.refused() => Err(ConnectionError::Reset),
    };
    match came {
        Ok(connection) => Ok((Quic { connection, broken, _endpoint: endpoint }, local)),
        Err(error) => Err(failure(&error, &broken, &remote.to_string(), "in the handshake")),
    }
}

/// A socket that is connected, so that it receives ICMP errors and nobody else's packets.
fn bound(
    remote: SocketAddr,
    source: Option<IpAddr>,
    receive_buffer_bytes: usize,
) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(remote), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // Without CAP_NET_ADMIN the kernel gives net.core.rmem_max at most.
    if throng_net::force_receive_buffer(socket.as_fd(), receive_buffer_bytes).is_err() {
        let _ = socket.set_recv_buffer_size(receive_buffer_bytes);
    }
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    socket.bind(&SocketAddr::new(source.unwrap_or(any), 0).into())?;
    socket.connect(&remote.into())?;
    Ok(socket.into())
}

fn config(tls: Arc<rustls::ClientConfig>) -> Result<ClientConfig, String> {
    let tls = QuicClientConfig::try_from(tls).map_err(|e| e.to_string())?;
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(UNIDIRECTIONAL_STREAMS))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IDLE.try_into().ok())
        .keep_alive_interval(Some(PING));
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

impl Quic {
    /// Why the connection is closed, if it is; `when` says how far the request had come.
    pub(super) fn failure(&self, origin: &Origin, when: &str) -> Option<ChannelError> {
        let reason = self.connection.close_reason()?;
        Some(failure(&reason, &self.broken, &origin.to_string(), when))
    }
}

fn failure(error: &ConnectionError, broken: &Broken, server: &str, when: &str) -> ChannelError {
    if let Some(error) = broken.get() {
        return ChannelError::Quic(format!("{server} {when}: {error}"));
    }
    match error {
        ConnectionError::TransportError(error) if CRYPTO_ERRORS.contains(&error.code.into()) => {
            ChannelError::Tls(in_words(&error.reason))
        }
        ConnectionError::ConnectionClosed(close)
            if CRYPTO_ERRORS.contains(&close.error_code.into()) =>
        {
            ChannelError::Tls(format!("{server} {when}: {close}"))
        }
        ConnectionError::TimedOut => {
            let within = units::duration(IDLE);
            ChannelError::Quic(format!("nothing from {server} for {within} {when}"))
        }
        error => ChannelError::Quic(format!("{server} {when}: {error}")),
    }
}
