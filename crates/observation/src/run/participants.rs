//! Rows of a participant: its phases and how it ended, its tracks, its changes of layers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CohortId, ParticipantId};
use crate::{
    Codec, Distribution, FailureReason, Layer, MediaKind, OneWayDelay, Outcome, Phase, RunTime,
    TrackCounters, TrackId,
};

/// A request for another simulcast layer, and when the layer was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSwitchRow {
    /// The receiver.
    pub participant: ParticipantId,
    /// The track within the receiver.
    pub track: TrackId,
    /// The requested layer.
    pub layer: Layer,
    /// When the request was sent.
    pub requested_at: RunTime,
    /// When the first decodable frame of that layer was complete; `None` when none arrived.
    pub shown_at: Option<RunTime>,
    /// Width of that frame, pixels; 0 without one.
    pub width: u16,
    /// Height of that frame, pixels; 0 without one.
    pub height: u16,
}

/// A participant: its phases and how it ended. Times are absent for phases not reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParticipantRow {
    /// The participant.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// The planned moment of the join; latencies count from here.
    pub intended_at: RunTime,
    /// When each phase was reached, by [`Phase`].
    pub reached: BTreeMap<Phase, RunTime>,
    /// When it ended; `None` while it is active.
    pub ended_at: Option<RunTime>,
    /// How it ended; `None` while it is active.
    pub outcome: Option<Outcome>,
    /// The local address of its media, if any.
    pub local_address: Option<String>,
}

impl ParticipantRow {
    /// Milliseconds from the intended join to `phase`.
    #[must_use]
    pub fn ms_to(&self, phase: Phase) -> Option<f64> {
        self.reached.get(&phase).map(|at| at.millis_since(self.intended_at))
    }

    /// Whether its transport was up at any time.
    #[must_use]
    pub fn was_connected(&self) -> bool {
        Phase::CONNECTED.iter().any(|phase| self.reached.contains_key(phase))
    }

    /// Whether media, or in a chat messages, arrived at any time.
    #[must_use]
    pub fn was_playing(&self) -> bool {
        Phase::PLAYING.iter().any(|phase| self.reached.contains_key(phase))
    }

    /// Why it failed, if it did. A participant that was joining when the run ended, or whose
    /// machine was lost, did not fail: see [`Self::was_censored`].
    #[must_use]
    pub fn failure(&self) -> Option<&FailureReason> {
        match &self.outcome {
            Some(Outcome::Failed(failure)) if !failure.reason.is_censored() => {
                Some(&failure.reason)
            }
            _ => None,
        }
    }

    /// Whether the run, or its planned stay, ended before it had joined, or its machine was lost:
    /// it did not fail, and what became of it is unknown.
    #[must_use]
    pub fn was_censored(&self) -> bool {
        matches!(&self.outcome, Some(Outcome::Failed(failure)) if failure.reason.is_censored())
    }
}

/// A received track over the life of its participant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrackRow {
    /// The receiver.
    pub participant: ParticipantId,
    /// The track within the receiver.
    pub track: TrackId,
    /// Audio or video.
    pub kind: MediaKind,
    /// Its codec.
    pub codec: Codec,
    /// Its last sender, by its name in the conference.
    pub from: Option<String>,
    /// When its first complete and decodable frame arrived.
    pub first_frame_at: Option<RunTime>,
    /// Sums over its life.
    pub counters: TrackCounters,
    /// Relative delay of its frames, microseconds.
    pub relative_delay_us: Distribution,
    /// Absolute one-way delay of its frames, microseconds, with its basis.
    pub absolute_delay: OneWayDelay,
    /// Decodable frames per second over the time it was active.
    pub fps: Option<f64>,
    /// Last jitter, microseconds.
    pub jitter_us: Option<u32>,
    /// Last OvenRtcTester "delay", microseconds.
    pub oven_rtc_tester_delay_us: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine was late, which is a part of what a user would have waited.
    #[test]
    fn latencies_count_from_the_intended_join() {
        let at = |s: i64| RunTime(s * 1_000_000);
        let row = ParticipantRow {
            participant: ParticipantId(0),
            cohort: CohortId(0),
            intended_at: at(1),
            reached: BTreeMap::from([(Phase::Started, at(3)), (Phase::FirstFrame, at(4))]),
            ended_at: None,
            outcome: None,
            local_address: None,
        };
        assert_eq!(row.ms_to(Phase::Started), Some(2_000.0));
        assert_eq!(row.ms_to(Phase::FirstFrame), Some(3_000.0));
        assert_eq!(row.ms_to(Phase::Joined), None);
    }
}
