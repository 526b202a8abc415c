//! What plays the crowd of a run: the engine of this process, or a fleet of workers.

use std::time::Instant;

use throng_engine::{LiveSnapshot, NewParticipant, RunEnd, RunHandle};
use throng_observation::fleet::{EndClock, FleetNow};
use throng_observation::run::ParticipantId;
use throng_observation::{RunTime, Unloaded};

/// A crowd in progress, wherever it is played.
pub(crate) trait Generator {
    /// RunTime 0 on the monotonic clock.
    fn started_at(&self) -> Instant;
    /// RunTime 0 on the wall clock, microseconds since the Unix epoch.
    fn started_at_unix_us(&self) -> i64;
    /// The current time of the run.
    fn now(&self) -> RunTime;
    /// When all participants are asked to leave, if nothing ends the run before.
    fn ends_at(&self) -> RunTime;
    /// The latest snapshot of the run.
    fn live(&self) -> LiveSnapshot;
    /// Adds a participant; its number.
    fn add_participant(&self, participant: NewParticipant) -> ParticipantId;
    /// Asks a participant to leave.
    fn remove_participant(&self, participant: ParticipantId);
    /// From now on users are judged beyond what they see without load.
    fn judge_beyond(&self, unloaded: Unloaded);
    /// Whether everybody who plays the crowd has said that all its changes so far are made.
    fn has_made_changes(&self) -> bool;
    /// Ends the run early in an orderly way.
    fn stop(&self);
    /// Whether the run was ended early.
    fn is_stopped(&self) -> bool;
    /// How it goes for the workers, if workers play.
    fn fleet(&self) -> Option<FleetNow>;
    /// Whether all participants have ended and all rows are sent.
    fn is_finished(&self) -> bool;
    /// Waits for the end; with what was known then of the clock of each worker, if workers play.
    fn wait(self: Box<Self>) -> (RunEnd, Vec<Option<EndClock>>);
}

impl Generator for RunHandle {
    fn started_at(&self) -> Instant {
        Self::started_at(self)
    }

    fn started_at_unix_us(&self) -> i64 {
        Self::started_at_unix_us(self)
    }

    fn now(&self) -> RunTime {
        Self::now(self)
    }

    fn ends_at(&self) -> RunTime {
        Self::ends_at(self)
    }

    fn live(&self) -> LiveSnapshot {
        Self::live(self)
    }

    fn add_participant(&self, participant: NewParticipant) -> ParticipantId {
        Self::add_participant(self, participant)
    }

    fn remove_participant(&self, participant: ParticipantId) {
        Self::remove_participant(self, participant);
    }

    fn judge_beyond(&self, unloaded: Unloaded) {
        Self::judge_beyond(self, unloaded);
    }

    fn has_made_changes(&self) -> bool {
        true // Each was made by the call that asked for it.
    }

    fn stop(&self) {
        Self::stop(self);
    }

    fn is_stopped(&self) -> bool {
        Self::is_stopped(self)
    }

    fn fleet(&self) -> Option<FleetNow> {
        None
    }

    fn is_finished(&self) -> bool {
        Self::is_finished(self)
    }

    fn wait(self: Box<Self>) -> (RunEnd, Vec<Option<EndClock>>) {
        (Self::wait(*self), Vec::new())
    }
}
