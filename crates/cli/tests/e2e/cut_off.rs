//! Nothing measured is lost, however a run ends.

use std::time::Duration;

use crate::throng::{Running, Stage, alone, plain};

fn report(folder: &std::path::Path) -> (Option<i32>, serde_json::Value) {
    let output = plain(&["report", folder.to_str().unwrap(), "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = serde_json::from_str(&text).unwrap_or_else(|e| {
        panic!("{e}: {text}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    (output.status.code(), summary)
}

fn cut_off(signal: &str) -> (Option<i32>, serde_json::Value) {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let running = Running::start(None, &["view", &stage.target(), "-n", "5", "--every", "50ms", "--for", "60s"]);
    std::thread::sleep(Duration::from_secs(5));
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
    let _alone = alone();
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
    let _alone = alone();
    let (_, summary) = cut_off("KILL");
    assert_eq!(summary["ending"], "unfinished");
    assert_eq!(summary["partial"], true);
    assert!(summary["received_bps"].as_f64().unwrap() > 1e6, "{summary:#}");
}
