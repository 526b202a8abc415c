//! What a participant makes of a request that Janus refused: what can be gone without, and what ends it.

use std::time::Instant;

use throng_observation::{Failure, FailureReason};

use super::{Ask, State, VideoRoom};
use crate::signalling::janus::session::SERVER;
use crate::signalling::said::excerpt;

/// `JANUS_VIDEOROOM_ERROR_ROOM_EXISTS`.
const ROOM_EXISTS: i64 = 427;
/// `JANUS_VIDEOROOM_ERROR_NO_SUCH_ROOM`.
const NO_SUCH_ROOM: i64 = 426;
/// `JANUS_VIDEOROOM_ERROR_MISSING_ELEMENT`: no PIN, for a room that wants one.
const MISSING_ELEMENT: i64 = 429;
/// `JANUS_VIDEOROOM_ERROR_PUBLISHERS_FULL`.
const ROOM_FULL: i64 = 432;
/// `JANUS_VIDEOROOM_ERROR_UNAUTHORIZED`: a wrong PIN, or a wrong key to make rooms.
const UNAUTHORIZED: i64 = 433;
/// `JANUS_VIDEOROOM_ERROR_NO_SUCH_FEED`: the publisher left already.
const NO_SUCH_FEED: i64 = 428;

impl VideoRoom {
    pub(super) fn plugin_refused(
        &mut self,
        now: Instant,
        answers: Option<Ask>,
        code: i64,
        reason: &str,
    ) -> Result<(), Failure> {
        let detail = format!("{SERVER} VideoRoom refused: error {code}, {}", excerpt(reason));
        match (answers, self.publisher) {
            (Some(Ask::CreateRoom), Some(handle)) if code == ROOM_EXISTS => {
                self.join(now, handle);
                Ok(())
            }
            (Some(Ask::Subscriber(peer)), _) if code == NO_SUCH_FEED => {
                self.anomaly(detail);
                self.subscribers.refused(peer);
                self.update_subscriptions(now);
                Ok(())
            }
            // A publisher that left has no layers; a missing picture shows in the meters. Muted media is not sent, whether
            // the room knows it or not.
            (Some(Ask::Layer | Ask::Mute), _) => {
                self.anomaly(detail);
                Ok(())
            }
            (Some(Ask::Farewell), _) => Ok(()),
            // The participants cannot be listed, or the room is gone: another participant ends it, or the server.
            (Some(Ask::Leave | Ask::WhoIsLeft | Ask::EndRoom), _) => {
                self.end_session(now);
                Ok(())
            }
            _ => Err(Failure::new(reason_of(code, reason), detail)),
        }
    }

    pub(super) fn refused(&mut self, ask: Option<Ask>, code: i64, reason: &str) -> Result<(), Failure> {
        let detail = format!("{SERVER} refused: error {code}, {reason}");
        // What was on its way when the session ended finds none.
        if matches!(self.state, State::Leaving(_)) && ask != Some(Ask::Destroy) {
            return Ok(());
        }
        match ask {
            Some(Ask::DetachSubscriber(_) | Ask::Layer | Ask::Mute | Ask::Farewell) => {
                self.anomaly(detail);
                Ok(())
            }
            Some(Ask::Destroy) => {
                self.goodbye();
                Ok(())
            }
            _ => Err(Failure::new(FailureReason::Refused, detail)),
        }
    }
}

/// What a refusal of the plugin means for a participant.
fn reason_of(code: i64, reason: &str) -> FailureReason {
    match code {
        MISSING_ELEMENT if reason.contains("(pin)") || reason.contains("(admin_key)") => {
            FailureReason::Unauthorized
        }
        NO_SUCH_ROOM => FailureReason::NoSuchRoom,
        ROOM_FULL => FailureReason::RoomFull,
        UNAUTHORIZED => FailureReason::Unauthorized,
        _ => FailureReason::Refused,
    }
}
