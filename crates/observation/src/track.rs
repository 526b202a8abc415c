//! Measurements of a received track, with the names of W3C webrtc-stats
//! (`RTCInboundRtpStreamStats`) where they exist.

use crate::keyed::keyed;
use crate::measure::ratio;
use crate::run::SeriesRow;
use crate::{CaptureBasis, TrackCounters};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The part of a protocol with the anomaly "the RTP marker is set inside pictures".
pub const INNER_MARKERS_PLACE: &str = "marker";
/// The event: `protocol_anomaly_` and the place.
pub const INNER_MARKERS_EVENT: &str = "protocol_anomaly_marker";

keyed! {
    /// Audio or video.
    MediaKind {
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
    }
}

/// The codecs whose payload headers throng reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// RFC 6184.
    H264,
    /// RFC 7798.
    H265,
    /// RFC 7741.
    Vp8,
    /// RFC 9628.
    Vp9,
    /// The AV1 RTP payload specification of the Alliance for Open Media.
    Av1,
    /// RFC 7587.
    Opus,
    /// G.711 µ-law, RFC 3551.
    Pcmu,
    /// G.711 A-law, RFC 3551.
    Pcma,
    /// MPEG-1 and MPEG-2 video, RFC 2250 section 3.
    MpegVideo,
    /// MPEG-4 Visual (part 2), RFC 6416 section 5.
    Mpeg4Visual,
    /// Motion JPEG, RFC 2435.
    Jpeg,
    /// An MPEG transport stream with all its streams, RFC 2250 section 2.
    Mp2t,
    /// AAC: RFC 3640, or LATM of RFC 6416 section 6.
    Aac,
    /// MPEG-1 and MPEG-2 audio, MP3 included: RFC 2250 section 3.5, or RFC 5219.
    MpegAudio,
    /// Any other codec: packets are counted, frames follow from timestamps and markers.
    Other,
}

impl Codec {
    /// The encoding name as in SDP's rtpmap.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Codec::H264 => "H264",
            Codec::H265 => "H265",
            Codec::Vp8 => "VP8",
            Codec::Vp9 => "VP9",
            Codec::Av1 => "AV1",
            Codec::Opus => "opus",
            Codec::Pcmu => "PCMU",
            Codec::Pcma => "PCMA",
            Codec::MpegVideo => "MPV",
            Codec::Mpeg4Visual => "MP4V-ES",
            Codec::Jpeg => "JPEG",
            Codec::Mp2t => "MP2T",
            Codec::Aac => "mpeg4-generic",
            Codec::MpegAudio => "MPA",
            Codec::Other => "other",
        }
    }

    /// The codec of an rtpmap encoding name, in any case. AAC and MPEG audio have two payload
    /// formats, each with a name of its own.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let others = [("MP4A-LATM", Codec::Aac), ("mpa-robust", Codec::MpegAudio)];
        let names = Codec::ALL.into_iter().map(|codec| (codec.name(), codec)).chain(others);
        names
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or(Codec::Other, |(_, codec)| codec)
    }

    /// Every codec, [`Codec::Other`] last.
    pub const ALL: [Codec; 15] = [
        Codec::H264,
        Codec::H265,
        Codec::Vp8,
        Codec::Vp9,
        Codec::Av1,
        Codec::Opus,
        Codec::Pcmu,
        Codec::Pcma,
        Codec::MpegVideo,
        Codec::Mpeg4Visual,
        Codec::Jpeg,
        Codec::Mp2t,
        Codec::Aac,
        Codec::MpegAudio,
        Codec::Other,
    ];
}

/// A track within its participant: the index in the order in which the participant announced its
/// tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrackId(pub u16);

impl SeriesRow {
    /// Share of the tracks' seconds in which no more than a tenth of the source's frames lacked;
    /// `None` without a frame rate.
    #[must_use]
    pub fn fps_good_ratio(&self) -> Option<f64> {
        let below = ratio(self.tracks_below_source_fps, self.fps_milli.count());
        below.map(|below| 1.0 - below)
    }

    /// The loss ratio that a share `quantile` of the tracks' seconds did not exceed; `None` without
    /// any. A distribution gives the upper end of what it cannot tell apart, which for a loss of
    /// all is above all.
    #[must_use]
    pub fn loss_ratio_at(&self, quantile: f64) -> Option<f64> {
        self.loss_ppm.quantile_in(quantile, 1e6).map(|ratio| ratio.min(1.0))
    }
}

/// One track over one interval (a second, or the rest of one).
#[derive(Clone, Debug)]
pub struct TrackInterval {
    /// Which track of the participant.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// When the interval ended.
    pub ended_at: Instant,
    /// Sums over the interval.
    pub counters: TrackCounters,
    /// RFC 3550 interarrival jitter at the end of the interval, microseconds; `None` before the
    /// second packet.
    pub jitter_us: Option<u32>,
    /// Relative delay of each complete frame (audio: packet), microseconds above the track's own
    /// floor.
    pub relative_delay_us: Vec<u32>,
    /// Absolute one-way delay of each frame that carried a capture time, microseconds (negative:
    /// clocks disagree).
    pub absolute_delay_us: Vec<i32>,
    /// The basis of the capture times of [`Self::absolute_delay_us`], the same for all; `None` when
    /// there are none.
    pub capture_basis: Option<CaptureBasis>,
    /// OvenRtcTester's "delay": |time since the first packet − RTP time since the first packet|,
    /// last value, microseconds. For comparison with its reports only: it is drift, not delay.
    pub oven_rtc_tester_delay_us: Option<u32>,
    /// The frame rate by the timestamps of the source, frames per second; `None` for audio or
    /// unknown.
    pub source_fps: Option<f32>,
    /// The shorter side of the picture at the end of the interval, pixels: 720 of 720p. `None` for
    /// audio, and where the size is not known.
    pub picture_lines: Option<u16>,
    /// Time of this interval in which frames were expected, microseconds: for video from the first
    /// decodable frame after it began, or began again; the wait for that frame is part of joining,
    /// which is measured separately. For audio all of it. For video that is played from a buffer,
    /// the time that the source has pictures for, and that of stalls.
    pub frames_due_us: u64,
    /// Since when the first decodable frame is awaited; `None` once it arrived, and for audio. The
    /// reader decides how long that may take.
    pub first_frame_awaited_since: Option<Instant>,
    /// The track is expected, and no packet of it came in the interval. A track is expected when
    /// it was negotiated (RFC 8829: a media section in which the peer sends) and, in a conference,
    /// when its sender is not muted and its layer is not switched off.
    pub missing: Option<Missing>,
}

/// Media that is expected and does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Since when it is expected.
    pub since: Instant,
    /// It had begun since then (video: with enough frames to know its pace), and has stopped.
    /// Otherwise it has yet to begin; the reader decides how long that may take.
    pub has_stopped: bool,
}

impl TrackInterval {
    /// The share of the source's frame rate from which on a track has it.
    pub const FPS_NEAR_SOURCE: f64 = 0.9;

    /// Whether `frames`, of which `source_fps` were due in a second, are fewer than `ratio_min` of
    /// those that were due in `due_us`. Of a source that has a picture every two seconds, none may
    /// be due in a second, and of one that has one a second, none may come in it and two in the
    /// next: less than a second picture that is missing says nothing.
    #[must_use]
    pub fn is_below_source(frames: u64, due_us: u64, source_fps: f64, ratio_min: f64) -> bool {
        let due = source_fps * due_us as f64 / 1e6;
        (frames as f64) < ratio_min * due && due - frames as f64 > 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_all_is_lost() {
        let mut row = SeriesRow::default();
        assert_eq!(row.loss_ratio_at(0.95), None);
        row.loss_ppm.record(1_000_000);
        assert_eq!(row.loss_ratio_at(0.95), Some(1.0));
    }

    #[test]
    fn slow_sources_are_not_judged_by_a_picture_more_or_less() {
        for (frames, due_ms, source_fps, expect) in [
            (24, 1_000, 30.0, false),
            (23, 1_000, 30.0, true),
            (0, 1_000, 0.5, false),
            (0, 1_000, 1.0, false),
            (0, 1_000, 2.0, true),
            (3, 1_000, 5.0, true),
            (4, 1_000, 5.0, false),
            (0, 5_000, 0.5, true),
        ] {
            let below = TrackInterval::is_below_source(frames, due_ms * 1_000, source_fps, 0.8);
            assert_eq!(below, expect, "{frames} of {source_fps} in {due_ms} ms");
        }
    }

    #[test]
    fn codecs_are_found_by_every_name_in_any_case() {
        for codec in Codec::ALL {
            assert_eq!(Codec::from_name(&codec.name().to_ascii_lowercase()), codec);
            assert_eq!(Codec::from_name(&codec.name().to_ascii_uppercase()), codec);
        }
        for (name, codec) in [
            ("mp4a-latm", Codec::Aac),
            ("MPEG4-GENERIC", Codec::Aac),
            ("MPA-ROBUST", Codec::MpegAudio),
            ("red", Codec::Other),
        ] {
            assert_eq!(Codec::from_name(name), codec, "{name}");
        }
    }
}
