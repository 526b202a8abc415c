//! Why LiveKit refuses or disconnects a participant: its reasons as failures.

use throng_observation::{Failure, FailureReason};

use super::SERVER;
use super::wire::{DisconnectReason, Leave};
use crate::participant::ChannelError;

/// The participant's own `leave` message.
pub(super) fn ours() -> Leave {
    let mut leave = Leave::default();
    leave.set_reason(DisconnectReason::ClientInitiated);
    leave
}

/// The failure for a `leave` message of the server.
pub(super) fn failure(leave: &Leave) -> Failure {
    use DisconnectReason as Left;
    let (reason, words) = match leave.reason() {
        Left::DuplicateIdentity => {
            (FailureReason::Refused, "a participant with the same identity joined")
        }
        Left::ServerShutdown => (FailureReason::SignallingClosed, "the server shuts down"),
        Left::ParticipantRemoved => {
            (FailureReason::Kicked, "this participant was removed from the room")
        }
        Left::RoomDeleted => (FailureReason::RoomEnded, "the room was deleted"),
        Left::RoomClosed => (FailureReason::RoomEnded, "the room was closed"),
        Left::StateMismatch => {
            (FailureReason::SignallingClosed, "the server lost this participant's state")
        }
        Left::JoinFailure => (FailureReason::Refused, "the join failed on the server"),
        Left::Migration => {
            (FailureReason::SignallingClosed, "the server moves the session to another node")
        }
        Left::SignalClose => (FailureReason::SignallingClosed, "the server closed signalling"),
        Left::ConnectionTimeout => {
            (FailureReason::MediaLost, "the server saw no connection in time")
        }
        Left::MediaFailure => {
            (FailureReason::MediaLost, "the media connection failed on the server")
        }
        Left::UserUnavailable | Left::UserRejected => {
            (FailureReason::Refused, "the user is not there")
        }
        Left::SipTrunkFailure | Left::AgentError => {
            (FailureReason::Refused, "a part of the server failed")
        }
        Left::Unknown | Left::ClientInitiated => {
            (FailureReason::SignallingClosed, "without a reason")
        }
    };
    let wish = match leave.action {
        1 => "; it asks to resume",
        2 => "; it asks to join again",
        _ => "",
    };
    Failure::new(reason, format!("{SERVER} ended the session: {words}{wish}"))
}

/// The failure of a WebSocket that did not open. LiveKit answers 429 where a node or a room takes
/// no more: its errors of the kind `ResourceExhausted`, whatever address asks.
pub(super) fn not_opened(error: ChannelError) -> Failure {
    let words = match &error {
        ChannelError::Status(401, _) => {
            "it refused the token: check the key, its secret, and both clocks"
        }
        ChannelError::Status(403, _) => "the token does not permit this room",
        ChannelError::Status(404, _) => "there is no such room, or no LiveKit at this address",
        ChannelError::Status(429, _) => "it accepts no more participants for the moment",
        ChannelError::Status(503, _) => "it accepts no more participants",
        _ => return error.into(),
    };
    let is_full = matches!(error, ChannelError::Status(429, _));
    let Failure { reason, detail } = error.into();
    let reason = if is_full { FailureReason::RoomFull } else { reason };
    Failure::new(reason, format!("{SERVER}: {words} ({detail})"))
}

/// `RequestResponse.Reason` as text.
pub(super) fn refusal(reason: i32) -> &'static str {
    match reason {
        1 => "not found",
        2 => "not allowed",
        3 => "more than allowed",
        5 => "of an unsupported type",
        11 => "not understood",
        _ => "not done",
    }
}
