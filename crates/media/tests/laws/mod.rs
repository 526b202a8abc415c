//! Properties that must hold for any bytes: one function a parser, shared by the brief fuzz test of
//! `cargo test` and by the fuzz targets. Each panics when its property is violated.

#![allow(dead_code, unused_imports, reason = "a fuzz target uses one of the laws")]

mod container;
mod manifest;
mod recording;
mod timing;

use std::collections::BTreeSet;

use throng_media::codec::{OpusPacket, PayloadReader};
use throng_media::mark::Mark;
use throng_media::rtcp::{Arrival, Compound, Rtcp, RtcpWriter};
use throng_media::rtp::{
    Extension, ExtensionIds, HeaderFields, PacketKind, RtpHeader, classify, original_packet,
    write_header,
};
use throng_observation::Codec;

pub(crate) use container::container;
pub(crate) use manifest::{dash, hls};
pub(crate) use recording::source;
pub(crate) use timing::timing;

/// RTP: lengths add up to the packet, elements stay inside their block, and fields read can be
/// written and read again.
pub(crate) fn rtp(packet: &[u8]) {
    let kind = classify(packet);
    let Ok(header) = RtpHeader::parse(packet) else { return };
    assert!(matches!(kind, PacketKind::Rtp | PacketKind::Rtcp), "{kind:?}");
    assert!(header.header_len <= packet.len());
    let block_len = header.extension.map_or(0, |block| block.end - block.start);
    // A one-byte element takes at least two bytes, a two-byte one as well.
    assert!(header.elements(packet).map(|(_, data)| data.len() + 1).sum::<usize>() <= block_len);
    if let Ok(payload) = header.payload(packet) {
        let padding_len = header.padding_len(packet).expect("its payload was found");
        assert_eq!(header.header_len + payload.len() + padding_len, packet.len());
        if let Some((_, original)) = original_packet(payload) {
            assert_eq!(original.len() + 2, payload.len());
        }
    } else {
        assert!(header.has_padding);
    }
    // A packet shorter than its header is an error and no panic.
    for len in [0, header.header_len / 2, header.header_len.saturating_sub(1)] {
        assert!(header.payload(packet.get(..len).unwrap_or_default()).is_err());
        let _ = header.elements(packet.get(..len).unwrap_or_default()).count();
    }
    rewrite(&header, packet);
}

fn rewrite(header: &RtpHeader, packet: &[u8]) {
    let ids = ExtensionIds::from_pairs(Extension::ALL.iter().zip(1..).map(|(e, id)| (id, e.uri())));
    let extensions = ids.read(header, packet);
    let fields = HeaderFields {
        payload_type: header.payload_type,
        marker: header.marker,
        sequence: header.sequence,
        timestamp: header.timestamp,
        ssrc: header.ssrc,
    };
    let mut out = Vec::new();
    let len = write_header(&mut out, &fields, &ids, &extensions);
    let again = RtpHeader::parse(&out).expect("what was written is a header");
    assert_eq!((again.header_len, out.len()), (len, len));
    assert_eq!(
        (again.payload_type, again.marker, again.sequence, again.timestamp, again.ssrc),
        (fields.payload_type, fields.marker, fields.sequence, fields.timestamp, fields.ssrc)
    );
    assert_eq!(ids.read(&again, &out), extensions);
}

/// RTCP: no more packets than words, every list as long as its bytes allow, and feedback is the
/// same after writing and reading.
pub(crate) fn rtcp(compound: &[u8]) {
    let mut packets = 0;
    let mut failed = false;
    for packet in Compound::new(compound) {
        packets += 1;
        match packet {
            Ok(packet) => rtcp_packet(&packet, compound.len()),
            Err(error) => {
                failed = true;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(packets <= compound.len() / 4 + 1);
    assert!(failed || compound.len().is_multiple_of(4));
}

fn rtcp_packet(packet: &Rtcp<'_>, len: usize) {
    match packet {
        Rtcp::SenderReport(report) => assert!(report.reports().count() <= 31),
        Rtcp::ReceiverReport(report) => assert!(report.reports().count() <= 31),
        Rtcp::SourceDescription(sdes) => {
            assert!(sdes.cnames().all(|(_, name)| name.len() <= 255));
            assert!(sdes.cnames().count() <= 31);
        }
        Rtcp::Bye(bye) => assert!(bye.ssrcs().count() <= 31),
        Rtcp::Nack(nack) => {
            let missing: Vec<_> = nack.sequences().collect();
            assert!(missing.len() <= 17 * len / 4);
            let mut out = Vec::new();
            let _ = RtcpWriter::reduced_size(&mut out).nack(
                nack.sender_ssrc,
                nack.media_ssrc,
                &missing,
            );
            match Compound::new(&out).next() {
                Some(Ok(Rtcp::Nack(again))) => {
                    // Numbers out of order may be read back in another order.
                    let set = |it: &mut dyn Iterator<Item = u16>| it.collect::<BTreeSet<_>>();
                    assert_eq!(set(&mut again.sequences()), set(&mut missing.iter().copied()));
                }
                none => assert!(none.is_none() && missing.is_empty()),
            }
        }
        Rtcp::TransportFeedback(feedback) => {
            assert_eq!(feedback.packets().count(), usize::from(feedback.status_count));
            feedback_again(feedback);
        }
        Rtcp::PictureLoss(_) | Rtcp::Application | Rtcp::ExtendedReport => {}
        Rtcp::FullIntraRequest(fir) => assert!(fir.requests().count() <= len / 8),
        Rtcp::Remb(remb) => {
            let ssrcs: Vec<_> = remb.ssrcs().collect();
            let mut out = Vec::new();
            let _ =
                RtcpWriter::reduced_size(&mut out).remb(remb.sender_ssrc, remb.bitrate_bps, &ssrcs);
            let Some(Ok(Rtcp::Remb(again))) = Compound::new(&out).next() else {
                panic!("{remb:?}")
            };
            assert_eq!((again.bitrate_bps, again.ssrcs().collect()), (remb.bitrate_bps, ssrcs));
        }
        Rtcp::Other { body, .. } => assert!(body.len() < len),
    }
}

fn feedback_again(feedback: &throng_media::rtcp::TransportFeedback<'_>) {
    // The reference time has 24 bits of 64 ms.
    const WRAP_US: i64 = 64_000 << 24;
    let arrivals: Vec<_> = feedback
        .packets()
        .filter_map(|p| {
            let arrived_us = u64::try_from(p.arrived_us?).ok()?;
            Some(Arrival { sequence: p.sequence, arrived_us })
        })
        .collect();
    let mut out = Vec::new();
    let _ = RtcpWriter::reduced_size(&mut out).transport_feedback(1, 2, &mut 0, &arrivals);
    let mut again = Vec::new();
    for packet in Compound::new(&out) {
        let Ok(Rtcp::TransportFeedback(feedback)) = packet else { panic!("{packet:?}") };
        again.extend(
            feedback
                .packets()
                .filter_map(|p| Some((p.sequence, p.arrived_us?.rem_euclid(WRAP_US)))),
        );
    }
    assert!(
        again
            .iter()
            .copied()
            .eq(arrivals.iter().map(|a| (a.sequence, a.arrived_us as i64 % WRAP_US)))
    );
}

/// The codecs that [`codec`] chooses from with its first byte.
pub(crate) const CODECS: [Codec; 15] = [
    Codec::H264,
    Codec::H265,
    Codec::Vp8,
    Codec::Vp9,
    Codec::Av1,
    Codec::Opus,
    Codec::Pcmu,
    Codec::Pcma,
    Codec::Other,
    Codec::MpegVideo,
    Codec::Mpeg4Visual,
    Codec::Jpeg,
    Codec::Mp2t,
    Codec::Aac,
    Codec::MpegAudio,
];

/// Codecs: the first byte chooses one; then packets follow, each a descriptor's length (one byte),
/// a payload's length (two bytes), the descriptor and the payload. Reading is deterministic and
/// every figure within its width.
pub(crate) fn codec(bytes: &[u8]) {
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let mut reader = PayloadReader::new(CODECS[usize::from(choice) % CODECS.len()]);
    while let [descriptor_len, high, low, after @ ..] = rest {
        let (descriptor, after) = after.split_at(after.len().min(usize::from(*descriptor_len)));
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let (payload, after) = after.split_at(after.len().min(len));
        rest = after;
        let descriptor = (!descriptor.is_empty()).then_some(descriptor);
        let before = reader.clone().read_described(payload, descriptor);
        let said = reader.read_described(payload, descriptor);
        assert_eq!(before, said);
        match said {
            Ok(facts) => {
                assert!(facts.picture_id.is_none_or(|(id, width)| u32::from(id) < 1 << width));
                assert!(facts.spatial_layer < 64 && facts.temporal_layer < 64);
                if let Some(mark) = facts.mark {
                    mark_again(mark);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        if let Ok(packet) = OpusPacket::parse(payload) {
            assert!((120..=5760).contains(&packet.duration_samples));
        }
    }
}

/// Marks: each mark found can be written and found again.
pub(crate) fn mark(nal: &[u8]) {
    for found in [Mark::find_h264(nal), Mark::find_h265(nal)].into_iter().flatten() {
        mark_again(found);
    }
}

fn mark_again(mark: Mark) {
    let (mut h264, mut h265) = (Vec::new(), Vec::new());
    mark.write_h264(&mut h264);
    mark.write_h265(&mut h265);
    assert_eq!((h264.len(), h265.len()), (Mark::H264_NAL_LEN, Mark::H265_NAL_LEN));
    assert_eq!((Mark::find_h264(&h264), Mark::find_h265(&h265)), (Some(mark), Some(mark)));
}
