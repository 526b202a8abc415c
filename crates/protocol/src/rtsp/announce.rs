//! The description that a publisher announces: SDP (RFC 8866) with the payload formats' parameters.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_media::source::Clip;
use throng_observation::{Codec, MediaKind};

/// The first dynamic payload type (RFC 3551 section 6); the next tracks have the next ones.
const PAYLOAD_TYPE_MIN: u8 = 96;

/// The payload type of track `at`.
pub(super) fn payload_type(at: usize) -> u8 {
    PAYLOAD_TYPE_MIN.saturating_add(u8::try_from(at).unwrap_or(u8::MAX)).min(127)
}

/// The control URL of track `at`, relative to the presentation: that of ffmpeg's publisher, so that
/// servers which expect a certain form have met it.
pub(super) fn control(at: usize) -> String {
    format!("streamid={at}")
}

/// The session description of `clips`, in the order of their tracks. `address` is that of the
/// server, as publishers write it; it has no meaning in a unicast session.
pub(super) fn session_description(clips: &[&Clip], address: std::net::IpAddr) -> String {
    let family = if address.is_ipv4() { "IP4" } else { "IP6" };
    let any = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
    let mut sdp = format!(
        "v=0\r\no=- 0 0 IN {family} {any}\r\ns=throng\r\nc=IN {family} {address}\r\nt=0 \
         0\r\na=tool:throng\r\na=control:*\r\n"
    );
    for (at, clip) in clips.iter().enumerate() {
        let payload_type = payload_type(at);
        let kind = match clip.kind() {
            MediaKind::Video => "video",
            MediaKind::Audio => "audio",
        };
        let _ = write!(sdp, "m={kind} 0 RTP/AVP {payload_type}\r\n");
        let _ = write!(sdp, "a=rtpmap:{payload_type} {}\r\n", encoding(clip));
        if let Some(parameters) = parameters(clip) {
            let _ = write!(sdp, "a=fmtp:{payload_type} {parameters}\r\n");
        }
        let _ = write!(sdp, "a=control:{}\r\n", control(at));
    }
    sdp
}

/// Name, clock rate and channels of `a=rtpmap`.
fn encoding(clip: &Clip) -> String {
    match clip.codec() {
        // Always two channels, whatever is coded (RFC 7587 section 7).
        Codec::Opus => "opus/48000/2".into(),
        codec => format!("{}/{}", codec.name(), clip.clock_rate()),
    }
}

/// The parameters of `a=fmtp`.
fn parameters(clip: &Clip) -> Option<String> {
    let sets = clip.parameter_sets();
    let base64 = |nal: &Vec<u8>| STANDARD.encode(nal);
    match clip.codec() {
        // RFC 6184 section 8.1.
        Codec::H264 => {
            let mut text = "packetization-mode=1".to_owned();
            if !sets.is_empty() {
                let all: Vec<_> = sets.iter().map(base64).collect();
                text += &format!(";sprop-parameter-sets={}", all.join(","));
            }
            let sps = sets.iter().find(|nal| nal.first().is_some_and(|head| head & 0x1f == 7));
            if let Some([profile, constraints, level]) = sps.and_then(|sps| sps.get(1..4)) {
                text += &format!(";profile-level-id={profile:02X}{constraints:02X}{level:02X}");
            }
            Some(text)
        }
        // RFC 7798 section 7.1.
        Codec::H265 => {
            let of = |kind: u8| {
                let is = |nal: &&Vec<u8>| nal.first().is_some_and(|head| head >> 1 & 0x3f == kind);
                sets.iter().filter(is).map(base64).collect::<Vec<_>>().join(",")
            };
            let all = [("sprop-vps", of(32)), ("sprop-sps", of(33)), ("sprop-pps", of(34))];
            let all = all.into_iter().filter(|(_, sets)| !sets.is_empty());
            let all: Vec<_> = all.map(|(name, sets)| format!("{name}={sets}")).collect();
            (!all.is_empty()).then(|| all.join(";"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtsp::description::Description;
    use throng_media::card::{Rung, picture, speech};

    #[test]
    fn what_is_announced_reads_back_with_parameters_and_tracks() {
        let (video, sound) = (picture(Rung::P360, Codec::H264).unwrap(), speech().unwrap());
        let sdp = session_description(&[&video, &sound], "127.0.0.1".parse().unwrap());
        let read = Description::read(&sdp);
        let brief: Vec<_> = read
            .media
            .iter()
            .map(|m| (m.kind, m.codec, m.payload_type, m.clock_rate_hz, m.control.clone().unwrap()))
            .collect();
        let expect = [
            (MediaKind::Video, Codec::H264, 96, 90_000, "streamid=0".to_owned()),
            (MediaKind::Audio, Codec::Opus, 97, 48_000, "streamid=1".to_owned()),
        ];
        assert_eq!(brief, expect);
        assert!(read.skipped.is_empty() && read.duration.is_none());
        // The sets are those of the clip, and the profile is that of its SPS.
        let sets = video.parameter_sets();
        let sprop = sdp.split_once("sprop-parameter-sets=").unwrap().1.split(';').next().unwrap();
        let decoded: Vec<_> = sprop.split(',').map(|set| STANDARD.decode(set).unwrap()).collect();
        assert_eq!(decoded, sets);
        let profile =
            format!("profile-level-id={:02X}{:02X}{:02X}\r\n", sets[0][1], sets[0][2], sets[0][3]);
        assert!(sdp.contains(&profile), "{sdp}");
        assert!(sdp.contains("a=rtpmap:97 opus/48000/2\r\n"), "{sdp}");
        let vp8 = picture(Rung::P144, Codec::Vp8).unwrap();
        let sdp = session_description(&[&vp8], "::1".parse().unwrap());
        assert!(sdp.contains("a=rtpmap:96 VP8/90000\r\n") && !sdp.contains("fmtp"), "{sdp}");
        assert!(sdp.contains("c=IN IP6 ::1\r\n"), "{sdp}");
    }
}
