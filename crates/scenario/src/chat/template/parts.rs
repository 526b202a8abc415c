//! The messages of a join and the signs of life of a `chat.template`, in a file.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::keys::{SENT, WHO, path_on_server, text, text_of, written};
use super::{ChatVariable, JoinStep, KeepAlive, Pong};
use crate::file::{self, duration};
use crate::keys::AsFile;
use crate::read::{Node, Reader, Value};
use crate::units;

const EXAMPLE: &str =
    "a list of texts, or of tables such as { send = \"JOIN #{room}\", expect = \" 366 \" }";

/// Most messages of a join.
const STEPS_MAX: usize = 32;
/// Shortest time between two signs of life.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// How each is read, written and described.
pub(super) const JOIN: AsFile<Vec<JoinStep>, JoinFile> =
    AsFile { read: join, write: |steps| JoinFile(steps.iter().map(StepFile::of).collect()) };
pub(super) const PONG: AsFile<Pong, PongFile> = AsFile {
    read: pong,
    write: |pong| PongFile { on: pong.on.clone(), send: written(&pong.send) },
};
pub(super) const KEEP_ALIVE: AsFile<KeepAlive, KeepAliveFile> = AsFile {
    read: keep_alive,
    write: |keep_alive| KeepAliveFile {
        every: duration(keep_alive.every),
        send: written(&keep_alive.send),
        expect: keep_alive.expect.as_ref().map(written),
    },
};

/// The messages of a join, one after the other.
#[derive(Serialize, JsonSchema)]
pub(super) struct JoinFile(#[schemars(length(max = 32))] Vec<StepFile>);

/// A message, or one with its answer.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum StepFile {
    /// What is sent.
    Text(String),
    /// What is sent and what has to be answered.
    Answered(AnsweredFile),
}

/// What is sent, and what the server has to answer before the next message.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct AnsweredFile {
    /// The message.
    send: String,
    /// Over server-sent events: the path that it is sent to; default: `post.path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    path: Option<String>,
    /// What has to be in a line of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
}

/// An answer to a sign of life.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PongFile {
    /// How a line begins that asks for one.
    on: String,
    /// The answer; `{rest}` is what follows in that line.
    send: String,
}

/// A sign of life.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct KeepAliveFile {
    /// Time between two of them.
    every: file::Duration,
    /// The message.
    send: String,
    /// What has to be in a line of the answer; default: none is awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
}

impl StepFile {
    fn of(step: &JoinStep) -> Self {
        match (&step.expect, &step.path) {
            (None, None) => Self::Text(written(&step.send)),
            (expect, path) => Self::Answered(AnsweredFile {
                send: written(&step.send),
                path: path.as_ref().map(written),
                expect: expect.as_ref().map(written),
            }),
        }
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

fn join_step(reader: &mut Reader, node: &Node, path: &str) -> Option<JoinStep> {
    if let Value::Text(written) = &node.value {
        let send = text_of(reader, node, path, written, &SENT)?;
        return Some(JoinStep { send, path: None, expect: None });
    }
    let mut fields = reader.table(node, path, EXAMPLE)?;
    if fields.get("send").is_none() {
        reader.fail(node.span, format!("`{path}.send` is missing"), format!("write {EXAMPLE}"));
    }
    let send = text(reader, &mut fields, "send", &SENT);
    let path = path_on_server(reader, &mut fields, "path", "\"/join\"");
    let expect = text(reader, &mut fields, "expect", &WHO);
    reader.finish(&fields);
    Some(JoinStep { send: send?, path, expect })
}

fn pong(reader: &mut Reader, node: &Node, path: &str) -> Option<Pong> {
    const EXAMPLE: &str = "a table such as { on = \"PING\", send = \"PONG{rest}\" }";
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let on = text(reader, &mut fields, "on", &[]);
    let send = text(reader, &mut fields, "send", &[&SENT[..], &[ChatVariable::Rest]].concat());
    if fields.get("on").is_none() || fields.get("send").is_none() {
        reader.fail(
            node.span,
            format!("`{path}` needs `on` and `send`"),
            format!("write {EXAMPLE}"),
        );
    }
    reader.finish(&fields);
    Some(Pong { on: on?.written().to_owned(), send: send? })
}

fn keep_alive(reader: &mut Reader, node: &Node, path: &str) -> Option<KeepAlive> {
    const EXAMPLE: &str = "a table such as { every = \"25s\", send = \"PING throng\" }";
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let every = reader.quantity(&mut fields, "every", "25s", units::duration);
    let send = text(reader, &mut fields, "send", &SENT);
    let expect = text(reader, &mut fields, "expect", &WHO);
    if every.is_some_and(|every| every < EVERY_MIN) {
        let message = format!("`{path}.every` is less than 100 ms");
        reader.fail(fields.span_of("every"), message, "write for example every = \"25s\"");
    }
    if fields.get("every").is_none() || fields.get("send").is_none() {
        reader.fail(
            node.span,
            format!("`{path}` needs `every` and `send`"),
            format!("write {EXAMPLE}"),
        );
    }
    reader.finish(&fields);
    Some(KeepAlive { every: every?, send: send?, expect })
}
