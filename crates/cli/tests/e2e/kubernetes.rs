//! `throng fleet manifest` read by a parser of YAML, and what its pods need of the command: a bus
//! that comes later, whose address is in no argument. An API server reads the manifest in `make
//! proof` (scripts/kubernetes_proof.sh).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_sim::nats::Nats;
use throng_sim::priority::BeforeOthers as _;

use crate::throng::{Running, Stage, THRONG, plain};

const PYTHON: &str = "/usr/bin/python3";

/// All documents of a text, by Python's parser; `None` if it is not installed, and the test is
/// skipped.
fn parsed(yaml: &str) -> Option<Vec<Value>> {
    if !std::fs::exists("/usr/lib/python3/dist-packages/yaml").unwrap_or(false) {
        throng_sim::skipped("python3-yaml is not installed (scripts/setup.sh test)");
        return None;
    }
    let script =
        "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin.buffer)), sys.stdout)";
    let mut python = Command::new(PYTHON);
    let python = python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{yaml}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn manifest(file: &Path, more: &[&str]) -> String {
    let words = ["fleet", "manifest", file.to_str().unwrap(), "--workers", "3"];
    let output = plain(&[&words[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_manifest_is_yaml_with_an_indexed_job_and_the_scenario_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evening.toml");
    let usual = "  # viewers:\t\"all\" of it  \n\n[target]\nurl = \"whep+http://media/whep\"\ntoken = \"env:TOKEN\"\n[crowd]\nsize = 30\n";
    let windows = usual.replace('\n', "\r\n");
    let hidden = format!("# \u{feff}\u{202e}{{\u{85}😀}}\n{usual}");
    for text in [usual, &windows, &hidden, usual.trim_end(), &format!("{usual}\n\n")] {
        std::fs::write(&file, text).unwrap();
        let printed = manifest(
            &file,
            &["--name", "evening", "--namespace", "null", "--allow-target", "10.0.0.0/16"],
        );
        let Some(documents) = parsed(&printed) else { return };
        let kinds: Vec<&str> =
            documents.iter().filter_map(|document| document["kind"].as_str()).collect();
        assert_eq!(
            kinds,
            [
                "Namespace",
                "ConfigMap",
                "ConfigMap",
                "Service",
                "Deployment",
                "Job",
                "PersistentVolumeClaim",
                "Job"
            ]
        );
        for document in &documents {
            let name = document["metadata"]["name"].as_str().unwrap();
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(is_name), "{name}");
            let of = if document["kind"] == "Namespace" { "name" } else { "namespace" };
            assert_eq!(document["metadata"][of], "null", "a text, and not the null of YAML");
            assert!(document["apiVersion"].is_string());
        }
        assert_eq!(documents[1]["data"]["evening.toml"], text);
        workers(&documents[5]);
        let coordinator = &documents[7]["spec"]["template"]["spec"]["containers"][0];
        let arguments = coordinator["args"].as_array().unwrap();
        for argument in
            ["run", "/scenario/evening.toml", "--workers=3", "--allow-target=10.0.0.0/16"]
        {
            assert!(arguments.iter().any(|one| one == argument), "{argument}: {arguments:?}");
        }
        chart(&file, text);
    }
}

/// The chart of a scenario, as far as it can be read without Helm.
fn chart(file: &Path, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("chart");
    let more = ["--helm", chart.to_str().unwrap(), "--allow-target", "10.0.0.0/16"];
    assert_eq!(manifest(file, &more), "");
    let read = |name: &str| std::fs::read_to_string(chart.join(name)).unwrap();
    assert_eq!(read("scenario/evening.toml"), text);
    let of_yaml = |name: &str| parsed(&read(name)).unwrap().remove(0);
    let values = of_yaml("values.yaml");
    assert_eq!(values["workers"], 3);
    assert_eq!(values["allowTarget"], serde_json::json!(["10.0.0.0/16"]));
    assert!(values["maxUsers"].is_null() && values["image"] == "throng:latest", "{values}");
    assert_eq!(of_yaml("Chart.yaml")["apiVersion"], "v2");
    let words = ["fleet", "manifest", file.to_str().unwrap(), "--workers", "3"];
    let again = plain(&[&words[..], &more].concat());
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(2) && said.contains("is there already"), "{said}");
}

fn workers(job: &Value) {
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    assert_eq!(spec["completions"], 3);
    assert_eq!(spec["parallelism"], 3);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let worker = &pod["containers"][0];
    assert_eq!(worker["securityContext"]["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert!(worker["args"].as_array().unwrap().iter().any(|one| one == "--allow-secret=env:TOKEN"));
    let token =
        worker["env"].as_array().unwrap().iter().find(|one| one["name"] == "TOKEN").unwrap();
    assert_eq!(token["valueFrom"]["secretKeyRef"]["name"], "evening-env");
    assert!(worker["resources"]["requests"]["cpu"].as_str().unwrap().ends_with('m'));
}

/// For a process to start and try its bus, on a busy machine.
const TRIED_WITHIN: Duration = Duration::from_secs(30);

/// Waits until the process whose standard error is `file` has found no bus.
fn when_it_has_tried(file: &Path) {
    let given_up_at = Instant::now() + TRIED_WITHIN;
    loop {
        let said = std::fs::read_to_string(file).unwrap_or_default();
        if said.contains(TRIED) {
            return;
        }
        assert!(Instant::now() < given_up_at, "not within {TRIED_WITHIN:?}: {TRIED}\n{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What a process says that finds no bus.
const TRIED: &str = "it is tried again";

#[test]
fn a_fleet_waits_for_its_bus_whose_address_is_in_no_argument() {
    if !Nats::is_installed() {
        return;
    }
    let mut nats = Nats::start("authorization { user: throng, password: p12345 }").unwrap();
    nats.kill();
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("url");
    let url = nats.url_of("throng", "p12345");
    std::fs::write(&address, format!("{url}\n")).unwrap();
    let wait = ["--fleet-wait", "60s"];
    let [of_worker, of_run] = ["worker", "run"].map(|name| folder.path().join(name));
    let mut worker = Command::new(THRONG);
    worker.args(["worker", "--once", "--fleet", "env:BUS_URL"]).args(wait).env("BUS_URL", &url);
    worker
        .env("JOB_COMPLETION_INDEX", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&of_worker).unwrap());
    // It is the generator of the run.
    let mut worker = worker.spawn_before_others().unwrap();
    let (target, bus) = (stage.target(), format!("file:{}", address.display()));
    let view = ["view", &target, "-n", "2", "--every", "100ms", "--for", "3s", "--plain"];
    let fleet = ["--fleet", &bus, "--workers", "1", "--allow-target", "10.0.0.0/8"];
    // A shell that becomes throng, whose standard error is read while it runs.
    let mut throng = Command::new("/bin/sh");
    throng.args(["-c", "exec \"$0\" \"$@\" 2>\"$SAID\"", THRONG]).env("SAID", &of_run);
    let run = Running::spawn(throng, &[&view[..], &fleet, &wait].concat());
    for file in [&of_worker, &of_run] {
        when_it_has_tried(file);
    }
    nats.start_again().unwrap();
    let said = |file: &Path| std::fs::read_to_string(file).unwrap();
    let ran = run.wait().expect_code(0);
    assert!(!said(&of_run).contains("p12345"), "{ran}\n{}", said(&of_run));
    assert_eq!(worker.wait().unwrap().code(), Some(0), "{}", said(&of_worker));
    assert!(!said(&of_worker).contains("p12345"), "{}", said(&of_worker));
}
