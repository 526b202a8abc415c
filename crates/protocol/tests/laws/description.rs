//! Session descriptions: memory is bounded, and removing candidates and sources leaves the rest
//! unchanged.

use throng_protocol::webrtc::sdp::{Description, to_negotiate};

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
        assert!(
            section
                .formats
                .iter()
                .all(|format| format.payload_type < 128 && format.clock_rate_hz > 0)
        );
        assert!(section.formats.iter().all(|format| format.name.chars().count() <= 32));
    }
    let _ = description.extension_ids();
    let bare = to_negotiate(&text);
    let mut bare_description = Description::parse(&bare);
    let mut sections = description.sections;
    for section in &mut sections {
        (section.ssrcs, section.retransmissions) = Default::default();
    }
    // SSRCs name a track, as `a=msid` does, which remains.
    for section in sections.iter_mut().chain(&mut bare_description.sections) {
        section.names_track = false;
    }
    assert_eq!(bare_description.sections, sections);
    assert!(bare_description.candidates.is_empty());
    assert_eq!(to_negotiate(&bare), bare);
}
