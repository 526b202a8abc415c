//! What a player measures in each second: playback, downloads, and the frames of each track.

use std::time::{Duration, Instant};

use throng_observation::{
    LiveInterval, MediaKind, Observation, PlaybackCounters, PlaybackInterval, TrackCounters,
    TrackInterval,
};

use super::timeline::Timeline;
use crate::reports::next_second;

/// Seconds over which delivery is compared with the media's own rate: long enough for segments of
/// the usual lengths to average out, short enough for a search that holds a load for some seconds.
const DELIVERY_SECONDS: usize = 5;

/// The open interval of a player.
#[derive(Debug)]
pub(in crate::player) struct Meter {
    began_at: Instant,
    next_at: Instant,
    counters: PlaybackCounters,
    /// Part of its media bytes.
    separate_sound_bytes: u64,
    /// Up to when `wanted_us` is counted, and whether media is wanted since then.
    wanted: (Instant, bool),
    /// By second, the latest first: microseconds of media that became playable; `None` in a second
    /// in which the player did not want media all the time.
    delivered_us: [Option<u64>; DELIVERY_SECONDS],
    /// Whether media was wanted throughout the open interval.
    wanted_throughout: bool,
}

/// What the other parts of a player know at the end of an interval.
pub(in crate::player) struct IntervalEnd<'a> {
    /// What they counted.
    pub(in crate::player) counters: PlaybackCounters,
    pub(in crate::player) timeline: &'a mut Timeline,
    pub(in crate::player) position_us: i64,
    pub(in crate::player) buffer_us: u64,
    pub(in crate::player) start_awaited_since: Option<Instant>,
    pub(in crate::player) live: Option<LiveInterval>,
}

impl Meter {
    /// Intervals end on whole seconds after `origin`.
    pub(in crate::player) fn new(origin: Instant, now: Instant) -> Self {
        Self {
            began_at: now,
            next_at: next_second(origin, now),
            counters: PlaybackCounters::default(),
            separate_sound_bytes: 0,
            wanted: (now, false),
            delivered_us: [None; DELIVERY_SECONDS],
            wanted_throughout: false,
        }
    }

    /// Media is wanted from now on, or no more: the buffer is full, or all was received.
    pub(in crate::player) fn wants(&mut self, now: Instant, wants: bool) {
        let (since, wanted) = self.wanted;
        if wanted {
            let passed = now.saturating_duration_since(since);
            self.counters.wanted_us += u64::try_from(passed.as_micros()).unwrap_or(0);
        }
        // A download that pauses within the second was not slow.
        self.wanted_throughout &= wants || now == self.began_at;
        self.wanted = (now, wants);
    }

    /// So much media became playable.
    pub(in crate::player) fn gained(&mut self, media_us: i64) {
        self.counters.media_us += u64::try_from(media_us).unwrap_or(0);
    }

    /// So many bytes came that hold no media: playlists, indexes.
    pub(in crate::player) fn other_bytes(&mut self, bytes: u64) {
        self.counters.other_bytes += bytes;
    }

    /// A request for the page around the player was sent.
    pub(in crate::player) fn page_request(&mut self) {
        self.counters.page_requests += 1;
    }

    /// A request for the page around the player failed.
    pub(in crate::player) fn page_request_failed(&mut self) {
        self.counters.page_requests_failed += 1;
    }

    /// So many bytes of the page around the player came.
    pub(in crate::player) fn page_bytes(&mut self, bytes: u64) {
        self.counters.page_bytes += bytes;
        self.other_bytes(bytes);
    }

    /// A segment, playlist, manifest or key was due and will not come.
    pub(in crate::player) fn missed(&mut self) {
        self.counters.missed += 1;
    }

    /// A segment came, or a part of one.
    pub(in crate::player) fn segment(&mut self, took: Duration, media_us: u64) {
        self.counters.segments += 1;
        self.counters.segment_download_us += u64::try_from(took.as_micros()).unwrap_or(0);
        self.counters.segment_media_us += media_us;
    }

    /// Bytes of media came.
    pub(in crate::player) fn media_bytes(&mut self, bytes: u64) {
        self.counters.media_bytes += bytes;
    }

    /// Bytes of media came that are of sound alone, whose pictures come otherwise.
    pub(in crate::player) fn separate_sound_bytes(&mut self, bytes: u64) {
        self.separate_sound_bytes += bytes;
        self.media_bytes(bytes);
    }

    /// Another rendition is played.
    pub(in crate::player) fn switched(&mut self) {
        self.counters.switches += 1;
    }

    /// Playback moves elsewhere: what was delivered before says nothing about what comes.
    pub(in crate::player) fn moved(&mut self) {
        self.delivered_us = [None; DELIVERY_SECONDS];
        self.wanted_throughout = false;
    }

    pub(in crate::player) fn next_timeout(&self) -> Instant {
        self.next_at
    }

    /// Whether the interval is over.
    pub(in crate::player) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_at
    }

    /// How long the open interval has lasted, microseconds.
    pub(in crate::player) fn lasted_us(&self, now: Instant) -> u64 {
        let lasted = now.saturating_duration_since(self.began_at);
        u64::try_from(lasted.as_micros()).unwrap_or(0)
    }

    /// Ends the interval.
    pub(in crate::player) fn end_interval(
        &mut self,
        now: Instant,
        end: &mut IntervalEnd<'_>,
        mut observe: impl FnMut(Observation),
    ) {
        let (_, wants) = self.wanted;
        self.wants(now, wants);
        let mut counters = std::mem::take(&mut self.counters);
        counters += end.counters;
        // An interval that is cut short, at a join or a leave, is no second.
        let is_second = self.lasted_us(now) >= 900_000;
        self.delivered_us.rotate_right(1);
        if let Some(latest) = self.delivered_us.first_mut() {
            *latest = (self.wanted_throughout && is_second).then_some(counters.media_us);
        }
        let interval = PlaybackInterval {
            ended_at: now,
            counters,
            separate_sound_bytes: std::mem::take(&mut self.separate_sound_bytes),
            buffer_us: end.buffer_us,
            delivery_ratio: self.delivery_ratio(),
            start_awaited_since: end.start_awaited_since,
            live: end.live,
        };
        observe(Observation::Playback(Box::new(interval)));
        let lines = end.timeline.lines_at(end.position_us);
        let video = end.timeline.tracks().iter().find(|track| track.kind == MediaKind::Video);
        if let Some(track) = video.map(|track| track.id) {
            while let Some((from, to)) = end.timeline.take_size_change(end.position_us) {
                observe(Observation::SizeChanged { track, from, to, at: now });
            }
        }
        for track in end.timeline.tracks_mut() {
            let played = track.take_played(end.position_us);
            let is_video = track.kind == MediaKind::Video;
            // Pictures are due when the source has some: it may have one every two seconds, or none
            // any more while the sound goes on. Where some are missing, they were due too.
            let due_us =
                if is_video { played.last_us + played.missing_us } else { counters.played_us };
            let own_fps = (played.last_us > 0 && played.frames > 0)
                .then(|| (played.frames as f64 * 1e6 / played.last_us as f64) as f32);
            let interval = TrackInterval {
                track: track.id,
                kind: track.kind,
                ended_at: now,
                counters: TrackCounters {
                    payload_bytes: track.take_bytes(),
                    frames_complete: played.frames,
                    frames_decodable: played.frames,
                    key_frames: played.key_frames,
                    active_us: counters.active_us,
                    ..TrackCounters::default()
                },
                jitter_us: None,
                relative_delay_us: Vec::new(),
                absolute_delay_us: Vec::new(),
                capture_basis: None,
                oven_rtc_tester_delay_us: None,
                source_fps: own_fps.or(track.source_fps()).filter(|_| is_video),
                picture_lines: lines.filter(|_| is_video),
                frames_due_us: due_us + counters.stall_us,
                first_frame_awaited_since: None,
                missing: None,
            };
            observe(Observation::Interval(Box::new(interval)));
        }
        self.began_at = now;
        self.next_at = next_second(self.next_at, now);
        self.wanted_throughout = wants;
    }

    fn delivery_ratio(&self) -> Option<f32> {
        let sum_us = self.delivered_us.iter().copied().try_fold(0, |sum, us| Some(sum + us?))?;
        Some((sum_us as f64 / (DELIVERY_SECONDS as f64 * 1e6)) as f32)
    }
}
