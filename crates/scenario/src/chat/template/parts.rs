//! The messages of a join and the signs of life of a `chat.template`, in a file.

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::words::{SENT, WHO, path, words};
use super::{ChatText, ChatVariable, JoinStep, KeepAlive, Pong};
use crate::keys::Usual::{Required, Said};
use crate::keys::{By, Form as _, Inner, Keyed, Maybe, Table, keys, time};
use crate::read::{Fields, Node, Reader, Value};

const EXAMPLE: &str =
    "a list of texts, or of tables such as { send = \"JOIN #{room}\", expect = \" 366 \" }";

/// Most messages of a join.
const STEPS_MAX: usize = 32;
/// Shortest time between two signs of life.
const EVERY_MIN: Duration = Duration::from_millis(100);

pub(super) const PONG: Inner = Inner("a table such as { on = \"PING\", send = \"PONG{rest}\" }");
pub(super) const KEEP_ALIVE: Inner =
    Inner("a table such as { every = \"25s\", send = \"PING throng\" }");

/// A message of a join is a text, or a table.
pub(super) const JOIN: By<Vec<JoinStep>> = By {
    read: |reader, fields, key| {
        let path = fields.path_of(key);
        join(reader, fields.get(key)?, &path)
    },
    write: |steps| Some(steps.iter().map(written).collect()),
    schema: |generator| {
        let text = words(&SENT).schema(PhantomData, generator);
        let table = generator.subschema_for::<Table<JoinStep>>().to_value();
        json!({ "type": "array", "maxItems": STEPS_MAX, "items": { "anyOf": [text, table] } })
    },
};

impl Keyed for JoinStep {
    const NAME: &'static str = "AnsweredFile";
    const MEANING: &'static str =
        "What is sent, and what the server has to answer before the next message.";

    keys! {
        /// the message
        "send": send = words(&SENT),
            Required("write for example { send = \"JOIN #{room}\", expect = \" 366 \" }");
        /// over server-sent events: the path that it is sent to
        "path": path = Maybe(path("\"/join\"")), Said("`post.path`");
        /// what has to be in a line of the answer
        "expect": expect = Maybe(words(&WHO)), Said("none is awaited");
    }

    fn usual() -> Self {
        Self { send: ChatText::plain(""), path: None, expect: None }
    }
}

impl Keyed for Pong {
    const NAME: &'static str = "PongFile";
    const MEANING: &'static str = "An answer to a sign of life.";

    keys! {
        /// how a line begins that asks for one
        "on": on = words(&[]), Required("write pong = { on = \"PING\", send = \"PONG{rest}\" }");
        /// the answer; `{rest}` is what follows in that line
        "send": send = words(&ANSWERED),
            Required("write pong = { on = \"PING\", send = \"PONG{rest}\" }");
    }

    fn usual() -> Self {
        Self { on: ChatText::plain(""), send: ChatText::plain("") }
    }
}

/// What an answer to a sign of life may have in it.
const ANSWERED: [ChatVariable; 5] = [
    ChatVariable::Nick,
    ChatVariable::Number,
    ChatVariable::Room,
    ChatVariable::Token,
    ChatVariable::Rest,
];

impl Keyed for KeepAlive {
    const NAME: &'static str = "KeepAliveFile";
    const MEANING: &'static str = "A sign of life.";

    keys! {
        /// time between two of them, at least 100 ms
        "every": every = time("25s"), Required("write for example every = \"25s\"");
        /// the message
        "send": send = words(&SENT), Required("write for example send = \"PING throng\"");
        /// what has to be in a line of the answer
        "expect": expect = Maybe(words(&WHO)), Said("none is awaited");
    }

    fn usual() -> Self {
        Self { every: Duration::from_secs(25), send: ChatText::plain(""), expect: None }
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if self.every < EVERY_MIN {
            let message = format!("`{}` is less than 100 ms", fields.path_of("every"));
            reader.fail(fields.span_of("every"), message, "write for example every = \"25s\"");
        }
    }
}

fn written(step: &JoinStep) -> Json {
    match step {
        JoinStep { send, path: None, expect: None } => send.to_string().into(),
        _ => step.write_keys().into_iter().collect(),
    }
}

fn join(reader: &mut Reader, node: &Node, path: &str) -> Option<Vec<JoinStep>> {
    let Value::List(items) = &node.value else {
        reader.fail(node.span, format!("`{path}` is not {EXAMPLE}"), format!("write {EXAMPLE}"));
        return None;
    };
    if items.len() > STEPS_MAX {
        reader.fail(
            node.span,
            format!("`{path}` has more than {STEPS_MAX} messages"),
            "write fewer",
        );
        return None;
    }
    let step = |(index, item): (usize, &Node)| join_step(reader, item, &format!("{path}.{index}"));
    Some(items.iter().enumerate().filter_map(step).collect())
}

/// `None` of a message that could not be read.
fn join_step(reader: &mut Reader, node: &Node, path: &str) -> Option<JoinStep> {
    if matches!(node.value, Value::Text(_)) {
        let send = words(&SENT).of_node(reader, node, path)?;
        return Some(JoinStep { send, path: None, expect: None });
    }
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let step = crate::keys::read(reader, &mut fields, JoinStep::usual());
    (!step.send.written().is_empty()).then_some(step)
}
