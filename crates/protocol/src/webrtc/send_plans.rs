//! Derives from the negotiated parameters where and in which format each stream is sent.

use throng_observation::Codec;

use super::sdp::{Direction, MediaSection};
use super::sender::SendPlan;
use super::session::{MediaToSend, Negotiated};

/// The streams to send in one media section: a plan for each layer, in the order of `rids`; empty
/// if the peer does not accept the section.
pub(super) fn plans(
    negotiated: &Negotiated,
    section: usize,
    media: &MediaToSend,
    codec: Codec,
) -> Vec<SendPlan> {
    let of = |sections: &[MediaSection]| sections.get(section).cloned();
    let (Some(ours), Some(answer)) =
        (of(&negotiated.local.sections), of(&negotiated.answer.sections))
    else {
        return Vec::new();
    };
    let refused =
        answer.rejected || matches!(answer.direction, Direction::Inactive | Direction::SendOnly);
    let Some(format) =
        answer.formats.iter().find(|format| format.codec == codec).filter(|_| !refused)
    else {
        return Vec::new();
    };
    let repeats = answer
        .formats
        .iter()
        .find(|f| f.is_retransmission() && f.repeats == Some(format.payload_type));
    let is_repeat = |ssrc: &u32| ours.retransmissions.iter().any(|(_, repeat)| repeat == ssrc);
    let mains = ours.ssrcs.iter().filter(|ssrc| !is_repeat(ssrc));
    let rids: Vec<Option<String>> = if media.rids.is_empty() {
        vec![None]
    } else {
        media.rids.iter().cloned().map(Some).collect()
    };
    rids.into_iter()
        .zip(mains)
        .map(|(rid, &ssrc)| SendPlan {
            mid: ours.mid.clone(),
            rid,
            kind: media.kind,
            payload_type: format.payload_type,
            ssrc,
            repeats: repeats.and_then(|repeats| {
                let pair = ours.retransmissions.iter().find(|(main, _)| *main == ssrc)?;
                Some((repeats.payload_type, pair.1))
            }),
            extension_ids: answer.extension_ids(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use throng_media::rtp::Extension;
    use throng_observation::MediaKind;

    use super::*;
    use crate::webrtc::sdp::Description;

    #[test]
    fn a_stream_has_the_extensions_of_its_own_section() {
        let local = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ssrc:1 cname:c\r\n\
            m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=ssrc:2 cname:c\r\n";
        let mid = format!("a=extmap:1 {}\r\n", Extension::Mid.uri());
        let number = format!("a=extmap:4 {}\r\n", Extension::TransportSequence.uri());
        let audio = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n";
        let video = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 VP8/90000\r\n";
        let answer = format!("{audio}{mid}a=recvonly\r\n{video}{mid}{number}a=recvonly\r\n");
        let negotiated = Negotiated {
            local: Description::parse(local),
            answer: Description::parse(&answer),
            ..Negotiated::default()
        };
        let ids = |section, kind, codec| {
            let media = MediaToSend { kind, rids: Vec::new() };
            let plans = plans(&negotiated, section, &media, codec);
            let [plan] = plans.as_slice() else { panic!("one stream, not {plans:?}") };
            let of = |extension| plan.extension_ids.id(extension);
            (of(Extension::Mid), of(Extension::TransportSequence))
        };
        assert_eq!(ids(0, MediaKind::Audio, Codec::Opus), (Some(1), None));
        assert_eq!(ids(1, MediaKind::Video, Codec::Vp8), (Some(1), Some(4)));
    }
}
