//! What a Matroska file says about itself before its clusters (RFC 9559 sections 5.1.2 and 5.1.4).

use throng_observation::{Codec, MediaKind};

use super::ebml::{children, float, unsigned};
use crate::timing::TrackInfo;

const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
const DURATION: u32 = 0x4489;
const TRACK_ENTRY: u32 = 0xae;
const TRACK_NUMBER: u32 = 0xd7;
const TRACK_TYPE: u32 = 0x83;
const CODEC_ID: u32 = 0x86;
const DEFAULT_DURATION: u32 = 0x23_e383;
const CODEC_DELAY: u32 = 0x56aa;
const CONTENT_ENCODINGS: u32 = 0x6d80;
const VIDEO: u32 = 0xe0;
const PIXEL_WIDTH: u32 = 0xb0;
const PIXEL_HEIGHT: u32 = 0xba;

/// Tracks of audio and video that are read.
const TRACKS_MAX: usize = 64;

/// Nanoseconds of a tick, where the file does not say (section 5.1.2.9).
const SCALE_NS: u64 = 1_000_000;

/// One track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) number: u64,
    pub(super) kind: MediaKind,
    pub(super) codec: Codec,
    /// Width and height of its pictures, pixels.
    pub(super) size: Option<(u16, u16)>,
    /// Nanoseconds of a frame; 0 where the file does not say.
    pub(super) frame_ns: u64,
    /// Nanoseconds by which a decoder's output is late, to be taken from all times.
    pub(super) delay_ns: u64,
    /// Frames can be looked into: they are neither encrypted nor compressed.
    pub(super) is_plain: bool,
}

/// The tracks and their clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::timing) struct Tracks {
    pub(super) tracks: Vec<Track>,
    pub(in crate::timing) infos: Vec<TrackInfo>,
    /// Nanoseconds of a tick.
    pub(super) scale_ns: u64,
    pub(super) duration_us: Option<u64>,
}

impl Default for Tracks {
    fn default() -> Self {
        Self { tracks: Vec::new(), infos: Vec::new(), scale_ns: SCALE_NS, duration_us: None }
    }
}

impl Tracks {
    /// Takes the contents of `Info`.
    pub(super) fn info(&mut self, body: &[u8]) {
        let mut duration = None;
        for (id, body) in children(body) {
            match id {
                TIMESTAMP_SCALE => self.scale_ns = unsigned(body).max(1),
                DURATION => duration = float(body).filter(|ticks| *ticks > 0.0),
                _ => {}
            }
        }
        self.duration_us = duration.map(|ticks| (ticks * self.scale_ns as f64 / 1e3) as u64);
    }

    /// Takes the contents of `Tracks`.
    pub(super) fn tracks(&mut self, body: &[u8]) {
        let entries = children(body).filter(|(id, _)| *id == TRACK_ENTRY);
        self.tracks =
            entries.filter_map(|(_, entry)| Track::read(entry)).take(TRACKS_MAX).collect();
        let info =
            |track: &Track| TrackInfo { kind: track.kind, codec: track.codec, size: track.size };
        self.infos = self.tracks.iter().map(info).collect();
    }

    /// Microseconds of this many ticks.
    pub(super) fn us(&self, ticks: i64) -> i64 {
        let ns = i128::from(ticks) * i128::from(self.scale_ns);
        ns.div_euclid(1_000).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl Track {
    /// Reads a `TrackEntry`; `None` when it is neither audio nor video.
    fn read(entry: &[u8]) -> Option<Self> {
        let (mut kind, mut codec) = (None, Codec::Other);
        let mut track = Self {
            number: 0,
            kind: MediaKind::Video,
            codec,
            size: None,
            frame_ns: 0,
            delay_ns: 0,
            is_plain: true,
        };
        for (id, body) in children(entry) {
            match id {
                TRACK_NUMBER => track.number = unsigned(body),
                TRACK_TYPE => {
                    kind = match unsigned(body) {
                        1 => Some(MediaKind::Video),
                        2 => Some(MediaKind::Audio),
                        _ => None,
                    }
                }
                CODEC_ID => codec = of_id(body),
                DEFAULT_DURATION => track.frame_ns = unsigned(body),
                CODEC_DELAY => track.delay_ns = unsigned(body),
                CONTENT_ENCODINGS => track.is_plain = false,
                VIDEO => track.size = size(body),
                _ => {}
            }
        }
        Some(Self { kind: kind?, codec, ..track })
    }
}

/// Width and height in the contents of `Video` (RFC 9559 section 5.1.4.1.28).
fn size(video: &[u8]) -> Option<(u16, u16)> {
    let side = |wanted: u32| {
        let found = children(video).find(|(id, _)| *id == wanted);
        found.and_then(|(_, body)| u16::try_from(unsigned(body)).ok()).filter(|side| *side > 0)
    };
    side(PIXEL_WIDTH).zip(side(PIXEL_HEIGHT))
}

/// Codec ids of RFC 9559 and draft-ietf-cellar-codec.
fn of_id(id: &[u8]) -> Codec {
    match id.strip_suffix(b"\0").unwrap_or(id) {
        b"V_VP8" => Codec::Vp8,
        b"V_VP9" => Codec::Vp9,
        b"V_AV1" => Codec::Av1,
        b"V_MPEG4/ISO/AVC" => Codec::H264,
        b"V_MPEGH/ISO/HEVC" => Codec::H265,
        b"V_MPEG1" | b"V_MPEG2" => Codec::MpegVideo,
        b"V_MPEG4/ISO/SP" | b"V_MPEG4/ISO/ASP" | b"V_MPEG4/ISO/AP" => Codec::Mpeg4Visual,
        b"V_MJPEG" => Codec::Jpeg,
        b"A_OPUS" => Codec::Opus,
        b"A_MPEG/L1" | b"A_MPEG/L2" | b"A_MPEG/L3" => Codec::MpegAudio,
        id if id.starts_with(b"A_AAC") => Codec::Aac,
        _ => Codec::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ebml::tests::make;
    use super::*;

    #[test]
    fn a_track_of_video_says_how_large_its_pictures_are() {
        let size_of = |video: &[&[u8]]| {
            let entry = [make(TRACK_TYPE, &[&[1]]), make(VIDEO, video)].concat();
            let mut tracks = Tracks::default();
            tracks.tracks(&make(TRACK_ENTRY, &[&entry]));
            tracks.infos[0].size
        };
        let (width, height) = (make(PIXEL_WIDTH, &[&[5, 0]]), make(PIXEL_HEIGHT, &[&[2, 0xd0]]));
        assert_eq!(size_of(&[&width, &height]), Some((1_280, 720)));
        assert_eq!(size_of(&[&width]), None);
        assert_eq!(size_of(&[&width, &make(PIXEL_HEIGHT, &[&[9; 8]])]), None);
    }
}
