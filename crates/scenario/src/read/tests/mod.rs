//! Laws of reading scenarios: what is accepted, what is refused and where, and that nothing panics.

use std::time::Duration;

use crate::arrival::{ArrivalKind, Burst, Every, Jitter, Poisson, Ramp};
use crate::{Caps, Override, Scenario, ScenarioError, ScenarioFlags, Stay, StayTime, TokenSource};

mod errors;
mod examples;
mod ice;
mod overrides;
mod stored;

const FULL: &str = r#"objectives = ["video.loss p95 < 1%", "fps min > 0.9 of source"]

[target]
url = "janus+ws://127.0.0.1:8188/streaming/1"
token = "env:TOKEN"
allow = ["10.0.0.0/8", "fd00::/8"]
tls_insecure = true

[crowd]
name = "audience"
size = 100
arrival = { poisson = { rate = "5/s", seed = 7 } }
stay = { mean = "30s", seed = 1, rejoin = true }
source_ips = ["127.0.0.2-127.0.0.20"]

[run]
duration = "1m30s"
warm_up = "5s"
summary_every = "2s"

[stream]
video = "1.5Mbit/s"
audio = "48kbit/s"
fps = 29.97

[output]
folder = "runs/monday"
csv = true

[caps]
users = 200
joins_per_s = 50
mbit_per_s = 300.5
duration = "2h"

[[watch]]
name = "sfu"
process = "janus"
every = "500ms"
logs = ["/var/log/janus.log"]
access_log = "/var/log/nginx/access.log"
metrics = ["http://127.0.0.1:9090/metrics"]
profile = ["baseline", "full", { at = "30s", for = "5s" }]
pack = "janus"

[[watch]]
command = ["/usr/sbin/nginx", "-g", "daemon off;"]

[[watch]]
agent = "tls://10.0.0.5:7081"
token = "env:AGENT"
fingerprint = "sha256:00112233445566778899AABBCCDDEEFF:00112233445566778899aabbccddeeff"
profile = "fail"
"#;

const SMALL: &str = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";

/// Every scenario of the repository, by the name of its file.
fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    scenarios
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_name().unwrap().to_string_lossy().into_owned(), text)
        })
        .collect()
}

fn example(name: &str) -> String {
    examples().into_iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn read(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn set(text: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<Override> =
        settings.iter().map(|text| Override::parse(text).unwrap()).collect();
    Scenario::parse_with(text, &overrides)
}

#[test]
fn a_file_that_says_everything_is_read_as_written() {
    let scenario = read(FULL);
    let crowd = &scenario.crowd[0];
    assert_eq!(scenario.target.token, Some(TokenSource::Environment("TOKEN".into())));
    assert_eq!((scenario.target.allow.len(), scenario.target.tls_insecure), (2, true));
    assert_eq!((crowd.name.as_str(), crowd.size), ("audience", 100));
    assert_eq!(crowd.arrival, ArrivalKind::Poisson(Poisson { rate_per_s: 5.0, seed: 7 }));
    let time = StayTime::Exponential { mean: Duration::from_secs(30), seed: 1 };
    assert_eq!(crowd.stay, Some(Stay { time, rejoin: true }));
    assert_eq!(scenario.run.duration, Duration::from_secs(90));
    assert_eq!(scenario.stream.fps, Some(29.97));
    assert_eq!(scenario.output.folder.as_deref(), Some("runs/monday"));
    assert_eq!((scenario.caps.users, scenario.caps.mbit_per_s), (Some(200), Some(300.5)));
    assert_eq!(scenario.objectives.len(), 2);
}

#[test]
fn what_is_left_out_has_a_default() {
    let scenario = read(SMALL);
    let jitter = Some(Jitter { seed: 1 });
    let interval = Duration::from_millis(100);
    assert_eq!(scenario.crowd[0].arrival, ArrivalKind::Every(Every { interval, jitter }));
    assert_eq!(scenario.run.duration, Duration::from_secs(60));
    assert_eq!(scenario.run.summary_every, Duration::from_secs(5));
    assert_eq!((scenario.caps.clone(), scenario.crowd[0].stay), (Caps::NONE, None));
    let remote = read(&SMALL.replace("127.0.0.1", "media.example.org"));
    assert_eq!(remote.caps, Caps::DEFAULT);
}

#[test]
fn each_way_of_arriving_is_read() {
    let second = Duration::from_secs(1);
    let every = |jitter| ArrivalKind::Every(Every { interval: second, jitter });
    let ramp = |jitter| ArrivalKind::Ramp(Ramp { over: second, jitter });
    for (text, expect) in [
        ("{ every = \"1s\" }", every(Some(Jitter { seed: 1 }))),
        ("{ every = \"1s\", jitter = true, seed = 7 }", every(Some(Jitter { seed: 7 }))),
        ("{ every = \"1s\", jitter = false }", every(None)),
        ("{ ramp = \"1s\", seed = 7 }", ramp(Some(Jitter { seed: 7 }))),
        ("{ ramp = \"1s\", jitter = false }", ramp(None)),
        (
            "{ burst = { size = 2, every = \"1s\" } }",
            ArrivalKind::Burst(Burst { size: 2, every: second }),
        ),
        (
            "{ poisson = { rate = \"30/min\" } }",
            ArrivalKind::Poisson(Poisson { rate_per_s: 0.5, seed: 1 }),
        ),
    ] {
        assert_eq!(read(&format!("{SMALL}arrival = {text}\n")).crowd[0].arrival, expect);
    }
    for (text, help) in [
        ("{ every = \"1s\", jitter = false, seed = 7 }", "remove seed"),
        ("{ every = \"1s\", jitter = \"1s\" }", "true or false"),
        ("{ burst = { size = 2, every = \"1s\" }, jitter = true }", "remove it"),
        ("{ poisson = { rate = \"5/s\" }, seed = 7 }", "remove it"),
        ("{ every = \"1s\", jiter = false }", "did you mean `jitter`?"),
    ] {
        let error =
            Scenario::parse(&format!("{SMALL}arrival = {text}\n")).expect_err(text).to_string();
        assert!(error.contains(help), "{text}: {error}");
    }
}

#[test]
fn the_quick_form_makes_what_a_file_would() {
    let form = ScenarioFlags {
        url: "janus+ws://127.0.0.1:8188/streaming/1".into(),
        size: Some(100),
        every: Some("100ms".into()),
        duration: Some("60s".into()),
        summary_every: Some("5s".into()),
        allow: vec!["10.0.0.0/8".into()],
        objectives: vec!["failed < 1%".into()],
        ..ScenarioFlags::default()
    };
    let file = "objectives = [\"failed < 1%\"]\n[target]\nurl = \"janus+ws://127.0.0.1:8188/streaming/1\"\nallow = [\"10.0.0.0/8\"]\n[crowd]\nsize = 100\narrival = { every = \"100ms\" }\n";
    assert_eq!(Scenario::from_flags(&form).unwrap(), read(file));
    let wrong = ScenarioFlags { url: "http://h/whep".into(), every: Some("fast".into()), ..form };
    let error = Scenario::from_flags(&wrong).unwrap_err();
    assert_eq!(error.diagnostics.len(), 2);
    let text = error.to_string();
    assert!(
        text.contains("in the URL")
            && text.contains("in --every")
            && text.contains("whep+http://h/whep"),
        "{text}"
    );
}
