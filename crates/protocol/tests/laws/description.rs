//! Session descriptions: what is kept is bounded, and candidates come and go without touching the rest.

use throng_protocol::webrtc::sdp::{Description, without_candidates};

/// SDP.
pub(crate) fn sdp(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let description = Description::parse(&text);
    assert!(description.sections.len() <= 256 && description.candidates.len() <= 64);
    assert!(description.candidates.iter().all(|candidate| candidate.starts_with("candidate:")));
    for section in &description.sections {
        assert!(section.formats.len() <= 128 && section.extensions.len() <= 128);
        assert!(section.ssrcs.len() <= 64 && section.retransmissions.len() <= 64);
        assert!(section.mid.chars().count() <= 64);
        assert!(section.formats.iter().all(|format| format.payload_type < 128 && format.clock_rate_hz > 0));
        assert!(section.formats.iter().all(|format| format.name.chars().count() <= 32));
    }
    let _ = description.has_transport_sequence();
    let bare = without_candidates(&text);
    let bare_description = Description::parse(&bare);
    assert_eq!(bare_description.sections, description.sections);
    assert!(bare_description.candidates.is_empty());
    assert_eq!(without_candidates(&bare), bare);
}
