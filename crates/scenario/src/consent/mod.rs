//! The consent guard: a run may send to this host where its target is, and nobody who is elsewhere
//! can send it here; all other targets have to consent first, for the ports that they name.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::network::Network;

mod agent;
pub use agent::{AgentProof, AgentProofError};

mod expiry;

mod places;
pub use places::NamedPlace;
pub(crate) use places::named_urls;

mod ports;
pub use ports::{IpProtocol, MayReach, PortRange, PortRangeError, way_to_agree};

mod proof;
pub use proof::{ConsentProof, ConsentProofError, DNS_LABEL, WELL_KNOWN_PATH};

mod secret;
pub use secret::{ConsentSecret, ConsentSecretError};

/// Where a run may send to. Checked for every address and port that a server names.
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    own_addresses: HashSet<IpAddr>,
    allowed_networks: Vec<Network>,
    /// The ports for which the owners of addresses have agreed.
    agreed: HashMap<IpAddr, Vec<PortRange>>,
    here: ThisHost,
}

/// What of this host may be reached. Its services have not agreed to requests that a server
/// elsewhere chooses, so only what the user has named is open: the rule of browsers (Private
/// Network Access).
#[derive(Clone, Debug, Default)]
struct ThisHost {
    /// All of it: the target is here.
    is_open: bool,
    /// Servers here that are named beside a target elsewhere.
    servers: HashSet<SocketAddr>,
    /// Viewers here exchange data with each other, at addresses other than loopback.
    has_peers: bool,
}

/// Why an address may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitReason {
    /// Packets never leave this host.
    Loopback,
    /// It is one of this host's own addresses.
    OwnAddress,
    /// A private address within an allowed network, or one of this host that is allowed itself.
    AllowedNetwork,
    /// A port that a consent proof at its address names, or the owner's agent that answers there.
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
    /// This host, where neither the target is nor a server that was named.
    ThisHost(IpAddr),
    /// A port that the consent of its address's owner does not name.
    OtherPort(IpProtocol, SocketAddr),
    /// Port 0.
    NoPort(IpAddr),
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
            | Self::PublicNotProven(address)
            | Self::ThisHost(address)
            | Self::NoPort(address) => address,
            Self::OtherPort(_, to) => to.ip(),
        }
    }

    /// Whether a consent proof that its address publishes would lift it: the address is public.
    #[must_use]
    pub fn needs_proof(self) -> bool {
        match self {
            Self::PublicNotProven(_) => true,
            Self::ThisHost(address) => is_public(address),
            Self::OtherPort(_, to) => is_public(to.ip()),
            Self::Unspecified(_)
            | Self::Multicast(_)
            | Self::Broadcast(_)
            | Self::PrivateNotAllowed(_)
            | Self::NoPort(_) => false,
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
                "{address} is private and not allowed: add its network to target.allow \
                 (`--allow-target {address}`)"
            ),
            Self::PublicNotProven(address) => write!(
                f,
                "{address} is public and has not consented: it has to serve a consent proof itself \
                 (docs/consent.md)"
            ),
            Self::ThisHost(address) => write!(
                f,
                "{address} is this machine, and not all of the target is on it: a server \
                 elsewhere may not send the crowd here, unless the address itself is allowed \
                 (`--allow-target {address}`)"
            ),
            Self::NoPort(address) => write!(f, "port 0 of {address} is not a destination"),
            Self::OtherPort(protocol, to) => write!(
                f,
                "{} has not agreed to load on {protocol} port {port}: its agent has to name it \
                 with `--allow-load {port}/{protocol}`, or its consent proof with `{key} = {port}`",
                to.ip(),
                port = to.port(),
                key = match protocol {
                    IpProtocol::Tcp => "ports",
                    IpProtocol::Udp => "media_ports",
                }
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
            agreed: HashMap::new(),
            here: ThisHost::default(),
        }
    }

    /// Opens all of this host: nobody but the user says where to send.
    #[must_use]
    pub fn with_this_host(mut self) -> Self {
        self.here.is_open = true;
        self
    }

    /// Names the target, whose host has these `addresses` and no other. Where all of them are this
    /// host's, so is the target, and all of this host may be reached. A name of several machines
    /// opens nothing here: its address here is judged as those of the others are, because the port
    /// of signalling alone would leave its media refused.
    pub fn name_target(&mut self, addresses: &[IpAddr]) {
        self.here.is_open |= self.are_all_here(addresses);
    }

    /// Names a server beside the target, whose host has these `addresses` and no other: its port
    /// may be reached where it is on this host. A name that has addresses elsewhere too opens
    /// nothing of loopback: its owner could have added that address to a name of the Internet.
    pub fn name_server(&mut self, addresses: &[IpAddr], port: u16) {
        let are_all_here = self.are_all_here(addresses);
        let named = addresses.iter().map(IpAddr::to_canonical).filter(|address| {
            are_all_here || (self.own_addresses.contains(address) && !address.is_loopback())
        });
        let named: Vec<_> = named.map(|address| SocketAddr::new(address, port)).collect();
        self.here.servers.extend(named);
    }

    /// Viewers of this host exchange data over data channels: they are at its own addresses.
    pub fn name_peers(&mut self) {
        self.here.has_peers = true;
    }

    fn are_all_here(&self, addresses: &[IpAddr]) -> bool {
        let mut all = addresses.iter().map(IpAddr::to_canonical);
        !addresses.is_empty()
            && all.all(|address| address.is_loopback() || self.own_addresses.contains(&address))
    }

    /// Adds the ports that `proof` names at the address that served it. A DNS name proves nothing
    /// about the owner of its addresses, so each address needs its own proof. The caller has
    /// validated it ([`ConsentProof::validate`]).
    pub fn prove(&mut self, proof: &ConsentProof, address: IpAddr) {
        let agreed = self.agreed.entry(address.to_canonical()).or_default();
        agreed.extend(proof.opened_ports());
    }

    /// Adds the ports that the owner's agent names at the address at which it answers. The caller
    /// has validated the proof ([`AgentProof::validate`]) and withdraws it when the agent ends.
    pub fn prove_by_agent(&mut self, proof: &AgentProof) {
        let agreed = self.agreed.entry(proof.answered_at.to_canonical()).or_default();
        agreed.extend(&proof.ports);
    }

    /// Removes all proven addresses: consent was withdrawn or has expired.
    pub fn withdraw(&mut self) {
        self.agreed.clear();
    }

    /// Whether `to` may be sent to by `protocol`.
    ///
    /// # Errors
    /// With the reason why it may not.
    pub fn permits(&self, protocol: IpProtocol, to: SocketAddr) -> Result<PermitReason, Refusal> {
        match to.port() {
            // Linux sends a SYN to it, and no range of ports that an owner names has it.
            0 => Err(Refusal::NoPort(to.ip().to_canonical())),
            port => self.judge(to.ip().to_canonical(), Some((protocol, port))),
        }
    }

    /// Whether any port of `address` may be reached.
    ///
    /// # Errors
    /// With the reason why none may be.
    pub fn permits_address(&self, address: IpAddr) -> Result<PermitReason, Refusal> {
        self.judge(address.to_canonical(), None)
    }

    /// Judges a port of `address`, which is canonical; `None`: any of its ports.
    fn judge(
        &self,
        address: IpAddr,
        port: Option<(IpProtocol, u16)>,
    ) -> Result<PermitReason, Refusal> {
        // Never allowed, whatever the networks and proofs.
        match address {
            IpAddr::V4(v4) if v4.octets()[0] == 0 => return Err(Refusal::Unspecified(address)),
            IpAddr::V6(v6) if v6.is_unspecified() => return Err(Refusal::Unspecified(address)),
            _ if address.is_multicast() => return Err(Refusal::Multicast(address)),
            IpAddr::V4(v4) if v4.octets()[0] >= 240 => return Err(Refusal::Broadcast(address)),
            _ => {}
        }
        let is_here = self.are_all_here(&[address]);
        if is_here && self.here.permits(address, port) {
            let is_loopback = address.is_loopback();
            return Ok(if is_loopback { PermitReason::Loopback } else { PermitReason::OwnAddress });
        }
        let private = is_private(address);
        // Allowed networks open private addresses only, and this host only where it is written:
        // `0.0.0.0/0` is not the consent of the whole Internet, and the network of a target is not
        // that of every service here.
        let is_allowed = |network: &Network| {
            let names = if is_here { network.is_of_one_host() } else { private };
            names && network.contains(address)
        };
        if self.allowed_networks.iter().any(is_allowed) {
            return Ok(PermitReason::AllowedNetwork);
        }
        let agreed = self.agreed.get(&address);
        let names =
            |range: &PortRange| port.is_none_or(|(protocol, port)| range.contains(protocol, port));
        if agreed.is_some_and(|ranges| ranges.iter().any(names)) {
            return Ok(PermitReason::Proven);
        }
        Err(if let (Some(_), Some((protocol, port))) = (agreed, port) {
            Refusal::OtherPort(protocol, SocketAddr::new(address, port))
        } else if is_here {
            Refusal::ThisHost(address)
        } else if private {
            Refusal::PrivateNotAllowed(address)
        } else {
            Refusal::PublicNotProven(address)
        })
    }
}

impl ThisHost {
    /// Whether this port of `address`, one of this host, may be reached; `None`: any of its ports.
    fn permits(&self, address: IpAddr, port: Option<(IpProtocol, u16)>) -> bool {
        let is_datagram = port.is_none_or(|(protocol, _)| protocol == IpProtocol::Udp);
        let is_named = |server: &SocketAddr| {
            server.ip() == address && port.is_none_or(|(_, port)| server.port() == port)
        };
        self.is_open
            || (self.has_peers && is_datagram && !address.is_loopback())
            || self.servers.iter().any(is_named)
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

/// Addresses of the Internet.
fn is_public(address: IpAddr) -> bool {
    !address.is_loopback() && !is_private(address)
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

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// What of `places` may be reached, by TCP and by UDP.
    fn reached<'a>(policy: &AddressPolicy, places: &[&'a str]) -> [Vec<&'a str>; 2] {
        [IpProtocol::Tcp, IpProtocol::Udp].map(|protocol| {
            let is_permitted =
                |place: &&&str| policy.permits(protocol, place.parse().unwrap()).is_ok();
            places.iter().filter(is_permitted).copied().collect()
        })
    }

    /// Loopback, an own address, and the same by IPv6.
    const HERE: [&str; 4] =
        ["127.0.0.1:9200", "192.168.7.1:22", "[::1]:9200", "[::ffff:127.0.0.1]:9200"];

    const NOTHING: [[&str; 0]; 2] = [[]; 2];

    #[test]
    fn a_target_elsewhere_sends_nobody_to_this_host() {
        for target in ["10.1.2.3", "203.0.113.77"] {
            let mut policy = reach();
            policy.name_target(&addresses(&[target]));
            policy.prove_by_agent(&AgentProof {
                answered_at: "203.0.113.77".parse().unwrap(),
                ports: vec![PortRange::of_port(80)],
                caps: crate::Caps::NONE,
            });
            let to = SocketAddr::new(target.parse().unwrap(), 80);
            assert!(policy.permits(IpProtocol::Tcp, to).is_ok());
            assert_eq!(reached(&policy, &HERE), NOTHING, "{target}");
            let here = HERE[0].parse().unwrap();
            assert_eq!(
                policy.permits(IpProtocol::Tcp, here),
                Err(Refusal::ThisHost("127.0.0.1".parse().unwrap()))
            );
        }
    }

    #[test]
    fn a_target_here_may_have_its_media_at_any_address_of_this_host() {
        for target in [
            &["127.0.0.1"][..],
            &["::1", "127.0.0.1"],
            &["203.0.113.5"],
            &["127.0.1.1", "192.168.7.1"],
        ] {
            let mut policy = reach();
            policy.name_target(&addresses(target));
            assert_eq!(reached(&policy, &HERE), [HERE, HERE], "{target:?}");
        }
        let mut nowhere = reach();
        nowhere.name_target(&[]);
        assert_eq!(reached(&nowhere, &HERE), NOTHING);
    }

    #[test]
    fn a_name_with_addresses_elsewhere_opens_no_loopback() {
        let mut policy = reach();
        policy.name_target(&addresses(&["10.1.2.3", "127.0.0.1", "192.168.7.1"]));
        let places = ["127.0.0.1:9200", "192.168.7.1:9200", "192.168.7.1:22", "10.1.2.3:9200"];
        let expect = ["10.1.2.3:9200"];
        assert_eq!(reached(&policy, &places), [expect, expect]);
        // A server beside it needs its port alone.
        policy.name_server(&addresses(&["10.1.2.3", "127.0.0.1", "192.168.7.1"]), 9200);
        let expect = ["192.168.7.1:9200", "10.1.2.3:9200"];
        assert_eq!(reached(&policy, &places), [expect, expect]);
        policy.name_server(&addresses(&["10.1.2.3", "::1"]), 9200);
        assert_eq!(reached(&policy, &HERE), NOTHING);
    }

    #[test]
    fn a_server_here_beside_a_target_elsewhere_opens_its_port_alone() {
        let mut policy = reach();
        policy.name_target(&addresses(&["10.1.2.3"]));
        policy.name_server(&addresses(&["127.0.0.1"]), 5280);
        let places = ["127.0.0.1:5280", "127.0.0.1:9200", "[::1]:5280", "192.168.7.1:5280"];
        assert_eq!(reached(&policy, &places), [["127.0.0.1:5280"], ["127.0.0.1:5280"]]);
        let asks = |text: &str| policy.permits_address(text.parse().unwrap()).is_ok();
        assert_eq!(["127.0.0.1", "::1"].map(asks), [true, false]);
        let mut policy = reach();
        policy.name_peers();
        let datagrams = [vec![], vec!["192.168.7.1:22"]];
        assert_eq!(reached(&policy, &HERE), datagrams, "peers are not on loopback");
    }

    #[test]
    fn an_own_address_is_allowed_by_itself_and_by_no_network_around_it() {
        let own = ["192.168.7.5", "fd00:7::5"].map(|text| text.parse().unwrap());
        let places = ["192.168.7.5:9200", "192.168.7.9:9200", "[fd00:7::5]:9200", "[fd00:7::9]:1"];
        for (network, expect) in [
            ("192.168.7.0/24", &["192.168.7.9:9200"][..]),
            ("192.168.7.4/31", &[]),
            ("0.0.0.0/0", &["192.168.7.9:9200"]),
            ("192.168.7.5", &["192.168.7.5:9200"]),
            ("192.168.7.5/32", &["192.168.7.5:9200"]),
            ("fd00:7::/64", &["[fd00:7::9]:1"]),
            ("fd00:7::5/128", &["[fd00:7::5]:9200"]),
        ] {
            let mut policy = AddressPolicy::new(own, [network.parse().unwrap()]);
            policy.name_target(&addresses(&["192.168.7.9"]));
            assert_eq!(reached(&policy, &places), [expect, expect], "{network}");
        }
    }

    #[test]
    fn loopback_is_allowed_by_a_network_of_loopback_only() {
        let places = ["127.0.0.1:9200", "127.9.9.9:1", "[::1]:9200"];
        for (network, expect) in [
            ("0.0.0.0/0", &[][..]),
            ("::/0", &[]),
            ("126.0.0.0/7", &[]),
            ("127.0.0.0/8", &["127.0.0.1:9200", "127.9.9.9:1"]),
            ("127.0.0.1", &["127.0.0.1:9200"]),
            ("::1", &["[::1]:9200"]),
        ] {
            let policy = AddressPolicy::new([], [network.parse().unwrap()]);
            assert_eq!(reached(&policy, &places), [expect, expect], "{network}");
        }
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
            let reach = reach().with_this_host();
            assert_eq!(reach.permits_address(address(text)), expect, "{text}");
        }
    }

    #[test]
    fn a_published_proof_is_asked_of_public_addresses_whatever_else_agreed_there() {
        let mut policy = reach();
        for address in ["203.0.113.77", "172.16.0.9"] {
            policy.prove_by_agent(&AgentProof {
                answered_at: address.parse().unwrap(),
                ports: vec![PortRange::of_port(5280)],
                caps: crate::Caps::NONE,
            });
        }
        for (to, expect) in [
            // An agent that agreed to the chat there, not to the target.
            ("203.0.113.77:80", true),
            ("203.0.113.78:80", true),
            ("203.0.113.5:80", true),
            ("172.16.0.9:80", false),
            ("172.16.0.8:80", false),
            ("127.0.0.1:80", false),
            ("192.168.7.1:80", false),
            ("224.0.0.1:80", false),
            ("203.0.113.78:0", false),
        ] {
            let refusal = policy.permits(IpProtocol::Tcp, to.parse().unwrap()).unwrap_err();
            assert_eq!(refusal.needs_proof(), expect, "{to}: {refusal}");
        }
    }

    #[test]
    fn port_0_is_no_destination_anywhere() {
        let mut policy = reach().with_this_host();
        policy.prove_by_agent(&AgentProof {
            answered_at: "203.0.113.77".parse().unwrap(),
            ports: vec![PortRange::of_port(80)],
            caps: crate::Caps::NONE,
        });
        for text in ["127.0.0.1", "::1", "192.168.7.1", "10.1.2.3", "203.0.113.77"] {
            let address: IpAddr = text.parse().unwrap();
            assert!(policy.permits_address(address).is_ok(), "{text}");
            for protocol in [IpProtocol::Tcp, IpProtocol::Udp] {
                let judged = policy.permits(protocol, SocketAddr::new(address, 0));
                assert_eq!(judged, Err(Refusal::NoPort(address)), "{text} {protocol}");
            }
        }
    }

    #[test]
    fn an_allowed_network_never_opens_the_public_internet_or_groups() {
        let reach = AddressPolicy::new([], ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()]);
        for text in ["8.8.8.8", "2001:db8::1", "224.0.0.1", "255.255.255.255", "0.0.0.0"] {
            assert!(reach.permits_address(text.parse().unwrap()).is_err(), "{text}");
        }
        let private = "192.168.1.1".parse().unwrap();
        assert_eq!(reach.permits_address(private), Ok(PermitReason::AllowedNetwork));
    }
}
