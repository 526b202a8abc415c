//! Sockets: datagrams in batches on the threads; TCP, TLS, HTTP and WebSocket for signalling.

mod watched;
pub(crate) use watched::watched;

mod gathering;

mod ring;
mod silence;
pub(crate) use ring::{
    LocalPorts, ReceiveConfig, ReceiveRings, RingEntry, SocketStep, apply, may_open_ring,
};

mod routes;
pub(crate) use routes::{PeerAddresses, SourceAddresses};

mod udp;
pub(crate) use udp::{DatagramSocket, LostDatagrams, RingUse, SendResult};

mod race;

mod resolve;
pub(crate) use resolve::{ChosenAddresses, DnsCache};

mod stream;
pub(crate) use stream::MaybeTlsStream;

mod tcp;
pub(crate) use tcp::{Dialer, Host};

mod tls;

pub(crate) mod http;
pub(crate) mod websocket;

/// The `User-Agent` of throng.
pub(crate) const USER_AGENT: &str = concat!("throng/", env!("CARGO_PKG_VERSION"));
