//! Reads a scenario: syntax, overrides, keys and units, then what the values mean together.

use crate::network::{AddressRange, Network};
use crate::objective::Objective;
use crate::problem::{Origin, Place, Problem, ScenarioError};
use crate::room::ROOMS_MAX;
use crate::scenario::{Caps, OutputTo, Override, RunTimes, Scenario, Stream};
use crate::secret::HIDDEN;
use crate::target::{ApiKey, IceTransportPolicy, Protocol, Target, TokenSource};
use crate::units;

mod tree;
use tree::{Node, Sources, Span, Value};
mod fields;
use fields::{Fields, Reader};
mod canary;
mod conference;
mod crowd;
mod destination;
mod limits;
mod role;
mod tap;
#[cfg(test)]
mod tests;
mod watch;
#[cfg(test)]
mod watch_tests;

/// What may stand at the top of the file.
const TOP_KEYS: [&str; 12] = [
    "objectives",
    "target",
    "crowd",
    "run",
    "stream",
    "conversation",
    "room",
    "watch",
    "tap",
    "canary",
    "output",
    "caps",
];

/// Places of values that are judged together with others.
struct Places {
    size: Vec<Option<Span>>,
    arrival: Vec<Option<Span>>,
    stay: Vec<Option<Span>>,
    duration: Option<Span>,
    warm_up: Option<Span>,
    video: Option<Span>,
}

/// Reads `text` with `overrides` laid over it.
pub(crate) fn scenario(text: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
    read(text, overrides, false)
}

/// Reads a stored scenario, of which secrets were left out.
pub(crate) fn stored_scenario(text: &str) -> Result<Scenario, ScenarioError> {
    read(text, &[], true)
}

fn read(text: &str, overrides: &[Override], may_lack_secrets: bool) -> Result<Scenario, ScenarioError> {
    let mut root = tree::parse(text).map_err(|problems| ScenarioError { problems })?;
    let written_for = written_host(&root);
    let mut reader = Reader::new(Sources::new(text, overrides));
    reader.may_lack_secrets = may_lack_secrets;
    for (index, over) in overrides.iter().enumerate() {
        if let Err((span, message, help)) = tree::apply(&mut root, over, index + 1) {
            reader.fail(Some(span), message, help);
        }
    }
    let mut fields = Fields::new("", None, &root);
    let target = target(&mut reader, &mut fields, written_for.as_deref());
    let sends = target.as_ref().is_some_and(|target| target.protocol() == Protocol::Whip);
    let usual = if sends { "publishers" } else { "viewers" };
    let (mut crowd, crowd_places) = crowd::crowd(&mut reader, &mut fields, usual);
    let (run, run_places) = run(&mut reader, &mut fields);
    let (stream, video) = stream(&mut reader, &mut fields);
    let conversation = conference::conversation(&mut reader, &mut fields);
    let room_place = place_of(fields.get("room"));
    let room = conference::room(&mut reader, &mut fields);
    let objectives = objectives(&mut reader, &mut fields);
    let watch_place = place_of(fields.get("watch"));
    let watch = watch::watches(&mut reader, &mut fields);
    let tap = tap::tap(&mut reader, &mut fields);
    let canary_place = place_of(fields.get("canary"));
    let canary = canary::canary(&mut reader, &mut fields);
    let output = output(&mut reader, &mut fields);
    let caps = caps(&mut reader, &mut fields, target.as_ref());
    reader.finish(&fields);
    let Some(target) = target.filter(|_| reader.is_clean()) else {
        return Err(ScenarioError { problems: reader.into_problems() });
    };
    let (size, arrival, stay, ways) = crowd_places;
    destination::check(&mut reader, &target, &mut crowd, &ways);
    let scenario = Scenario {
        target,
        crowd,
        run,
        stream,
        conversation,
        room,
        watch,
        tap,
        canary,
        objectives,
        output,
        caps,
    };
    let (duration, warm_up) = run_places;
    watch::check(&mut reader, &scenario.watch, scenario.run.duration, watch_place);
    canary::check(&mut reader, &scenario, canary_place);
    conference::check(&mut reader, &scenario, room_place);
    limits::check(&mut reader, &scenario, &Places { size, arrival, stay, duration, warm_up, video });
    if reader.is_clean() { Ok(scenario) } else { Err(ScenarioError { problems: reader.into_problems() }) }
}

/// Host and port of the file's own `target.url`, before anything is laid over it.
fn written_host(root: &[tree::Entry]) -> Option<String> {
    let entry = |entries: &[tree::Entry], key: &str| {
        entries.iter().find(|entry| entry.key == key).map(|entry| entry.node.value.clone())
    };
    let Some(Value::Table(target)) = entry(root, "target") else { return None };
    let Some(Value::Text(url)) = entry(&target, "url") else { return None };
    Target::parse(&url).ok().map(|target| host_of(&target))
}

fn host_of(target: &Target) -> String {
    let (host, port) = target.host_and_port();
    format!("{host}:{port}")
}

/// Reads `[target]`. A token of the file goes to no other host than the file's (`written_for`), whatever an override says.
fn target(reader: &mut Reader, top: &mut Fields<'_>, written_for: Option<&str>) -> Option<Target> {
    let mut fields = reader.section(top, "target");
    let url = fields.get("url");
    if fields.lacks("url") {
        let help = "write under [target] for example url = \"whep+http://127.0.0.1:7080/whep\"";
        reader.fail(fields.span, "`target.url` is missing", help);
    }
    let token_node = fields.get("token");
    let token = token_node.and_then(|node| token(reader, node, "target.token"));
    let secret_node = fields.get("api_secret");
    let api_key = api_key(reader, &mut fields);
    let rooms_node = fields.get("rooms");
    let rooms = reader.integer(&mut fields, "rooms", 1, u64::from(ROOMS_MAX));
    let rooms = rooms.and_then(|rooms| u32::try_from(rooms).ok()).unwrap_or(1);
    let allow = networks(reader, &mut fields);
    let tls_insecure = reader.boolean(&mut fields, "tls_insecure").unwrap_or(false);
    let transport_node = fields.get("ice_transport_policy");
    let ice_transport_policy =
        role::word(reader, &mut fields, "ice_transport_policy", &IceTransportPolicy::NAMES)
            .and_then(|name| IceTransportPolicy::from_name(&name));
    let stun_node = fields.get("stun");
    let turn = destination::turn(reader, &mut fields);
    reader.finish(&fields);
    let node = url?;
    let target = destination::target(reader, node, "target.url")?;
    let host = host_of(&target);
    let secrets = [
        ("token", token_node.filter(|_| token.is_some())),
        ("api_secret", secret_node.filter(|_| api_key.is_some())),
    ];
    for (key, secret) in secrets {
        if let (Some(of_file), Some(written_for)) = (secret.filter(|n| n.span.source == 0), written_for)
            && host != written_for
        {
            let message = format!("`target.{key}` was written for {written_for} and would go to {host}");
            let help =
                format!("add --set target.{key}=… with that for this host, or --set target.{key}= for none");
            let span = if node.span.source == 0 { of_file.span } else { node.span };
            reader.fail(Some(span), message, help);
        }
    }
    check_access(reader, Some(node.span), &target, api_key.as_ref(), token.is_some());
    if rooms > 1 && !target.has_rooms() {
        let message = format!("`target.rooms`: {} has no rooms", target.protocol().name());
        let help = "remove it, number them by {room} in the URL, or aim at a conference: \
                    janus+ws://HOST:8188/videoroom/ROOM, livekit+ws://…";
        reader.fail(rooms_node.map(|node| node.span), message, help);
    }
    let ice_transport_policy = ice_transport_policy.unwrap_or(target.ice_transport_policy);
    let turn = turn.and_then(|turn| destination::check_turn(reader, turn, &target));
    if ice_transport_policy == IceTransportPolicy::Relay && !target.announces_relays() && turn.is_none() {
        let message =
            format!("`target.ice_transport_policy`: {} announces no relay", target.protocol().name());
        let help = "name one by turn, turn_username and turn_password, or remove it";
        reader.fail(transport_node.map(|node| node.span), message, help);
    }
    let stun = stun_node.and_then(|node| destination::stun(reader, node, &target));
    Some(Target { token, api_key, rooms, allow, tls_insecure, ice_transport_policy, stun, turn, ..target })
}

/// LiveKit's API key, its secret, and the room that a WHIP URL does not name.
fn api_key(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<ApiKey> {
    let text = |reader: &mut Reader, fields: &mut Fields<'_>, name: &'static str| {
        let path = fields.path_of(name);
        let node = fields.get(name)?;
        reader.text(node, &path, "text").filter(|text| !text.is_empty())
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
            reader.fail(fields.span, "`target` has only a part of what makes tokens", help);
            None
        }
    }
}

/// Whether the protocol can use what makes tokens, and has what it needs.
fn check_access(
    reader: &mut Reader,
    place: Option<Span>,
    target: &Target,
    api_key: Option<&ApiKey>,
    has_token: bool,
) {
    if !reader.is_clean() {
        return; // what was given may be what could not be read
    }
    let room = api_key.map(|api| api.room.is_some());
    let (message, help) = match (target.protocol(), room, has_token) {
        (Protocol::LiveKit, None, false) => (
            "LiveKit lets nobody in without a token",
            "write under [target] api_key = \"…\" and api_secret = \"env:NAME\", or a token for one participant",
        ),
        (Protocol::LiveKit, Some(true), _) => ("the URL names LiveKit's room already", "remove target.room"),
        (Protocol::Whip, Some(false), _) => {
            ("LiveKit's tokens are for a room, and a WHIP URL names none", "write target.room = \"…\"")
        }
        (_, Some(_), true) => ("there are both a token and what makes tokens", "remove one of them"),
        (Protocol::LiveKit | Protocol::Whip, ..) | (_, None, _) => return,
        (_, Some(_), false) => ("only LiveKit knows API keys", "remove target.api_key and target.api_secret"),
    };
    reader.fail(place, message, help);
}

fn token(reader: &mut Reader, node: &Node, path: &str) -> Option<TokenSource> {
    let help = "write env:NAME or file:PATH to keep it out of this file, or the token itself";
    let text = reader.text(node, path, "text")?;
    if text.is_empty() && node.span.source > 0 {
        return None; // an override that takes the file's token away
    }
    let source = TokenSource::parse(&text);
    let problem = match &source {
        TokenSource::Inline(secret) if reader.may_lack_secrets && secret.expose() == HIDDEN => {
            return Some(source);
        }
        TokenSource::Inline(secret) if secret.expose().contains(HIDDEN) => {
            "was left out when this scenario was stored"
        }
        // It becomes a header: what is no visible ASCII could not be sent, or would begin another header.
        TokenSource::Inline(secret) if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) => {
            "holds characters that no token has"
        }
        TokenSource::Inline(secret) if secret.expose().is_empty() => "is empty",
        TokenSource::Environment(name) | TokenSource::File(name) if name.is_empty() => "names nothing",
        _ => return Some(source),
    };
    reader.fail(Some(node.span), format!("`{path}` {problem}"), help);
    None
}

fn networks(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<Network> {
    let texts = reader.texts(fields, "allow", "a list of networks such as [\"10.0.0.0/8\"]");
    parse_each(reader, texts, "target.allow")
}

/// Parses each text; the part of an error after `; ` is its help.
fn parse_each<T: std::str::FromStr<Err = crate::NetworkError>>(
    reader: &mut Reader,
    texts: Vec<(String, &Node)>,
    path: &str,
) -> Vec<T> {
    let mut parsed = Vec::new();
    for (text, node) in texts {
        match text.parse::<T>() {
            Ok(value) => parsed.push(value),
            Err(error) => {
                let error = error.to_string();
                let (message, help) =
                    error.split_once("; ").unwrap_or((&error, "write `127.0.0.2-127.0.0.20`"));
                reader.fail(Some(node.span), format!("`{path}`: {message}"), help);
            }
        }
    }
    parsed
}

fn run(reader: &mut Reader, top: &mut Fields<'_>) -> (RunTimes, (Option<Span>, Option<Span>)) {
    use std::time::Duration;
    let mut fields = reader.section(top, "run");
    let place = |node: Option<&Node>| node.map(|node| node.span);
    let places = (place(fields.get("duration")), place(fields.get("warm_up")));
    let run = RunTimes {
        duration: reader
            .quantity(&mut fields, "duration", "60s", units::duration)
            .unwrap_or(Duration::from_secs(60)),
        warm_up: reader.quantity(&mut fields, "warm_up", "5s", units::duration).unwrap_or(Duration::ZERO),
        summary_every: reader
            .quantity(&mut fields, "summary_every", "5s", units::duration)
            .unwrap_or(Duration::from_secs(5)),
    };
    if run.summary_every < Duration::from_millis(100) {
        let span = place(fields.get("summary_every"));
        reader.fail(span, "`run.summary_every` is shorter than 100 ms", "write summary_every = \"5s\"");
    }
    reader.finish(&fields);
    (run, places)
}

fn stream(reader: &mut Reader, top: &mut Fields<'_>) -> (Stream, Option<Span>) {
    let mut fields = reader.section(top, "stream");
    let stream = Stream {
        video_bits_per_s: reader.quantity(&mut fields, "video", "1Mbit/s", units::bit_rate),
        audio_bits_per_s: reader.quantity(&mut fields, "audio", "48kbit/s", units::bit_rate),
        fps: reader.positive(&mut fields, "fps"),
    };
    let place = fields.get("video").map(|node| node.span);
    reader.finish(&fields);
    (stream, place)
}

fn objectives(reader: &mut Reader, top: &mut Fields<'_>) -> Vec<Objective> {
    let mut objectives = Vec::new();
    for (text, node) in reader.texts(top, "objectives", "a list such as [\"video.loss p95 < 1%\"]") {
        match text.parse::<Objective>() {
            Ok(objective) => objectives.push(objective),
            Err(error) => {
                let span = within(reader, node, &text, error.span);
                reader.fail(Some(span), error.message, error.help);
            }
        }
    }
    objectives
}

/// The place of a part of a text, when the text stands in the source as it is (no escapes, plain quotes).
fn within(reader: &Reader, node: &Node, text: &str, part: std::ops::Range<usize>) -> Span {
    let Some(quote) = reader.sources.slice(node.span).find(text) else { return node.span };
    let start = node.span.start + quote;
    Span { source: node.span.source, start: start + part.start, end: start + part.end }
}

fn output(reader: &mut Reader, top: &mut Fields<'_>) -> OutputTo {
    let mut fields = reader.section(top, "output");
    let folder = fields
        .get("folder")
        .and_then(|node| reader.text(node, "output.folder", "text such as \"runs/monday\""));
    let csv = reader.boolean(&mut fields, "csv").unwrap_or(false);
    reader.finish(&fields);
    OutputTo { folder, csv }
}

/// The limits in force: the defaults, none for loopback, and what the scenario says.
fn caps(reader: &mut Reader, top: &mut Fields<'_>, target: Option<&Target>) -> Caps {
    let mut fields = reader.section(top, "caps");
    let base = if target.is_some_and(Target::is_loopback) { Caps::NONE } else { Caps::DEFAULT };
    let users = reader.integer(&mut fields, "users", 1, u64::from(u32::MAX));
    let caps = Caps {
        users: users.and_then(|users| u32::try_from(users).ok()).or(base.users),
        joins_per_s: reader.positive(&mut fields, "joins_per_s").or(base.joins_per_s),
        mbit_per_s: reader.positive(&mut fields, "mbit_per_s").or(base.mbit_per_s),
        duration: reader.quantity(&mut fields, "duration", "60m", units::duration).or(base.duration),
    };
    reader.finish(&fields);
    caps
}

fn ranges(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<AddressRange> {
    let path = fields.path_of("source_ips");
    let texts = reader.texts(fields, "source_ips", "a list of addresses such as [\"127.0.0.2-127.0.0.20\"]");
    parse_each(reader, texts, &path)
}

/// Reads `PATH=VALUE`.
pub(crate) fn parse_override(text: &str) -> Result<Override, ScenarioError> {
    let origin = format!("--set {text}");
    match text.split_once('=') {
        Some((path, value)) if !path.trim().is_empty() => Ok(Override {
            path: path.trim().to_owned(),
            value: value.trim().to_owned(),
            origin: format!("--set {}", path.trim()),
            is_text: false,
        }),
        _ => Err(ScenarioError {
            problems: vec![Problem {
                place: Some(Place::of(Origin::Override("--set".into()), text, 0, text.len())),
                message: format!("`{}` is not PATH=VALUE", origin.chars().take(80).collect::<String>()),
                help: Some("write for example --set crowd.size=50".into()),
            }],
        }),
    }
}

/// A TOML list of texts.
pub(crate) fn toml_list(texts: &[String]) -> String {
    toml::Value::Array(texts.iter().cloned().map(toml::Value::String).collect()).to_string()
}

/// The candidate that `written` is probably meant to be.
pub(crate) fn nearest<'c>(written: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Comparing is quadratic, and nothing that long is a typing error of a short name.
    if written.len() > 40 {
        return None;
    }
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(written, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn place_of(node: Option<&Node>) -> Option<Span> {
    node.map(|node| node.span)
}

fn is_text(node: &Node) -> bool {
    matches!(node.value, Value::Text(_))
}
