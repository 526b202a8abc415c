//! Parses an SDP (RFC 8866, JSEP) for the media that it announces: ignores unknown lines, bounds
//! what it keeps. str0m negotiates; this module reads the result.

use std::collections::HashSet;

use throng_media::rtp::ExtensionIds;
use throng_observation::{Codec, MediaKind};

/// An SDP longer than this is refused: a hundred media sections stay below it.
pub const SDP_BYTES_MAX: usize = 512 * 1024;
const SECTIONS_MAX: usize = 256;
const FORMATS_MAX: usize = 128;
const SOURCES_MAX: usize = 64;

/// The parsed description of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The media sections, in order.
    pub sections: Vec<MediaSection>,
    /// `a=candidate` values, `candidate:…`, of all sections and the session, without repetitions.
    pub candidates: Vec<String>,
}

/// One `m=` section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaSection {
    /// Audio or video; `None` for `application` and others.
    pub kind: Option<MediaKind>,
    /// `a=mid`.
    pub mid: String,
    /// Port 0: the section is rejected or stopped.
    pub rejected: bool,
    /// The direction from the writer's side.
    pub direction: Direction,
    /// Payload types in order of preference.
    pub formats: Vec<Format>,
    /// Header extension ids with their URIs.
    pub extensions: Vec<(u8, String)>,
    /// SSRCs that the writer will send from, from `a=ssrc`, in order.
    pub ssrcs: Vec<u32>,
    /// Pairs of (media, retransmission) SSRCs from `a=ssrc-group:FID`.
    pub retransmissions: Vec<(u32, u32)>,
    /// Whether the writer names its streams by `a=msid` or `a=ssrc`. JSEP requires it for each
    /// track (RFC 8829 section 5.3.1).
    pub names_track: bool,
    /// RTCP packets need no report in front (`a=rtcp-rsize`, RFC 5506).
    pub reduced_size_rtcp: bool,
}

/// `a=sendrecv` and its siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Both ways.
    #[default]
    SendRecv,
    /// The writer only sends.
    SendOnly,
    /// The writer only receives.
    RecvOnly,
    /// Neither.
    Inactive,
}

impl Direction {
    /// Whether the writer sends.
    #[must_use]
    pub fn sends(self) -> bool {
        matches!(self, Self::SendRecv | Self::SendOnly)
    }

    /// Whether the writer receives.
    #[must_use]
    pub fn receives(self) -> bool {
        matches!(self, Self::SendRecv | Self::RecvOnly)
    }
}

/// One payload type of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// RTP payload type, 0–127.
    pub payload_type: u8,
    /// The codec; [`Codec::Other`] for an unknown encoding name.
    pub codec: Codec,
    /// Encoding name as written; empty for a static payload type without an rtpmap.
    pub name: String,
    /// RTP clock rate, Hz.
    pub clock_rate_hz: u32,
    /// For `rtx`: the payload type that it retransmits (`apt`).
    pub repeats: Option<u8>,
    /// `a=rtcp-fb` values.
    pub feedback: Feedback,
}

impl Format {
    /// Whether this is a retransmission format (RFC 4588).
    #[must_use]
    pub fn is_retransmission(&self) -> bool {
        self.name.eq_ignore_ascii_case("rtx")
    }
}

/// The RTCP feedback that was negotiated for a payload type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Generic NACK (RFC 4585).
    pub nack: bool,
    /// Picture loss indication.
    pub pli: bool,
    /// Full intra request (RFC 5104).
    pub fir: bool,
    /// Transport-wide congestion control.
    pub transport_cc: bool,
    /// Receiver estimated maximum bitrate.
    pub remb: bool,
}

impl Description {
    /// Whether no section that is used has something else than audio or video: data channels,
    /// mostly.
    #[must_use]
    pub(super) fn has_only_media(&self) -> bool {
        self.sections.iter().all(|section| section.rejected || section.kind.is_some())
    }

    /// Parses an SDP. Unknown lines are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut description = Self::default();
        let mut session_direction = Direction::default();
        for line in text.lines().map(str::trim_end) {
            if let Some(media) = line.strip_prefix("m=") {
                if description.sections.len() == SECTIONS_MAX {
                    break;
                }
                description.sections.push(MediaSection::begin(media, session_direction));
            } else if let Some(attribute) = line.strip_prefix("a=") {
                if attribute.starts_with("candidate:") {
                    keep_candidate(&mut description.candidates, attribute);
                } else if let Some(section) = description.sections.last_mut() {
                    section.attribute(attribute);
                } else if let Some(direction) = direction(attribute) {
                    session_direction = direction;
                }
            }
        }
        description
    }

    /// The candidates of an SDP; everything else is skipped.
    #[must_use]
    pub fn candidates_of(text: &str) -> Vec<String> {
        let mut candidates = Vec::new();
        let attributes = text.lines().filter_map(|line| line.trim_end().strip_prefix("a="));
        attributes
            .filter(|attribute| attribute.starts_with("candidate:"))
            .for_each(|candidate| keep_candidate(&mut candidates, candidate));
        candidates
    }

    /// The extension ids of all sections, for reading; within a bundle an id has one meaning (RFC
    /// 9143 10.1).
    #[must_use]
    pub fn extension_ids(&self) -> ExtensionIds {
        ids_of(self.sections.iter().flat_map(|section| &section.extensions))
    }
}

impl MediaSection {
    /// The extension ids of this section: what its packets may have.
    #[must_use]
    pub fn extension_ids(&self) -> ExtensionIds {
        ids_of(&self.extensions)
    }

    fn begin(media: &str, direction: Direction) -> Self {
        let mut words = media.split_ascii_whitespace();
        let kind = match words.next() {
            Some("audio") => Some(MediaKind::Audio),
            Some("video") => Some(MediaKind::Video),
            _ => None,
        };
        let rejected = words.next() == Some("0");
        let formats = words.skip(1).filter_map(|word| word.parse().ok()).filter(|pt| *pt < 128);
        Self {
            kind,
            rejected,
            direction,
            formats: formats.take(FORMATS_MAX).map(Format::of_static_type).collect(),
            ..Self::default()
        }
    }

    fn attribute(&mut self, attribute: &str) {
        let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
        self.names_track |= matches!(name, "msid" | "ssrc");
        match name {
            "mid" => self.mid = value.chars().take(64).collect(),
            "rtpmap" => self.rtpmap(value),
            "fmtp" => self.fmtp(value),
            "rtcp-fb" => self.feedback(value),
            "extmap" => self.extmap(value),
            "ssrc" => self.ssrc(value),
            "ssrc-group" => self.ssrc_group(value),
            "rtcp-rsize" => self.reduced_size_rtcp = true,
            _ => self.direction = direction(attribute).unwrap_or(self.direction),
        }
    }

    /// `96 VP8/90000`, `111 opus/48000/2`.
    fn rtpmap(&mut self, value: &str) {
        let Some((format, encoding)) = self.of_payload_type(value) else { return };
        let mut parts = encoding.split('/');
        let name = parts.next().unwrap_or_default();
        format.name = name.chars().take(32).collect();
        format.codec = Codec::from_name(name);
        if let Some(rate) = parts.next().and_then(|rate| rate.parse().ok()).filter(|rate| *rate > 0)
        {
            format.clock_rate_hz = rate;
        }
    }

    /// `97 apt=96;rtx-time=3000`.
    fn fmtp(&mut self, value: &str) {
        let Some((format, parameters)) = self.of_payload_type(value) else { return };
        let apt = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("apt="));
        if let Some(apt) = apt.and_then(|apt| apt.trim().parse().ok()) {
            format.repeats = Some(apt);
        }
    }

    /// `96 nack pli`, `* transport-cc`.
    fn feedback(&mut self, value: &str) {
        let (payload_type, what) = value.split_once(' ').unwrap_or((value, ""));
        let all = payload_type == "*";
        let payload_type = payload_type.parse::<u8>().ok();
        let chosen = self
            .formats
            .iter_mut()
            .filter(|format| all || Some(format.payload_type) == payload_type);
        for feedback in chosen.map(|format| &mut format.feedback) {
            match what.trim() {
                "nack" => feedback.nack = true,
                "nack pli" => feedback.pli = true,
                "ccm fir" => feedback.fir = true,
                "transport-cc" => feedback.transport_cc = true,
                "goog-remb" => feedback.remb = true,
                _ => {}
            }
        }
    }

    /// `3 http://…`, `4/recvonly urn:…`.
    fn extmap(&mut self, value: &str) {
        let mut words = value.split_ascii_whitespace();
        let id = words.next().and_then(|id| id.split('/').next()).and_then(|id| id.parse().ok());
        if let (Some(id), Some(uri)) = (id, words.next())
            && self.extensions.len() < FORMATS_MAX
        {
            self.extensions.push((id, uri.chars().take(256).collect()));
        }
    }

    /// `1234 cname:…`.
    fn ssrc(&mut self, value: &str) {
        let ssrc = value.split_ascii_whitespace().next().and_then(|ssrc| ssrc.parse().ok());
        if let Some(ssrc) = ssrc
            && !self.ssrcs.contains(&ssrc)
            && self.ssrcs.len() < SOURCES_MAX
        {
            self.ssrcs.push(ssrc);
        }
    }

    /// `FID 1 2`.
    fn ssrc_group(&mut self, value: &str) {
        let mut words = value.split_ascii_whitespace();
        let semantics = words.next();
        let mut number = || words.next().and_then(|ssrc| ssrc.parse().ok());
        if let (Some("FID"), Some(media), Some(repeat)) = (semantics, number(), number())
            && self.retransmissions.len() < SOURCES_MAX
        {
            self.retransmissions.push((media, repeat));
        }
    }

    fn of_payload_type<'v>(&mut self, value: &'v str) -> Option<(&mut Format, &'v str)> {
        let (payload_type, rest) = value.split_once(' ')?;
        let payload_type: u8 = payload_type.parse().ok()?;
        let format = self.formats.iter_mut().find(|format| format.payload_type == payload_type)?;
        Some((format, rest.trim()))
    }
}

impl Format {
    /// A payload type before its rtpmap; the static ones of RFC 3551 need none.
    fn of_static_type(payload_type: u8) -> Self {
        let (codec, clock_rate_hz) = match payload_type {
            0 => (Codec::Pcmu, 8_000),
            8 => (Codec::Pcma, 8_000),
            _ => (Codec::Other, 90_000),
        };
        Self {
            payload_type,
            codec,
            name: String::new(),
            clock_rate_hz,
            repeats: None,
            feedback: Feedback::default(),
        }
    }
}

fn ids_of<'a>(extensions: impl IntoIterator<Item = &'a (u8, String)>) -> ExtensionIds {
    ExtensionIds::from_pairs(extensions.into_iter().map(|(id, uri)| (*id, uri.as_str())))
}

fn keep_candidate(candidates: &mut Vec<String>, candidate: &str) {
    if candidates.len() < SOURCES_MAX && !candidates.iter().any(|known| known == candidate) {
        candidates.push(candidate.to_owned());
    }
}

fn direction(attribute: &str) -> Option<Direction> {
    Some(match attribute {
        "sendrecv" => Direction::SendRecv,
        "sendonly" => Direction::SendOnly,
        "recvonly" => Direction::RecvOnly,
        "inactive" => Direction::Inactive,
        _ => return None,
    })
}

/// The part of `text` that str0m gets. Without candidates and end-of-candidates: they are checked
/// against the allowed targets first. Without sources: the media path is separate, and str0m would
/// allocate unused memory for each.
#[must_use]
pub fn to_negotiate(text: &str) -> String {
    let is_ours = |line: &str| {
        ["a=candidate:", "a=ssrc:", "a=ssrc-group:"].iter().any(|start| line.starts_with(start))
            || line == "a=end-of-candidates"
    };
    let group = whole_group(text);
    let mut kept = String::with_capacity(text.len());
    for line in text.lines().map(str::trim_end).filter(|line| !is_ours(line)) {
        let is_group = line.starts_with(GROUP);
        kept.push_str(group.as_deref().filter(|_| is_group).unwrap_or(line));
        kept.push_str("\r\n");
    }
    kept
}

const GROUP: &str = "a=group:BUNDLE ";

/// The line of the bundle group, completed by the sections that share its transport but are not
/// listed; `None` if all are listed. Janus 1.1.2 cuts the line after 511 bytes, within a mid: a
/// lesson of a hundred has more sections than fit. The ICE user fragment of a section identifies
/// its transport (RFC 8839 5.4); a section without one has no transport of its own.
fn whole_group(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim_end);
    let named: HashSet<&str> =
        lines().find_map(|line| line.strip_prefix(GROUP))?.split_ascii_whitespace().collect();
    let mut sections: Vec<Transported<'_>> = Vec::new();
    for line in lines() {
        if let Some(media) = line.strip_prefix("m=") {
            // A rejected section has no transport, whatever its attributes are.
            let is_rejected = media.split(' ').nth(1) == Some("0");
            sections.push(Transported { mid: "", ufrag: None, is_rejected });
        }
        let Some(section) = sections.last_mut() else { continue };
        if let Some(mid) = line.strip_prefix("a=mid:") {
            section.mid = mid;
        } else if let Some(ufrag) = line.strip_prefix("a=ice-ufrag:") {
            section.ufrag = Some(ufrag);
        }
        if sections.len() > SECTIONS_MAX {
            return None;
        }
    }
    let first = sections.iter().find(|section| named.contains(section.mid))?;
    let shares = |section: &&Transported<'_>| {
        let is_without_own = section.ufrag.is_none_or(|ufrag| first.ufrag == Some(ufrag));
        named.contains(section.mid)
            || (!section.is_rejected && is_without_own && !section.mid.is_empty())
    };
    let sharing: Vec<&str> = sections.iter().filter(shares).map(|section| section.mid).collect();
    let is_cut = sharing.iter().any(|mid| !named.contains(mid));
    is_cut.then(|| format!("{GROUP}{}", sharing.join(" ")))
}

/// The attributes of a media section that identify its transport.
struct Transported<'a> {
    mid: &'a str,
    ufrag: Option<&'a str>,
    is_rejected: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\na=group:BUNDLE a v\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r\nc=IN IP4 0.0.0.0\r\na=sendonly\r\na=mid:a\r\na=rtcp-mux\r\n\
        a=rtpmap:111 opus/48000/2\r\na=candidate:1 1 udp 2015363327 10.0.0.1 4000 typ host\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=sendonly\r\na=mid:v\r\na=rtcp-rsize\r\na=rtpmap:96 H264/90000\r\n\
        a=fmtp:96 profile-level-id=42e01f;packetization-mode=1\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
        a=rtcp-fb:* goog-remb\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=ssrc-group:FID 7 8\r\n\
        a=ssrc:7 cname:c\r\na=ssrc:7 msid:m\r\na=ssrc:8 cname:c\r\n\
        a=extmap:3/sendonly http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
        a=candidate:1 1 udp 2015363327 10.0.0.1 4000 typ host\r\na=end-of-candidates\r\n";

    #[test]
    fn a_cut_group_is_completed_by_sections_of_its_transport() {
        let described = |group: &str, sections: usize, ufrag: &dyn Fn(usize) -> String| {
            let section = |mid: usize| {
                format!("m=video 9 UDP/TLS/RTP/SAVPF 96\r\n{}a=mid:{mid}\r\n", ufrag(mid))
            };
            format!(
                "v=0\r\n{group}a=ice-options:trickle\r\n{}",
                (0..sections).map(section).collect::<String>()
            )
        };
        let whole = |sections: usize| {
            let mids: Vec<String> = (0..sections).map(|mid| mid.to_string()).collect();
            format!("{GROUP}{}", mids.join(" "))
        };
        let each = |_: usize| "a=ice-ufrag:one\r\n".to_owned();
        let once = |mid: usize| if mid == 0 { each(mid) } else { String::new() };
        let ufrags: [&dyn Fn(usize) -> String; 2] = [&each, &once];
        for (sections, bytes) in
            (505..515).flat_map(|bytes| (156..199).map(move |sections| (sections, bytes)))
        {
            let whole = whole(sections);
            let cut = whole.get(..bytes).expect("longer than that");
            for ufrag in ufrags {
                let negotiated = to_negotiate(&described(cut, sections, ufrag));
                assert_eq!(
                    negotiated.lines().nth(1),
                    Some(whole.as_str()),
                    "{sections}, cut after {bytes} bytes"
                );
            }
        }
        // Sections with a transport of their own, and a complete group, are unchanged.
        let own = described("a=group:BUNDLE 0 1\r\n", 9, &|mid| {
            format!("a=ice-ufrag:{}\r\n", mid.max(1))
        });
        assert_eq!(to_negotiate(&own), own);
        let all = described(&format!("{}\r\n", whole(198)), 198, &once);
        assert_eq!(to_negotiate(&all), all);
        for text in
            ["", GROUP, "a=group:BUNDLE 7\r\na=mid:7\r\n", "a=group:BUNDLE 7\r\nm=x\r\na=mid:7\r\n"]
        {
            assert_eq!(to_negotiate(text).trim_end(), text.trim_end());
        }
    }

    #[test]
    fn an_offer_says_what_will_come() {
        let description = Description::parse(OFFER);
        let [audio, video] = description.sections.as_slice() else { panic!("two sections") };
        assert_eq!(
            (audio.kind, audio.mid.as_str(), audio.direction.sends()),
            (Some(MediaKind::Audio), "a", true)
        );
        assert_eq!((audio.formats[0].codec, audio.formats[0].clock_rate_hz), (Codec::Opus, 48_000));
        assert_eq!((audio.formats[1].codec, audio.formats[1].clock_rate_hz), (Codec::Pcmu, 8_000));
        assert_eq!(video.formats[0].codec, Codec::H264);
        assert_eq!(
            video.formats[0].feedback,
            Feedback { nack: true, pli: true, remb: true, ..Feedback::default() }
        );
        assert!(video.formats[1].is_retransmission() && video.formats[1].repeats == Some(96));
        assert_eq!(
            (video.ssrcs.as_slice(), video.retransmissions.as_slice()),
            (&[7, 8][..], &[(7, 8)][..])
        );
        assert!(video.reduced_size_rtcp && !audio.reduced_size_rtcp);
        assert!(video.names_track && !audio.names_track);
        let sequence = throng_media::rtp::Extension::TransportSequence;
        assert!(description.extension_ids().id(sequence).is_some());
        assert_eq!(
            [audio, video].map(|section| section.extension_ids().id(sequence)),
            [None, Some(3)]
        );
        assert_eq!(description.candidates.len(), 1);
        assert_eq!(Description::candidates_of(OFFER), description.candidates);
        let bare = to_negotiate(OFFER);
        assert!(!bare.contains("candidate") && !bare.contains("ssrc"));
        let mut sections = description.sections;
        for section in &mut sections {
            (section.ssrcs, section.retransmissions, section.names_track) = Default::default();
        }
        assert_eq!(Description::parse(&bare).sections, sections);
    }

    #[test]
    fn an_endless_description_is_kept_within_bounds() {
        let endless = "m=video 9 x 96\r\na=ssrc:1 x\r\n".repeat(10_000);
        assert_eq!(Description::parse(&endless).sections.len(), SECTIONS_MAX);
    }
}
