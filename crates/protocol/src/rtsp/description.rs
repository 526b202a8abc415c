//! The description of a presentation: SDP (RFC 8866) as RTSP servers write it (RFC 2326 appendix
//! C.1).

use std::time::Duration;

use throng_observation::{Codec, MediaKind};

use super::npt;

/// Media sections beyond this are ignored.
const SECTIONS_MAX: usize = 64;

/// A presentation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Description {
    /// `a=control` of the whole presentation.
    pub(super) control: Option<String>,
    /// Its length, where `a=range` has an end: it is a recording.
    pub(super) duration: Option<Duration>,
    /// The sections that can be played.
    pub(super) media: Vec<MediaDescription>,
    /// Sections that are not audio or video over RTP, as `m=` lines.
    pub(super) skipped: Vec<String>,
}

/// A media section.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MediaDescription {
    pub(super) kind: MediaKind,
    pub(super) codec: Codec,
    /// The first payload type of the section: that which the server sends.
    pub(super) payload_type: u8,
    /// Other payload types of the section, whose packets come between those of the media.
    pub(super) companions: Vec<Companion>,
    /// RTP clock rate, Hz.
    pub(super) clock_rate_hz: u32,
    /// `a=control`.
    pub(super) control: Option<String>,
    /// RTP profile: `RTP/AVP`, `RTP/AVPF`; of a secure one (`RTP/SAVP`, RFC 3711) that of the same
    /// media in the clear.
    pub(super) profile: String,
    /// The profile is a secure one: keys are in `a=key-mgmt` (RFC 4567).
    pub(super) is_secure: bool,
    /// `a=sendonly`: of a presentation with other media, the direction is the client's, and this is
    /// a way back to the server (ONVIF Streaming Specification, back channel).
    is_sendonly: bool,
}

/// A payload type whose packets share the sequence numbers of other media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Companion {
    pub(super) payload_type: u8,
    /// Its packets have the media inside (redundancy, RFC 2198), and not something between them:
    /// comfort noise (RFC 3389), telephone events (RFC 4733).
    pub(super) has_media: bool,
}

impl Companion {
    /// `None` if the encoding is media of its own.
    fn of(payload_type: u8, encoding: &str) -> Option<Self> {
        let name = encoding.split('/').next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            "red" => Some(Self { payload_type, has_media: true }),
            "cn" | "telephone-event" => Some(Self { payload_type, has_media: false }),
            _ => None,
        }
    }
}

impl Description {
    /// Reads a description. What is not understood is ignored.
    pub(super) fn read(sdp: &str) -> Self {
        let mut description = Self::default();
        let mut section: Option<Section> = None;
        let mut sections = 0;
        for line in sdp.lines().map(str::trim) {
            if let Some(media) = line.strip_prefix("m=") {
                description.add(section.take());
                sections += 1;
                if sections > SECTIONS_MAX {
                    break;
                }
                section = Some(Section { line: media.to_owned(), ..Section::default() });
            } else if let Some(attribute) = line.strip_prefix("a=") {
                let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
                match (name, &mut section) {
                    ("control", Some(section)) => section.control = Some(value.trim().to_owned()),
                    ("control", None) => description.control = Some(value.trim().to_owned()),
                    ("sendonly", Some(section)) => section.is_sendonly = true,
                    ("rtpmap", Some(section)) => section.maps.push(value.trim().to_owned()),
                    ("range", _) => {
                        description.duration = description.duration.or(npt::range(value).1);
                    }
                    _ => {}
                }
            }
        }
        description.add(section);
        description.leave_out_ways_back();
        description
    }

    /// Servers that write their own direction write it for all sections; a way back to the server
    /// is one for sound.
    fn leave_out_ways_back(&mut self) {
        if self.media.iter().any(|media| !media.is_sendonly) {
            let skipped = &mut self.skipped;
            self.media.retain(|media| {
                let is_way_back = media.is_sendonly && media.kind == MediaKind::Audio;
                if is_way_back {
                    let (profile, payload_type) = (&media.profile, media.payload_type);
                    skipped.push(format!("audio {profile} {payload_type} (sendonly)"));
                }
                !is_way_back
            });
        }
    }

    fn add(&mut self, section: Option<Section>) {
        let Some(section) = section else { return };
        match section.described() {
            Some(media) => self.media.push(media),
            None => self.skipped.push(section.line),
        }
    }
}

/// A media section as written.
#[derive(Default)]
struct Section {
    /// After `m=`.
    line: String,
    control: Option<String>,
    maps: Vec<String>,
    is_sendonly: bool,
}

impl Section {
    fn described(&self) -> Option<MediaDescription> {
        let mut words = self.line.split_ascii_whitespace();
        let kind = match words.next()? {
            "audio" => MediaKind::Audio,
            "video" => MediaKind::Video,
            _ => return None,
        };
        // An interleaved profile in the description, as some servers write it, is the same media.
        let profile = words.nth(1)?.to_ascii_uppercase();
        let profile = profile.trim_end_matches("/TCP");
        let is_secure = profile.starts_with("RTP/SAVP");
        if !is_secure && !profile.starts_with("RTP/AVP") {
            return None;
        }
        let payload_type: u8 = words.next()?.parse().ok()?;
        let others = words.filter_map(|word| word.parse::<u8>().ok());
        let companions = others.filter_map(|other| Companion::of(other, self.encoding(other)?));
        let map = self.encoding(payload_type)?;
        let mut parts = map.split('/');
        let (name, rate) = (parts.next()?, parts.next()?);
        Some(MediaDescription {
            kind,
            codec: Codec::from_name(name),
            payload_type,
            companions: companions.collect(),
            clock_rate_hz: rate.trim().parse().ok().filter(|rate| *rate > 0)?,
            control: self.control.clone(),
            profile: profile.replace("SAVP", "AVP"),
            is_secure,
            is_sendonly: self.is_sendonly,
        })
    }

    /// The encoding of a payload type, as `name/rate`.
    fn encoding(&self, payload_type: u8) -> Option<&str> {
        let map = self.maps.iter().find_map(|map| {
            let (number, encoding) = map.split_once(char::is_whitespace)?;
            (number.parse() == Ok(payload_type)).then(|| encoding.trim())
        });
        map.or_else(|| static_map(payload_type))
    }
}

/// The encoding of a static payload type (RFC 3551 section 6), for sections without `a=rtpmap`.
fn static_map(payload_type: u8) -> Option<&'static str> {
    Some(match payload_type {
        0 => "PCMU/8000",
        3 => "GSM/8000",
        8 => "PCMA/8000",
        9 => "G722/8000",
        10 | 11 => "L16/44100",
        13 => "CN/8000",
        14 => "MPA/90000",
        26 => "JPEG/90000",
        31 => "H261/90000",
        32 => "MPV/90000",
        33 => "MP2T/90000",
        34 => "H263/90000",
        _ => return None,
    })
}

/// The URL of a track or presentation: `control` itself if it is absolute, `base` if there is none
/// or it is `*`.
///
/// A relative one is appended to the base, as players do: by RFC 3986 a base without a final slash
/// would lose its last segment, and servers that write such a base mean the longer one.
pub(super) fn control_url(base: &str, control: Option<&str>) -> String {
    match control {
        None | Some("" | "*") => base.to_owned(),
        Some(control) if control.contains("://") => control.to_owned(),
        Some(control) => {
            format!("{}/{}", base.trim_end_matches('/'), control.trim_start_matches('/'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_of_gst_rtsp_server_is_read() {
        let sdp = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=Session\r\nt=0 0\r\na=control:*\r\na=range:npt=0-20.02\r\n\
                   m=video 0 RTP/AVP 96\r\nc=IN IP4 0.0.0.0\r\na=rtpmap:96 H264/90000\r\na=control:stream=0\r\n\
                   m=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/48000/2\r\na=control:stream=1\r\n\
                   m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\n";
        let read = Description::read(sdp);
        assert_eq!(
            (read.control.as_deref(), read.duration),
            (Some("*"), Some(Duration::from_millis(20_020)))
        );
        let brief: Vec<_> = read
            .media
            .iter()
            .map(|m| (m.kind, m.payload_type, m.clock_rate_hz, m.control.as_deref()))
            .collect();
        let expect = [
            (MediaKind::Video, 96, 90_000, Some("stream=0")),
            (MediaKind::Audio, 97, 48_000, Some("stream=1")),
        ];
        assert_eq!(brief, expect);
        assert_eq!(read.media[0].codec, Codec::H264);
        assert_eq!(read.skipped, ["application 0 RTP/AVP 107"]);
    }

    #[test]
    fn static_payload_types_need_no_rtpmap_and_dynamic_ones_do() {
        let read =
            Description::read("m=video 0 RTP/AVP 32\nm=audio 0 RTP/AVP 14\nm=video 0 RTP/AVP 96\n");
        let brief: Vec<_> = read.media.iter().map(|m| (m.payload_type, m.clock_rate_hz)).collect();
        assert_eq!(brief, [(32, 90_000), (14, 90_000)]);
        assert_eq!(read.skipped, ["video 0 RTP/AVP 96"]);
    }

    #[test]
    fn what_accompanies_the_media_of_a_section_is_known() {
        let of = |section: &str| {
            let companions = Description::read(section).media[0].companions.clone();
            companions.iter().map(|it| (it.payload_type, it.has_media)).collect::<Vec<_>>()
        };
        assert_eq!(of("m=audio 0 RTP/AVP 0 13\n"), [(13, false)]);
        let events = "m=audio 0 RTP/AVP 8 101 96\na=rtpmap:101 telephone-event/8000\n";
        let both = format!("{events}a=rtpmap:96 RED/8000\n");
        assert_eq!(of(&both), [(101, false), (96, true)]);
        // Other media on offer is not what is played.
        assert!(of("m=audio 0 RTP/AVP 0 8\n").is_empty());
    }

    #[test]
    fn a_way_back_to_the_server_is_no_media_of_it() {
        let video = "m=video 0 RTP/AVP 33\na=recvonly\n";
        let back = "m=audio 0 RTP/AVP 0\na=sendonly\n";
        let kinds = |sdp: &str| {
            let read = Description::read(sdp);
            let sections = sdp.matches("m=").count();
            assert_eq!(read.media.len() + read.skipped.len(), sections, "{sdp}");
            assert!(read.skipped.iter().all(|line| line.contains("(sendonly)")), "{sdp}");
            read.media.iter().map(|media| media.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&format!("{video}{back}")), [MediaKind::Video]);
        // Pictures go no way back.
        let mixed = "m=video 0 RTP/AVP 33\na=sendonly\nm=audio 0 RTP/AVP 0\n";
        assert_eq!(kinds(mixed), [MediaKind::Video, MediaKind::Audio]);
        assert_eq!(kinds(&format!("m=video 0 RTP/AVP 33\n{back}")), [MediaKind::Video]);
        // A server that writes what it does itself.
        let sends = format!("m=video 0 RTP/AVP 33\na=sendonly\n{back}");
        assert_eq!(kinds(&sends), [MediaKind::Video, MediaKind::Audio]);
    }

    #[test]
    fn a_secure_profile_is_that_of_the_same_media_in_the_clear() {
        for (profile, expect) in [
            ("RTP/AVP", ("RTP/AVP", false)),
            ("RTP/AVPF/TCP", ("RTP/AVPF", false)),
            ("RTP/SAVP", ("RTP/AVP", true)),
            ("RTP/SAVPF/TCP", ("RTP/AVPF", true)),
        ] {
            let read = Description::read(&format!("m=video 0 {profile} 33\n"));
            let media = &read.media[0];
            assert_eq!((media.profile.as_str(), media.is_secure), expect, "{profile}");
        }
        assert!(Description::read("m=video 0 UDP/TLS/RTP/SAVPF 33\n").media.is_empty());
    }

    #[test]
    fn a_relative_control_url_follows_the_whole_base() {
        for (base, control, expect) in [
            ("rtsp://h/a", None, "rtsp://h/a"),
            ("rtsp://h/a/", Some("*"), "rtsp://h/a/"),
            ("rtsp://h/a", Some("track1"), "rtsp://h/a/track1"),
            ("rtsp://h/a/", Some("stream=0"), "rtsp://h/a/stream=0"),
            ("rtsp://h/a/", Some("rtsp://h/b/1"), "rtsp://h/b/1"),
        ] {
            assert_eq!(control_url(base, control), expect);
        }
    }
}
