//! What is read of a `chat.template`, and what is said of its mistakes.

use super::{ChatTemplate, ChatText};
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
    assert!(template.binary && !template.echo && template.room.written() == "stage");
    let short = read("join = []\nsay = '{\"say\":\"{text}\"}'").unwrap();
    assert!(short.echo && !short.binary && short.join.is_empty());
    assert_eq!(short.room.written(), "throng");
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
    let content_type = http.content_type.as_ref().map(ChatText::written);
    assert_eq!((content_type, http.replay), (Some("application/json"), true));
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

/// Each text of a template, with what may be a secret.
const WITH_SECRETS: [(&str, &str, &[&str]); 2] = [
    (
        "chat+wss://h/irc",
        r#"room = "stage?key=S3CRET"
join = ["PASS S3CRET", { send = '{"as":"{nick}","token":"S3CRET"}', expect = '"auth":"S3CRET"' }]
say = '{"password":"S3CRET","text":"{text}"}'
pong = { on = "ping token=S3CRET", send = "AUTH S3CRET" }
keep_alive = { every = "25s", send = "token=S3CRET", expect = "pin: S3CRET" }
nick_taken = "token=S3CRET"
refused = ["Bearer S3CRET"]
kicked = "wss://me:S3CRET@h/"
leave = "secret: S3CRET"
subprotocols = ["access_token", "S3CRET"]"#,
        &[
            "room",
            "join.0",
            "join.1.send",
            "join.1.expect",
            "say",
            "pong.on",
            "pong.send",
            "keep_alive.send",
            "keep_alive.expect",
            "nick_taken",
            "refused",
            "kicked",
            "leave",
            "subprotocols",
        ],
    ),
    (
        "chat+https://h/events",
        r#"join = [{ send = "{nick}", path = "/join?token=S3CRET" }]
say = "{text}"
stream = "/events?as={nick}&token=S3CRET"
post = { path = "/say?key=S3CRET", leave = "/a?sig=S3CRET", keep_alive = "/b?pin=S3CRET", pong = "/c?auth=S3CRET", content_type = "a/b;token=S3CRET" }
headers = { X-Up = "S3CRET", User-Agent = "me token=S3CRET" }"#,
        &[
            "join.0.path",
            "stream",
            "post.path",
            "post.leave",
            "post.keep_alive",
            "post.pong",
            "post.content_type",
            "headers.X-Up",
            "headers.User-Agent",
        ],
    ),
];

#[test]
fn a_secret_of_any_text_is_not_stored_nor_printed_and_asked_for_again() {
    for (url, template, keys) in WITH_SECRETS {
        let text = format!(
            "[target]\nurl = \"{url}\"\n[crowd]\nsize = 3\n[crowd.chat.template]\n{template}\n"
        );
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let stored = scenario.to_toml();
        for shown in [&stored, &format!("{scenario:?}"), &crate::masked_toml(&text)] {
            assert!(!shown.contains("S3CRET"), "{shown}");
        }
        assert_eq!(Scenario::parse_stored(&stored).unwrap().to_toml(), stored);
        let error = Scenario::parse(&stored).unwrap_err().to_string();
        for key in keys {
            let said = format!("crowd.chat.template.{key}` was redacted when");
            assert!(error.contains(&said), "{key}: {error}");
        }
        let wrong = text.replace("size = 3", "size = 3\nchats = 1").replace("leave", "leafe");
        let error = Scenario::parse(&wrong).unwrap_err().to_string();
        assert!(!error.contains("S3CRET"), "{error}");
    }
}

#[test]
fn what_earlier_versions_took_is_read_where_it_was_stored() {
    let text = r#"[target]
url = "chat+wss://h/irc"
[crowd]
size = 3
[crowd.chat.template]
room = ""
join = ["NICK {nick}"]
say = "{text}"
subprotocols = "a, b"
pong = { on = "{word}", send = "PONG{rest}" }
"#;
    let scenario = Scenario::parse_stored(text).unwrap_or_else(|error| panic!("{error}"));
    let template = scenario.crowd[0].role.clone().unwrap().chat.template.unwrap();
    assert_eq!((template.room.written(), template.subprotocols[0].written()), ("", "a, b"));
    assert_eq!(template.pong.unwrap().on.filled(|_| "value"), "{word}");
    let error = Scenario::parse(text).unwrap_err().to_string();
    for key in ["room", "subprotocols", "pong.on"] {
        assert!(error.contains(&format!("template.{key}`")), "{key}: {error}");
    }
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
            "pong.send` is missing",
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
            "join = []\nsay = \"{text}\"\nsubprotocols = \"a, b\"",
            "subprotocols` has characters that no subprotocol has",
            "text.ircv3.net",
        ),
        ("join = []\nsay = \"{text}\"\nbinary = 1", "is not true or false", "write true or false"),
    ] {
        let error = read(template).unwrap_err();
        assert!(error.contains(expect) && error.contains(hint), "{template}: {error}");
        assert!(error.contains(':'), "it has a place: {error}");
    }
}

#[test]
fn a_join_that_could_not_be_read_is_not_said_to_send_no_nickname() {
    let too_long = format!("join = {:?}", ["NICK {nick}"; 33]);
    for (join, expect) in [
        (too_long.as_str(), "more than 32 messages"),
        ("join = [\"NICK {nick} {foo}\"]", "`{foo}` is no variable"),
        ("join = [\"HELLO\", \"NICK {nick} {foo}\"]", "`{foo}` is no variable"),
    ] {
        let error = read(&format!("{join}\nsay = \"{{text}}\"\nnick_taken = \"x\"")).unwrap_err();
        assert!(error.contains(expect) && !error.contains("has no effect"), "{error}");
    }
}
