//! Candidates as an SDP fragment, `application/trickle-ice-sdpfrag` (RFC 8840 §9), made from the
//! local description.

use crate::participant::Why;

/// The parts of a description that a fragment repeats: those of the section that carries the
/// bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IceSection {
    /// The `m=` line without its line end.
    media: String,
    mid: Option<String>,
    ufrag: String,
    pwd: String,
}

/// Why candidates cannot be sent.
pub(super) const NO_CREDENTIALS: Why =
    "the local description has no ICE credentials to send candidates with";

impl IceSection {
    /// The first media section of `sdp`; `None` when it has no media or no ICE credentials.
    pub(super) fn of(sdp: &str) -> Option<Self> {
        let value = |name: &str| {
            sdp.lines().find_map(|l| l.trim_end().strip_prefix(name).map(str::to_owned))
        };
        Some(Self {
            media: format!("m={}", value("m=")?),
            mid: value("a=mid:"),
            ufrag: value("a=ice-ufrag:")?,
            pwd: value("a=ice-pwd:")?,
        })
    }

    /// The fragment that adds `candidates` (`candidate:…`), with end-of-candidates if they are the
    /// `last`.
    pub(super) fn fragment(&self, candidates: &[String], last: bool) -> String {
        let mut lines = Vec::with_capacity(candidates.len() + 6);
        if let Some(mid) = &self.mid {
            lines.push(format!("a=group:BUNDLE {mid}"));
        }
        lines.push(self.media.clone());
        if let Some(mid) = &self.mid {
            lines.push(format!("a=mid:{mid}"));
        }
        lines.push(format!("a=ice-ufrag:{}", self.ufrag));
        lines.push(format!("a=ice-pwd:{}", self.pwd));
        lines.extend(candidates.iter().map(|candidate| format!("a={candidate}")));
        if last {
            lines.push("a=end-of-candidates".into());
        }
        lines.iter().fold(String::new(), |text, line| text + line + "\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_repeats_the_bundle_section_and_adds_candidates() {
        let sdp = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ice-ufrag:u\r\na=ice-pwd:p\r\na=mid:0\r\nm=video 9 X 96\r\na=mid:1\r\n";
        let section = IceSection::of(sdp).unwrap();
        assert_eq!(
            section.fragment(&["candidate:1 1 udp 1 10.0.0.1 9 typ host".into()], true),
            "a=group:BUNDLE 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=ice-ufrag:u\r\na=ice-pwd:p\r\n\
             a=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\na=end-of-candidates\r\n"
        );
        assert_eq!(IceSection::of("v=0\r\nm=audio 9 X 1\r\n"), None);
    }
}
