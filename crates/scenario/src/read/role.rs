//! Reads what the participants of a conference do: `publish` and `subscribe` of a `[crowd]`.

use throng_observation::{Codec, Layer};

use super::fields::{Fields, Reader};
use super::tree::{Node, Value};
use crate::role::{CARD_SIZES, LayerWish, Publish, Role, Subscribe};
use crate::units;

const PUBLISH: &str = "\"none\", or a table such as { video = \"240p\", audio = true }";
const LAYERS: &str =
    "\"low\", \"medium\", \"high\", or a list such as [{ after = \"10s\", layer = \"high\" }]";
/// More changes than a person makes in a meeting.
const LAYERS_MAX: usize = 100;
const SUBSCRIBE: &str = "\"all\", \"none\", or a table such as { video = \"none\", audio = \"all\" }";

/// The role of a cohort; `None` when its table says nothing of it.
pub(super) fn role(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Role> {
    let (publish_path, subscribe_path) = (fields.path_of("publish"), fields.path_of("subscribe"));
    let publish = fields.get("publish");
    let subscribe = fields.get("subscribe");
    let connection_per_feed = reader.boolean(fields, "connection_per_feed");
    let layers_path = fields.path_of("layers");
    let layers = fields.get("layers");
    if publish.is_none() && subscribe.is_none() && connection_per_feed.is_none() && layers.is_none() {
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
    Some(role)
}

fn publish(reader: &mut Reader, node: &Node, path: &str) -> Option<Publish> {
    if matches!(&node.value, Value::Text(text) if text == "none") {
        return None;
    }
    let mut fields = reader.table(node, path, PUBLISH)?;
    let video = word(reader, &mut fields, "video", &CARD_SIZES);
    let simulcast = simulcast(reader, &mut fields);
    let codec = word(reader, &mut fields, "codec", &["vp8", "h264"]);
    let audio = reader.boolean(&mut fields, "audio").unwrap_or(true);
    reader.finish(&fields);
    if video.is_none() && simulcast.is_empty() && !audio {
        reader.fail(Some(node.span), format!("`{path}` sends nothing"), "write publish = \"none\"");
    }
    if video.is_some() && !simulcast.is_empty() {
        let message = format!("`{path}` names both video and simulcast");
        reader.fail(Some(node.span), message, "remove video: simulcast names all sizes");
    }
    let codec = if codec.as_deref() == Some("h264") { Codec::H264 } else { Codec::Vp8 };
    Some(Publish { video, simulcast, codec, audio })
}

/// Two or three sizes of the test card, brought into order.
fn simulcast(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<String> {
    let path = fields.path_of("simulcast");
    let mend = format!("write two or three of \"{}\"", CARD_SIZES.join("\", \""));
    let texts = reader.texts(fields, "simulcast", "a list of sizes such as [\"180p\", \"720p\"]");
    let Some(first) = texts.first().map(|(_, node)| node.span) else { return Vec::new() };
    let mut places = Vec::new();
    for (text, node) in &texts {
        match CARD_SIZES.iter().position(|size| size == text) {
            Some(place) => places.push(place),
            None => {
                reader.fail(Some(node.span), format!("`{path}`: the test card has no {text}"), mend.clone());
            }
        }
    }
    if places.len() != texts.len() {
        return Vec::new();
    }
    places.sort_unstable();
    places.dedup();
    if places.len() != texts.len() || !(2..=3).contains(&places.len()) {
        reader.fail(Some(first), format!("`{path}` does not name two or three different sizes"), mend);
        return Vec::new();
    }
    places.into_iter().filter_map(|place| CARD_SIZES.get(place)).map(|size| (*size).to_owned()).collect()
}

/// One layer from the join on, or a list of layers with the moments at which they are asked for.
fn layers(reader: &mut Reader, node: &Node, path: &str) -> Vec<LayerWish> {
    let words = Layer::ALL.map(Layer::key);
    let items = match &node.value {
        Value::Text(text) => {
            let Some(layer) = Layer::from_key(text) else {
                reader.fail(Some(node.span), format!("`{path}` is no layer"), format!("write {LAYERS}"));
                return Vec::new();
            };
            return vec![LayerWish { after: std::time::Duration::ZERO, layer }];
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
    let mut wishes: Vec<LayerWish> = Vec::new();
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
        wishes.extend(layer.map(|layer| LayerWish { after, layer }));
    }
    wishes
}

fn subscribe(reader: &mut Reader, node: &Node, path: &str) -> (Subscribe, Subscribe) {
    let of = |word: Option<String>| match word.as_deref() {
        Some("none") => Subscribe::Nobody,
        _ => Subscribe::All,
    };
    match &node.value {
        Value::Text(text) if text == "all" => (Subscribe::All, Subscribe::All),
        Value::Text(text) if text == "none" => (Subscribe::Nobody, Subscribe::Nobody),
        _ => {
            let Some(mut fields) = reader.table(node, path, SUBSCRIBE) else { return Default::default() };
            let video = of(word(reader, &mut fields, "video", &["all", "none"]));
            let audio = of(word(reader, &mut fields, "audio", &["all", "none"]));
            reader.finish(&fields);
            (video, audio)
        }
    }
}

/// One of a few words.
fn word(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str, words: &[&str]) -> Option<String> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let expected = format!("one of \"{}\"", words.join("\", \""));
    let text = reader.text(node, &path, &expected)?;
    if words.contains(&text.as_str()) {
        return Some(text);
    }
    let mend = match super::nearest(&text, words.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write {expected}"),
    };
    reader.fail(Some(node.span), format!("`{path}` is not {expected}"), mend);
    None
}

#[cfg(test)]
#[path = "role_tests.rs"]
mod tests;
