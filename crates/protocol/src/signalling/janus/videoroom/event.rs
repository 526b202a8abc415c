//! The messages of the VideoRoom plugin: `plugindata.data`.

use serde::Deserialize;
use serde_json::Value;
use throng_observation::MediaKind;

/// More publishers, or streams, than any room has; the rest of a list is dropped.
pub(super) const LIST_MAX: usize = 4_096;

/// An event of the plugin; its kind follows from the fields that are present.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(super) struct PluginEvent {
    pub(super) videoroom: String,
    pub(super) error_code: Option<i64>,
    pub(super) error: Option<String>,
    /// This participant's id, in `joined`.
    pub(super) id: Option<Value>,
    pub(super) private_id: Option<u64>,
    pub(super) publishers: Vec<Publisher>,
    /// The publisher that stopped: an id, or `ok` for this participant.
    pub(super) unpublished: Option<Value>,
    /// The participant that left: an id, or `ok` for this participant.
    pub(super) leaving: Option<Value>,
    /// The participant that was removed.
    pub(super) kicked: Option<Value>,
    pub(super) reason: Option<String>,
    pub(super) configured: Option<String>,
    pub(super) started: Option<String>,
    /// The section of a subscription whose forwarded layer changed, and its new layer: 0 is the
    /// smallest.
    pub(super) mid: Option<String>,
    pub(super) substream: Option<u64>,
    /// All participants of the room, in the answer to `listparticipants`.
    pub(super) participants: Option<Vec<Value>>,
    /// The streams of a subscription, in `attached` and `updated`.
    pub(super) streams: Vec<Stream>,
}

/// A publisher of the room.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(super) struct Publisher {
    pub(super) id: Value,
    pub(super) display: Option<String>,
    pub(super) streams: Vec<PublishedStream>,
}

/// One stream of a publisher.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(super) struct PublishedStream {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) mid: Option<String>,
    pub(super) disabled: bool,
    pub(super) simulcast: bool,
}

/// One stream of a subscription.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(super) struct Stream {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) mid: Option<String>,
    pub(super) feed_id: Value,
    pub(super) feed_mid: Option<String>,
    pub(super) feed_display: Option<String>,
    pub(super) active: bool,
}

/// Audio or video; `None` for data channels and unknown kinds.
pub(super) fn kind(text: &str) -> Option<MediaKind> {
    match text {
        "audio" => Some(MediaKind::Audio),
        "video" => Some(MediaKind::Video),
        _ => None,
    }
}

/// An id as a map key: Janus uses numbers, or strings with `string_ids`.
pub(super) fn key(id: &Value) -> Option<String> {
    match id {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if !text.is_empty() && text.len() <= 256 => Some(text.clone()),
        _ => None,
    }
}
