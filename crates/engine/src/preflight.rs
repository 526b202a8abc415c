//! Warns before a run of machine limits that it would exceed.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use rustix::process::{Resource, getrlimit, setrlimit};
use throng_net::Outgoing;
use throng_observation::units::bytes;
use throng_scenario::OWN_DESCRIPTORS;

use crate::config::EngineError;
use crate::memory_use::{MemoryShare, memory_share};
use crate::sockets;

/// What gives more descriptors.
pub const MORE_DESCRIPTORS: &str = "raise the hard limit: `ulimit -Hn 1048576` as root, \
                                    LimitNOFILE= of systemd, /etc/security/limits.conf";

/// What gives more local ports.
pub const MORE_PORTS: &str = "`sysctl net.ipv4.ip_local_port_range=\"10000 65000\"`, or more \
                              source addresses (--source-ip)";

/// What gives more memory.
pub const MORE_MEMORY: &str = "end what else uses it, or more memory; of a control group \
                               MemoryMax= of systemd, --memory of a container";

/// What happens where receive buffers are smaller than wanted.
pub const BURSTS_DROP: &str = "bursts may be dropped by this machine, which is counted";

/// What gives receive buffers of `wanted` bytes.
#[must_use]
pub fn larger_receive_buffer(wanted: u64) -> String {
    format!("`sysctl net.core.rmem_max={wanted}`, or CAP_NET_ADMIN")
}

/// What a run needs at its largest crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Participants at the same time.
    pub participants: u64,
    /// Descriptors that each holds: a datagram socket and a signalling connection make 2.
    pub descriptors_each: u64,
    /// Local ports of one protocol that each holds toward one server.
    pub ports_each: u64,
    /// Local addresses that participants are distributed over; at least 1.
    pub source_ips: u64,
    /// Receive buffer of each datagram socket, bytes.
    pub receive_buffer_bytes: u64,
    /// Memory that each takes at least, bytes.
    pub memory_each_bytes: u64,
}

/// Limits of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Descriptors that this process may hold (`RLIMIT_NOFILE`).
    pub descriptors: u64,
    /// First and last local port (`net.ipv4.ip_local_port_range`).
    pub ports: (u16, u16),
    /// Largest receive buffer without privilege, bytes (`net.core.rmem_max`); `None` when it may be
    /// exceeded.
    pub receive_buffer_bytes_max: Option<u64>,
    /// Memory that a run may take, bytes ([`MemoryShare::usable_bytes`]); `None` where the kernel
    /// does not tell.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Participants for whom the descriptors suffice.
    #[must_use]
    pub fn by_descriptors(&self, needs: &Needs) -> u64 {
        self.descriptors.saturating_sub(OWN_DESCRIPTORS) / needs.descriptors_each.max(1)
    }

    /// Participants for whom the local ports suffice.
    #[must_use]
    pub fn by_ports(&self, needs: &Needs) -> u64 {
        self.ports_in_all(needs) / needs.ports_each.max(1)
    }

    /// Of all source addresses together.
    fn ports_in_all(&self, needs: &Needs) -> u64 {
        let (first, last) = self.ports;
        let range = u64::from(last.saturating_sub(first)) + 1;
        range.saturating_mul(needs.source_ips.max(1))
    }

    /// Participants for whom the memory suffices; `None` where it is not known.
    #[must_use]
    pub fn by_memory(&self, needs: &Needs) -> Option<u64> {
        Some(self.memory_bytes? / needs.memory_each_bytes.max(1))
    }

    /// The largest receive buffer, bytes, where it is smaller than what is needed.
    #[must_use]
    pub fn short_receive_buffer(&self, needs: &Needs) -> Option<u64> {
        self.receive_buffer_bytes_max.filter(|limit| *limit < needs.receive_buffer_bytes)
    }
}

/// A limit that the plan exceeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Too few descriptors.
    #[error(
        "{needed} file descriptors are needed and {limit} are allowed: about {fits} of \
         {participants} participants will fit; {}",
        MORE_DESCRIPTORS
    )]
    Descriptors {
        /// Needed at the largest crowd.
        needed: u64,
        /// Allowed.
        limit: u64,
        /// Participants that will fit.
        fits: u64,
        /// Participants planned.
        participants: u64,
    },
    /// Too few local ports.
    #[error(
        "{needed} local ports are needed, but only {available} are available: about {fits} \
         participants will fit; {}",
        MORE_PORTS
    )]
    Ports {
        /// Needed at the largest crowd.
        needed: u64,
        /// Of all source addresses together.
        available: u64,
        /// Participants that will fit.
        fits: u64,
    },
    /// Too little memory.
    #[error(
        "at least {} of memory are needed and {} may be used: about {fits} of {participants} \
         participants will fit; {}",
        bytes(*.needed as f64),
        bytes(*.limit as f64),
        MORE_MEMORY
    )]
    Memory {
        /// Needed at the largest crowd, bytes.
        needed: u64,
        /// What a run may use, bytes.
        limit: u64,
        /// Participants that will fit.
        fits: u64,
        /// Participants planned.
        participants: u64,
    },
    /// Receive buffers will be smaller than wanted.
    #[error(
        "receive buffers are capped at {limit} bytes (net.core.rmem_max), {wanted} were \
         requested: {}; {}",
        BURSTS_DROP,
        larger_receive_buffer(*.wanted)
    )]
    ReceiveBuffer {
        /// Wanted, bytes.
        wanted: u64,
        /// Allowed, bytes.
        limit: u64,
    },
}

/// The limits that `needs` exceeds.
#[must_use]
pub fn check(needs: &Needs, limits: &Limits) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let each = needs.descriptors_each.max(1);
    let needed = needs.participants.saturating_mul(each).saturating_add(OWN_DESCRIPTORS);
    if needed > limits.descriptors {
        let fits = limits.by_descriptors(needs);
        let (limit, participants) = (limits.descriptors, needs.participants);
        warnings.push(Warning::Descriptors { needed, limit, fits, participants });
    }
    let available = limits.ports_in_all(needs);
    let needed = needs.participants.saturating_mul(needs.ports_each);
    if needed > available {
        warnings.push(Warning::Ports { needed, available, fits: limits.by_ports(needs) });
    }
    let needed = needs.participants.saturating_mul(needs.memory_each_bytes);
    if let Some((limit, fits)) = limits.memory_bytes.zip(limits.by_memory(needs))
        && needed > limit
    {
        let participants = needs.participants;
        warnings.push(Warning::Memory { needed, limit, fits, participants });
    }
    if let Some(limit) = limits.short_receive_buffer(needs) {
        warnings.push(Warning::ReceiveBuffer { wanted: needs.receive_buffer_bytes, limit });
    }
    warnings
}

/// Raises the descriptor limit to its maximum and returns the limits that `needs` still exceeds.
#[must_use]
pub fn preflight(needs: &Needs) -> Vec<Warning> {
    check(needs, &limits())
}

/// The limits of this machine; raises the soft descriptor limit to the hard one.
#[must_use]
pub fn limits() -> Limits {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let raised = setrlimit(Resource::Nofile, files).is_ok();
    let now = getrlimit(Resource::Nofile);
    let descriptors = if raised { now.maximum } else { now.current }.unwrap_or(u64::MAX);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Limits {
        descriptors,
        ports: parse_port_range(&read("/proc/sys/net/ipv4/ip_local_port_range"))
            .unwrap_or((32_768, 60_999)),
        receive_buffer_bytes_max: if may_force_buffers() {
            None
        } else {
            read("/proc/sys/net/core/rmem_max").trim().parse().ok()
        },
        memory_bytes: memory_share("").as_ref().map(MemoryShare::usable_bytes),
    }
}

/// Whether SO_RCVBUFFORCE is allowed; tried on a real socket, since capabilities depend on the
/// namespace.
fn may_force_buffers() -> bool {
    UdpSocket::bind("127.0.0.1:0")
        .is_ok_and(|socket| throng_net::force_receive_buffer(socket.as_fd(), 1 << 20).is_ok())
}

/// Tries to open a receive ring.
///
/// # Errors
/// Why there can be none.
pub fn try_receive_ring() -> Result<(), EngineError> {
    sockets::may_open_ring()
}

/// Whether the kernel takes several datagrams as one message (`UDP_SEGMENT`, since Linux 4.18);
/// tried on loopback.
///
/// # Errors
/// If datagrams cannot be sent there at all.
pub fn joins_datagrams() -> std::io::Result<bool> {
    let (from, to) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    let address = socket2::SockAddr::from(to.local_addr()?);
    let datagram = || Outgoing { to: address.clone(), from: None, bytes: &[0; 16] };
    let mut joins = true;
    throng_net::send(from.as_fd(), &[datagram(), datagram()], &mut joins)?;
    Ok(joins)
}

/// First and last port of `ip_local_port_range`.
#[must_use]
pub fn parse_port_range(text: &str) -> Option<(u16, u16)> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let (first, last) = (fields.next()?.ok()?, fields.next()?.ok()?);
    (first <= last).then_some((first, last))
}

/// The addresses of this host.
#[must_use]
pub fn own_addresses() -> Vec<IpAddr> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut addresses = parse_fib_trie(&read("/proc/net/fib_trie"));
    addresses.extend(parse_if_inet6(&read("/proc/net/if_inet6")));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The first of `addresses` that is not of this host, with the error of binding to it.
#[must_use]
pub fn foreign_address(
    addresses: impl IntoIterator<Item = IpAddr>,
) -> Option<(IpAddr, std::io::Error)> {
    addresses.into_iter().find_map(|ip| Some((ip, UdpSocket::bind((ip, 0)).err()?)))
}

/// Local IPv4 addresses: in `fib_trie` an address (`|-- 10.0.0.1`) followed by `/32 host LOCAL`.
#[must_use]
pub fn parse_fib_trie(text: &str) -> Vec<IpAddr> {
    let mut last = None;
    let mut addresses = Vec::new();
    for line in text.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse::<IpAddr>().ok();
        } else if line.contains("/32 host LOCAL") {
            addresses.extend(last);
        }
    }
    addresses
}

/// Local IPv6 addresses: the first field of `if_inet6`, 32 hexadecimal digits.
#[must_use]
pub fn parse_if_inet6(text: &str) -> Vec<IpAddr> {
    let first = |line: &str| {
        line.split_ascii_whitespace().next().filter(|word| word.len() == 32).map(str::to_owned)
    };
    let digits = text.lines().filter_map(first);
    digits
        .filter_map(|word| Some(IpAddr::from(u128::from_str_radix(&word, 16).ok()?.to_be_bytes())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs = Needs {
        participants: 1000,
        descriptors_each: 2,
        ports_each: 1,
        source_ips: 1,
        receive_buffer_bytes: 1 << 20,
        memory_each_bytes: 77_000,
    };
    const LIMITS: Limits = Limits {
        descriptors: 20_000,
        ports: (32_768, 60_999),
        receive_buffer_bytes_max: None,
        memory_bytes: None,
    };

    #[test]
    fn a_warning_says_how_many_participants_fit() {
        assert_eq!(check(&NEEDS, &LIMITS), []);
        let warning = &check(&Needs { participants: 20_000, ..NEEDS }, &LIMITS)[0];
        assert!(warning.to_string().contains("about 9968 of 20000 participants"), "{warning}");
        assert!(warning.to_string().ends_with(MORE_DESCRIPTORS), "{warning}");
        let many = Needs { participants: 30_000, descriptors_each: 0, ..NEEDS };
        let roomy = Limits { descriptors: u64::MAX, ..LIMITS };
        assert_eq!(
            check(&many, &roomy),
            [Warning::Ports { needed: 30_000, available: 28_232, fits: 28_232 }]
        );
        assert_eq!(check(&Needs { source_ips: 2, ..many }, &roomy), []);
        let full = Limits { memory_bytes: Some(70_000_000), ..LIMITS };
        let warnings = check(&NEEDS, &full);
        assert!(check(&Needs { participants: 909, ..NEEDS }, &full).is_empty());
        assert_eq!(
            warnings[0].to_string(),
            format!(
                "at least 77.0 MB of memory are needed and 70.0 MB may be used: about 909 of 1000 \
                 participants will fit; {MORE_MEMORY}"
            )
        );
        let capped = Limits { receive_buffer_bytes_max: Some(212_992), ..LIMITS };
        let warnings = check(&NEEDS, &capped);
        assert_eq!(warnings, [Warning::ReceiveBuffer { wanted: 1 << 20, limit: 212_992 }]);
        assert_eq!(
            warnings[0].to_string(),
            "receive buffers are capped at 212992 bytes (net.core.rmem_max), 1048576 were \
             requested: bursts may be dropped by this machine, which is counted; \
             `sysctl net.core.rmem_max=1048576`, or CAP_NET_ADMIN"
        );
    }

    #[test]
    fn what_a_machine_allows_is_told_for_any_crowd() {
        assert_eq!(LIMITS.by_descriptors(&NEEDS), 9_968);
        assert_eq!(LIMITS.by_ports(&Needs { source_ips: 2, ..NEEDS }), 56_464);
        let few = Limits { descriptors: 10, ports: (1, 1), ..LIMITS };
        assert_eq!((few.by_descriptors(&NEEDS), few.by_ports(&NEEDS)), (0, 1));
        assert_eq!(few.by_memory(&NEEDS), None);
        assert!(limits().memory_bytes > Some(1 << 20), "of this machine");
    }

    #[test]
    fn this_kernel_is_asked_and_not_its_version() {
        assert!(joins_datagrams().is_ok());
        if let Err(why) = try_receive_ring() {
            assert!(why.to_string().contains("receive ring"), "{why}");
        }
    }

    #[test]
    fn kernel_tables_are_read_and_rubbish_is_not() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n        |-- 127.0.0.1\n           /32 host LOCAL\n\
                    \x20       |-- 10.1.2.0\n           /24 link UNICAST\n        |-- 10.1.2.3\n           /32 host LOCAL\n";
        assert_eq!(
            parse_fib_trie(trie),
            ["127.0.0.1", "10.1.2.3"].map(|ip| ip.parse::<IpAddr>().unwrap())
        );
        let inet6 = "00000000000000000000000000000001 01 80 10 80       lo\nshort 01\n";
        assert_eq!(parse_if_inet6(inet6), ["::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(parse_port_range("32768\t60999\n"), Some((32_768, 60_999)));
        for rubbish in ["", "/32 host LOCAL", "|-- x\n/32 host LOCAL", "zz 1"] {
            assert!(parse_fib_trie(rubbish).is_empty() && parse_if_inet6(rubbish).is_empty());
            assert_eq!(parse_port_range(rubbish), None);
        }
    }

    #[test]
    fn an_address_of_another_host_is_found() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(foreign_address([ip("127.0.0.1"), ip("127.9.9.9")]).is_none());
        // TEST-NET-3 is on no host.
        let (foreign, _) = foreign_address([ip("127.0.0.1"), ip("203.0.113.7")]).expect("not ours");
        assert_eq!(foreign, ip("203.0.113.7"));
    }

    #[test]
    fn this_host_knows_its_loopback_address() {
        assert!(own_addresses().contains(&IpAddr::from([127, 0, 0, 1])));
    }
}
