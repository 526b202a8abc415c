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

use throng_observation::Url;

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

/// For the mutation tests: reads what an instance may say, in parts with zero bytes between them:
/// the page, the video, its live, the room of its chat, the handshake of socket.io, and then by
/// turns a poll and a message of the WebSocket. How many bytes of requests it makes of them.
#[doc(hidden)]
#[must_use]
pub fn read_any_bytes(bytes: &[u8]) -> usize {
    use socket_io::{SocketIo, SocketOutput};

    let Ok(page) = Url::parse("https://tube.example/w/1") else { return 0 };
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut next = || parts.next().unwrap_or_default();
    let text = next();
    let _ = (versions::of_page(text), rhythm::of_page(text));
    let mut length = 0;
    if let Ok(video) = serde_json::from_slice::<video::Video>(next()) {
        let playlist = video.playlist();
        let _ = playlist.map(|playlist| (playlist.playlist(&page), playlist.hashes(&page)));
        let _ = video.tracker(&page);
        length += video.recommended().len() + video.uuid.len();
    }
    let live = serde_json::from_slice::<video::Live>(next());
    let _ = live.map(|live| (live.segments_behind(), live.allows_peers()));
    let _ = serde_json::from_slice::<video::Room>(next());
    let mut socket = SocketIo::new(&page, 7);
    socket.start();
    let _ = socket.shaken(next());
    socket.opened();
    for (at, part) in parts.enumerate() {
        if at % 2 == 0 {
            let _ = socket.polled(part);
        } else {
            let _ = socket.message(&String::from_utf8_lossy(part));
        }
        length += socket
            .take_outputs()
            .into_iter()
            .map(|output| match output {
                SocketOutput::Handshake(url)
                | SocketOutput::Poll(url)
                | SocketOutput::Open(url) => url.to_string().len(),
                SocketOutput::Post(url, body) => url.to_string().len() + body.len(),
                SocketOutput::Send(text) => text.len(),
                SocketOutput::Close => 0,
            })
            .sum::<usize>();
    }
    length
}
