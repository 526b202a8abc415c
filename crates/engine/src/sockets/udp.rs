//! A participant's datagram socket: its local addresses, receive buffer, and allowed destinations.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use throng_net::Outgoing;
use throng_scenario::IpProtocol;

use super::ring::{LocalPorts, RingEntry};
use super::routes::SourceAddresses;
use super::silence::Silence;
use crate::config::Reach;

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

#[cfg(test)]
#[path = "udp_tests.rs"]
mod tests;
