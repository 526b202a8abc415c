//! What a member needs of the protocol of its chat: frames in, frames and events out.

use std::time::Instant;

use throng_observation::{ChatCounters, Failure, FailureReason};

use super::event_stream::StreamEvent;
use super::template::FilledPath;
use super::xmpp::Resumption;
use crate::participant::{ChannelError, Message, Why};

/// What comes from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A message of a WebSocket.
    Frame(Message),
    /// An event of an event stream.
    Event(StreamEvent),
    /// What was posted is over.
    Answer(PostId, Result<Answer, ChannelError>),
}

/// What is sent to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// A message of a WebSocket.
    Frame(Message),
    /// A request.
    Post(Post),
}

/// A request, numbered within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PostId(pub(super) u32);

/// A `POST` to the server of the event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Post {
    pub(super) id: PostId,
    /// `None`: that of the target's URL.
    pub(super) path: Option<FilledPath>,
    pub(super) body: String,
}

/// The response to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// When to come again, as [`crate::excerpt::retry_after`] says it.
    pub(super) retry_after: String,
    pub(super) body: String,
}

/// What came of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It is in the room.
    Joined,
    /// A message of the room, with who said it; `is_old`: from its archive.
    Said {
        /// Who said it.
        nick: String,
        /// What.
        body: String,
        /// Of the archive.
        is_old: bool,
    },
    /// A frame that may have messages anywhere in it.
    Heard(String),
    /// The stream of the connection before goes on: the server sends what it has kept.
    Resumed,
    /// Its nickname has changed.
    Renamed,
    /// The server closes the stream, and refers to another one at this URI.
    Moved(String),
    /// Something that a browser would note in its log.
    Anomaly(String),
}

/// One connection of a member.
pub(super) trait Session: Send {
    /// The WebSocket, or the event stream, is open.
    fn opened(&mut self, now: Instant) -> Vec<Event>;

    /// Takes what came from the server; a failure ends the connection.
    fn receive(&mut self, now: Instant, incoming: Incoming) -> Result<Vec<Event>, Failure>;

    /// Says something to the room.
    fn say(&mut self, text: &str);

    /// Takes another nickname in the room.
    fn change_nick(&mut self, nick: &str);

    /// Leaves as a closed tab does.
    fn leave(&mut self);

    /// What is sent next.
    fn poll_send(&mut self) -> Option<Outgoing>;

    /// The next deadline.
    fn next_timeout(&self) -> Option<(Instant, Why)>;

    /// Does what is due; a failure ends the connection.
    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure>;

    fn is_joined(&self) -> bool;

    /// Others in the room, as far as the server says it.
    fn occupants(&self) -> usize;

    /// Its nickname in the room.
    fn nick(&self) -> &str;

    /// Takes what was received and sent since the last time; its other sums are 0.
    fn take_traffic(&mut self) -> ChatCounters;

    /// What another connection needs to go on with this one's stream.
    fn resumption(&mut self) -> Option<Resumption> {
        None
    }

    /// Whether the server does not want this participant, so that it does not connect again.
    fn is_final(&self, failure: &Failure) -> bool {
        is_final(failure)
    }
}

/// Whether another connection would fail in the same way.
pub(super) fn is_final(failure: &Failure) -> bool {
    matches!(
        failure.reason,
        FailureReason::Unauthorized
            | FailureReason::NoSuchRoom
            | FailureReason::RoomFull
            | FailureReason::RoomEnded
            | FailureReason::Kicked
            | FailureReason::NotAllowed
    )
}
