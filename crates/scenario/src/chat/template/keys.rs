//! The keys of `chat.template`, and its texts.

use std::marker::PhantomData;

use schemars::SchemaGenerator;
use serde_json::{Value as Json, json};

use super::http::{HEADERS, POST};
use super::parts::{JOIN, KEEP_ALIVE, PONG};
use super::{ChatTemplate, ChatText, ChatVariable};
use crate::file::OneOrMany;
use crate::keys::Usual::{LeftOut, Required, Said, Stored, StoredSaid};
use crate::keys::{By, Flag, Form, Keyed, Maybe, Text, keys};
use crate::read::{Fields, Node, Reader, Value};

/// Most patterns of a list.
const PATTERNS_MAX: usize = 32;
/// Longest text, characters.
const CHARS_MAX: usize = 4_096;

/// What a text about the server and the participant may have in it.
pub(super) const WHO: [ChatVariable; 3] =
    [ChatVariable::Nick, ChatVariable::Number, ChatVariable::Room];
/// What is sent may have the token too.
pub(super) const SENT: [ChatVariable; 4] =
    [ChatVariable::Nick, ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];
/// And what is said the text.
const SAID: [ChatVariable; 5] = [
    ChatVariable::Nick,
    ChatVariable::Number,
    ChatVariable::Room,
    ChatVariable::Token,
    ChatVariable::Text,
];

impl Keyed for ChatTemplate {
    const NAME: &'static str = "TemplateFile";
    const MEANING: &'static str = "A chat over WebSocket or server-sent events in the words of its \
        protocol. Texts may have `{nick}`, `{n}` (the participant's number), `{room}`, and, where \
        something is sent, `{token}`; other braces are text. `*` in a text that is expected stands \
        for any characters.";

    keys! {
        /// messages, sent one after the other; after one with `expect` the next one waits for that
        /// answer. The participant is in the room after the last (phase `joined`)
        "join": join = JOIN,
            Required("write for example join = [\"NICK {nick}\", \"JOIN #{room}\"]");
        /// the message that says `{text}`, such as `'{"type":"say","text":"{text}"}'`
        "say": say = Words(&SAID), Required("write for example say = \"SAY {text}\"");
        /// `{room}`; participants with the same URL and room are in the same room
        "room": room = Text { expected: "the name of a room", if_empty: None },
            StoredSaid("`throng`");
        /// a line that begins with `on` is answered with `send`, in which `{rest}` is what follows
        /// in that line
        "pong": pong = Maybe(PONG), Said("none");
        /// `send` each `every`; with `expect` an answer that does not come within 10 s breaks the
        /// connection
        "keep_alive": keep_alive = Maybe(KEEP_ALIVE), Said("none");
        /// in a line that says that the nickname is taken: the join begins again at the first
        /// message with `{nick}`, with `-2`, `-3`, … behind it
        "nick_taken": nick_taken = Maybe(Words(&WHO)), Said("none");
        /// in a line of a join: who is not let in has failed
        "refused": refused = PATTERNS, Said("none");
        /// in a line at any time: who is put out has failed
        "kicked": kicked = PATTERNS, Said("none");
        /// what is sent before the connection is closed
        "leave": leave = Maybe(Words(&SENT)), Said("none");
        /// `Sec-WebSocket-Protocol`, in order of preference; over a WebSocket only, as `binary`
        "subprotocols": subprotocols = SUBPROTOCOLS, Said("none");
        /// messages of the WebSocket are binary, and text in UTF-8
        "binary": binary = Flag, Stored;
        /// the server sends a message to its author too: without it, one's own messages are not due
        /// to oneself
        "echo": echo = Flag, Stored;
        /// over server-sent events: where messages go, `path` for what is said and all that has no
        /// path of its own, `leave`, `keep_alive`, `pong`; `content_type` of their bodies, else
        /// `text/plain;charset=UTF-8`
        "post": http = POST, Said("the target's URL, text");
        /// over server-sent events: path of the event stream, on the target's server as all paths.
        /// They may have the variables, whose values are escaped
        "stream": http.stream = Maybe(SentTo("\"/rooms/{room}/events\"")), Said("the target's URL");
        /// over server-sent events: those of all requests to the target's server; values may have
        /// `{n}`, `{room}` and `{token}`, and are no references (`env:NAME`); other text of them is
        /// stored as `…`
        "headers": http.headers = HEADERS, Said("none");
        /// over server-sent events: the server sends after `Last-Event-ID` what was said while the
        /// stream was broken: it is due, late, and the reconnect counts as resumed
        "replay": http.replay = Flag, LeftOut;
    }

    fn usual() -> Self {
        Self::default()
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if !self.say.has(ChatVariable::Text) {
            let path = fields.path_of("say");
            let message = format!("`{path}` has no `{{text}}`: messages could not be recognised");
            reader.fail(fields.span_of("say"), message, "write for example say = \"SAY {text}\"");
        }
        let Some(span) = fields.span_of("nick_taken") else { return };
        let path = fields.path_of("nick_taken");
        if self.http.stream.as_ref().is_some_and(|stream| stream.has(ChatVariable::Nick)) {
            let message = format!(
                "`{path}` has no effect: `stream` has `{{nick}}`, which is asked for only once"
            );
            reader.fail(span, message, "remove it, or `{nick}` from stream");
        }
        // Messages that could not be read have errors of their own.
        let is_join_read = matches!(
            fields.get("join"),
            Some(Node { value: Value::List(items), .. }) if items.len() == self.join.len()
        );
        if is_join_read && !self.join.iter().any(|step| step.send.has(ChatVariable::Nick)) {
            let message = format!("`{path}` has no effect: `join` sends no `{{nick}}`");
            reader.fail(span, message, "remove it, or write join = [\"NICK {nick}\"]");
        }
    }
}

const SUBPROTOCOLS: By<Vec<String>> = By {
    read: |reader, fields, key| {
        let texts = reader.texts(fields, key, "a list such as [\"text.ircv3.net\"]");
        Some(texts.into_iter().map(|(text, _)| text).collect())
    },
    write: |subprotocols| Some(subprotocols.clone().into()),
    schema: |generator| generator.subschema_for::<Vec<String>>().to_value(),
};

/// Texts of which one is looked for.
const PATTERNS: By<Vec<ChatText>> = By {
    read: |reader, fields, key| Some(patterns(reader, fields, key)),
    write: |patterns| Some(patterns.iter().map(written).collect()),
    schema: |generator| generator.subschema_for::<OneOrMany<String>>().to_value(),
};

/// A text in which these variables have a value.
struct Words(&'static [ChatVariable]);

impl Form<ChatText> for Words {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<ChatText> {
        text(reader, fields, key, self.0)
    }

    fn write(&self, value: &ChatText) -> Option<Json> {
        Some(value.written().into())
    }

    fn schema(&self, _of: PhantomData<ChatText>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "string" })
    }
}

/// A path on the target's server, with an example.
pub(super) struct SentTo(pub(super) &'static str);

impl Form<ChatText> for SentTo {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<ChatText> {
        path_on_server(reader, fields, key, self.0)
    }

    fn write(&self, value: &ChatText) -> Option<Json> {
        Some(value.written().into())
    }

    fn schema(&self, _of: PhantomData<ChatText>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "string", "pattern": "^/" })
    }
}

/// A text as it is in a file.
pub(super) fn written(text: &ChatText) -> String {
    text.written().to_owned()
}

/// A path on the target's server.
pub(super) fn path_on_server(
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

/// The text `key`.
pub(super) fn text(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    allowed: &[ChatVariable],
) -> Option<ChatText> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let written = reader.text(node, &path, "text")?;
    text_of(reader, node, &path, &written, allowed)
}

pub(super) fn text_of(
    reader: &mut Reader,
    node: &Node,
    path: &str,
    written: &str,
    allowed: &[ChatVariable],
) -> Option<ChatText> {
    if written.is_empty() || written.chars().count() > CHARS_MAX {
        let message = format!("`{path}` is empty, or longer than {CHARS_MAX} characters");
        reader.fail(node.span, message, "write the text of one message");
        return None;
    }
    match ChatText::parse(written, allowed) {
        Ok(text) => Some(text),
        Err(error) => {
            reader.fail(node.span, format!("`{path}`: {error}"), error.help);
            None
        }
    }
}

fn patterns(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Vec<ChatText> {
    let path = fields.path_of(key);
    let texts = reader.texts(fields, key, "a list of texts such as [\" 433 \", \"ERROR \"]");
    if texts.len() > PATTERNS_MAX {
        let message = format!("`{path}` has more than {PATTERNS_MAX} texts");
        reader.fail(fields.span_of(key), message, "write fewer; `*` stands for any characters");
        return Vec::new();
    }
    texts.iter().filter_map(|(written, node)| text_of(reader, node, &path, written, &WHO)).collect()
}
