//! What a server does otherwise than described.

use throng_media::codec::CodecError;
use throng_observation::{Detail, Observation, TIME_JUMP_PLACE};

use super::Receiver;
use super::track::Track;
use crate::reports::TIME_JUMP;

/// Anomalies, each reported once, so that a hostile server cannot fill the run with them.
#[derive(Clone, Copy)]
pub(super) enum Anomaly {
    BadRtp = 1,
    BadRtcp = 2,
    UnknownPayload = 4,
    BadPayload = 8,
    SenderClock = 16,
    ManySources = 32,
    InnerMarkers = 64,
    TimeJump = 128,
}

impl Receiver {
    /// Reports what is odd about track `at` and the payload of its last packet.
    pub(super) fn report_anomalies(&mut self, at: usize, malformed: Option<CodecError>) {
        let Some(Track { meter, .. }) = self.tracks.get(at) else { return };
        let (has_inner_markers, time_jumps) = (meter.has_inner_markers(), meter.time_jumps());
        if has_inner_markers {
            let detail = "the RTP marker is set inside pictures; frames are counted by timestamps";
            self.anomaly(Anomaly::InnerMarkers, "rtp", detail);
        }
        if let Some(error) = malformed {
            self.anomaly(Anomaly::BadPayload, "payload", error);
        }
        if time_jumps > 0 {
            self.anomaly(Anomaly::TimeJump, TIME_JUMP_PLACE, TIME_JUMP);
        }
    }

    pub(super) fn anomaly(
        &mut self,
        anomaly: Anomaly,
        place: &'static str,
        detail: impl std::fmt::Display,
    ) {
        if self.anomalies & anomaly as u8 == 0 {
            self.anomalies |= anomaly as u8;
            let detail = Detail::from(detail.to_string());
            if !matches!(anomaly, Anomaly::SenderClock | Anomaly::InnerMarkers | Anomaly::TimeJump)
            {
                self.last_anomaly = Some(detail.to_string());
            }
            self.observed.push(Observation::ProtocolAnomaly { place, detail });
        }
    }
}
