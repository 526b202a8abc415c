//! Extended reports (RFC 3611): the receiver's own reference time and the answer to it, from which
//! a receiver that sends no media calculates its round-trip time.

use super::frame::{self, write_words};
use crate::octets::{chunk_at, u32_at, u64_at};
use crate::rtp::NtpTime;

const RECEIVER_REFERENCE_TIME: u8 = 4;
const DELAY_SINCE_LAST_RECEIVER_REPORT: u8 = 5;
const SUB_BLOCK_LEN: usize = 12;

/// An extended report.
#[derive(Clone, Copy, Debug)]
pub struct ExtendedReport<'a> {
    /// The reporter.
    pub ssrc: u32,
    blocks: &'a [u8],
}

/// A block of an extended report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendedBlock<'a> {
    /// RRTR (section 4.4): when the report was sent, on the receiver's clock.
    ReferenceTime(NtpTime),
    /// One entry of a DLRR block (section 4.5).
    DelaySince(DelaySinceReference),
    /// Another type.
    Other {
        /// Block type.
        block_type: u8,
        /// The bytes after the block's four bytes of header.
        body: &'a [u8],
    },
}

/// The age of a receiver's reference time: round trip = now − `last_reference` − `delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySinceReference {
    /// The receiver whose reference time it was.
    pub ssrc: u32,
    /// LRR: the middle 32 bits of that reference time.
    pub last_reference: u32,
    /// DLRR: time since it was received, in units of 1/65536 s.
    pub delay: u32,
}

impl<'a> ExtendedReport<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, &'static str> {
        let ssrc = u32_at(body, 0).ok_or("XR reporter")?;
        let blocks = body.get(4..).ok_or("XR reporter")?;
        let mut rest = blocks;
        while !rest.is_empty() {
            let (block_type, block, after) = split_block(rest).ok_or("XR block length")?;
            match block_type {
                RECEIVER_REFERENCE_TIME if block.len() != 8 => return Err("RRTR block"),
                DELAY_SINCE_LAST_RECEIVER_REPORT if !block.len().is_multiple_of(SUB_BLOCK_LEN) => {
                    return Err("DLRR block");
                }
                _ => rest = after,
            }
        }
        Ok(Self { ssrc, blocks })
    }

    /// Its blocks in order; the entries of a DLRR block are separate items.
    pub fn blocks(&self) -> impl Iterator<Item = ExtendedBlock<'a>> + Clone + 'a {
        let mut rest = self.blocks;
        let mut entries: &[u8] = &[];
        std::iter::from_fn(move || {
            loop {
                if let Some((entry, after)) = entries.split_at_checked(SUB_BLOCK_LEN) {
                    entries = after;
                    return delay_since(entry).map(ExtendedBlock::DelaySince);
                }
                let (block_type, body, after) = split_block(rest)?;
                rest = after;
                match block_type {
                    RECEIVER_REFERENCE_TIME => {
                        return u64_at(body, 0)
                            .map(|time| ExtendedBlock::ReferenceTime(NtpTime(time)));
                    }
                    DELAY_SINCE_LAST_RECEIVER_REPORT => entries = body,
                    _ => return Some(ExtendedBlock::Other { block_type, body }),
                }
            }
        })
    }
}

fn split_block(blocks: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let &[block_type, _, l0, l1] = chunk_at(blocks, 0)?;
    let len = 4 * usize::from(u16::from_be_bytes([l0, l1]));
    let (body, rest) = blocks.get(4..)?.split_at_checked(len)?;
    Some((block_type, body, rest))
}

fn delay_since(entry: &[u8]) -> Option<DelaySinceReference> {
    Some(DelaySinceReference {
        ssrc: u32_at(entry, 0)?,
        last_reference: u32_at(entry, 4)?,
        delay: u32_at(entry, 8)?,
    })
}

pub(super) fn write_reference_time(out: &mut Vec<u8>, ssrc: u32, now: NtpTime) {
    frame::write(out, frame::EXTENDED_REPORT, 0, |out| {
        write_words(out, [ssrc, u32::from(RECEIVER_REFERENCE_TIME) << 24 | 2]);
        write_words(out, [(now.0 >> 32) as u32, now.0 as u32]);
    });
}

/// Writes a DLRR block with the first 100 of `entries`; nothing when there are none.
pub(super) fn write_delays(out: &mut Vec<u8>, ssrc: u32, entries: &[DelaySinceReference]) {
    let entries = entries.get(..100).unwrap_or(entries);
    if entries.is_empty() {
        return;
    }
    frame::write(out, frame::EXTENDED_REPORT, 0, |out| {
        let words = entries.len() as u32 * (SUB_BLOCK_LEN as u32 / 4);
        write_words(out, [ssrc, u32::from(DELAY_SINCE_LAST_RECEIVER_REPORT) << 24 | words]);
        for entry in entries {
            write_words(out, [entry.ssrc, entry.last_reference, entry.delay]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, RtcpError};

    fn blocks(bytes: &[u8]) -> Vec<ExtendedBlock<'_>> {
        let Some(Ok(Rtcp::ExtendedReport(report))) = Compound::new(bytes).next() else {
            panic!("{bytes:?}")
        };
        assert_eq!(report.ssrc, 1);
        report.blocks().collect()
    }

    #[test]
    fn reference_time_as_rfc_3611_draws_it() {
        let bytes = [0x80, 207, 0, 4, 0, 0, 0, 1, 4, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(blocks(&bytes), [ExtendedBlock::ReferenceTime(NtpTime(0x0102_0304_0506_0708))]);
        let mut out = Vec::new();
        write_reference_time(&mut out, 1, NtpTime(0x0102_0304_0506_0708));
        assert_eq!(out, bytes);
    }

    #[test]
    fn delays_as_rfc_3611_draws_them() {
        let entries =
            [2, 3].map(|ssrc| DelaySinceReference { ssrc, last_reference: 0xabcd, delay: 65_536 });
        let mut out = Vec::new();
        write_delays(&mut out, 1, &entries);
        assert_eq!(out[..12], [0x80, 207, 0, 8, 0, 0, 0, 1, 5, 0, 0, 6]);
        assert_eq!(blocks(&out), entries.map(ExtendedBlock::DelaySince));
        let before = out.len();
        write_delays(&mut out, 1, &[]);
        assert_eq!(out.len(), before);
    }

    #[test]
    fn unknown_blocks_are_passed_by() {
        let bytes = [
            0x80, 207, 0, 6, 0, 0, 0, 1, 42, 7, 0, 1, 9, 9, 9, 9, 4, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,
            0,
        ];
        assert_eq!(
            blocks(&bytes),
            [
                ExtendedBlock::Other { block_type: 42, body: &[9; 4] },
                ExtendedBlock::ReferenceTime(NtpTime(1 << 32))
            ]
        );
    }

    #[test]
    fn blocks_of_the_wrong_length_are_refused() {
        for bytes in [
            &[0x80, 207, 0, 2, 0, 0, 0, 1, 4, 0, 0, 2][..],
            &[0x80, 207, 0, 3, 0, 0, 0, 1, 4, 0, 0, 1, 0, 0, 0, 0],
            &[0x80, 207, 0, 3, 0, 0, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0],
        ] {
            assert!(matches!(Compound::new(bytes).next(), Some(Err(RtcpError::Malformed { .. }))));
        }
    }
}
