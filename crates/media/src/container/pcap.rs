//! Captures in the pcap format (draft-ietf-opsawg-pcap): the UDP payloads that may be RTP.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::octets::{chunk_at, u16_at};

const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
/// Longest record that is read; the format's own recommended bound.
const RECORD_LEN_MAX: usize = 262_144;
const UDP: u8 = 17;

/// Why bytes are not a capture that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PcapError {
    /// The magic number is not one of the four of pcap.
    #[error("not a pcap file; a pcapng file becomes one with `tshark -F pcap -r FILE -w OUT`")]
    Magic,
    /// The link type is not supported.
    #[error("link type {0} is not read; Ethernet, Linux cooked and raw IP are")]
    LinkType(u32),
    /// A record is truncated or too long.
    #[error("record {record} at offset {offset} is cut off or too long")]
    Record {
        /// Number of the record, from 0.
        record: u32,
        /// Where it begins.
        offset: usize,
    },
}

/// A datagram of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// When it was captured, nanoseconds since the Unix epoch.
    pub captured_unix_ns: u64,
    /// The sender.
    pub from: SocketAddr,
    /// The destination.
    pub to: SocketAddr,
    /// The UDP payload; datagrams that the capture truncated are left out.
    pub payload: &'a [u8],
}

/// Reads the UDP datagrams of a capture in file order; fragments and everything else are skipped.
/// Ends after the first error.
#[derive(Clone, Debug)]
pub struct PcapReader<'a> {
    file: &'a [u8],
    offset: usize,
    record: u32,
    is_big_endian: bool,
    /// Nanoseconds in a unit of the second time field.
    fraction_ns: u64,
    link: Link,
}

/// When a frame was captured, and the frame if the capture contains all of it.
struct Record<'a> {
    at_ns: u64,
    frame: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Ethernet,
    LinuxCooked,
    LinuxCooked2,
    Raw,
}

impl<'a> PcapReader<'a> {
    /// Reads the file header.
    ///
    /// # Errors
    /// [`PcapError::Magic`], [`PcapError::LinkType`].
    pub fn new(file: &'a [u8]) -> Result<Self, PcapError> {
        let (is_big_endian, fraction_ns) = match chunk_at::<4>(file, 0) {
            Some([0xa1, 0xb2, 0xc3, 0xd4]) => (true, 1_000),
            Some([0xd4, 0xc3, 0xb2, 0xa1]) => (false, 1_000),
            Some([0xa1, 0xb2, 0x3c, 0x4d]) => (true, 1),
            Some([0x4d, 0x3c, 0xb2, 0xa1]) => (false, 1),
            _ => return Err(PcapError::Magic),
        };
        let link = chunk_at::<4>(file, 20)
            .map(|bytes| number(*bytes, is_big_endian))
            .ok_or(PcapError::Magic)?;
        // The upper bits show whether frames end in a checksum, which is not used here.
        let link = match link & 0xffff {
            1 => Link::Ethernet,
            12 | 101 => Link::Raw,
            113 => Link::LinuxCooked,
            276 => Link::LinuxCooked2,
            other => return Err(PcapError::LinkType(other)),
        };
        Ok(Self { file, offset: FILE_HEADER_LEN, record: 0, is_big_endian, fraction_ns, link })
    }

    /// The next record.
    fn record(&mut self) -> Option<Result<Record<'a>, PcapError>> {
        let rest = self.file.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let error = PcapError::Record { record: self.record, offset: self.offset };
        let field = |at| chunk_at::<4>(rest, at).map(|bytes| number(*bytes, self.is_big_endian));
        let read = || {
            let (seconds, fraction) = (u64::from(field(0)?), u64::from(field(4)?));
            let (kept, was) = (field(8)? as usize, field(12)? as usize);
            let frame = rest.get(RECORD_HEADER_LEN..)?.get(..kept.min(RECORD_LEN_MAX + 1))?;
            let at_ns = seconds * 1_000_000_000 + fraction * self.fraction_ns;
            (kept <= RECORD_LEN_MAX).then_some((at_ns, frame, kept == was))
        };
        let Some((at_ns, frame, is_whole)) = read() else {
            self.offset = self.file.len();
            return Some(Err(error));
        };
        self.offset += RECORD_HEADER_LEN + frame.len();
        self.record = self.record.saturating_add(1);
        Some(Ok(Record { at_ns, frame: is_whole.then_some(frame) }))
    }
}

impl<'a> Iterator for PcapReader<'a> {
    type Item = Result<Datagram<'a>, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.record()? {
                Err(error) => return Some(Err(error)),
                Ok(record) => {
                    let udp =
                        record.frame.and_then(|frame| packet(self.link, frame)).and_then(datagram);
                    if let Some((from, to, payload)) = udp {
                        return Some(Ok(Datagram {
                            captured_unix_ns: record.at_ns,
                            from,
                            to,
                            payload,
                        }));
                    }
                }
            }
        }
    }
}

fn number(bytes: [u8; 4], is_big_endian: bool) -> u32 {
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// The IP packet in a frame.
fn packet(link: Link, frame: &[u8]) -> Option<&[u8]> {
    let (mut kind, mut at) = match link {
        Link::Raw => return Some(frame),
        Link::Ethernet => (u16_at(frame, 12)?, 14),
        Link::LinuxCooked => (u16_at(frame, 14)?, 16),
        Link::LinuxCooked2 => (u16_at(frame, 0)?, 20),
    };
    // VLAN tags, which may be nested.
    while matches!(kind, 0x8100 | 0x88a8) {
        (kind, at) = (u16_at(frame, at + 2)?, at + 4);
    }
    matches!(kind, 0x0800 | 0x86dd).then(|| frame.get(at..))?
}

/// The UDP datagram in an IP packet that is not a fragment.
fn datagram(packet: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let head = *packet.first()?;
    let (from, to, udp) = match head >> 4 {
        4 => {
            let len = usize::from(head & 0x0f) * 4;
            let is_fragment = u16_at(packet, 6)? & 0x3fff != 0;
            (*packet.get(9)? == UDP && !is_fragment).then_some(())?;
            let address = |at| chunk_at::<4>(packet, at).map(|bytes| Ipv4Addr::from(*bytes).into());
            let total = usize::from(u16_at(packet, 2)?);
            (address(12)?, address(16)?, packet.get(len..total.clamp(len, packet.len()))?)
        }
        6 => {
            (*packet.get(6)? == UDP).then_some(())?;
            let address =
                |at| chunk_at::<16>(packet, at).map(|bytes| Ipv6Addr::from(*bytes).into());
            (address(8)?, address(24)?, packet.get(40..)?)
        }
        _ => return None,
    };
    let len = usize::from(u16_at(udp, 4)?);
    let payload = udp.get(8..len)?;
    Some((SocketAddr::new(from, u16_at(udp, 0)?), SocketAddr::new(to, u16_at(udp, 2)?), payload))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A capture of raw IPv4 datagrams from port 5000 to port 6000.
    pub(crate) fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut file =
            [&0xa1b2_c3d4_u32.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 12], &101_u32.to_le_bytes()]
                .concat();
        for (index, payload) in payloads.iter().enumerate() {
            let len = 28 + payload.len() as u32;
            for field in [7, index as u32, len, len] {
                file.extend(field.to_le_bytes());
            }
            file.extend([0x45, 0]);
            file.extend((len as u16).to_be_bytes());
            file.extend([0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            file.extend([0x13, 0x88, 0x17, 0x70]);
            file.extend((8 + payload.len() as u16).to_be_bytes());
            file.extend([0, 0]);
            file.extend_from_slice(payload);
        }
        file
    }

    #[test]
    fn datagrams_come_back_with_place_and_time() {
        let file = file(&[&[1, 2, 3], &[]]);
        let read: Vec<_> = PcapReader::new(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(
            read[0],
            Datagram {
                captured_unix_ns: 7_000_000_000,
                from: "10.0.0.1:5000".parse().unwrap(),
                to: "10.0.0.2:6000".parse().unwrap(),
                payload: &[1, 2, 3],
            }
        );
        assert_eq!((read[1].captured_unix_ns, read[1].payload), (7_000_001_000, &[][..]));
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn ethernet_with_vlan_and_ipv6() {
        let ipv6 = [
            &[0x60, 0, 0, 0, 0, 9, UDP, 64][..],
            &[1; 16],
            &[2; 16],
            &[0, 7, 0, 9, 0, 9, 0, 0, 42],
        ]
        .concat();
        let frame = [&[0; 12][..], &[0x81, 0, 0, 5, 0x86, 0xdd], &ipv6].concat();
        let (from, to, payload) = packet(Link::Ethernet, &frame).and_then(datagram).unwrap();
        assert_eq!((from.port(), to.port(), payload), (7, 9, &[42][..]));
        let tcp = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        assert_eq!(datagram(&tcp), None);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(PcapReader::new(b"\x0a\x0d\x0d\x0a").unwrap_err(), PcapError::Magic);
        let mut other = file(&[]);
        other[20] = 147;
        assert_eq!(PcapReader::new(&other).unwrap_err(), PcapError::LinkType(147));
        let mut cut = file(&[&[1], &[2]]);
        cut.pop();
        let last = PcapReader::new(&cut).unwrap().last().unwrap();
        assert_eq!(last.unwrap_err(), PcapError::Record { record: 1, offset: 69 });
    }
}
