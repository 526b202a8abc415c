//! The keys of `chat.template`.

use super::http::{HEADERS, POST};
use super::parts::{JOIN, KEEP_ALIVE, PONG};
use super::words::{OneOrMore, SAY, SENT, SUBPROTOCOL, WHO, path, words};
use super::{ChatTemplate, ChatVariable};
use crate::keys::Usual::{LeftOut, Required, Said, Stored, StoredSaid};
use crate::keys::{Flag, Keyed, Maybe, keys};
use crate::read::{Fields, Node, Reader, Value};

/// Texts of which one is looked for.
const PATTERNS: OneOrMore =
    OneOrMore(words(&WHO), "a list of texts such as [\" 433 \", \"ERROR \"]");

const SUBPROTOCOLS: OneOrMore =
    OneOrMore(SUBPROTOCOL, "a list of texts such as [\"text.ircv3.net\"]");

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
        "say": say = SAY, Required("write for example say = \"SAY {text}\"");
        /// `{room}`; participants with the same URL and room are in the same room
        "room": room = words(&[]), StoredSaid("`throng`");
        /// a line that begins with `on` is answered with `send`, in which `{rest}` is what follows
        /// in that line
        "pong": pong = Maybe(PONG), Said("none");
        /// `send` each `every`; with `expect` an answer that does not come within 10 s breaks the
        /// connection
        "keep_alive": keep_alive = Maybe(KEEP_ALIVE), Said("none");
        /// in a line that says that the nickname is taken: the join begins again at the first
        /// message with `{nick}`, with `-2`, `-3`, … behind it
        "nick_taken": nick_taken = Maybe(words(&WHO)), Said("none");
        /// in a line of a join: who is not let in has failed
        "refused": refused = PATTERNS, Said("none");
        /// in a line at any time: who is put out has failed
        "kicked": kicked = PATTERNS, Said("none");
        /// what is sent before the connection is closed
        "leave": leave = Maybe(words(&SENT)), Said("none");
        /// `Sec-WebSocket-Protocol`, in order of preference; over a WebSocket only, as `binary`;
        /// they may have `{n}`, `{room}` and `{token}`
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
        "stream": http.stream = Maybe(path("\"/rooms/{room}/events\"")), Said("the target's URL");
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
        let span = fields.span_of("nick_taken");
        // A variable may be hidden with a secret around it.
        let Some(span) = span.filter(|_| !reader.is_redacted()) else { return };
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
