//! The tables of a conference in the file: script, conversation, room.

use schemars::JsonSchema;
use serde::Serialize;

use super::written::duration;
use super::{BitRate, Duration, OneOrMany};
use crate::churn::Reconnect;
use crate::conversation::Conversation;
use crate::room::RoomConfig;
use crate::script::{Action, ScriptStep};
use crate::units::write_bit_rate;

/// A timed action of a cohort: exactly one of `mute` and `screen_share`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ScriptStepFile {
    /// When it begins, from the start of the run.
    at: Option<Duration>,
    /// Its duration; default: until the participants leave.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    /// Stops `audio` or `video`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(audio|video)$"))]
    mute: Option<String>,
    /// Replaces the video by this size of the test card, as a shared screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(144p|180p|240p|360p|720p|1080p)$"))]
    screen_share: Option<String>,
}

/// The whole cohort leaves and joins again.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ReconnectFile {
    /// When they leave, from the start of the run.
    at: Duration,
    /// The time over which they join again; default: at once.
    within: Option<Duration>,
}

/// The talkspurts in a conference.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ConversationFile {
    /// Mean length of a talkspurt; default 6 s.
    talkspurt: Option<Duration>,
    /// Mean pause between two talkspurts; default 600 ms.
    pause: Option<Duration>,
    /// Share of talkspurts that the next one overlaps; default 0.1.
    #[schemars(range(max = 1))]
    overlap: Option<f64>,
    /// The same seed gives the same conversation; default 1.
    seed: Option<u64>,
}

/// The room of a conference, which the first participant creates and the last one destroys.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RoomFile {
    /// The key that the server requires to create rooms: `env:NAME`, `file:PATH`, or the key
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_key: Option<String>,
    /// Most publishers; default: twice the crowd of a room.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    publishers: Option<u32>,
    /// The bit rate that the server allows each publisher; default: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    bitrate: Option<BitRate>,
    /// The video codecs of the room; default: those of the crowd.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    video_codecs: Vec<String>,
}

pub(super) fn script_step(step: &ScriptStep) -> ScriptStepFile {
    let file = ScriptStepFile {
        at: Some(duration(step.at)),
        duration: step.lasts.map(duration),
        ..ScriptStepFile::default()
    };
    match &step.action {
        Action::Mute(kind) => ScriptStepFile { mute: Some(kind.key().into()), ..file },
        Action::ScreenShare(size) => ScriptStepFile { screen_share: Some(size.clone()), ..file },
    }
}

pub(super) fn conversation(conversation: &Conversation) -> ConversationFile {
    ConversationFile {
        talkspurt: Some(duration(conversation.talkspurt)),
        pause: Some(duration(conversation.pause)),
        overlap: Some(conversation.overlap),
        seed: Some(conversation.seed),
    }
}

pub(super) fn room(room: &RoomConfig) -> RoomFile {
    RoomFile {
        // The key itself is left out, like every secret.
        admin_key: room.admin_key.as_ref().filter(|key| !key.is_secret()).map(ToString::to_string),
        publishers: room.publishers,
        bitrate: room.bits_per_s.map(|bits| BitRate(write_bit_rate(bits))),
        video_codecs: room.video_codecs.clone(),
    }
}

pub(super) fn reconnect(reconnect: Reconnect) -> ReconnectFile {
    ReconnectFile { at: duration(reconnect.at), within: Some(duration(reconnect.within)) }
}
