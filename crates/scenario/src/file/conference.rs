//! What a conference has beside its crowd, as it is written: the script, who speaks when, the room.

use schemars::JsonSchema;
use serde::Serialize;

use super::written::duration;
use super::{BitRate, Duration, OneOrMany};
use crate::churn::Reconnect;
use crate::conversation::Conversation;
use crate::room::RoomConfig;
use crate::script::{Action, ScriptStep};
use crate::units::write_bit_rate;

/// Something that all of a cohort do: exactly one of `mute` and `screen_share`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ScriptStepFile {
    /// When it begins, since the start of the run.
    at: Option<Duration>,
    /// How long it lasts; until they leave when left out.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    /// They send no `audio`, or no `video`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(audio|video)$"))]
    mute: Option<String>,
    /// Their picture becomes the test card of this size, as who shares a screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(144p|180p|240p|360p|720p)$"))]
    screen_share: Option<String>,
}

/// Everybody leaves and joins anew.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ReconnectFile {
    /// When, since the start of the run.
    at: Duration,
    /// Within which time they come back; at once when left out.
    within: Option<Duration>,
}

/// Who speaks when in a conference.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ConversationFile {
    /// Mean length of a turn; 6 s when left out.
    talkspurt: Option<Duration>,
    /// Mean pause between two turns; 600 ms when left out.
    pause: Option<Duration>,
    /// Share of turns into whose end the next one falls; 0.1 when left out.
    #[schemars(range(max = 1))]
    overlap: Option<f64>,
    /// The same seed gives the same conversation; 1 when left out.
    seed: Option<u64>,
}

/// The conference's room, made by who joins first and destroyed by who leaves last.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RoomFile {
    /// The server's key for making rooms: `env:NAME`, `file:PATH`, or the key itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_key: Option<String>,
    /// How many may publish; as many as the crowd has when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    publishers: Option<u32>,
    /// The rate that the server allows each publisher; any when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    bitrate: Option<BitRate>,
    /// The picture codecs that it takes; what the crowd sends when left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "OneOrMany<String>")]
    video_codecs: Vec<String>,
}

pub(super) fn cue(cue: &ScriptStep) -> ScriptStepFile {
    let file = ScriptStepFile {
        at: Some(duration(cue.at)),
        duration: cue.lasts.map(duration),
        ..ScriptStepFile::default()
    };
    match &cue.action {
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
        // A key itself is left out, as every secret is.
        admin_key: room.admin_key.as_ref().filter(|key| !key.is_secret()).map(ToString::to_string),
        publishers: room.publishers,
        bitrate: room.bits_per_s.map(|bits| BitRate(write_bit_rate(bits))),
        video_codecs: room.video_codecs.clone(),
    }
}

pub(super) fn reconnect(reconnect: Reconnect) -> ReconnectFile {
    ReconnectFile { at: duration(reconnect.at), within: Some(duration(reconnect.within)) }
}
