//! Writes RTCP packets one after another into a buffer that is reused.

use super::description::SOURCES_MAX;
use super::report::BLOCKS_MAX;
use super::transport_feedback::Arrival;
use super::{ReportBlock, SenderInfo};
use super::{description, keyframe, nack, remb, report, transport_feedback};

/// The report at the start of a compound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report<'a> {
    /// This side sends media.
    Sender(&'a SenderInfo),
    /// This side only receives; its SSRC.
    Receiver(u32),
}

/// Appends RTCP packets to a buffer. The buffer is always a valid RTCP datagram.
///
/// ```
/// use throng_media::rtcp::{Report, RtcpWriter};
/// let mut buffer = Vec::new();
/// RtcpWriter::compound(&mut buffer, Report::Receiver(1), &[], "viewer-7")
///     .nack(1, 2, &[40, 41])
///     .picture_loss(1, 2);
/// ```
#[derive(Debug)]
pub struct RtcpWriter<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> RtcpWriter<'b> {
    /// Begins a compound as RFC 3550 section 6.1 requires: a report first (further ones for more
    /// than 31 reported sources), then the canonical name.
    #[must_use = "the reports are written; further packets may follow"]
    pub fn compound(
        out: &'b mut Vec<u8>,
        by: Report<'_>,
        reports: &[ReportBlock],
        cname: &str,
    ) -> Self {
        let mut batches = reports.chunks(BLOCKS_MAX);
        let first = batches.next().unwrap_or_default();
        let ssrc = match by {
            Report::Sender(sender) => {
                report::write_sender(out, sender, first);
                sender.ssrc
            }
            Report::Receiver(ssrc) => {
                report::write_receiver(out, ssrc, first);
                ssrc
            }
        };
        batches.for_each(|batch| report::write_receiver(out, ssrc, batch));
        description::write_cname(out, ssrc, cname);
        Self { out }
    }

    /// Begins a reduced-size packet, without report and name; requires `a=rtcp-rsize` (RFC 5506) in
    /// the session.
    #[must_use]
    pub fn reduced_size(out: &'b mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Requests packets again. Ascending order of `missing` (with wrap) needs the fewest entries.
    pub fn nack(self, sender_ssrc: u32, media_ssrc: u32, missing: &[u16]) -> Self {
        nack::write(self.out, sender_ssrc, media_ssrc, missing);
        self
    }

    /// Requests a key frame (PLI).
    pub fn picture_loss(self, sender_ssrc: u32, media_ssrc: u32) -> Self {
        keyframe::write_picture_loss(self.out, sender_ssrc, media_ssrc);
        self
    }

    /// Requests a key frame (FIR); a new request has the next `sequence`, a repeated one the same.
    pub fn full_intra_request(self, sender_ssrc: u32, media_ssrc: u32, sequence: u8) -> Self {
        keyframe::write_full_intra_request(self.out, sender_ssrc, media_ssrc, sequence);
        self
    }

    /// Reports how much this side can receive from all of `ssrcs` (at most 255) together; rounded
    /// down to 18 significant bits.
    pub fn remb(self, sender_ssrc: u32, bitrate_bps: u64, ssrcs: &[u32]) -> Self {
        remb::write(self.out, sender_ssrc, bitrate_bps, ssrcs);
        self
    }

    /// Reports when packets arrived, in as many packets as needed, all below 1 200 bytes.
    /// `arrivals` are in the order of their sequence numbers (with wrap). `feedback_count` is
    /// raised by one for each packet written.
    pub fn transport_feedback(
        self,
        sender_ssrc: u32,
        media_ssrc: u32,
        feedback_count: &mut u8,
        arrivals: &[Arrival],
    ) -> Self {
        let mut rest = arrivals;
        while !rest.is_empty() {
            let taken =
                transport_feedback::write(self.out, sender_ssrc, media_ssrc, *feedback_count, rest);
            *feedback_count = feedback_count.wrapping_add(1);
            // At least one is always taken, so the loop ends.
            rest = rest.get(taken.max(1)..).unwrap_or_default();
        }
        self
    }

    /// Reports that sources leave.
    pub fn bye(self, ssrcs: &[u32]) -> Self {
        ssrcs.chunks(SOURCES_MAX).for_each(|batch| description::write_bye(self.out, batch));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp};
    use crate::rtp::{PacketKind, classify};

    fn kinds(bytes: &[u8]) -> Vec<&'static str> {
        Compound::new(bytes)
            .map(|packet| match packet.unwrap() {
                Rtcp::SenderReport(_) => "SR",
                Rtcp::ReceiverReport(_) => "RR",
                Rtcp::SourceDescription(_) => "SDES",
                Rtcp::Bye(_) => "BYE",
                Rtcp::Application => "APP",
                Rtcp::Nack(_) => "NACK",
                Rtcp::TransportFeedback(_) => "TWCC",
                Rtcp::PictureLoss(_) => "PLI",
                Rtcp::FullIntraRequest(_) => "FIR",
                Rtcp::Remb(_) => "REMB",
                Rtcp::ExtendedReport => "XR",
                Rtcp::Other { .. } => "other",
            })
            .collect()
    }

    #[test]
    fn a_compound_begins_with_report_and_name() {
        let mut out = Vec::new();
        let mut count = 255;
        let sender = SenderInfo { ssrc: 1, ..SenderInfo::default() };
        let _ = RtcpWriter::compound(
            &mut out,
            Report::Sender(&sender),
            &[ReportBlock::default()],
            "me",
        )
        .nack(1, 2, &[3])
        .picture_loss(1, 2)
        .full_intra_request(1, 2, 3)
        .remb(1, 500_000, &[2])
        .transport_feedback(1, 2, &mut count, &[Arrival { sequence: 1, arrived_us: 0 }])
        .bye(&[1]);
        assert_eq!(classify(&out), PacketKind::Rtcp);
        assert_eq!(kinds(&out), ["SR", "SDES", "NACK", "PLI", "FIR", "REMB", "TWCC", "BYE"]);
        assert_eq!(count, 0);
    }

    #[test]
    fn more_than_31_sources_make_further_reports() {
        let mut out = Vec::new();
        let _ = RtcpWriter::compound(
            &mut out,
            Report::Receiver(1),
            &[ReportBlock::default(); 70],
            "me",
        );
        assert_eq!(kinds(&out), ["RR", "RR", "RR", "SDES"]);
        let blocks = Compound::new(&out).filter_map(|packet| match packet {
            Ok(Rtcp::ReceiverReport(report)) => Some(report.reports().count()),
            _ => None,
        });
        assert_eq!(blocks.collect::<Vec<_>>(), [31, 31, 8]);
    }

    #[test]
    fn reduced_size_has_only_what_was_asked_for() {
        let mut out = vec![1, 2]; // appended to existing bytes
        let _ = RtcpWriter::reduced_size(&mut out).picture_loss(1, 2);
        assert_eq!(kinds(&out[2..]), ["PLI"]);
    }
}
