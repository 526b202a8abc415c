//! A publisher's tracks: packets received by WHIP become bursts of the live sources.

use std::time::Instant;

use throng_media::rtcp::{Report, ReportBlock, RtcpWriter};
use throng_media::rtp::{NtpTime, RtpHeader};
use throng_protocol::webrtc::srtp::{IndexEstimator, Opener};

use crate::peer::NegotiatedMedia;
use crate::source::{Burst, Channel, Codec, Source};

/// Bit rate that REMB allows a publisher, bits per second: more than any test video needs.
const ALLOWED_BPS: u64 = 5_000_000;
/// SSRC of our reports; we send no media to a publisher.
const REPORTER_SSRC: u32 = 1;

/// A track of a publisher.
pub(crate) struct Published {
    agreed: NegotiatedMedia,
    channel: Channel,
    ssrc: Option<u32>,
    indexes: IndexEstimator,
    /// Number of the newest packet within the source.
    newest: Option<u64>,
    /// Added to SRTP indexes, so that each publisher's packets follow those of the one before.
    number_base: u64,
}

impl Published {
    /// The `generation`-th publisher of the room.
    pub(crate) fn new(agreed: NegotiatedMedia, channel: Channel, generation: u32) -> Self {
        // SRTP indexes have 48 bits, and no publisher lives for 2^40 packets.
        let number_base = u64::from(generation) << 40;
        Self {
            agreed,
            channel,
            ssrc: None,
            indexes: IndexEstimator::default(),
            newest: None,
            number_base,
        }
    }

    pub(crate) fn codec(&self) -> Codec {
        self.agreed.codec
    }

    /// The track's SSRC, once it has sent a packet.
    pub(crate) fn ssrc(&self) -> Option<u32> {
        self.ssrc
    }

    /// Whether a packet of this header belongs to the track.
    pub(crate) fn owns(&self, header: &RtpHeader) -> bool {
        header.payload_type == self.agreed.payload_type
    }

    /// Opens a packet of the track. `None` when it is not authentic, empty, repeated or overtaken:
    /// a late packet would need a number that viewers have passed, and counts as lost upstream.
    pub(crate) fn open(
        &mut self,
        header: &RtpHeader,
        packet: &mut [u8],
        opener: &Opener,
        now: Instant,
        wall_clock_ns: u64,
    ) -> Option<Burst> {
        if self.ssrc.is_some_and(|ssrc| ssrc != header.ssrc) {
            return None; // a second stream on this payload type, as simulcast would be
        }
        let index = self.indexes.estimate(header.sequence);
        let range = opener.open_rtp(packet, header.header_len, header.ssrc, index).ok()?;
        self.ssrc = Some(header.ssrc);
        self.indexes.accept(index);
        let plain = packet.get(..range.end)?;
        let padding = header.padding_len(plain).ok()?;
        let payload =
            plain.get(range.start..range.end - padding).filter(|payload| !payload.is_empty())?;
        let number = self.number_base + index;
        if self.newest.is_some_and(|newest| number <= newest) {
            return None;
        }
        self.newest = Some(number);
        Some(Burst {
            source: match self.agreed.codec.is_audio() {
                true => Source::LiveAudio(self.channel),
                false => Source::LiveVideo(self.channel),
            },
            first_packet: number,
            timestamp: header.timestamp,
            key_frame: begins_key_frame(self.agreed.codec, payload),
            marker: header.marker,
            payloads: vec![payload.to_vec()],
            captured: NtpTime::from_unix_ns(wall_clock_ns),
            captured_at: now,
        })
    }

    /// A report without loss: missing packets were lost before us and are not requested again.
    fn report(&self) -> Option<ReportBlock> {
        let highest_sequence = (self.newest? - self.number_base) as u32;
        Some(ReportBlock { ssrc: self.ssrc?, highest_sequence, ..ReportBlock::default() })
    }
}

/// Writes a publisher's feedback of each second: receiver reports, and REMB for the full bit rate.
pub(crate) fn write_feedback(tracks: &[Published], out: &mut Vec<u8>) {
    out.clear();
    let reports: Vec<ReportBlock> = tracks.iter().filter_map(Published::report).collect();
    let ssrcs: Vec<u32> = reports.iter().map(|report| report.ssrc).collect();
    let _ = RtcpWriter::compound(out, Report::Receiver(REPORTER_SSRC), &reports, "throng-stage")
        .remb(REPORTER_SSRC, ALLOWED_BPS, &ssrcs);
}

/// Writes a request for a key frame of `ssrc`.
pub(crate) fn write_key_frame_request(ssrc: u32, out: &mut Vec<u8>) {
    out.clear();
    let _ = RtcpWriter::compound(out, Report::Receiver(REPORTER_SSRC), &[], "throng-stage")
        .picture_loss(REPORTER_SSRC, ssrc);
}

/// Whether decoding can begin with this packet.
fn begins_key_frame(codec: Codec, payload: &[u8]) -> bool {
    // SPS: encoders put the parameter sets before each IDR picture, and a decoder needs them first.
    let is_sps = |head: u8| head & 0x1f == 7;
    match (codec, payload) {
        (Codec::Opus, _) => true,
        // RFC 6184: the first unit of a STAP-A lies behind its 16-bit length.
        (Codec::H264, [head, _, _, first, ..]) if head & 0x1f == 24 => is_sps(*first),
        (Codec::H264, [head, ..]) => is_sps(*head),
        (Codec::Vp8, [head, ..]) => {
            // RFC 7741 §4.2: S bit, partition 0; then behind the optional parts the frame's first
            // byte.
            let frame = vp8_frame_offset(payload).and_then(|at| payload.get(at));
            head & 0x17 == 0x10 && frame.is_some_and(|byte| byte & 1 == 0)
        }
        _ => false,
    }
}

/// Where the VP8 frame begins behind its payload descriptor.
fn vp8_frame_offset(payload: &[u8]) -> Option<usize> {
    if payload.first()? & 0x80 == 0 {
        return Some(1);
    }
    let parts = *payload.get(1)?;
    let mut at = 2;
    if parts & 0x80 != 0 {
        at += if payload.get(at)? & 0x80 != 0 { 2 } else { 1 };
    }
    at += usize::from(parts & 0x40 != 0);
    at += usize::from(parts & 0x30 != 0);
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_begin_where_a_decoder_can() {
        for (codec, payload, expect) in [
            (Codec::Opus, &[0xfc][..], true),
            (Codec::H264, &[0x67, 0x42], true),
            (Codec::H264, &[0x78, 0, 10, 0x67, 0x42], true),
            (Codec::H264, &[0x78, 0, 10, 0x06, 5], false),
            (Codec::H264, &[0x7c, 0x85, 1], false), // an IDR slice without its parameter sets
            (Codec::H264, &[0x78], false),
            (Codec::Vp8, &[0x10, 0x50], true),
            (Codec::Vp8, &[0x10, 0x51], false),
            (Codec::Vp8, &[0x00, 0x50], false),
            (Codec::Vp8, &[0x90, 0x80, 0x81, 0x23, 0x50], true),
            (Codec::Vp8, &[0x90, 0xf0, 0x81, 0x23, 1, 2, 0x50], true),
            (Codec::Vp8, &[0x90, 0x80, 0x81], false),
            (Codec::Vp8, &[], false),
        ] {
            assert_eq!(begins_key_frame(codec, payload), expect, "{codec:?} {payload:?}");
        }
    }

    #[test]
    fn vp8_of_the_test_card_begins_where_its_packetiser_says() {
        let mut payloads = Vec::new();
        throng_media::packetise::vp8::packetise(&[0x50; 3_000], 9, 1_000, &mut payloads);
        let begins: Vec<bool> =
            payloads.iter().map(|payload| begins_key_frame(Codec::Vp8, payload)).collect();
        assert_eq!(begins, [true, false, false, false]);
    }
}
