//! The collector's record of a track that a participant receives.

use throng_observation::run::{ParticipantId, Row, TrackRow};
use throng_observation::{
    Codec, Distribution, MediaKind, OneWayDelay, RunTime, TrackCounters, TrackId, TrackInterval,
};

use super::experience::LossJudge;
use super::last_seconds::LastSeconds;
use crate::live::TrackFigures;

/// A received track of a participant.
pub(super) struct Track {
    pub(super) id: TrackId,
    /// The participant's track that this row belongs to while the track has this sender: a server
    /// may switch a track from sender to sender, and each sender has a row.
    pub(super) live: Option<TrackId>,
    pub(super) kind: MediaKind,
    pub(super) codec: Codec,
    /// Whether it is of a recording.
    pub(super) is_recording: bool,
    pub(super) from: Option<Box<str>>,
    /// That sender, if it is a participant of this run.
    pub(super) sender: Option<ParticipantId>,
    pub(super) first_frame_at: Option<RunTime>,
    pub(super) counters: TrackCounters,
    /// Time in which frames were expected, microseconds.
    frames_due_us: u64,
    relative_delay_us: Distribution,
    absolute_delay: Option<Box<OneWayDelay>>,
    jitter_us: Option<u32>,
    oven_rtc_tester_delay_us: Option<u32>,
    last: TrackCounters,
    last_frames_due_us: u64,
    /// Violations in its last seconds.
    pub(super) quality: LastSeconds,
    pub(super) loss: LossJudge,
    last_delay_us_max: Option<u32>,
}

/// The loss that reports have, in which missing time counts; 0 where nothing was expected.
pub(super) fn loss_ratio(counters: &TrackCounters) -> f64 {
    counters.loss_ratio().unwrap_or(0.0)
}

impl Track {
    pub(super) fn new(id: TrackId, kind: MediaKind, codec: Codec, is_recording: bool) -> Self {
        Self {
            id,
            live: Some(id),
            kind,
            codec,
            is_recording,
            from: None,
            sender: None,
            first_frame_at: None,
            counters: TrackCounters::default(),
            frames_due_us: 0,
            relative_delay_us: Distribution::new(),
            absolute_delay: None,
            jitter_us: None,
            oven_rtc_tester_delay_us: None,
            last: TrackCounters::default(),
            last_frames_due_us: 0,
            quality: LastSeconds::default(),
            loss: LossJudge::default(),
            last_delay_us_max: None,
        }
    }

    pub(super) fn add(&mut self, interval: &TrackInterval) {
        self.counters += interval.counters;
        self.last = interval.counters;
        self.frames_due_us += interval.frames_due_us;
        self.last_frames_due_us = interval.frames_due_us;
        self.last_delay_us_max = interval.relative_delay_us.iter().copied().max();
        self.jitter_us = interval.jitter_us.or(self.jitter_us);
        self.oven_rtc_tester_delay_us =
            interval.oven_rtc_tester_delay_us.or(self.oven_rtc_tester_delay_us);
        interval
            .relative_delay_us
            .iter()
            .for_each(|us| self.relative_delay_us.record(u64::from(*us)));
        // Most servers give no capture time.
        if let Some(basis) = interval.capture_basis {
            let absolute = self.absolute_delay.get_or_insert_default();
            interval.absolute_delay_us.iter().for_each(|us| absolute.record(basis, *us));
        }
    }

    pub(super) fn row(&self, participant: ParticipantId) -> Row {
        Row::Track(Box::new(TrackRow {
            participant,
            track: self.id,
            kind: self.kind,
            codec: self.codec,
            from: self.from.as_deref().map(str::to_owned),
            first_frame_at: self.first_frame_at,
            counters: self.counters,
            relative_delay_us: self.relative_delay_us.clone(),
            absolute_delay: self.absolute_delay.as_deref().cloned().unwrap_or_default(),
            fps: self.counters.fps(self.frames_due_us),
            jitter_us: self.jitter_us,
            oven_rtc_tester_delay_us: self.oven_rtc_tester_delay_us,
        }))
    }

    /// Loss counts most, then freezes, then delay in seconds.
    pub(super) fn badness(&self) -> f64 {
        loss_ratio(&self.last) * 100.0
            + self.last.freeze_count as f64
            + f64::from(self.last_delay_us_max.unwrap_or(0)) / 1e6
    }

    pub(super) fn figures(&self) -> TrackFigures {
        TrackFigures {
            kind: self.kind,
            codec: self.codec,
            loss_ratio: loss_ratio(&self.last),
            fps: self.last.fps(self.last_frames_due_us).unwrap_or(0.0),
            delay_ms_max: self.last_delay_us_max.map(|us| f64::from(us) / 1e3),
            packets_lost: self.counters.packets_lost,
            wire_bytes: self.counters.wire_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_that_is_missing_is_lost_and_worse_than_one_that_loses_packets() {
        let track = |packets_original, packets_lost, missing_us| {
            let mut track = Track::new(TrackId(0), MediaKind::Video, Codec::H264, false);
            let active_us = 1_000_000;
            track.last = TrackCounters {
                packets_original,
                packets_lost,
                active_us,
                missing_us,
                ..TrackCounters::default()
            };
            track
        };
        let (missing, lossy) = (track(0, 0, 1_000_000), track(90, 10, 0));
        assert_eq!((missing.figures().loss_ratio, lossy.figures().loss_ratio), (1.0, 0.1));
        assert!(missing.badness() > lossy.badness());
    }
}
