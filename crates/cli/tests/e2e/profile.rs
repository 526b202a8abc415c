//! `throng profile` on a shell with a busy loop.

use std::process::{Child, Command, Output};

use serde_json::Value;

use crate::throng::plain;

/// A busy program; it ends with the test.
pub(crate) struct Busy(Child);

impl Busy {
    pub(crate) fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_profile_is_printed_kept_as_a_page_and_compared_with_an_earlier_one() {
    let busy = Busy::start();
    let folder = tempfile::tempdir().unwrap();
    let (page, json) = (folder.path().join("profile.html"), folder.path().join("before.json"));
    // Sampling states needs no privilege, and a shell that is never idle has just one state. Two
    // seconds have 40 samples; fewer than 30 are not compared.
    let before = plain(&["profile", &busy.pid(), "--for", "2s", "--method", "state", "--json"]);
    assert_eq!(before.status.code(), Some(0), "{}", text(&before));
    let parsed: Value = serde_json::from_slice(&before.stdout).expect("JSON and nothing else");
    assert_eq!(parsed["profile"]["method"], "thread_state");
    assert_eq!(parsed["self_time"]["threads"][0]["thread"], "sh");
    std::fs::write(&json, &before.stdout).unwrap();

    let (page, json) = (page.to_str().unwrap(), json.to_str().unwrap());
    let pid = busy.pid();
    let args = ["profile", &pid, "--for", "2s", "--method", "state", "-o", page, "--against", json];
    let after = plain(&args);
    assert_eq!(after.status.code(), Some(0), "{}", text(&after));
    for part in ["running or ready to run", "sh: ", "what changed:", "sampling itself took"] {
        assert!(text(&after).contains(part), "{part}: {}", text(&after));
    }
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("bar-of-time") && html.contains("What changed"), "{html}");
}

#[test]
fn what_cannot_be_profiled_is_reported() {
    let check = |args: &[&str], words: &str| {
        let output = plain(args);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(words), "{words}: {}", text(&output));
    };
    check(&["profile", "4294967295"], "no process to profile");
    check(&["profile", "--process", "no such program"], "there is no process");
    check(&["profile", "1", "--for", "soon"], "--for");
    check(&["profile", "1", "--for", "2h"], "at most 1h");
    check(&["profile", "1", "--hz", "0"], "1 to 10000");
    check(&["profile", "1", "--against", "/no/such/file"], "--against");
}
