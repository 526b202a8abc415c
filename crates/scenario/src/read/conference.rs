//! Checks `[conversation]` and `[room]` against the crowd.

use std::time::Duration;

use throng_observation::Layer;

use super::crowd::CohortSpans;
use super::fields::{Fields, Reader};
use super::tree::Span;
use crate::role::{Role, SubscribePolicy};
use crate::scenario::{Cohort, Scenario};
use crate::target::Protocol;
use crate::units::write_duration;

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
    if is_last_speakers(role.subscribe.video) || is_last_speakers(role.subscribe.audio) {
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
