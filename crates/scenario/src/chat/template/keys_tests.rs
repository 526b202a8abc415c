//! What is read of a `chat.template`, and what is said of its mistakes.

use super::ChatTemplate;
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
