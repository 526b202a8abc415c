//! The frame around every RTCP packet (RFC 3550 section 6.4.1): version, padding, count, type and
//! length in words.

use crate::octets::chunk_at;

pub(super) const SENDER_REPORT: u8 = 200;
pub(super) const RECEIVER_REPORT: u8 = 201;
pub(super) const SOURCE_DESCRIPTION: u8 = 202;
pub(super) const BYE: u8 = 203;
pub(super) const APPLICATION: u8 = 204;
pub(super) const TRANSPORT_FEEDBACK: u8 = 205;
pub(super) const PAYLOAD_FEEDBACK: u8 = 206;
pub(super) const EXTENDED_REPORT: u8 = 207;

/// Why an RTCP packet could not be read. Offsets count from the start of the compound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtcpError {
    /// The packet is longer than the rest of the compound.
    #[error("RTCP packet at offset {offset} needs {needed} bytes, {available} are left")]
    Truncated {
        /// Where the packet begins.
        offset: usize,
        /// Bytes by its length field.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// The version is not 2.
    #[error("RTCP packet at offset {offset} has version {version}, not 2")]
    Version {
        /// Where the packet begins.
        offset: usize,
        /// Its version.
        version: u8,
    },
    /// The packet's frame is valid and its body is malformed.
    #[error("RTCP packet of type {packet_type} at offset {offset}: bad {what}")]
    Malformed {
        /// Where the packet begins.
        offset: usize,
        /// Its packet type (200 SR … 207 XR).
        packet_type: u8,
        /// The malformed part.
        what: &'static str,
    },
}

/// One packet of a compound, its body not yet read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// Packet type.
    pub(super) packet_type: u8,
    /// Count or format, five bits.
    pub(super) count: u8,
    /// The bytes after the four bytes of the frame, padding stripped.
    pub(super) body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame at `offset` of a compound; returns it with the offset after it.
    pub(super) fn parse(compound: &'a [u8], offset: usize) -> Result<(Self, usize), RtcpError> {
        let available = compound.len().saturating_sub(offset);
        let Some(&[flags, packet_type, l0, l1]) = chunk_at(compound, offset) else {
            return Err(RtcpError::Truncated { offset, needed: 4, available });
        };
        if flags >> 6 != 2 {
            return Err(RtcpError::Version { offset, version: flags >> 6 });
        }
        let needed = 4 * (usize::from(u16::from_be_bytes([l0, l1])) + 1);
        let end = offset + needed;
        let Some(mut body) = compound.get(offset + 4..end) else {
            return Err(RtcpError::Truncated { offset, needed, available });
        };
        if flags & 0x20 != 0 {
            let padding = body.last().map_or(0, |&padding| usize::from(padding));
            match body.len().checked_sub(padding).and_then(|kept| body.get(..kept)) {
                Some(kept) if padding != 0 => body = kept,
                _ => return Err(RtcpError::Malformed { offset, packet_type, what: "padding" }),
            }
        }
        Ok((Self { packet_type, count: flags & 0x1f, body }, end))
    }
}

/// Appends a packet: the frame, what `body` appends, and zeros up to a whole word.
///
/// The length field holds 2^16 words; the callers stay below it.
pub(super) fn write(
    out: &mut Vec<u8>,
    packet_type: u8,
    count: u8,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&[0x80 | (count & 0x1f), packet_type, 0, 0]);
    body(out);
    let len = (out.len() - start).next_multiple_of(4);
    out.resize(start + len, 0);
    if let Some(length) = out.get_mut(start + 2..start + 4) {
        length.copy_from_slice(&((len / 4 - 1) as u16).to_be_bytes());
    }
}

/// Appends big-endian words.
pub(super) fn write_words(out: &mut Vec<u8>, words: impl IntoIterator<Item = u32>) {
    for word in words {
        out.extend_from_slice(&word.to_be_bytes());
    }
}
