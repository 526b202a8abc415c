//! Participants of a chat: they join a room, read all that is said in it, and say something now and then.
//!
//! ```text
//! participant ── opens the WebSocket again when it breaks, measures
//!   ├─ xmpp/      the protocol: frames in, frames and events out
//!   ├─ speech     when it says something
//!   └─ delivery   what of the room's messages (room_log) came, and when
//! ```

use std::time::Duration;

use throng_scenario::ChatConfig;
use url::Url;

mod delivery;
mod participant;
mod room_log;
mod speech;
pub mod xmpp;

#[cfg(test)]
mod tests;

pub use participant::Member;
pub use room_log::{RoomLog, RoomLogs};

/// A participant of a chat.
#[derive(Clone, Debug)]
pub struct Config {
    /// The WebSocket.
    pub url: Url,
    /// Its stream.
    pub xmpp: xmpp::XmppConfig,
    /// What it says.
    pub chat: ChatConfig,
    /// Distinguishes the messages of this run from those of others in the same room.
    pub mark: String,
    /// What this run says in the room.
    pub log: RoomLog,
    /// The nickname that it takes after a while.
    pub rename: Option<Rename>,
}

/// A nickname that somebody has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The nickname.
    pub nick: String,
    /// How long after it is in the room for the first time.
    pub after: Duration,
}
