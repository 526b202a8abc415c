//! Participants of a chat on a real Prosody, next to a client that has nothing of throng.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use throng_observation::Clause;
use throng_sim::prosody::{ANONYMOUS, Prosody, ROOMS};
use throng_store::RunFolder;

use crate::throng::{Ran, Running, figure, run};

mod events;
mod streams;
mod template;

/// A client in the room, or a server, in Python; killed when dropped.
struct Listener {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Listener {
    /// Joins `room`; `None` where Python's websockets are not installed.
    fn join(server: &Prosody, room: &str, seconds: u32) -> Option<Self> {
        let room = format!("{room}@{ROOMS}");
        let (listener, first) = Self::start(
            "listen.py",
            &[&server.websocket(), ANONYMOUS, &room, &seconds.to_string()],
        )?;
        assert_eq!(first, "joined");
        Some(listener)
    }

    /// Starts a script of Python's; with the first line that it says.
    fn start(script: &str, arguments: &[&str]) -> Option<(Self, String)> {
        if !std::fs::exists("/usr/lib/python3/dist-packages/websockets").unwrap_or(false) {
            throng_sim::skipped("python3-websockets is not installed (scripts/setup.sh test)");
            return None;
        }
        Some(Self::plain(script, arguments))
    }

    /// Starts a script that needs nothing but Python.
    fn plain(script: &str, arguments: &[&str]) -> (Self, String) {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/chat").join(script);
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        (Self { child, lines }, first.trim().to_owned())
    }

    /// What it heard: the bodies, in their order.
    fn heard(mut self) -> Vec<String> {
        let lines = (&mut self.lines).lines().map(Result::unwrap);
        lines.filter_map(|line| line.split_once(' ').map(|(_, body)| body.to_owned())).collect()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn chat(target: &str, users: u32, seconds: u32, chat: &str) -> Ran {
    let (users, seconds, chat) =
        (users.to_string(), format!("{seconds}s"), format!("crowd.chat={chat}"));
    run(
        None,
        &[
            "view",
            target,
            "-n",
            &users,
            "--every",
            "100ms",
            "--for",
            &seconds,
            "--set",
            &chat,
            "--set",
            "run.warm_up=0s",
        ],
    )
}

/// 25 s: the independent client listens for 24 s, in which a run of 15 s lies.
#[test]
fn everybody_in_a_room_of_prosody_gets_every_message_as_an_independent_client_does() {
    if !Prosody::is_installed() {
        return;
    }
    let server = Prosody::start("").unwrap();
    let Some(listener) = Listener::join(&server, "stage", 24) else { return };
    let ran = chat(&server.target("stage"), 30, 15, "{ every = \"5s\", vcards = \"all\" }")
        .expect_code(0);
    let heard = listener.heard();
    let summary = ran.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    assert_eq!(
        (of("joined.reached"), of("joined_max"), of("reconnects")),
        (30.0, 30.0, 0.0),
        "{ran}"
    );
    assert_eq!(of("messages_sent"), heard.len() as f64, "{ran}");
    assert!(heard.len() > 40, "{heard:?}");
    assert_eq!(
        (of("messages_missing"), of("duplicates"), of("out_of_order")),
        (0.0, 0.0, 0.0),
        "{ran}"
    );
    // Those that were said while everybody was there are due to 30 each; the end of the run cuts
    // off the last ones.
    assert!((20.0..=30.0).contains(&(of("messages_due") / of("messages_sent"))), "{ran}");
    assert!(of("delivery_ms_p50") < 100.0 && of("delivery_ms_p95") < 1_000.0, "{ran}");
    // Each sees all others and the listener, its own presence in the room, and the one of its
    // account; who leaves is seen by those that are still there.
    let presences = of("presences_received");
    assert!((30.0 * 32.0..30.0 * 62.0).contains(&presences), "{presences}\n{ran}");
    // Its own, that of each other participant, the listener's, which has none, and the room's,
    // which has none.
    assert!(of("occupants_max") >= 30.0, "{ran}");
    assert!(ran.stdout.contains("30 chatters chatted cleanly for 15 s"), "{ran}");
    assert!(ran.stdout.contains("sent; delivered in p50"), "{ran}");
}

#[test]
fn an_account_is_authenticated_by_its_password_and_a_wrong_one_is_named() {
    if !Prosody::is_installed() {
        return;
    }
    let server = Prosody::start("").unwrap();
    let ran = chat(&server.target_of_ada("secret", "stage"), 1, 3, "{}").expect_code(0);
    assert_eq!(figure(&ran.summary(), "chat.joined.reached"), 1.0, "{ran}\n{}", server.log());
    assert!(!ran.stdout.contains("secret"), "{ran}");
    let ran = chat(&server.target_of_ada("wrong", "stage"), 1, 3, "{}").expect_code(3);
    assert_eq!(figure(&ran.summary(), "failures.unauthorized"), 1.0, "{ran}");
    assert!(ran.stdout.contains("authentication: not-authorized"), "{ran}");
}

#[test]
fn a_server_that_stands_still_delivers_late_and_the_seconds_of_everybody_are_bad() {
    if !Prosody::is_installed() {
        return;
    }
    let server = Prosody::start("").unwrap();
    let target = server.target("stage");
    let mut running = Running::start(
        None,
        &[
            "view",
            &target,
            "-n",
            "10",
            "--every",
            "50ms",
            "--for",
            "18s",
            "--set",
            "crowd.chat={ every = \"2s\" }",
            "--set",
            "run.warm_up=0s",
        ],
    );
    running.when_connected(10);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &server.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    std::thread::sleep(std::time::Duration::from_secs(5));
    signal("-CONT");
    let ran = running.wait();
    let summary = ran.summary();
    let slowest = figure(&summary, "chat.delivery_ms_max");
    assert!((3_500.0..7_000.0).contains(&slowest), "{slowest}\n{ran}");
    assert_eq!(figure(&summary, "chat.messages_missing"), 0.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    let late: u32 = run.experience.iter().map(|row| row.clauses[Clause::Message as usize]).sum();
    assert!(late >= 10, "{late}: {:?}", run.experience);
}
