//! Whether a silent track is over: its recording tells it, the other tracks, or the server.

use std::time::{Duration, Instant};

use throng_media::quality::TrackMeter;
use throng_observation::Observation;

use super::track::Track;
use crate::rtsp::playback::END_UNSURE;

/// When media of every track is expected.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    pub(super) since: Instant,
    /// The end of a recording.
    pub(super) until: Option<Instant>,
    /// The server was asked to stop: nothing is missing, and what may be over is not refuted.
    pub(super) is_stopping: bool,
}

/// Shorter silences end nothing: no freeze has begun yet.
const SILENCE_MIN: Duration = Duration::from_millis(150);

/// Seconds before these are one interval where they were put off: a track that the server has ended
/// may be silent for hours before it goes on.
const PUT_OFF_MAX: Duration = Duration::from_secs(60);

/// Since when each track is silent that may be over at `now`. One that had no media is over with
/// the last of those that had: until then it is missing. Where none had any, there may be none.
pub(super) fn over_since(
    tracks: &[Track],
    expected: Option<Expected>,
    now: Instant,
) -> Vec<Option<Instant>> {
    let is_silent = |track: &Track| now >= track.silent_since + SILENCE_MIN;
    let are_all_silent = tracks.iter().filter(|track| track.has_media).all(is_silent);
    let own = |track: &Track| track.over_since(expected, now, are_all_silent);
    let later = |one: Option<Instant>, other: Option<Instant>| Some(one?.max(other?));
    let last = tracks.iter().filter(|track| track.has_media).map(own).reduce(later);
    let of = |track: &Track| if track.has_media { own(track) } else { last.unwrap_or(own(track)) };
    tracks.iter().map(of).collect()
}

impl Track {
    /// Since when it is silent, if it may be over at `now`: the server has said so, or it fell
    /// silent so near the end of the recording that only more media refutes it; with all the others
    /// also long after the end, which a slow server reaches late.
    fn over_since(
        &self,
        expected: Option<Expected>,
        now: Instant,
        are_all_silent: bool,
    ) -> Option<Instant> {
        let is_near = |until: Instant| {
            let late = self.silent_since.saturating_duration_since(until);
            now + END_UNSURE >= until && (are_all_silent || late <= END_UNSURE)
        };
        let may_be_over = expected?.until.is_some_and(is_near) || self.has_ended;
        (may_be_over && now >= self.silent_since + SILENCE_MIN).then_some(self.silent_since)
    }

    /// It was not over: the intervals that were put off end where they would have.
    pub(super) fn goes_on(&mut self, expected: Option<Expected>, observed: &mut Vec<Observation>) {
        let Some((first, last)) = self.put_off.take() else { return };
        let mut second = last.checked_sub(PUT_OFF_MAX).map_or(first, |at| at.max(first));
        while second <= last {
            observed.push(self.interval(expected, second, TrackMeter::take_interval));
            second += Duration::from_secs(1);
        }
    }
}
