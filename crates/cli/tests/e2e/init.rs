//! `throng init` on servers: what it writes is checked and run.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_sim::lighttpd::Lighttpd;
use throng_sim::skipped;

use crate::throng::{Running, Stage, THRONG, figure, plain, run, started};
use crate::vod::url;

/// Exit code, and what was said, of `throng ARGS`.
fn said(args: &[&str]) -> (Option<i32>, String) {
    told(plain(args))
}

fn told(output: Output) -> (Option<i32>, String) {
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (output.status.code(), text)
}

/// Writes a scenario for `url` that `throng check` takes and a short run plays; its text.
fn written_and_run(url: &str, file: &Path) -> String {
    let file = file.display().to_string();
    let (code, told) = said(&["init", url, "-o", &file]);
    assert_eq!(code, Some(0), "{told}");
    let (code, plan) = said(&["check", &file]);
    assert_eq!(code, Some(0), "{told}\n{plan}");
    let short = ["--set", "crowd.size=2", "--set", "run.duration=2s", "--set", "run.warm_up=0s"];
    let ran = run(None, &[&["run", file.as_str(), "--quiet"][..], &short].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{told}\n{ran}");
    assert_eq!(figure(&ran.summary(), "participants.intended"), 2.0, "{ran}");
    assert_eq!(figure(&ran.summary(), "participants.failed"), 0.0, "{ran}");
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn a_stage_is_recognised_by_its_whep_endpoint() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stage.toml");
    let text = written_and_run(&stage.whep, &file);
    for words in
        ["#:schema ", &format!("url = \"whep+{}\"", stage.whep), "Received: video ", "[stream]"]
    {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let shown = file.display().to_string();
    let (code, told) = said(&["init", &stage.whep, "-o", &shown]);
    assert!(code == Some(2) && told.contains("--force"), "{told}");
}

/// Makes a recording of 8 s as HLS, `film.m3u8`; whether FFmpeg is there.
fn makes_film(folder: &Path) -> bool {
    let arguments = "-v error -f lavfi -i testsrc2=s=320x180:r=25:d=8 -c:v libx264 \
                     -preset ultrafast -g 25 -f hls -hls_time 2 -hls_playlist_type vod film.m3u8";
    let mut command = Command::new("ffmpeg");
    match command.args(arguments.split_whitespace()).current_dir(folder).status() {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        made => {
            assert!(made.unwrap().success());
            true
        }
    }
}

#[test]
fn a_recording_is_recognised_by_its_playlist() {
    let folder = tempfile::tempdir().unwrap();
    if !Lighttpd::is_installed() {
        return;
    }
    if !makes_film(folder.path()) {
        return skipped("ffmpeg is not installed (scripts/setup.sh test)");
    }
    let server = Lighttpd::serving(folder.path()).unwrap();
    let film = url("http", server.address(), "film.m3u8");
    let text = written_and_run(&film, &folder.path().join("film.toml"));
    for words in ["HLS", "a recording", "stall_ratio", &format!("url = \"{film}\"")] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_token_is_named_and_used_and_not_written() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--token", "S3CRET"]);
    let (code, text) = said(&["init", &stage.target(), "-o", "-"]);
    assert_eq!(code, Some(0), "{text}");
    for words in ["token = \"env:THRONG_TOKEN\"", "one viewer, which failed: http_401"] {
        assert!(text.contains(words), "{words}\n{text}");
    }

    let mut command = Command::new(THRONG);
    command.env("THRONG_E2E_TOKEN", "S3CRET");
    command.args(["init", &stage.target(), "-o", "-", "--token", "env:THRONG_E2E_TOKEN"]);
    let (code, text) = told(started(&mut command).wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{text}");
    for words in ["played    one viewer for ", "token = \"env:THRONG_E2E_TOKEN\""] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("S3CRET"), "{text}");
}

/// The viewers that a stage has at present.
fn viewers(stage: &Stage) -> u64 {
    let address = stage.whep.trim_start_matches("http://").trim_end_matches("/whep");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /stats HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let json = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str::<Value>(json).unwrap()["viewers"].as_u64().unwrap()
}

/// Ends when a stage has so many viewers.
fn when_viewers(stage: &Stage, count: u64) {
    let since = Instant::now();
    while viewers(stage) != count {
        assert!(since.elapsed() < Duration::from_secs(15), "not {count}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ctrl_c_leaves_no_session_on_the_server_and_no_file() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let init = Running::start(None, &["init", &stage.whep]);
    when_viewers(&stage, 1);
    init.signal("INT");
    let ran = init.wait();
    assert_eq!(ran.code, Some(130), "{ran}");
    assert!(ran.stderr.contains("interrupted") && !ran.folder().exists(), "{ran}");
    when_viewers(&stage, 0);
}

#[test]
fn a_full_disk_costs_no_scenario() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.toml");
    std::fs::write(&file, "old").unwrap();
    // No file may grow; without the signal of that, a write fails as on a full disk.
    let full = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", full, THRONG, "init", &stage.whep, "--no-play", "--force", "-o"])
        .arg(&file);
    let (code, text) = told(started(&mut command).wait_with_output().unwrap());
    assert!(code == Some(2) && text.contains("cannot write"), "{text}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_server_that_has_nothing_for_throng_is_said_with_what_it_answered() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.toml").display().to_string();
    let place = stage.whep.trim_end_matches("/whep");
    let (code, text) = said(&["init", place, "-o", &file]);
    assert_eq!(code, Some(3), "{text}");
    for words in ["WHEP: OPTIONS", "HTTP video: GET", "200 OK", "404 Not Found"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let (code, text) = said(&["init", "127.0.0.1:9", "-o", &file]);
    assert!(code == Some(3) && text.contains("TCP"), "{text}");
    let (code, text) = said(&["init", "http://10.1.2.3/", "-o", &file]);
    assert!(code == Some(3) && text.contains("--allow-target"), "{text}");
    assert!(!Path::new(&file).exists());
}
