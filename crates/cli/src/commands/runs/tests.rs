use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use throng_folder::AtWork;
use throng_observation::RunTime;
use throng_observation::run::{Ending, RunInfo};

use super::prune::prune;
use super::*;
use crate::args::Prune;
use throng_store::RunFolder;

const DAY_US: i64 = 86_400_000_000;

fn now_us() -> i64 {
    let now =
        std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_micros()).unwrap()
}

/// A run folder with an ending and a summary, begun so many days ago.
fn made(folder: &Path, days_ago: i64) {
    let info = RunInfo { started_at_unix_us: now_us() - days_ago * DAY_US, ..RunInfo::default() };
    RunFolder::create(folder, &info).unwrap().finish(Ending::Complete, RunTime(5_000_000)).unwrap();
    fs::write(
        folder.join("summary.json"),
        summary(info.started_at_unix_us, "met", "2 viewers played"),
    )
    .unwrap();
}

fn summary(started_at_unix_us: i64, outcome: &str, headline: &str) -> String {
    serde_json::json!({
        "outcome": outcome, "headline": headline, "ending": "complete", "target": "whep+http://127.0.0.1/whep",
        "started_at_unix_us": started_at_unix_us, "capacity": null, "demand": [{ "unit": "ratio" }],
    })
    .to_string()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|one| one.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn prune_of(folder: &Path) -> Prune {
    Prune {
        folder: folder.to_owned(),
        keep: None,
        older_than: None,
        labelled: false,
        keep_label: Vec::new(),
        yes: true,
    }
}

#[test]
fn runs_are_listed_newest_first_and_what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    made(&at("old"), 9);
    made(&at("new"), 1);
    // Killed, cut off, emptied, of another program, a folder of other things, a link.
    let info = RunInfo { started_at_unix_us: now_us() - 3 * DAY_US, ..RunInfo::default() };
    drop(RunFolder::create(at("killed"), &info).unwrap());
    made(&at("cut"), 5);
    fs::write(at("cut/summary.json"), "{\"outcome\": \"me").unwrap();
    made(&at("emptied"), 6);
    fs::write(at("emptied/run.db"), "nothing").unwrap();
    made(&at("lost"), 7);
    fs::write(at("lost/report.html"), "").unwrap();
    fs::remove_file(at("lost/run.db")).unwrap();
    fs::create_dir(at("photos")).unwrap();
    fs::write(at("photos/summary.json"), "{}").unwrap();
    symlink(at("new"), at("link")).unwrap();
    fs::write(at("file"), "").unwrap();

    let listed = list::of(folder.path()).unwrap();
    let told: Vec<(&str, &str, usize)> = listed
        .entries
        .iter()
        .map(|e| (e.id.as_str(), e.outcome.as_str(), e.problems.len()))
        .collect();
    assert_eq!(
        told,
        [
            ("new", "met", 0),
            ("killed", "unfinished", 1),
            ("cut", "unreported", 1),
            ("emptied", "broken", 1),
            ("lost", "broken", 1),
            ("old", "met", 0),
        ]
    );
    let text = list::text(&listed.entries.iter().collect::<Vec<_>>(), 6, folder.path());
    for part in [
        "2 viewers played",
        "problem: there is no run.db",
        "not a run.db",
        "6 runs in ",
        "throng report",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(
        list::of(&at("new")).is_err_and(|stop| stop.error.to_string().contains("is a run itself"))
    );
    assert!(list::of(&at("nowhere")).is_err());
}

#[test]
fn a_list_that_is_made_again_has_what_changed_since() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    made(&at("one"), 9);
    made(&at("gone"), 8);
    let mut known = list::Known::default();
    assert_eq!(list::again(folder.path(), &mut known).unwrap().entries.len(), 2);
    let cause = "The line is full";
    let text = summary(1_000_000, "missed", "2 viewers").replace(
        "\"capacity\":null",
        &format!("\"bottleneck\":{{\"title\":\"{cause}\"}},\"capacity\":null"),
    );
    fs::write(at("one/summary.json"), text).unwrap();
    fs::remove_dir_all(at("gone")).unwrap();
    made(&at("new"), 1);
    let again = list::again(folder.path(), &mut known).unwrap().entries;
    let told: Vec<(&str, &str)> =
        again.iter().map(|entry| (entry.id.as_str(), entry.outcome.as_str())).collect();
    assert_eq!(told, [("new", "met"), ("one", "missed")]);
    assert_eq!(again[1].cause.as_deref(), Some(cause));
    assert_eq!(again[1].target.as_deref(), Some("whep+http://127.0.0.1/whep"));
    // Nothing is made anew.
    let same = list::again(folder.path(), &mut known).unwrap().entries;
    assert_eq!(format!("{same:?}"), format!("{again:?}"));
}

#[test]
fn what_is_in_progress_is_told_from_what_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (run, study) = (folder.path().join("run"), folder.path().join("study"));
    let writer = RunFolder::create(&run, &RunInfo::default()).unwrap();
    // A report from the middle of a run is not its answer.
    let ending = "\"ending\":\"unfinished\",\"in_progress\":true";
    let middle = summary(1_000_000, "invalid", "In progress, 1 of 5 s so far: 2 viewers played")
        .replace("\"ending\":\"complete\"", ending);
    fs::write(run.join("summary.json"), middle).unwrap();
    fs::create_dir(&study).unwrap();
    for name in ["matrix.toml", "options.json"] {
        fs::write(study.join(name), "").unwrap();
    }
    let at_work = AtWork::begin(&study).unwrap();
    let mut known = list::Known::default();
    let mut told = || {
        let mut entries = list::again(folder.path(), &mut known).unwrap().entries;
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        let row = |entry: Entry| (list::ended(&entry), entry.headline, entry.problems.len());
        entries.into_iter().map(row).collect::<Vec<_>>()
    };
    let in_progress = ("in_progress".to_owned(), None, 0);
    assert_eq!(told(), [in_progress.clone(), in_progress]);
    drop((writer, at_work));
    let killed = ("unfinished".to_owned(), None, 1);
    assert_eq!(told(), [killed.clone(), killed]);
    // None of its files is another one when somebody goes on with it.
    let _resumed = AtWork::begin(&study).unwrap();
    assert_eq!(told()[1].0, "in_progress");
}

#[test]
fn a_thousand_runs_are_listed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("0");
    made(&first, 0);
    for number in 1..1_000 {
        let run = folder.path().join(number.to_string());
        fs::create_dir(&run).unwrap();
        for name in ["run.db", "summary.json"] {
            fs::copy(first.join(name), run.join(name)).unwrap();
        }
    }
    let began = Instant::now();
    let mut known = list::Known::default();
    let listed = list::again(folder.path(), &mut known).unwrap();
    let took = began.elapsed();
    let began = Instant::now();
    assert_eq!(list::again(folder.path(), &mut known).unwrap().entries.len(), 1_000);
    assert!(began.elapsed() < Duration::from_secs(1), "again: {:?}", began.elapsed());
    assert_eq!(listed.entries.len(), 1_000);
    assert!(took < Duration::from_secs(3), "{took:?}");
    #[expect(clippy::print_stdout, reason = "docs/runs.md has this figure")]
    {
        println!("1,000 runs listed in {took:?}");
    }
}

#[test]
fn prune_deletes_old_runs_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, days) in [("a", 1), ("b", 2), ("c", 40), ("d", 50), ("labelled", 60), ("broken", 70)]
    {
        made(&at(name), days);
    }
    made(&outside.path().join("elsewhere"), 99);
    fs::write(outside.path().join("precious"), "x").unwrap();
    symlink(outside.path().join("elsewhere"), at("link")).unwrap();
    symlink(outside.path().join("precious"), at("d/link")).unwrap();
    symlink(outside.path(), at("d/folder")).unwrap();
    fs::create_dir_all(at("photos/2026")).unwrap();
    fs::write(at("notes.txt"), "x").unwrap();
    fs::write(at("broken/run.db"), "not a database").unwrap();
    let mut labels = Labels::default();
    labels.set("keep", true);
    labels.write(&at("labelled")).unwrap();

    let dry = Prune { keep: Some(1), yes: false, ..prune_of(folder.path()) };
    assert_eq!(prune(&dry).unwrap(), Exit::Met);
    let everything = ["a", "b", "broken", "c", "d", "labelled", "link", "notes.txt", "photos"];
    assert_eq!(names(folder.path()), everything);

    let month = Some(Duration::from_secs(30 * 86_400));
    prune(&Prune { keep: Some(3), older_than: month, ..prune_of(folder.path()) }).unwrap();
    assert_eq!(
        names(folder.path()),
        ["a", "b", "broken", "c", "labelled", "link", "notes.txt", "photos"]
    );
    assert_eq!(names(outside.path()), ["elsewhere", "precious"], "links were not followed");
    assert_eq!(names(&outside.path().join("elsewhere")), ["run.db", "summary.json"]);

    let kept = Prune {
        keep: Some(0),
        labelled: true,
        keep_label: vec!["keep".into()],
        ..prune_of(folder.path())
    };
    prune(&kept).unwrap();
    assert_eq!(names(folder.path()), ["broken", "labelled", "link", "notes.txt", "photos"]);
    prune(&Prune { keep: Some(0), labelled: true, ..prune_of(folder.path()) }).unwrap();
    assert_eq!(names(folder.path()), ["broken", "link", "notes.txt", "photos"]);
}

#[test]
fn a_run_is_kept_for_labels_that_cannot_be_read_and_for_no_problem_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    made(&at("unread"), 9);
    fs::write(at("unread/labels.json"), "7").unwrap();
    made(&at("other"), 9);
    // Whoever wrote a file chooses the words of its problem.
    let summary = "{\"started_at_unix_us\": \"labels.json\"}";
    fs::write(at("other/summary.json"), summary).unwrap();
    let other = Entry::of(&at("other")).unwrap();
    assert!(other.problems.iter().any(|problem| problem.contains("labels.json")), "{other:?}");
    prune(&Prune { keep: Some(0), ..prune_of(folder.path()) }).unwrap();
    assert_eq!(names(folder.path()), ["unread"]);
}

#[test]
fn an_experiment_with_missing_runs_is_unfinished_and_says_how_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("proof");
    fs::create_dir(&at).unwrap();
    fs::write(at.join("matrix.toml"), "").unwrap();
    fs::write(at.join("options.json"), "{\"options\": {\"kind\": \"proof\"}}").unwrap();
    for (answer, outcome, goes_on) in [
        (None, "unfinished", true),
        (Some("{\"headline\": \"so far\", \"partial\": true}"), "unfinished", true),
        (Some("{\"headline\": \"all\", \"partial\": false}"), "done", false),
        (Some("{"), "unfinished", false),
    ] {
        answer.iter().for_each(|text| fs::write(at.join("matrix.json"), text).unwrap());
        let entry = Entry::of(&at).unwrap();
        let says = entry.problems.iter().any(|said| said.contains("`throng prove --resume`"));
        assert_eq!((entry.outcome.as_str(), says), (outcome, goes_on), "{answer:?}");
    }
}

#[test]
fn a_run_in_progress_is_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let info = RunInfo { started_at_unix_us: now_us() - DAY_US, ..RunInfo::default() };
    let _writer = RunFolder::create(folder.path().join("running"), &info).unwrap();
    prune(&Prune { keep: Some(0), ..prune_of(folder.path()) }).unwrap();
    assert_eq!(names(folder.path()), ["running"]);
}

#[test]
fn a_folder_in_which_somebody_is_at_work_is_not_deleted_whatever_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    made(&at("done"), 9);
    made(&at("broken"), 9);
    fs::write(at("broken/run.db"), "nothing").unwrap();
    let at_work = ["done", "broken"].map(|name| AtWork::begin(&at(name)).unwrap());
    prune(&Prune { keep: Some(0), ..prune_of(folder.path()) }).unwrap();
    assert_eq!(names(folder.path()), ["broken", "done"]);
    drop(at_work);
    prune(&Prune { keep: Some(0), ..prune_of(folder.path()) }).unwrap();
    assert_eq!(names(folder.path()), ["broken"]);
}

#[test]
fn labels_and_notes_are_kept_and_hostile_ones_are_text() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    made(&run, 1);
    let mut labels = Labels::read(&run).unwrap();
    for (label, is_on) in [("nightly", true), ("v1", true), ("nightly", true), ("v1", false)] {
        labels.set(label, is_on);
    }
    let labels = labels.with_note(" before the upgrade\n").unwrap();
    labels.write(&run).unwrap();
    let entry = Entry::of(&run).unwrap();
    assert_eq!(
        (entry.labels.labels, entry.labels.note.as_deref()),
        (vec!["nightly".to_owned()], Some("before the upgrade"))
    );
    assert!(Labels::default().with_note(&"x".repeat(1_001)).is_err());

    let hostile = "{\"labels\": [\"\\u001b[2J\", \"\\u202e\"], \"note\": \"a\\nFORGED\\u009b\"}";
    fs::write(run.join("labels.json"), hostile).unwrap();
    let entry = Entry::of(&run).unwrap();
    let text = list::text(&[&entry], 1, folder.path());
    assert!(
        !text.contains(['\u{1b}', '\u{202e}', '\u{9b}']) && !text.contains("\nFORGED"),
        "{text:?}"
    );
    for wrong in ["", "7", "{\"labels\": 1}", &"x".repeat(100_000)] {
        fs::write(run.join("labels.json"), wrong).unwrap();
        let entry = Entry::of(&run).unwrap();
        assert!(entry.outcome == "met" && entry.problems.len() == 1, "{wrong:.20}: {entry:?}");
    }
    fs::remove_file(run.join("labels.json")).unwrap();
    symlink("/dev/zero", run.join("labels.json")).unwrap();
    assert_eq!(Entry::of(&run).unwrap().problems.len(), 1);
}
