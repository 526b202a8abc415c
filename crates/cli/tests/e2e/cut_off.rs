//! No measured data is lost, however a run ends.

use std::process::Command;

use throng_sim::requires_root;

use crate::throng::{Running, Stage, THRONG, plain};

fn report(folder: &std::path::Path) -> (Option<i32>, serde_json::Value) {
    let output = plain(&["report", folder.to_str().unwrap(), "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), summary)
}

fn cut_off(signal: &str) -> (Option<i32>, serde_json::Value) {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let mut running = Running::start(
        None,
        &["view", &stage.target(), "-n", "5", "--every", "50ms", "--for", "60s"],
    );
    running.when_playing(5);
    running.signal(signal);
    let folder = running.run_folder();
    let ran = running.wait();
    if signal != "KILL" {
        assert_eq!(ran.code, Some(130), "{ran}");
        assert!(folder.join("report.html").exists(), "{ran}");
    }
    report(&folder)
}

#[test]
fn ctrl_c_and_sigterm_leave_a_report_that_says_it_is_partial() {
    for signal in ["INT", "TERM"] {
        let (code, summary) = cut_off(signal);
        assert_eq!(code, Some(130));
        assert_eq!(summary["ending"], "interrupted");
        assert_eq!(summary["partial"], true);
        assert_eq!(summary["participants"]["connected"], 5);
    }
}

#[test]
fn kill_9_leaves_a_readable_run() {
    let (_, summary) = cut_off("KILL");
    assert_eq!(summary["ending"], "unfinished");
    assert_eq!(summary["partial"], true);
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
