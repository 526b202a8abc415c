//! Which local addresses lead to a peer: what routing chooses, and what else this host has.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use throng_protocol::participant::ChannelError;
use throng_scenario::IpProtocol;

use super::gathering;
use crate::config::Reach;
use crate::preflight;

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
    pub(super) fn toward(
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
    use crate::sockets::DatagramSocket;

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

    /// SRS, of a URL with localhost, keeps to the first source that it hears.
    #[test]
    fn a_peer_on_another_address_of_this_host_first_hears_that_one() {
        let [loopback, own] = [[127, 0, 0, 1], [10, 0, 0, 5]].map(IpAddr::from);
        let now = Instant::now();
        let first_heard = |locals: &[IpAddr], served: IpAddr| {
            // This host reaches each of its own addresses from the same one.
            let routes = [loopback, own].map(|ip| (ip, (now, Ok(ip)))).into();
            let mut sources = SourceAddresses { routes, own: None };
            let mut socket = DatagramSocket::bind(locals, None, 1 << 16).unwrap();
            let to = SocketAddr::new(served, 8000);
            let mut sent = locals.iter().copied();
            sent.find(|from| !socket.is_detour(Some(*from), to, now, &mut sources))
        };
        for locals in [[loopback, own], [own, loopback]] {
            assert_eq!(first_heard(&locals, own), Some(own), "{locals:?}");
            assert_eq!(first_heard(&locals, loopback), Some(loopback), "{locals:?}");
        }
        // Where there is no other, it is one.
        assert_eq!(first_heard(&[loopback], own), Some(loopback));
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
}
