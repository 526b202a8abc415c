//! Frames of a ring: from the kernel's header (`struct tpacket3_hdr` of `linux/if_packet.h`) to the
//! datagram, or datagrams, of a frame. Every place is checked against the block's end, though the
//! kernel wrote it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// `TP_STATUS_CSUMNOTREADY`: from a sender on this host, that left the checksum to a card.
const CHECKSUM_NOT_READY: u32 = 1 << 3;
/// `TP_STATUS_CSUM_VALID`: the card or the kernel has checked it.
const CHECKSUM_VALID: u32 = 1 << 7;
/// Bytes of `struct virtio_net_hdr`, which stands before the link-layer header (`PACKET_VNET_HDR`).
const OFFLOAD_HEADER: usize = 10;
/// `VIRTIO_NET_HDR_GSO_UDP_L4`: several datagrams with one header, by `UDP_SEGMENT` (udp(7)).
const GSO_UDP: u8 = 5;
/// The bit of its type that tells of ECN.
const GSO_ECN: u8 = 0x80;
pub(super) const UDP_HEADER: usize = 8;

/// A datagram in a ring.
#[derive(Debug)]
pub struct RingDatagram<'a> {
    /// The sender.
    pub source: SocketAddr,
    /// Where it went to.
    pub local: SocketAddr,
    /// When the kernel received it, since the Unix epoch: the time that the socket's own datagram
    /// has.
    pub arrived_unix: Duration,
    /// The payload.
    pub bytes: &'a mut [u8],
}

/// What a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The sender.
    pub source: SocketAddr,
    /// Where it went to.
    pub local: SocketAddr,
    /// As [`RingDatagram::arrived_unix`].
    pub arrived_unix: Duration,
    /// What it is.
    pub kind: FrameKind,
    /// Where its payload begins in the block, and how long it is.
    payload: (u32, u32),
}

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Datagrams with one header, each but the last of this many bytes; of one datagram its length.
    Datagrams {
        /// Bytes of a datagram.
        each: u16,
    },
    /// The first of the fragments of a datagram, without the others.
    Fragment,
    /// It does not fit a block of the ring.
    TooLong,
    /// Its checksum or lengths are wrong, and a socket would not have got it.
    Damaged,
}

impl Frame {
    /// How many datagrams it has.
    #[must_use]
    pub fn datagrams(&self) -> u16 {
        match self.kind {
            FrameKind::Datagrams { each } => {
                let each = u32::from(each).max(1);
                u16::try_from(self.payload.1.div_ceil(each).max(1)).unwrap_or(u16::MAX)
            }
            _ => 0,
        }
    }

    /// Bytes of its payload; of a fragmented datagram, those of all fragments.
    #[must_use]
    pub fn length(&self) -> usize {
        self.payload.1 as usize
    }

    /// Bytes of datagram number `index`.
    #[must_use]
    pub fn length_of(&self, index: u16) -> usize {
        let FrameKind::Datagrams { each } = self.kind else { return 0 };
        self.length().saturating_sub(usize::from(index) * usize::from(each)).min(each.into())
    }

    /// Datagram number `index`, from the block that the frame was read from.
    #[must_use]
    pub fn datagram<'a>(&self, index: u16, block: &'a mut [u8]) -> Option<RingDatagram<'a>> {
        let FrameKind::Datagrams { each } = self.kind else { return None };
        if index >= self.datagrams() {
            return None;
        }
        let (start, length) = (self.payload.0 as usize, self.payload.1 as usize);
        let skipped = usize::from(index) * usize::from(each);
        let bytes =
            block.get_mut(start + skipped..start + length.min(skipped + usize::from(each)))?;
        Some(RingDatagram {
            source: self.source,
            local: self.local,
            arrived_unix: self.arrived_unix,
            bytes,
        })
    }
}

/// Reads the frame at `at` of a block; with it the distance to the next, 0 after the last. `None`
/// if it has no UDP header.
pub(super) fn read(block: &[u8], at: usize) -> (u32, Option<Frame>) {
    let next = u32_at(block, at).unwrap_or(0);
    (next, parse(block, at))
}

/// For the mutation tests: what reads the frames of a block.
#[doc(hidden)]
#[must_use]
pub fn read_any_frame(block: &[u8], at: usize) -> (u32, Option<Frame>) {
    read(block, at)
}

fn u32_at(block: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(block.get(at..at + 4)?.try_into().ok()?))
}

fn be16(block: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(block.get(at..at + 2)?.try_into().ok()?))
}

fn parse(block: &[u8], at: usize) -> Option<Frame> {
    let header: &[u8; 28] = block.get(at..at + 28)?.try_into().ok()?;
    let word = |from: usize| {
        u32::from_ne_bytes([header[from], header[from + 1], header[from + 2], header[from + 3]])
    };
    let half = |from: usize| usize::from(u16::from_ne_bytes([header[from], header[from + 1]]));
    let (captured, length, status) = (word(12) as usize, word(16) as usize, word(20));
    let (link, network) = (at + half(24), at + half(26));
    let end = (link + captured).min(block.len());
    let packet = block.get(network..end)?;
    let ip = Ip::parse(packet)?;
    let udp = network + ip.header;
    let (from, to) = (be16(block, udp)?, be16(block, udp + 2)?);
    let udp_length = match be16(block, udp + 4)? {
        // Of IPv6 that says nothing, and the kernel takes all of the packet (`__udp6_lib_rcv` of
        // `net/ipv6/udp.c`).
        0 if ip.source.is_ipv6() => ip.length.checked_sub(ip.header)?,
        length => usize::from(length),
    };
    let offload = block.get(link.checked_sub(OFFLOAD_HEADER)?..link)?;
    let segment = match offload[1] & !GSO_ECN {
        GSO_UDP => u16::from_ne_bytes([offload[4], offload[5]]),
        _ => 0,
    };
    // One length of the header covers all segments.
    let datagram = if segment > 0 { ip.length.checked_sub(ip.header)? } else { udp_length };
    let payload = datagram.saturating_sub(UDP_HEADER);
    let is_checked = status & (CHECKSUM_NOT_READY | CHECKSUM_VALID) != 0 || segment > 0;
    let is_whole = datagram >= UDP_HEADER
        && ip.header + datagram <= ip.length
        && ip.length <= packet.len()
        && ip.is_whole;
    let is_sound = || {
        is_checked
            || packet.get(ip.header..ip.header + datagram).is_some_and(|udp| is_right(&ip, udp))
    };
    let kind = if ip.is_fragment {
        FrameKind::Fragment
    } else if captured < length {
        FrameKind::TooLong
    } else if !is_whole || !is_sound() {
        FrameKind::Damaged
    } else {
        FrameKind::Datagrams {
            each: if segment > 0 { segment } else { u16::try_from(payload).ok()? },
        }
    };
    Some(Frame {
        source: SocketAddr::new(ip.source, from),
        local: SocketAddr::new(ip.destination, to),
        arrived_unix: Duration::new(word(4).into(), word(8).min(999_999_999)),
        kind,
        payload: (u32::try_from(udp + UDP_HEADER).ok()?, u32::try_from(payload).ok()?),
    })
}

/// An IP header as far as a datagram needs it.
struct Ip {
    source: IpAddr,
    destination: IpAddr,
    /// Bytes up to UDP's header.
    header: usize,
    /// Bytes with what follows it.
    length: usize,
    is_fragment: bool,
    /// Whether its own length and checksum, with its options, are right; IPv6 has none.
    is_whole: bool,
}

impl Ip {
    /// RFC 791 section 3.1, RFC 8200 sections 3 and 4.5.
    fn parse(packet: &[u8]) -> Option<Self> {
        if packet.first()? >> 4 == 4 {
            let header: &[u8; 20] = packet.first_chunk()?;
            let address = |at: usize| {
                IpAddr::from(Ipv4Addr::new(
                    header[at],
                    header[at + 1],
                    header[at + 2],
                    header[at + 3],
                ))
            };
            let length = usize::from(header[0] & 15) * 4;
            let whole = packet.get(..length).filter(|whole| whole.len() >= header.len());
            return Some(Self {
                source: address(12),
                destination: address(16),
                header: length,
                length: usize::from(be16(header, 2)?),
                is_fragment: be16(header, 6)? & 0x3fff != 0,
                is_whole: whole.is_some_and(|whole| folded(sum(whole)) == u16::MAX),
            });
        }
        let header: &[u8; 40] = packet.first_chunk()?;
        let address = |at: usize| {
            let bytes: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
            Some(IpAddr::from(Ipv6Addr::from(bytes)))
        };
        let is_fragment = header[6] == 44;
        Some(Self {
            source: address(8)?,
            destination: address(24)?,
            header: if is_fragment { 48 } else { 40 },
            length: 40 + usize::from(be16(header, 4)?),
            is_fragment,
            is_whole: true,
        })
    }
}

/// Whether UDP's checksum is right (RFC 768; RFC 8200 section 8.1: with IPv6 there must be one).
fn is_right(ip: &Ip, datagram: &[u8]) -> bool {
    if be16(datagram, 6) == Some(0) {
        return ip.source.is_ipv4();
    }
    let addresses = match (ip.source, ip.destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => sum(&a.octets()) + sum(&b.octets()),
        (IpAddr::V6(a), IpAddr::V6(b)) => sum(&a.octets()) + sum(&b.octets()),
        _ => return false,
    };
    folded(addresses + 17 + datagram.len() as u64 + sum(datagram)) == u16::MAX
}

/// The sum of big-endian 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(0, |sum: u64, word| sum + u64::from(u32::from_be_bytes(*word)));
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    sum + u64::from(u32::from_be_bytes(last))
}

fn folded(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
#[path = "frame_tests.rs"]
pub(super) mod tests;
