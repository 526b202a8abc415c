//! Key frame requests: picture loss indication (RFC 4585 section 6.3.1) and full intra request (RFC
//! 5104 section 4.3.1).

use super::frame::{self, write_words};
use crate::octets::u32_at;

/// A picture loss indication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureLoss {
    /// SSRC of the requester.
    pub sender_ssrc: u32,
    /// SSRC of the media source.
    pub media_ssrc: u32,
}

impl PictureLoss {
    pub(super) const FORMAT: u8 = 1;

    pub(super) fn parse(body: &[u8]) -> Result<Self, &'static str> {
        let read = || Some(Self { sender_ssrc: u32_at(body, 0)?, media_ssrc: u32_at(body, 4)? });
        read().ok_or("PLI")
    }
}

pub(super) fn write_picture_loss(out: &mut Vec<u8>, sender_ssrc: u32, media_ssrc: u32) {
    frame::write(out, frame::PAYLOAD_FEEDBACK, PictureLoss::FORMAT, |out| {
        write_words(out, [sender_ssrc, media_ssrc]);
    });
}

/// A full intra request, to one or more sources.
#[derive(Clone, Copy, Debug)]
pub struct FullIntraRequest<'a> {
    /// SSRC of the requester.
    pub sender_ssrc: u32,
    entries: &'a [u8],
}

impl<'a> FullIntraRequest<'a> {
    pub(super) const FORMAT: u8 = 4;

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, &'static str> {
        let read = || {
            let entries = body.get(8..).filter(|entries| entries.len().is_multiple_of(8))?;
            Some(Self { sender_ssrc: u32_at(body, 0)?, entries })
        };
        read().ok_or("FIR entry")
    }

    /// The requested sources, each with the request's sequence number: the same number is the same
    /// request.
    pub fn requests(&self) -> impl Iterator<Item = (u32, u8)> + Clone + 'a {
        self.entries.chunks_exact(8).filter_map(|entry| Some((u32_at(entry, 0)?, *entry.get(4)?)))
    }
}

pub(super) fn write_full_intra_request(
    out: &mut Vec<u8>,
    sender_ssrc: u32,
    media_ssrc: u32,
    sequence: u8,
) {
    frame::write(out, frame::PAYLOAD_FEEDBACK, FullIntraRequest::FORMAT, |out| {
        // RFC 5104 section 4.3.1.2: the media source of the common part is 0; the entry has the
        // source.
        write_words(out, [sender_ssrc, 0, media_ssrc, u32::from(sequence) << 24]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, RtcpError};

    #[test]
    fn picture_loss() {
        let mut out = Vec::new();
        write_picture_loss(&mut out, 1, 2);
        assert_eq!(out, [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        let Some(Ok(Rtcp::PictureLoss(pli))) = Compound::new(&out).next() else { panic!() };
        assert_eq!(pli, PictureLoss { sender_ssrc: 1, media_ssrc: 2 });
    }

    #[test]
    fn full_intra_request() {
        let mut out = Vec::new();
        write_full_intra_request(&mut out, 1, 2, 7);
        assert_eq!(out, [0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 7, 0, 0, 0]);
        let Some(Ok(Rtcp::FullIntraRequest(fir))) = Compound::new(&out).next() else { panic!() };
        assert_eq!((fir.sender_ssrc, fir.requests().collect::<Vec<_>>()), (1, vec![(2, 7)]));
    }

    #[test]
    fn short_requests_are_refused() {
        for bytes in [
            &[0x81, 206, 0, 1, 0, 0, 0, 1][..],
            &[0x84, 206, 0, 1, 0, 0, 0, 1],
            &[0x84, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2],
        ] {
            assert!(matches!(Compound::new(bytes).next(), Some(Err(RtcpError::Malformed { .. }))));
        }
    }
}
