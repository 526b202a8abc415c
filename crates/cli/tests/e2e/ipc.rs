//! `throng ipc` as a user runs it: what it prints, what it writes, how it ends, and that no process
//! remains.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn throng(arguments: &[&str]) -> Output {
    // Without a named folder, one is made in the current directory, which must not be among the
    // sources.
    throng_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

fn throng_in(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(THRONG).args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_measurement_is_printed_kept_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("frames");
    let folder = output.to_str().unwrap();
    let arguments = [
        "ipc",
        "--frame",
        "320x180:i420",
        "--for",
        "200ms",
        "--only",
        "tcp,memcpy,ring",
        "-o",
        folder,
    ];
    let ran = throng(&arguments);
    let printed = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{printed}{}", text(&ran.stderr));
    for expect in [
        "TCP loopback",
        "ring  ",
        "memcpy (floor",
        "CPU s/GB",
        "frames of 86,400 B",
        "8760 h x 0.05",
    ] {
        assert!(printed.contains(expect), "{expect}: {printed}");
    }
    let json = std::fs::read_to_string(output.join("ipc.json")).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let rows: Vec<_> =
        report["rows"].as_array().unwrap().iter().map(|row| row["transport"].as_str()).collect();
    assert_eq!(rows, [Some("memcpy"), Some("ring"), Some("tcp")], "in the order of the table");
    assert!(report["rows"][2]["figures"]["cpu_s_per_gb"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(output.join("report.html")).unwrap().contains("TCP loopback"));

    std::fs::remove_file(output.join("report.html")).unwrap();
    let again = throng(&["report", folder, "--json"]);
    assert_eq!((again.status.code(), text(&again.stdout)), (Some(0), json));
    assert!(output.join("report.html").exists());

    let taken = throng(&arguments);
    assert_eq!(taken.status.code(), Some(2));
    assert!(text(&taken.stderr).contains("holds a measurement already"));
}

#[test]
fn a_measurement_without_a_folder_is_kept_where_runs_are() {
    let folder = tempfile::tempdir().unwrap();
    let measure = [
        "ipc", "--frame", "64KiB", "--for", "100ms", "--rounds", "1", "--quick", "--only", "memcpy",
    ];
    for json in [&["--json"][..], &[]] {
        let before = std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
        let ran = throng_in(folder.path(), &[&measure[..], json].concat());
        let output = text(if json.is_empty() { &ran.stdout } else { &ran.stderr });
        assert_eq!(ran.status.code(), Some(0), "{output}");
        let page = output
            .lines()
            .find_map(|line| line.strip_prefix("report  "))
            .unwrap_or_else(|| panic!("{output}"));
        assert!(page.starts_with("runs/") && folder.path().join(page).is_file(), "{page}");
        assert!(folder.path().join(page).with_file_name("ipc.json").is_file());
        assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), before + 1);
    }
    let refused = throng_in(folder.path(), &["ipc", "--for", "soon"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        std::fs::read_dir(folder.path().join("runs")).unwrap().count(),
        2,
        "nothing was measured"
    );
}

#[test]
fn what_cannot_be_measured_is_a_usage_error_with_its_place_and_mend() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = folder.path().join("sizes.txt");
    std::fs::write(&sizes, "1200\n# a comment\nbig\n").unwrap();
    let sizes = sizes.to_str().unwrap();
    for (arguments, says) in [
        (["--only", "carrier-pigeon"], "there is no transport `carrier-pigeon`; there is memcpy, "),
        (["--frame", "1920x1080:h264"], "`h264` is no known pixel format"),
        (["--sizes", sizes], "sizes.txt: line 3: `big` is no frame size"),
        (["--sizes", "/nowhere"], "No such file"),
        (["--for", "soon"], "--for: "),
        (["--for", "1ms"], "100ms to 1h"),
        (["--fps", "0"], "above 0"),
        (["--fps", "NaN"], "above 0"),
        (["--producers", "0"], "1..=16"),
        (["--price-core-hour", "-1"], "must be 0 to"),
    ] {
        let ran = throng(&[&["ipc"], &arguments[..]].concat());
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn sizes_from_a_file_an_offered_rate_and_three_producers_give_json() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = folder.path().join("sizes.txt");
    std::fs::write(&sizes, "1200\n160x90:nv12 # a small picture\n").unwrap();
    let ran = throng(&[
        "ipc",
        "--sizes",
        sizes.to_str().unwrap(),
        "--fps",
        "100",
        "--producers",
        "3",
        "--for",
        "300ms",
        "--read",
        "all",
        "--only",
        "unix-stream",
        "--quick",
        "--json",
        "--streams",
        "10",
        "--price-core-hour",
        "2",
    ]);
    let report: Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", text(&ran.stderr)));
    assert_eq!(ran.status.code(), Some(0));
    assert_eq!(report["workload"]["sizes"], 2);
    assert_eq!(report["workload"]["frame_bytes_mean"], 11_400.0);
    let figures = &report["rows"][0]["figures"];
    assert!(
        figures["system_calls"].is_null() && figures["send_delay"]["us_p99"].as_f64().is_some()
    );
    let cores = figures["cpu_s_per_gb"].as_f64().unwrap() * 11_400.0 * 100.0 / 1e9;
    let year = figures["cost_per_year"].as_f64().unwrap();
    assert!((year / (cores * 10.0 * 8760.0 * 2.0) - 1.0).abs() < 1e-9, "{figures:#}");
}

/// Processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let parent =
        |stat: &str| stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|child| {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            parent(&stat) == Some(pid)
        })
        .collect()
}

/// Whether a process exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A long measurement with both its roles running: the pipe is done, TCP is in progress.
fn going_on(folder: &Path) -> (Child, Vec<u32>) {
    let arguments = [
        "ipc",
        "--frame",
        "64KiB",
        "--for",
        "600s",
        "--only",
        "tcp",
        "-o",
        folder.to_str().unwrap(),
    ];
    let child = Command::new(THRONG)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("two roles", || children(child.id()).len() == 2);
    let roles = children(child.id());
    (child, roles)
}

#[test]
fn an_interrupted_measurement_ends_its_processes_and_says_that_it_is_partial() {
    let folder = tempfile::tempdir().unwrap();
    let (child, roles) = going_on(folder.path());
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stdout));
    assert!(text(&ended.stdout).contains("Ended early"), "{}", text(&ended.stdout));
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("ipc.json")).unwrap())
            .unwrap();
    assert_eq!(report["partial"], true);
    assert!(!roles.into_iter().any(is_alive));
}

#[test]
fn a_killed_measurement_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, roles) = going_on(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    for role in roles {
        wait_for("the end of a role", || !is_alive(role));
    }
}

#[test]
fn the_schema_is_the_documented_one() {
    let documented: Value =
        serde_json::from_str(include_str!("../../../../docs/ipc.schema.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&throng(&["schema", "ipc"]).stdout).unwrap(),
        documented
    );
}
