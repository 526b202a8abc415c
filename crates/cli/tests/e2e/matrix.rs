//! Matrices on servers that the matrix starts itself: grids, interruptions, cells that cannot run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use throng_sim::not_tested;

use crate::throng::{THRONG, plain, started};

/// A matrix file with its scenario, and a port for its server.
pub(crate) struct Study {
    folder: TempDir,
    port: u16,
}

impl Study {
    /// `text` is the matrix without scenario and server; the server is a stage with `{{workers}}`
    /// workers.
    pub(crate) fn new(text: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let study = Self { folder: tempfile::tempdir().unwrap(), port };
        let scenario = format!(
            "[target]\nurl = \"whep+http://127.0.0.1:{port}/whep\"\n[crowd]\nsize = 3\narrival = {{ every = \"50ms\" }}\n"
        );
        std::fs::write(study.path("viewers.toml"), scenario).unwrap();
        let server = format!(
            "[server]\ncommand = [\"{THRONG}\", \"stage\", \"--listen\", \"127.0.0.1:{port}\", \"--workers\", \"{{{{workers}}}}\"]\n\
             ready = {{ port = {port} }}\n"
        );
        let text = format!(
            "scenario = \"viewers.toml\"\nhold = \"2s\"\n{}",
            text.replace("[server]\n", &server)
        );
        std::fs::write(study.path("matrix.toml"), text).unwrap();
        study
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.path("out")
    }

    fn start(&self) -> Child {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> Child {
        let mut command = Command::new(THRONG);
        command
            .arg("matrix")
            .arg(self.path("matrix.toml"))
            .arg("--output")
            .arg(self.output())
            .args(more);
        started(&mut command)
    }

    fn resume(&self) -> Output {
        self.resume_with(&[])
    }

    pub(crate) fn resume_with(&self, more: &[&str]) -> Output {
        let output = self.output();
        plain(&[&["matrix", "--resume", output.to_str().unwrap()], more].concat())
    }

    pub(crate) fn answer(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.output().join("matrix.json")).unwrap())
            .unwrap()
    }

    /// The files `name` of all runs so far.
    fn files_of_runs(&self, name: &str) -> Vec<PathBuf> {
        let folders = |path: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect()
        };
        let runs = folders(&self.output().join("cells"))
            .iter()
            .flat_map(|cell| folders(cell))
            .collect::<Vec<_>>();
        runs.into_iter().map(|run| run.join(name)).filter(|file| file.exists()).collect()
    }

    pub(crate) fn is_port_free(&self) -> bool {
        TcpListener::bind(("127.0.0.1", self.port)).is_ok()
    }
}

pub(crate) fn wait_until(what: &str, is_it: impl Fn() -> bool) {
    let given_up_at = Instant::now() + Duration::from_secs(40);
    while !is_it() {
        assert!(Instant::now() < given_up_at, "not within 40 s: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How many processes have this text in their arguments.
pub(crate) fn commands_with(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|command| String::from_utf8_lossy(command).contains(text))
        .count()
}

pub(crate) fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args([&format!("-{name}"), &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{:?}\n{}\n{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Ends the test as not tested if this machine was too busy to serve three viewers well.
pub(crate) fn calm(text: &str, cells: &[Value]) {
    if text.contains("the generator was the limit") {
        not_tested("the generator was the limit in a cell");
    }
    let runs = cells.iter().flat_map(|cell| cell["runs"].as_array().unwrap());
    let served = runs.filter_map(|run| run["figures"]["served_ratio"].as_f64()).fold(1.0, f64::min);
    if served < 0.99 {
        not_tested(&format!("three viewers were served well in only {served:.2} of their seconds"));
    }
}

/// 40 s: six runs and an interrupted one, one after the other, each on a new server.
#[test]
fn a_placebo_has_no_effect_and_an_interrupted_matrix_is_continued() {
    let study = Study::new(
        "repeats = 2\nseed = 3\n[server]\nwatch = \"none\"\nenv = { PLACEBO = \"{{placebo}}\" }\n\
         [[factor]]\nname = \"workers\"\nlevels = [1, 2]\n\
         [[factor]]\nname = \"placebo\"\nlevels = [\"a\", \"b\"]\n\
         [[except]]\nworkers = 2\nplacebo = \"b\"\n",
    );
    let child = study.start();
    wait_until("the first run ended", || !study.files_of_runs("record.json").is_empty());
    wait_until("the second server is ready", || {
        study.files_of_runs("server/output.log").len() >= 2 && !study.is_port_free()
    });
    signal(&child, "INT");
    let cut = child.wait_with_output().unwrap();
    assert_eq!(cut.status.code(), Some(130), "{}", said(&cut));
    assert!(said(&cut).contains("--resume"), "{}", said(&cut));
    assert!(study.is_port_free(), "its server is stopped");
    let before = study.answer();
    assert_eq!(before["partial"], true);

    let resumed = study.resume();
    let text = said(&resumed);
    let answer = study.answer();
    let cells = answer["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3, "{answer:#}");
    calm(&text, cells);
    assert_eq!(resumed.status.code(), Some(0), "{text}");
    for cell in cells {
        assert_eq!(
            (&cell["valid_runs"], &cell["verdict"]),
            (&2.into(), &"served".into()),
            "{cell:#}\n{text}"
        );
    }
    let effects = &answer["responses"][0]["effects"];
    assert_eq!(effects[1]["factor"], "placebo");
    assert_eq!(
        (&effects[0]["verdict"], &effects[1]["verdict"]),
        (&"same".into(), &"same".into()),
        "{text}"
    );
    assert!(text.contains("no effect"), "{text}");
    let page = std::fs::read_to_string(study.output().join("report.html")).unwrap();
    assert!(
        page.contains("cells/01_workers=1_placebo=a/1/report.html"),
        "cells lead to their reports"
    );
    // What was done before the interruption was not done again.
    let again = study.resume();
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    assert!(!said(&again).contains("[1/6]"), "{}", said(&again));
    // And the report comes from the folder alone.
    std::fs::remove_file(study.path("matrix.toml")).unwrap();
    let remade = plain(&["report", study.output().to_str().unwrap()]);
    assert_eq!(remade.status.code(), Some(0), "{}", said(&remade));
    assert_eq!(study.answer(), answer);
}

#[test]
fn what_a_killed_matrix_left_is_undone_by_the_next_start() {
    let study = Study::new(
        "setup = [{ run = [\"touch\", \"{{base}}/mounted\"], undo = [\"rm\", \"{{base}}/mounted\"] }]\n\
         [server]\nwatch = \"none\"\n[[factor]]\nname = \"workers\"\nlevels = [1]\n",
    );
    let mut child = study.start();
    wait_until("the crowd comes", || !study.files_of_runs("run.db").is_empty());
    signal(&child, "KILL");
    child.wait().unwrap();
    assert!(study.path("mounted").exists(), "nobody could undo it");
    // The kernel ends both: nobody sends on, and nobody listens.
    wait_until("the crowd and its server end with it", || {
        study.is_port_free() && commands_with(study.output().to_str().unwrap()) == 0
    });
    // Another experiment tells of it.
    let other =
        Study::new("[server]\nwatch = \"none\"\n[[factor]]\nname = \"workers\"\nlevels = [1]\n");
    let telling = other.start();
    wait_until("the other one runs", || !other.files_of_runs("run.db").is_empty());
    signal(&telling, "INT");
    let told = said(&telling.wait_with_output().unwrap());
    let undo = format!("throng matrix --undo {}", study.output().canonicalize().unwrap().display());
    assert!(told.contains("left this machine changed") && told.contains(&undo), "{told}");
    let resumed = study.resume();
    let text = said(&resumed);
    calm(&text, study.answer()["cells"].as_array().unwrap());
    assert_eq!(resumed.status.code(), Some(0), "{text}");
    assert!(text.contains("this folder left this machine changed"), "{text}");
    assert!(!study.path("mounted").exists() && study.is_port_free());
    assert_eq!(study.answer()["cells"][0]["verdict"], "served", "{text}");
}

#[test]
fn cells_that_cannot_run_are_named_and_the_others_go_on() {
    let study = Study::new(
        "repeats = 2\norder = \"written\"\n[server]\nwatch = \"none\"\n\
         [variables]\nworkers = 1\n\
         [[factor]]\nname = \"place\"\nlevels = [\n\
         { name = \"here\" },\n\
         { name = \"elsewhere\", setup = [{ run = [\"sh\", \"-c\", \"echo needs a real disk; exit 69\"] }] },\n\
         { name = \"broken\", server = { command = [\"sh\", \"-c\", \"echo bad config; exit 3\"] } },\n\
         ]\n",
    );
    let ended = study.start().wait_with_output().unwrap();
    let text = said(&ended);
    assert_eq!(ended.status.code(), Some(4), "{text}");
    let answer = study.answer();
    calm(&text, answer["cells"].as_array().unwrap().get(..1).unwrap());
    let verdicts: Vec<&str> = answer["cells"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|cell| cell["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["served", "skipped", "failed"], "{text}");
    assert!(text.contains("needs a real disk") && text.contains("bad config"), "{text}");
    assert_eq!(answer["cells"][1]["runs"][1]["status"], "skipped", "the second run was not tried");
}

#[test]
fn a_matrix_is_checked_before_anything_starts() {
    let study = Study::new(
        "[server]\n[[factor]]\nname = \"workers\"\nlevels = [1, 2]\nset = \"crowd.sise\"\n",
    );
    let ended = study.start().wait_with_output().unwrap();
    let text = said(&ended);
    assert_eq!(ended.status.code(), Some(2), "{text}");
    assert!(text.contains("cell 1 (workers=1)") && text.contains("unknown key `sise`"), "{text}");
    assert!(!study.output().exists());
    let study = Study::new("[server]\n[[factor]]\nname = \"workers\"\nlevels = [1, 2]\n");
    let planned = plain(&["matrix", study.path("matrix.toml").to_str().unwrap(), "--plan"]);
    let text = said(&planned);
    assert!(planned.status.success() && text.contains("2 cells, 2 runs"), "{text}");
    let broken = Study::new(
        "[server]\ncwd = \"{{wrkers}}\"\n[[factor]]\nname = \"workers\"\nlevels = [1]\n",
    );
    let ended = plain(&["matrix", broken.path("matrix.toml").to_str().unwrap()]);
    let text = said(&ended);
    assert!(text.contains("unknown variable `{{wrkers}}`") && text.contains("line 6"), "{text}");
}
