//! The table: a scenario of each protocol, with a secret of its own in each place that can hold
//! one.

use throng_scenario::{Target, target_examples};

/// The name of a scenario, and its text. `<PLACE>` is a secret; `<~PLACE>` one that the server is
/// not told, `<!PLACE>` a word of a command that is started as it is written. HOST is a server that
/// refuses everybody and repeats what it was told; nobody listens on port 9. FOLDER has a file with
/// a token, a recorded page ([`PAGE`]) and a program that is no browser.
pub(super) const SCENARIOS: [(&str, &str); 18] = [
    (
        "whep",
        r#"[target]
url = "whep+http://me:<user>@HOST/whep?sig=<query>"
token = "env:THRONG_LAW_TOKEN"
turn = "turn:127.0.0.1:9"
turn_username = "me"
turn_password = "<turn>"
# token = "<~comment>"
[crowd]
size = 1
[canary]
browsers = 1
at = "0s"
browser = "FOLDER/browser"
"#,
    ),
    (
        "whip",
        r#"[target]
url = "whip+http://me:<user>@HOST/whip?sig=<query>"
token = "<token>"
turn = "turn:127.0.0.1:9"
turn_username = "me"
turn_password = "<~turn>"
[crowd]
size = 1
publish = { video = "144p" }
subscribe = "none"
"#,
    ),
    (
        "jwt",
        r#"[target]
url = "whip+http://HOST/whip/v1"
api_key = "key"
api_secret = "<~api>"
room = "studio"
[crowd]
size = 1
publish = { video = "144p" }
subscribe = "none"
"#,
    ),
    (
        "livekit",
        r#"[target]
url = "livekit+ws://HOST/room?path=/token=<path>/lk&access_token=<query>"
token = "<token>"
[crowd]
size = 1
[canary]
browsers = 1
at = "0s"
browser = "FOLDER/browser"
"#,
    ),
    (
        "meeting",
        r#"[target]
url = "livekit+ws://HOST/room"
api_key = "key"
api_secret = "<~api>"
[crowd]
size = 1
[canary]
browsers = 1
at = "0s"
browser = "FOLDER/browser"
"#,
    ),
    (
        "streaming",
        r#"[target]
url = "janus+ws://me:<user>@HOST/streaming/1?path=/hmac=<path>/janus&pin=<pin>"
token = "<token>"
[crowd]
size = 1
[canary]
browsers = 1
at = "0s"
browser = "FOLDER/browser"
"#,
    ),
    (
        "videoroom",
        r#"[target]
url = "janus+ws://HOST/videoroom/1234?pin=<pin>"
token = "<token>"
[crowd]
size = 1
[room]
admin_key = "<admin>"
publishers = 6
"#,
    ),
    (
        "ovenmediaengine",
        r#"[target]
url = "ws://HOST/app/stream?policy=<policy>&signature=<signature>"
token = "<token>"
[crowd]
size = 1
"#,
    ),
    (
        "rtsp",
        r#"[target]
url = "rtsp://me:<user>@HOST/live?token=<query>"
[crowd]
size = 1
"#,
    ),
    (
        "announce",
        r#"[target]
url = "publish+rtsp://me:<user>@HOST/live?token=<query>"
[crowd]
size = 1
publish = { video = "144p" }
"#,
    ),
    (
        "rtmp",
        r#"[target]
url = "publish+rtmp://me:<~user>@127.0.0.1:9/live/<~key>?token=<~query>"
[crowd]
size = 1
publish = { video = "144p" }
"#,
    ),
    (
        "srt",
        r#"[target]
url = "publish+srt://127.0.0.1:9?streamid=publish:<~stream>&passphrase=<~phrase>"
[crowd]
size = 1
publish = { video = "144p" }
"#,
    ),
    (
        "hls",
        r#"[target]
url = "http://me:<user>@HOST/exp=1~hmac=<path>/live.m3u8?Policy=<policy>"
token = "file:FOLDER/token"
[crowd]
size = 1
[crowd.player]
headers = { X-Session = "<session>", Cookie = "sid=<~cookie>" }
p2p = { tracker = "ws://HOST/tracker?passkey=<tracker>" }
"#,
    ),
    (
        "peertube",
        r#"[target]
url = "peertube+http://me:<user>@HOST/w/ID?videoPassword=<query>"
token = "<token>"
[crowd]
size = 1
chat = { every = "1s" }
player = { headers = { X-Session = "<session>" } }
"#,
    ),
    (
        "xmpp",
        r#"[target]
url = "xmpp+ws://me:<password>@HOST/ws?room=r@rooms.example&token=<query>"
[crowd]
size = 1
"#,
    ),
    (
        "chat",
        r#"[target]
url = "chat+ws://HOST/chat?key=<query>"
token = "<token>"
[crowd]
size = 1
[crowd.chat]
every = "1s"
[crowd.chat.template]
join = ["PASS {token}", "AUTH <~auth>", '{"auth":{"pw":"<~json>"}}']
say = '{"password":"<~say>","text":"{text}"}'
"#,
    ),
    (
        "watched",
        r#"[target]
url = "whep+http://HOST/whep"
token = "<token>"
[crowd]
size = 1
[[watch]]
name = "server"
command = ["sh", "-c", "sleep 60; true", "law", "--token", "<!command>"]
metrics = "http://me:<~user>@127.0.0.1:9/m?token=<~query>"
[[watch]]
name = "elsewhere"
agent = "tcp://127.0.0.1:9"
token = "<~agent>"
"#,
    ),
    (
        "har",
        r#"[target]
url = "http://HOST/live.m3u8"
token = "<token>"
[crowd]
size = 1
player = { har = "FOLDER/page.har" }
"#,
    ),
];

/// The recorded page of FOLDER, with secrets as in a scenario.
pub(super) const PAGE: &str = r#"{"log":{"entries":[{
"startedDateTime":"2026-11-25T10:00:00Z","time":5,
"request":{"method":"GET","url":"https://tube.example/watch?access_token=<query>","headers":[
{"name":"X-Session","value":"<session>"},
{"name":"Authorization","value":"Bearer <~authorization>"},
{"name":"Referer","value":"https://tube.example/?ticket=<referer>"}]},
"response":{"status":200,"content":{"mimeType":"text/html"}}}]}}"#;

#[test]
fn the_table_has_each_protocol() {
    let protocol = |url: &str| {
        let target = Target::parse(url);
        target.unwrap_or_else(|error| panic!("{url}: {error}")).protocol()
    };
    let known = SCENARIOS.map(|(_, text)| {
        let url = text.split('"').nth(1).unwrap();
        protocol(&url.replace("HOST", "h:1"))
    });
    for (example, what) in target_examples() {
        assert!(known.contains(&protocol(example)), "add a scenario of {what}");
    }
}
