//! The local addresses of a connection's socket.

use std::net::{IpAddr, SocketAddr};

/// The addresses of a media socket, all with the same port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalAddresses(Box<[SocketAddr]>);

impl LocalAddresses {
    /// `addresses`, the most likely first; not empty.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self(addresses.into())
    }

    /// The address that received a datagram, which `local` names when there are several. An unknown
    /// address is returned unchanged: ICE drops what arrives there.
    pub(super) fn received_at(&self, local: Option<IpAddr>) -> Option<SocketAddr> {
        let first = self.0.first()?;
        Some(local.map_or(*first, |ip| SocketAddr::new(ip, first.port())))
    }

    /// The source address to pass to the driver for a datagram from `source`; `None` when there is
    /// only one.
    pub(super) fn leaves_from(&self, source: SocketAddr) -> Option<IpAddr> {
        (self.0.len() > 1).then(|| source.ip())
    }

    /// Whether `address` is one of them.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.0.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_on_several_addresses_says_which() {
        let address = |n: u8| SocketAddr::from(([10, 0, 0, n], 6_000));
        let one = LocalAddresses::new(vec![address(1)]);
        assert_eq!((one.received_at(None), one.leaves_from(address(1))), (Some(address(1)), None));
        let two = LocalAddresses::new(vec![address(1), address(2)]);
        assert_eq!(two.received_at(Some(address(2).ip())), Some(address(2)));
        assert_eq!(two.leaves_from(address(2)), Some(address(2).ip()));
        assert!(two.has(address(2)) && !two.has(address(3)));
    }
}
