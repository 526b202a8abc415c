//! Sender and receiver reports (RFC 3550 section 6.4).

use super::frame::{self, write_words};
use crate::octets::{u32_at, u64_at};
use crate::rtp::NtpTime;

const BLOCK_LEN: usize = 24;

/// Most report blocks in one packet (its count has five bits).
pub(super) const BLOCKS_MAX: usize = 31;

/// A receiver's report about one source since its last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The reported source.
    pub ssrc: u32,
    /// Packets lost since the last report, in 1/256 of those expected.
    pub fraction_lost: u8,
    /// Packets lost since the beginning, 24 bits signed: duplicates can make it negative.
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the count of its wraps in the high 16 bits.
    pub highest_sequence: u32,
    /// Interarrival jitter in units of the RTP timestamp.
    pub jitter: u32,
    /// LSR: the middle 32 bits of the NTP time of the last SR received from the source; 0 if none
    /// was.
    pub last_sr: u32,
    /// DLSR: time since that SR, in units of 1/65536 s.
    pub delay_since_last_sr: u32,
}

impl ReportBlock {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let loss = u32_at(bytes, 4)?;
        Some(Self {
            ssrc: u32_at(bytes, 0)?,
            fraction_lost: (loss >> 24) as u8,
            // Shifting the 24 bits up and back extends their sign.
            cumulative_lost: (loss << 8) as i32 >> 8,
            highest_sequence: u32_at(bytes, 8)?,
            jitter: u32_at(bytes, 12)?,
            last_sr: u32_at(bytes, 16)?,
            delay_since_last_sr: u32_at(bytes, 20)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let lost = self.cumulative_lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
        write_words(
            out,
            [
                self.ssrc,
                u32::from(self.fraction_lost) << 24 | lost,
                self.highest_sequence,
                self.jitter,
                self.last_sr,
                self.delay_since_last_sr,
            ],
        );
    }
}

/// The report blocks after `head` bytes of a report's body.
fn blocks(count: u8, body: &[u8], head: usize) -> Result<&[u8], &'static str> {
    let end = head + BLOCK_LEN * usize::from(count);
    body.get(head..end).ok_or("report block count")
}

fn each(blocks: &[u8]) -> impl Iterator<Item = ReportBlock> + Clone + '_ {
    blocks.chunks_exact(BLOCK_LEN).filter_map(ReportBlock::parse)
}

/// A sender's information about its own stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderInfo {
    /// The sender.
    pub ssrc: u32,
    /// When the report was sent, on the sender's clock.
    pub ntp: NtpTime,
    /// The same moment in units of the sender's RTP timestamps.
    pub rtp_timestamp: u32,
    /// Packets sent since the beginning.
    pub packet_count: u32,
    /// Payload bytes sent since the beginning.
    pub octet_count: u32,
}

/// A sender report.
#[derive(Clone, Copy, Debug)]
pub struct SenderReport<'a> {
    /// Information about the sender's own stream.
    pub sender: SenderInfo,
    blocks: &'a [u8],
}

impl<'a> SenderReport<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Result<Self, &'static str> {
        let sender = || {
            Some(SenderInfo {
                ssrc: u32_at(body, 0)?,
                ntp: NtpTime(u64_at(body, 4)?),
                rtp_timestamp: u32_at(body, 12)?,
                packet_count: u32_at(body, 16)?,
                octet_count: u32_at(body, 20)?,
            })
        };
        Ok(Self { sender: sender().ok_or("sender info")?, blocks: blocks(count, body, 24)? })
    }

    /// Reports about the sources that the sender receives.
    pub fn reports(&self) -> impl Iterator<Item = ReportBlock> + Clone + 'a {
        each(self.blocks)
    }
}

/// A receiver report.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverReport<'a> {
    /// The receiver that reports.
    pub ssrc: u32,
    blocks: &'a [u8],
}

impl<'a> ReceiverReport<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Result<Self, &'static str> {
        Ok(Self { ssrc: u32_at(body, 0).ok_or("reporter")?, blocks: blocks(count, body, 4)? })
    }

    /// Its reports about the sources that it receives.
    pub fn reports(&self) -> impl Iterator<Item = ReportBlock> + Clone + 'a {
        each(self.blocks)
    }
}

/// Writes an SR with the first [`BLOCKS_MAX`] of `reports`.
pub(super) fn write_sender(out: &mut Vec<u8>, sender: &SenderInfo, reports: &[ReportBlock]) {
    let reports = reports.get(..BLOCKS_MAX).unwrap_or(reports);
    frame::write(out, frame::SENDER_REPORT, reports.len() as u8, |out| {
        write_words(out, [sender.ssrc, (sender.ntp.0 >> 32) as u32, sender.ntp.0 as u32]);
        write_words(out, [sender.rtp_timestamp, sender.packet_count, sender.octet_count]);
        reports.iter().for_each(|report| report.write(out));
    });
}

/// Writes an RR with the first [`BLOCKS_MAX`] of `reports`.
pub(super) fn write_receiver(out: &mut Vec<u8>, ssrc: u32, reports: &[ReportBlock]) {
    let reports = reports.get(..BLOCKS_MAX).unwrap_or(reports);
    frame::write(out, frame::RECEIVER_REPORT, reports.len() as u8, |out| {
        write_words(out, [ssrc]);
        reports.iter().for_each(|report| report.write(out));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};

    const BLOCK: [u8; 24] = [
        0, 0, 0, 2, 0x40, 0xff, 0xff, 0xfe, 0, 1, 0, 5, 0, 0, 0, 90, 0x12, 0x34, 0x56, 0x78, 0, 1,
        0x80, 0,
    ];

    fn block() -> ReportBlock {
        ReportBlock {
            ssrc: 2,
            fraction_lost: 64,
            cumulative_lost: -2,
            highest_sequence: 0x1_0005,
            jitter: 90,
            last_sr: 0x1234_5678,
            delay_since_last_sr: 0x1_8000, // 1.5 s
        }
    }

    #[test]
    fn receiver_report_as_rfc_3550_draws_it() {
        let bytes = [&[0x81, 201, 0, 7, 0, 0, 0, 1][..], &BLOCK].concat();
        let Some(Ok(Rtcp::ReceiverReport(report))) = Compound::new(&bytes).next() else { panic!() };
        assert_eq!((report.ssrc, report.reports().collect::<Vec<_>>()), (1, vec![block()]));
        let mut out = Vec::new();
        write_receiver(&mut out, 1, &[block()]);
        assert_eq!(out, bytes);
    }

    #[test]
    fn sender_report_as_rfc_3550_draws_it() {
        let mut bytes = vec![0x81, 200, 0, 12, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9];
        bytes.extend([0, 0, 0, 10, 0, 0, 0, 11]);
        bytes.extend(BLOCK);
        let Some(Ok(Rtcp::SenderReport(report))) = Compound::new(&bytes).next() else { panic!() };
        let sender = SenderInfo {
            ssrc: 7,
            ntp: NtpTime(0x0102_0304_0506_0708),
            rtp_timestamp: 9,
            packet_count: 10,
            octet_count: 11,
        };
        assert_eq!((report.sender, report.reports().collect::<Vec<_>>()), (sender, vec![block()]));
        let mut out = Vec::new();
        write_sender(&mut out, &sender, &[block()]);
        assert_eq!(out, bytes);
    }

    #[test]
    fn profile_extensions_after_the_blocks_are_ignored() {
        let bytes = [&[0x81, 201, 0, 8, 0, 0, 0, 1][..], &BLOCK, &[9; 4]].concat();
        let Some(Ok(Rtcp::ReceiverReport(report))) = Compound::new(&bytes).next() else { panic!() };
        assert_eq!(report.reports().count(), 1);
    }

    #[test]
    fn loss_saturates_at_24_bits() {
        for (lost, read) in [(0x7f_ffff, 0x7f_ffff), (i32::MAX, 0x7f_ffff), (i32::MIN, -0x80_0000)]
        {
            let mut out = Vec::new();
            ReportBlock { cumulative_lost: lost, ..block() }.write(&mut out);
            assert_eq!(ReportBlock::parse(&out).unwrap().cumulative_lost, read);
        }
    }
}
