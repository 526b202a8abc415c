//! A participant's datagram socket: its local addresses, receive buffer, and allowed destinations.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use throng_net::Outgoing;
use throng_protocol::participant::ChannelError;
use throng_scenario::IpProtocol;

use super::gathering;
use super::ring::{LocalPorts, RingEntry};
use super::silence::Silence;
use crate::config::Reach;
use crate::preflight;

/// A datagram socket of one participant.
pub(crate) struct DatagramSocket {
    socket: UdpSocket,
    /// Its local addresses, all with the same port; the most likely first.
    locals: Box<[SocketAddr]>,
    /// Dual-stack: it takes IPv4 addresses as IPv4-mapped IPv6 addresses (RFC 3493 section 3.7).
    is_dual: bool,
    /// The destination allowed last: nearly every datagram goes to the same one.
    allowed: Option<SocketAddr>,
    /// The local address and the peer that were found to be no detour last: an established pair
    /// costs no look-up, and is kept when its route changes.
    straight: Option<(IpAddr, IpAddr)>,
    /// See [`throng_net::send`].
    joins: bool,
    /// `None` while unknown: the kernel counts with them what the socket left to a ring.
    dropped_so_far: Option<u32>,
    /// Whether a ring has its datagrams.
    pub(crate) ring: RingUse,
    pub(crate) silence: Silence,
}

/// The use of a receive ring for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingUse {
    /// Not yet.
    Possible,
    /// Its datagrams are in a ring, or are being compared with it.
    Entered(RingEntry),
    /// No more.
    Never,
}

/// Pairs of ports that are tried: the neighbour of a free port is seldom taken.
const RTP_PAIR_ATTEMPTS: usize = 16;

/// Datagrams dropped because a socket's receive buffer, or a ring, was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostDatagrams {
    pub(crate) count: u32,
    /// Length of the silence before, if they arrived in a burst after one; no reader is fast enough
    /// for such a burst.
    pub(crate) after_silence: Option<Duration>,
}

/// Result of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// The kernel took it.
    Sent,
    /// The kernel had no buffer: this machine is the limit.
    BufferFull,
    /// No route, or a firewall: a server may offer such a candidate whatever the load.
    Unreachable(io::ErrorKind),
    /// The source address is loopback and the destination is not on this host, to which no other
    /// local address leads ([`DatagramSocket::is_detour`]).
    LoopbackOnly,
    /// Its destination is not allowed.
    Refused,
}

impl SendResult {
    /// The result for an error of sendto(2).
    fn not_taken(error: &io::Error, from: Option<IpAddr>) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Self::BufferFull,
            _ if from.is_some_and(|from| from.is_loopback()) => Self::LoopbackOnly,
            _ => Self::Unreachable(error.kind()),
        }
    }
}

impl DatagramSocket {
    /// A socket on `ips` with a port of `ports`, or of the kernel's choice if those are taken.
    /// Several addresses share one socket; the kernel then reports the local address of each
    /// datagram.
    pub(crate) fn bind(
        ips: &[IpAddr],
        ports: Option<&mut LocalPorts>,
        receive_buffer_bytes: usize,
    ) -> io::Result<Self> {
        for port in ports.into_iter().flat_map(LocalPorts::candidates) {
            match Self::bind_at(ips, port, receive_buffer_bytes) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound,
            }
        }
        Self::bind_at(ips, 0, receive_buffer_bytes)
    }

    /// Sockets for RTP and RTCP on `ip`: an even port and the next one (RFC 3550 section 11),
    /// because servers may compute the second from the first.
    pub(crate) fn bind_rtp_pair(
        ip: IpAddr,
        mut ports: Option<&mut LocalPorts>,
        receive_buffer_bytes: usize,
    ) -> io::Result<[Self; 2]> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..RTP_PAIR_ATTEMPTS {
            let one = Self::bind(&[ip], ports.as_deref_mut(), receive_buffer_bytes)?;
            let port = one.locals.first().map_or(0, SocketAddr::port);
            match Self::bind_at(&[ip], port ^ 1, receive_buffer_bytes) {
                Ok(other) if port & 1 == 0 => return Ok([one, other]),
                Ok(other) => return Ok([other, one]),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn bind_at(ips: &[IpAddr], port: u16, receive_buffer_bytes: usize) -> io::Result<Self> {
        let first = *ips.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let is_dual = ips.iter().any(|ip| ip.is_ipv4() != first.is_ipv4());
        let bound: IpAddr = match ips {
            [only] => *only,
            _ if first.is_ipv4() && !is_dual => Ipv4Addr::UNSPECIFIED.into(),
            _ => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = SocketAddr::new(bound, port);
        let socket = Socket::new(Domain::for_address(bound), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if throng_net::force_receive_buffer(socket.as_fd(), receive_buffer_bytes).is_err() {
            // Without CAP_NET_ADMIN the cap is net.core.rmem_max; the preflight check warns when
            // that is too little.
            socket.set_recv_buffer_size(receive_buffer_bytes)?;
        }
        throng_net::receive_arrivals_and_drops(socket.as_fd())?;
        if bound.ip().is_unspecified() {
            throng_net::receive_locals(socket.as_fd(), bound.is_ipv4())?;
            if bound.is_ipv6() {
                socket.set_only_v6(!is_dual)?;
            }
        }
        socket.bind(&bound.into())?;
        let socket = UdpSocket::from(socket);
        let port = socket.local_addr()?.port();
        let locals = ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
        Ok(Self {
            socket,
            locals,
            is_dual,
            allowed: None,
            straight: None,
            joins: true,
            dropped_so_far: Some(0),
            ring: RingUse::Possible,
            silence: Silence::default(),
        })
    }

    /// Its local addresses, the most likely first.
    pub(crate) fn locals(&self) -> &[SocketAddr] {
        &self.locals
    }

    /// Whether it has several local addresses.
    pub(crate) fn has_several(&self) -> bool {
        self.locals.len() > 1
    }

    /// Whether `from` is a detour to `to`: routing chooses another one of the socket's addresses. A
    /// browser's viewer binds no address of its own, so that routing chooses for it, and a server
    /// that answers the source that it heard last (SRS) may have no way back to a detour. If the
    /// socket does not have the address that routing chooses, only loopback is a detour, where
    /// there is an outer address of the family. If routing knows no way, nothing is a detour.
    ///
    /// The participant is not told, and paces its checks as if those of detours were sent: a join
    /// may wait 50 ms for each address before the one that routing chooses. Of a socket that
    /// gathers, the first address is the choice toward the signalling host, so that this costs time
    /// only where media is at another host with another route.
    pub(crate) fn is_detour(
        &mut self,
        from: Option<IpAddr>,
        to: SocketAddr,
        now: Instant,
        sources: &mut SourceAddresses,
    ) -> bool {
        let Some(from) = from.filter(|_| self.has_several()) else { return false };
        let pair = Some((from, to.ip()));
        if self.straight == pair {
            return false;
        }
        let Ok(way) = sources.toward(now, None, to) else { return false };
        let is_inner = from.is_loopback() && !way.is_loopback();
        let is_better = |own: IpAddr| {
            own == way || (is_inner && !own.is_loopback() && own.is_ipv4() == to.is_ipv4())
        };
        let is_detour = way != from && self.locals.iter().any(|local| is_better(local.ip()));
        if !is_detour {
            self.straight = pair;
        }
        is_detour
    }

    /// A datagram in the form that this socket's family needs.
    pub(crate) fn outgoing<'a>(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        bytes: &'a [u8],
    ) -> Outgoing<'a> {
        let to = match to {
            SocketAddr::V4(v4) if self.is_dual => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            to => to,
        };
        Outgoing { to: SockAddr::from(to), from: from.filter(|_| self.has_several()), bytes }
    }

    /// Whether datagrams may go to `to`; the last allowed destination is cached.
    pub(crate) fn permits(&mut self, to: SocketAddr, reach: &Reach) -> bool {
        if self.allowed != Some(to) {
            if !reach(IpProtocol::Udp, to) {
                return false;
            }
            self.allowed = Some(to);
        }
        true
    }

    /// Sends one datagram.
    pub(crate) fn send(
        &mut self,
        to: SocketAddr,
        from: Option<IpAddr>,
        bytes: &[u8],
        reach: &Reach,
    ) -> SendResult {
        if !self.permits(to, reach) {
            return SendResult::Refused;
        }
        let sent = if self.has_several() {
            let datagram = [self.outgoing(to, from, bytes)];
            throng_net::send(self.socket.as_fd(), &datagram, &mut self.joins)
        } else {
            self.socket.send_to(bytes, to)
        };
        match sent {
            Ok(_) => SendResult::Sent,
            Err(error) => SendResult::not_taken(&error, from.filter(|_| self.has_several())),
        }
    }

    /// Sends datagrams with permitted destinations; calls `not_taken` for those that the kernel
    /// refused.
    pub(crate) fn send_all(
        &mut self,
        datagrams: &[Outgoing<'_>],
        mut not_taken: impl FnMut(SocketAddr, &[u8], SendResult),
    ) {
        let mut rest = datagrams;
        while let Some(first) = rest.first() {
            // An error concerns only the first datagram of the call; the rest is sent by the next
            // call.
            let step = match throng_net::send(self.socket.as_fd(), rest, &mut self.joins) {
                Ok(sent) if sent > 0 => sent,
                Ok(_) => 1,
                Err(error) => {
                    if let Some(to) = first.to.as_socket() {
                        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
                        not_taken(to, first.bytes, SendResult::not_taken(&error, first.from));
                    }
                    1
                }
            };
            rest = rest.get(step..).unwrap_or_default();
        }
    }

    /// Where a datagram arrived: at `local` if the kernel named it, else at its only address.
    pub(crate) fn local(&self, local: Option<IpAddr>) -> Option<SocketAddr> {
        let first = self.locals.first()?;
        local
            .or_else(|| (!self.has_several()).then(|| first.ip()))
            .map(|ip| (ip, first.port()).into())
    }

    /// Whether its peer is there, as far as is known: it sends there, or nowhere.
    pub(crate) fn is_peer(&self, source: IpAddr) -> bool {
        self.allowed.is_none_or(|to| to.ip().to_canonical() == source.to_canonical())
    }

    /// The kernel's count of drops has jumped.
    pub(crate) fn forget_drops(&mut self) {
        self.dropped_so_far = None;
    }

    /// Records the arrival of a datagram and the kernel's count of drops; returns the drops since
    /// the last one.
    pub(crate) fn note(
        &mut self,
        arrived_at: Instant,
        dropped_so_far: Option<u32>,
    ) -> Option<LostDatagrams> {
        self.silence.arrived(arrived_at);
        let so_far = dropped_so_far?;
        let before = self.dropped_so_far.replace(so_far)?;
        let count = so_far.wrapping_sub(before);
        (count > 0)
            .then(|| LostDatagrams { count, after_silence: self.silence.before_burst(arrived_at) })
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Chooses the local addresses toward peers.
#[derive(Debug, Default)]
pub(crate) struct SourceAddresses {
    /// When the route to a peer was looked up, and the local address that it chooses or the error
    /// that says that there is none.
    routes: HashMap<IpAddr, (Instant, Result<IpAddr, i32>)>,
    /// When the addresses of this host were read, and these.
    own: Option<(Instant, Vec<IpAddr>)>,
}

/// The peers of a datagram socket: see [`Open::Datagrams`].
///
/// [`Open::Datagrams`]: throng_protocol::participant::Open::Datagrams
#[derive(Clone, Debug)]
pub(crate) struct PeerAddresses {
    pub(crate) peers: Vec<SocketAddr>,
    pub(crate) otherwise: Option<SocketAddr>,
    pub(crate) gathers: bool,
}

/// Most routes cached: a crowd talks to a handful of servers, and a hostile one cannot make this
/// grow.
const ROUTES_MAX: usize = 1024;

/// How long a route is believed: lines come up and go down during a run.
const ROUTE_FRESH: Duration = Duration::from_secs(5);

/// How long the addresses of this host are believed: they may be thousands, and all are read.
const OWN_FRESH: Duration = Duration::from_secs(60);

impl SourceAddresses {
    /// The local addresses toward the peers that may be reached, the most likely first. A
    /// participant with an assigned address (`dealt`) uses that one toward peers of its family.
    ///
    /// # Errors
    /// No peer may be reached, there is no route to those that may, or this host has no descriptor
    /// left.
    pub(crate) fn locals(
        &mut self,
        now: Instant,
        dealt: Option<IpAddr>,
        toward: &PeerAddresses,
        reach: &Reach,
    ) -> Result<Vec<IpAddr>, ChannelError> {
        let locals = match (self.toward_each(now, dealt, &toward.peers, reach), toward.otherwise) {
            (Err(_), Some(otherwise)) => self.toward_each(now, dealt, &[otherwise], reach)?,
            (locals, _) => locals?,
        };
        Ok(match locals.first() {
            Some(first) if toward.gathers && dealt.is_none() => {
                let age = |read_at: Instant| now.saturating_duration_since(read_at);
                self.own = self.own.take().filter(|(read_at, _)| age(*read_at) < OWN_FRESH);
                let (_, own) = self.own.get_or_insert_with(|| (now, preflight::own_addresses()));
                gathering::usable(*first, own)
            }
            _ => locals,
        })
    }

    /// The local addresses toward those of `peers` that may be reached and have a route.
    fn toward_each(
        &mut self,
        now: Instant,
        dealt: Option<IpAddr>,
        peers: &[SocketAddr],
        reach: &Reach,
    ) -> Result<Vec<IpAddr>, ChannelError> {
        // Only a route is looked up, also to a server whose port is one of TCP; each datagram is
        // judged when it is sent.
        let may_reach =
            |peer: &&SocketAddr| reach(IpProtocol::Udp, **peer) || reach(IpProtocol::Tcp, **peer);
        let (allowed, refused): (Vec<SocketAddr>, Vec<_>) = peers.iter().partition(may_reach);
        let (mut locals, mut unreachable) = (Vec::new(), Vec::new());
        for peer in allowed {
            match self.toward(now, dealt, peer) {
                Ok(local) if locals.contains(&local) => {}
                Ok(local) => locals.push(local),
                Err(error) if is_unreachable(&error) => {
                    unreachable.push(format!("{peer} ({error})"));
                }
                Err(error) => {
                    return Err(ChannelError::Generator(format!(
                        "datagram socket toward {peer}: {error}"
                    )));
                }
            }
        }
        if !locals.is_empty() {
            return Ok(locals);
        }
        if unreachable.is_empty() {
            let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
            return Err(ChannelError::NotAllowed(refused.join(", ")));
        }
        Err(ChannelError::NoRoute(unreachable.join(", ")))
    }

    /// The local address toward `toward`: the assigned one (`dealt`) if it is of the same family,
    /// else the route's choice.
    fn toward(
        &mut self,
        now: Instant,
        dealt: Option<IpAddr>,
        toward: SocketAddr,
    ) -> io::Result<IpAddr> {
        if let Some(dealt) = dealt.filter(|dealt| dealt.is_ipv4() == toward.is_ipv4()) {
            return Ok(dealt);
        }
        if let Some((looked_up_at, known)) = self.routes.get(&toward.ip())
            && now.saturating_duration_since(*looked_up_at) < ROUTE_FRESH
        {
            return known.map_err(io::Error::from_raw_os_error);
        }
        let found = look_up(toward);
        // An error of this host, such as that no descriptor is left, says nothing of the route.
        let known = match &found {
            Ok(local) => Some(Ok(*local)),
            Err(error) => error.raw_os_error().filter(|_| is_unreachable(error)).map(Err),
        };
        if let Some(known) = known {
            if self.routes.len() >= ROUTES_MAX {
                self.routes.clear();
            }
            self.routes.insert(toward.ip(), (now, known));
        }
        found
    }
}

/// The source address that routing chooses toward `toward`. Connecting a datagram socket sends
/// nothing; it looks up the route.
fn look_up(toward: SocketAddr) -> io::Result<IpAddr> {
    let any = if toward.is_ipv4() {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect((toward.ip(), if toward.port() == 0 { 9 } else { toward.port() }))?;
    Ok(probe.local_addr()?.ip())
}

/// Whether an error means that an address is unreachable: no route, a route that rejects
/// (blackhole, prohibit), or no address of its family.
fn is_unreachable(error: &io::Error) -> bool {
    let words = [
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::EADDRNOTAVAIL,
        libc::EAFNOSUPPORT,
        libc::EINVAL,
        libc::EACCES,
    ];
    error.raw_os_error().is_some_and(|code| words.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_dealt_address_is_used_toward_targets_of_its_family() {
        let mut sources = SourceAddresses::default();
        let mut toward = |dealt: Option<&str>, target: &str| {
            let dealt = dealt.map(|ip| ip.parse().unwrap());
            let target = target.parse().unwrap();
            sources.toward(Instant::now(), dealt, target).unwrap().to_string()
        };
        assert_eq!(toward(Some("127.0.0.2"), "127.0.0.1:9"), "127.0.0.2");
        assert_eq!(toward(Some("::1"), "127.0.0.1:9"), "127.0.0.1");
        assert_eq!(toward(None, "127.0.0.1:9"), "127.0.0.1");
        assert_eq!(toward(Some("::1"), "[::1]:9"), "::1");
    }

    #[test]
    fn a_server_hears_a_socket_only_from_where_routing_leads() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let now = Instant::now();
        let mut sources = SourceAddresses {
            // A line to a server; a way whose address is not offered.
            routes: [("10.79.2.1", "10.79.2.2"), ("10.9.9.9", "10.1.1.1")]
                .map(|(peer, way)| (ip(peer), (now, Ok(ip(way)))))
                .into(),
            own: None,
        };
        let bound = |several: &[&str]| {
            let ips: Vec<_> = several.iter().map(|text| ip(text)).collect();
            DatagramSocket::bind(&ips, None, 1 << 16).unwrap()
        };
        let mut is_detour = |socket: &mut DatagramSocket, from: Option<&str>, peer: &str| {
            socket.is_detour(from.map(ip), SocketAddr::new(ip(peer), 8000), now, &mut sources)
        };
        let mut socket = bound(&["127.0.0.1", "192.0.2.2", "10.79.2.2"]);
        assert!(!is_detour(&mut socket, Some("10.79.2.2"), "10.79.2.1"));
        for other in ["192.0.2.2", "127.0.0.1"] {
            assert!(is_detour(&mut socket, Some(other), "10.79.2.1"), "{other}");
        }
        assert!(!is_detour(&mut socket, Some("127.0.0.1"), "127.0.0.1"));
        assert!(is_detour(&mut socket, Some("192.0.2.2"), "127.0.0.1"));
        assert!(!is_detour(&mut socket, None, "10.79.2.1"));
        // Any outer address may be the way to one that is not offered, loopback only without it.
        assert!(!is_detour(&mut socket, Some("192.0.2.2"), "10.9.9.9"));
        assert!(is_detour(&mut socket, Some("127.0.0.1"), "10.9.9.9"));
        for inner in [["127.0.0.1", "127.0.0.2"], ["127.0.0.1", "2001:db8::5"]] {
            assert!(!is_detour(&mut bound(&inner), Some("127.0.0.1"), "10.9.9.9"), "{inner:?}");
        }
        // A socket with one address was given it.
        assert!(!is_detour(&mut bound(&["127.0.0.1"]), Some("127.0.0.1"), "10.79.2.1"));
    }

    #[test]
    fn a_route_that_changes_leads_new_pairs_and_leaves_the_established_one() {
        let [one, two] = [1, 2].map(|last| IpAddr::from([127, 0, 0, last]));
        let (start, to) = (Instant::now(), SocketAddr::new(one, 9));
        // The way was by `two`; now it is by `one`.
        let mut sources = SourceAddresses { routes: [(one, (start, Ok(two)))].into(), own: None };
        let bound = || DatagramSocket::bind(&[one, two], None, 1 << 16).unwrap();
        let (mut established, mut later) = (bound(), bound());
        let mut detours = |socket: &mut DatagramSocket, after: Duration| {
            [one, two].map(|from| socket.is_detour(Some(from), to, start + after, &mut sources))
        };
        let still = ROUTE_FRESH - Duration::from_millis(1);
        assert_eq!(detours(&mut established, still), [true, false]);
        assert_eq!(detours(&mut later, ROUTE_FRESH), [false, true]);
        let now = start + ROUTE_FRESH;
        assert!(!established.is_detour(Some(two), to, now, &mut sources), "it plays");
    }

    #[test]
    fn a_way_that_is_missing_is_remembered_as_long_as_one_that_exists() {
        let (start, home) = (Instant::now(), IpAddr::from([127, 0, 0, 1]));
        let mut sources = SourceAddresses::default();
        let nowhere: SocketAddr = "255.255.255.255:9".parse().unwrap();
        assert!(is_unreachable(&sources.toward(start, None, nowhere).unwrap_err()));
        assert!(matches!(sources.routes.get(&nowhere.ip()), Some((_, Err(_)))));
        sources.routes.insert(home, (start, Err(libc::EHOSTUNREACH)));
        let mut toward =
            |after: Duration| sources.toward(start + after, None, SocketAddr::new(home, 9));
        assert_eq!(toward(Duration::ZERO).unwrap_err().raw_os_error(), Some(libc::EHOSTUNREACH));
        assert_eq!(toward(ROUTE_FRESH).unwrap(), home);
        // One more than has room.
        let peers = (0..ROUTES_MAX as u32).map(|n| IpAddr::from(Ipv4Addr::from_bits(n)));
        sources.routes = peers.map(|peer| (peer, (start, Ok(home)))).collect();
        assert_eq!(sources.toward(start, None, SocketAddr::new(home, 9)).unwrap(), home);
        assert_eq!(sources.routes, HashMap::from([(home, (start, Ok(home)))]));
    }

    #[test]
    fn an_address_that_this_host_has_lost_is_offered_for_a_minute_at_most() {
        let (start, lost) = (Instant::now(), IpAddr::from([192, 0, 2, 7]));
        let mut sources =
            SourceAddresses { own: Some((start, vec![lost])), ..SourceAddresses::default() };
        let reach: Reach = Arc::new(|_, _| true);
        let peers = vec!["127.0.0.1:9".parse().unwrap()];
        let toward = PeerAddresses { peers, otherwise: None, gathers: true };
        let mut offers = |after: Duration| {
            sources.locals(start + after, None, &toward, &reach).unwrap().contains(&lost)
        };
        assert!(offers(OWN_FRESH - Duration::from_millis(1)) && !offers(OWN_FRESH));
    }

    #[test]
    fn a_port_that_another_process_has_is_passed_over() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let mut ports = LocalPorts::only(port..=port);
        let ip = [127, 0, 0, 1].into();
        let socket = DatagramSocket::bind(&[ip], Some(&mut ports), 1 << 16).unwrap();
        assert_ne!(socket.locals()[0].port(), port);
        drop(taken);
        let socket = DatagramSocket::bind(&[ip], Some(&mut ports), 1 << 16).unwrap();
        assert_eq!(socket.locals()[0].port(), port);
    }

    #[test]
    fn an_address_without_a_way_to_it_leaves_the_choice_to_the_next() {
        let reach: Reach = Arc::new(|_, to| to.ip() != IpAddr::from([127, 0, 0, 9]));
        let locals = |peers: &[&str], otherwise: Option<&str>| {
            let peers = peers.iter().map(|peer| peer.parse().unwrap()).collect();
            let otherwise = otherwise.map(|peer| peer.parse().unwrap());
            SourceAddresses::default().locals(
                Instant::now(),
                None,
                &PeerAddresses { peers, otherwise, gathers: false },
                &reach,
            )
        };
        let loopback = Ok(vec![IpAddr::from([127, 0, 0, 1])]);
        // A server of RTSP, whose media has ports of its own.
        let by_tcp: Reach =
            Arc::new(|protocol, to| protocol == IpProtocol::Tcp && to.port() == 554);
        let route = |peer: &str| {
            let peers = vec![peer.parse().unwrap()];
            let toward = PeerAddresses { peers, otherwise: None, gathers: false };
            SourceAddresses::default().locals(Instant::now(), None, &toward, &by_tcp)
        };
        assert_eq!(route("127.0.0.1:554"), loopback);
        assert!(matches!(route("127.0.0.1:5000"), Err(ChannelError::NotAllowed(_))));
        // Broadcast only: the kernel refuses to connect.
        let nowhere = "255.255.255.255:9";
        assert_eq!(locals(&[nowhere, "127.0.0.9:1", "127.0.0.1:1"], None), loopback);
        assert_eq!(locals(&[nowhere, "127.0.0.9:1"], Some("127.0.0.1:1")), loopback);
        assert!(matches!(locals(&[nowhere], None), Err(ChannelError::NoRoute(_))));
        assert!(matches!(locals(&["127.0.0.9:1"], None), Err(ChannelError::NotAllowed(_))));
        // Every route counts; an assigned address excludes others.
        let both = locals(&["127.0.0.1:1", "127.0.0.1:2", "[::1]:1"], None).unwrap();
        assert_eq!(both.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1", "::1"]);
        let peers = vec!["127.0.0.1:1".parse().unwrap()];
        let toward = PeerAddresses { peers, otherwise: None, gathers: true };
        let dealt = IpAddr::from([127, 0, 0, 7]);
        assert_eq!(
            SourceAddresses::default().locals(Instant::now(), Some(dealt), &toward, &reach),
            Ok(vec![dealt])
        );
    }

    #[test]
    fn a_socket_on_several_addresses_answers_from_the_one_that_received() {
        let reach: Reach = Arc::new(|_, _| true);
        let loopback = |n: u8| IpAddr::from([127, 0, 0, n]);
        for ips in [
            vec![loopback(1), loopback(2)],
            vec![loopback(1), loopback(2), Ipv6Addr::LOCALHOST.into()],
        ] {
            let mut socket = DatagramSocket::bind(&ips, None, 1 << 16).unwrap();
            assert!(socket.locals().iter().map(SocketAddr::ip).eq(ips.iter().copied()));
            let mut batch = throng_net::ReceiveBatch::default();
            for local in socket.locals().to_vec() {
                let peer =
                    UdpSocket::bind((if local.is_ipv4() { loopback(1) } else { local.ip() }, 0))
                        .unwrap();
                let to = peer.local_addr().unwrap();
                peer.send_to(b"asks", local).unwrap();
                assert_eq!(batch.receive(socket.as_fd(), throng_net::RECEIVE_BATCH).unwrap(), 1);
                let asked = batch.get(0).unwrap();
                assert_eq!((asked.local, asked.source), (Some(local.ip()), to));
                let mut bytes = [0; 8];
                assert_eq!(socket.send(to, Some(local.ip()), b"one", &reach), SendResult::Sent);
                assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, local));
                let two = [
                    socket.outgoing(to, Some(local.ip()), b"two"),
                    socket.outgoing(to, None, b"three"),
                ];
                socket.send_all(&two, |to, _, why| panic!("{to}: {why:?}"));
                assert_eq!(peer.recv_from(&mut bytes).unwrap(), (3, local));
                assert_eq!(peer.recv_from(&mut bytes).unwrap().0, 5);
            }
        }
    }

    #[test]
    fn nothing_is_sent_where_the_guard_says_no() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let agreed = receiver.local_addr().unwrap();
        let reach: Reach = Arc::new(move |_, to| to == agreed);
        let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
        assert_eq!(
            socket.send("127.0.0.9:9".parse().unwrap(), None, b"no", &reach),
            SendResult::Refused
        );
        assert_eq!(
            socket.send(receiver.local_addr().unwrap(), None, b"yes", &reach),
            SendResult::Sent
        );
        assert_eq!(
            socket.send("127.0.0.9:9".parse().unwrap(), None, b"no", &reach),
            SendResult::Refused
        );
        let mut bytes = [0; 8];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), 3);
        // Another port of the address that agreed, after one that was allowed.
        let other = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(socket.send(other, None, b"no", &reach), SendResult::Refused);
    }

    #[test]
    fn an_unreachable_destination_differs_from_a_full_buffer() {
        let error = io::Error::from_raw_os_error;
        for full in [libc::EAGAIN, libc::ENOBUFS, libc::ENOMEM] {
            assert_eq!(SendResult::not_taken(&error(full), None), SendResult::BufferFull);
        }
        for astray in
            [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EPERM, libc::EINVAL, libc::EMSGSIZE]
        {
            assert!(matches!(
                SendResult::not_taken(&error(astray), None),
                SendResult::Unreachable(_)
            ));
            let from = Some(IpAddr::from([127, 0, 0, 1]));
            assert_eq!(SendResult::not_taken(&error(astray), from), SendResult::LoopbackOnly);
        }
        let (reach, receiver): (Reach, _) =
            (Arc::new(|_, _| true), UdpSocket::bind("127.0.0.1:0").unwrap());
        // A loopback source address reaches nothing beyond this host.
        let (near, far) = (receiver.local_addr().unwrap(), "192.0.2.1:9".parse().unwrap());
        let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
        assert!(matches!(socket.send(far, None, b"far", &reach), SendResult::Unreachable(_)));
        let both = [(far, &b"far"[..]), (near, b"near"), (far, b"far"), (near, b"near")];
        let batch = both.map(|(to, bytes)| socket.outgoing(to, None, bytes));
        let mut lost = Vec::new();
        socket.send_all(&batch, |to, bytes, why| lost.push((to, bytes.len(), why)));
        assert!(lost.len() == 2 && lost.iter().all(|(to, length, _)| (*to, *length) == (far, 3)));
        assert!(lost.iter().all(|(.., why)| matches!(why, SendResult::Unreachable(_))), "{lost:?}");
        let mut bytes = [0; 8];
        assert_eq!(
            [receiver.recv(&mut bytes).unwrap(), receiver.recv(&mut bytes).unwrap()],
            [4, 4]
        );
        // Each of those that could be one message has its result.
        let runs =
            [(far, &b"far"[..]), (far, b"far"), (far, b"far"), (near, b"near"), (near, b"near")];
        let batch = runs.map(|(to, bytes)| socket.outgoing(to, None, bytes));
        let mut lost = Vec::new();
        socket.send_all(&batch, |to, bytes, why| lost.push((to, bytes.len(), why)));
        assert!(
            lost.len() == 3 && lost.iter().all(|(to, length, _)| (*to, *length) == (far, 3)),
            "{lost:?}"
        );
        assert_eq!(
            [receiver.recv(&mut bytes).unwrap(), receiver.recv(&mut bytes).unwrap()],
            [4, 4]
        );
    }

    #[test]
    fn drops_are_counted_once_even_when_the_kernels_counter_wraps() {
        let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
        let now = Instant::now();
        let mut counts = |so_far: u32| socket.note(now, Some(so_far)).map_or(0, |lost| lost.count);
        assert_eq!([5, 5, 9].map(&mut counts), [5, 0, 4]);
        counts(u32::MAX);
        assert_eq!(counts(2), 3);
    }

    #[test]
    fn drops_in_a_burst_after_silence_differ_from_those_of_a_slow_reader() {
        let mut socket = DatagramSocket::bind(&[[127, 0, 0, 1].into()], None, 1 << 16).unwrap();
        let start = Instant::now();
        let mut lost = |at_ms: u64, so_far: u32| {
            socket.note(start + Duration::from_millis(at_ms), Some(so_far))
        };
        assert_eq!(lost(0, 0), None);
        // The sender kept sending, and the reader did not keep reading.
        assert_eq!(lost(20, 3), Some(LostDatagrams { count: 3, after_silence: None }));
        (40..=1_000).step_by(20).for_each(|at_ms| assert_eq!(lost(at_ms, 3), None));
        // The sender stalled for 8 s, then sent all of that at once. The next datagram that fits
        // has the count.
        assert_eq!(lost(9_000, 3), None);
        let burst = Some(Duration::from_secs(8));
        assert_eq!(lost(9_030, 903), Some(LostDatagrams { count: 900, after_silence: burst }));
        assert_eq!(lost(9_900, 904), Some(LostDatagrams { count: 1, after_silence: burst }));
        assert_eq!(lost(10_100, 905), Some(LostDatagrams { count: 1, after_silence: None }));
    }
}
