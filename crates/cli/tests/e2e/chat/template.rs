//! Chats by template: IRC on a real InspIRCd, a chat of a few lines that speaks JSON, and servers
//! that do not behave.

use std::time::{Duration, Instant};

use throng_sim::inspircd::InspIrcd;

use super::Listener;
use crate::throng::{Ran, figure, run};

const IRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/chat-irc.toml");

/// 25 s: the independent client listens for 24 s, in which a run of 15 s lies.
#[test]
fn a_channel_of_inspircd_by_the_template_of_the_example_is_heard_as_by_an_independent_client() {
    if !InspIrcd::is_installed() {
        return;
    }
    let server = InspIrcd::start().unwrap();
    let listen = Listener::start("irc.py", &[&server.websocket(), "#stage", "24"]);
    let Some((listener, first)) = listen else { return };
    assert_eq!(first, "joined", "{}", server.log());
    let target = format!("target.url=\"chat+{}\"", server.websocket());
    let set = ["crowd.size=30", "crowd.arrival.ramp=2s", "crowd.chat.every=5s", "run.duration=15s"];
    let mut arguments = vec!["run", IRC, "--set", &target, "--set", "run.warm_up=0s"];
    set.iter().for_each(|set| arguments.extend(["--set", set]));
    let ran = run(None, &arguments).expect_code(0);
    let heard = listener.heard();
    let summary = ran.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    assert_eq!(
        (of("joined.reached"), of("joined_max"), of("reconnects")),
        (30.0, 30.0, 0.0),
        "{ran}"
    );
    assert_eq!(of("messages_sent"), heard.len() as f64, "{ran}\n{heard:?}");
    assert!(heard.len() > 40, "{heard:?}");
    assert_eq!(
        (of("messages_missing"), of("duplicates"), of("out_of_order")),
        (0.0, 0.0, 0.0),
        "{ran}"
    );
    // Each is due to the others, and the end of the run cuts off the last ones.
    assert!((20.0..=29.0).contains(&(of("messages_due") / of("messages_sent"))), "{ran}");
    assert!(of("delivery_ms_p50") < 100.0 && of("delivery_ms_p95") < 1_000.0, "{ran}");
    assert!(ran.stdout.contains("30 chatters chatted cleanly for 15 s"), "{ran}");
}

const JSON: &str = r#"
[crowd.chat]
every = "2s"
[crowd.chat.template]
room = "stage"
join = [{ send = '{"join":"{room}","as":"{nick}"}', expect = '"joined"' }]
say = '{"say":"{text}"}'
pong = { on = '{"type": "ping"', send = '{"type":"pong"}' }
refused = '"error"'
"#;

/// A run of five participants on the chat that behaves like this.
fn room(how: &str, seconds: u32) -> Option<Ran> {
    let (server, port) = Listener::start("room.py", &[how])?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.toml");
    let head = format!(
        "[target]\nurl = \"chat+ws://127.0.0.1:{port}/chat\"\n[run]\nduration = \"{seconds}s\"\nwarm_up = \"0s\"\n\
         [crowd]\nsize = 5\narrival = {{ every = \"50ms\" }}\n"
    );
    std::fs::write(&file, head + JSON).unwrap();
    let ran = run(None, &["run", file.to_str().unwrap()]);
    drop(server);
    Some(ran)
}

#[test]
fn a_chat_that_speaks_json_is_described_in_the_scenario_alone() {
    let Some(ran) = room("well", 10) else { return };
    let summary = ran.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    // Who does not answer its pings is put out after a second.
    assert_eq!((of("joined.reached"), of("reconnects")), (5.0, 0.0), "{ran}");
    assert_eq!(
        (of("messages_missing"), of("duplicates"), of("out_of_order")),
        (0.0, 0.0, 0.0),
        "{ran}"
    );
    assert!(of("messages_sent") > 10.0, "{ran}");
    assert!(
        (3.5..=5.0).contains(&(of("messages_due") / of("messages_sent"))),
        "it comes back too: {ran}"
    );
}

/// 40 s: five servers in turn, of which two are waited for until the time-out of 10 s.
#[test]
fn servers_that_do_not_behave_are_named() {
    let began = Instant::now();
    for (how, seconds, texts) in [
        ("refuses", 4, &["refused: {\"type\": \"error\", \"reason\": \"the room is full\"}"][..]),
        ("silent", 13, &["no `\"joined\"` within 10 s after message 1 of the join"]),
        ("floods", 13, &["no `\"joined\"` within 10 s after message 1 of the join"]),
        ("garbage", 4, &["a binary message, where the template says that messages are text"]),
        ("closes", 8, &["connects again", "1013"]),
    ] {
        let Some(ran) = room(how, seconds) else { return };
        let folder = ran.folder();
        let run = throng_store::RunFolder::read(folder).unwrap();
        let events =
            run.events.iter().map(|event| event.detail.clone()).collect::<Vec<_>>().join("\n");
        for text in texts {
            let is_said = ran.stdout.contains(text) || events.contains(text);
            assert!(is_said, "{how}: {text} in\n{ran}\n{events}");
        }
        if how == "closes" {
            assert!(figure(&ran.summary(), "chat.reconnects") >= 5.0, "{ran}");
        }
    }
    assert!(began.elapsed() < Duration::from_secs(90), "{:?}", began.elapsed());
}
