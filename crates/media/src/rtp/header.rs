//! The RTP header (RFC 3550 section 5.1) and the lengths around the payload.

use super::element::Elements;
use crate::octets::chunk_at;

/// Bytes of the header without contributing sources and extension.
pub const FIXED_HEADER_LEN: usize = 12;

/// Why bytes are not an RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtpError {
    /// The packet ends before the header that it announces.
    #[error("RTP header needs {needed} bytes, the packet has {len}")]
    Truncated {
        /// Bytes that the header needs, as far as it could be read.
        needed: usize,
        /// Bytes available.
        len: usize,
    },
    /// The version is not 2.
    #[error("RTP version {0}, not 2")]
    Version(u8),
    /// The padding is zero or longer than what follows the header (RFC 3550 section 5.1: it counts
    /// itself).
    #[error("RTP padding of {padding} bytes in {available} bytes after the header")]
    Padding {
        /// The value of the packet's last byte.
        padding: u8,
        /// Bytes after the header.
        available: usize,
    },
}

/// Place of the header extension in its packet, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionBlock {
    /// "Defined by profile": 0xBEDE is the one-byte form of RFC 8285, 0x1000–0x100F the two-byte
    /// form.
    pub profile: u16,
    /// Offset of the first byte after the extension's own 4-byte header.
    pub start: usize,
    /// Offset of the first byte after the extension.
    pub end: usize,
}

/// The fields of an RTP header. It borrows nothing, so that it can be read before the payload after
/// it is decrypted in place; SRTP leaves the header in the clear (RFC 3711 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// Payload type, 0–127.
    pub payload_type: u8,
    /// The marker bit; for video: last packet of a frame.
    pub marker: bool,
    /// Sequence number.
    pub sequence: u16,
    /// Media timestamp in units of the codec's clock rate.
    pub timestamp: u32,
    /// Synchronization source.
    pub ssrc: u32,
    /// The packet ends in padding.
    pub has_padding: bool,
    /// The header extension, if there is one.
    pub extension: Option<ExtensionBlock>,
    /// Bytes from the start of the packet to its payload: fixed header, contributing sources and
    /// extension.
    pub header_len: usize,
}

impl RtpHeader {
    /// Reads the header at the start of `packet`; the bytes after it are not read and may still be
    /// encrypted.
    ///
    /// # Errors
    /// [`RtpError::Truncated`] and [`RtpError::Version`].
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<Self, RtpError> {
        let len = packet.len();
        let Some(fixed) = packet.first_chunk::<FIXED_HEADER_LEN>() else {
            return Err(RtpError::Truncated { needed: FIXED_HEADER_LEN, len });
        };
        let [flags, kind, s0, s1, t0, t1, t2, t3, r0, r1, r2, r3] = *fixed;
        if flags >> 6 != 2 {
            return Err(RtpError::Version(flags >> 6));
        }
        let mut header_len = FIXED_HEADER_LEN + 4 * usize::from(flags & 0x0f);
        let mut extension = None;
        if flags & 0x10 != 0 {
            let start = header_len + 4;
            let Some(&[p0, p1, l0, l1]) = chunk_at(packet, header_len) else {
                return Err(RtpError::Truncated { needed: start, len });
            };
            let end = start + 4 * usize::from(u16::from_be_bytes([l0, l1]));
            extension = Some(ExtensionBlock { profile: u16::from_be_bytes([p0, p1]), start, end });
            header_len = end;
        }
        if len < header_len {
            return Err(RtpError::Truncated { needed: header_len, len });
        }
        Ok(Self {
            payload_type: kind & 0x7f,
            marker: kind & 0x80 != 0,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([r0, r1, r2, r3]),
            has_padding: flags & 0x20 != 0,
            extension,
            header_len,
        })
    }

    /// Bytes of padding at the end of the clear `packet` (without SRTP's authentication tag) that
    /// this header was read from; 0 without padding.
    ///
    /// # Errors
    /// [`RtpError::Padding`] when the packet's last byte does not fit, [`RtpError::Truncated`] when
    /// `packet` is shorter than the header.
    #[inline]
    pub fn padding_len(&self, packet: &[u8]) -> Result<usize, RtpError> {
        let Some(available) = packet.len().checked_sub(self.header_len) else {
            return Err(RtpError::Truncated { needed: self.header_len, len: packet.len() });
        };
        if !self.has_padding {
            return Ok(0);
        }
        match packet.last() {
            Some(&padding) if padding != 0 && usize::from(padding) <= available => {
                Ok(usize::from(padding))
            }
            last => Err(RtpError::Padding { padding: last.copied().unwrap_or(0), available }),
        }
    }

    /// The payload of the clear `packet` (without SRTP's authentication tag) that this header was
    /// read from, padding stripped. Empty for a packet of padding only, as bandwidth probes are.
    ///
    /// # Errors
    /// As [`Self::padding_len`].
    #[inline]
    pub fn payload<'a>(&self, packet: &'a [u8]) -> Result<&'a [u8], RtpError> {
        let padding_len = self.padding_len(packet)?;
        // header_len + padding_len <= packet.len(), as padding_len() has checked.
        Ok(packet.get(self.header_len..packet.len() - padding_len).unwrap_or_default())
    }

    /// The elements (RFC 8285) of the header extension in `packet`; none when there is no extension
    /// or it is of another kind.
    #[inline]
    #[must_use]
    pub fn elements<'a>(&self, packet: &'a [u8]) -> Elements<'a> {
        match self.extension {
            Some(block) => {
                Elements::new(block.profile, packet.get(block.start..block.end).unwrap_or_default())
            }
            None => Elements::new(0, &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V=2 P X CC=2, M PT=96, seq 0x1234, two CSRCs, a one-byte extension of one word, 3 bytes
    /// payload, 2 padding.
    const FULL: [u8; 33] = [
        0xb2, 0xe0, 0x12, 0x34, 0, 0, 0x10, 0, 0xde, 0xad, 0xbe, 0xef, // fixed
        0, 0, 0, 1, 0, 0, 0, 2, // CSRC
        0xbe, 0xde, 0, 1, 0x10, 0xaa, 0, 0, // extension: id 1, one byte, two bytes of padding
        7, 8, 9, // payload
        0, 2, // padding
    ];

    #[test]
    fn every_field_is_where_rfc_3550_draws_it() {
        let header = RtpHeader::parse(&FULL).unwrap();
        assert_eq!(
            header,
            RtpHeader {
                payload_type: 96,
                marker: true,
                sequence: 0x1234,
                timestamp: 0x1000,
                ssrc: 0xdead_beef,
                has_padding: true,
                extension: Some(ExtensionBlock { profile: 0xbede, start: 24, end: 28 }),
                header_len: 28,
            }
        );
        assert_eq!(header.elements(&FULL).collect::<Vec<_>>(), [(1, &[0xaa][..])]);
        assert_eq!(header.payload(&FULL), Ok(&[7, 8, 9][..]));
        assert_eq!(header.padding_len(&FULL), Ok(2));
    }

    #[test]
    fn the_header_is_readable_while_the_payload_is_encrypted() {
        let mut encrypted = FULL;
        encrypted[28..].fill(0xff);
        let header = RtpHeader::parse(&encrypted).unwrap();
        assert_eq!((header.header_len, header.has_padding), (28, true));
        assert_eq!(header.payload(&FULL), Ok(&[7, 8, 9][..]));
        assert_eq!(
            header.payload(&encrypted),
            Err(RtpError::Padding { padding: 0xff, available: 5 })
        );
    }

    #[test]
    fn every_truncation_of_the_header_is_refused_and_says_what_was_needed() {
        for len in 0..28 {
            match RtpHeader::parse(&FULL[..len]) {
                Err(RtpError::Truncated { needed, len: got }) => {
                    assert!(got == len && needed > len);
                }
                other => panic!("{len}: {other:?}"),
            }
        }
        assert!(RtpHeader::parse(&FULL[..28]).is_ok());
        let header = RtpHeader::parse(&FULL).unwrap();
        assert_eq!(header.payload(&FULL[..20]), Err(RtpError::Truncated { needed: 28, len: 20 }));
    }

    #[test]
    fn other_versions_are_refused() {
        for version in [0, 1, 3] {
            let mut packet = FULL;
            packet[0] = (packet[0] & 0x3f) | version << 6;
            assert_eq!(RtpHeader::parse(&packet), Err(RtpError::Version(version)));
        }
    }

    #[test]
    fn padding_counts_itself_and_may_fill_the_whole_payload() {
        for (last, expect) in [
            (1, Ok(4)),
            (5, Ok(0)),
            (0, Err(RtpError::Padding { padding: 0, available: 5 })),
            (6, Err(RtpError::Padding { padding: 6, available: 5 })),
        ] {
            let mut packet = FULL;
            packet[32] = last;
            let header = RtpHeader::parse(&packet).unwrap();
            assert_eq!(header.payload(&packet).map(<[u8]>::len), expect, "{last}");
        }
        // Nothing after the header: the last byte belongs to the header and is not a padding count.
        let header = RtpHeader::parse(&FULL[..28]).unwrap();
        assert!(matches!(header.payload(&FULL[..28]), Err(RtpError::Padding { available: 0, .. })));
    }
}
