//! Completes the media sections of a description as browsers do: str0m refuses one that leaves out
//! what it may.

use std::collections::HashSet;

use crate::webrtc::sdp::SDP_BYTES_MAX;

/// `text` with what its media sections leave out:
/// - the direction, which is that of the session or `sendrecv` (RFC 8866 section 6.7);
/// - `a=mid`, if this is an answer to an offer with `offered_mids`: sections of both have the same
///   order (RFC 3264 section 6), and browsers take the name from the offer's section;
/// - the formats of a rejected section. They mean nothing (RFC 3264 section 6), and peers write
///   some without `a=rtpmap`. Pion's answer has little more of such a section than its `m=` line.
///
/// It is without empty lines: some peers end with one, and str0m reads nothing behind it. A text
/// that is too long to be negotiated is left as it is.
pub(super) fn completed(text: &str, offered_mids: &[String]) -> String {
    if text.len() > SDP_BYTES_MAX {
        return text.to_owned();
    }
    let (mut session, mut sections) = (Vec::new(), Vec::<Vec<&str>>::new());
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        if line.starts_with("m=") {
            sections.push(Vec::new());
        }
        sections.last_mut().unwrap_or(&mut session).push(line);
    }
    let direction = direction_of(&session).unwrap_or("a=sendrecv");
    let bundled = value_of(&session, "a=group:BUNDLE ").unwrap_or_default();
    let bundled: HashSet<&str> = bundled.split_ascii_whitespace().collect();
    let mut kept = String::with_capacity(text.len());
    let mut keep = |line: &str| kept.extend([line, "\r\n"]);
    session.iter().copied().for_each(&mut keep);
    for (at, lines) in sections.iter().enumerate() {
        let own = value_of(lines, "a=mid:");
        let mid = own.or_else(|| offered_mids.get(at).map(String::as_str));
        // Port 0 of a section in the bundle group is no rejection (RFC 9143 section 7.2).
        let may_be_rejected = mid.is_none_or(|mid| !bundled.contains(mid));
        if let Some(line) = rejection(lines).filter(|_| may_be_rejected) {
            keep(&line);
            mid.iter().for_each(|mid| keep(&format!("a=mid:{mid}")));
            keep("a=inactive");
            continue;
        }
        lines.iter().copied().for_each(&mut keep);
        if let (None, Some(mid)) = (own, mid) {
            keep(&format!("a=mid:{mid}"));
        }
        if is_of_rtp(lines) && direction_of(lines).is_none() {
            keep(direction);
        }
    }
    kept
}

/// The `m=` line of a section of RTP that its port, 0, rejects, with one format.
fn rejection(lines: &[&str]) -> Option<String> {
    let mut words = lines.first()?.split(' ');
    let (kind, port, protocol) = (words.next()?, words.next()?, words.next()?);
    (port == "0" && is_of_rtp(lines)).then(|| format!("{kind} 0 {protocol} 0"))
}

fn is_of_rtp(lines: &[&str]) -> bool {
    lines.first().is_some_and(|line| line.contains("/RTP/"))
}

fn value_of<'a>(lines: &[&'a str], name: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.strip_prefix(name))
}

fn direction_of<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let directions = ["a=sendrecv", "a=sendonly", "a=recvonly", "a=inactive"];
    lines.iter().copied().find(|line| directions.contains(line))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use throng_observation::{Codec, MediaKind};

    use super::super::{MediaToSend, Session};
    use super::*;

    fn of_section(lines: &str) -> String {
        let session = "v=0\r\na=group:BUNDLE 1\r\n";
        let offered = ["0".to_owned()];
        completed(&format!("{session}{lines}"), &offered).trim_start_matches(session).to_owned()
    }

    #[test]
    fn what_a_section_leaves_out_is_said() {
        let proto = "UDP/TLS/RTP/SAVPF";
        for (lines, whole) in [
            // All is there: nothing is changed.
            (
                "m=audio 9 P 111\r\na=mid:a\r\na=sendonly\r\n",
                "m=audio 9 P 111\r\na=mid:a\r\na=sendonly\r\n",
            ),
            ("m=audio 9 P 111\r\na=sendonly\r\n", "m=audio 9 P 111\r\na=sendonly\r\na=mid:0\r\n"),
            // Behind an empty line str0m would not see the name.
            (
                "m=audio 9 P 111\r\na=sendonly\r\n\r\n",
                "m=audio 9 P 111\r\na=sendonly\r\na=mid:0\r\n",
            ),
            ("m=audio 9 P 111\r\na=mid:1\r\n", "m=audio 9 P 111\r\na=mid:1\r\na=sendrecv\r\n"),
            // As Pion rejects, and as others do.
            ("m=video 0 P 0\r\nc=IN IP4 0.0.0.0\r\n", "m=video 0 P 0\r\na=mid:0\r\na=inactive\r\n"),
            (
                "m=video 0 P 96 97\r\na=mid:v\r\na=recvonly\r\n",
                "m=video 0 P 0\r\na=mid:v\r\na=inactive\r\n",
            ),
            // Its transport is that of another section.
            (
                "m=video 0 P 96\r\na=mid:1\r\na=recvonly\r\n",
                "m=video 0 P 96\r\na=mid:1\r\na=recvonly\r\n",
            ),
            (
                "m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n",
                "m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\n",
            ),
        ] {
            let [lines, whole] =
                [lines, whole].map(|text| text.replace(" P ", &format!(" {proto} ")));
            assert_eq!(of_section(&lines), whole);
        }
        let inactive = "v=0\r\na=inactive\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n";
        assert_eq!(completed(inactive, &[]), format!("{inactive}a=inactive\r\n"));
        assert_eq!(completed("", &[]), "");
    }

    /// Each section of the longest description is looked up in the longest group.
    #[test]
    fn a_description_of_very_many_sections_and_names_is_one_pass_and_a_longer_one_is_left() {
        let group = "ab ".repeat(SDP_BYTES_MAX / 6);
        let section = "m=x 0 /RTP/\r\na=mid:0\r\n";
        let sections = SDP_BYTES_MAX / 3 / section.len();
        let text = format!("v=0\r\na=group:BUNDLE {group}\r\n{}", section.repeat(sections));
        assert!(text.len() < SDP_BYTES_MAX);
        assert_eq!(completed(&text, &[]).matches("a=inactive").count(), sections);
        let longer = section.repeat(SDP_BYTES_MAX / section.len() + 1);
        assert_eq!(completed(&longer, &[]), longer);
    }

    /// go2rtc, to a publisher of VP8 and Opus.
    #[test]
    fn a_publisher_whose_video_is_rejected_without_a_name_sends_its_audio() {
        let now = Instant::now();
        let mut session = Session::publisher(now, &[Codec::Opus, Codec::Vp8]).unwrap();
        let media =
            [MediaKind::Video, MediaKind::Audio].map(|kind| MediaToSend { kind, rids: Vec::new() });
        let offer = session.create_sending_offer(&media).unwrap();
        let audio = offer.lines().rev().find_map(|line| line.strip_prefix("a=mid:")).unwrap();
        let fingerprint = ["AB"; 32].join(":");
        let answer = format!(
            "v=0\r\no=- 5523828893782355610 1795972998 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n\
             a=msid-semantic:WMS *\r\na=fingerprint:sha-256 {fingerprint}\r\n\
             a=group:BUNDLE {audio}\r\n\
             m=video 0 UDP/TLS/RTP/SAVPF 0\r\nc=IN IP4 0.0.0.0\r\n\
             m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=setup:active\r\n\
             a=mid:{audio}\r\na=ice-ufrag:GCkNtQVFHVvnSfLe\r\n\
             a=ice-pwd:FHLIxvCzwaGqorQxddpTFFvHFWtLsoRk\r\na=rtcp-mux\r\na=rtcp-rsize\r\n\
             a=rtpmap:111 opus/48000/2\r\na=recvonly\r\n"
        );
        let negotiated = session.accept_answer(&answer).unwrap();
        let [video, audio] = negotiated.answer.sections.as_slice() else { panic!("two sections") };
        assert!(video.rejected && !audio.rejected);
        assert_eq!(video.mid, negotiated.local.sections[0].mid);
    }
}
