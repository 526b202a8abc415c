//! The times from intended joins to the phases that the live view shows.

use throng_observation::{Distribution, Phase};

use crate::live::LiveSnapshot;

/// Microseconds from the intended join of each participant.
#[derive(Debug, Default)]
pub(super) struct JoinTimes {
    connect_us: Distribution,
    first_frame_us: Distribution,
    /// To the begin of playback.
    startup_us: Distribution,
    joined_us: Distribution,
}

impl JoinTimes {
    /// The times to `phase`; `None` of one that the live view does not show.
    pub(super) fn to(&mut self, phase: Phase) -> Option<&mut Distribution> {
        match phase {
            Phase::DtlsConnected | Phase::Playing => Some(&mut self.connect_us),
            Phase::FirstFrame => Some(&mut self.first_frame_us),
            Phase::PlaybackStarted => Some(&mut self.startup_us),
            Phase::Joined => Some(&mut self.joined_us),
            Phase::Started
            | Phase::Resolved
            | Phase::Connected
            | Phase::Secured
            | Phase::PageLoaded
            | Phase::Described
            | Phase::Negotiated
            | Phase::IceConnected
            | Phase::FirstPacket => None,
        }
    }

    /// Shows them, in milliseconds.
    pub(super) fn show(&self, snapshot: &mut LiveSnapshot) {
        snapshot.connect_ms = self.connect_us.quantiles(1000.0);
        snapshot.first_frame_ms = self.first_frame_us.quantiles(1000.0);
        snapshot.startup_ms = self.startup_us.quantiles(1000.0);
        snapshot.joined_ms = self.joined_us.quantiles(1000.0);
    }
}
