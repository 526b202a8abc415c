//! Runs on two stages compared: equal ones, one with a planted limit, and one that claims to be of
//! another machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use throng_observation::run::{Row, RunData};
use throng_observation::{ExperienceRow, SecondClosed};
use throng_sim::not_tested;
use throng_store::RunFolder;

use crate::throng::{Ran, Running, Stage, plain};

const LOSS: &str = "video.loss < 1%";

/// Twelve viewers of the small card: 1.2 Mbit/s. The time after the warm-up is long enough for
/// three parts.
fn viewers(stage: &Stage) -> Running {
    let args = ["-n", "12", "--every", "50ms", "--for", "35s", "--warm-up", "4s", "--quiet"];
    let objectives = ["--objective", LOSS, "--objective", "failed < 1%"];
    Running::start(None, &[&["view", &stage.target()][..], &args, &objectives].concat())
}

/// What `throng compare ARGS` ended with, its report, and its JUnit document.
fn compare(args: &[&str]) -> (Option<i32>, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let junit = folder.path().join("junit.xml");
    let output =
        plain(&[&["compare", "--json", "--junit", junit.to_str().unwrap()], args].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (
        output.status.code(),
        report,
        std::fs::read_to_string(junit).unwrap_or_else(|error| panic!("{error}: {said}")),
    )
}

/// The test case of a name, from its tag to its end.
fn case<'a>(junit: &'a str, name: &str) -> &'a str {
    let begin =
        junit.find(&format!("name=\"{name}\"")).unwrap_or_else(|| panic!("{name}: {junit}"));
    junit[begin..].split("</testcase>").next().unwrap_or_default()
}

/// The run at `folder` again, as if its generator had been another machine.
fn on_another_machine(folder: &Path) -> (TempDir, PathBuf) {
    let mut run = RunFolder::read(folder).unwrap();
    run.info.generator_host.insert("cpu_model".into(), "a machine that there is not".into());
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("run");
    let mut writer = RunFolder::create(&path, &run.info).unwrap();
    for row in rows(&run) {
        writer.write(row);
    }
    writer.commit().unwrap();
    writer.finish(run.ending, run.ended_at.unwrap()).unwrap();
    (root, path)
}

/// What a comparison reads of a run.
fn rows(run: &RunData) -> Vec<Row> {
    let experience =
        run.experience.chunk_by(|a, b| a.second == b.second).map(|rows: &[ExperienceRow]| {
            Row::SecondClosed(SecondClosed {
                second: rows[0].second,
                experience: rows.to_vec(),
                is_generator_limited: false,
            })
        });
    let mut all: Vec<Row> = experience.collect();
    all.extend(run.crowd.iter().copied().map(Row::Crowd));
    all.extend(run.series.iter().cloned().map(|row| Row::Series(Box::new(row))));
    all.extend(run.participants.iter().cloned().map(|row| Row::Participant(Box::new(row))));
    all.extend(run.generator.iter().cloned().map(Row::Generator));
    all
}

/// Ends the test as not tested if a run is invalid, or twelve small streams were not served well
/// without a limit.
fn calm(runs: &[&Ran]) {
    for ran in runs {
        if ran.code != Some(0) {
            not_tested(&format!(
                "a run without a limit ended with {:?}: {}",
                ran.code,
                ran.summary()["headline"]
            ));
        }
        let experience = RunFolder::read(ran.folder()).unwrap().experience;
        if experience.iter().any(|row| row.second >= 4 && row.bad > 0) {
            not_tested("a second was bad without a limit");
        }
    }
}

/// 35 s: three runs at once, long enough for three parts after the warm-up.
#[test]
fn equal_runs_are_the_same_and_a_planted_limit_is_worse() {
    let small = ["--card", "low"];
    let stage = || Stage::start(None, "127.0.0.1:0", &small);
    let limit = ["--egress-cap", "800kbit/s", "--egress-queue-ms", "300"];
    let (one, other) = (stage(), stage());
    let limited = Stage::start(None, "127.0.0.1:0", &[&small[..], &limit].concat());
    let running = [viewers(&one), viewers(&other), viewers(&limited)];
    let [base, again, worse] = running.map(Running::wait);
    calm(&[&base, &again]);
    let path = |ran: &Ran| ran.folder().to_str().unwrap().to_owned();

    let (code, report, junit) = compare(&[&path(&base), &path(&again)]);
    assert_eq!((code, &report["outcome"]), (Some(0), &Value::from("same")), "{report:#}");
    assert!(!junit.contains("<failure") && !junit.contains("<error"), "{junit}");
    assert!(case(&junit, "video.loss &lt; 1%").contains("<system-out>"), "{junit}");

    // The order of several runs a side does not matter, nor how they are written.
    let (code, report, junit) =
        compare(&["--base", &format!("{},{}", path(&base), path(&again)), "--new", &path(&worse)]);
    assert_eq!((code, &report["outcome"]), (Some(1), &Value::from("worse")), "{report:#}");
    assert_eq!(report["base"]["usable_runs"], 2);
    let (code, report, one_to_one) = compare(&[&path(&base), &path(&worse)]);
    assert_eq!(code, Some(1), "{report:#}");
    for junit in [junit, one_to_one] {
        assert!(case(&junit, "video.loss &lt; 1%").contains("<failure"), "{junit}");
        assert!(case(&junit, "served_ratio").contains("<failure"), "{junit}");
    }

    let (_root, foreign) = on_another_machine(&again.folder());
    let sides = [path(&base), foreign.to_str().unwrap().to_owned()];
    let (code, report, junit) = compare(&[&sides[0], &sides[1]]);
    assert_eq!((code, &report["outcome"]), (Some(4), &Value::from("not_comparable")), "{report:#}");
    assert_eq!(report["machine_differences"][0]["fact"], "cpu_model", "{report:#}");
    assert!(case(&junit, "comparable").contains("<error"), "{junit}");
    let (code, report, _) = compare(&[&sides[0], &sides[1], "--allow-different-machines"]);
    assert_eq!((code, &report["outcome"]), (Some(0), &Value::from("same")), "{report:#}");
    assert!(report["notes"].to_string().contains("the machines differ"), "{report:#}");

    trend_and_page(&base, &[&path(&base), &path(&again), &path(&worse)]);
}

/// Half a minute: five runs at once on one stage, which sends a key frame each second, begun at
/// other moments within it.
#[test]
fn of_equal_runs_at_most_one_pair_in_twenty_differs() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--card", "low"]);
    let view = [
        "view",
        &stage.target(),
        "-n",
        "15",
        "--every",
        "200ms",
        "--for",
        "26s",
        "--warm-up",
        "5s",
    ];
    let begun = (0..5).map(|_| {
        let running = Running::start(None, &[&view[..], &["--quiet"]].concat());
        std::thread::sleep(Duration::from_millis(270));
        running
    });
    let begun: Vec<Running> = begun.collect();
    let runs: Vec<Ran> = begun.into_iter().map(Running::wait).collect();
    calm(&runs.iter().collect::<Vec<&Ran>>());
    let path = |run: usize| runs[run].folder().to_str().unwrap().to_owned();
    let pairs = (0..5).flat_map(|base| (0..5).map(move |new| (base, new)));
    let mut differing = Vec::new();
    for (base, new) in pairs.filter(|(base, new)| base != new) {
        let (_, report, _) = compare(&[&path(base), &path(new)]);
        let rows = report["quantities"].as_array().unwrap();
        let verdict = |row: &Value| row["verdict"].as_str().map(str::to_owned).unwrap_or_default();
        let first_frame = rows.iter().find(|row| row["key"] == "first_frame p95");
        assert_eq!(first_frame.map(verdict).as_deref(), Some("not_decided"), "{report:#}");
        if rows.iter().any(|row| ["better", "worse"].contains(&verdict(row).as_str())) {
            differing.push(report["headline"].to_string());
        }
    }
    assert!(
        differing.len() <= 1,
        "{} of 20 pairs of equal runs differ: {differing:#?}",
        differing.len()
    );
}

fn trend_and_page(base: &Ran, runs: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pages, junit) = ([file("compare.html"), file("trend.html")], file("run.xml"));
    let markdown = file("summary.md");
    std::fs::write(&markdown, "of another step\n").unwrap();
    let added = ["--page", &pages[0], "--markdown", &markdown];
    let output = plain(&[&["compare", runs[0], runs[2]][..], &added].concat());
    assert_eq!(output.status.code(), Some(1));
    let output = plain(&[&["trend", "--page", &pages[1]][..], runs].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("3 runs, 3 of them count: too few"), "{said}");
    for (page, part) in pages.iter().zip(["class=\"forest worse\"", "Over the runs</a>"]) {
        let page = std::fs::read_to_string(page).unwrap();
        // The runs themselves too, on one axis.
        for part in [part, "Over time</a></h2>", "participants connected", "Video delay, p95"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    let base = base.folder();
    let base = base.to_str().unwrap();
    let output = plain(&["report", base, "--junit", &junit, "--markdown", &markdown]);
    assert_eq!(output.status.code(), Some(0));
    let text = std::fs::read_to_string(markdown).unwrap();
    let begin = "of another step\n\n### throng compare: worse\n\n- **Answer:** Worse: ";
    assert!(text.starts_with(begin), "{text}");
    let run = text.split_once("\n\n### throng: met\n\n- **Answer:** 12 viewers played").unwrap().1;
    for part in ["| `video.loss` &lt; 1% | ", " | ✓ met |", "- **Crowd:** 12 ", "\nserved  "] {
        assert!(run.contains(part), "{part}: {text}");
    }
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(case(&junit, "video.loss &lt; 1%").contains("<system-out>"), "{junit}");
}

#[test]
fn what_is_no_run_is_a_usage_error() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (args, says) in [
        (vec!["compare", empty], "BASE"),
        (vec!["compare", empty, empty], "is not a run folder"),
        (vec!["compare", "/nowhere", empty], "/nowhere"),
        (vec!["compare", "--base", empty], "--new"),
        (vec!["compare", empty, empty, "--margin", "200%"], "share"),
        (vec!["compare", empty, empty, "--markdown", "/nowhere/a.md"], "--markdown /nowhere/a.md"),
        (vec!["compare", empty, empty, "--junit", empty], "it is a folder"),
        (vec!["compare", empty, empty, "--page", "/nowhere/a.html"], "there is no folder /nowhere"),
        (vec!["trend", empty, "--page", "/nowhere/a.html"], "there is no folder /nowhere"),
        (vec!["report", empty, "--markdown", empty], "--markdown"),
        // Before anything is sent.
        (vec!["view", "whep+http://127.0.0.1:9/whep", "--markdown", "/nowhere/a.md"], "/nowhere"),
        (vec!["view", "whep+http://127.0.0.1:9/whep", "--junit", "/proc/sys/a.xml"], "/proc/sys"),
        (vec!["trend", empty], "is not a run folder"),
        (vec!["trend"], "RUN"),
    ] {
        let output = plain(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}
