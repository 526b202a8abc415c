//! The schema of `chat.template`, and how it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::chat::{ChatTemplate, ChatText, JoinStep};
mod http;

use http::{PostFile, headers, post};

use crate::file::Duration;
use crate::file::written::duration;

/// A chat over WebSocket or server-sent events in the words of its protocol. Texts may have
/// `{nick}`, `{n}` (the participant's number), `{room}`, and, where something is sent, `{token}`;
/// other braces are text. `*` in a text that is expected stands for any characters.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TemplateFile {
    /// `{room}`; default `throng`.
    #[schemars(default)]
    room: String,
    /// `Sec-WebSocket-Protocol`, in order of preference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    subprotocols: Vec<String>,
    /// The messages of a join, one after the other.
    #[schemars(length(max = 32))]
    join: Vec<StepFile>,
    /// The message that says `{text}`.
    say: String,
    /// How the server's signs of life are answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pong: Option<PongFile>,
    /// Own signs of life.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<KeepAliveFile>,
    /// In a line that says that the nickname is taken: `-2`, `-3`, … is tried behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nick_taken: Option<String>,
    /// In a line that says that the participant is not let in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "super::OneOrMany<String>")]
    refused: Vec<String>,
    /// In a line that says that it was put out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "super::OneOrMany<String>")]
    kicked: Vec<String>,
    /// The message of who leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    leave: Option<String>,
    /// Messages are binary; default `false`.
    #[schemars(default)]
    binary: bool,
    /// The server sends what somebody says to its author too; default `true`.
    #[schemars(default)]
    echo: bool,
    /// Over server-sent events: the path of the event stream; default: that of the target's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    stream: Option<String>,
    /// Over server-sent events: where messages are sent to (`POST`).
    #[serde(skip_serializing_if = "Option::is_none")]
    post: Option<PostFile>,
    /// Over server-sent events: further headers of all requests; values may have `{n}`, `{room}`
    /// and `{token}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    headers: BTreeMap<String, String>,
    /// Over server-sent events: the server sends after `Last-Event-ID` what was said while the
    /// stream was broken; default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<bool>,
}

/// A message, or one with its answer.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum StepFile {
    /// What is sent.
    Text(String),
    /// What is sent and what has to be answered.
    Answered(AnsweredFile),
}

/// What is sent, and what the server has to answer before the next message.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct AnsweredFile {
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
struct PongFile {
    /// How a line begins that asks for one.
    on: String,
    /// The answer; `{rest}` is what follows in that line.
    send: String,
}

/// A sign of life.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct KeepAliveFile {
    /// Time between two of them.
    every: Duration,
    /// The message.
    send: String,
    /// What has to be in a line of the answer; default: none is awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
}

fn written(text: &ChatText) -> String {
    text.written().to_owned()
}

/// The template as in a file.
pub(crate) fn template(template: &ChatTemplate) -> TemplateFile {
    let step = |step: &JoinStep| match (&step.expect, &step.path) {
        (None, None) => StepFile::Text(written(&step.send)),
        (expect, path) => StepFile::Answered(AnsweredFile {
            send: written(&step.send),
            path: path.as_ref().map(written),
            expect: expect.as_ref().map(written),
        }),
    };
    let all = |texts: &[ChatText]| texts.iter().map(written).collect();
    TemplateFile {
        room: template.room.clone(),
        subprotocols: template.subprotocols.clone(),
        join: template.join.iter().map(step).collect(),
        say: written(&template.say),
        pong: template
            .pong
            .as_ref()
            .map(|pong| PongFile { on: pong.on.clone(), send: written(&pong.send) }),
        keep_alive: template.keep_alive.as_ref().map(|keep_alive| KeepAliveFile {
            every: duration(keep_alive.every),
            send: written(&keep_alive.send),
            expect: keep_alive.expect.as_ref().map(written),
        }),
        nick_taken: template.nick_taken.as_ref().map(written),
        refused: all(&template.refused),
        kicked: all(&template.kicked),
        leave: template.leave.as_ref().map(written),
        binary: template.binary,
        echo: template.echo,
        stream: template.http.stream.as_ref().map(written),
        post: post(&template.http),
        headers: headers(&template.http),
        replay: template.http.replay.then_some(true),
    }
}
