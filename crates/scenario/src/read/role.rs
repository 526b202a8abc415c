//! Reads the behaviour of participants in a conference: `publish`, `subscribe` and others of a
//! `[crowd]`.

use throng_observation::{Codec, Layer, MediaKind};

use super::fields::{Fields, Reader};
use super::tree::{Node, Span, Value};
use crate::keys;
use crate::role::{
    CARD_SIZES, LayerRequest, MEDIA_ENDINGS, MediaCodec, MediaFile, PublishConfig, Role,
    SubscribePolicy, Subscription,
};
use crate::script::{Action, ScriptStep};
use crate::suggestion::nearest;
use crate::units;

const PUBLISH: &str = "\"none\", or a table such as { video = \"240p\", audio = true }";
const SUBSCRIBE: &str = "\"all\", \"none\", \"last_speakers(10)\", or a table such as { video = \
                         \"last_speakers(10)\", audio = \"all\" }";
const PLAYER: &str = "a table such as { buffer = \"30s\", position = \"random\" }";
const CHAT: &str = "a table such as { every = \"2m\", vcards = \"authors\" }";
/// Most steps of a script.
const STEPS_MAX: usize = 1_000;
const LAYERS: &str =
    "\"low\", \"medium\", \"high\", or a list such as [{ after = \"10s\", layer = \"high\" }]";
/// Most layer changes of a cohort.
const LAYERS_MAX: usize = 100;

/// The role of a cohort; `None` if its table has no key of a role.
pub(super) fn role(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Role> {
    const KEYS: [&str; 8] = [
        "publish",
        "subscribe",
        "connection_per_feed",
        "layers",
        "speaking_weight",
        "script",
        "player",
        "chat",
    ];
    let is_default = KEYS.map(|key| fields.get(key).is_none()).iter().all(|is_absent| *is_absent);
    let mut role = Role::default();
    let path = fields.path_of("publish");
    if let Some(node) = fields.get("publish") {
        role.publish = publish(reader, node, &path);
    }
    let path = fields.path_of("subscribe");
    if let Some(node) = fields.get("subscribe") {
        role.subscribe = subscribe(reader, node, &path);
    }
    role.connection_per_feed = reader.boolean(fields, "connection_per_feed").unwrap_or(false);
    let path = fields.path_of("layers");
    role.layers = fields.get("layers").map(|node| layers(reader, node, &path)).unwrap_or_default();
    let weight = reader.integer(fields, "speaking_weight", 0, 1_000);
    role.speaking_weight = weight.unwrap_or(role.speaking_weight);
    role.script = script(reader, fields);
    role.player = keys::optional(reader, fields, "player", PLAYER).unwrap_or_default();
    role.chat = keys::optional(reader, fields, "chat", CHAT).unwrap_or_default();
    (!is_default).then_some(role)
}

fn publish(reader: &mut Reader, node: &Node, path: &str) -> Option<PublishConfig> {
    if matches!(&node.value, Value::Text(text) if text == "none") {
        return None;
    }
    let mut fields = reader.table(node, path, PUBLISH)?;
    let codec = reader
        .word(&mut fields, "codec", &MediaCodec::NAMES)
        .and_then(|name| MediaCodec::from_name(&name));
    let fps = reader.positive(&mut fields, "fps");
    if fps.is_some_and(|fps| !(0.1..=1_000.0).contains(&fps)) {
        let message = format!("`{path}.fps` must be from 0.1 to 1000");
        reader.fail(fields.span_of("fps"), message, "write fps = 30");
    }
    let ssrc_max = u64::from(u32::MAX);
    let video_ssrc = reader.integer(&mut fields, "ssrc", 0, ssrc_max);
    let audio_ssrc = reader.integer(&mut fields, "audio_ssrc", 0, ssrc_max);
    let video_file = file(reader, &mut fields, "video").map(|path| MediaFile {
        path,
        codec,
        fps_milli: fps.map(|fps| (fps * 1e3).round() as u32),
        ssrc: video_ssrc,
    });
    let video = match &video_file {
        Some(_) => None,
        None => reader.word(&mut fields, "video", &CARD_SIZES),
    };
    let simulcast = simulcast(reader, &mut fields);
    let audio_file = file(reader, &mut fields, "audio").map(|path| MediaFile {
        path,
        codec: MediaCodec::from_name("opus"),
        fps_milli: None,
        ssrc: audio_ssrc,
    });
    let audio = audio_file.is_some() || reader.boolean(&mut fields, "audio").unwrap_or(true);
    let adapts = reader.boolean(&mut fields, "adapt").unwrap_or(true);
    let burns_clock = reader.boolean(&mut fields, "burn_clock").unwrap_or(false);
    reader.finish(&fields);
    let (has_video_file, has_audio_file) = (video_file.is_some(), audio_file.is_some());
    let of_files = [
        ("fps", "video", has_video_file),
        ("ssrc", "video", has_video_file),
        ("audio_ssrc", "audio", has_audio_file),
    ];
    for (key, media, _) in of_files.into_iter().filter(|(.., has_file)| !has_file) {
        if let Some(span) = fields.span_of(key) {
            let message = format!("`{path}.{key}` has no effect: `{media}` is not a file");
            reader.fail(span, message, format!("remove {key}, or name a file as `{media}`"));
        }
    }
    let publish = PublishConfig {
        video,
        simulcast,
        codec: Codec::Vp8,
        audio,
        video_file,
        audio_file,
        adapts,
        burns_clock,
    };
    let codec = test_card_codec(reader, &publish, codec, (path, fields.span_of("codec")))?;
    if !publish.has_video() && !audio {
        reader.fail(
            node.span,
            format!("`{path}` sends neither video nor audio"),
            "write publish = \"none\"",
        );
    }
    if (publish.video.is_some() || publish.video_file.is_some()) && !publish.simulcast.is_empty() {
        let message = format!("`{path}` has both video and simulcast");
        reader.fail(node.span, message, "remove video: simulcast lists all sizes");
    }
    Some(PublishConfig { codec, ..publish })
}

/// The codec of the published video; `None` if there is no video. The test card comes in VP8 and
/// H.264, other codecs from files only.
fn test_card_codec(
    reader: &mut Reader,
    publish: &PublishConfig,
    codec: Option<MediaCodec>,
    (path, span): (&str, Option<Span>),
) -> Option<Codec> {
    let Some(codec) = codec else { return Some(Codec::Vp8) };
    if !publish.has_video() && reader.is_clean() {
        let video = if matches!(codec.name(), "vp8" | "h264") { "240p" } else { "FILE" };
        let message = format!("`{path}.codec` has no effect: `video` is missing");
        reader.fail(
            span,
            message,
            format!("add video = \"{video}\", or remove codec to send audio only"),
        );
        return None;
    }
    let codec = codec.codec();
    if !matches!(codec, Codec::Vp8 | Codec::H264) && publish.video_file.is_none() {
        let message = format!("`{path}.codec`: there is no test card in {}", codec.name());
        reader.fail(span, message, "write codec = \"vp8\" or \"h264\", or name a file as `video`");
    }
    Some(codec)
}

/// The path of a media file; `None` if the value is none.
fn file(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let Value::Text(text) = &node.value else { return None };
    let lower = text.to_ascii_lowercase();
    if MEDIA_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        return Some(text.clone());
    }
    if text.contains(['.', '/']) {
        let endings = MEDIA_ENDINGS.join(", ");
        let message = format!("`{path}` has no known file name extension");
        reader.fail(
            node.span,
            message,
            format!("name a file with one of the extensions {endings}"),
        );
        return Some(text.clone());
    }
    None
}

/// Two or three sizes of the test card, in ascending order.
fn simulcast(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<String> {
    let path = fields.path_of("simulcast");
    let help = format!("write two or three of \"{}\"", CARD_SIZES.join("\", \""));
    let texts = reader.texts(fields, "simulcast", "a list of sizes such as [\"180p\", \"720p\"]");
    let Some(first) = texts.first().map(|(_, node)| node.span) else { return Vec::new() };
    let mut places = Vec::new();
    for (text, node) in &texts {
        match CARD_SIZES.iter().position(|size| size == text) {
            Some(place) => places.push(place),
            None => {
                let shown: String = text.chars().take(60).collect();
                reader.fail(
                    node.span,
                    format!("`{path}`: `{shown}` is not a size of the test card"),
                    help.clone(),
                );
            }
        }
    }
    if places.len() != texts.len() {
        return Vec::new();
    }
    places.sort_unstable();
    places.dedup();
    if places.len() != texts.len() || !(2..=3).contains(&places.len()) {
        reader.fail(first, format!("`{path}` must have two or three different sizes"), help);
        return Vec::new();
    }
    places
        .into_iter()
        .filter_map(|place| CARD_SIZES.get(place))
        .map(|size| (*size).to_owned())
        .collect()
}

/// One layer from the join on, or a list of layers and the times of their requests.
fn layers(reader: &mut Reader, node: &Node, path: &str) -> Vec<LayerRequest> {
    let words = Layer::ALL.map(Layer::key);
    let items = match &node.value {
        Value::Text(text) => {
            let Some(layer) = Layer::from_key(text) else {
                reader.fail(
                    node.span,
                    format!("`{path}` is not a layer"),
                    format!("write {LAYERS}"),
                );
                return Vec::new();
            };
            return vec![LayerRequest { after: std::time::Duration::ZERO, layer }];
        }
        Value::List(items) if (1..=LAYERS_MAX).contains(&items.len()) => items,
        _ => {
            let message = format!("`{path}` is neither a layer nor a list of 1 to {LAYERS_MAX}");
            reader.fail(node.span, message, format!("write {LAYERS}"));
            return Vec::new();
        }
    };
    let mut requests: Vec<LayerRequest> = Vec::new();
    for item in items {
        let Some(mut fields) = reader.table(item, path, LAYERS) else { continue };
        let after =
            reader.quantity(&mut fields, "after", "10s", units::duration).unwrap_or_default();
        let layer =
            reader.word(&mut fields, "layer", &words).and_then(|word| Layer::from_key(&word));
        if fields.get("layer").is_none() {
            reader.fail(
                item.span,
                format!("`{path}`: `layer` is missing"),
                format!("write {LAYERS}"),
            );
        }
        reader.finish(&fields);
        if requests.last().is_some_and(|last| last.after > after) {
            reader.fail(
                item.span,
                format!("`{path}` is not in order of time"),
                "write the earliest first",
            );
        }
        requests.extend(layer.map(|layer| LayerRequest { after, layer }));
    }
    requests
}

fn subscribe(reader: &mut Reader, node: &Node, path: &str) -> Subscription {
    if let Value::Text(_) = &node.value {
        let whom = whom(reader, node, path).unwrap_or_default();
        return Subscription { video: whom, audio: whom };
    }
    let Some(mut fields) = reader.table(node, path, SUBSCRIBE) else {
        return Subscription::default();
    };
    let mut of = |key: &'static str| {
        let path = fields.path_of(key);
        fields.get(key).and_then(|node| whom(reader, node, &path)).unwrap_or_default()
    };
    let both = Subscription { video: of("video"), audio: of("audio") };
    reader.finish(&fields);
    both
}

fn whom(reader: &mut Reader, node: &Node, path: &str) -> Option<SubscribePolicy> {
    let expected = "one of \"all\", \"none\", \"last_speakers(10)\"";
    let text = reader.text(node, path, expected)?;
    let whom = SubscribePolicy::from_name(&text);
    if whom.is_none() {
        let near = nearest(&text, ["all", "none", "last_speakers(10)"].into_iter());
        let help = near.map_or_else(
            || format!("write {expected}"),
            |near| format!("did you mean \"{near}\"?"),
        );
        reader.fail(node.span, format!("`{path}` is not {expected}"), help);
    }
    whom
}

const STEP: &str = "a table such as { at = \"30s\", mute = \"audio\", for = \"10s\" }";

fn script(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<ScriptStep> {
    let path = fields.path_of("script");
    let Some(node) = fields.get("script") else { return Vec::new() };
    let items = match &node.value {
        Value::List(items) if items.len() <= STEPS_MAX => items.as_slice(),
        Value::Table(_) => std::slice::from_ref(node),
        _ => {
            let message = format!("`{path}` is not a list of at most {STEPS_MAX} tables");
            reader.fail(node.span, message, format!("write a list of tables, each {STEP}"));
            return Vec::new();
        }
    };
    items.iter().filter_map(|item| script_step(reader, item, &path)).collect()
}

fn script_step(reader: &mut Reader, node: &Node, path: &str) -> Option<ScriptStep> {
    let mut fields = reader.table(node, path, STEP)?;
    let at = reader.quantity(&mut fields, "at", "30s", units::duration);
    let lasts = reader.quantity(&mut fields, "for", "10s", units::duration);
    let has = (
        fields.get("at").is_some(),
        fields.get("mute").is_some(),
        fields.get("screen_share").is_some(),
    );
    let kind = match reader.word(&mut fields, "mute", &["audio", "video"]).as_deref() {
        Some("video") => MediaKind::Video,
        _ => MediaKind::Audio,
    };
    let screen = reader.word(&mut fields, "screen_share", &CARD_SIZES);
    reader.finish(&fields);
    let action = match has {
        (true, true, false) => Action::Mute(kind),
        (true, false, true) => Action::ScreenShare(screen?),
        _ => {
            let message =
                format!("`{path}` needs `at` and exactly one of `mute` and `screen_share`");
            reader.fail(node.span, message, format!("write {STEP}"));
            return None;
        }
    };
    Some(ScriptStep { at: at?, lasts, action })
}

#[cfg(test)]
#[path = "role_tests.rs"]
mod tests;
