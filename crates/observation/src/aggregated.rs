//! Tracks that are kept as sums. A run of a day may have a million tracks, of which a report shows
//! ten: the reader of a run for a report selects the rows that it keeps one by one.

use std::collections::{BTreeMap, BTreeSet};

use crate::measure::ratio;
use crate::run::{ParticipantId, RunData, TrackRow};
use crate::{Distribution, MediaKind, TrackCounters};

/// Selects the rows that the reader of a run keeps one by one.
pub trait RowSelector {
    /// The seconds at which a new stretch of samples begins, ascending: samples of a stretch, a
    /// cohort and a kind are added up into the first row that the series has there. Called once,
    /// when all of `run` has been read except the samples of its series and its tracks.
    fn stretches(&mut self, run: &RunData) -> Vec<i64>;

    /// Takes the tracks of a participant: some go to `run.tracks`, the others into
    /// `run.aggregated`. Participants come in the order of their numbers.
    fn tracks(&mut self, tracks: Vec<TrackRow>, run: &mut RunData);

    /// Called after the last track.
    fn finish(&mut self, run: &mut RunData);
}

/// Tracks that are not in [`RunData::tracks`]: always all tracks of a participant.
#[derive(Clone, Debug, Default)]
pub struct AggregatedTracks {
    kinds: BTreeMap<MediaKind, AggregatedKind>,
    /// Share of time frozen, by participant that received video.
    frozen: BTreeMap<ParticipantId, f64>,
    /// Payload bits per second of each participant.
    payload_bps: Distribution,
    counters: TrackCounters,
    pictures: GroupOfPictures,
}

/// Frames per key frame: over all participants, and the most and fewest of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupOfPictures {
    /// Frames that could be decoded, and the key frames among them.
    pub frames: u64,
    /// Key frames.
    pub key_frames: u64,
    /// The most and the fewest frames per key frame of a participant; `None` without key frames.
    pub bounds: Option<(f64, f64)>,
}

impl GroupOfPictures {
    /// Adds the frames of a participant.
    pub fn add(&mut self, frames: u64, key_frames: u64) {
        self.frames += frames;
        self.key_frames += key_frames;
        if let Some(each) = ratio(frames, key_frames) {
            let (most, fewest) = self.bounds.unwrap_or((each, each));
            self.bounds = Some((most.max(each), fewest.min(each)));
        }
    }

    /// Frames per key frame over all; `None` without key frames.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        ratio(self.frames, self.key_frames)
    }
}

/// Aggregated tracks of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AggregatedKind {
    /// Number of tracks.
    pub tracks: u64,
    /// Their codecs, by encoding names.
    pub codecs: BTreeSet<&'static str>,
    /// Tracks that were expected and received no packet.
    pub never_received: u64,
}

impl AggregatedTracks {
    /// Adds all tracks of a participant.
    pub fn add(&mut self, tracks: &[TrackRow]) {
        let Some(participant) = tracks.first().map(|track| track.participant) else { return };
        let (mut sum, mut video) = (TrackCounters::default(), TrackCounters::default());
        for track in tracks {
            let kind = self.kinds.entry(track.kind).or_default();
            kind.tracks += 1;
            kind.codecs.insert(track.codec.name());
            kind.never_received += u64::from(track.counters.never_received());
            sum.add_concurrent(&track.counters);
            if track.kind == MediaKind::Video {
                video += track.counters;
            }
            self.counters += track.counters;
        }
        self.pictures.add(video.frames_decodable, video.key_frames);
        self.payload_bps.record(sum.payload_bps().unwrap_or(0.0) as u64);
        self.frozen.extend(video.freeze_ratio().map(|ratio| (participant, ratio)));
    }

    /// The aggregate of one kind.
    #[must_use]
    pub fn of(&self, kind: MediaKind) -> AggregatedKind {
        self.kinds.get(&kind).cloned().unwrap_or_default()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The share of time for which a participant's video was frozen; `None` without video, or when
    /// its tracks are not aggregated here.
    #[must_use]
    pub fn freeze_ratio(&self, of: ParticipantId) -> Option<f64> {
        self.frozen.get(&of).copied()
    }

    /// Payload bits per second of each participant, over its life.
    #[must_use]
    pub fn payload_bps(&self) -> &Distribution {
        &self.payload_bps
    }

    /// Frames per key frame.
    #[must_use]
    pub fn pictures(&self) -> GroupOfPictures {
        self.pictures
    }

    /// Sums over all of them.
    #[must_use]
    pub fn counters(&self) -> &TrackCounters {
        &self.counters
    }
}
