//! Reads what the participants of a conference do: `publish` and `subscribe` of a `[crowd]`.

use throng_observation::{Codec, Layer, MediaKind};

use super::fields::{Fields, Reader};
use super::tree::{Node, Value};
use crate::role::{
    CARD_SIZES, LayerRequest, MEDIA_ENDINGS, MediaCodec, MediaFile, PublishConfig, Role, SubscribePolicy,
};
use crate::script::{Action, ScriptStep};
use crate::units;

const PUBLISH: &str = "\"none\", or a table such as { video = \"240p\", audio = true }";
const SUBSCRIBE: &str = "\"all\", \"none\", \"last_speakers(10)\", or a table such as { video = \"last_speakers(10)\", audio = \"all\" }";
/// More things to do than a script of any use has.
const CUES_MAX: usize = 1_000;
const LAYERS: &str =
    "\"low\", \"medium\", \"high\", or a list such as [{ after = \"10s\", layer = \"high\" }]";
/// More changes than a person makes in a meeting.
const LAYERS_MAX: usize = 100;

/// The role of a cohort; `None` when its table says nothing of it.
pub(super) fn role(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Role> {
    let (publish_path, subscribe_path) = (fields.path_of("publish"), fields.path_of("subscribe"));
    let publish = fields.get("publish");
    let subscribe = fields.get("subscribe");
    let connection_per_feed = reader.boolean(fields, "connection_per_feed");
    let layers_path = fields.path_of("layers");
    let layers = fields.get("layers");
    let speaking_weight = reader
        .integer(fields, "speaking_weight", 0, 1_000)
        .and_then(|speaking_weight| u32::try_from(speaking_weight).ok());
    let script = script(reader, fields);
    if publish.is_none()
        && subscribe.is_none()
        && connection_per_feed.is_none()
        && layers.is_none()
        && speaking_weight.is_none()
        && script.is_empty()
    {
        return None;
    }
    let mut role = Role::default();
    if let Some(node) = publish {
        role.publish = self::publish(reader, node, &publish_path);
    }
    if let Some(node) = subscribe {
        (role.video, role.audio) = self::subscribe(reader, node, &subscribe_path);
    }
    role.connection_per_feed = connection_per_feed.unwrap_or(false);
    if let Some(node) = layers {
        role.layers = self::layers(reader, node, &layers_path);
    }
    role.speaking_weight = speaking_weight.unwrap_or(role.speaking_weight);
    role.script = script;
    Some(role)
}

fn publish(reader: &mut Reader, node: &Node, path: &str) -> Option<PublishConfig> {
    if matches!(&node.value, Value::Text(text) if text == "none") {
        return None;
    }
    let mut fields = reader.table(node, path, PUBLISH)?;
    let codec_span = fields.get("codec").map(|node| node.span);
    let codec =
        word(reader, &mut fields, "codec", &MediaCodec::NAMES).and_then(|n| MediaCodec::from_name(&n));
    let fps = reader.positive(&mut fields, "fps").filter(|fps| (0.1..=1_000.0).contains(fps));
    let ssrc = |reader: &mut Reader, fields: &mut Fields<'_>, key| {
        reader.integer(fields, key, 0, u64::from(u32::MAX)).and_then(|ssrc| u32::try_from(ssrc).ok())
    };
    let (video_ssrc, audio_ssrc) =
        (ssrc(reader, &mut fields, "ssrc"), ssrc(reader, &mut fields, "audio_ssrc"));
    let (video, video_file) = match file(reader, &mut fields, "video") {
        Some(path) => {
            let fps_milli = fps.map(|fps| (fps * 1e3).round() as u32);
            (None, Some(MediaFile { path, codec, fps_milli, ssrc: video_ssrc }))
        }
        None => (word(reader, &mut fields, "video", &CARD_SIZES), None),
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
    reader.finish(&fields);
    let has_picture = video.is_some() || video_file.is_some() || !simulcast.is_empty();
    if let Some(codec) = codec.filter(|_| !has_picture && reader.is_clean()) {
        // The test card, unless a file is meant: only that comes in other codecs.
        let video = if matches!(codec.name(), "vp8" | "h264") { "240p" } else { "FILE" };
        let message =
            format!("`{path}.codec` is that of a picture, and no picture is sent: `video` is missing");
        let help = format!("add video = \"{video}\", or remove codec to send sound alone");
        reader.fail(codec_span, message, help);
        return None;
    }
    let codec = match codec.map(MediaCodec::codec) {
        None | Some(Codec::Vp8) => Codec::Vp8,
        Some(Codec::H264) => Codec::H264,
        Some(other) => {
            if video_file.is_none() {
                let message = format!("the test card does not come in {}", other.name());
                reader.fail(
                    codec_span,
                    message,
                    "write codec = \"vp8\" or \"h264\", or name a file as `video`",
                );
            }
            other
        }
    };
    let publish = PublishConfig { video, simulcast, codec, audio, video_file, audio_file, adapts };
    if !publish.has_video() && !audio {
        reader.fail(Some(node.span), format!("`{path}` sends nothing"), "write publish = \"none\"");
    }
    if (publish.video.is_some() || publish.video_file.is_some()) && !publish.simulcast.is_empty() {
        let message = format!("`{path}` names both video and simulcast");
        reader.fail(Some(node.span), message, "remove video: simulcast names all sizes");
    }
    Some(publish)
}

/// The path of a media file, where the value is one.
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
        reader.fail(
            Some(node.span),
            format!("`{path}` is no media file by its name"),
            format!("name a file with one of the endings {endings}"),
        );
        return Some(text.clone());
    }
    None
}

/// Two or three sizes of the test card, brought into order.
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
                reader.fail(Some(node.span), format!("`{path}`: the test card has no {text}"), help.clone());
            }
        }
    }
    if places.len() != texts.len() {
        return Vec::new();
    }
    places.sort_unstable();
    places.dedup();
    if places.len() != texts.len() || !(2..=3).contains(&places.len()) {
        reader.fail(Some(first), format!("`{path}` does not name two or three different sizes"), help);
        return Vec::new();
    }
    places.into_iter().filter_map(|place| CARD_SIZES.get(place)).map(|size| (*size).to_owned()).collect()
}

/// One layer from the join on, or a list of layers with the moments at which they are asked for.
fn layers(reader: &mut Reader, node: &Node, path: &str) -> Vec<LayerRequest> {
    let words = Layer::ALL.map(Layer::key);
    let items = match &node.value {
        Value::Text(text) => {
            let Some(layer) = Layer::from_key(text) else {
                reader.fail(Some(node.span), format!("`{path}` is no layer"), format!("write {LAYERS}"));
                return Vec::new();
            };
            return vec![LayerRequest { after: std::time::Duration::ZERO, layer }];
        }
        Value::List(items) if (1..=LAYERS_MAX).contains(&items.len()) => items,
        _ => {
            reader.fail(
                Some(node.span),
                format!("`{path}` is neither a layer nor a list"),
                format!("write {LAYERS}"),
            );
            return Vec::new();
        }
    };
    let mut wishes: Vec<LayerRequest> = Vec::new();
    for item in items {
        let Some(mut fields) = reader.table(item, path, LAYERS) else { continue };
        let after = reader.quantity(&mut fields, "after", "10s", units::duration).unwrap_or_default();
        let layer = word(reader, &mut fields, "layer", &words).and_then(|word| Layer::from_key(&word));
        if fields.get("layer").is_none() {
            reader.fail(Some(item.span), format!("`{path}` names no layer"), format!("write {LAYERS}"));
        }
        reader.finish(&fields);
        if wishes.last().is_some_and(|last| last.after > after) {
            reader.fail(Some(item.span), format!("`{path}` is not in order"), "write the earliest first");
        }
        wishes.extend(layer.map(|layer| LayerRequest { after, layer }));
    }
    wishes
}

fn subscribe(reader: &mut Reader, node: &Node, path: &str) -> (SubscribePolicy, SubscribePolicy) {
    if let Value::Text(_) = &node.value {
        let whom = whom(reader, node, path).unwrap_or_default();
        return (whom, whom);
    }
    let Some(mut fields) = reader.table(node, path, SUBSCRIBE) else { return Default::default() };
    let mut of = |key: &'static str| {
        let path = fields.path_of(key);
        fields.get(key).and_then(|node| whom(reader, node, &path)).unwrap_or_default()
    };
    let both = (of("video"), of("audio"));
    reader.finish(&fields);
    both
}

fn whom(reader: &mut Reader, node: &Node, path: &str) -> Option<SubscribePolicy> {
    let expected = "one of \"all\", \"none\", \"last_speakers(10)\"";
    let text = reader.text(node, path, expected)?;
    let whom = SubscribePolicy::from_name(&text);
    if whom.is_none() {
        let near = super::nearest(&text, ["all", "none", "last_speakers(10)"].into_iter());
        let help =
            near.map_or_else(|| format!("write {expected}"), |near| format!("did you mean \"{near}\"?"));
        reader.fail(Some(node.span), format!("`{path}` is not {expected}"), help);
    }
    whom
}

const CUE: &str = "a table such as { at = \"30s\", mute = \"audio\", for = \"10s\" }";

fn script(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<ScriptStep> {
    let path = fields.path_of("script");
    let Some(node) = fields.get("script") else { return Vec::new() };
    let items = match &node.value {
        Value::List(items) if items.len() <= CUES_MAX => items.as_slice(),
        Value::Table(_) => std::slice::from_ref(node),
        _ => {
            let message = format!("`{path}` is not a list of at most {CUES_MAX} tables");
            reader.fail(Some(node.span), message, format!("write a list of tables, each {CUE}"));
            return Vec::new();
        }
    };
    items.iter().filter_map(|item| cue(reader, item, &path)).collect()
}

fn cue(reader: &mut Reader, node: &Node, path: &str) -> Option<ScriptStep> {
    let mut fields = reader.table(node, path, CUE)?;
    let at = reader.quantity(&mut fields, "at", "30s", units::duration);
    let lasts = reader.quantity(&mut fields, "for", "10s", units::duration);
    let has =
        (fields.get("at").is_some(), fields.get("mute").is_some(), fields.get("screen_share").is_some());
    let kind = match word(reader, &mut fields, "mute", &["audio", "video"]).as_deref() {
        Some("video") => MediaKind::Video,
        _ => MediaKind::Audio,
    };
    let screen = word(reader, &mut fields, "screen_share", &CARD_SIZES);
    reader.finish(&fields);
    let action = match has {
        (true, true, false) => Action::Mute(kind),
        (true, false, true) => Action::ScreenShare(screen?),
        _ => {
            let message = format!("`{path}` needs `at` and exactly one of `mute` and `screen_share`");
            reader.fail(Some(node.span), message, format!("write {CUE}"));
            return None;
        }
    };
    Some(ScriptStep { at: at?, lasts, action })
}

/// One of a few words.
pub(super) fn word(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    words: &[&str],
) -> Option<String> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let expected = format!("one of \"{}\"", words.join("\", \""));
    let text = reader.text(node, &path, &expected)?;
    if words.contains(&text.as_str()) {
        return Some(text);
    }
    let help = match super::nearest(&text, words.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write {expected}"),
    };
    reader.fail(Some(node.span), format!("`{path}` is not {expected}"), help);
    None
}

#[cfg(test)]
#[path = "role_tests.rs"]
mod tests;
