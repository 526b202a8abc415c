//! The runs of a folder: listed, labelled, done again, deleted.

use std::path::Path;

use serde_json::Value;
use throng_scenario::Scenario;

use crate::throng::{Running, Stage, plain};

fn said(args: &[&str]) -> (Option<i32>, String, String) {
    let output = plain(args);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The list of a folder as JSON.
fn listed(folder: &str, filter: &[&str]) -> Vec<Value> {
    let (code, out, error) = said(&[&["runs", folder, "--json"], filter].concat());
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_str(&out).unwrap_or_else(|wrong| panic!("{wrong}: {out}"))
}

/// The scenario that a run was made with, without the folder of its output.
fn scenario_of(folder: &Path) -> Scenario {
    let run = throng_store::RunFolder::read(folder).unwrap();
    let mut scenario = Scenario::parse(&run.info.scenario).unwrap();
    scenario.output.folder = None;
    scenario
}

#[test]
fn a_run_is_listed_labelled_done_again_and_deleted() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().display().to_string();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let [first_path, second_path] = [&first, &second].map(|path| path.display().to_string());
    let arrival = "crowd.arrival={ poisson = { rate = \"4/s\", seed = 11 } }";
    let target = stage.target();
    let (code, out, error) = said(&[
        "view",
        &target,
        "-n",
        "3",
        "--for",
        "3s",
        "--quiet",
        "--set",
        arrival,
        "--output",
        &first_path,
    ]);
    assert_eq!(code, Some(0), "{out}{error}");

    let (code, out, error) = said(&["runs", "label", &first_path, "nightly", "v1"]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert_eq!(said(&["runs", "note", &first_path, "before the upgrade"]).0, Some(0));
    let (code, _, error) = said(&["runs", "label", &first_path, "two words"]);
    assert!(code == Some(2) && error.contains("1 to 40 letters"), "{error}");

    let (code, out, error) = said(&["rerun", &first_path, "--print"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(out, format!("throng run {first_path}/scenario.toml\n"));
    assert!(!error.contains("differs"), "{error}");
    let answer = folder.path().join("answer.md");
    let outputs = ["--quiet", "--output", &second_path, "--markdown", answer.to_str().unwrap()];
    let (code, out, error) = said(&[&["rerun", &first_path][..], &outputs].concat());
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(std::fs::read_to_string(&answer).unwrap().starts_with("### throng: met"));
    let (one, other) = (scenario_of(&first), scenario_of(&second));
    assert_eq!(one.plan(), other.plan(), "the same seeds, the same plan");
    assert_eq!(one, other);

    let all = listed(&runs, &[]);
    let ids: Vec<&str> = all.iter().filter_map(|run| run["id"].as_str()).collect();
    assert_eq!(ids, ["second", "first"]);
    for run in &all {
        assert_eq!(
            (&run["kind"], &run["outcome"], &run["ending"]),
            (&"view".into(), &"met".into(), &"complete".into())
        );
        assert!(
            run["size_bytes"].as_u64() > Some(10_000)
                && run["problems"] == Value::Array(Vec::new()),
            "{run:#}"
        );
        assert_eq!(run["scenario"].as_str(), Some(target.as_str()));
    }
    let nightly = listed(&runs, &["--label", "nightly"]);
    assert_eq!(
        (nightly.len(), nightly[0]["note"].as_str()),
        (1, Some("before the upgrade")),
        "{nightly:#?}"
    );
    assert_eq!(listed(&runs, &["--outcome", "missed"]).len(), 0);
    assert_eq!(listed(&runs, &["--scenario", "whep"]).len(), 2);
    let (_, out, _) = said(&["runs", &runs]);
    assert!(
        out.contains("3 viewers played cleanly") && out.contains("[nightly] [v1], note: before"),
        "{out}"
    );

    let (code, out, _) = said(&["runs", "prune", &runs, "--keep", "0"]);
    assert!(
        code == Some(0) && out.contains("would delete  second") && out.contains("add --yes"),
        "{out}"
    );
    assert!(second.is_dir());
    let (code, out, _) = said(&["runs", "prune", &runs, "--keep", "0", "--yes"]);
    assert!(code == Some(0) && out.contains("keeps    first: it has a label"), "{out}");
    assert!(first.is_dir() && !second.exists(), "{out}");
    assert_eq!(said(&["runs", "prune", &runs]).0, Some(2), "what to keep has to be said");
}

#[test]
fn a_search_keeps_how_it_was_asked_and_secrets_have_to_be_given_again() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--token", "s3cret"]);
    let target = stage.target();
    let find = [
        "find",
        &target,
        "--set",
        "target.token=s3cret",
        "--start",
        "2",
        "--ceiling",
        "6",
        "--budget",
        "1m",
        "--quiet",
    ];
    let mut running = Running::start(None, &find);
    running.when_playing(2);
    running.signal("INT");
    let cut = running.wait().expect_code(130);
    let folder = cut.folder().display().to_string();
    let (code, out, error) = said(&["rerun", &folder, "--print"]);
    assert_eq!(code, Some(0), "{error}");
    let expect = format!(
        "throng find {folder}/scenario.toml --budget 1m --start 2 --ceiling 6 --set target.token=SECRET\n"
    );
    assert_eq!(out, expect);
    // The crowd as it was asked for, and not at its largest.
    let kept = std::fs::read_to_string(cut.folder().join("scenario.toml")).unwrap();
    assert!(kept.contains("size = 1\n") && !kept.contains("s3cret"), "{kept}");
    let (code, _, error) = said(&["rerun", &folder]);
    assert!(code == Some(2) && error.contains("--set target.token=SECRET"), "{error}");
    let parent = cut.folder().parent().unwrap().display().to_string();
    let run = &listed(&parent, &[])[0];
    assert_eq!((&run["kind"], &run["ending"]), (&"find".into(), &"interrupted".into()), "{run:#}");

    // With the secret it begins anew.
    let again =
        Running::start(None, &["rerun", &folder, "--set", "target.token=s3cret", "--quiet"]);
    let mut again = again;
    again.when_playing(2);
    again.signal("INT");
    let again = again.wait().expect_code(130);
    assert_eq!(scenario_text(&again.folder()), scenario_text(&cut.folder()));
}

/// The kept scenario without the folder of its output.
fn scenario_text(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("scenario.toml")).unwrap();
    text.lines().filter(|line| !line.starts_with("folder = ")).collect::<Vec<_>>().join("\n")
}
