//! Matrices and proofs whose runs are played by workers, one run after the other.

use serde_json::Value;
use throng_sim::nats::Nats;
use throng_sim::requires_root;
use throng_sim::sshd::Sshd;
use throng_store::RunFolder;

use super::{Worker, all_are_there};
use crate::matrix::{Study, calm, said};
use crate::prove;
use crate::throng::THRONG;

/// A stage with one worker, then with two.
const TWO_CELLS: &str =
    "[server]\nwatch = \"none\"\n[[factor]]\nname = \"workers\"\nlevels = [1, 2]\n";

fn runs(answer: &Value) -> Vec<&Value> {
    let cells = answer["cells"].as_array().unwrap();
    cells.iter().flat_map(|cell| cell["runs"].as_array().unwrap()).collect()
}

/// Half a minute: two runs, each with a new server and the start of a fleet.
#[test]
fn the_cells_of_a_matrix_are_played_by_the_same_workers_in_turn() {
    if !Nats::is_installed() {
        return;
    }
    let nats = Nats::start("").unwrap();
    let bus = nats.url();
    let study = Study::new(TWO_CELLS);
    // Nobody is there: that is no result of a cell.
    let fleet = ["--fleet", &bus, "--workers", "2"];
    let alone = study
        .start_with(&[&fleet[..], &["--fleet-wait", "1s"]].concat())
        .wait_with_output()
        .unwrap();
    let text = said(&alone);
    assert!(
        alone.status.code() == Some(4) && text.contains("0 of 2 workers came within 1 s"),
        "{text}"
    );
    assert!(text.contains("--resume") && text.contains("--workers 2 --fleet-wait 1s"), "{text}");
    assert!(study.is_port_free(), "its server is stopped");
    assert_eq!(study.answer()["partial"], true);
    // Nor may others play the rest.
    for others in [&["--fleet", &bus, "--workers", "1"][..], &[]] {
        let text = said(&study.resume_with(others));
        assert!(text.contains("were played by 2 workers, and the others would be by"), "{text}");
    }
    let _workers = ["a", "b"].map(|name| Worker::start(&bus, name, &[]));
    let ended = study.resume_with(&fleet);
    let (text, answer) = (said(&ended), study.answer());
    calm(&text, answer["cells"].as_array().unwrap());
    assert_eq!(ended.status.code(), Some(0), "{text}");
    assert_eq!(runs(&answer).len(), 2);
    for run in runs(&answer) {
        assert_eq!(run["environment"]["played_by"], "a + b", "{run:#}");
        let command = run["command"].as_str().unwrap();
        assert!(command.contains("throng run ") && command.ends_with("--workers 2"), "{command}");
        let rows = RunFolder::read(study.output().join(run["folder"].as_str().unwrap())).unwrap();
        all_are_there(&rows, 3);
        let names: Vec<&str> =
            rows.info.workers.iter().map(|worker| worker.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }
    assert!(
        answer["cells"].as_array().unwrap().iter().all(|cell| cell["verdict"] == "served"),
        "{text}"
    );
    let page = std::fs::read_to_string(study.output().join("report.html")).unwrap();
    assert!(page.contains("played_by a + b"));
    assert_eq!(nats.streams(), 0, "the bus keeps nothing of runs that are over");
}

/// Eight viewers on a server that takes two of them, and on one that takes all.
/// 55 s: four runs, each with a new server and the start of a fleet.
#[test]
fn the_runs_of_a_pair_are_played_by_the_same_workers() {
    if !Nats::is_installed() {
        return;
    }
    let nats = Nats::start("").unwrap();
    let bus = nats.url();
    let _workers = ["a", "b"].map(|name| Worker::start(&bus, name, &[]));
    let server =
        prove::stage("\"--workers\", \"1\", \"--max-viewers\", \"{{most}}\"", "watch = \"none\"");
    let text = format!(
        "hold = \"2s\"\n[variables]\nmost = 2\n{server}[[variant]]\nname = \"few\"\n\
         [[variant]]\nname = \"many\"\nvariables = {{ most = 8 }}\n"
    );
    let fixture = prove::Fixture::new(&prove::viewers(8), 2, &text);
    let (file, output) = (fixture.path("proof.toml"), fixture.output());
    let prove = [file.to_str().unwrap(), "--output", output.to_str().unwrap()];
    let fleet = ["--fleet", &bus, "--workers", "2"];
    let ended = fixture.start(None, &[&prove[..], &fleet].concat()).wait_with_output().unwrap();
    let answer = fixture.decided_with(&ended, &[0.25, 1.0]);
    assert_eq!(answer["proofs"][0]["outcome"], "better", "{answer:#}\n{}", said(&ended));
    assert_eq!(runs(&answer).len(), 4);
    for run in runs(&answer) {
        assert_eq!(run["environment"]["played_by"], "a + b", "{run:#}");
    }
}

#[test]
fn what_a_fleet_cannot_play_is_said_before_a_matrix_starts() {
    let study = Study::new(TWO_CELLS);
    let fleet = ["--fleet", "nats://127.0.0.1:9"];
    let chat = "target.url=\"xmpp+ws://127.0.0.1:9/xmpp-websocket?room=r@room.localhost\"";
    for (more, expect) in [
        (&[][..], "--fleet needs --workers N"),
        (&["--workers", "4"], "cell 1 (workers=1): --workers 4: there are 3 joins"),
        (&["--workers", "2", "--threads", "1"], "--threads is for this machine"),
        (
            &["--workers", "2", "--set", chat],
            "chats and peers need all their participants on one machine",
        ),
    ] {
        let ended = study.start_with(&[&fleet[..], more].concat()).wait_with_output().unwrap();
        let text = said(&ended);
        assert!(ended.status.code() == Some(2) && text.contains(expect), "{expect}\n{text}");
        assert!(!study.output().exists());
    }
}

/// 25 s: workers start over ssh, and play two runs, each with a new server.
#[test]
fn workers_of_a_matrix_are_started_over_ssh_once() {
    if !requires_root() || !Nats::is_installed() || !Sshd::is_installed() {
        return;
    }
    let sshd = Sshd::start().unwrap();
    let study = Study::new(&format!("repeats = 2\n{}", TWO_CELLS.replace("[1, 2]", "[1]")));
    // An ssh that writes down that it was started.
    let (count, script) = (study.path("started"), study.path("ssh.sh"));
    let text = format!("echo started >> {}\nexec {} \"$@\"\n", count.display(), sshd.ssh());
    std::fs::write(&script, text).unwrap();
    let ssh = format!("sh {}", script.display());
    let on = ["--on", "127.0.0.1,localhost", "--ssh", &ssh, "--remote-throng", THRONG];
    let ended = study.start_with(&on).wait_with_output().unwrap();
    let (text, answer) = (said(&ended), study.answer());
    calm(&text, answer["cells"].as_array().unwrap());
    assert_eq!(ended.status.code(), Some(0), "{text}");
    let played = runs(&answer);
    assert_eq!(played.len(), 2);
    for run in played {
        assert_eq!(run["environment"]["played_by"], "127.0.0.1 + localhost", "{run:#}");
        let command = run["command"].as_str().unwrap();
        assert!(command.contains("--on 127.0.0.1,localhost"), "{command}");
    }
    let started = std::fs::read_to_string(&count).unwrap();
    assert_eq!(started.lines().count(), 2, "one for each host, not for each run\n{text}");
}
