//! Visitors of a watch page of PeerTube: the page's requests in their order, its socket, its
//! heartbeats, and inside of it the player with its peers, and the chat of the livechat plugin.
//!
//! ```text
//! visitor                                      PeerTube
//!   GET /w/ID                          ─────▶  page: version
//!   GET /api/v1/videos/ID, live, captions …    video: playlist, trackers, state
//!   socket.io: polling, then WebSocket ◀────▶  views-change, state-change: all ask again
//!   player (HLS, hashes, tracker)      ◀────▶  segments, /tracker/socket
//!   POST views each 5 s, metrics each 15 s
//!   chat                               ◀────▶  XMPP through the plugin's WebSocket
//! ```
//! Versions differ in what the page asks for; `versions` is the table. Sources: PeerTube
//! `client/src` 5.0 to 9.0, peertube-plugin-livechat 6 to 14.

mod calls;
mod heartbeat;
mod rhythm;
mod socket_io;
mod versions;
mod video;
mod visitor;

#[cfg(test)]
mod tests;

use url::Url;

use crate::chat;
use crate::player;

pub use visitor::Visitor;

/// Makes the chat participant of a room: its WebSocket, the domain of anonymous visitors, the room.
pub type MakeChat = Box<dyn Fn(ChatRoom) -> chat::Config + Send>;

/// A room of the livechat plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRoom {
    /// `ws:` or `wss:`.
    pub url: Url,
    /// Where visitors without an account log in.
    pub domain: String,
    /// `ROOM@SERVICE`.
    pub room: String,
}

/// A visitor.
pub struct Config {
    /// The watch page.
    pub page: Url,
    /// The player; its URL and what the instance says of peers are filled in from the API.
    pub player: player::Config,
    /// Joins the chat; `None`: the visitor closes it.
    pub chat: Option<MakeChat>,
}
