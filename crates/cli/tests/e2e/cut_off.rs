//! No measured data is lost, however a run ends.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use throng_sim::requires_root;

use crate::throng::{Running, Stage, THRONG, plain};

fn report(folder: &std::path::Path) -> (Option<i32>, serde_json::Value) {
    let output = plain(&["report", folder.to_str().unwrap(), "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), summary)
}

fn cut_off(signals: &[&str]) -> (Option<i32>, serde_json::Value) {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    // Also where the tests themselves run under nohup.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", THRONG]);
    let arguments = ["view", &stage.target(), "-n", "5", "--every", "50ms", "--for", "60s"];
    let mut running = Running::spawn(command, &arguments);
    running.when_playing(5);
    for signal in signals {
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(1));
    }
    let folder = running.run_folder();
    let ran = running.wait();
    if signals != ["KILL"] {
        assert_eq!(ran.code, Some(130), "{ran}");
        assert!(folder.join("report.html").exists(), "{ran}");
    }
    report(&folder)
}

/// Half a minute: eight runs, one after another, each of which has to play before it is ended.
#[test]
fn a_signal_leaves_a_report_that_says_it_is_partial() {
    let ends: [&[&str]; 8] = [
        &["INT"],
        &["TERM"],
        &["HUP"],
        // Of a terminal or a session that is closed.
        &["HUP", "HUP"],
        &["TERM", "HUP"],
        &["HUP", "TERM"],
        // Of a service that is stopped, to what a throng in it started.
        &["TERM", "USR1"],
        &["USR1", "TERM"],
    ];
    for signals in ends {
        let (code, summary) = cut_off(signals);
        assert_eq!(code, Some(130));
        assert_eq!(summary["ending"], "interrupted");
        assert_eq!(summary["partial"], true);
        assert_eq!(summary["participants"]["connected"], 5);
        assert_ne!(summary["outcome"], "met", "a part of a run is never met");
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", THRONG]);
    let arguments = ["view", &stage.target(), "-n", "2", "--every", "50ms", "--for", "4s"];
    let mut running = Running::spawn(nohup, &arguments);
    running.when_playing(2);
    running.signal("HUP");
    let ran = running.wait();
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(ran.summary()["ending"], "complete", "{ran}");
}

/// At exec a program with capabilities of its file loses what its parent asked the kernel for.
#[test]
fn a_throng_that_another_one_started_asks_itself_to_end_with_it() {
    let stage_of = |parent: u32| {
        let mut command = Command::new(THRONG);
        command.args(["stage", "--listen", "127.0.0.1:0"]);
        command.env("THRONG_PARENT", format!("{parent} TERM"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let starts = move || {
        let mut child = stage_of(std::process::id());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listens = lines.map_while(Result::ok).any(|line| line.trim().starts_with("watch"));
        assert!(listens, "{:?}", child.wait());
        child
    };
    let mut child = std::thread::spawn(starts).join().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() >= until {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it outlived the thread that started it");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // Nobody has this number: the parent died before the child asked.
    let orphan = stage_of(i32::MAX.unsigned_abs()).wait_with_output().unwrap();
    assert_eq!(orphan.status.code(), Some(130));
}

#[test]
fn kill_9_leaves_a_readable_run() {
    let (code, summary) = cut_off(&["KILL"]);
    assert_eq!(code, Some(4), "nobody knows how its rest would have been");
    assert_eq!(
        (&summary["outcome"], &summary["ending"]),
        (&"invalid".into(), &"unfinished".into())
    );
    let reasons = summary["partial_reasons"].to_string();
    assert!(reasons.contains("known until"), "{reasons}");
    assert_eq!((&summary["partial"], &summary["in_progress"]), (&true.into(), &false.into()));
    assert!(summary["received_bps"].as_f64().unwrap() > 1e6, "{summary:#}");
    assert_eq!(summary["video"]["tracks"], 5, "tracks are written when they first report");
}

#[test]
fn a_full_disk_stops_the_writing_and_not_the_run() {
    if !requires_root() {
        return;
    }
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("disk")).unwrap();
    // The disk disappears with the namespace, so its content is copied before.
    let script = format!(
        "cd {dir} && mount -t tmpfs -o size=200k none disk || exit 99
         {THRONG} view {target} -n 5 --every 50ms --for 10s --output disk/run > said 2>&1
         echo $? > code
         {THRONG} report disk/run --json > report.json 2> report.err
         cp -r disk/run kept",
        dir = dir.path().display(),
        target = stage.target(),
    );
    let status = Command::new("unshare").args(["--mount", "sh", "-c", &script]).status().unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let said = read("said");
    assert!(status.success(), "{said}");
    assert_eq!(read("code").trim(), "4", "{said}");
    assert!(said.contains("the run folder cannot be written, the run continues"), "{said}");
    assert!(said.contains("the end of the run could not be stored"), "{said}");
    // The figures were printed, though there was no space to store them.
    assert!(said.contains("5 intended, 5 connected"), "{said}");

    let report = read("report.json");
    let summary: serde_json::Value =
        serde_json::from_str(&report).unwrap_or_else(|e| panic!("{e}: {report}"));
    assert_eq!(
        (&summary["ending"], &summary["partial"]),
        (&"unfinished".into(), &true.into()),
        "{summary:#}"
    );
    assert_eq!(summary["participants"]["connected"], 5, "{summary:#}");
    let run = throng_store::RunFolder::read(dir.path().join("kept")).unwrap();
    assert!(!run.crowd.is_empty(), "{} series rows", run.series.len());
}

/// Not even the tables of a run find room on it.
#[test]
fn a_disk_of_64_kb_leaves_a_folder_that_says_what_it_lacks() {
    if !requires_root() {
        return;
    }
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("disk")).unwrap();
    let script = format!(
        "cd {dir} && mount -t tmpfs -o size=64k none disk || exit 99
         {THRONG} view {target} -n 2 --for 3s --output disk/run > said 2>&1
         echo $? > code
         {THRONG} report disk/run > report 2>&1
         echo $? > code-of-report",
        dir = dir.path().display(),
        target = stage.target(),
    );
    let status = Command::new("unshare").args(["--mount", "sh", "-c", &script]).status().unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let said = read("said");
    assert!(status.success() && said.contains("the disk is full"), "{said}");
    assert_ne!(read("code").trim(), "0", "{said}");
    let report = read("report");
    assert_eq!(read("code-of-report").trim(), "4", "{report}");
    assert!(report.contains("incomplete") && report.contains("the disk was full"), "{report}");
}

#[test]
fn the_summary_of_a_run_whose_rows_were_cut_is_shown_and_kept() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let running = Running::start(
        None,
        &["view", &stage.target(), "-n", "2", "--every", "50ms", "--for", "3s"],
    );
    let ran = running.wait();
    let folder = ran.folder();
    let summary = std::fs::read(folder.join("summary.json")).unwrap();
    let database = std::fs::File::options().write(true).open(folder.join("run.db")).unwrap();
    database.set_len(database.metadata().unwrap().len() / 2).unwrap();
    let output = plain(&["report", folder.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("is cut") && said.contains("made before"), "{said}");
    assert!(text.contains("2 viewers"), "{text}");
    assert_eq!(std::fs::read(folder.join("summary.json")).unwrap(), summary);
}
