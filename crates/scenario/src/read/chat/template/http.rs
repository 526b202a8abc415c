//! Reads where things are on a server of server-sent events: `stream`, `post`, `headers`, `replay`
//! of a `chat.template`.

use super::{SENT, text, text_of};
use crate::chat::{ChatHttp, ChatText, ChatVariable};
use crate::read::fields::{Fields, Reader};
use crate::read::http::{header_path, is_value};
use crate::read::tree::{Entry, Value};
use crate::secret::HIDDEN;

const POST: &str = "a table such as { path = \"/say\", content_type = \"application/json\" }";
const HEADERS: &str = "a table such as { Authorization = \"Bearer {token}\" }";

/// What to do about a header that belongs to the request, or is throng's own; `None` of others.
fn help_for_own(name: &str) -> Option<&'static str> {
    match name {
        "content-type" => Some("write post.content_type"),
        "origin" => Some("write chat.origin"),
        "accept" | "cache-control" | "connection" | "content-length" | "host" | "last-event-id"
        | "te" | "transfer-encoding" | "upgrade" => Some("remove it"),
        _ => None,
    }
}

/// What a header may have in it: the nickname may change while the stream is open.
const IN_HEADERS: [ChatVariable; 3] =
    [ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];

/// The requests of a template.
pub(super) fn http(reader: &mut Reader, template: &mut Fields<'_>) -> ChatHttp {
    let stream = path(reader, template, "stream", "\"/rooms/{room}/events\"");
    let headers = headers(reader, template);
    let replay = reader.boolean(template, "replay").unwrap_or(false);
    let of_post = template.path_of("post");
    let post = template.get("post").and_then(|node| reader.table(node, &of_post, POST));
    let Some(mut post) = post else {
        return ChatHttp { stream, headers, replay, ..ChatHttp::default() };
    };
    let http = ChatHttp {
        stream,
        post: path(reader, &mut post, "path", "\"/say\""),
        leave: path(reader, &mut post, "leave", "\"/leave\""),
        keep_alive: path(reader, &mut post, "keep_alive", "\"/ping\""),
        pong: path(reader, &mut post, "pong", "\"/pong\""),
        content_type: content_type(reader, &mut post),
        headers,
        replay,
    };
    reader.finish(&post);
    http
}

/// A path on the target's server.
pub(super) fn path(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    example: &str,
) -> Option<ChatText> {
    let text = text(reader, fields, key, &SENT)?;
    let written = text.written();
    // The consent of the target's server is for no other.
    if written.starts_with('/')
        && !written.starts_with("//")
        && !written.contains(['\\', '#', ' ', '\n'])
    {
        return Some(text);
    }
    let message = format!("`{}` is not a path on the target's server", fields.path_of(key));
    reader.fail(fields.span_of(key), message, format!("write {key} = {example}"));
    None
}

fn content_type(reader: &mut Reader, post: &mut Fields<'_>) -> Option<String> {
    let path = post.path_of("content_type");
    let node = post.get("content_type")?;
    let text = reader.text(node, &path, "text such as \"application/json\"")?;
    let is_type =
        text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    if is_type && is_value(&text) {
        return Some(text);
    }
    reader.fail(
        node.span,
        format!("`{path}` is not the type of a body"),
        "write content_type = \"application/json\"",
    );
    None
}

fn headers(reader: &mut Reader, template: &mut Fields<'_>) -> Vec<(String, ChatText)> {
    let path = template.path_of("headers");
    let Some(node) = template.get("headers") else { return Vec::new() };
    let Value::Table(entries) = &node.value else {
        reader.fail(node.span, format!("`{path}` is not {HEADERS}"), format!("write {HEADERS}"));
        return Vec::new();
    };
    let headers = entries.iter().filter_map(|entry| header(reader, entry, &path));
    let mut headers: Vec<_> = headers.collect();
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    headers
}

fn header(reader: &mut Reader, entry: &Entry, path: &str) -> Option<(String, ChatText)> {
    let path = header_path(reader, entry, path, help_for_own)?;
    let written = reader.text(&entry.node, &path, "text")?;
    let is_reference = ["env:", "file:"].iter().any(|begin| written.starts_with(begin));
    // Earlier versions took references for values.
    let problem = if reader.is_redacted() && (written == HIDDEN || is_reference) {
        None
    } else if written.contains(HIDDEN) {
        Some("was redacted when this scenario was stored")
    } else if is_reference {
        Some("would be sent as it is written: a header of a chat is no reference")
    } else if is_value(&written) {
        None
    } else {
        Some("has characters that are not printable ASCII, or begins or ends with a space")
    };
    if let Some(problem) = problem {
        let message = format!("`{path}` {problem}");
        let help = if is_reference {
            "write {token}, and target.token = \"env:NAME\""
        } else {
            "write for example \"Bearer {token}\""
        };
        reader.fail(entry.node.span, message, help);
        return None;
    }
    Some((entry.key.clone(), text_of(reader, &entry.node, &path, &written, &IN_HEADERS)?))
}
