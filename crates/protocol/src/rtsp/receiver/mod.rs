//! The media that a viewer receives: RTP to the meters, RTCP reports back. Media is in the clear,
//! so that nothing here is in common with SRTP but the meters.
//!
//! A `track` is one received stream, and `arrivals` meters its packets. `positions` says which of
//! them are wanted: pauses, seeks and repetitions of a recording. `seconds` ends the intervals;
//! those of a track that may be over are put off (`ends`). `control` is RTCP, and `anomalies` what
//! a server does otherwise than described.

use std::time::{Duration, Instant};

use throng_media::assemble::FrameAssembler;
use throng_media::codec::PayloadReader;
use throng_media::prefetch::Prefetcher;
use throng_media::quality::{TrackConfig, TrackMeter, WallClock};
use throng_observation::{MediaKind, Observation, TrackId};

use self::arrivals::Arrivals;
use self::control::REPORT_INTERVAL;
use self::ends::Expected;
use self::track::Track;
use super::description::MediaDescription;
use crate::reports::{LastSenderReport, cname, next_second};
use crate::shown_size::ShownSize;

mod anomalies;
mod arrivals;
mod control;
mod ends;
mod positions;
mod seconds;
mod track;

/// The settings of a [`Receiver`].
#[derive(Clone, Copy)]
pub(super) struct ReceiverOptions {
    pub(super) clock: WallClock,
    /// Intervals end on whole seconds after it.
    pub(super) joined_at: Instant,
    pub(super) seed: u64,
    pub(super) is_tapped: bool,
    /// The presentation has a length.
    pub(super) is_recording: bool,
}

/// Receives the tracks of one session.
pub(super) struct Receiver {
    options: ReceiverOptions,
    tracks: Vec<Track>,
    ssrc: u32,
    cname: String,
    random: fastrand::Rng,
    next_interval_at: Instant,
    /// What arrived so long before now is known.
    lag: Duration,
    last_media_at: Option<Instant>,
    expected: Option<Expected>,
    first_packet_seen: bool,
    first_frame_seen: bool,
    is_paused: bool,
    arrivals: Arrivals,
    source_changes: u8,
    observed: Vec<Observation>,
    anomalies: u8,
    last_anomaly: Option<String>,
    /// Control packets came.
    has_control: bool,
}

impl Receiver {
    pub(super) fn new(options: ReceiverOptions, media: &[MediaDescription], now: Instant) -> Self {
        let mut random = fastrand::Rng::with_seed(options.seed);
        let cname = cname(&mut random);
        let ssrc = random.u32(1..);
        let mut observed = Vec::new();
        let tracks = media.iter().enumerate().map(|(at, media)| {
            let id = TrackId(u16::try_from(at).unwrap_or(u16::MAX));
            let (kind, codec, is_recording) = (media.kind, media.codec, options.is_recording);
            observed.push(Observation::TrackOpened { track: id, kind, codec, is_recording });
            let config = TrackConfig {
                track: id,
                kind: media.kind,
                codec: media.codec,
                clock_rate_hz: media.clock_rate_hz,
                nack: false,
            };
            Track {
                id,
                config,
                payload_type: media.payload_type,
                companions: media.companions.clone(),
                meter: TrackMeter::new(config, options.clock, now),
                payloads: PayloadReader::new(media.codec),
                ssrc: None,
                last_sender_report: LastSenderReport::default(),
                next_report_at: now + REPORT_INTERVAL.mul_f64(0.5 + random.f64()) / 2,
                silent_since: now,
                has_media: false,
                put_off: None,
                first_frame_reported: false,
                has_ended: false,
                assembler: (options.is_tapped && media.kind == MediaKind::Video)
                    .then(|| Box::new(FrameAssembler::new(media.codec))),
                picture: ShownSize::default(),
            }
        });
        let tracks = tracks.collect();
        Self {
            options,
            tracks,
            ssrc,
            cname,
            random,
            next_interval_at: next_second(options.joined_at, now),
            lag: Duration::ZERO,
            last_media_at: None,
            expected: None,
            first_packet_seen: false,
            first_frame_seen: false,
            is_paused: false,
            arrivals: Arrivals::Metered,
            source_changes: 0,
            observed,
            anomalies: 0,
            last_anomaly: None,
            has_control: false,
        }
    }

    /// When media last came, or was expected anew after some had come.
    pub(super) fn last_media_at(&self) -> Option<Instant> {
        self.last_media_at
    }

    /// Whether media came since PLAY was last answered.
    pub(super) fn has_media(&self) -> bool {
        self.tracks.iter().any(|track| track.has_media)
    }

    /// Whether anything came that is no media as described, such as control packets.
    pub(super) fn has_noticed(&self) -> bool {
        self.has_control || self.last_anomaly.is_some()
    }

    /// The last protocol anomaly, for the failure that explains why no media played.
    pub(super) fn last_anomaly(&self) -> Option<&str> {
        self.last_anomaly.as_deref()
    }

    pub(super) fn has_observed(&self) -> bool {
        !self.observed.is_empty()
    }

    pub(super) fn take_observed(&mut self) -> std::vec::Drain<'_, Observation> {
        self.observed.drain(..)
    }

    /// See [`crate::participant::Participant::receive_lag`].
    pub(super) fn receive_lag(&mut self, lag: Duration) {
        self.lag = lag;
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match level.checked_sub(1) {
            Some(level) => {
                self.tracks
                    .iter()
                    .take(2)
                    .for_each(|track| track.meter.prefetch(level, prefetcher));
            }
            None => self.tracks.iter().take(2).for_each(|track| prefetcher.value(track)),
        }
    }
}
