//! Reads what the participants of a conference do: `publish` and `subscribe` of a `[crowd]`.

use throng_observation::Codec;

use super::fields::{Fields, Reader};
use super::tree::{Node, Value};
use crate::role::{CARD_SIZES, Publish, Role, Subscribe};

const PUBLISH: &str = "\"none\", or a table such as { video = \"240p\", audio = true }";
const SUBSCRIBE: &str = "\"all\", \"none\", or a table such as { video = \"none\", audio = \"all\" }";

/// The role of a cohort; `None` when its table says nothing of it.
pub(super) fn role(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Role> {
    let (publish_path, subscribe_path) = (fields.path_of("publish"), fields.path_of("subscribe"));
    let publish = fields.get("publish");
    let subscribe = fields.get("subscribe");
    let connection_per_feed = reader.boolean(fields, "connection_per_feed");
    if publish.is_none() && subscribe.is_none() && connection_per_feed.is_none() {
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
    Some(role)
}

fn publish(reader: &mut Reader, node: &Node, path: &str) -> Option<Publish> {
    if matches!(&node.value, Value::Text(text) if text == "none") {
        return None;
    }
    let mut fields = reader.table(node, path, PUBLISH)?;
    let video = word(reader, &mut fields, "video", &CARD_SIZES);
    let codec = word(reader, &mut fields, "codec", &["vp8", "h264"]);
    let audio = reader.boolean(&mut fields, "audio").unwrap_or(true);
    reader.finish(&fields);
    if video.is_none() && !audio {
        reader.fail(Some(node.span), format!("`{path}` sends nothing"), "write publish = \"none\"");
    }
    let codec = if codec.as_deref() == Some("h264") { Codec::H264 } else { Codec::Vp8 };
    Some(Publish { video, codec, audio })
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
