//! The addresses that a connection accepts packets from: candidates that the peer named, and those
//! from which it sent a check that was answered (peer-reflexive, RFC 8445 section 7.3.1.3).
//! Browsers drop packets from other addresses, so a server that responds or sends from one does not
//! work with browsers. The peer's candidates that are not allowed targets are kept too: both
//! explain why a connection is not established.

use std::net::SocketAddr;

use throng_observation::units::count;
use throng_scenario::IpProtocol;
use throng_scenario::consent::way_to_agree;

/// How many addresses of a peer are kept; the oldest is dropped first.
const KNOWN_MAX: usize = 64;

/// The peer's addresses, and statistics of packets from others.
#[derive(Debug, Default)]
pub(super) struct PeerAddresses {
    known: Vec<SocketAddr>,
    /// The address that was checked and the one that responded, the first time that they differed.
    answered_elsewhere: Option<(SocketAddr, SocketAddr)>,
    /// The first unknown address that sent DTLS or media, and the number of datagrams from unknown
    /// addresses.
    stranger: Option<SocketAddr>,
    strange: u64,
    /// Candidates that are not allowed targets: the first, and their number.
    refused: Option<SocketAddr>,
    refusals: usize,
}

impl PeerAddresses {
    /// A candidate of the peer.
    pub(super) fn add(&mut self, address: SocketAddr) {
        if !self.known.contains(&address) {
            if self.known.len() == KNOWN_MAX {
                self.known.remove(0);
            }
            self.known.push(address);
        }
    }

    /// A candidate of the peer that is not an allowed target.
    pub(super) fn refuse(&mut self, address: SocketAddr) {
        self.refused.get_or_insert(address);
        self.refusals += 1;
    }

    /// A check of `asked` was answered from `from`.
    pub(super) fn answered_elsewhere(&mut self, asked: SocketAddr, from: SocketAddr) {
        self.answered_elsewhere.get_or_insert((asked, from));
    }

    /// Whether DTLS or media from `source` is the peer's.
    pub(super) fn has(&self, source: SocketAddr) -> bool {
        self.known.contains(&source)
    }

    /// DTLS or media arrived from an unknown address; returns whether it is the first time.
    pub(super) fn unknown_source(&mut self, source: SocketAddr) -> bool {
        self.stranger.get_or_insert(source);
        self.strange += 1;
        self.strange == 1
    }

    /// Possible reasons why the connection fails: packets from unknown addresses, and candidates
    /// that are not allowed targets.
    pub(super) fn explanation(&self) -> Option<String> {
        let answered = self.answered_elsewhere.map(|(asked, from)| match asked.ip() == from.ip() {
            _ if asked == from => format!("{asked} answered to another local address than asked"),
            true => format!("{asked} answered from another port, {}", from.port()),
            false => format!("{asked} answered from another address, {from}"),
        });
        let strange = self.stranger.map(|from| {
            let datagrams = count(self.strange, "datagrams of DTLS or media");
            format!(
                "{datagrams} came from another address, {from}, which is no candidate of the server"
            )
        });
        let refused = self.refused.map(|address| {
            let others = match self.refusals {
                1 => String::new(),
                more => format!(" and {} more", more - 1),
            };
            format!(
                "the server's candidate {address}{others} may not be sent to ({})",
                way_to_agree(IpProtocol::Udp, address)
            )
        });
        let reported: Vec<_> = answered.into_iter().chain(strange).chain(refused).collect();
        (!reported.is_empty()).then(|| reported.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_accepted_from_its_candidates_and_others_are_named() {
        let address = |n: u8| SocketAddr::from(([10, 0, 0, n], 5_000));
        let mut peers = PeerAddresses::default();
        assert_eq!(peers.explanation(), None);
        peers.add(address(1));
        assert!(peers.has(address(1)) && !peers.has(address(2)));
        assert!(peers.unknown_source(address(2)) && !peers.unknown_source(address(3)));
        peers.answered_elsewhere(address(1), address(2));
        peers.answered_elsewhere(address(1), address(4));
        assert_eq!(
            peers.explanation().unwrap(),
            "10.0.0.1:5000 answered from another address, 10.0.0.2:5000; 2 datagrams of DTLS or media came from another \
             address, 10.0.0.2:5000, which is no candidate of the server"
        );
        let mut refused = PeerAddresses::default();
        refused.refuse("192.168.7.1:9".parse().unwrap());
        refused.refuse("192.168.7.2:9".parse().unwrap());
        assert_eq!(
            refused.explanation().unwrap(),
            "the server's candidate 192.168.7.1:9 and 1 more may not be sent to (a private address needs `--allow-target \
             192.168.7.1`, a public one a consent proof; an agent has to name the port too, `--allow-load 9/udp`, and one of \
             this machine needs a target on it)"
        );
        (5..=100).for_each(|n| peers.add(address(n)));
        assert!(
            peers.known.len() == KNOWN_MAX && peers.has(address(100)) && !peers.has(address(5))
        );
    }
}
