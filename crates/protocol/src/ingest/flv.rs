//! The bodies of audio and video messages, which are those of FLV tags ("Adobe Flash Video File
//! Format Specification", version 10.1, annex E), and FLV files for programs that read them.

use throng_media::container::adts::AudioConfig;

use super::amf::Amf;
use super::chunk::kind;

/// H.264, and whether the frame is a key frame (E.4.3.1).
const KEY_FRAME_AVC: u8 = 0x17;
const INTER_FRAME_AVC: u8 = 0x27;
/// AAC; rate, size and channels have no meaning for it (E.4.2.1).
const AAC: u8 = 0xaf;
const SEQUENCE_HEADER: u8 = 0;
const CODED: u8 = 1;

/// A message, or tag, of media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Of `chunk::kind`: audio, video or data.
    pub(super) kind: u8,
    /// Milliseconds since the publication began, wrapping.
    pub(super) timestamp_ms: u32,
    pub(super) body: Vec<u8>,
}

/// What the video is, for the first tag and for `onMetaData`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VideoConfig {
    pub(super) sps: Vec<u8>,
    pub(super) pps: Vec<u8>,
    /// Width and height, pixels, where the SPS says them.
    pub(super) size: Option<(u16, u16)>,
    pub(super) fps: f64,
    pub(super) bitrate_bps: f64,
}

/// `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3.1) in the first video message.
pub(super) fn video_header(config: &VideoConfig) -> Vec<u8> {
    let VideoConfig { sps, pps, .. } = config;
    let of_sps = |at: usize| sps.get(at).copied().unwrap_or(0);
    let mut body = vec![KEY_FRAME_AVC, SEQUENCE_HEADER, 0, 0, 0];
    // Version, profile, compatibility, level; lengths of four bytes; one SPS.
    body.extend_from_slice(&[1, of_sps(1), of_sps(2), of_sps(3), 0xff, 0xe1]);
    with_length16(sps, &mut body);
    body.push(1);
    with_length16(pps, &mut body);
    body
}

fn with_length16(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A picture: its NAL units with their lengths before them, without those that the header has (SPS,
/// PPS) and without access unit delimiters, which FLV does not use.
pub(super) fn picture<'a>(nals: impl Iterator<Item = &'a [u8]>, is_key: bool) -> Vec<u8> {
    let mut body = vec![if is_key { KEY_FRAME_AVC } else { INTER_FRAME_AVC }, CODED, 0, 0, 0];
    for nal in nals {
        if nal.first().is_some_and(|head| !matches!(head & 0x1f, 7..=9)) {
            body.extend_from_slice(&(nal.len() as u32).to_be_bytes());
            body.extend_from_slice(nal);
        }
    }
    body
}

/// `AudioSpecificConfig` in the first audio message.
pub(super) fn sound_header(config: AudioConfig) -> Vec<u8> {
    [&[AAC, SEQUENCE_HEADER][..], &config.specific()].concat()
}

/// A frame of AAC.
pub(super) fn sound(frame: &[u8]) -> Vec<u8> {
    [&[AAC, CODED][..], frame].concat()
}

/// `onMetaData`, as ffmpeg's muxer writes it.
pub(super) fn metadata(video: Option<&VideoConfig>, sound: Option<(AudioConfig, f64)>) -> Vec<u8> {
    let mut properties = vec![("duration".to_owned(), Amf::Number(0.0))];
    let mut add = |name: &str, value: f64| properties.push((name.to_owned(), Amf::Number(value)));
    if let Some(video) = video {
        if let Some((width, height)) = video.size {
            add("width", f64::from(width));
            add("height", f64::from(height));
        }
        add("videodatarate", video.bitrate_bps / 1_000.0);
        add("framerate", video.fps);
        add("videocodecid", 7.0);
    }
    if let Some((config, bitrate_bps)) = sound {
        add("audiodatarate", bitrate_bps / 1_000.0);
        add("audiosamplerate", f64::from(config.sample_rate_hz));
        add("audiosamplesize", 16.0);
        add("audiocodecid", 10.0);
        properties.push(("stereo".to_owned(), Amf::Boolean(config.channels > 1)));
    }
    properties.push(("encoder".to_owned(), Amf::text("throng")));
    let mut body = Vec::new();
    Amf::text("onMetaData").write(&mut body);
    Amf::write_array(&properties, &mut body);
    body
}

/// Metadata as RTMP sends it: a server keeps them for viewers that come later.
pub(super) fn set_data_frame(metadata: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    Amf::text("@setDataFrame").write(&mut body);
    body.extend_from_slice(metadata);
    body
}

/// The beginning of an FLV file (E.2).
pub(super) fn file_header(has_video: bool, has_sound: bool) -> Vec<u8> {
    let flags = u8::from(has_sound) << 2 | u8::from(has_video);
    [b"FLV\x01", &[flags, 0, 0, 0, 9][..], &[0; 4]].concat()
}

/// A tag in an FLV file, with its length after it (E.3).
pub(super) fn in_file(tag: &Tag, out: &mut Vec<u8>) {
    debug_assert!(matches!(tag.kind, kind::AUDIO | kind::VIDEO | kind::DATA));
    let length = tag.body.len() as u32;
    let [extension, time @ ..] = tag.timestamp_ms.to_be_bytes();
    out.push(tag.kind);
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&time);
    out.extend_from_slice(&[extension, 0, 0, 0]);
    out.extend_from_slice(&tag.body);
    out.extend_from_slice(&(length + 11).to_be_bytes());
}
