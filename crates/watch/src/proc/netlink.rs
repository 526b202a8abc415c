//! Netlink messages (linux/netlink.h, rtnetlink.h, inet_diag.h) for queueing disciplines and
//! sockets: encodes requests and parses answers.

/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLMSG_ERROR`: an error, or an acknowledgement if its code is 0.
pub const ERROR: u16 = 2;
/// A queueing discipline.
pub const NEW_QDISC: u16 = 36;
/// A socket.
pub const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// A netlink message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// `NLMSG_*`, or a type of the family.
    pub kind: u16,
    /// Sequence number of the request that it answers.
    pub sequence: u32,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// The messages of a datagram; a truncated one is skipped.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    const HEADER: usize = 16;
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(rest, 0)?).ok()?;
        let (kind, sequence) = (u16_at(rest, 4)?, u32_at(rest, 8)?);
        let payload = rest.get(HEADER..length)?;
        rest = rest.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
        Some(Message { kind, sequence, payload })
    })
}

/// The errno of an [`ERROR`] message, positive; 0 means no error.
#[must_use]
pub fn error_code(payload: &[u8]) -> i32 {
    u32_at(payload, 0).map_or(0, |code| 0_i32.wrapping_sub(code.cast_signed()))
}

/// The attributes after the fixed part: type (without flags) and value.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const HEADER: usize = 4;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & 0x3fff;
        let value = rest.get(HEADER..length)?;
        rest = rest.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Parses an interface: index and name.
#[must_use]
pub fn link(payload: &[u8]) -> Option<(u32, &[u8])> {
    const NAME: u16 = 3;
    let index = u32_at(payload, 4)?;
    let (_, name) = attributes(payload.get(16..)?).find(|(kind, _)| *kind == NAME)?;
    Some((index, name.split(|byte| *byte == 0).next()?))
}

/// A queueing discipline and its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qdisc<'a> {
    /// Index of its interface.
    pub interface: u32,
    /// Its handle, such as `0x10000` for `1:`.
    pub handle: u32,
    /// `fq_codel`, `tbf`, …
    pub kind: &'a [u8],
    /// Queued packets.
    pub packets: u32,
    /// Queued bytes.
    pub bytes: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Packets requeued.
    pub requeues: u32,
    /// Number of times a packet had to wait for the shaper.
    pub overlimits: u32,
}

/// Parses a queueing discipline; `None` without queue statistics.
#[must_use]
pub fn qdisc(payload: &[u8]) -> Option<Qdisc<'_>> {
    const KIND: u16 = 1;
    const STATS2: u16 = 7;
    const QUEUE: u16 = 3;
    let (interface, handle) = (u32_at(payload, 4)?, u32_at(payload, 8)?);
    let (mut kind, mut queue) = (&b""[..], None);
    for (attribute, value) in attributes(payload.get(20..)?) {
        match attribute {
            KIND => kind = value.split(|byte| *byte == 0).next().unwrap_or_default(),
            STATS2 => {
                queue = attributes(value).find(|(kind, _)| *kind == QUEUE).map(|(_, value)| value);
            }
            _ => {}
        }
    }
    let figure = |place: usize| u32_at(queue?, place * 4);
    Some(Qdisc {
        interface,
        handle,
        kind,
        packets: figure(0)?,
        bytes: figure(1)?,
        drops: figure(2)?,
        requeues: figure(3)?,
        overlimits: figure(4)?,
    })
}

/// A socket as reported by `sock_diag`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Socket {
    /// Local port.
    pub port: u16,
    /// Remote port.
    pub peer_port: u16,
    /// Local address in network byte order (IPv4 in the first four bytes).
    pub address: [u8; 16],
    /// Remote address.
    pub peer_address: [u8; 16],
    /// Receive queue, bytes; of a listening socket, connections waiting to be accepted.
    pub receive_queue: u32,
    /// Send queue, bytes; of a listening socket, its backlog.
    pub send_queue: u32,
    /// Inode, by which the owning process is found.
    pub inode: u32,
    /// Receive memory, its limit, and dropped datagrams, if requested.
    pub memory: Option<SocketMemory>,
    /// `TCP_ESTABLISHED` is 1.
    pub state: u8,
    /// TCP statistics, if requested.
    pub tcp_info: Option<TcpInfo>,
}

/// Send statistics from `INET_DIAG_INFO` (struct tcp_info in linux/tcp.h; the times since Linux
/// 4.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_unacked`: segments sent but not acknowledged.
    pub unacked: u32,
    /// `tcpi_notsent_bytes`: bytes written but not sent.
    pub unsent_bytes: u32,
    /// `tcpi_total_retrans`: total segments retransmitted.
    pub retransmitted: u32,
    /// `tcpi_busy_time`: µs with data to send.
    pub busy_us: u64,
    /// `tcpi_rwnd_limited`: part of these in which the peer's receive window was full.
    pub peer_limited_us: u64,
    /// `tcpi_sndbuf_limited`: part of these in which the send buffer was the limit.
    pub buffer_limited_us: u64,
}

/// The extension to request in a dump of sockets: bits of `idiag_ext`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketDetail {
    /// `INET_DIAG_SKMEMINFO`.
    Memory,
    /// `INET_DIAG_INFO`.
    TcpInfo,
}

/// `INET_DIAG_SKMEMINFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// `sk_rmem_alloc`, bytes.
    pub received: u32,
    /// `sk_rcvbuf`, bytes.
    pub receive_limit: u32,
    /// `sk_drops`; since Linux 4.8.
    pub drops: u32,
}

/// A socket.
#[must_use]
pub fn socket(payload: &[u8]) -> Option<Socket> {
    const INFO: u16 = 2;
    const SKMEMINFO: u16 = 7;
    let of = |wanted| {
        attributes(payload.get(72..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    };
    let port = |at: usize| Some(u16::from_be_bytes(payload.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| payload.get(at..at + 16)?.try_into().ok();
    let memory = of(SKMEMINFO).and_then(|value| {
        let (received, receive_limit) = (u32_at(value, 0)?, u32_at(value, 4)?);
        Some(SocketMemory { received, receive_limit, drops: u32_at(value, 32).unwrap_or(0) })
    });
    Some(Socket {
        port: port(4)?,
        peer_port: port(6)?,
        address: address(8)?,
        peer_address: address(24)?,
        receive_queue: u32_at(payload, 56)?,
        send_queue: u32_at(payload, 60)?,
        inode: u32_at(payload, 68)?,
        memory,
        state: *payload.get(1)?,
        tcp_info: of(INFO).and_then(tcp_info),
    })
}

fn tcp_info(info: &[u8]) -> Option<TcpInfo> {
    Some(TcpInfo {
        unacked: u32_at(info, 24)?,
        retransmitted: u32_at(info, 100)?,
        unsent_bytes: u32_at(info, 144)?,
        busy_us: u64_at(info, 168)?,
        peer_limited_us: u64_at(info, 176)?,
        buffer_limited_us: u64_at(info, 184)?,
    })
}

/// Request for a dump of type `kind` (`RTM_GETLINK` 18, `RTM_GETQDISC` 38) with `fixed` zero bytes
/// as its fixed part.
#[must_use]
pub fn dump_request(kind: u16, fixed: usize) -> Vec<u8> {
    request(kind, &vec![0; fixed])
}

/// Request for a dump of sockets: address family (2 or 10), protocol (6 or 17), and a bit for each
/// TCP state.
#[must_use]
pub fn socket_request(family: u8, protocol: u8, states: u32, detail: SocketDetail) -> Vec<u8> {
    let extensions = match detail {
        SocketDetail::Memory => 1 << 6,
        SocketDetail::TcpInfo => 1 << 1,
    };
    let mut body = vec![family, protocol, extensions, 0];
    body.extend(states.to_ne_bytes());
    body.resize(56, 0);
    request(SOCK_DIAG_BY_FAMILY, &body)
}

/// The request with its sequence number set, by which its answers are recognised.
#[must_use]
pub fn numbered(request: &[u8], sequence: u32) -> Vec<u8> {
    let mut request = request.to_vec();
    if let Some(place) = request.get_mut(8..12) {
        place.copy_from_slice(&sequence.to_ne_bytes());
    }
    request
}

fn request(kind: u16, body: &[u8]) -> Vec<u8> {
    const REQUEST_AND_DUMP: u16 = 0x301;
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(REQUEST_AND_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_shapers_counters_stand_in_its_second_statistics() {
        let queue: Vec<u8> = [3_u32, 4500, 7, 1, 9].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let mut payload = vec![0; 20];
        payload[4] = 2;
        payload[10] = 1;
        payload.extend(attribute(1, b"tbf\0"));
        payload.extend(attribute(0x8007, &[attribute(1, &[0; 16]), attribute(3, &queue)].concat()));
        let expect = Qdisc {
            interface: 2,
            handle: 0x10000,
            kind: b"tbf",
            packets: 3,
            bytes: 4500,
            drops: 7,
            requeues: 1,
            overlimits: 9,
        };
        assert_eq!(qdisc(&payload), Some(expect));
        for cut in 0..payload.len() {
            let _ = qdisc(&payload[..cut]);
        }
    }

    #[test]
    fn an_invalid_length_ends_the_datagram() {
        let mut bytes = dump_request(38, 20);
        assert_eq!(
            messages(&bytes).map(|m| (m.kind, m.payload.len())).collect::<Vec<_>>(),
            [(38, 20)]
        );
        for length in [0_u32, 3, 15, 37, u32::MAX] {
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&bytes).count(), 0, "{length}");
        }
        assert_eq!(error_code(&(-2_i32).to_ne_bytes()), 2);
        assert_eq!(error_code(&[]), 0);
    }

    #[test]
    fn send_health_is_read_from_the_kernel() {
        let mut info = vec![0; 232];
        for (at, value) in [(24, 3_u32), (100, 5), (144, 70_000)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(168, 9_000_000_u64), (176, 8_000_000), (184, 1_000)] {
            info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let expect = TcpInfo {
            unacked: 3,
            unsent_bytes: 70_000,
            retransmitted: 5,
            busy_us: 9_000_000,
            peer_limited_us: 8_000_000,
            buffer_limited_us: 1_000,
        };
        let message = |info: &[u8]| [vec![0; 72], attribute(2, info)].concat();
        assert_eq!(socket(&message(&info)).unwrap().tcp_info, Some(expect));
        // Kernels before 4.9 have a shorter struct.
        assert_eq!(socket(&message(&info[..168])).unwrap().tcp_info, None);
        assert_eq!(socket(&[0; 72]).unwrap().tcp_info, None);
    }
}
