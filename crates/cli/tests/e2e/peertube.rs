//! Visitors of a watch page of PeerTube on the test server of `examples/evening`: real ffmpeg,
//! nginx, Node with socket.io and PeerTube's tracker, and Prosody. What they asked for is what Node
//! and nginx counted.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use throng_sim::evening::{Evening, OBJECT_STORAGE, RECORDING, TINY};

use crate::throng::{Ran, Running, figure, plain, valid};

const VISITORS: u32 = 10;

/// A scenario of visitors of the test server's page.
fn scenario(evening: &Evening, seconds: u32, crowd: &str) -> (TempDir, PathBuf) {
    scenario_of(evening, VISITORS, seconds, crowd)
}

fn scenario_of(evening: &Evening, visitors: u32, seconds: u32, crowd: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("visitors.toml");
    let text = format!(
        "[target]\nurl = \"peertube+{}\"\n[crowd]\nsize = {visitors}\narrival = {{ every = \"300ms\" }}\n{crowd}\n\
         [run]\nduration = \"{seconds}s\"\n",
        evening.page()
    );
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// A count of Node.
fn counted(counters: &Value, path: &str) -> f64 {
    figure(counters, path)
}

/// A run of visitors, and what Node and nginx counted in it.
fn visit(evening: &Evening) -> (Ran, (Value, String)) {
    // A stream that is younger than the distance that players keep has nothing that can wait for a
    // peer.
    std::thread::sleep(Duration::from_secs(25));
    let (_folder, path) =
        scenario(evening, 50, "player = { p2p = {} }\nchat = { every = \"20s\" }");
    let ran = Running::start(None, &["run", &path.display().to_string()]).wait();
    let counted = (evening.counters().unwrap(), evening.access_log().unwrap());
    (ran, counted)
}

/// A minute and a half: the server starts, its stream gets 25 s of history, the run takes 50 s.
#[test]
fn visitors_ask_for_what_a_browser_asks_and_get_segments_from_each_other() {
    let Some(first) = Evening::start(&["--early-hashes"]).unwrap() else { return };
    // A run that does not count is made again, on a test server of its own.
    let mut evening = Some(first);
    let (ran, (counters, log)) = valid(|| {
        let evening = evening.take().or_else(|| Evening::start(&["--early-hashes"]).unwrap());
        visit(&evening.expect("it was there before"))
    });
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    let visitors = f64::from(VISITORS);
    assert_eq!(figure(&summary, "playback.startup.reached"), visitors, "{ran}");
    for request in [
        "GET page",
        "GET video",
        "GET live",
        "GET captions",
        "GET chapters",
        "GET storyboards",
        "GET player-settings",
        "GET comment-threads",
        "GET recommended",
        "GET livechat-settings",
        "GET livechat-room",
    ] {
        let count = counters["requests"][request].as_f64();
        assert_eq!(count, Some(visitors), "{request}: {counters:#}");
    }
    // A first view, and one each 5 s of playback.
    let views = counted(&counters, "views.posts");
    assert!((visitors * 8.0..=visitors * 11.0).contains(&views), "{views} {counters:#}");
    assert_eq!(
        counted(&counters, "views.viewers_added"),
        visitors,
        "each has a session of its own"
    );
    let metrics = counted(&counters, "playback.posts");
    assert!((visitors * 2.0..=visitors * 4.0).contains(&metrics), "{metrics}");
    // socket.io: the handshake, two polls, two messages; then the WebSocket. An event that comes
    // before is the answer to a poll, which is repeated then.
    assert_eq!(counted(&counters, "socketio.subscribed"), visitors, "{counters:#}");
    assert_eq!(counted(&counters, "socketio.websockets"), visitors, "{counters:#}");
    let polls = counted(&counters, "socketio.polling_requests");
    assert!((visitors * 5.0..=visitors * 6.0).contains(&polls), "{counters:#}");
    // The tracker counted what throng counted.
    let announces = counted(&counters, "tracker.received.started")
        + counted(&counters, "tracker.received.update");
    assert_eq!(figure(&summary, "playback.peers.announces"), announces, "{ran}");
    assert_eq!(counted(&counters, "tracker.offers_received"), 5.0 * announces, "{counters:#}");
    for (ours, theirs) in [("offers_received", "offer"), ("answers_received", "answer")] {
        let theirs = counted(&counters, &format!("tracker.sent.{theirs}"));
        assert_eq!(figure(&summary, &format!("playback.peers.{ours}")), theirs, "{ours}: {ran}");
    }
    assert_eq!(counted(&counters, "tracker.unknown_info_hash"), 0.0, "{counters:#}");
    let ratio = figure(&summary, "playback.peers.ratio");
    assert!((0.55..0.95).contains(&ratio), "{ratio}: {ran}");
    assert!(ran.stdout.contains("of the media from other viewers"), "{ran}");
    // The chat is in the same visitors.
    assert_eq!(counted(&counters, "chat.sockets"), visitors, "{counters:#}");
    assert_eq!(figure(&summary, "chat.messages_missing"), 0.0, "{ran}");
    assert!(figure(&summary, "chat.messages_due") > 50.0, "{ran}");
    // The hashes were asked for when a segment came that the last list did not name: of ten tabs
    // that share segments, about once for two new ones (docs/peertube.md).
    let hashes = log.lines().filter(|line| line.contains("segments-sha256.json")).count() as f64;
    assert!((visitors * 2.5..=visitors * 40.0).contains(&hashes), "{hashes}");
}

/// 55 s: the server starts, and the live is announced four segments late in a run of 45 s.
#[test]
fn who_waits_for_the_live_asks_again_at_the_moment_when_it_begins() {
    let Some(evening) = Evening::start(&["--waiting"]).unwrap() else { return };
    let (_folder, path) = scenario(&evening, 45, "");
    let mut running = Running::start(None, &["run", &path.display().to_string()]);
    std::thread::sleep(Duration::from_secs(6));
    let waiting = evening.counters().unwrap();
    assert_eq!(counted(&waiting, "socketio.subscribed"), f64::from(VISITORS), "{waiting:#}");
    evening.change("live").unwrap();
    running.when_playing(VISITORS);
    let ran = running.wait();
    let counters = evening.counters().unwrap();
    assert_eq!(
        counters["requests"]["GET video"].as_f64(),
        Some(2.0 * f64::from(VISITORS)),
        "{counters:#}\n{ran}"
    );
    assert_eq!(
        counters["requests"]["GET page"].as_f64(),
        Some(f64::from(VISITORS)),
        "{counters:#}"
    );
    assert_eq!(figure(&ran.summary(), "playback.startup.reached"), f64::from(VISITORS), "{ran}");
    assert_eq!(counted(&counters, "chat.sockets"), 0.0, "nobody opened the chat: {counters:#}");
}

/// One tab of Chromium and three viewers of throng with data channels: all that the tab gets from
/// others comes from throng's viewers, and all that it sends goes to them. They come one after the
/// other: the first has nobody but the tab to ask for ten seconds. Two minutes: the server starts,
/// its stream gets 25 s of history, the browser stays for 75 s.
#[test]
fn viewers_with_data_channels_exchange_segments_with_a_real_browser() {
    let Some(first) = Evening::start(&["--early-hashes"]).unwrap() else { return };
    let mut evening = Some(first);
    let (ran, tab) = valid(|| {
        let evening = evening.take().or_else(|| Evening::start(&["--early-hashes"]).unwrap());
        let evening = evening.expect("it was there before");
        std::thread::sleep(Duration::from_secs(25));
        let (_folder, path) =
            scenario_of(&evening, 3, 60, "player = { p2p = { data_channels = 1.0 } }");
        std::thread::scope(|scope| {
            let tab = scope.spawn(|| evening.browse(1, 75).unwrap());
            // It has something that those who come later lack.
            std::thread::sleep(Duration::from_secs(10));
            let command = ["run", &path.display().to_string(), "--set", "crowd.arrival.every=10s"];
            let ran = Running::start(None, &command).wait();
            (ran, tab.join().unwrap())
        })
    });
    let Some(tab) = tab else { return };
    let ran = ran.expect_code(0);
    let (summary, tab) = (ran.summary(), &tab["players"][0]);
    let of_tab = |name: &str| tab[name].as_f64().unwrap_or_else(|| panic!("{name}: {tab:#}"));
    assert!(of_tab("position") > 10.0 && of_tab("most_peers") >= 1.0, "{tab:#}\n{ran}");
    // Each checks what comes against the hashes.
    assert_eq!(of_tab("sha_wrong"), 0.0, "{tab:#}");
    assert!(!ran.to_string().contains("another SHA-256"), "{ran}");
    let [received, sent] = ["received", "sent"]
        .map(|way| figure(&summary, &format!("playback.peers.channel_{way}_bytes")));
    // A segment has about 200 kB, and how many each gives to others is for chance to say.
    assert!(of_tab("p2p_bytes") > 0.0, "nothing went to the tab: {tab:#}\n{ran}");
    assert!(sent >= of_tab("p2p_bytes"), "{sent} {tab:#}\n{ran}");
    assert!(of_tab("p2p_uploaded") > 0.0, "nothing came from the tab: {tab:#}\n{ran}");
    // What the viewers sent each other they received too.
    let between = sent - of_tab("p2p_bytes");
    assert!(received > between, "{received} of {between}: {tab:#}\n{ran}");
    assert!(ran.stdout.contains("  channels "), "{ran}");
}

/// One tab of Chromium and three viewers of throng with data channels, of a recording whose
/// segments are ranges of a file. A minute and a half: the server starts, the browser stays for
/// 60 s.
#[test]
fn viewers_of_a_recording_exchange_its_ranges_with_a_real_browser() {
    let Some(first) = Evening::start(&[RECORDING, TINY]).unwrap() else { return };
    let mut evening = Some(first);
    let (ran, tab) = valid(|| {
        let evening = evening.take().or_else(|| Evening::start(&[RECORDING, TINY]).unwrap());
        let evening = evening.expect("it was there before");
        let (_folder, path) =
            scenario_of(&evening, 3, 45, "player = { p2p = { data_channels = 1.0 } }");
        std::thread::scope(|scope| {
            let tab = scope.spawn(|| evening.browse(1, 60).unwrap());
            // It has what is played within 15 s, and nobody to get the rest from.
            std::thread::sleep(Duration::from_secs(10));
            let ran = Running::start(None, &["run", &path.display().to_string()]).wait();
            (ran, tab.join().unwrap())
        })
    });
    let Some(tab) = tab else { return };
    let ran = ran.expect_code(0);
    let (summary, tab) = (ran.summary(), &tab["players"][0]);
    let of_tab = |name: &str| tab[name].as_f64().unwrap_or_else(|| panic!("{name}: {tab:#}"));
    assert!(of_tab("position") > 10.0 && of_tab("most_peers") >= 1.0, "{tab:#}\n{ran}");
    assert_eq!(of_tab("sha_wrong"), 0.0, "{tab:#}");
    assert!(!ran.to_string().contains("another SHA-256"), "{ran}");
    assert_eq!(figure(&summary, "playback.peers.hash_reloads"), 0.0, "{ran}");
    // What nobody has is drawn: who has more to give differs from run to run.
    assert!(of_tab("p2p_bytes") + of_tab("p2p_uploaded") > 0.0, "{tab:#}\n{ran}");
    assert!(figure(&summary, "playback.peers.channel_sent_bytes") >= of_tab("p2p_bytes"), "{ran}");
    let ratio = figure(&summary, "playback.peers.ratio");
    assert!((0.3..0.95).contains(&ratio), "{ratio}: {ran}");
}

/// 70 s: the server starts, and the run of 40 s follows 5 s of the idle server.
#[test]
fn a_chat_that_turns_its_viewers_away_is_in_the_report_by_uri_and_minute() {
    let Some(evening) = Evening::start(&["--early-hashes"]).unwrap() else { return };
    let (_folder, path) = scenario(&evening, 40, "chat = { every = \"20s\" }");
    let log = evening.combined_log();
    let watch = format!("process=node,access_log={}", log.display());
    evening.freeze("prosody", true).unwrap();
    let running = Running::start(None, &["run", &path.display().to_string(), "--watch", &watch]);
    // Upgrades that are under way have their answers long before the run ends.
    std::thread::sleep(Duration::from_secs(20));
    evening.freeze("prosody", false).unwrap();
    let ran = running.wait();
    let summary = ran.summary();
    let text = std::fs::read_to_string(&log).unwrap();
    let refused = |line: &&str| line.contains("/ws/xmpp-websocket") && line.contains("\" 502 ");
    let logged = text.lines().filter(refused).count();
    assert!(logged >= VISITORS as usize, "{logged}: {ran}");
    let errors = &summary["hosts"][0]["server_errors"];
    let chat = errors
        .as_array()
        .and_then(|all| all.iter().find(|one| one["uri_group"] == "chat_websocket"));
    let chat = chat.unwrap_or_else(|| panic!("{errors:#}: {ran}"));
    assert_eq!(chat["status"], "502", "{errors:#}");
    assert_eq!(chat["by_minute"], serde_json::json!([logged]), "{errors:#}: {ran}");
    assert!(ran.stdout.contains(&format!("answers 5xx: 502 ×{logged} on chat_websocket")), "{ran}");
    // The same from the log alone, by its own clock.
    let (folder, log) = (ran.folder().display().to_string(), log.display().to_string());
    let output = plain(&["requests", &folder, "--access-log", &log, "--json"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let minutes = said["access_log"]["accounts"]["errors_by_minute"].as_array().unwrap().iter();
    let answers = minutes.filter_map(|minute| minute["answers"].as_u64()).sum::<u64>();
    assert_eq!(answers as usize, logged, "{said:#}");
}

/// A minute and a quarter: the server starts, its stream gets 25 s of history, the run takes 40 s.
#[test]
fn visitors_fetch_a_live_from_object_storage() {
    let Some(evening) = Evening::start(&[OBJECT_STORAGE]).unwrap() else { return };
    // As in `visit`.
    std::thread::sleep(Duration::from_secs(25));
    let (_folder, path) = scenario(&evening, 40, "player = { p2p = {} }");
    let ran = Running::start(None, &["run", &path.display().to_string()]).wait();
    let summary = ran.summary();
    assert_eq!(figure(&summary, "playback.startup.reached"), f64::from(VISITORS), "{ran}");
    // The playlist follows the hash there.
    assert_eq!(figure(&summary, "playback.peers.hash_reloads"), 0.0, "{ran}");
    let (log, host) = evening.object_storage();
    let (folder, log) = (ran.folder().display().to_string(), log.display().to_string());
    let output = plain(&["requests", &folder, "--access-log", &log, "--host", &host]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("EQUAL "), "{said}");
    let counters = evening.counters().unwrap();
    // Node counts what it did: nothing is deleted before the list of 15 segments is full.
    let operations = &counters["objects"]["operations"];
    let stored = |what: &str| operations[what].as_f64().unwrap_or(0.0);
    let (segments, playlists, hashes, deleted) =
        (stored("PUT ts"), stored("PUT m3u8"), stored("PUT json"), stored("DELETE ts"));
    assert_eq!(counted(&counters, "objects.failed"), 0.0, "{counters:#}");
    assert!(segments >= 20.0, "{counters:#}");
    // The hash comes first: a segment of each rendition may be on its way, and one on its way out.
    assert!((hashes - segments - deleted).abs() <= 4.0, "{counters:#}");
    assert!((playlists - segments).abs() <= 3.0, "{counters:#}");
}
