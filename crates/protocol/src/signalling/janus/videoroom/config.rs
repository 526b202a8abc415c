//! What a participant of a VideoRoom is told beforehand.

use serde_json::{Map, Value, json};
use throng_scenario::JanusId;
use url::Url;

use crate::signalling::RunMark;
use crate::signalling::janus::SessionConfig;
use crate::signalling::room::Subscriptions;

/// A room's id as Janus wants it: a number or, with `string_ids`, a text.
pub(super) fn room_json(room: &JanusId) -> Value {
    match room {
        JanusId::Number(number) => json!(number),
        JanusId::Text(text) => json!(text),
    }
}

/// How a participant receives the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubscriberMode {
    /// One subscriber handle, and one peer connection, with a media section a stream.
    #[default]
    Multistream,
    /// A subscriber handle and a peer connection for each other participant, as clients did that were
    /// written before there was the other way; in the words of Janus 1.x all the same.
    HandlePerFeed,
}

/// A room that the first participant creates and the last one destroys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoom {
    /// `secret`: its holder may destroy the room. It distinguishes the rooms of the run from all others.
    pub secret: String,
    /// `admin_key`, where the server asks for one.
    pub admin_key: Option<String>,
    /// How many may publish.
    pub publishers: u32,
    /// `bitrate`: the cap that Janus gives each publisher by REMB, bits per second; 0 for none.
    pub bitrate_bps: u32,
    /// `videocodec`, such as `vp8` or `h264,vp8`.
    pub video_codecs: String,
}

impl NewRoom {
    /// The request that ends the room.
    pub(super) fn end(&self, room: &JanusId) -> Value {
        json!({ "request": "destroy", "room": room_json(room), "secret": self.secret })
    }

    pub(super) fn request(&self, room: &JanusId, pin: Option<&str>) -> Value {
        let mut body = Map::new();
        let fields = [
            ("request", json!("create")),
            ("room", room_json(room)),
            ("publishers", json!(self.publishers)),
            ("bitrate", json!(self.bitrate_bps)),
            ("videocodec", json!(self.video_codecs)),
            ("audiocodec", json!("opus")),
            ("is_private", json!(true)),
            ("description", json!("throng")),
            ("secret", json!(self.secret)),
        ];
        body.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        if let Some(key) = &self.admin_key {
            body.insert("admin_key".into(), json!(key));
        }
        if let Some(pin) = pin {
            body.insert("pin".into(), json!(pin));
        }
        Value::Object(body)
    }
}

/// What a participant does in which room.
#[derive(Clone, Debug)]
pub struct Config {
    /// `ws:` or `wss:` URL of the server.
    pub url: Url,
    /// The room.
    pub room: JanusId,
    /// Its PIN, if it has one.
    pub pin: Option<String>,
    /// The name by which the others know this participant.
    pub display: String,
    /// The mark of the run's names.
    pub mark: RunMark,
    /// It publishes.
    pub publishes: bool,
    /// It subscribes, and how; `None` to receive nobody.
    pub subscribes: Option<SubscriberMode>,
    /// What it subscribes to at first.
    pub subscriptions: Subscriptions,
    /// Make the room first; one that exists already is as good.
    pub new_room: Option<NewRoom>,
    /// Credentials and timeouts.
    pub session: SessionConfig,
}
