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
        })
        .collect()
}
