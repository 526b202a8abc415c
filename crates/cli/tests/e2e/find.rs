//! Searches with a known answer.

use std::net::Ipv4Addr;

use serde_json::Value;
use throng_observation::run::ParticipantId;
use throng_observation::{HoldOutcome, Purpose};
use throng_sim::janus::{ADMIN_KEY, Janus};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::price;
use crate::throng::{Ran, Running, Stage, figure, plain, run};

/// No server listens there.
const ROOM_URL: &str = "janus+ws://127.0.0.1:9/videoroom/1";

/// The shortest possible search; one second is enough to join a server on this host.
const SHORT: [&str; 5] = ["--budget", "1m", "--quiet", "--objective", "connect p99 < 1s"];

/// The search reports exactly this known limit.
fn expect_limit(ran: &Ran, passes: f64, fails: f64) {
    let summary = ran.summary();
    let said = (figure(&summary, "capacity.users"), figure(&summary, "capacity.first_failing"));
    assert_eq!(said, (passes, fails), "{ran}");
}

/// The failing load failed by this clause more than by any other, in the summary and in its line.
fn expect_reason(ran: &Ran, clause: &str) {
    let summary = ran.summary();
    let acceptable = &summary["capacity"]["goals"][1];
    assert_eq!(acceptable["reasons"][0]["clause"], clause, "{ran}");
    let (failing, word) = (figure(acceptable, "failing"), clause.replace('_', " "));
    let says = |line: &str| line.contains(&format!("; {failing} failed: ")) && line.contains(&word);
    assert!(ran.stdout.lines().any(says), "{ran}");
}

/// Two minutes: a search, in which the server recovers after each load that failed.
#[test]
fn a_server_that_takes_twelve_has_a_capacity_of_twelve() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--max-viewers", "12"]);
    let watch = format!("pid={}", stage.pid());
    let find = ["find", &stage.target(), "--start", "9", "--ceiling", "40", "--watch", &watch];
    let ran = run(None, &[&find[..], &SHORT].concat()).expect_code(0);
    let summary = ran.summary();
    expect_limit(&ran, 12.0, 13.0);
    assert_eq!(summary["capacity"]["verdict"], "found", "{ran}");
    assert_eq!(summary["bottleneck"]["finding"], "configured_ceiling", "{ran}");
    let (passes, fails) =
        (figure(&summary, "capacity.users"), figure(&summary, "capacity.first_failing"));
    assert!(
        ran.stdout.starts_with(&format!("{passes} viewers (first failing load {fails})")),
        "{ran}"
    );
    // The run folder has the same: each load, and each user's seconds.
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    let confirmed = run.holds.iter().find(|hold| hold.purpose == Purpose::Confirm);
    let confirmed = confirmed.map(|hold| (f64::from(hold.users), hold.passed[1]));
    assert_eq!(confirmed, Some((fails, HoldOutcome::No)), "{ran}");
    let refused = run.experience.iter().map(|row| row.clauses[0]).max();
    assert!(refused >= Some(1), "refused joins are among the users: {refused:?}");
    expect_reason(&ran, "not_connected");
    price::agrees_with(&ran);
}

/// 35 s: a search, which holds its largest crowd twice, the second time for 8 s.
#[test]
fn a_server_that_takes_everybody_has_at_least_the_ceiling() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let find = ["find", &stage.target(), "--start", "4", "--ceiling", "6"];
    let ran = run(None, &[&find[..], &SHORT].concat()).expect_code(0);
    assert_eq!(ran.summary()["capacity"]["first_failing"], Value::Null, "{ran}");
    assert_eq!(ran.summary()["capacity"]["verdict"], "at_least", "{ran}");
    assert!(ran.stdout.starts_with("At least 6 viewers"), "{ran}");
}

/// Ten seconds each: a baseline, and the first seconds of the smallest crowd. A search for its
/// limit would take a minute. A crowd of one tries twice.
#[test]
fn a_server_that_refuses_all_is_distinguished_from_a_full_one() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--token", "for nobody"]);
    let closed_port = "whep+http://127.0.0.1:9/whep".to_owned();
    for (target, reason, start) in [
        (stage.target(), "http_401", "5"),
        (closed_port.clone(), "tcp", "5"),
        (closed_port, "tcp", "1"),
    ] {
        let find = ["find", &target, "--start", start];
        let ran = run(None, &[&find[..], &SHORT].concat()).expect_code(3);
        assert!(figure(&ran.summary(), "duration_s") < 30.0, "{ran}");
        assert_eq!(ran.summary()["capacity"], Value::Null, "{ran}");
        assert!(ran.stdout.starts_with("None of "), "{ran}");
        assert!(ran.stdout.contains(&format!("failed with {reason}")), "{ran}");
        assert!(
            ran.stderr.contains(&format!("nobody is served, whatever the load: {reason}: ")),
            "{ran}"
        );
        if start == "1" {
            assert_eq!(figure(&ran.summary(), "participants.failed"), 2.0, "{ran}");
        }
    }
}

/// Ten to fifteen seconds each: a baseline, and an FFmpeg that looks for a server twice, for SRT
/// three seconds each time.
#[test]
fn nobody_who_listens_for_publishers_of_ffmpeg_is_told_at_once() {
    if !throng_sim::ingest::ffmpeg_has_srt() {
        return;
    }
    let clock = ["--set", "crowd.publish={ video = \"144p\", burn_clock = true }"];
    for (target, more, reason) in [
        ("publish+rtmp://127.0.0.1:9/live/k", &clock[..], "tcp"),
        ("publish+srt://127.0.0.1:9", &[][..], "srt"),
    ] {
        let find = [&["find", target, "--start", "1"][..], more, &SHORT].concat();
        let ran = run(None, &find).expect_code(3);
        assert!(figure(&ran.summary(), "duration_s") < 30.0, "{ran}");
        assert!(ran.stdout.starts_with("None of "), "{ran}");
        assert!(ran.stdout.contains(&format!("failed with {reason}")), "{ran}");
        let says = format!("nobody is served, whatever the load: {reason}: ");
        assert!(ran.stderr.contains(&says), "{ran}");
        assert_eq!(figure(&ran.summary(), "participants.failed"), 2.0, "{ran}");
    }
}

/// A minute and a half: a search, which holds what failed in its first minute once more.
#[test]
fn a_value_that_varies_is_answered_with_a_value() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--max-viewers", "6"]);
    let find = ["find", &stage.target(), "--vary", "crowd.size=2,5,9"];
    let ran = run(None, &[&find[..], &SHORT].concat()).expect_code(0);
    let summary = ran.summary();
    // Positions in the list of values.
    expect_limit(&ran, 2.0, 3.0);
    assert_eq!(summary["capacity"]["values"][1], "crowd.size = 5", "{ran}");
    let answer = "crowd.size = 5 (first failing load crowd.size = 9)";
    assert!(ran.stdout.starts_with(answer), "{ran}");
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    assert_eq!(run.info.cohorts, ["viewers 2", "viewers 5", "viewers 9"]);
    // Only one crowd exists at a time.
    let together =
        run.experience.iter().filter(|row| row.users > 0).map(|row| (row.second, row.users));
    let mut seconds: Vec<i64> = together.map(|(second, _)| second).collect();
    let rows = seconds.len();
    seconds.dedup();
    assert!(rows - seconds.len() <= 5, "{rows} rows in {} seconds", seconds.len());
}

/// On the real Janus, with ports for five rooms of two participants and for one more participant.
/// Two minutes: a search, in which the server recovers after each load that failed.
#[test]
fn rooms_that_vary_are_whole_rooms() {
    if !requires_root() {
        return;
    }
    let address = Ipv4Addr::new(10, 79, 0, 1);
    let namespace = Namespace::with_veth("rooms", address).unwrap();
    // Each participant takes one port to send and one to receive.
    let _janus = Janus::start_on_ports(&namespace, address, 20_000..=20_021).unwrap();
    let url = format!("janus+ws://{address}:8188/videoroom/90");
    let key = format!("room.admin_key=\"{ADMIN_KEY}\"");
    let sets = ["--set", "crowd.size=2", "--set", &key];
    let find = ["find", &url, "--vary", "target.rooms", "--start", "4", "--ceiling", "30"];
    let ran = run(Some(&namespace), &[&find[..], &sets, &SHORT].concat()).expect_code(0);
    let summary = ran.summary();
    expect_limit(&ran, 10.0, 12.0);
    let (passes, fails) =
        (figure(&summary, "capacity.users"), figure(&summary, "capacity.first_failing"));
    let answer = format!("{passes} participants in rooms of 2 (first failing load {fails})");
    assert!(ran.stdout.starts_with(&answer), "{ran}");
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    assert!(run.holds.iter().all(|hold| hold.users % 2 == 0), "{:?}", run.holds);
    // No participant was seen in two rooms.
    let room = |number: u32| {
        run.participants.iter().find(|row| row.participant.0 == number).map(|row| row.cohort)
    };
    for track in run.tracks.iter().filter(|track| track.counters.frames_decodable > 0) {
        let from = track.from.as_deref().and_then(ParticipantId::from_name);
        let from = from.unwrap_or_else(|| panic!("no name: {track:?}\n{ran}"));
        assert_eq!(room(from.0), room(track.participant.0), "{track:?}");
    }
}

/// Two minutes: a search in two parts, in which the server recovers after failed loads.
#[test]
fn a_search_that_is_cut_off_resumes_from_its_folder() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--max-viewers", "8"]);
    let find = ["find", &stage.target(), "--start", "6", "--ceiling", "30"];
    let running = Running::start(None, &[&find[..], &SHORT].concat());
    std::thread::sleep(std::time::Duration::from_secs(13));
    running.signal("INT");
    let cut = running.wait().expect_code(130);
    assert!(cut.stderr.contains("--resume"), "{cut}");
    let held = throng_store::RunFolder::read(cut.folder()).unwrap().holds;
    assert!(held.iter().any(|hold| hold.until.is_some()), "{held:#?}");
    let folder = cut.folder().display().to_string();
    let ran = run(None, &[&find[..], &SHORT, &["--resume", &folder]].concat()).expect_code(0);
    expect_limit(&ran, 8.0, 9.0);
    let baselines = throng_store::RunFolder::read(ran.folder())
        .unwrap()
        .holds
        .into_iter()
        .filter(|h| h.number == 0)
        .count();
    assert_eq!(baselines, 1, "what was held before is kept, and not held again");
}

#[test]
fn what_cannot_be_searched_is_said_before_anything_is_sent() {
    for (arguments, says) in [
        (vec!["find", "whep+http://127.0.0.1:9/whep", "--budget", "soon"], "--budget"),
        (
            vec!["find", "whep+http://127.0.0.1:9/whep", "--vary", "pupils"],
            "unknown cohort `pupils`",
        ),
        (
            vec!["find", "whep+http://127.0.0.1:9/whep", "--vary", "crowd.size=5"],
            "two values or more",
        ),
        (vec!["find", "whep+http://127.0.0.1:9/whep", "--vary", "target.rooms"], "has no rooms"),
        (vec!["find", ROOM_URL, "--vary", "target.rooms=1,2"], "the number of rooms is a size"),
        (vec!["find", ROOM_URL, "--set", "target.rooms=2", "--vary", "viewers"], "target.rooms=1"),
        (vec!["find", "whep+http://127.0.0.1:9/whep", "--vary", "crowd.sise=5,6"], "size"),
        (
            vec![
                "find",
                "whep+http://127.0.0.1:9/whep",
                "--vary",
                "target.url=whep+http://127.0.0.1:9/a,whep+http://127.0.0.1:9/b",
            ],
            "below [crowd]",
        ),
        (vec!["find", "whep+http://127.0.0.1:9/whep", "--resume", "/nowhere"], "/nowhere"),
        (vec!["find", "no-such-file.toml"], "cannot read no-such-file.toml"),
    ] {
        let output = plain(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

mod long {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::{SHORT, expect_limit, expect_reason};
    use crate::throng::{Stage, run};

    /// Stops a process for two and a half seconds of each twenty until `is_over` is set.
    fn stands_still(pid: u32, is_over: &AtomicBool) {
        let signal =
            |name: &str| drop(Command::new("kill").args([name, &pid.to_string()]).status());
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(17_500));
            signal("-STOP");
            std::thread::sleep(Duration::from_millis(2_500));
            signal("-CONT");
        }
    }

    /// The case that `search::family_tests` simulates, on a server that really stalls.
    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn a_server_that_stands_still_now_and_then_gets_no_limit_that_is_sure() {
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let (pid, is_over) = (stage.pid(), AtomicBool::new(false));
        let find = [
            "find",
            &stage.target(),
            "--start",
            "4",
            "--ceiling",
            "12",
            "--budget",
            "2m",
            "--quiet",
        ];
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| stands_still(pid, &is_over));
            let ran = run(None, &find);
            is_over.store(true, Ordering::Relaxed);
            ran
        });
        let capacity = &ran.summary()["capacity"];
        let caveats = capacity["caveats"].as_array().map_or(0, Vec::len);
        assert!(caveats > 0 || capacity["verdict"] == "undecidable", "{ran}");
        let notes = capacity["notes"].to_string() + &capacity["caveats"].to_string();
        assert!(
            notes.contains("service was bad")
                || notes.contains("went bad")
                || notes.contains("failed"),
            "{ran}"
        );
    }

    /// Two minutes: a search, in which the server recovers after each load that failed.
    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn a_viewer_without_video_is_not_served() {
        let stage = Stage::start(None, "127.0.0.1:0", &["--pictures-max", "8"]);
        let find = ["find", &stage.target(), "--start", "6", "--ceiling", "30"];
        let ran = run(None, &[&find[..], &SHORT].concat()).expect_code(0);
        expect_limit(&ran, 8.0, 9.0);
        assert_eq!(ran.summary()["capacity"]["verdict"], "found", "{ran}");
        let without_media = throng_store::RunFolder::read(ran.folder()).unwrap();
        let reasons = without_media.experience.iter().map(|row| (row.clauses[0], row.clauses[1]));
        assert!(reasons.clone().all(|(not_connected, _)| not_connected == 0), "{ran}");
        assert!(reasons.map(|(_, no_media)| no_media).max() >= Some(1), "{ran}");
        expect_reason(&ran, "no_media");
    }
}
