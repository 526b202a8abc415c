//! Opens TCP and TLS connections: resolves the name, checks the address against the consent guard,
//! binds the local address, and records the time of each step.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use throng_observation::units;
use throng_protocol::participant::{ChannelError, Opening};
use throng_scenario::IpProtocol;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use super::race::first_to_accept;
use super::resolve::{Choice, ChosenAddresses, DnsCache, Turns};
use super::stream::{MaybeTlsStream, Socket};
use super::tls::{in_words, tls_config};
use crate::config::{EngineError, Reach, RunConfig};

/// The host and port to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Name(String),
    Ip(IpAddr),
}

impl fmt::Display for Host {
    /// As in a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl Host {
    /// Parses the host part of a URL or URI (IPv6 with or without brackets).
    pub(crate) fn parse(text: &str) -> Self {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        bare.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Ip)
    }

    fn server_name(&self) -> Result<ServerName<'static>, ChannelError> {
        match self {
            Self::Ip(ip) => Ok(ServerName::IpAddress((*ip).into())),
            Self::Name(name) => ServerName::try_from(name.clone())
                .map_err(|_| ChannelError::Tls(format!("`{name}` is not a server name"))),
        }
    }
}

/// The addresses of a host that a participant may contact.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// At least one, in the participant's order.
    pub(super) addresses: Vec<IpAddr>,
    /// Whether the host has several, with those that are not allowed.
    pub(super) of_several: bool,
}

/// What the connections of one participant need; nearly all of it is the whole run's.
pub(crate) struct Dialer {
    pub(crate) names: Arc<DnsCache>,
    /// The participant's own.
    choice: Choice,
    pub(crate) chosen: Arc<ChosenAddresses>,
    turns: Arc<Turns>,
    pub(crate) reach: Reach,
    /// For one HTTP/1.1 connection of its own: a WebSocket.
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) timeout: Duration,
    /// Receive buffer requested for a socket of QUIC, bytes.
    pub(super) receive_buffer_bytes: usize,
}

impl Dialer {
    pub(crate) fn new(config: &RunConfig) -> Result<Self, EngineError> {
        // A WebSocket upgrade is HTTP/1.1 (RFC 6455 section 4.1).
        let tls = tls_config(&config.tls, &[b"http/1.1"]).map_err(EngineError::Tls)?;
        Ok(Self {
            names: Arc::new(DnsCache::known(config.names.iter().cloned())),
            choice: Choice::default(),
            chosen: Arc::default(),
            turns: Arc::new(Turns::beginning_with(usize::from(config.worker))),
            reach: Arc::clone(&config.reach),
            tls: Arc::new(tls),
            timeout: config.connect_timeout,
            receive_buffer_bytes: config.receive_buffer_bytes,
        })
    }

    /// The same for one more participant, which chooses among the addresses of a name by itself.
    pub(crate) fn of_one(&self) -> Self {
        Self {
            names: Arc::clone(&self.names),
            choice: Choice::new(Arc::clone(&self.turns)),
            chosen: Arc::clone(&self.chosen),
            turns: Arc::clone(&self.turns),
            reach: Arc::clone(&self.reach),
            tls: Arc::clone(&self.tls),
            timeout: self.timeout,
            receive_buffer_bytes: self.receive_buffer_bytes,
        }
    }

    /// The addresses of `host` that this participant may contact by `protocol`.
    pub(super) async fn addresses(
        &self,
        protocol: IpProtocol,
        (host, port): (&Host, u16),
        opening: &mut Opening,
    ) -> Result<Allowed, ChannelError> {
        let mut addresses = match host {
            Host::Ip(ip) => vec![*ip],
            Host::Name(name) => {
                let addresses = self.names.resolve(name).await?;
                opening.resolved_at = Some(Instant::now());
                addresses
            }
        };
        let of_several = addresses.len() > 1;
        addresses.retain(|ip| (self.reach)(protocol, SocketAddr::new(*ip, port)));
        let addresses = match host {
            _ if addresses.is_empty() => return Err(not_allowed(host, port)),
            Host::Ip(_) => addresses,
            Host::Name(name) => self.choice.among(name, &addresses),
        };
        Ok(Allowed { addresses, of_several })
    }

    /// `ip`, an address of `host`, accepted a connection; `of_several`: it has others.
    pub(super) fn connected(&self, host: &Host, ip: IpAddr, of_several: bool) {
        if let Host::Name(name) = host
            && of_several
            && self.choice.keep(name, ip)
        {
            self.chosen.add(ip);
        }
    }

    /// A TLS configuration for one participant that offers `alpn`. It trusts what [`Self::tls`]
    /// trusts, and resumes only the participant's own sessions: a crowd whose members resume each
    /// other's would spare the server its handshakes.
    pub(super) fn tls_of_one(&self, alpn: &[&[u8]]) -> ClientConfig {
        let mut config = (*self.tls).clone();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(1);
        config
    }

    /// Connects to `host`:`port` from `source`, if given and of the same family, over TLS with
    /// `tls` if given.
    pub(crate) async fn dial(
        &self,
        source: Option<IpAddr>,
        host: &Host,
        port: u16,
        tls: Option<(&Arc<ClientConfig>, &Host)>,
    ) -> Result<(MaybeTlsStream, Opening), ChannelError> {
        let dialling = self.dial_without_timeout(source, host, port, tls);
        tokio::time::timeout(self.timeout, dialling).await.unwrap_or_else(|_| {
            let within = units::duration(self.timeout);
            Err(ChannelError::Tcp(format!("not connected to {host}:{port} within {within}")))
        })
    }

    async fn dial_without_timeout(
        &self,
        source: Option<IpAddr>,
        host: &Host,
        port: u16,
        tls: Option<(&Arc<ClientConfig>, &Host)>,
    ) -> Result<(MaybeTlsStream, Opening), ChannelError> {
        let mut opening = Opening::default();
        let Allowed { addresses, of_several } =
            self.addresses(IpProtocol::Tcp, (host, port), &mut opening).await?;
        let connecting = |ip| connect(SocketAddr::new(ip, port), source_toward(ip, source));
        let (stream, ip) = first_to_accept(&addresses, connecting).await?;
        opening.connected_at = Some(Instant::now());
        self.connected(host, ip, of_several);
        // Signalling messages are small: waiting to fill a segment would only add latency.
        let _ = stream.set_nodelay(true);
        opening.local = stream.local_addr().ok();
        opening.remote = Some(SocketAddr::new(ip, port));
        let socket = Socket::new(stream);
        let Some((config, name)) = tls else { return Ok((MaybeTlsStream::Plain(socket), opening)) };
        let secured = TlsConnector::from(Arc::clone(config))
            .connect(name.server_name()?, socket)
            .await
            .map_err(|error| ChannelError::Tls(in_words(&error)))?;
        opening.secured_at = Some(Instant::now());
        Ok((MaybeTlsStream::Secured(Box::new(secured)), opening))
    }
}

/// The source address for a peer at `ip`: the given one if it is of the same family.
pub(super) fn source_toward(ip: IpAddr, source: Option<IpAddr>) -> Option<IpAddr> {
    source.filter(|source| source.is_ipv4() == ip.is_ipv4())
}

fn not_allowed(host: &Host, port: u16) -> ChannelError {
    ChannelError::NotAllowed(format!("{}:{port}", text(host)))
}

fn text(host: &Host) -> String {
    match host {
        Host::Name(name) => name.clone(),
        Host::Ip(ip) => ip.to_string(),
    }
}

async fn connect(to: SocketAddr, source: Option<IpAddr>) -> Result<TcpStream, ChannelError> {
    let ours = |e: io::Error| ChannelError::Generator(format!("socket: {e}"));
    let socket =
        if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(ours)?;
    if let Some(source) = source {
        // Optional: without it the source address still works, with fewer ports.
        let _ = throng_net::choose_port_at_connect(socket.as_fd());
        socket.bind(SocketAddr::new(source, 0)).map_err(ours)?;
    }
    socket.connect(to).await.map_err(|e| match e.kind() {
        io::ErrorKind::AddrNotAvailable => {
            ChannelError::Generator(format!("no port left toward {to}: {e}"))
        }
        _ => ChannelError::Tcp(format!("{to}: {e}")),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use throng_observation::RunTime;
    use tokio::net::TcpListener;

    use super::*;

    /// The connections of one participant that may go anywhere.
    fn of_one() -> Dialer {
        let config = RunConfig::new(Vec::new(), RunTime::default(), Arc::new(|_, _| true));
        Dialer::new(&config).unwrap().of_one()
    }

    #[tokio::test]
    async fn a_participant_stays_at_the_address_that_accepts_and_leaves_it_when_it_refuses() {
        let [one, other] = [3, 2].map(|last| IpAddr::from([127, 0, 0, last]));
        let listener = TcpListener::bind((other, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut dialer = of_one();
        dialer.names = Arc::new(DnsCache::known([("media.example".into(), vec![one, other])]));
        let name = Host::Name("media.example".into());
        let server = async || {
            let (_, opening) = dialer.dial(None, &name, port, None).await?;
            Ok::<_, ChannelError>(opening.remote.map(|server| server.ip()))
        };
        assert_eq!(server().await, Ok(Some(other)), "the first one refuses");
        let listener_of_one = TcpListener::bind((one, port)).await.unwrap();
        assert_eq!(server().await, Ok(Some(other)), "its session is there");
        drop(listener);
        assert_eq!(server().await, Ok(Some(one)), "its server ended");
        assert_eq!(dialer.chosen.take(), BTreeMap::from([(one, 1), (other, 1)]));
        drop(listener_of_one);
        let error = server().await.unwrap_err();
        assert!(matches!(error, ChannelError::Tcp(_)), "{error}");
    }

    #[tokio::test]
    async fn a_name_that_was_judged_before_the_run_is_not_resolved_in_it() {
        let judged = IpAddr::from([192, 0, 2, 9]);
        let mut config = RunConfig::new(Vec::new(), RunTime::default(), Arc::new(|_, _| true));
        // The resolver says that it is here.
        config.names = vec![("localhost".into(), vec![judged])];
        let dialer = Dialer::new(&config).unwrap().of_one();
        let name = Host::Name("localhost".into());
        let asked = dialer.addresses(IpProtocol::Tcp, (&name, 80), &mut Opening::default()).await;
        assert_eq!(asked, Ok(Allowed { addresses: vec![judged], of_several: false }));
    }

    #[tokio::test]
    async fn each_address_of_a_name_is_judged_with_its_port() {
        let [here, elsewhere] = [[127, 0, 0, 1], [192, 0, 2, 9]].map(IpAddr::from);
        let mut dialer = of_one();
        dialer.names = Arc::new(DnsCache::known([("media.example".into(), vec![here, elsewhere])]));
        let agreed = SocketAddr::new(elsewhere, 443);
        dialer.reach = Arc::new(move |protocol, to| protocol == IpProtocol::Tcp && to == agreed);
        let name = Host::Name("media.example".into());
        let asked = async |protocol, port| {
            dialer.addresses(protocol, (&name, port), &mut Opening::default()).await
        };
        let allowed = Allowed { addresses: vec![elsewhere], of_several: true };
        assert_eq!(asked(IpProtocol::Tcp, 443).await, Ok(allowed), "one of two, and counted");
        for (protocol, port) in [(IpProtocol::Tcp, 9200), (IpProtocol::Udp, 443)] {
            let refused = asked(protocol, port).await;
            assert!(matches!(refused, Err(ChannelError::NotAllowed(_))), "{refused:?}");
        }
    }

    #[test]
    fn participants_are_counted_at_the_addresses_of_names_that_have_several() {
        let dialer = of_one();
        let [one, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let name = Host::Name("media.example".into());
        dialer.connected(&Host::Ip(one), one, false);
        dialer.connected(&name, one, false);
        assert_eq!(dialer.chosen.take(), BTreeMap::new(), "there was nothing to choose");
        dialer.connected(&name, one, true);
        dialer.connected(&name, one, true);
        dialer.of_one().connected(&name, one, true);
        dialer.of_one().connected(&name, other, true);
        assert_eq!(dialer.chosen.take(), BTreeMap::from([(one, 2), (other, 1)]));
    }
}
