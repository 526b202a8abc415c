//! What a publisher sends and when: clips in real time as tags, and its counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::container::annexb::nal_units;
use throng_media::depacketise;
use throng_media::quality::WallClock;
use throng_media::source::{Clip, Player};
use throng_observation::{Codec, MediaKind, Observation, SentCounters, SentInterval, TrackId};

use super::chunk::kind;
use super::ffmpeg::Encoding;
use super::flv::{self, Tag, VideoConfig};
use crate::participant::Why;
use crate::published::PublishedMedia;
use crate::reports::next_second;

/// Length of the header of an access unit in a clip of AAC (RFC 3640 section 3.3.6): sizes, and one header.
const AU_HEADER_BYTES: usize = 4;

const DAY_MS: u64 = 86_400_000;

/// One track.
struct Stream {
    kind: MediaKind,
    player: Player,
    began_at: Instant,
    counters: SentCounters,
    /// The counters at the end of the last interval.
    reported: SentCounters,
    /// When the last frame left, and the longest pause between two since the last interval.
    left_at: Option<Instant>,
    pause_max: Duration,
}

/// The tracks of one publisher.
pub(super) struct Feed {
    streams: Vec<Stream>,
    clock: WallClock,
    next_interval_at: Instant,
    interval_began: Instant,
}

impl Feed {
    /// A feed that begins at `now`; its intervals end on whole seconds after `joined_at`.
    pub(super) fn new(media: &[PublishedMedia], clock: WallClock, joined_at: Instant, now: Instant) -> Self {
        let streams = media.iter().map(|PublishedMedia { clip, offset }| Stream {
            kind: clip.kind(),
            player: Player::starting_at(Arc::clone(clip), *offset),
            began_at: now,
            counters: SentCounters::default(),
            reported: SentCounters::default(),
            left_at: None,
            pause_max: Duration::ZERO,
        });
        Self {
            streams: streams.collect(),
            clock,
            next_interval_at: next_second(joined_at, now),
            interval_began: now,
        }
    }

    /// What precedes the media: metadata, and the configuration of the decoders.
    pub(super) fn headers(&self) -> Vec<Tag> {
        let clip = |kind| self.streams.iter().find(|s| s.kind == kind).map(|s| s.player.clip().as_ref());
        let video = clip(MediaKind::Video).and_then(video_config);
        let sound = clip(MediaKind::Audio).and_then(|clip| Some((clip.audio_config()?, clip.bitrate_bps())));
        let tag = |kind, body| Tag { kind, timestamp_ms: 0, body };
        let metadata = tag(kind::DATA, flv::metadata(video.as_ref(), sound));
        let picture = video.map(|config| tag(kind::VIDEO, flv::video_header(&config)));
        let speech = sound.map(|(config, _)| tag(kind::AUDIO, flv::sound_header(config)));
        [metadata].into_iter().chain(picture).chain(speech).collect()
    }

    /// How its video is encoded again; its time 0 is captured at `began_at`.
    pub(super) fn encoding(&self, began_at: Instant) -> Option<Encoding> {
        let video = self.streams.iter().find(|stream| stream.kind == MediaKind::Video)?;
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
        let has = |kind| self.streams.iter().any(|stream| stream.kind == kind);
        (has(MediaKind::Video), has(MediaKind::Audio))
    }

    /// All tags that are due, in the order of their times.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Tag> {
        let mut tags = Vec::new();
        loop {
            let clock = self.clock;
            let due = self.streams.iter_mut().filter(|stream| stream.next_frame_at() <= now);
            let Some(first) = due.min_by_key(|stream| stream.next_frame_at()) else { break tags };
            tags.extend(first.frame(now, clock));
        }
    }

    /// The server took nothing for so long.
    pub(super) fn blocked(&mut self, duration: Duration) {
        if let Some(stream) = self.streams.first_mut() {
            stream.counters.blocked_us += u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        }
    }

    /// The intervals of the tracks, if their second is over.
    pub(super) fn take_due_intervals(&mut self, now: Instant) -> Vec<Observation> {
        if now < self.next_interval_at {
            return Vec::new();
        }
        self.next_interval_at = next_second(self.next_interval_at, now);
        self.take_intervals(now)
    }

    /// The intervals of the tracks since the last.
    pub(super) fn take_intervals(&mut self, now: Instant) -> Vec<Observation> {
        let began = std::mem::replace(&mut self.interval_began, now);
        let length = now.saturating_duration_since(began);
        let wanted_bps: f64 = self.streams.iter().map(|stream| stream.player.clip().bitrate_bps()).sum();
        let intervals = self.streams.iter_mut().enumerate().map(|(at, stream)| {
            let counters = stream.since_reported();
            let pause = std::mem::take(&mut stream.pause_max);
            Observation::Sent(Box::new(SentInterval {
                track: TrackId(u16::try_from(at).unwrap_or(u16::MAX)),
                kind: stream.kind,
                codec: stream.player.clip().codec(),
                ended_at: now,
                length,
                counters,
                round_trip_s: None,
                remote_loss_ratio: None,
                // Nothing bounds it but the connection.
                allowed_bps: wanted_bps,
                wanted_bps,
                pause_us_max: u32::try_from(pause.as_micros()).unwrap_or(u32::MAX),
            }))
        });
        intervals.collect()
    }

    /// When something is due next, and what.
    pub(super) fn next_timeout(&self) -> (Instant, Why) {
        let frames = self.streams.iter().map(|stream| (stream.next_frame_at(), "frame to capture"));
        let interval = (self.next_interval_at, "end of the interval");
        frames.fold(interval, |first, other| if other.0 < first.0 { other } else { first })
    }
}

impl Stream {
    fn next_frame_at(&self) -> Instant {
        self.began_at + self.player.next_due()
    }

    /// The next frame, captured when it is due.
    fn frame(&mut self, now: Instant, clock: WallClock) -> Option<Tag> {
        let due = self.player.next_due();
        let captured_unix_ns = clock.unix_ns(self.next_frame_at());
        let frame = self.player.advance();
        let clip = self.player.clip();
        let is_key = clip.is_key(&frame);
        let payloads: Vec<Vec<u8>> = (0..clip.packet_count(&frame))
            .map(|packet| {
                let mut payload = Vec::with_capacity(clip.payload_len(&frame, packet));
                clip.write_payload(&frame, packet, captured_unix_ns, &mut payload);
                payload
            })
            .collect();
        let (kind, body) = match self.kind {
            MediaKind::Video => {
                let mut stream = Vec::new();
                depacketise::frame(clip.codec(), payloads.iter().map(Vec::as_slice), &mut stream).ok()?;
                (kind::VIDEO, flv::picture(nal_units(&stream), is_key))
            }
            MediaKind::Audio => (kind::AUDIO, flv::sound(payloads.first()?.get(AU_HEADER_BYTES..)?)),
        };
        self.counters.packets_sent += 1;
        self.counters.payload_bytes += body.len() as u64;
        self.counters.wire_bytes += body.len() as u64;
        self.counters.frames_sent += 1;
        self.counters.key_frames_sent += u64::from(self.kind == MediaKind::Video && is_key);
        if let Some(before) = self.left_at.replace(now) {
            self.pause_max = self.pause_max.max(now.saturating_duration_since(before));
        }
        // Wraps after 49 days, as RTMP's does.
        Some(Tag { kind, timestamp_ms: due.as_millis() as u32, body })
    }

    fn since_reported(&mut self) -> SentCounters {
        let before = std::mem::replace(&mut self.reported, self.counters);
        self.counters.since(&before)
    }
}

/// The configuration of a clip of H.264; `None` without parameter sets.
fn video_config(clip: &Clip) -> Option<VideoConfig> {
    let sets = clip.parameter_sets();
    let of = |kind: u8| sets.iter().find(|nal| nal.first().is_some_and(|head| head & 0x1f == kind)).cloned();
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
