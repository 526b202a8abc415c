//! Protocol anomalies in the peer's packets. Each kind is reported once per connection, so that a
//! hostile server cannot fill the run with them.

use std::fmt::Display;

use throng_observation::{
    Detail, INNER_MARKERS_PLACE, Observation, SENDER_CLOCK_PLACE, TIME_JUMP_PLACE,
};

use super::Receiver;
use crate::reports::TIME_JUMP;

#[derive(Clone, Copy)]
pub(super) enum AnomalyKind {
    Undecryptable = 1,
    BadRtp = 2,
    BadRtcp = 4,
    UnknownPayload = 8,
    Unannounced = 16,
    TooManySources = 32,
    BadPayload = 64,
    SenderClock = 128,
    InnerMarkers = 256,
    TimeJump = 512,
}

/// The kinds that were reported, and the last detail.
#[derive(Default)]
pub(super) struct AnomalyLog {
    reported: u16,
    last: Option<String>,
}

impl AnomalyLog {
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }
}

impl Receiver {
    pub(super) fn anomaly(
        &mut self,
        anomaly: AnomalyKind,
        place: &'static str,
        detail: impl Display,
    ) {
        if self.anomalies.reported & anomaly as u16 == 0 {
            self.anomalies.reported |= anomaly as u16;
            let detail = Detail::from(detail.to_string());
            // What is said of media that came explains no media that are missing.
            let is_of_missing = !matches!(
                anomaly,
                AnomalyKind::InnerMarkers | AnomalyKind::TimeJump | AnomalyKind::SenderClock
            );
            if is_of_missing {
                self.anomalies.last = Some(detail.to_string());
            }
            self.observed.push(Observation::ProtocolAnomaly { place, detail });
        }
    }

    /// What a packet shows of its stream, and why its payload could not be read.
    pub(super) fn packet_anomalies(
        &mut self,
        has_inner_markers: bool,
        malformed: Option<impl Display>,
        has_jumped: bool,
    ) {
        if has_inner_markers {
            let detail = "the RTP marker is set inside pictures; frames are counted by timestamps, \
                          and a browser ends a picture at each marker, and may show none";
            self.anomaly(AnomalyKind::InnerMarkers, INNER_MARKERS_PLACE, detail);
        }
        if let Some(error) = malformed {
            self.anomaly(AnomalyKind::BadPayload, "payload", error);
        }
        if has_jumped {
            self.anomaly(AnomalyKind::TimeJump, TIME_JUMP_PLACE, TIME_JUMP);
        }
    }

    /// The sender's reports do not carry wall time.
    pub(super) fn sender_clock_anomaly(&mut self) {
        let detail = "sender reports have no wall clock: their NTP time is more than a day from \
                      this host's, or runs at another rate; one-way delay is not computed from \
                      them";
        self.anomaly(AnomalyKind::SenderClock, SENDER_CLOCK_PLACE, detail);
    }
}
