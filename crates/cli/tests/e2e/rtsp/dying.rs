//! A server that dies while it is played: no sentence denies what the crowd's line counts.

use std::process::Command;
use std::time::Duration;

use throng_sim::cut::dying_relay;
use throng_sim::rtsp::{GstRtspServer, Options};

use crate::throng::{Ran, Running, valid};

/// More than all answers up to that to PLAY, and less than the first key frame with them.
const DIES_AFTER_BYTES: u64 = 8_000;

fn view(url: &str, users: u32) -> Running {
    let (users, transport) = (users.to_string(), "target.rtsp_transport=tcp");
    let view = ["view", url, "-n", &users, "--every", "20ms", "--for", "12s", "--set", transport];
    Running::start(None, &view)
}

/// All connected and played, by the crowd's line, and neither the headline nor the cause denies it.
#[track_caller]
fn assert_nothing_is_denied(ran: &Ran, users: u32) {
    let line = format!("{users} connected, {users} playing, {users} failed");
    assert!(ran.stdout.contains(&line), "{line}\n{ran}");
    let summary = ran.summary();
    let headline = summary["headline"].as_str().unwrap();
    // Only that of a crowd of which nobody connected has the word.
    assert!(!headline.contains("connected"), "{headline}\n{ran}");
    for denial in ["No participant could connect", "No participant was connected"] {
        assert!(!ran.stdout.contains(denial), "{denial}\n{ran}");
    }
}

/// 8 s: a viewer whose server dies with the first packets, so that at the end of no second somebody
/// was connected, and three whose server is killed a second after they play.
#[test]
fn no_sentence_denies_that_viewers_played_before_their_server_died() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let options = Options::default();
    let (ran, ()) = valid(|| {
        let server = GstRtspServer::start(&options).unwrap();
        let relay = dying_relay(server.address(), DIES_AFTER_BYTES).unwrap();
        (view(&format!("rtsp://{relay}/h264"), 1).wait(), ())
    });
    assert_nothing_is_denied(&ran, 1);

    let (ran, ()) = valid(|| {
        let server = GstRtspServer::start(&options).unwrap();
        let mut running = view(&server.url("/h264"), 3);
        running.when_playing(3);
        std::thread::sleep(Duration::from_secs(1));
        let killed = Command::new("kill").args(["-KILL", &server.pid().to_string()]).status();
        assert!(killed.unwrap().success());
        (running.wait(), ())
    });
    assert_nothing_is_denied(&ran, 3);
}
