//! Reads `chat.template`: a chat in the words of its protocol.

use std::time::Duration;

mod http;

use super::super::fields::{Fields, Reader};
use super::super::tree::{Node, Value};
use crate::chat::{ChatTemplate, ChatText, ChatVariable, JoinStep, KeepAlive, Pong};
use crate::units;

const EXAMPLE: &str = "a table such as { join = [\"JOIN {room}\"], say = \"SAY {text}\" }";
const JOIN: &str =
    "a list of texts, or of tables such as { send = \"JOIN #{room}\", expect = \" 366 \" }";

/// Most messages of a join, and most patterns of a list.
const ITEMS_MAX: usize = 32;
/// Longest text, characters.
const CHARS_MAX: usize = 4_096;
/// Shortest time between two signs of life.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// What a text about the server and the participant may have in it.
const WHO: [ChatVariable; 3] = [ChatVariable::Nick, ChatVariable::Number, ChatVariable::Room];
/// What is sent may have the token too.
const SENT: [ChatVariable; 4] =
    [ChatVariable::Nick, ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];

/// The template of a chat; `None` if it is not complete.
pub(crate) fn template(reader: &mut Reader, node: &Node, path: &str) -> Option<ChatTemplate> {
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let fields = &mut fields;
    let subprotocols = reader.texts(fields, "subprotocols", "a list such as [\"text.ircv3.net\"]");
    let join = join(reader, fields);
    let say = text(reader, fields, "say", &[&SENT[..], &[ChatVariable::Text]].concat());
    if fields.get("say").is_none() {
        reader.fail(
            node.span,
            format!("`{path}.say` is missing"),
            "write for example say = \"SAY {text}\"",
        );
    }
    if say.as_ref().is_some_and(|say| !say.has(ChatVariable::Text)) {
        let message = format!("`{path}.say` has no `{{text}}`: messages could not be recognised");
        reader.fail(fields.span_of("say"), message, "write for example say = \"SAY {text}\"");
    }
    let (room, pong, keep_alive) =
        (room(reader, fields), pong(reader, fields), keep_alive(reader, fields));
    let nick_taken = text(reader, fields, "nick_taken", &WHO);
    let (refused, kicked) =
        (patterns(reader, fields, "refused"), patterns(reader, fields, "kicked"));
    let leave = text(reader, fields, "leave", &SENT);
    let binary = reader.boolean(fields, "binary").unwrap_or(false);
    let echo = reader.boolean(fields, "echo").unwrap_or(true);
    let http = http::http(reader, fields);
    if let (Some(span), Some(stream)) = (fields.span_of("nick_taken"), &http.stream)
        && stream.has(ChatVariable::Nick)
    {
        let message = format!(
            "`{path}.nick_taken` has no effect: `stream` has `{{nick}}`, which is asked for only \
             once"
        );
        reader.fail(span, message, "remove it, or `{nick}` from stream");
    }
    let says_who = join.iter().flatten().any(|step| step.send.has(ChatVariable::Nick));
    if let (Some(span), false, Some(_)) = (fields.span_of("nick_taken"), says_who, &join) {
        let message = format!("`{path}.nick_taken` has no effect: `join` sends no `{{nick}}`");
        reader.fail(span, message, "remove it, or write join = [\"NICK {nick}\"]");
    }
    reader.finish(fields);
    Some(ChatTemplate {
        room,
        subprotocols: subprotocols.into_iter().map(|(text, _)| text).collect(),
        join: join?,
        say: say?,
        pong,
        keep_alive,
        nick_taken,
        refused,
        kicked,
        leave,
        binary,
        echo,
        http,
    })
}

fn room(reader: &mut Reader, fields: &mut Fields<'_>) -> String {
    let path = fields.path_of("room");
    let node = fields.get("room");
    node.and_then(|node| reader.text(node, &path, "the name of a room"))
        .unwrap_or_else(|| "throng".to_owned())
}

/// The text `key`.
fn text(
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

fn text_of(
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
    if texts.len() > ITEMS_MAX {
        let message = format!("`{path}` has more than {ITEMS_MAX} texts");
        reader.fail(fields.span_of(key), message, "write fewer; `*` stands for any characters");
        return Vec::new();
    }
    texts.iter().filter_map(|(written, node)| text_of(reader, node, &path, written, &WHO)).collect()
}

fn join(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Vec<JoinStep>> {
    let path = fields.path_of("join");
    let Some(node) = fields.get("join") else {
        let message = format!("`{path}` is missing");
        reader.fail(
            fields.span,
            message,
            "write for example join = [\"NICK {nick}\", \"JOIN #{room}\"]",
        );
        return None;
    };
    let Value::List(items) = &node.value else {
        reader.fail(node.span, format!("`{path}` is not {JOIN}"), format!("write {JOIN}"));
        return None;
    };
    if items.len() > ITEMS_MAX {
        reader.fail(
            node.span,
            format!("`{path}` has more than {ITEMS_MAX} messages"),
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
    let mut fields = reader.table(node, path, JOIN)?;
    if fields.get("send").is_none() {
        reader.fail(node.span, format!("`{path}.send` is missing"), format!("write {JOIN}"));
    }
    let send = text(reader, &mut fields, "send", &SENT);
    let path = http::path(reader, &mut fields, "path", "\"/join\"");
    let expect = text(reader, &mut fields, "expect", &WHO);
    reader.finish(&fields);
    Some(JoinStep { send: send?, path, expect })
}

fn pong(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Pong> {
    const EXAMPLE: &str = "a table such as { on = \"PING\", send = \"PONG{rest}\" }";
    let path = fields.path_of("pong");
    let node = fields.get("pong")?;
    let mut fields = reader.table(node, &path, EXAMPLE)?;
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

fn keep_alive(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<KeepAlive> {
    const EXAMPLE: &str = "a table such as { every = \"25s\", send = \"PING throng\" }";
    let path = fields.path_of("keep_alive");
    let node = fields.get("keep_alive")?;
    let mut fields = reader.table(node, &path, EXAMPLE)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::read::read_cohort;

    fn read(template: &str) -> Result<ChatTemplate, String> {
        read_on("chat+ws://h/irc", template)
    }

    fn read_on(url: &str, template: &str) -> Result<ChatTemplate, String> {
        let scenario = read_cohort(url, &format!("[crowd.chat.template]\n{template}"))?;
        Ok(scenario.crowd[0].role.clone().unwrap().chat.template.unwrap())
    }

    #[test]
    fn every_key_is_read_and_written() {
        let template = read(
            r##"room = "stage"
subprotocols = ["text.ircv3.net"]
join = ["PASS {token}", { send = "NICK {nick}", expect = " 001 " }, { send = "JOIN #{room}", expect = " 366 *#{room}" }]
say = "PRIVMSG #{room} :{text}"
pong = { on = "PING", send = "PONG{rest}" }
keep_alive = { every = "25s", send = "PING throng", expect = "PONG" }
nick_taken = " 433 "
refused = [" 47? ", "ERROR "]
kicked = "KICK #{room} {nick} "
leave = "QUIT"
binary = true
echo = false"##,
        )
        .unwrap();
        assert_eq!((template.join.len(), template.refused.len(), template.kicked.len()), (3, 2, 1));
        assert_eq!(template.join[2].expect.as_ref().unwrap().written(), " 366 *#{room}");
        assert!(template.binary && !template.echo && template.room == "stage");
        let short = read("join = []\nsay = '{\"say\":\"{text}\"}'").unwrap();
        assert!(short.echo && !short.binary && short.join.is_empty() && short.room == "throng");
    }

    #[test]
    fn what_a_chat_over_server_sent_events_needs_is_read_and_written() {
        let template = read_on(
            "chat+https://h/events",
            r#"stream = "/rooms/{room}/events?as={nick}"
join = [{ send = '{"as":"{nick}"}', path = "/join", expect = "joined: " }]
say = '{"text":"{text}"}'
post = { path = "/rooms/{room}/say", leave = "/leave", keep_alive = "/ping", pong = "/pong", content_type = "application/json" }
headers = { Authorization = "Bearer {token}" }
replay = true"#,
        )
        .unwrap();
        let http = &template.http;
        assert_eq!(template.join[0].path.as_ref().unwrap().written(), "/join");
        assert_eq!(http.post.as_ref().unwrap().written(), "/rooms/{room}/say");
        assert_eq!((http.content_type.as_deref(), http.replay), (Some("application/json"), true));
        assert_eq!(
            (http.headers[0].0.as_str(), http.headers[0].1.written()),
            ("Authorization", "Bearer {token}")
        );
        for (keys, expect, hint) in [
            (
                "stream = \"https://other/\"",
                "stream` is not a path on the target's server",
                "/rooms/{room}/events",
            ),
            ("post = { path = \"//other/\" }", "post.path` is not a path", "/say"),
            ("post = { path = \"/{rom}\" }", "`{rom}` is no variable", "did you mean `{room}`"),
            ("post = { body = \"\" }", "unknown key `body`", "known keys"),
            ("post = \"/say\"", "post` is not a table", "content_type"),
            ("post = { content_type = \"json\" }", "is not the type of a body", "application/json"),
            ("headers = { Origin = \"a\" }", "throng sets this header itself", "chat.origin"),
            ("headers = { X-A = \"{nick}\" }", "`{nick}` is not known here", "{token}"),
            ("headers = { \"X A\" = \"a\" }", "is not the name of a header", "X-Session"),
            (
                "headers = { X-A = \"env:NAME\" }",
                "headers.X-A` would be sent as it is written",
                "write {token}, and target.token = \"env:NAME\"",
            ),
            ("headers = \"a\"", "headers` is not a table", "Bearer {token}"),
            ("replay = 1", "is not true or false", "write true or false"),
            ("stream = \"/e?{nick}\"\nnick_taken = \"x\"", "`stream` has `{nick}`", "from stream"),
        ] {
            let error = read_on(
                "chat+http://h/events",
                &format!("join = [\"{{nick}}\"]\nsay = \"{{text}}\"\n{keys}"),
            );
            let error = error.unwrap_err();
            assert!(error.contains(expect) && error.contains(hint), "{keys}: {error}");
        }
    }

    #[test]
    fn a_secret_of_a_header_is_not_stored_and_asked_for_again() {
        let text = r#"[target]
url = "chat+https://h/events"
[crowd]
size = 3
[crowd.chat.template]
join = [{ send = "{nick}", path = "/join" }]
say = "{text}"
headers = { Authorization = "Bearer hunter2", Cookie = "sid={token}", X-Up = "hunter2" }
"#;
        let stored = Scenario::parse(text).unwrap().to_toml();
        for line in ["Authorization = \"…\"", "Cookie = \"sid={token}\"", "X-Up = \"…\""] {
            assert!(stored.contains(line), "{line} is not in {stored}");
        }
        assert_eq!(Scenario::parse_stored(&stored).unwrap().to_toml(), stored);
        let error = Scenario::parse(&stored).unwrap_err().to_string();
        assert!(error.contains("Authorization` was redacted when"), "{error}");
    }

    #[test]
    fn mistakes_have_a_place_and_a_hint() {
        for (template, expect, hint) in [
            ("say = \"{text}\"", "chat.template.join` is missing", "JOIN #{room}"),
            ("join = []", "chat.template.say` is missing", "SAY {text}"),
            ("join = []\nsay = \"hello\"", "has no `{text}`", "SAY {text}"),
            (
                "join = [\"NICK {nik}\"]\nsay = \"{text}\"",
                "join.0`: `{nik}` is no variable",
                "did you mean `{nick}`",
            ),
            (
                "join = [\"{text}\"]\nsay = \"{text}\"",
                "`{text}` is not known here",
                "variables are `{nick}`, `{n}`",
            ),
            ("join = [{ expect = \"x\" }]\nsay = \"{text}\"", "join.0.send` is missing", "expect"),
            (
                "join = [{ send = \"x\", await = \"x\" }]\nsay = \"{text}\"",
                "unknown key `await`",
                "known keys",
            ),
            ("join = 7\nsay = \"{text}\"", "join` is not a list", "write a list"),
            ("join = [\"\"]\nsay = \"{text}\"", "is empty", "one message"),
            (
                "join = []\nsay = \"{text}\"\npong = { on = \"PING\" }",
                "needs `on` and `send`",
                "PONG{rest}",
            ),
            (
                "join = []\nsay = \"{text}\"\nkeep_alive = { every = \"1ms\", send = \"x\" }",
                "less than 100 ms",
                "25s",
            ),
            (
                "join = []\nsay = \"{text}\"\nnick_taken = \"x\"",
                "nick_taken` has no effect",
                "NICK {nick}",
            ),
            (
                "join = []\nsay = \"{text}\"\nbinary = 1",
                "is not true or false",
                "write true or false",
            ),
        ] {
            let error = read(template).unwrap_err();
            assert!(error.contains(expect) && error.contains(hint), "{template}: {error}");
            assert!(error.contains(':'), "it has a place: {error}");
        }
    }
}
