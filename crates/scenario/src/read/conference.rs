//! Reads what a conference has beside its crowd: `[conversation]` and `[room]`, and judges them together with who takes part.

use std::time::Duration;

use throng_observation::Layer;

use super::Span;
use super::fields::{Fields, Reader};
use super::tree::Value;
use crate::conversation::Conversation;
use crate::role::SubscribePolicy;
use crate::room::RoomConfig;
use crate::scenario::Scenario;
use crate::target::Endpoint;
use crate::units::{self, write_duration};

/// Nobody speaks longer without a pause.
const TURN_MAX: Duration = Duration::from_secs(60 * 60);
/// The codecs that a room may be told to take.
const VIDEO_CODECS: [&str; 5] = ["vp8", "h264", "h265", "vp9", "av1"];

/// Reads `[conversation]`.
pub(super) fn conversation(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Conversation> {
    let is_there = top.get("conversation").is_some();
    let mut fields = reader.section(top, "conversation");
    let usual = Conversation::default();
    let turn_place = fields.get("talkspurt").map(|node| node.span);
    let conversation = Conversation {
        talkspurt: reader
            .quantity(&mut fields, "talkspurt", "6s", units::duration)
            .unwrap_or(usual.talkspurt),
        pause: reader.quantity(&mut fields, "pause", "600ms", units::duration).unwrap_or(usual.pause),
        overlap: share(reader, &mut fields, "overlap").unwrap_or(usual.overlap),
        seed: reader.integer(&mut fields, "seed", 0, i64::MAX as u64).unwrap_or(usual.seed),
    };
    reader.finish(&fields);
    if conversation.talkspurt < Duration::from_secs(1)
        || conversation.talkspurt > TURN_MAX
        || conversation.pause > TURN_MAX
    {
        let message =
            "`conversation.talkspurt` must be from 1 s to 1 h, and `conversation.pause` at most 1 h";
        reader.fail(turn_place.or(fields.span), message, "write talkspurt = \"6s\"");
    }
    is_there.then_some(conversation)
}

/// A number from 0 to 1.
fn share(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<f64> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let share = match node.value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        _ => f64::NAN,
    };
    if !(0.0..=1.0).contains(&share) {
        let message = format!("`{path}` is not a share from 0 to 1");
        reader.fail(Some(node.span), message, format!("write {key} = 0.1"));
        return None;
    }
    Some(share)
}

/// Reads `[room]`.
pub(super) fn room(reader: &mut Reader, top: &mut Fields<'_>) -> Option<RoomConfig> {
    let is_there = top.get("room").is_some();
    let mut fields = reader.section(top, "room");
    let admin_key = fields.get("admin_key").and_then(|node| super::token(reader, node, "room.admin_key"));
    let publishers = reader.integer(&mut fields, "publishers", 1, 100_000);
    let bits_per_s = reader.quantity(&mut fields, "bitrate", "256kbit/s", units::bit_rate);
    let expected = format!("a list of codecs, each one of \"{}\"", VIDEO_CODECS.join("\", \""));
    let mut video_codecs = Vec::new();
    for (codec, node) in reader.texts(&mut fields, "video_codecs", &expected) {
        if !VIDEO_CODECS.contains(&codec.as_str()) {
            let message = format!("`room.video_codecs` is not {expected}");
            reader.fail(Some(node.span), message, "write video_codecs = [\"vp8\"]");
        }
        video_codecs.push(codec);
    }
    reader.finish(&fields);
    let publishers = publishers.and_then(|publishers| u32::try_from(publishers).ok());
    is_there.then_some(RoomConfig { admin_key, publishers, bits_per_s, video_codecs })
}

/// Janus says which layer it forwards and not how many there are: of two it never says "high", so that who asked for that
/// would seem not to have got it.
fn check_layers(reader: &mut Reader, scenario: &Scenario) {
    let roles = || scenario.crowd.iter().filter_map(|cohort| cohort.role.as_ref());
    let is_janus = matches!(scenario.target.endpoint, Endpoint::JanusVideoRoom { .. });
    let wants_high = roles().any(|role| role.layers.iter().any(|wish| wish.layer == Layer::High));
    let mut publishes = roles().filter_map(|role| role.publish.as_ref());
    if is_janus && wants_high && publishes.any(|publish| publish.simulcast.len() == 2) {
        let message = "`layers` asks for \"high\", but of a simulcast of two sizes the larger is \"medium\"";
        reader.fail(None, message, "write layer = \"medium\", or three sizes in publish.simulcast");
    }
}

/// What of a conference does not go together.
pub(super) fn check(reader: &mut Reader, scenario: &Scenario, room: Option<Span>) {
    if scenario.room.is_some() && !matches!(scenario.target.endpoint, Endpoint::JanusVideoRoom { .. }) {
        let help = "take [room] away, or aim at janus+ws://HOST:8188/videoroom/ROOM";
        reader.fail(room, "throng makes rooms on Janus VideoRoom only", help);
    }
    let roles = || scenario.crowd.iter().filter_map(|cohort| cohort.role.as_ref());
    let follows = |whom: SubscribePolicy| matches!(whom, SubscribePolicy::LastSpeakers(_));
    if scenario.conversation.is_none() && roles().any(|role| follows(role.video) || follows(role.audio)) {
        let help = "write [conversation] and under it for example talkspurt = \"6s\"";
        reader.fail(None, "`subscribe` names the last speakers, but nobody takes turns to speak", help);
    }
    if scenario.conversation.is_none() && roles().any(|role| role.speaking_weight != 1) {
        let help = "write [conversation] and under it for example talkspurt = \"6s\"";
        reader.fail(
            None,
            "`speaking_weight` says how often somebody speaks, but nobody takes turns to speak",
            help,
        );
    }
    check_layers(reader, scenario);
    let duration = scenario.run.duration;
    for (what, at) in scenario.crowd.iter().flat_map(|cohort| {
        let cues = cohort.role.iter().flat_map(|role| &role.script).map(|cue| ("script", cue.at));
        cues.chain(cohort.reconnect.map(|reconnect| ("reconnect", reconnect.at + reconnect.within)))
    }) {
        if at >= duration {
            let message = format!(
                "something of `{what}` happens at {}, but the run ends at {}",
                write_duration(at),
                write_duration(duration)
            );
            reader.fail(None, message, "lengthen run.duration, or let it happen earlier");
        }
    }
}
