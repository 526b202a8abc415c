//! Reads where participants go: URLs with their names, a cohort's own URL, and over how many streams it is spread.

use super::crowd::{DestinationPlaces, SEED_MAX};
use super::fields::{Fields, Reader};
use super::tree::{Node, Span, Value};
use super::{check_access, host_of, token, within};
use crate::names::Name;
use crate::scenario::Cohort;
use crate::streams::{STREAMS_MAX, Spread, Streams, ZIPF_MAX};
use crate::target::{StunServer, Target, TargetError, TurnServer, TurnUri};

const STREAMS: &str =
    "a number of streams such as 10, or a table such as { count = 10, zipf = 1.0, seed = 1 }";

const INCOMPLETE_TURN: (&str, &str) = (
    "`target` has only a part of a TURN server",
    "write all of turn, turn_username and turn_password, or none of them",
);

/// Reads a target's URL; the part of an error after `; ` is its help.
pub(super) fn target(reader: &mut Reader, node: &Node, path: &str) -> Option<Target> {
    let text = reader.text(node, path, "a URL such as \"janus+ws://127.0.0.1:8188/streaming/1\"")?;
    let error = match Target::parse(&text) {
        Ok(target) => return Some(target),
        Err(error) => error,
    };
    let span = match &error {
        TargetError::Names { at, .. } => within(reader, node, &text, at.clone()),
        _ => node.span,
    };
    let error = error.to_string();
    let (message, help) = error.split_once("; ").or_else(|| error.split_once(": ")).unwrap_or((&error, ""));
    reader.fail(Some(span), format!("`{path}`: {message}"), help);
    None
}

/// Reads `target.stun`. Names are judged where they are resolved, and participants resolve none: the only one that leads
/// somewhere is the target's own.
pub(super) fn stun(reader: &mut Reader, node: &Node, target: &Target) -> Option<StunServer> {
    let text = reader.text(node, "target.stun", "text such as \"stun:10.0.0.1:3478\"")?;
    if text.is_empty() && node.span.source > 0 {
        return None; // an override that takes the file's away
    }
    let (message, help) = match StunServer::parse(&text) {
        Some(server) if server.is_known_beside(target.url()) => return Some(server),
        Some(_) => (
            "`target.stun` names another host than `target.url`, and STUN servers are not looked up by name",
            "write its address, such as stun = \"stun:10.0.0.1:3478\"",
        ),
        None => (
            "`target.stun` is not stun:HOST or stun:HOST:PORT",
            "write for example stun = \"stun:10.0.0.1:3478\"",
        ),
    };
    reader.fail(Some(node.span), message, help);
    None
}

/// Reads `target.turn` and its credential, and where the URI stands.
pub(super) fn turn(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<(TurnServer, Span)> {
    let nodes = ["turn", "turn_username", "turn_password"].map(|name| fields.get(name));
    let text = |reader: &mut Reader, node: Option<&Node>, path: &str, kind: &str| {
        reader.text(node?, path, kind).filter(|text| !text.is_empty())
    };
    let uri = text(reader, nodes[0], "target.turn", "text such as \"turn:10.0.0.1:3478?transport=tcp\"");
    let username = text(reader, nodes[1], "target.turn_username", "text");
    let password = nodes[2].and_then(|node| token(reader, node, "target.turn_password"));
    let (Some(at), Some(of_password)) = (nodes[0], nodes[2]) else {
        if nodes.iter().any(Option::is_some) && reader.is_clean() {
            reader.fail(fields.span, INCOMPLETE_TURN.0, INCOMPLETE_TURN.1);
        }
        return None;
    };
    match (uri, username, password) {
        (None, ..) if at.span.source > 0 => None, // an override that takes the file's away
        (Some(uri), Some(username), Some(password)) => {
            if at.span.source > 0 && of_password.span.source == 0 {
                let message = "`target.turn_password` was written for another TURN server";
                reader.fail(
                    Some(at.span),
                    message,
                    "add --set target.turn_password=… with that for this one",
                );
            }
            Some((TurnServer { uri, username, password }, at.span))
        }
        _ => {
            if reader.is_clean() {
                reader.fail(Some(at.span), INCOMPLETE_TURN.0, INCOMPLETE_TURN.1);
            }
            None
        }
    }
}

/// Judges the URI of `target.turn`. As with `target.stun`, no name but the target's own leads somewhere.
pub(super) fn check_turn(
    reader: &mut Reader,
    (turn, place): (TurnServer, Span),
    target: &Target,
) -> Option<TurnServer> {
    let (message, help) = match TurnUri::parse(&turn.uri) {
        Ok(uri) if uri.is_known_beside(target.url()) => return Some(turn),
        Ok(_) => (
            "`target.turn` names another host than `target.url`, and TURN servers are not looked up by name"
                .into(),
            "write its address, such as turn = \"turn:10.0.0.1:3478?transport=tcp\"",
        ),
        Err(error) => (
            format!("`target.turn`: {error}"),
            "write for example turn = \"turn:10.0.0.1:3478?transport=tcp\"",
        ),
    };
    reader.fail(Some(place), message, help);
    None
}

/// Reads `streams` of a cohort.
pub(super) fn streams(reader: &mut Reader, cohort: &mut Fields<'_>) -> Option<Streams> {
    let path = cohort.path_of("streams");
    let node = cohort.get("streams")?;
    let Value::Table(_) = node.value else {
        if !matches!(node.value, Value::Integer(_)) {
            reader.fail(
                Some(node.span),
                format!("`{path}` is not {STREAMS}"),
                format!("write streams = {STREAMS}"),
            );
            return None;
        }
        let count = reader.integer(cohort, "streams", 1, STREAMS_MAX.into())?;
        return Some(Streams::new(u32::try_from(count).ok()?, Spread::Even));
    };
    let mut fields = reader.table(node, &path, STREAMS)?;
    let count = reader.integer(&mut fields, "count", 1, STREAMS_MAX.into());
    if fields.get("count").is_none() && fields.lacks("count") {
        reader.fail(Some(node.span), format!("`{path}.count` is missing"), "write for example count = 10");
    }
    let zipf = fields.get("zipf");
    let exponent = reader.positive(&mut fields, "zipf");
    if exponent.is_some_and(|exponent| exponent > ZIPF_MAX) {
        let help = "write zipf = 1.0, by which the second stream has half of the first one's viewers";
        reader.fail(zipf.map(|node| node.span), format!("`{path}.zipf` is above {ZIPF_MAX}"), help);
    }
    let seed_place = fields.get("seed").map(|node| node.span);
    let seed = reader.integer(&mut fields, "seed", 0, SEED_MAX).unwrap_or(1);
    if seed_place.is_some() && zipf.is_none() {
        reader.fail(
            seed_place,
            "streams in turn draw nothing, so a seed does nothing",
            "remove seed, or add zipf",
        );
    }
    reader.finish(&fields);
    let spread = exponent.map_or(Spread::Even, |exponent| Spread::Zipf { exponent, seed });
    Some(Streams::new(u32::try_from(count?).ok()?, spread))
}

/// Judges the cohorts' URLs and streams together with the target, and gives own URLs what goes with the target's.
pub(super) fn check(
    reader: &mut Reader,
    target: &Target,
    crowd: &mut [Cohort],
    places: &[DestinationPlaces],
) {
    for (cohort, place) in crowd.iter_mut().zip(places) {
        if let Some(own) = &mut cohort.target {
            check_own(reader, target, own, place);
            own.token.clone_from(&target.token);
            own.api_key.clone_from(&target.api_key);
            own.allow.clone_from(&target.allow);
            own.stun.clone_from(&target.stun);
            own.turn.clone_from(&target.turn);
            (own.rooms, own.tls_insecure) = (target.rooms, target.tls_insecure);
            // What target.ice_transport_policy says holds for all; what the target's URL asks for, of those who go there.
            if !target.endpoint.asks_for_relay() {
                own.ice_transport_policy = own.ice_transport_policy.max(target.ice_transport_policy);
            }
        }
        let way = cohort.target.as_ref().unwrap_or(target);
        match (way.has_name(Name::Stream), &cohort.streams) {
            (true, None) => {
                let message =
                    format!("the URL of {} has {{stream}}, and nothing says of how many", cohort.name);
                let help = "write streams = 10 under [crowd] (--streams 10), or {n} in the URL for one each";
                reader.fail(place.url.or(place.cohort), message, help);
            }
            (false, Some(_)) => {
                let message =
                    format!("`streams` of {} changes nothing: its URL has no {{stream}}", cohort.name);
                let help = "write {stream} into the path or the query of the URL, or remove streams";
                reader.fail(place.streams, message, help);
            }
            _ => {}
        }
    }
}

fn check_own(reader: &mut Reader, target: &Target, own: &Target, place: &DestinationPlaces) {
    let (host, of_own) = (host_of(target), host_of(own));
    if host != of_own {
        let message =
            format!("`url` of a cohort leads to {of_own}, and target.url to {host}: a scenario has one host");
        reader.fail(place.url, message, "write the same host and port, or a scenario for each");
    }
    if target.is_conference() || own.is_conference() {
        let help = "remove it, or give the conference a scenario of its own";
        reader.fail(place.url, "`url` of a cohort: in a conference everybody joins at target.url", help);
    }
    check_access(reader, place.url, own, target.api_key.as_ref(), target.token.is_some());
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
