//! How a participant reacts to requests that Janus refused: which refusals it ignores, and which
//! end the session.

use std::time::Instant;

use throng_observation::{Failure, FailureReason};

use super::{JanusRequest, State, VideoRoom};
use crate::signalling::janus::session::SERVER;
use crate::signalling::server_message::excerpt;

/// `JANUS_VIDEOROOM_ERROR_ROOM_EXISTS`.
const ROOM_EXISTS: i64 = 427;
/// `JANUS_VIDEOROOM_ERROR_NO_SUCH_ROOM`.
const NO_SUCH_ROOM: i64 = 426;
/// `JANUS_VIDEOROOM_ERROR_MISSING_ELEMENT`: no PIN, for a room that requires one.
const MISSING_ELEMENT: i64 = 429;
/// `JANUS_VIDEOROOM_ERROR_PUBLISHERS_FULL`.
const ROOM_FULL: i64 = 432;
/// `JANUS_VIDEOROOM_ERROR_UNAUTHORIZED`: a wrong PIN, or a wrong key for creating rooms.
const UNAUTHORIZED: i64 = 433;
/// `JANUS_VIDEOROOM_ERROR_NO_SUCH_FEED`: the publisher has left.
const NO_SUCH_FEED: i64 = 428;

impl VideoRoom {
    pub(super) fn plugin_refused(
        &mut self,
        now: Instant,
        answers: Option<JanusRequest>,
        code: i64,
        reason: &str,
    ) -> Result<(), Failure> {
        let detail = format!("{SERVER} VideoRoom refused: error {code}, {}", excerpt(reason));
        match (answers, self.publisher) {
            (Some(JanusRequest::CreateRoom), Some(handle)) if code == ROOM_EXISTS => {
                self.join(now, handle);
                Ok(())
            }
            (Some(JanusRequest::Subscriber(peer)), _) if code == NO_SUCH_FEED => {
                self.anomaly(detail);
                self.subscribers.refused(peer);
                self.update_subscriptions(now);
                Ok(())
            }
            // The publisher may have left; missing video shows in the RTP statistics. Muted media
            // is not sent, whether the room has the mute state or not.
            (Some(JanusRequest::Layer | JanusRequest::Mute), _) => {
                self.anomaly(detail);
                Ok(())
            }
            (Some(JanusRequest::Farewell), _) => Ok(()),
            // The participants cannot be listed, or the room no longer exists: another participant
            // or the server ends it.
            (Some(JanusRequest::Leave | JanusRequest::WhoIsLeft | JanusRequest::EndRoom), _) => {
                self.end_session(now);
                Ok(())
            }
            _ => Err(Failure::new(reason_of(code, reason), detail)),
        }
    }

    pub(super) fn refused(
        &mut self,
        ask: Option<JanusRequest>,
        code: i64,
        reason: &str,
    ) -> Result<(), Failure> {
        let detail = format!("{SERVER} refused: error {code}, {reason}");
        // Ignores errors for requests that were in flight when the session ended.
        if matches!(self.state, State::Leaving(_)) && ask != Some(JanusRequest::Destroy) {
            return Ok(());
        }
        match ask {
            Some(
                JanusRequest::DetachSubscriber(_)
                | JanusRequest::Layer
                | JanusRequest::Mute
                | JanusRequest::Farewell,
            ) => {
                self.anomaly(detail);
                Ok(())
            }
            Some(JanusRequest::Destroy) => {
                self.goodbye();
                Ok(())
            }
            _ => Err(Failure::new(FailureReason::Refused, detail)),
        }
    }
}

/// The failure reason for a refusal by the plugin.
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
