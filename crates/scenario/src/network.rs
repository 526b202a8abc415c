//! Networks in CIDR notation, and ranges of local addresses.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why a text is not a network or an address range. Its text is the message, and the help behind a
/// `; `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// Neither a network nor an address.
    Network(String),
    /// Bits beyond the prefix are set, so the text is ambiguous.
    HostBits {
        /// The text.
        written: String,
        /// The network that contains it.
        meant: Network,
        /// The address alone.
        address: IpAddr,
    },
    /// Neither an address nor a range.
    Range(String),
    /// First and last are of different families, or in the wrong order.
    RangeOrder(String),
}

impl NetworkError {
    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Network(text) => format!("`{text}` is not a network"),
            Self::HostBits { written, .. } => format!("`{written}` has bits set beyond its prefix"),
            Self::Range(text) => format!("`{text}` is not an address range"),
            Self::RangeOrder(text) => {
                format!("the range `{text}` must go from a lower to a higher address of one family")
            }
        }
    }

    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> Cow<'static, str> {
        match self {
            Self::Network(_) => {
                "write an address with a prefix length such as `10.0.0.0/8` or `fd00::/8`".into()
            }
            Self::HostBits { meant, address, .. } => {
                format!("write `{meant}`, or `{address}` for the one address").into()
            }
            Self::Range(_) => "write `127.0.0.2-127.0.0.20` or one address".into(),
            Self::RangeOrder(_) => "write `127.0.0.2-127.0.0.20`".into(),
        }
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.help())
    }
}

impl std::error::Error for NetworkError {}

/// An IP network: all addresses with the same prefix. One address is a network with the full
/// prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// The network of `address` and the addresses that share its first `prefix_bits`; `None` when
    /// there are not as many bits.
    #[must_use]
    pub fn new(address: IpAddr, prefix_bits: u8) -> Option<Self> {
        (prefix_bits <= width(address))
            .then(|| Self { address: masked(address, prefix_bits), prefix_bits })
    }

    /// Whether it contains `address`. IPv4-mapped IPv6 addresses count as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && masked(address, self.prefix_bits) == self.address
    }

    /// Whether it has the addresses of one host only: it is a single address, or all of it is
    /// loopback (`127.0.0.0/8`, `::1`).
    pub(crate) fn is_of_one_host(&self) -> bool {
        let is_loopback = self.address.is_loopback() && self.prefix_bits >= 8;
        is_loopback || self.prefix_bits == width(self.address)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix_bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix_bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix_bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError::Network(text.chars().take(60).collect());
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let prefix_bits = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| wrong())?,
            None => width(address),
        };
        let network = Self::new(address, prefix_bits).ok_or_else(wrong)?;
        match network.address == address {
            true => Ok(network),
            false => Err(NetworkError::HostBits {
                written: text.trim().to_owned(),
                meant: network,
                address,
            }),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

/// An inclusive range of addresses, from which participants get different local addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// The number of addresses.
    #[must_use]
    pub fn len(&self) -> u128 {
        bits(self.last).saturating_sub(bits(self.first)).saturating_add(1)
    }

    /// A range is never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The address number `index`, wrapping around at the end.
    #[must_use]
    pub fn nth(&self, index: u64) -> IpAddr {
        let offset = u128::from(index) % self.len();
        match self.first {
            // The offset is below the range's length, which fits in the family's bits.
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(
                v4.to_bits().wrapping_add(u32::try_from(offset).unwrap_or(0)),
            )),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits().wrapping_add(offset))),
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl FromStr for AddressRange {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let shown = || text.chars().take(90).collect::<String>();
        let (first, last) = text.trim().split_once('-').unwrap_or((text.trim(), text.trim()));
        let address = |part: &str| part.trim().parse().map_err(|_| NetworkError::Range(shown()));
        let (first, last): (IpAddr, IpAddr) = (address(first)?, address(last)?);
        match first.is_ipv4() == last.is_ipv4() && first <= last {
            true => Ok(Self { first, last }),
            false => Err(NetworkError::RangeOrder(shown())),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_share_its_prefix() {
        for (network, address, expect) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "10.0.0.1", false),
        ] {
            let holds = network.parse::<Network>().unwrap().contains(address.parse().unwrap());
            assert_eq!(holds, expect, "{address} in {network}");
        }
    }

    #[test]
    fn networks_that_could_mean_two_things_are_refused() {
        for (text, help) in [
            ("10.0.0.1/8", "10.0.0.0/8"),
            ("10.0.0.0/33", "10.0.0.0/8"),
            ("10.0.0.0/-1", "10.0.0.0/8"),
            ("ten", "10.0.0.0/8"),
            ("", "10.0.0.0/8"),
        ] {
            let error = text.parse::<Network>().expect_err(text).to_string();
            assert!(error.contains(help), "{error}");
        }
        let error = "ten; eleven".parse::<Network>().unwrap_err();
        assert_eq!(error.message(), "`ten; eleven` is not a network");
        assert!(error.help().starts_with("write an address"), "{}", error.help());
    }

    #[test]
    fn a_range_deals_its_addresses_in_turn() {
        let range: AddressRange = "127.0.0.2-127.0.0.4".parse().unwrap();
        let dealt: Vec<String> = (0..5).map(|i| range.nth(i).to_string()).collect();
        assert_eq!(dealt, ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.2", "127.0.0.3"]);
        assert_eq!(range.len(), 3);
        let all: AddressRange = "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap();
        assert_eq!(all.nth(u64::MAX).to_string(), "::ffff:ffff:ffff:ffff");
        for text in ["127.0.0.4-127.0.0.2", "127.0.0.1-::1", "127.0.0.1-", "a-b", ""] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
