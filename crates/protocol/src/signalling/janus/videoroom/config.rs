//! The configuration of a VideoRoom participant.

use serde_json::{Map, Value, json};
use throng_observation::Url;
use throng_scenario::JanusId;

use crate::signalling::RunMark;
use crate::signalling::janus::SessionConfig;
use crate::signalling::room::Subscriptions;

/// A room's id in Janus's JSON: a number or, with `string_ids`, a string.
pub(super) fn room_json(room: &JanusId) -> Value {
    match room {
        JanusId::Number(number) => json!(number),
        JanusId::Text(text) => json!(text),
    }
}

/// How a participant receives the other participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubscriberMode {
    /// One subscriber handle and one peer connection, with one media section per stream.
    #[default]
    Multistream,
    /// One subscriber handle and one peer connection per publisher, as in clients that predate
    /// multistream; the requests are those of Janus 1.x.
    HandlePerFeed,
}

/// A room that the first participant creates and the last one destroys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoom {
    /// `secret`: required to destroy the room. It distinguishes the rooms of the run from all
    /// others.
    pub secret: String,
    /// `admin_key`, where the server requires one.
    pub admin_key: Option<String>,
    /// The largest number of publishers.
    pub publishers: u32,
    /// `bitrate`: the limit that Janus sends each publisher by REMB, bits per second; 0 for none.
    pub bitrate_bps: u32,
    /// `videocodec`, such as `vp8` or `h264,vp8`.
    pub video_codecs: String,
}

impl NewRoom {
    /// The request that destroys the room.
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

/// The room of a participant, and what it does there.
#[derive(Clone, Debug)]
pub struct Config {
    /// `ws:` or `wss:` URL of the server.
    pub url: Url,
    /// The room.
    pub room: JanusId,
    /// Its PIN, if it has one.
    pub pin: Option<String>,
    /// The name of this participant that the others see.
    pub display: String,
    /// The suffix of the run's names.
    pub mark: RunMark,
    /// Whether it publishes.
    pub publishes: bool,
    /// How it subscribes; `None` to receive no stream.
    pub subscribes: Option<SubscriberMode>,
    /// Its subscriptions at the beginning.
    pub subscriptions: Subscriptions,
    /// Create the room first; if it exists already, join it.
    pub new_room: Option<NewRoom>,
    /// Credentials and timeouts.
    pub session: SessionConfig,
}
