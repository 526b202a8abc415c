//! What a publisher sends and when: clips in real time as tags, and its counters.

use std::time::{Duration, Instant};

use throng_media::container::annexb::nal_units;
use throng_media::depacketise;
use throng_media::quality::WallClock;
use throng_media::source::Clip;
use throng_observation::{Codec, MediaKind, Observation};

use super::chunk::kind;
use super::ffmpeg::Encoding;
use super::flv::{self, Tag, VideoConfig};
use crate::participant::Why;
use crate::published::{self, PublishedMedia, PublishedTrack, SentIntervals};

/// Length of the header of an access unit in a clip of AAC (RFC 3640 section 3.3.6): sizes, and one
/// header.
const AU_HEADER_BYTES: usize = 4;

const DAY_MS: u64 = 86_400_000;

/// The tracks of one publisher.
pub(super) struct Feed {
    tracks: Vec<PublishedTrack>,
    clock: WallClock,
    intervals: SentIntervals,
}

impl Feed {
    /// A feed that begins at `now`; its intervals end on whole seconds after `joined_at`.
    pub(super) fn new(
        media: &[PublishedMedia],
        clock: WallClock,
        joined_at: Instant,
        now: Instant,
    ) -> Self {
        let tracks = media.iter().map(|media| PublishedTrack::new(media, now)).collect();
        Self { tracks, clock, intervals: SentIntervals::new(joined_at, now) }
    }

    /// What precedes the media: metadata, and the configuration of the decoders.
    pub(super) fn headers(&self) -> Vec<Tag> {
        let clip = |kind| {
            self.tracks
                .iter()
                .find(|track| track.kind == kind)
                .map(|track| track.player.clip().as_ref())
        };
        let video = clip(MediaKind::Video).and_then(video_config);
        let sound = clip(MediaKind::Audio)
            .and_then(|clip| Some((clip.audio_config()?, clip.bitrate_bps())));
        let tag = |kind, body| Tag { kind, timestamp_ms: 0, body };
        let metadata = tag(kind::DATA, flv::metadata(video.as_ref(), sound));
        let picture = video.map(|config| tag(kind::VIDEO, flv::video_header(&config)));
        let speech = sound.map(|(config, _)| tag(kind::AUDIO, flv::sound_header(config)));
        [metadata].into_iter().chain(picture).chain(speech).collect()
    }

    /// How its video is encoded again; its time 0 is captured at `began_at`.
    pub(super) fn encoding(&self, began_at: Instant) -> Option<Encoding> {
        let video = self.tracks.iter().find(|track| track.kind == MediaKind::Video)?;
        let config = video_config(video.player.clip())?;
        Some(Encoding {
            size: config.size?,
            fps: config.fps,
            bitrate_bps: config.bitrate_bps,
            midnight_ms: self.clock.unix_ns(began_at) / 1_000_000 % DAY_MS,
        })
    }

    /// Whether it has video, and sound.
    pub(super) fn kinds(&self) -> (bool, bool) {
        let has = |kind| self.tracks.iter().any(|track| track.kind == kind);
        (has(MediaKind::Video), has(MediaKind::Audio))
    }

    /// All tags that are due, in the order of their times.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Tag> {
        let mut tags = Vec::new();
        loop {
            let clock = self.clock;
            let due = self.tracks.iter_mut().filter(|track| track.next_frame_at() <= now);
            let Some(first) = due.min_by_key(|track| track.next_frame_at()) else { break tags };
            tags.extend(frame(first, now, clock));
        }
    }

    /// The server took nothing for so long.
    pub(super) fn blocked(&mut self, duration: Duration) {
        published::blocked(self.tracks.first_mut(), duration);
    }

    /// The intervals of the tracks, if their second is over.
    pub(super) fn take_due_intervals(&mut self, now: Instant) -> Vec<Observation> {
        self.intervals.take_due(now, self.tracks.iter_mut(), None)
    }

    /// The intervals of the tracks since the last.
    pub(super) fn take_intervals(&mut self, now: Instant) -> Vec<Observation> {
        self.intervals.take(now, self.tracks.iter_mut(), None)
    }

    /// When something is due next, and what.
    pub(super) fn next_timeout(&self) -> (Instant, Why) {
        let frames = self.tracks.iter().map(|track| (track.next_frame_at(), "frame to capture"));
        let interval = (self.intervals.next_at(), "end of the interval");
        frames.fold(interval, |first, other| if other.0 < first.0 { other } else { first })
    }
}

/// The next frame, captured when it is due.
fn frame(track: &mut PublishedTrack, now: Instant, clock: WallClock) -> Option<Tag> {
    let due = track.player.next_due();
    let captured_unix_ns = clock.unix_ns(track.next_frame_at());
    let frame = track.player.advance();
    let clip = track.player.clip();
    let is_key = clip.is_key(&frame);
    let payloads: Vec<Vec<u8>> = (0..clip.packet_count(&frame))
        .map(|packet| {
            let mut payload = Vec::with_capacity(clip.payload_len(&frame, packet));
            clip.write_payload(&frame, packet, captured_unix_ns, &mut payload);
            payload
        })
        .collect();
    let (kind, body) = match track.kind {
        MediaKind::Video => {
            let mut stream = Vec::new();
            depacketise::frame(clip.codec(), payloads.iter().map(Vec::as_slice), &mut stream)
                .ok()?;
            (kind::VIDEO, flv::picture(nal_units(&stream), is_key))
        }
        MediaKind::Audio => (kind::AUDIO, flv::sound(payloads.first()?.get(AU_HEADER_BYTES..)?)),
    };
    track.counters.packets_sent += 1;
    track.counters.payload_bytes += body.len() as u64;
    track.counters.wire_bytes += body.len() as u64;
    track.frame_left(now, is_key);
    // Wraps after 49 days, as RTMP's does.
    Some(Tag { kind, timestamp_ms: due.as_millis() as u32, body })
}

/// The configuration of a clip of H.264; `None` without parameter sets.
fn video_config(clip: &Clip) -> Option<VideoConfig> {
    let sets = clip.parameter_sets();
    let of = |kind: u8| {
        sets.iter().find(|nal| nal.first().is_some_and(|head| head & 0x1f == kind)).cloned()
    };
    let sps = of(7)?;
    Some(VideoConfig {
        size: throng_media::codec::sps_size(&sps),
        sps,
        pps: of(8)?,
        fps: clip.frame_count() as f64 / clip.duration_s(),
        bitrate_bps: clip.bitrate_bps(),
    })
}

/// Why a clip cannot be published by RTMP; `None` if it can.
pub(super) fn refuses(clip: &Clip) -> Option<String> {
    match clip.codec() {
        Codec::H264 if video_config(clip).is_some() => None,
        Codec::H264 => Some("the video has no parameter sets (SPS and PPS)".into()),
        Codec::Aac => None,
        codec => Some(format!("RTMP carries H.264 and AAC, not {}", codec.name())),
    }
}
