//! The packets of a compound RTCP packet: a malformed one never hides the valid ones before it.

use super::frame::{self, Frame, RtcpError};
use super::{
    Bye, FullIntraRequest, Nack, PictureLoss, ReceiverReport, Remb, SenderReport,
    SourceDescription, TransportFeedback, extended,
};

/// One RTCP packet, borrowed from its compound.
#[derive(Clone, Copy, Debug)]
pub enum Rtcp<'a> {
    /// SR, RFC 3550 section 6.4.1.
    SenderReport(SenderReport<'a>),
    /// RR, RFC 3550 section 6.4.2.
    ReceiverReport(ReceiverReport<'a>),
    /// SDES, RFC 3550 section 6.5.
    SourceDescription(SourceDescription<'a>),
    /// BYE, RFC 3550 section 6.6.
    Bye(Bye<'a>),
    /// APP, RFC 3550 section 6.7; nothing in it is interpreted.
    Application,
    /// Generic NACK, RFC 4585 section 6.2.1.
    Nack(Nack<'a>),
    /// Transport-wide congestion control feedback.
    TransportFeedback(TransportFeedback<'a>),
    /// PLI, RFC 4585 section 6.3.1.
    PictureLoss(PictureLoss),
    /// FIR, RFC 5104 section 4.3.1.
    FullIntraRequest(FullIntraRequest<'a>),
    /// REMB, draft-alvestrand-rmcat-remb-03.
    Remb(Remb<'a>),
    /// XR, RFC 3611; nothing of it is used.
    ExtendedReport,
    /// A type or format that is not supported.
    Other {
        /// Packet type.
        packet_type: u8,
        /// Count or feedback format, 0–31.
        format: u8,
        /// The bytes after the four bytes of the frame, padding stripped.
        body: &'a [u8],
    },
}

impl<'a> Rtcp<'a> {
    fn read(frame: Frame<'a>) -> Result<Self, &'static str> {
        let Frame { packet_type, count, body } = frame;
        Ok(match (packet_type, count) {
            (frame::SENDER_REPORT, _) => Self::SenderReport(SenderReport::parse(count, body)?),
            (frame::RECEIVER_REPORT, _) => {
                Self::ReceiverReport(ReceiverReport::parse(count, body)?)
            }
            (frame::SOURCE_DESCRIPTION, _) => {
                Self::SourceDescription(SourceDescription::parse(count, body)?)
            }
            (frame::BYE, _) => Self::Bye(Bye::parse(count, body)?),
            (frame::APPLICATION, _) => {
                body.get(8..).map(|_| Self::Application).ok_or("application name")?
            }
            (frame::TRANSPORT_FEEDBACK, Nack::FORMAT) => Self::Nack(Nack::parse(body)?),
            (frame::TRANSPORT_FEEDBACK, TransportFeedback::FORMAT) => {
                Self::TransportFeedback(TransportFeedback::parse(body)?)
            }
            (frame::PAYLOAD_FEEDBACK, PictureLoss::FORMAT) => {
                Self::PictureLoss(PictureLoss::parse(body)?)
            }
            (frame::PAYLOAD_FEEDBACK, FullIntraRequest::FORMAT) => {
                Self::FullIntraRequest(FullIntraRequest::parse(body)?)
            }
            (frame::PAYLOAD_FEEDBACK, Remb::FORMAT) if Remb::is_remb(body) => {
                Self::Remb(Remb::parse(body)?)
            }
            (frame::EXTENDED_REPORT, _) => extended::check(body).map(|()| Self::ExtendedReport)?,
            _ => Self::Other { packet_type, format: count, body },
        })
    }
}

/// Iterates over the packets of a compound (or reduced-size, RFC 5506) RTCP packet.
///
/// A malformed packet body is an error, after which the iteration continues; after a malformed
/// frame the start of the next packet is unknown, so that error is the last item.
#[derive(Clone, Debug)]
pub struct Compound<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Compound<'a> {
    /// The packets in `bytes`: clear RTCP, without SRTCP's index and authentication tag.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }
}

impl<'a> Iterator for Compound<'a> {
    type Item = Result<Rtcp<'a>, RtcpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.bytes.len() {
            return None;
        }
        let offset = self.offset;
        let (frame, end) = match Frame::parse(self.bytes, offset) {
            Ok(framed) => framed,
            Err(error) => {
                self.offset = self.bytes.len();
                return Some(Err(error));
            }
        };
        self.offset = end;
        let packet_type = frame.packet_type;
        Some(Rtcp::read(frame).map_err(|what| RtcpError::Malformed { offset, packet_type, what }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLI: [u8; 12] = [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
    const EMPTY_RR: [u8; 8] = [0x80, 201, 0, 1, 0, 0, 0, 9];

    fn kinds(bytes: &[u8]) -> Vec<Result<&'static str, RtcpError>> {
        Compound::new(bytes)
            .map(|packet| {
                packet.map(|packet| match packet {
                    Rtcp::ReceiverReport(_) => "rr",
                    Rtcp::PictureLoss(_) => "pli",
                    Rtcp::Other { .. } => "other",
                    _ => "?",
                })
            })
            .collect()
    }

    #[test]
    fn packets_come_in_order() {
        assert_eq!(kinds(&[&EMPTY_RR[..], &PLI].concat()), [Ok("rr"), Ok("pli")]);
        assert_eq!(kinds(&[]), []);
        assert_eq!(kinds(&[0x9f, 206, 0, 0]), [Ok("other")]); // an unknown format with nothing in it
        assert_eq!(kinds(&[0x80, 192, 0, 1, 1, 2, 3, 4]), [Ok("other")]);
    }

    #[test]
    fn a_bad_tail_is_reported_after_the_good_packets() {
        let mut bytes = [&EMPTY_RR[..], &PLI].concat();
        bytes.truncate(18);
        assert_eq!(
            kinds(&bytes),
            [Ok("rr"), Err(RtcpError::Truncated { offset: 8, needed: 12, available: 10 })]
        );
        bytes.truncate(10);
        assert_eq!(
            kinds(&bytes),
            [Ok("rr"), Err(RtcpError::Truncated { offset: 8, needed: 4, available: 2 })]
        );
        let bytes = [&PLI[..], &[0x40, 201, 0, 0]].concat();
        assert_eq!(kinds(&bytes), [Ok("pli"), Err(RtcpError::Version { offset: 12, version: 1 })]);
    }

    #[test]
    fn a_bad_body_does_not_hide_what_follows() {
        // An RR that announces one block and has none.
        let bytes = [&[0x81, 201, 0, 1, 0, 0, 0, 9][..], &PLI].concat();
        assert_eq!(
            kinds(&bytes),
            [
                Err(RtcpError::Malformed {
                    offset: 0,
                    packet_type: 201,
                    what: "report block count"
                }),
                Ok("pli")
            ]
        );
    }

    #[test]
    fn padding_is_stripped_and_must_fit() {
        let mut padded = [0xa0, 201, 0, 2, 0, 0, 0, 9, 0, 0, 0, 4];
        assert_eq!(kinds(&padded), [Ok("rr")]);
        for bad in [0, 9, 255] {
            padded[11] = bad;
            assert_eq!(
                kinds(&padded),
                [Err(RtcpError::Malformed { offset: 0, packet_type: 201, what: "padding" })]
            );
        }
    }
}
