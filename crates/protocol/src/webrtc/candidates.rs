//! Addresses that the peer may have, before the socket toward it is open.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use throng_scenario::IpProtocol;

use super::options::MayReach;
use super::sdp::Description;
use super::session::RemoteCandidate;
use crate::participant::Open;

/// TEST-NET-1 (RFC 5737): nothing is sent there; it only selects the default route.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
/// How many addresses of an offer are used; the rest is ignored.
const ADDRESSES_MAX: usize = 16;

/// The allowed UDP candidates of an offer, in its order.
pub(super) fn offered_addresses(sdp: &str, may_reach: &MayReach) -> Vec<SocketAddr> {
    let candidates = Description::candidates_of(sdp);
    let usable = candidates.iter().filter_map(|text| RemoteCandidate::parse(text).ok());
    let addresses = usable.filter(RemoteCandidate::is_udp).map(|candidate| candidate.address());
    addresses.filter(|address| may_reach(IpProtocol::Udp, *address)).take(ADDRESSES_MAX).collect()
}

/// The socket toward a peer whose candidates are `named`. If there are none, as when the
/// participant offers first or the peer trickles all its candidates, media may use another address
/// than `signalling`: another address of the same host or, where signalling passes a proxy, another
/// host.
pub(super) fn socket_toward(named: Vec<SocketAddr>, signalling: Option<SocketAddr>) -> Open {
    if named.is_empty() {
        let toward = vec![signalling.unwrap_or(ANYWHERE)];
        return Open::Datagrams { toward, otherwise: None, gathers: true };
    }
    Open::Datagrams { toward: named, otherwise: signalling, gathers: false }
}

/// A candidate of an offer arrived separately, before the socket was opened: it becomes an address
/// of the peer.
pub(super) fn named_late(open: &mut Open, candidate: SocketAddr) {
    let Open::Datagrams { toward, otherwise, gathers } = open else { return };
    if std::mem::replace(gathers, false) {
        *otherwise = toward.pop();
        toward.clear();
    }
    if toward.len() < ADDRESSES_MAX {
        toward.push(candidate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_gathered_until_a_candidate_says_where_to_look() {
        let address = |n: u8| SocketAddr::from(([10, 0, 0, n], 5_000));
        let mut open = socket_toward(Vec::new(), Some(address(1)));
        assert_eq!(
            open,
            Open::Datagrams { toward: vec![address(1)], otherwise: None, gathers: true }
        );
        for n in [2, 3] {
            named_late(&mut open, address(n));
        }
        assert_eq!(open, socket_toward(vec![address(2), address(3)], Some(address(1))));
    }
}
