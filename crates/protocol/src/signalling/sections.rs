//! Which track each media section of a description carries: `a=msid` (RFC 8830), where LiveKit and
//! throng put track ids; and its `a=mid`.

use throng_observation::MediaKind;

/// More sections than a description of half a megabyte holds.
const SECTIONS_MAX: usize = 4_096;

/// A media section that sends or may send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) mid: String,
    /// `None` for data channels.
    pub(super) kind: Option<MediaKind>,
    /// The id of its track, unless it has none or is stopped.
    pub(super) track: Option<String>,
    is_silent: bool,
}

/// Reads the sections of `sdp`, in order.
pub(super) fn read(sdp: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in sdp.lines().map(str::trim_end) {
        if let Some(media) = line.strip_prefix("m=") {
            if sections.len() == SECTIONS_MAX {
                break;
            }
            let mut words = media.split_ascii_whitespace();
            let kind = match words.next() {
                Some("audio") => Some(MediaKind::Audio),
                Some("video") => Some(MediaKind::Video),
                _ => None,
            };
            let is_silent = words.next() == Some("0");
            sections.push(Section { kind, is_silent, ..Section::default() });
        } else if let (Some(section), Some(attribute)) =
            (sections.last_mut(), line.strip_prefix("a="))
        {
            attribute_of(section, attribute);
        }
    }
    for section in sections.iter_mut().filter(|section| section.is_silent) {
        section.track = None;
    }
    sections
}

/// A hint to try another codec than that of the offered video; `None` where there is no other.
pub(crate) fn codec_to_try(offer: &str) -> Option<String> {
    let picture = offer.split("\nm=").find(|section| section.starts_with("video"))?;
    let offers = |name: &str| {
        let maps = picture
            .lines()
            .filter_map(|line| line.trim_end().strip_prefix("a=rtpmap:")?.split_once(' '));
        maps.into_iter().any(|(_, codec)| {
            codec.split('/').next().is_some_and(|codec| codec.eq_ignore_ascii_case(name))
        })
    };
    match (offers("VP8"), offers("H264")) {
        (true, false) => Some("the offer has VP8 alone, try publish.codec = \"h264\"".to_owned()),
        (false, true) => Some("the offer has H.264 alone, try publish.codec = \"vp8\"".to_owned()),
        _ => None,
    }
}

fn attribute_of(section: &mut Section, attribute: &str) {
    let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
    let short = |text: &str| text.chars().take(128).collect::<String>();
    match name {
        "mid" => section.mid = short(value),
        "msid" => {
            section.track =
                value.split_ascii_whitespace().nth(1).map(short).or(section.track.take());
        }
        // Older implementations put the msid into `a=ssrc`.
        "ssrc" if section.track.is_none() => {
            let msid = value.split_once(" msid:").map(|(_, msid)| msid);
            section.track = msid.and_then(|msid| msid.split_ascii_whitespace().nth(1)).map(short);
        }
        "inactive" | "recvonly" => section.is_silent = true,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_name_their_tracks_while_they_send() {
        let sdp = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\na=sendrecv\r\n\
            m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\na=sendonly\r\na=msid:PA_a|x TR_audio\r\n\
            m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\na=sendrecv\r\na=ssrc:7 cname:c\r\na=ssrc:7 msid:PA_a TR_video\r\n\
            m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:3\r\na=msid:PA_b TR_gone\r\na=inactive\r\n\
            m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:4\r\na=msid:PA_b TR_gone\r\n";
        let sections = read(sdp);
        let tracks: Vec<_> = sections
            .iter()
            .map(|section| (section.mid.as_str(), section.kind, section.track.as_deref()))
            .collect();
        assert_eq!(
            tracks,
            [
                ("0", None, None),
                ("1", Some(MediaKind::Audio), Some("TR_audio")),
                ("2", Some(MediaKind::Video), Some("TR_video")),
                ("3", Some(MediaKind::Video), None),
                ("4", Some(MediaKind::Video), None),
            ]
        );
        assert!(read("").is_empty() && read("a=mid:1\r\nnonsense").is_empty());
    }
}
