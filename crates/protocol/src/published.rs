//! What publishers by RTSP and RTMP send: one encoding of each kind, in a loop, and its counters of
//! each second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::source::{Clip, Player};
use throng_observation::{
    Counters as _, MediaKind, Observation, SentCounters, SentInterval, TrackId,
};

use crate::reports::next_second;

/// Media that is published in a loop.
#[derive(Clone, Debug)]
pub struct PublishedMedia {
    /// The clip.
    pub clip: Arc<Clip>,
    /// Where in its loop it begins, so that the key frames of several publishers do not coincide.
    pub offset: Duration,
}

/// One track that is published: where in its clip it is, and what was sent of it.
pub(crate) struct PublishedTrack {
    pub(crate) kind: MediaKind,
    pub(crate) player: Player,
    pub(crate) began_at: Instant,
    pub(crate) counters: SentCounters,
    /// What the server says that it lost.
    pub(crate) remote_loss_ratio: Option<f64>,
    /// The counters at the end of the last interval.
    reported: SentCounters,
    /// When the last frame left, and the longest pause between two since the last interval.
    left_at: Option<Instant>,
    pause_max: Duration,
}

impl PublishedTrack {
    /// A track that begins at `now`.
    pub(crate) fn new(media: &PublishedMedia, now: Instant) -> Self {
        Self {
            kind: media.clip.kind(),
            player: Player::starting_at(Arc::clone(&media.clip), media.offset),
            began_at: now,
            counters: SentCounters::default(),
            remote_loss_ratio: None,
            reported: SentCounters::default(),
            left_at: None,
            pause_max: Duration::ZERO,
        }
    }

    /// When its next frame is captured.
    pub(crate) fn next_frame_at(&self) -> Instant {
        self.began_at + self.player.next_due()
    }

    /// Counts a frame that left, but for its packets.
    pub(crate) fn frame_left(&mut self, now: Instant, is_key: bool) {
        self.counters.frames_sent += 1;
        self.counters.key_frames_sent += u64::from(self.kind == MediaKind::Video && is_key);
        if let Some(before) = self.left_at.replace(now) {
            self.pause_max = self.pause_max.max(now.saturating_duration_since(before));
        }
    }

    fn since_reported(&mut self) -> SentCounters {
        let before = std::mem::replace(&mut self.reported, self.counters);
        self.counters.since(&before)
    }
}

/// The tracks of one connection: when the intervals of their counters end.
pub(crate) struct SentIntervals {
    next_at: Instant,
    began_at: Instant,
}

impl SentIntervals {
    /// Intervals from `now` on that end on whole seconds after `joined_at`.
    pub(crate) fn new(joined_at: Instant, now: Instant) -> Self {
        Self { next_at: next_second(joined_at, now), began_at: now }
    }

    /// When the current one ends.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Those of `tracks`, if their second is over.
    pub(crate) fn take_due<'a>(
        &mut self,
        now: Instant,
        tracks: impl Iterator<Item = &'a mut PublishedTrack>,
        round_trip_s: Option<f64>,
    ) -> Vec<Observation> {
        if now < self.next_at {
            return Vec::new();
        }
        self.next_at = next_second(self.next_at, now);
        self.take(now, tracks, round_trip_s)
    }

    /// Those of `tracks` since the last.
    pub(crate) fn take<'a>(
        &mut self,
        now: Instant,
        tracks: impl Iterator<Item = &'a mut PublishedTrack>,
        round_trip_s: Option<f64>,
    ) -> Vec<Observation> {
        let began = std::mem::replace(&mut self.began_at, now);
        let length = now.saturating_duration_since(began);
        let tracks: Vec<_> = tracks.collect();
        let wanted_bps: f64 = tracks.iter().map(|track| track.player.clip().bitrate_bps()).sum();
        let intervals = tracks.into_iter().enumerate().map(|(at, track)| {
            let pause = std::mem::take(&mut track.pause_max);
            Observation::Sent(Box::new(SentInterval {
                track: TrackId(u16::try_from(at).unwrap_or(u16::MAX)),
                kind: track.kind,
                codec: track.player.clip().codec(),
                ended_at: now,
                length,
                counters: track.since_reported(),
                round_trip_s,
                remote_loss_ratio: track.remote_loss_ratio,
                // Nothing bounds it but the connection.
                allowed_bps: wanted_bps,
                wanted_bps,
                pause_us_max: u32::try_from(pause.as_micros()).unwrap_or(u32::MAX),
            }))
        });
        intervals.collect()
    }
}

/// The connection took nothing for so long. It is counted once, with the first track.
pub(crate) fn blocked(first: Option<&mut PublishedTrack>, duration: Duration) {
    if let Some(track) = first {
        track.counters.blocked_us += u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    }
}
