//! Reads `[target]`: the URL, what gives access to it, and how media may reach it.

use super::fields::{Fields, Reader};
use super::tree::{Entry, Node, Span, value_of};
use super::turn;
use crate::room::ROOMS_MAX;
use crate::secret::{HIDDEN, TokenSource};
use crate::target::{
    ApiKey, ApiKeys, Carriage, IceTransportPolicy, RtspTransport, StunServer, Target, TargetError,
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
    let url = fields.get("url");
    let help = "write under [target] for example url = \"whep+http://127.0.0.1:7080/whep\"";
    reader.require(&fields, "url", help);
    let token_node = fields.get("token");
    let token = token_node.and_then(|node| token(reader, node, "target.token"));
    let secret_node = fields.get("api_secret");
    let api_key = api_key(reader, &mut fields);
    let rooms = reader.integer(&mut fields, "rooms", 1, u64::from(ROOMS_MAX)).unwrap_or(1);
    let allow =
        reader.networks(&mut fields, "allow", "a list of networks such as [\"10.0.0.0/8\"]");
    let tls_insecure = reader.boolean(&mut fields, "tls_insecure").unwrap_or(false);
    let policy = reader.named::<IceTransportPolicy>(&mut fields, "ice_transport_policy");
    let stun_node = fields.get("stun");
    let turn = turn::turn(reader, &mut fields);
    let rtsp_transport_span = fields.span_of("rtsp_transport");
    let rtsp_transport = reader.named::<RtspTransport>(&mut fields, "rtsp_transport");
    reader.finish(&fields);
    let node = url?;
    let target = target_url(reader, node, "target.url")?;
    let secrets = [
        ("token", token_node.filter(|_| token.is_some())),
        ("api_secret", secret_node.filter(|_| api_key.is_some())),
    ];
    for (key, secret) in secrets {
        check_host(reader, (key, secret), (node, &host_of(&target)), host_of_file);
    }
    check_access(reader, Some(node.span), &target, api_key.as_ref(), token.is_some());
    if rooms > 1 && !target.has_rooms() {
        let message = format!("`target.rooms`: {} has no rooms", target.protocol().name());
        let help = "remove it, write {room} into the URL, or use a conference as the target: \
                    janus+ws://HOST:8188/videoroom/ROOM, livekit+ws://…";
        reader.fail(fields.span_of("rooms"), message, help);
    }
    let ice_transport_policy = policy.unwrap_or(target.ice_transport_policy);
    let turn = turn.and_then(|turn| turn::check(reader, turn, &target));
    if ice_transport_policy == IceTransportPolicy::Relay
        && !target.announces_relays()
        && turn.is_none()
    {
        let message = format!(
            "`target.ice_transport_policy`: {} announces no relay",
            target.protocol().name()
        );
        let help = "name one by turn, turn_username and turn_password, or remove it";
        reader.fail(fields.span_of("ice_transport_policy"), message, help);
    }
    let stun = stun_node.and_then(|node| stun(reader, node, &target));
    let is_rtsp = target.protocol().carriage() == Carriage::Rtsp;
    if rtsp_transport.is_some() && !is_rtsp {
        let message = format!(
            "`target.rtsp_transport` has no effect: {} is not RTSP",
            target.protocol().name()
        );
        reader.fail(rtsp_transport_span, message, "remove it");
    }
    if is_rtsp && (stun.is_some() || turn.is_some()) {
        let span = stun_node.map_or(fields.span_of("turn"), |node| Some(node.span));
        reader.fail(
            span,
            "`target.stun` and `target.turn` have no effect: RTSP has no ICE",
            "remove them",
        );
    }
    let rtsp_transport = rtsp_transport.unwrap_or_default();
    let target = Target {
        token,
        api_key,
        rooms,
        allow,
        tls_insecure,
        ice_transport_policy,
        stun,
        turn,
        ..target
    };
    Some(Target { rtsp_transport, ..target })
}

/// A secret of the file may only go to the host of the file's URL.
fn check_host(
    reader: &mut Reader,
    (key, secret): (&str, Option<&Node>),
    (url, host): (&Node, &str),
    host_of_file: Option<&str>,
) {
    let (Some(secret), Some(host_of_file)) =
        (secret.filter(|node| node.span.source == 0), host_of_file)
    else {
        return;
    };
    if host != host_of_file {
        let message = format!("`target.{key}` is for {host_of_file} and would be sent to {host}");
        let help = format!("add --set target.{key}=… for {host}, or --set target.{key}= for none");
        let span = if url.span.source == 0 { secret.span } else { url.span };
        reader.fail(span, message, help);
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

/// LiveKit's API key and secret, and the room that a WHIP URL does not contain.
fn api_key(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<ApiKey> {
    let text = |reader: &mut Reader, fields: &mut Fields<'_>, name: &'static str| {
        reader.text_of(fields, name, "text").filter(|text| !text.is_empty())
    };
    let key = text(reader, fields, "api_key");
    let room = text(reader, fields, "room");
    let secret_node = fields.get("api_secret");
    let secret = secret_node.and_then(|node| token(reader, node, "target.api_secret"));
    match (key, secret) {
        (Some(key), Some(secret)) => Some(ApiKey { key, secret, room }),
        (None, None) if room.is_none() => None,
        _ if !reader.is_clean() => None,
        _ => {
            let help = "write all of api_key, api_secret and, for WHIP, room; or none of them";
            reader.fail(
                fields.span,
                "`target` needs both `api_key` and `api_secret` to make tokens",
                help,
            );
            None
        }
    }
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

/// Reads `target.stun`. The guard checks names where they are resolved, and participants resolve
/// none: the only host name with a known address is the target's own.
fn stun(reader: &mut Reader, node: &Node, target: &Target) -> Option<StunServer> {
    let text = reader.text(node, "target.stun", "text such as \"stun:10.0.0.1:3478\"")?;
    if text.is_empty() && node.span.source > 0 {
        return None; // an override that removes the file's server
    }
    let (message, help) = match StunServer::parse(&text) {
        Some(server) if server.is_resolved_with(target.url()) => return Some(server),
        Some(_) => (
            "`target.stun` names another host than `target.url`; throng does not resolve names of \
             STUN servers",
            "write its IP address, such as stun = \"stun:10.0.0.1:3478\"",
        ),
        None => (
            "`target.stun` is not stun:HOST or stun:HOST:PORT",
            "write for example stun = \"stun:10.0.0.1:3478\"",
        ),
    };
    reader.fail(node.span, message, help);
    None
}
