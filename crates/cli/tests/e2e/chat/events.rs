//! Chats over server-sent events: a server of a few lines and a client next to it, both without
//! throng, and servers that do not behave.

use std::time::{Duration, Instant};

use super::Listener;
use crate::throng::{Ran, figure, run};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/chat-sse.toml");

/// A run of `users` participants of the example on the chat at `port`.
fn room(port: &str, users: u32, seconds: u32, more: &[&str]) -> Ran {
    let target = format!("target.url=\"chat+http://127.0.0.1:{port}/\"");
    let (users, duration) = (format!("crowd.size={users}"), format!("run.duration={seconds}s"));
    let set = [
        target.as_str(),
        &users,
        &duration,
        "target.token=hush",
        "crowd.arrival.ramp=1s",
        "crowd.chat.every=2s",
        "run.warm_up=0s",
    ];
    let mut arguments = vec!["run", EXAMPLE];
    set.iter().chain(more).for_each(|set| arguments.extend(["--set", set]));
    run(None, &arguments)
}

/// 25 s: the independent client listens for 24 s, in which a run of 14 s lies.
#[test]
fn a_room_by_the_template_of_the_example_is_heard_as_by_an_independent_client() {
    let (server, port) = Listener::plain("events.py", &["well"]);
    let stream = format!("http://127.0.0.1:{port}/rooms/stage/events");
    let (listener, first) = Listener::plain("hear_events.py", &[&stream, "24"]);
    assert_eq!(first, "joined");
    let ran = room(&port, 30, 14, &["crowd.chat.every=5s"]).expect_code(0);
    let heard = listener.heard();
    drop(server);
    let summary = ran.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    assert_eq!(
        (of("joined.reached"), of("joined_max"), of("reconnects")),
        (30.0, 30.0, 0.0),
        "{ran}"
    );
    assert_eq!(of("messages_sent"), heard.len() as f64, "{ran}\n{heard:?}");
    assert!(heard.len() > 40, "{heard:?}");
    assert_eq!((of("messages_missing"), of("duplicates")), (0.0, 0.0), "{ran}");
    // Each comes back to its author too, and the end of the run cuts off the last ones.
    assert!((20.0..=30.0).contains(&(of("messages_due") / of("messages_sent"))), "{ran}");
    assert!(of("delivery_ms_p50") < 100.0 && of("delivery_ms_p95") < 1_000.0, "{ran}");
    assert!(ran.stdout.contains("30 chatters chatted cleanly for 14 s"), "{ran}");
}

/// 25 s: two runs of 12 s, in which each stream ends after 2 s.
#[test]
fn streams_that_end_are_opened_again_and_what_was_missed_comes_after_the_last_event_id() {
    for (replay, is_resumed) in [("true", true), ("false", false)] {
        let (server, port) = Listener::plain("events.py", &["forgetful"]);
        // Each at its place in the two seconds of its stream: how late messages are hangs on it.
        let set = [&*format!("crowd.chat.template.replay={replay}"), "crowd.arrival.jitter=false"];
        let ran = room(&port, 4, 12, &set);
        drop(server);
        let summary = ran.summary();
        let of = |key: &str| figure(&summary, &format!("chat.{key}"));
        // Each stream lasts 2 s and is opened again after the 300 ms that it says.
        assert!((12.0..=24.0).contains(&of("reconnects")), "{ran}");
        assert_eq!(of("resumes") > 0.0, is_resumed, "{ran}");
        assert_eq!(of("duplicates"), 0.0, "{ran}");
        // Without a replay, nobody gets what was said after a stream ended and before its client
        // saw that.
        assert!(of("messages_missing") <= if is_resumed { 0.0 } else { 2.0 }, "{ran}");
        // What was said in those 300 ms is late for those who get it.
        assert_eq!(of("delivery_ms_max") > 250.0, is_resumed, "{ran}");
    }
}

/// 25 s: five servers in turn, of which one is waited for until the time-out of 10 s.
#[test]
fn servers_of_events_that_do_not_behave_are_named() {
    let began = Instant::now();
    for (how, seconds, reason, text) in [
        ("html", 3, "failures.protocol", "`text/html` in place of text/event-stream"),
        ("done", 6, "failures.room_ended", "the server wants no further connection"),
        ("full", 3, "failures.refused", "refused: HTTP 403"),
        ("silent", 13, "", "within 10"),
        ("garbage", 4, "", ""),
    ] {
        let (server, port) = Listener::plain("events.py", &[how]);
        let ran = room(&port, 3, seconds, &[]);
        drop(server);
        let run = throng_store::RunFolder::read(ran.folder()).unwrap();
        let events =
            run.events.iter().map(|event| event.detail.clone()).collect::<Vec<_>>().join("\n");
        assert!(
            ran.stdout.contains(text) || events.contains(text),
            "{how}: {text} in\n{ran}\n{events}"
        );
        if !reason.is_empty() {
            assert_eq!(figure(&ran.summary(), reason), 3.0, "{how}: {ran}");
        }
    }
    assert!(began.elapsed() < Duration::from_secs(90), "{:?}", began.elapsed());
}
