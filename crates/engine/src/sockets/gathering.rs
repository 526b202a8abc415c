//! Which local addresses a datagram socket offers as host candidates (RFC 8445 section 5.1.1.1).

use std::net::IpAddr;

/// Most addresses of one socket: each forms a pair with every candidate of the peer, and all pairs
/// are checked.
const LOCALS_MAX: usize = 8;

/// The addresses of this host (`own`) to use in addition to `first`. Loopback only if `first` is
/// loopback of the same family, since the peer may be there; no link-local addresses, which need an
/// interface.
pub(super) fn usable(first: IpAddr, own: &[IpAddr]) -> Vec<IpAddr> {
    let is_useful = |address: &IpAddr| {
        if address.is_loopback() {
            first.is_loopback() && address.is_ipv4() == first.is_ipv4()
        } else {
            !is_link_local(*address)
        }
    };
    let mut locals = vec![first];
    // The family of `first` first: those pairs are more likely to work.
    let (same, other): (Vec<IpAddr>, Vec<_>) = own
        .iter()
        .filter(|address| is_useful(address))
        .partition(|address| address.is_ipv4() == first.is_ipv4());
    locals.extend(same.into_iter().chain(other).filter(|address| *address != first));
    locals.truncate(LOCALS_MAX);
    locals
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<IpAddr> {
        text.split_whitespace().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn every_interface_counts_and_loopback_where_the_peer_may_be_there() {
        let own = addresses("10.0.0.5 127.0.0.1 169.254.3.4 172.17.0.1 ::1 2001:db8::5 fe80::5");
        for (first, expect) in [
            ("10.0.0.5", "10.0.0.5 172.17.0.1 2001:db8::5"),
            ("172.17.0.1", "172.17.0.1 10.0.0.5 2001:db8::5"),
            ("127.0.0.1", "127.0.0.1 10.0.0.5 172.17.0.1 2001:db8::5"),
            ("::1", "::1 2001:db8::5 10.0.0.5 172.17.0.1"),
            ("2001:db8::5", "2001:db8::5 10.0.0.5 172.17.0.1"),
        ] {
            assert_eq!(usable(first.parse().unwrap(), &own), addresses(expect), "{first}");
        }
        let many: Vec<IpAddr> = (1..=200).map(|n| [10, 0, 0, n].into()).collect();
        let some = usable([10, 0, 0, 150].into(), &many);
        assert_eq!((some.len(), some[0]), (LOCALS_MAX, [10, 0, 0, 150].into()));
    }
}
