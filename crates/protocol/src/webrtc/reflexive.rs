//! Gathers a server-reflexive candidate (RFC 8445 section 5.1.1.2) from a STUN server (RFC 8489) on
//! the media socket.
//!
//! Not every signalling protocol supports trickle, so offer and answer wait for the STUN server:
//! until it responds, or for [`WAIT`]. Without a response only the host candidates are used.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use aws_lc_rs::rand;

use super::checks::{is_answer, mapped_address};
use crate::participant::Transmit;

/// How long a description waits: a STUN server that does not respond must not delay a join much.
const WAIT: Duration = Duration::from_millis(500);
/// The time from the first request to the second, as in libwebrtc (`STUN_INITIAL_RTO`). With the
/// 500 ms of RFC 8489 section 6.2.1 there would be no second request within [`WAIT`].
const FIRST_REPEAT: Duration = Duration::from_millis(250);

/// The reason for the deadline of a participant that gathers.
pub(super) const WAITS_FOR: &str = "STUN server's answer";

/// The addresses of the media socket.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Its addresses, the most likely first.
    pub(super) locals: Vec<SocketAddr>,
    /// A server-reflexive address, and its base among the local addresses.
    pub(super) reflexive: Option<(SocketAddr, SocketAddr)>,
}

/// The candidates of a media socket while they are gathered.
#[derive(Debug)]
pub(super) struct Gathering {
    gathered: Gathered,
    /// `None` if there is no STUN server, or it has responded.
    asking: Option<Asking>,
}

/// A transaction with the STUN server.
#[derive(Debug)]
struct Asking {
    server: SocketAddr,
    request: [u8; 20],
    repeat_at: Instant,
    /// Doubles with each request.
    repeat_after: Duration,
    until: Instant,
}

impl Gathering {
    /// Gathers for a socket on `locals` from `server`, if the socket can reach it.
    pub(super) fn new(now: Instant, server: Option<SocketAddr>, locals: Vec<SocketAddr>) -> Self {
        let asking =
            server.filter(|server| lead_to(&locals, *server)).and_then(|to| Asking::new(now, to));
        Self { gathered: Gathered { locals, reflexive: None }, asking }
    }

    /// The request, if it is due. Routing chooses the source address.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<Transmit> {
        let asking =
            self.asking.as_mut().filter(|asking| asking.repeat_at <= now && now < asking.until)?;
        asking.repeat_at = now + asking.repeat_after;
        asking.repeat_after *= 2;
        Some(Transmit { to: asking.server, from: None, bytes: asking.request.to_vec() })
    }

    /// A datagram arrived from `source`, at the address `local` where the socket has several. It is
    /// ignored unless it is the STUN server's response to the request.
    pub(super) fn datagram(&mut self, source: SocketAddr, local: Option<IpAddr>, bytes: &[u8]) {
        // Magic cookie and transaction id.
        let is_ours = |asking: &mut Asking| {
            asking.server == source && asking.request.get(4..) == bytes.get(4..20)
        };
        if self.asking.take_if(is_ours).is_none() {
            return;
        }
        let locals = &self.gathered.locals;
        let base =
            local.map_or(locals.first(), |ip| locals.iter().find(|own| own.ip() == ip)).copied();
        let mapped =
            mapped_address(bytes).filter(|mapped| is_answer(bytes) && !locals.contains(mapped));
        self.gathered.reflexive = mapped.zip(base);
    }

    /// The next deadline; `None` when gathering is complete.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.asking.as_ref().map(|asking| asking.repeat_at.min(asking.until))
    }

    /// Whether gathering is complete or timed out.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.asking.as_ref().is_none_or(|asking| now >= asking.until)
    }

    /// The candidates gathered.
    pub(super) fn into_gathered(self) -> Gathered {
        self.gathered
    }
}

impl Asking {
    fn new(now: Instant, server: SocketAddr) -> Option<Self> {
        // A binding request without attributes, and the magic cookie (RFC 8489 section 5).
        let mut request =
            [0x00, 0x01, 0, 0, 0x21, 0x12, 0xa4, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        rand::fill(request.get_mut(8..)?).ok()?;
        Some(Self {
            server,
            request,
            repeat_at: now,
            repeat_after: FIRST_REPEAT,
            until: now + WAIT,
        })
    }
}

/// Whether one of `locals` can reach `server`: it has the same address family, and loopback reaches
/// only this host.
fn lead_to(locals: &[SocketAddr], server: SocketAddr) -> bool {
    let leads = |local: &SocketAddr| {
        local.is_ipv4() == server.is_ipv4()
            && (server.ip().is_loopback() || !local.ip().is_loopback())
    };
    locals.iter().any(leads)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The STUN server of the tests.
    pub(in crate::webrtc) const STUN: &str = "10.0.0.3:3478";
    /// The server-reflexive address in the tests.
    pub(in crate::webrtc) const OUTSIDE: &str = "10.99.0.1:40000";

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// The success response to `request`: the IPv4 address `mapped` in XOR-MAPPED-ADDRESS (RFC 8489
    /// section 14.2).
    pub(in crate::webrtc) fn answer(request: &[u8], mapped: &str) -> Vec<u8> {
        let SocketAddr::V4(mapped) = address(mapped) else { panic!("{mapped}") };
        let port = mapped.port() ^ 0x2112;
        let ip = mapped.ip().to_bits() ^ 0x2112_a442;
        let attribute =
            [&[0x00, 0x20, 0, 8, 0, 1][..], &port.to_be_bytes(), &ip.to_be_bytes()].concat();
        [&[0x01, 0x01, 0, 12][..], &request[4..20], &attribute].concat()
    }

    fn asking(start: Instant, locals: &[&str]) -> (Gathering, Vec<u8>) {
        let locals = locals.iter().map(|local| address(local)).collect();
        let mut gathering = Gathering::new(start, Some(address(STUN)), locals);
        let sent = gathering.poll_request(start).unwrap();
        assert_eq!((sent.to, sent.from), (address(STUN), None));
        (gathering, sent.bytes)
    }

    #[test]
    fn the_stun_servers_own_answer_says_where_we_are_seen() {
        let start = Instant::now();
        let (mut gathering, request) = asking(start, &["10.0.0.2:6000", "10.1.0.2:6000"]);
        assert_eq!(request[..8], [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]);
        assert_ne!(
            request,
            asking(start, &["10.0.0.2:6000"]).1,
            "each transaction has its own number"
        );
        let right = answer(&request, OUTSIDE);
        let mut other = right.clone();
        other[19] ^= 1;
        for (source, bytes) in [
            ("10.0.0.4:3478", &right[..]),
            ("10.0.0.3:3479", &right),
            (STUN, &other),
            (STUN, &right[..7]),
        ] {
            gathering.datagram(address(source), None, bytes);
            assert!(!gathering.is_over(start), "{source} {bytes:?}");
        }
        gathering.datagram(address(STUN), Some([10, 1, 0, 2].into()), &right);
        assert!(gathering.is_over(start) && gathering.next_timeout().is_none());
        // A second response is ignored.
        gathering.datagram(address(STUN), None, &answer(&request, "10.99.0.9:1"));
        let found = gathering.into_gathered();
        assert_eq!(found.reflexive, Some((address(OUTSIDE), address("10.1.0.2:6000"))));
        assert_eq!(found.locals.len(), 2);
    }

    #[test]
    fn without_a_nat_and_with_a_refusal_there_is_no_such_candidate() {
        let start = Instant::now();
        for is_refused in [false, true] {
            let (mut gathering, request) = asking(start, &["10.0.0.2:6000"]);
            let refusal = [&[0x01, 0x11, 0, 0][..], &request[4..20]].concat();
            let said = if is_refused { refusal } else { answer(&request, "10.0.0.2:6000") };
            gathering.datagram(address(STUN), None, &said);
            assert!(gathering.is_over(start));
            assert_eq!(gathering.into_gathered().reflexive, None);
        }
    }

    #[test]
    fn a_silent_server_is_asked_twice_and_waited_for_half_a_second() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let (mut gathering, request) = asking(start, &["10.0.0.2:6000"]);
        assert_eq!(gathering.next_timeout(), Some(at(250)));
        assert_eq!(gathering.poll_request(at(249)), None);
        assert_eq!(gathering.poll_request(at(250)).unwrap().bytes, request);
        assert_eq!(gathering.next_timeout(), Some(at(500)));
        assert!(!gathering.is_over(at(499)));
        assert!(gathering.is_over(at(500)) && gathering.poll_request(at(2_000)).is_none());
        assert_eq!(gathering.into_gathered().reflexive, None);
    }

    #[test]
    fn an_unreachable_source_is_not_waited_for() {
        let start = Instant::now();
        for (server, locals) in [
            (None, &["10.0.0.2:6000"][..]),
            (Some("[2001:db8::3]:3478"), &["10.0.0.2:6000"]),
            (Some(STUN), &["127.0.0.1:6000", "[2001:db8::2]:6000"]),
        ] {
            let locals = locals.iter().map(|local| address(local)).collect();
            let mut gathering = Gathering::new(start, server.map(address), locals);
            assert!(
                gathering.is_over(start) && gathering.poll_request(start).is_none(),
                "{server:?}"
            );
        }
    }
}
