//! Where the peer may be, before the socket toward it is open.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::sdp::Description;
use super::session::RemoteCandidate;
use super::viewer::MayReach;

/// TEST-NET-1 (RFC 5737): nothing is sent there, it only names the default route.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
/// Of an offer that names more, the rest is not asked for.
const ADDRESSES_MAX: usize = 16;

/// The UDP candidates of an offer that may be reached, in the order of the offer.
pub(super) fn offered_addresses(sdp: &str, may_reach: &MayReach) -> Vec<SocketAddr> {
    let candidates = Description::candidates_of(sdp);
    let usable = candidates.iter().filter_map(|text| RemoteCandidate::parse(text).ok());
    let addresses = usable.filter(RemoteCandidate::is_udp).map(|candidate| candidate.address());
    addresses.filter(|address| may_reach(address.ip())).take(ADDRESSES_MAX).collect()
}

/// What is `named`, then the signalling's address, else anywhere.
pub(super) fn first_of(mut named: Vec<SocketAddr>, signalling: Option<SocketAddr>) -> Vec<SocketAddr> {
    named.extend(signalling);
    if named.is_empty() {
        named.push(ANYWHERE);
    }
    named
}
