//! The ports that an owner's consent names.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

/// What would let something be sent to `to`, for those to whom the guard only says no.
#[must_use]
pub fn way_to_agree(protocol: IpProtocol, to: SocketAddr) -> String {
    format!(
        "a private address needs `--allow-target {}`, a public one a consent proof; an agent has \
         to name the port too, `--allow-load {}/{protocol}`, and one of this machine needs a \
         target on it",
        to.ip(),
        to.port()
    )
}

/// Whether something may be sent to a port, as the consent guard decides.
pub type MayReach = Arc<dyn Fn(IpProtocol, SocketAddr) -> bool + Send + Sync>;

/// The protocol above IP that has a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpProtocol {
    /// A connection.
    Tcp,
    /// Datagrams: media, STUN, QUIC.
    Udp,
}

impl IpProtocol {
    const ALL: [Self; 2] = [Self::Tcp, Self::Udp];

    /// Its name after a port.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Ports from a first to a last one: `8080`, `10000-10100`, or of one protocol only
/// (`10000-10100/udp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    first: u16,
    last: u16,
    protocol: Option<IpProtocol>,
}

/// A text is no range of ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a port from 1 to 65535 or a range, such as `8080`, `5349/tcp` or `10000-10100/udp`")]
pub struct PortRangeError;

impl PortRange {
    /// All ports of UDP.
    pub(super) const ALL_UDP: Self =
        Self { first: 1, last: u16::MAX, protocol: Some(IpProtocol::Udp) };

    /// One port, of both protocols.
    #[must_use]
    pub fn of_port(port: u16) -> Self {
        Self { first: port, last: port, protocol: None }
    }

    /// Reads ranges that commas separate, at least one.
    ///
    /// # Errors
    /// One of them is no range.
    pub fn list(text: &str) -> Result<Vec<Self>, PortRangeError> {
        text.split(',').map(|range| range.trim().parse()).collect()
    }

    /// The same ports by UDP; `None` if they are of TCP only.
    pub(super) fn by_udp(self) -> Option<Self> {
        let is_udp = self.protocol != Some(IpProtocol::Tcp);
        is_udp.then_some(Self { protocol: Some(IpProtocol::Udp), ..self })
    }

    /// Whether `ranges` have all its ports together.
    pub(super) fn is_within(self, ranges: &[Self]) -> bool {
        let mut named =
            IpProtocol::ALL.into_iter().filter(|it| self.protocol.is_none_or(|named| named == *it));
        named.all(|protocol| {
            let mut port = self.first;
            loop {
                let with_port = ranges.iter().filter(|range| range.contains(protocol, port));
                match with_port.map(|range| range.last).max() {
                    None => return false,
                    Some(last) if last >= self.last => return true,
                    Some(last) => port = last.saturating_add(1),
                }
            }
        })
    }

    /// Whether it names this port of this protocol.
    #[must_use]
    pub fn contains(&self, protocol: IpProtocol, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
            && self.protocol.is_none_or(|named| named == protocol)
    }
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let (ports, protocol) = match text.split_once('/') {
            None => (text, None),
            Some((ports, name)) => {
                let named = IpProtocol::ALL.into_iter().find(|protocol| protocol.name() == name);
                (ports, Some(named.ok_or(PortRangeError)?))
            }
        };
        let port = |text: &str| text.parse::<u16>().map_err(|_| PortRangeError);
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let (first, last) = (port(first)?, port(last)?);
        if first == 0 || last < first {
            return Err(PortRangeError);
        }
        Ok(Self { first, last, protocol })
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, protocol } = self;
        write!(f, "{first}")?;
        if last > first {
            write!(f, "-{last}")?;
        }
        protocol.map_or(Ok(()), |protocol| write!(f, "/{protocol}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_its_ports_of_its_protocol_and_no_other() {
        use IpProtocol::{Tcp, Udp};
        for (text, inside, outside) in [
            ("8080", &[(Tcp, 8080), (Udp, 8080)][..], &[(Tcp, 8081), (Udp, 8079)][..]),
            ("5349/tcp", &[(Tcp, 5349)], &[(Udp, 5349)]),
            ("10000-10100/udp", &[(Udp, 10_000), (Udp, 10_100)], &[(Udp, 10_101), (Tcp, 10_000)]),
            ("1-65535", &[(Tcp, 1), (Udp, 65_535)], &[(Tcp, 0)]),
        ] {
            let range: PortRange = text.parse().unwrap();
            assert_eq!(range.to_string(), text);
            assert!(
                inside.iter().all(|(protocol, port)| range.contains(*protocol, *port)),
                "{text}"
            );
            assert!(
                !outside.iter().any(|(protocol, port)| range.contains(*protocol, *port)),
                "{text}"
            );
        }
        for text in ["", "0", "70000", "9-8", "9-", "-9", "8080/sctp", "8080/", "80 ", "80,81"] {
            assert_eq!(text.parse::<PortRange>(), Err(PortRangeError), "{text}");
        }
        let two = PortRange::list("443, 5000-5001/udp").unwrap();
        assert_eq!(two, ["443", "5000-5001/udp"].map(|text| text.parse().unwrap()));
        assert_eq!(PortRange::list("443,"), Err(PortRangeError));
        assert_eq!(PortRange::list(""), Err(PortRangeError));
        for (text, ranges, expect) in [
            ("443", "443", true),
            ("443", "443/tcp", false),
            ("443", "443/udp,443/tcp", true),
            ("10000-10100/udp", "1-10050/udp,10051-65535", true),
            ("10000-10100/udp", "1-10050/udp,10052-65535", false),
            ("10000-10100/udp", "10000-10100/tcp", false),
            ("1-65535", "1-65535", true),
            ("65535", "1-65534", false),
        ] {
            let range: PortRange = text.parse().unwrap();
            assert_eq!(
                range.is_within(&PortRange::list(ranges).unwrap()),
                expect,
                "{text} {ranges}"
            );
        }
        assert_eq!("443/tcp".parse::<PortRange>().unwrap().by_udp(), None);
        assert_eq!(PortRange::of_port(443).by_udp().unwrap().to_string(), "443/udp");
    }
}
