//! The full-screen view on a terminal of its own: whatever is typed, it ends when it is asked to,
//! and leaves the terminal as it was.

use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use throng_sim::pty::Pty;

use crate::throng::{Stage, THRONG};

/// What the alternate screen begins with.
const SCREEN: &str = "\x1b[?1049h";

/// To start, on a machine on which all views of a test start at once.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// To end: a viewer is given 5 s to leave, and the report is made.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// How often a key is typed that the view may have taken for the end of another one.
const TIMES_TYPED_MAX: u32 = 3;

/// The command of a view of one viewer.
fn command_of_view(stage: &Stage, folder: &TempDir, term: &str, time: &str) -> Command {
    let mut command = Command::new(THRONG);
    command.args(["view", &stage.target(), "-n", "1", "--for", time, "--output"]);
    command.arg(folder.path().join("run")).env("TERM", term);
    command
}

/// A view of one viewer on a terminal.
fn view(stage: &Stage, folder: &TempDir, term: &str, time: &str) -> Pty {
    Pty::start(command_of_view(stage, folder, term, time)).unwrap()
}

fn view_on_screen(stage: &Stage, folder: &TempDir) -> Pty {
    let pty = view(stage, folder, "xterm-256color", "60s");
    assert!(pty.shows_within(SCREEN, STARTS_WITHIN), "{}", pty.shown());
    pty
}

/// 10 s: all at once, each on its own terminal.
#[test]
fn whatever_is_typed_a_signal_ends_the_view_and_the_terminal_is_as_before() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let text = "a line of text that nobody meant for here\r".repeat(64 * 1024 / 42);
    let inputs: [(&str, &[u8]); 8] = [
        ("a lone Escape", b"\x1b"),
        ("Alt+[", b"\x1b["),
        ("a command to the terminal without its end", b"\x1b]0;title"),
        ("a paste without its end", b"\x1b[200~pasted"),
        ("invalid UTF-8", b"\xff\xfe\xc3\x28\xe2\x82"),
        ("the begin of a mouse event", b"\x1b[M"),
        ("64 kB of text", text.as_bytes()),
        ("Alt+[ and more", b"\x1b[1;\x1b[<0;1"),
    ];
    std::thread::scope(|scope| {
        for (what, keys) in inputs {
            let stage = &stage;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut pty = view_on_screen(stage, &folder);
                pty.types(keys).unwrap();
                // Two looks at the keyboard.
                std::thread::sleep(Duration::from_millis(600));
                pty.signal("TERM").unwrap();
                let end = pty.ends_within(ENDS_WITHIN);
                assert!(end.is_some(), "{what}: it goes on\n{}", pty.shown());
                assert_eq!(pty.left_behind(), [""; 0], "{what}\n{}", pty.shown());
            });
        }
    });
}

#[test]
fn q_and_control_c_end_the_view_also_after_an_unfinished_key() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    std::thread::scope(|scope| {
        for keys in ["q", "\x03"] {
            let stage = &stage;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut pty = view_on_screen(stage, &folder);
                pty.types(b"\x1b[").unwrap();
                std::thread::sleep(Duration::from_millis(600));
                // On a busy machine both come in one read, and `ESC [ q` is another key: typed
                // again it is `q`. Twice Ctrl-C would not wait, which is another test.
                let mut end = None;
                for _ in 0..TIMES_TYPED_MAX {
                    pty.types(keys.as_bytes()).unwrap();
                    end = pty.ends_within(ENDS_WITHIN);
                    if end.is_some() {
                        break;
                    }
                }
                assert!(end.is_some(), "{keys:?}: it goes on\n{}", pty.shown());
                assert_eq!(pty.left_behind(), [""; 0], "{keys:?}\n{}", pty.shown());
            });
        }
    });
}

#[test]
fn the_view_has_the_crowd_its_objective_and_where_its_page_is_on_the_usual_screen() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let mut command = command_of_view(&stage, &folder, "xterm-256color", "60s");
    command.args(["--objective", "video.loss < 50%", "--serve", "127.0.0.1:0"]);
    let mut pty = Pty::start(command).unwrap();
    let until = Instant::now() + STARTS_WITHIN;
    while !pty.screen().contains("playing    1 ") && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    // A frame has come as a whole when the next one has begun.
    std::thread::sleep(Duration::from_millis(300));
    let screen = pty.screen();
    for text in [
        "throng whep+http://127.0.0.1:",
        "  running  q ends the run",
        " of 60 s",
        "page http://127.0.0.1:",
        "intended    1 of 1 ",
        "connected    1 ",
        "playing    1 ",
        "failed    0 ",
        "video.loss < 50%",
        "Received",
    ] {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
    pty.types(b"q").unwrap();
    assert!(pty.ends_within(ENDS_WITHIN).is_some(), "{}", pty.screen());
    assert_eq!(pty.left_behind(), [""; 0], "{}", pty.shown());
    // The report comes on the screen that was there before.
    assert!(!pty.screen().contains("q ends the run"), "{}", pty.screen());
    let shown = pty.shown();
    let after = shown.rsplit("\x1b[?1049l").next().unwrap_or_default();
    assert!(after.contains("video.loss < 50%"), "{after}");
}

/// The second signal does not wait for the run's end; typed before the view has the terminal,
/// Ctrl-C is a signal too.
#[test]
fn two_signals_at_once_leave_the_terminal_as_before() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    std::thread::scope(|scope| {
        for after_ms in [0, 50, 150, 300, 600] {
            let stage = &stage;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut pty = view(stage, &folder, "xterm-256color", "60s");
                std::thread::sleep(Duration::from_millis(after_ms));
                pty.types(b"\x03\x03").unwrap();
                let end = pty.ends_within(ENDS_WITHIN);
                assert!(end.is_some(), "after {after_ms} ms: it goes on\n{}", pty.shown());
                assert_eq!(pty.left_behind(), [""; 0], "after {after_ms} ms\n{}", pty.shown());
            });
        }
        scope.spawn(|| {
            let folder = tempfile::tempdir().unwrap();
            let mut pty = view_on_screen(&stage, &folder);
            pty.signal("INT").unwrap();
            std::thread::sleep(Duration::from_millis(40));
            pty.signal("INT").unwrap();
            let end = pty.ends_within(ENDS_WITHIN).and_then(|status| status.code());
            assert_eq!(end, Some(130), "{}", pty.shown());
            assert_eq!(pty.left_behind(), [""; 0], "{}", pty.shown());
        });
    });
}

/// As after Ctrl-S, on a screen, where a key asks too, and with plain lines.
#[test]
fn a_terminal_that_takes_no_output_does_not_keep_a_run_from_its_end() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    std::thread::scope(|scope| {
        for (term, begin, key) in [
            ("xterm-256color", SCREEN, ""),
            ("xterm-256color", SCREEN, "q"),
            ("dumb", "<Summary>", ""),
        ] {
            let stage = &stage;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut pty = view(stage, &folder, term, "60s");
                assert!(pty.shows_within(begin, STARTS_WITHIN), "{term}: {}", pty.shown());
                pty.stops_output().unwrap();
                // Two frames.
                std::thread::sleep(Duration::from_millis(600));
                if key.is_empty() {
                    pty.signal("TERM").unwrap();
                } else {
                    pty.types(key.as_bytes()).unwrap();
                }
                let end = pty.ends_within(ENDS_WITHIN).and_then(|status| status.code());
                assert_eq!(end, Some(130), "{term} {key}: {}", pty.shown());
                assert!(folder.path().join("run/report.html").exists(), "{term}");
                assert!(!pty.left_behind().contains(&"other modes"), "{term}");
            });
        }
    });
}

/// A log of each step of each participant, by the threads that play them.
#[test]
fn a_run_goes_on_while_a_terminal_takes_nothing_of_what_is_said_in_it() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let mut command = command_of_view(&stage, &folder, "dumb", "8s");
    command.env("RUST_LOG", "throng=debug");
    let mut pty = Pty::start(command).unwrap();
    assert!(pty.shows_within("DEBUG", STARTS_WITHIN), "{}", pty.shown());
    pty.stops_output().unwrap();
    let report = folder.path().join("run/report.html");
    let until = Instant::now() + STARTS_WITHIN + ENDS_WITHIN;
    while !report.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(report.exists(), "{}", pty.shown());
    // The summary waits for the terminal.
    assert!(pty.ends_within(Duration::from_secs(1)).is_none(), "{}", pty.shown());
    pty.signal("TERM").unwrap();
    assert!(pty.ends_within(ENDS_WITHIN).is_some(), "{}", pty.shown());
}

#[test]
fn a_terminal_without_control_sequences_gets_plain_text() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    std::thread::scope(|scope| {
        for term in ["dumb", ""] {
            let stage = &stage;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut pty = view(stage, &folder, term, "10s");
                assert!(pty.ends_within(STARTS_WITHIN).is_some(), "{term}");
                let shown = pty.shown();
                let is_plain = shown.contains("<Summary>") && !shown.contains('\x1b');
                assert!(is_plain, "TERM={term}: {shown}");
            });
        }
    });
}
