//! The consent guard: a run may send to loopback and to this host; all other targets have to
//! consent first.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::network::Network;

mod agent;
pub use agent::{AgentProof, AgentProofError};

mod expiry;

mod places;
pub use places::NamedPlace;
pub(crate) use places::named_urls;

mod proof;
pub use proof::{ConsentProof, ConsentProofError, DNS_LABEL, WELL_KNOWN_PATH};

mod secret;
pub use secret::{ConsentSecret, ConsentSecretError};

/// The addresses that a run may send to. Checked for every address that a server names.
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    own_addresses: HashSet<IpAddr>,
    allowed_networks: Vec<Network>,
    proven: HashSet<IpAddr>,
}

/// Why an address may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitReason {
    /// Packets never leave this host.
    Loopback,
    /// It is one of this host's own addresses.
    OwnAddress,
    /// A private address within an allowed network.
    AllowedNetwork,
    /// An address that serves a consent proof, or at which the owner's agent answers.
    Proven,
}

/// Why an address may not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// `0.0.0.0`, `::`, or another address of "this network" (RFC 1122 3.2.1.3).
    Unspecified(IpAddr),
    /// A multicast address.
    Multicast(IpAddr),
    /// `255.255.255.255`, or reserved space (240.0.0.0/4).
    Broadcast(IpAddr),
    /// A private, link-local or carrier-grade NAT address outside the allowed networks.
    PrivateNotAllowed(IpAddr),
    /// A public address without proof of consent.
    PublicNotProven(IpAddr),
}

impl Refusal {
    /// The refused address; IPv4-mapped IPv6 addresses as IPv4.
    #[must_use]
    pub fn address(self) -> IpAddr {
        match self {
            Self::Unspecified(address)
            | Self::Multicast(address)
            | Self::Broadcast(address)
            | Self::PrivateNotAllowed(address)
            | Self::PublicNotProven(address) => address,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unspecified(address) => write!(f, "{address} is not a destination address"),
            Self::Multicast(address) => {
                write!(f, "{address} is a multicast address; throng never sends to these")
            }
            Self::Broadcast(address) => {
                write!(
                    f,
                    "{address} is a broadcast or reserved address; throng never sends to these"
                )
            }
            Self::PrivateNotAllowed(address) => write!(
                f,
                "{address} is private and not allowed: add its network to target.allow (`--allow-target {address}`)"
            ),
            Self::PublicNotProven(address) => write!(
                f,
                "{address} is public and has not consented: it has to serve a consent proof itself \
                 (docs/consent.md)"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

impl AddressPolicy {
    /// The policy of a host with `own_addresses`, and with these allowed networks.
    #[must_use]
    pub fn new(
        own_addresses: impl IntoIterator<Item = IpAddr>,
        allowed_networks: impl IntoIterator<Item = Network>,
    ) -> Self {
        Self {
            own_addresses: own_addresses
                .into_iter()
                .map(|address| address.to_canonical())
                .collect(),
            allowed_networks: allowed_networks.into_iter().collect(),
            proven: HashSet::new(),
        }
    }

    /// Adds the address that served `_proof`. A DNS name proves nothing about the owner of its
    /// addresses, so each address needs its own proof. The caller has validated it
    /// ([`ConsentProof::validate`]); the parameter prevents calls without one.
    pub fn prove(&mut self, _proof: &ConsentProof, address: IpAddr) {
        self.proven.insert(address.to_canonical());
    }

    /// Adds the address at which the owner's agent answers. The caller has validated the proof
    /// ([`AgentProof::validate`]) and withdraws it when the agent ends.
    pub fn prove_by_agent(&mut self, proof: &AgentProof) {
        self.proven.insert(proof.answered_at.to_canonical());
    }

    /// Removes all proven addresses: consent was withdrawn or has expired.
    pub fn withdraw(&mut self) {
        self.proven.clear();
    }

    /// Whether `address` may be sent to.
    ///
    /// # Errors
    /// With the reason why it may not.
    pub fn permits(&self, address: IpAddr) -> Result<PermitReason, Refusal> {
        let address = address.to_canonical();
        // Never allowed, whatever the networks and proofs.
        match address {
            IpAddr::V4(v4) if v4.octets()[0] == 0 => return Err(Refusal::Unspecified(address)),
            IpAddr::V6(v6) if v6.is_unspecified() => return Err(Refusal::Unspecified(address)),
            _ if address.is_multicast() => return Err(Refusal::Multicast(address)),
            IpAddr::V4(v4) if v4.octets()[0] >= 240 => return Err(Refusal::Broadcast(address)),
            _ => {}
        }
        if address.is_loopback() {
            return Ok(PermitReason::Loopback);
        }
        if self.own_addresses.contains(&address) {
            return Ok(PermitReason::OwnAddress);
        }
        let private = is_private(address);
        // Allowed networks open private addresses only: `0.0.0.0/0` is not the consent of the whole
        // Internet.
        if private && self.allowed_networks.iter().any(|network| network.contains(address)) {
            return Ok(PermitReason::AllowedNetwork);
        }
        if self.proven.contains(&address) {
            return Ok(PermitReason::Proven);
        }
        Err(if private {
            Refusal::PrivateNotAllowed(address)
        } else {
            Refusal::PublicNotProven(address)
        })
    }
}

/// Addresses without global meaning: RFC 1918, RFC 3927 link-local, RFC 6598
/// carrier-grade NAT, RFC 2544 benchmarking, RFC 4193 unique local, RFC 4291 link-local.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || is_shared_or_benchmark(v4),
        IpAddr::V6(v6) => is_unique_or_link_local(v6),
    }
}

fn is_shared_or_benchmark(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    (a == 100 && b & 0b1100_0000 == 64) || (a == 198 && b & 0b1111_1110 == 18)
}

fn is_unique_or_link_local(v6: Ipv6Addr) -> bool {
    let head = v6.segments()[0];
    head & 0xfe00 == 0xfc00 || head & 0xffc0 == 0xfe80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> AddressPolicy {
        let own = ["203.0.113.5", "192.168.7.1"].map(|text| text.parse().unwrap());
        let allowed = ["10.1.0.0/16", "fd00:1::/32", "0.0.0.0/0"].map(|text| text.parse().unwrap());
        AddressPolicy::new(own, allowed.into_iter().take(2))
    }

    #[test]
    fn each_kind_of_address_is_judged_by_its_own_rule() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, expect) in [
            ("127.0.0.1", Ok(PermitReason::Loopback)),
            ("127.255.0.9", Ok(PermitReason::Loopback)),
            ("::1", Ok(PermitReason::Loopback)),
            ("::ffff:127.0.0.1", Ok(PermitReason::Loopback)),
            ("203.0.113.5", Ok(PermitReason::OwnAddress)),
            ("::ffff:192.168.7.1", Ok(PermitReason::OwnAddress)),
            ("10.1.2.3", Ok(PermitReason::AllowedNetwork)),
            ("::ffff:10.1.2.3", Ok(PermitReason::AllowedNetwork)),
            ("fd00:1::9", Ok(PermitReason::AllowedNetwork)),
            ("10.2.0.1", Err(Refusal::PrivateNotAllowed(address("10.2.0.1")))),
            ("172.16.0.1", Err(Refusal::PrivateNotAllowed(address("172.16.0.1")))),
            ("169.254.169.254", Err(Refusal::PrivateNotAllowed(address("169.254.169.254")))),
            ("100.64.0.1", Err(Refusal::PrivateNotAllowed(address("100.64.0.1")))),
            ("198.19.0.1", Err(Refusal::PrivateNotAllowed(address("198.19.0.1")))),
            ("fd00:2::1", Err(Refusal::PrivateNotAllowed(address("fd00:2::1")))),
            ("fe80::1", Err(Refusal::PrivateNotAllowed(address("fe80::1")))),
            ("100.128.0.1", Err(Refusal::PublicNotProven(address("100.128.0.1")))),
            ("8.8.8.8", Err(Refusal::PublicNotProven(address("8.8.8.8")))),
            ("2001:db8::1", Err(Refusal::PublicNotProven(address("2001:db8::1")))),
            ("0.0.0.0", Err(Refusal::Unspecified(address("0.0.0.0")))),
            ("0.1.2.3", Err(Refusal::Unspecified(address("0.1.2.3")))),
            ("::", Err(Refusal::Unspecified(address("::")))),
            ("::ffff:0.0.0.0", Err(Refusal::Unspecified(address("0.0.0.0")))),
            ("224.0.0.1", Err(Refusal::Multicast(address("224.0.0.1")))),
            ("ff02::1", Err(Refusal::Multicast(address("ff02::1")))),
            ("255.255.255.255", Err(Refusal::Broadcast(address("255.255.255.255")))),
            ("240.0.0.1", Err(Refusal::Broadcast(address("240.0.0.1")))),
        ] {
            assert_eq!(reach().permits(address(text)), expect, "{text}");
        }
    }

    #[test]
    fn an_allowed_network_never_opens_the_public_internet_or_groups() {
        let reach = AddressPolicy::new([], ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()]);
        for text in ["8.8.8.8", "2001:db8::1", "224.0.0.1", "255.255.255.255", "0.0.0.0"] {
            assert!(reach.permits(text.parse().unwrap()).is_err(), "{text}");
        }
        assert_eq!(reach.permits("192.168.1.1".parse().unwrap()), Ok(PermitReason::AllowedNetwork));
    }
}
