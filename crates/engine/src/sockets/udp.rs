//! A participant's own datagram socket: its local address, its buffer, and what it may send to.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use throng_protocol::participant::ChannelError;

use super::batch;
use crate::config::Reach;

/// A datagram socket of one participant.
pub(crate) struct DatagramSocket {
    socket: UdpSocket,
    local: SocketAddr,
    /// The destination that was allowed last; nearly every datagram goes where the one before went.
    allowed: Option<IpAddr>,
    dropped_so_far: u32,
    /// When the last datagram came, and when the first came after a silence: how long that had been.
    arrived_at: Option<Instant>,
    resumed: Option<(Instant, Duration)>,
}

/// A peer that sends nothing for so long is silent: media has a packet in 400 ms at least, even where nobody speaks (RFC 7587 3.1.3).
const SILENT: Duration = Duration::from_secs(1);

/// What gathered in a peer that stood still comes at once, within this time after its silence.
const BURST: Duration = Duration::from_secs(1);

/// Datagrams that found the socket's receive buffer full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) count: u32,
    /// How long the peer had been silent, where they came at once after that: no reader is so fast that it matters.
    pub(crate) after_silence: Option<Duration>,
}

/// What became of a datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The kernel took it.
    Sent,
    /// The kernel had no room: this machine is the limit.
    NoRoom,
    /// It cannot go there (no route, a firewall): a server may well name such a candidate, whatever our load.
    NoWay(io::ErrorKind),
    /// Its destination is not allowed.
    Refused,
}

impl Sending {
    /// What it means that the kernel did not take a datagram (sendto(2)).
    fn not_taken(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Self::NoRoom,
            _ => Self::NoWay(error.kind()),
        }
    }
}

impl DatagramSocket {
    /// A socket on `local_ip` with a port of the kernel's choice.
    pub(crate) fn bind(local_ip: IpAddr, receive_buffer_bytes: usize) -> io::Result<Self> {
        let socket =
            Socket::new(Domain::for_address(SocketAddr::new(local_ip, 0)), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if batch::force_receive_buffer(socket.as_fd(), receive_buffer_bytes).is_err() {
            // Without privilege the kernel caps this at net.core.rmem_max; preflight says beforehand when that is too little.
            socket.set_recv_buffer_size(receive_buffer_bytes)?;
        }
        batch::ask_for_arrivals_and_drops(socket.as_fd())?;
        socket.bind(&SocketAddr::new(local_ip, 0).into())?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        Ok(Self { local, socket, allowed: None, dropped_so_far: 0, arrived_at: None, resumed: None })
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether datagrams may go to `to`, with the last verdict kept.
    pub(crate) fn permits(&mut self, to: SocketAddr, reach: &Reach) -> bool {
        if self.allowed != Some(to.ip()) {
            if !reach(to.ip()) {
                return false;
            }
            self.allowed = Some(to.ip());
        }
        true
    }

    /// Sends one datagram.
    pub(crate) fn send(&mut self, to: SocketAddr, bytes: &[u8], reach: &Reach) -> Sending {
        if !self.permits(to, reach) {
            return Sending::Refused;
        }
        match self.socket.send_to(bytes, to) {
            Ok(_) => Sending::Sent,
            Err(error) => Sending::not_taken(&error),
        }
    }

    /// Sends datagrams whose destinations are permitted; tells which of them the kernel did not take, and why.
    pub(crate) fn send_all(
        &self,
        datagrams: &[(SockAddr, &[u8])],
        mut not_taken: impl FnMut(&SockAddr, &[u8], Sending),
    ) {
        let mut rest = datagrams;
        while let Some((to, bytes)) = rest.first() {
            // An error concerns the first datagram of the call only; the ones after it have their own chance.
            let step = match batch::send(self.socket.as_fd(), rest) {
                Ok(sent) if sent > 0 => sent,
                Ok(_) => 1,
                Err(error) => {
                    not_taken(to, bytes, Sending::not_taken(&error));
                    1
                }
            };
            rest = rest.get(step..).unwrap_or_default();
        }
    }

    /// Notes that a datagram came, and the kernel's count of drops so far beside it; what was lost since the one before.
    pub(crate) fn note(&mut self, arrived_at: Instant, dropped_so_far: Option<u32>) -> Option<Lost> {
        let before = self.arrived_at.replace(arrived_at).unwrap_or(arrived_at);
        let silent = arrived_at.saturating_duration_since(before);
        if silent >= SILENT {
            self.resumed = Some((arrived_at, silent));
        }
        let so_far = dropped_so_far?;
        let count = so_far.wrapping_sub(std::mem::replace(&mut self.dropped_so_far, so_far));
        let is_burst = |at: Instant| arrived_at.saturating_duration_since(at) <= BURST;
        let after_silence = self.resumed.filter(|(at, _)| is_burst(*at)).map(|(_, silent)| silent);
        (count > 0).then_some(Lost { count, after_silence })
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Which local address a route chooses toward a target.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    routes: HashMap<IpAddr, IpAddr>,
}

/// Routes remembered; a crowd talks to a handful of servers, and a hostile one cannot make this grow.
const ROUTES_MAX: usize = 1024;

impl Sources {
    /// The local address toward the first of `peers` that may be reached and that this host has a way to.
    ///
    /// # Errors
    /// None may be reached, there is a way to none of those that may, or this host has no descriptor left to ask.
    pub(crate) fn toward_first(
        &mut self,
        dealt: Option<IpAddr>,
        peers: &[SocketAddr],
        reach: &Reach,
    ) -> Result<IpAddr, ChannelError> {
        let (allowed, refused): (Vec<SocketAddr>, Vec<_>) = peers.iter().partition(|peer| reach(peer.ip()));
        let mut no_way = Vec::new();
        for peer in allowed {
            match self.toward(dealt, peer) {
                Ok(local) => return Ok(local),
                Err(error) if is_no_way(&error) => no_way.push(format!("{peer} ({error})")),
                Err(error) => {
                    return Err(ChannelError::Generator(format!("datagram socket toward {peer}: {error}")));
                }
            }
        }
        if no_way.is_empty() {
            let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
            return Err(ChannelError::NotAllowed(refused.join(", ")));
        }
        Err(ChannelError::NoRoute(no_way.join(", ")))
    }

    /// The local address toward `toward`: the one that the participant was `dealt` if it is of the same family, else
    /// what the route chooses.
    pub(crate) fn toward(&mut self, dealt: Option<IpAddr>, toward: SocketAddr) -> io::Result<IpAddr> {
        if let Some(dealt) = dealt.filter(|dealt| dealt.is_ipv4() == toward.is_ipv4()) {
            return Ok(dealt);
        }
        if let Some(known) = self.routes.get(&toward.ip()) {
            return Ok(*known);
        }
        // Connecting a datagram socket sends nothing; it looks the route up and so chooses the source address.
        let any =
            if toward.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let probe = UdpSocket::bind((any, 0))?;
        probe.connect((toward.ip(), if toward.port() == 0 { 9 } else { toward.port() }))?;
        let local = probe.local_addr()?.ip();
        if self.routes.len() < ROUTES_MAX {
            self.routes.insert(toward.ip(), local);
        }
        Ok(local)
    }
}

/// Whether there is no way to an address, in whatever words the kernel has it: no route, one that leads nowhere
/// (blackhole, prohibit), none of its family.
fn is_no_way(error: &io::Error) -> bool {
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
        let mut sources = Sources::default();
        let mut toward = |dealt: Option<&str>, target: &str| {
            let dealt = dealt.map(|ip| ip.parse().unwrap());
            sources.toward(dealt, target.parse().unwrap()).unwrap().to_string()
        };
        assert_eq!(toward(Some("127.0.0.2"), "127.0.0.1:9"), "127.0.0.2");
        assert_eq!(toward(Some("::1"), "127.0.0.1:9"), "127.0.0.1");
        assert_eq!(toward(None, "127.0.0.1:9"), "127.0.0.1");
        assert_eq!(toward(Some("::1"), "[::1]:9"), "::1");
    }

    #[test]
    fn an_address_without_a_way_to_it_leaves_the_choice_to_the_next() {
        let reach: Reach = Arc::new(|ip: IpAddr| ip != IpAddr::from([127, 0, 0, 9]));
        let first = |peers: &[&str]| {
            let peers: Vec<SocketAddr> = peers.iter().map(|peer| peer.parse().unwrap()).collect();
            Sources::default().toward_first(None, &peers, &reach)
        };
        // Only broadcasts live there: the kernel lets nobody connect.
        let nowhere = "255.255.255.255:9";
        assert_eq!(first(&[nowhere, "127.0.0.9:1", "127.0.0.1:1"]).unwrap().to_string(), "127.0.0.1");
        assert!(matches!(first(&[nowhere]), Err(ChannelError::NoRoute(_))));
        assert!(matches!(first(&["127.0.0.9:1"]), Err(ChannelError::NotAllowed(_))));
    }

    #[test]
    fn nothing_is_sent_where_the_guard_says_no() {
        let reach: Reach = Arc::new(|ip: IpAddr| ip == IpAddr::from([127, 0, 0, 1]));
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut socket = DatagramSocket::bind([127, 0, 0, 1].into(), 1 << 16).unwrap();
        assert_eq!(socket.send("127.0.0.9:9".parse().unwrap(), b"no", &reach), Sending::Refused);
        assert_eq!(socket.send(receiver.local_addr().unwrap(), b"yes", &reach), Sending::Sent);
        assert_eq!(socket.send("127.0.0.9:9".parse().unwrap(), b"no", &reach), Sending::Refused);
        let mut bytes = [0; 8];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), 3);
    }

    #[test]
    fn what_finds_no_way_is_told_from_what_finds_no_room() {
        let error = io::Error::from_raw_os_error;
        for full in [libc::EAGAIN, libc::ENOBUFS, libc::ENOMEM] {
            assert_eq!(Sending::not_taken(&error(full)), Sending::NoRoom);
        }
        for astray in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EPERM, libc::EINVAL, libc::EMSGSIZE] {
            assert!(matches!(Sending::not_taken(&error(astray)), Sending::NoWay(_)));
        }
        let (reach, receiver): (Reach, _) = (Arc::new(|_| true), UdpSocket::bind("127.0.0.1:0").unwrap());
        // A source address of loopback reaches nothing beyond it.
        let (near, far) = (receiver.local_addr().unwrap(), "192.0.2.1:9".parse().unwrap());
        let mut socket = DatagramSocket::bind([127, 0, 0, 1].into(), 1 << 16).unwrap();
        assert!(matches!(socket.send(far, b"far", &reach), Sending::NoWay(_)));
        let batch: Vec<(SockAddr, &[u8])> =
            vec![(far.into(), b"far"), (near.into(), b"near"), (far.into(), b"far"), (near.into(), b"near")];
        let mut lost = Vec::new();
        socket.send_all(&batch, |to, bytes, why| lost.push((to.as_socket(), bytes.len(), why)));
        assert!(lost.len() == 2 && lost.iter().all(|(to, length, _)| (*to, *length) == (Some(far), 3)));
        assert!(lost.iter().all(|(.., why)| matches!(why, Sending::NoWay(_))), "{lost:?}");
        let mut bytes = [0; 8];
        assert_eq!([receiver.recv(&mut bytes).unwrap(), receiver.recv(&mut bytes).unwrap()], [4, 4]);
    }

    #[test]
    fn drops_are_counted_once_even_when_the_kernels_counter_wraps() {
        let mut socket = DatagramSocket::bind([127, 0, 0, 1].into(), 1 << 16).unwrap();
        let now = Instant::now();
        let mut counts = |so_far: u32| socket.note(now, Some(so_far)).map_or(0, |lost| lost.count);
        assert_eq!([5, 5, 9].map(&mut counts), [5, 0, 4]);
        counts(u32::MAX);
        assert_eq!(counts(2), 3);
    }

    #[test]
    fn what_a_silent_peer_sends_at_once_is_told_from_what_a_slow_reader_loses() {
        let mut socket = DatagramSocket::bind([127, 0, 0, 1].into(), 1 << 16).unwrap();
        let start = Instant::now();
        let mut lost =
            |at_ms: u64, so_far: u32| socket.note(start + Duration::from_millis(at_ms), Some(so_far));
        assert_eq!(lost(0, 0), None);
        // It kept sending, and we did not keep reading.
        assert_eq!(lost(20, 3), Some(Lost { count: 3, after_silence: None }));
        assert_eq!(lost(1_000, 3), None);
        // It stood still for 8 s, and sent all of that at once. The count comes with the next datagram that fits.
        assert_eq!(lost(9_000, 3), None);
        let burst = Some(Duration::from_secs(8));
        assert_eq!(lost(9_030, 903), Some(Lost { count: 900, after_silence: burst }));
        assert_eq!(lost(9_900, 904), Some(Lost { count: 1, after_silence: burst }));
        assert_eq!(lost(10_100, 905), Some(Lost { count: 1, after_silence: None }));
    }
}
