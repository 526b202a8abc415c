//! What the viewer of `throng init` received.

use std::collections::BTreeMap;

use throng_observation::run::{Row, TrackRow};
use throng_observation::{Failure, MediaKind, Outcome, TrackId, units};

/// What one viewer received.
#[derive(Debug, Default)]
pub(super) struct Played {
    tracks: BTreeMap<TrackId, TrackRow>,
    /// Bit rate of media that was downloaded.
    media_bps: Option<f64>,
    /// The shorter side of the picture, pixels.
    lines: Option<u64>,
    /// Why it failed, if it did.
    pub(super) failure: Option<Failure>,
}

impl Played {
    /// Takes a row of the run.
    pub(super) fn add(&mut self, row: Row) {
        match row {
            Row::Track(track) => {
                self.tracks.insert(track.track, *track);
            }
            Row::Player(player) => self.media_bps = player.counters.media_bps(),
            Row::Series(series) => {
                self.lines = series.picture_lines.quantile(0.5).or(self.lines);
            }
            Row::Participant(participant) => {
                self.failure = match participant.outcome {
                    Some(Outcome::Failed(failure)) => Some(failure),
                    Some(Outcome::Completed) | None => None,
                };
            }
            Row::Crowd(_)
            | Row::Sent(_)
            | Row::Playback(_)
            | Row::Chat(_)
            | Row::SecondClosed(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::Generator(_)
            | Row::Event(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }

    /// The first track of a kind that received something.
    fn track(&self, kind: MediaKind) -> Option<&TrackRow> {
        let has_media = |track: &&TrackRow| track.kind == kind && track.first_frame_at.is_some();
        self.tracks.values().find(has_media)
    }

    /// Whether it received sound and no picture.
    pub(super) fn is_audio_only(&self) -> bool {
        self.track(MediaKind::Audio).is_some() && self.track(MediaKind::Video).is_none()
    }

    /// Bit rate of the media of a kind, or of all media that was downloaded as that of video.
    pub(super) fn bits_per_s(&self, kind: MediaKind) -> Option<f64> {
        let of_track = self.track(kind).and_then(|track| track.counters.payload_bps());
        let of_download = self.media_bps.filter(|_| kind == MediaKind::Video);
        of_download.or(of_track).filter(|bps| *bps >= 1_000.0)
    }

    /// What arrived, for people.
    pub(super) fn in_words(&self) -> Vec<String> {
        let kinds = [MediaKind::Video, MediaKind::Audio];
        let all: Vec<String> =
            kinds.into_iter().filter_map(|kind| self.kind_in_words(kind)).collect();
        if all.is_empty() { vec!["no media arrived".to_owned()] } else { all }
    }

    fn kind_in_words(&self, kind: MediaKind) -> Option<String> {
        let track = self.track(kind)?;
        let is_video = kind == MediaKind::Video;
        let lines = self.lines.filter(|_| is_video).map(|lines| format!("{lines} lines"));
        let fps = track.fps.filter(|_| is_video);
        let fps = fps.map(|fps| format!("{} fps", units::number(fps)));
        let rate = self.bits_per_s(kind).map(units::bit_rate);
        let all = [Some(track.codec.name().to_owned()), lines, fps, rate];
        let all: Vec<String> = all.into_iter().flatten().collect();
        Some(format!("{} {}", kind.key(), all.join(", ")))
    }
}
