//! Reads `[conversation]` and `[room]`, and checks them against the crowd.

use std::time::Duration;

use throng_observation::Layer;

use super::crowd::{CohortSpans, SEED_MAX};
use super::fields::{Fields, Reader};
use super::target::token;
use super::tree::Span;
use crate::conversation::Conversation;
use crate::role::{Role, SubscribePolicy};
use crate::room::RoomConfig;
use crate::scenario::{Cohort, Scenario};
use crate::target::Protocol;
use crate::units::{self, write_duration};

/// The longest mean talkspurt and pause.
const TALKSPURT_MAX: Duration = Duration::from_secs(60 * 60);
/// The video codecs of a room.
const VIDEO_CODECS: [&str; 5] = ["vp8", "h264", "h265", "vp9", "av1"];

/// Reads `[conversation]`.
pub(super) fn conversation(reader: &mut Reader, top: &mut Fields<'_>) -> Option<Conversation> {
    let is_present = top.get("conversation").is_some();
    let mut fields = reader.section(top, "conversation");
    let default = Conversation::default();
    let span = fields.span_of("talkspurt").or(fields.span);
    let conversation = Conversation {
        talkspurt: reader
            .quantity(&mut fields, "talkspurt", "6s", units::duration)
            .unwrap_or(default.talkspurt),
        pause: reader
            .quantity(&mut fields, "pause", "600ms", units::duration)
            .unwrap_or(default.pause),
        overlap: reader.share(&mut fields, "overlap", "0.1").unwrap_or(default.overlap),
        seed: reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(default.seed),
    };
    reader.finish(&fields);
    if conversation.talkspurt < Duration::from_secs(1)
        || conversation.talkspurt > TALKSPURT_MAX
        || conversation.pause > TALKSPURT_MAX
    {
        let message = "`conversation.talkspurt` must be from 1 s to 1 h, and `conversation.pause` at most 1 h";
        reader.fail(span, message, "write talkspurt = \"6s\"");
    }
    is_present.then_some(conversation)
}

/// Reads `[room]`.
pub(super) fn room(reader: &mut Reader, top: &mut Fields<'_>) -> Option<RoomConfig> {
    let is_present = top.get("room").is_some();
    let mut fields = reader.section(top, "room");
    let admin_key = fields.get("admin_key").and_then(|node| token(reader, node, "room.admin_key"));
    let publishers = reader.integer(&mut fields, "publishers", 1, 100_000);
    let bits_per_s = reader.quantity(&mut fields, "bitrate", "256kbit/s", units::bit_rate);
    let expected = format!("a list of codecs, each one of \"{}\"", VIDEO_CODECS.join("\", \""));
    let mut video_codecs = Vec::new();
    for (codec, node) in reader.texts(&mut fields, "video_codecs", &expected) {
        if !VIDEO_CODECS.contains(&codec.as_str()) {
            let message = format!("`room.video_codecs` is not {expected}");
            reader.fail(node.span, message, "write video_codecs = [\"vp8\"]");
        }
        video_codecs.push(codec);
    }
    reader.finish(&fields);
    is_present.then_some(RoomConfig { admin_key, publishers, bits_per_s, video_codecs })
}

/// Checks the values of a conference against each other.
pub(super) fn check(
    reader: &mut Reader,
    scenario: &Scenario,
    top: &mut Fields<'_>,
    cohorts: &[CohortSpans],
) {
    if scenario.room.is_some() && scenario.target.protocol() != Protocol::JanusVideoRoom {
        let help = "remove [room], or use janus+ws://HOST:8188/videoroom/ROOM as the target";
        reader.fail(
            top.span_of("room"),
            "`room`: throng creates rooms on Janus VideoRoom only",
            help,
        );
    }
    for (cohort, spans) in scenario.crowd.iter().zip(cohorts) {
        let role = cohort.role.as_ref();
        if let Some(role) = role.filter(|_| scenario.conversation.is_none()) {
            check_conversation(reader, role, spans.cohort);
        }
        check_times(reader, cohort, scenario.run.duration, spans.cohort);
    }
    check_layers(reader, scenario);
}

/// Keys of a cohort that have no effect without `[conversation]`.
fn check_conversation(reader: &mut Reader, role: &Role, span: Span) {
    let is_last_speakers = |policy| matches!(policy, SubscribePolicy::LastSpeakers(_));
    let help = "write [conversation] and under it for example talkspurt = \"6s\"";
    if is_last_speakers(role.video) || is_last_speakers(role.audio) {
        reader.fail(
            span,
            "`last_speakers` needs a [conversation]: without it all participants speak",
            help,
        );
    }
    if role.speaking_weight != 1 {
        reader.fail(span, "`speaking_weight` has no effect without a [conversation]", help);
    }
}

/// Timed actions and reconnects must come before the end of the run.
fn check_times(reader: &mut Reader, cohort: &Cohort, duration: Duration, span: Span) {
    let steps = cohort.role.iter().flat_map(|role| &role.script).map(|step| ("script", step.at));
    let reconnect =
        cohort.reconnect.map(|reconnect| ("reconnect", reconnect.at + reconnect.within));
    for (key, at) in steps.chain(reconnect).filter(|(_, at)| *at >= duration) {
        let (at, end) = (write_duration(at), write_duration(duration));
        let message = format!("`{key}` has an action at {at}, but the run ends at {end}");
        reader.fail(span, message, "increase run.duration, or write an earlier time");
    }
}

/// Janus reports which layer it forwards, but not how many there are. Of two layers it never
/// reports "high", so that a request for it would seem to fail.
fn check_layers(reader: &mut Reader, scenario: &Scenario) {
    let roles = || scenario.crowd.iter().filter_map(|cohort| cohort.role.as_ref());
    let is_janus = scenario.target.protocol() == Protocol::JanusVideoRoom;
    let wants_high =
        roles().any(|role| role.layers.iter().any(|request| request.layer == Layer::High));
    let mut publishes = roles().filter_map(|role| role.publish.as_ref());
    if is_janus && wants_high && publishes.any(|publish| publish.simulcast.len() == 2) {
        let message =
            "`layers` requests \"high\", but the larger of two simulcast sizes is \"medium\"";
        reader.fail(None, message, "write layer = \"medium\", or three sizes in publish.simulcast");
    }
}

#[cfg(test)]
#[path = "conference_tests.rs"]
mod tests;
