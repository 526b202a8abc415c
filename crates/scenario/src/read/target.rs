//! Reads `[target]`, whose keys are in `target/keys.rs`, and checks their values against each
//! other.

use super::fields::{Fields, Reader};
use super::tree::{Entry, Node, Span, value_of};
use crate::keys::{self, Keyed as _};
use crate::secret::{HIDDEN, TokenSource};
use crate::target::{
    ApiKey, ApiKeys, Carriage, IceTransportPolicy, Target, TargetError, TargetTable, TurnServer,
    TurnUri,
};

/// Host and port of the file's own `target.url`, before overrides.
pub(super) fn host_of_file(root: &[Entry]) -> Option<String> {
    let url = value_of(root, "target")?.get("url")?.as_text()?;
    Target::parse(url).ok().map(|target| host_of(&target))
}

pub(super) fn host_of(target: &Target) -> String {
    let (host, port) = target.host_and_port();
    format!("{host}:{port}")
}

/// Reads `[target]`. The file's secrets go to no other host than that of the file (`host_of_file`),
/// whatever the overrides.
pub(super) fn target(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    host_of_file: Option<&str>,
) -> Option<Target> {
    let mut fields = reader.section(top, "target");
    let table = keys::read(reader, &mut fields, TargetTable::usual());
    let api_key = match (table.api_key, table.api_secret) {
        (Some(key), Some(secret)) => Some(ApiKey { key, secret, room: table.room }),
        (None, None) if table.room.is_none() => None,
        _ => in_part(reader, &mut fields, &API_KEY),
    };
    let is_of_override = fields.span_of("turn").is_some_and(|span| span.source > 0);
    let turn = match (table.turn, table.turn_username, table.turn_password) {
        (Some(uri), Some(username), Some(password)) => Some(TurnServer { uri, username, password }),
        (None, None, None) => None,
        (None, ..) if is_of_override => None, // it removes the file's server
        _ => in_part(reader, &mut fields, &TURN),
    };
    let url = table.url?;
    let target = Target {
        token: table.token,
        api_key,
        rooms: table.rooms,
        allow: table.allow,
        tls_insecure: table.tls_insecure,
        ice_transport_policy: table.ice_transport_policy.unwrap_or(url.ice_transport_policy),
        stun: table.stun,
        turn,
        rtsp_transport: table.rtsp_transport,
        ..url
    };
    check_secrets(reader, &mut fields, &target, host_of_file);
    let (span, api_key) = (fields.span_of("url"), target.api_key.as_ref());
    check_access(reader, span, &target, api_key, target.token.is_some());
    check_names(reader, &mut fields, &target);
    check_effects(reader, &mut fields, &target);
    Some(target)
}

/// Keys that belong together, and what is said where some of them have no value.
type Group = ([&'static str; 3], &'static str, &'static str);

const API_KEY: Group = (
    ["api_key", "api_secret", "room"],
    "`target` needs both `api_key` and `api_secret` to make tokens",
    "write all of api_key, api_secret and, for WHIP, room; or none of them",
);
const TURN: Group = (
    ["turn", "turn_username", "turn_password"],
    "`target` has only a part of a TURN server",
    "write all of turn, turn_username and turn_password, or none of them",
);

/// Reports a group of which a part is there. A value that could not be read has its own error.
fn in_part<T>(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    (keys, message, help): &Group,
) -> Option<T> {
    let spans: Vec<Span> = keys.iter().filter_map(|key| fields.span_of(key)).collect();
    if !spans.iter().any(|span| reader.has_error_at(*span)) {
        reader.fail(spans.first().copied(), *message, *help);
    }
    None
}

/// Secrets of the file may only go to the host of the file's URL, and to the file's TURN server.
fn check_secrets(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    target: &Target,
    host_of_file: Option<&str>,
) {
    let is_of_file = |span: &Span| span.source == 0;
    let (url, host) = (fields.span_of("url"), host_of(target));
    for (key, is_there) in
        [("token", target.token.is_some()), ("api_secret", target.api_key.is_some())]
    {
        let secret = fields.span_of(key).filter(|span| is_there && is_of_file(span));
        if let (Some(secret), Some(host_of_file)) = (secret, host_of_file)
            && host != host_of_file
        {
            let message =
                format!("`target.{key}` is for {host_of_file} and would be sent to {host}");
            let help =
                format!("add --set target.{key}=… for {host}, or --set target.{key}= for none");
            reader.fail(url.filter(|url| !is_of_file(url)).unwrap_or(secret), message, help);
        }
    }
    let password = fields.span_of("turn_password").filter(is_of_file);
    let turn = fields.span_of("turn").filter(|turn| !is_of_file(turn));
    if let (Some(turn), Some(_), Some(_)) = (turn, password, &target.turn) {
        let help = "add --set target.turn_password=… for this server";
        reader.fail(turn, "`target.turn_password` is for another TURN server", help);
    }
}

/// The guard checks names where they are resolved, and participants resolve none: of servers of
/// STUN and TURN, the only host name with a known address is the target's own.
fn check_names(reader: &mut Reader, fields: &mut Fields<'_>, target: &Target) {
    let stun = target.stun.as_ref().is_none_or(|stun| stun.is_resolved_with(target.url()));
    let turn = target.turn.as_ref().is_none_or(|turn| {
        TurnUri::parse(&turn.uri).is_ok_and(|uri| uri.is_resolved_with(target.url()))
    });
    for (key, kind, example, is_known) in [
        ("stun", "STUN", "stun:10.0.0.1:3478", stun),
        ("turn", "TURN", "turn:10.0.0.1:3478?transport=tcp", turn),
    ] {
        if !is_known {
            let message = format!(
                "`target.{key}` names another host than `target.url`; throng does not resolve \
                 names of {kind} servers"
            );
            let help = format!("write its IP address, such as {key} = \"{example}\"");
            reader.fail(fields.span_of(key), message, help);
        }
    }
}

/// Values that have no effect on this target.
fn check_effects(reader: &mut Reader, fields: &mut Fields<'_>, target: &Target) {
    let name = target.protocol().name();
    if target.rooms > 1 && !target.has_rooms() {
        let message = format!("`target.rooms`: {name} has no rooms");
        let help = "remove it, write {room} into the URL, or use a conference as the target: \
                    janus+ws://HOST:8188/videoroom/ROOM, livekit+ws://…";
        reader.fail(fields.span_of("rooms"), message, help);
    }
    if target.ice_transport_policy == IceTransportPolicy::Relay
        && !target.announces_relays()
        && target.turn.is_none()
    {
        let message = format!("`target.ice_transport_policy`: {name} announces no relay");
        let help = "name one by turn, turn_username and turn_password, or remove it";
        reader.fail(fields.span_of("ice_transport_policy"), message, help);
    }
    let transport = fields.span_of("rtsp_transport").filter(|span| !reader.has_error_at(*span));
    let is_rtsp = target.protocol().carriage() == Carriage::Rtsp;
    if transport.is_some() && !is_rtsp {
        let message = format!("`target.rtsp_transport` has no effect: {name} is not RTSP");
        reader.fail(transport, message, "remove it");
    }
    if is_rtsp && (target.stun.is_some() || target.turn.is_some()) {
        let span = fields.span_of("stun").or(fields.span_of("turn"));
        let message = "`target.stun` and `target.turn` have no effect: RTSP has no ICE";
        reader.fail(span, message, "remove them");
    }
}

/// Reads a target URL.
pub(crate) fn target_url(reader: &mut Reader, node: &Node, path: &str) -> Option<Target> {
    let text =
        reader.text(node, path, "a URL such as \"janus+ws://127.0.0.1:8188/streaming/1\"")?;
    let text = if reader.is_stored() { as_written_today(text) } else { text };
    let error = match Target::parse(&text) {
        Ok(target) => return Some(target),
        Err(error) => error,
    };
    let span = match &error {
        TargetError::Template(error) => reader.span_within(node, &text, error.at.clone()),
        _ => node.span,
    };
    reader.fail(span, format!("`{path}`: {}", error.message()), error.help());
    None
}

/// The URL of a stored run: what published had no `publish+`, and a fragment was not refused.
fn as_written_today(text: String) -> String {
    let scheme = text.split("://").next().unwrap_or_default().to_ascii_lowercase();
    let publishes = ["rtmp", "rtmps", "srt"].contains(&scheme.as_str());
    let had_fragments = publishes || scheme.starts_with("publish+") || scheme.starts_with("rtsp");
    let text = match text.split_once('#') {
        Some((before, _)) if had_fragments => before.to_owned(),
        _ => text,
    };
    if publishes { format!("publish+{text}") } else { text }
}

/// Whether the protocol uses tokens or API keys, and has those that it requires.
pub(super) fn check_access(
    reader: &mut Reader,
    span: Option<Span>,
    target: &Target,
    api_key: Option<&ApiKey>,
    has_token: bool,
) {
    if !reader.is_clean() {
        return; // the missing value may be one that could not be read
    }
    let room = api_key.map(|api| api.room.is_some());
    let (message, help) = match (target.protocol().facts().api_keys, room, has_token) {
        (ApiKeys::RoomOfUrl, None, false) => (
            "LiveKit requires a token",
            "write under [target] api_key = \"…\" and api_secret = \"env:NAME\", or a token for \
             one participant; on the command line --set target.api_key=… --set \
             target.api_secret=env:NAME, or --token",
        ),
        (ApiKeys::RoomOfUrl, Some(true), _) => {
            ("`target.room`: the URL names LiveKit's room already", "remove target.room")
        }
        (ApiKeys::NamedRoom, Some(false), _) => (
            "`target.room` is missing: LiveKit's tokens are for a room, and a WHIP URL has none",
            "write target.room = \"…\"",
        ),
        (_, Some(_), true) => ("`target` has both a token and an API key", "remove one of them"),
        (ApiKeys::RoomOfUrl | ApiKeys::NamedRoom, ..) | (_, None, _) => return,
        (ApiKeys::None, Some(_), false) => (
            "`target.api_key`: only LiveKit has API keys",
            "remove target.api_key and target.api_secret",
        ),
    };
    reader.fail(span, message, help);
}

/// Reads a token or another secret, or its source.
pub(crate) fn token(reader: &mut Reader, node: &Node, path: &str) -> Option<TokenSource> {
    let help = "write env:NAME or file:PATH to keep it out of this file, or the token itself";
    let text = reader.text(node, path, "text")?;
    if text.is_empty() && node.span.source > 0 {
        return None; // an override that removes the file's token
    }
    let source = TokenSource::parse(&text);
    let problem = match &source {
        TokenSource::Inline(secret) if reader.is_redacted() && secret.expose() == HIDDEN => {
            return Some(source);
        }
        TokenSource::Inline(secret) if secret.expose().contains(HIDDEN) => {
            "was redacted when this scenario was stored"
        }
        // It becomes an HTTP header: other characters could not be sent, or would begin another
        // header.
        TokenSource::Inline(secret)
            if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            "has characters that are not visible ASCII"
        }
        TokenSource::Inline(secret) if secret.expose().is_empty() => "is empty",
        TokenSource::Environment(name) | TokenSource::File(name) if name.is_empty() => {
            "has no name after `env:` or `file:`"
        }
        _ => return Some(source),
    };
    reader.fail(node.span, format!("`{path}` {problem}"), help);
    None
}
