//! A server on another machine, watched by its owner's agent: the recorded data, and how the owner
//! ends a run.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;
use throng_observation::RunTime;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::page;
use crate::throng::{Ran, Running, Stage, THRONG, figure, valid};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 79, 4, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 79, 4, 2);
const PORT: u16 = 7080;
/// Signalling, and media at ports that the stage draws.
const LOAD: &str = "7080,1024-65535/udp";
const TOKEN: &str = "a-token-of-the-owner";

/// Two machines: a stage and its agent on one, the crowd on the other.
struct Fixture {
    crowd: Namespace,
    server: Namespace,
    stage: Stage,
    agent: Agent,
    folder: tempfile::TempDir,
}

/// `throng watch --listen`; ends when dropped.
struct Agent {
    child: Child,
    address: String,
    fingerprint: String,
}

impl Agent {
    fn start(server: &Namespace, args: &[&str]) -> Self {
        let mut command = server.command(THRONG);
        command.args(["watch", "--port", &PORT.to_string(), "--listen", &format!("{THERE}:0")]);
        command.args(["--token", TOKEN]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut find = |key: &str| loop {
            let line = lines.next().expect("the agent starts").unwrap();
            if let Some(value) = line.trim().strip_prefix(key) {
                break value.trim().to_owned();
            }
        };
        let (address, fingerprint) = (find("agent"), find("fingerprint"));
        Self { child, address, fingerprint }
    }

    fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.signal("KILL");
        let _ = self.child.wait();
    }
}

impl Fixture {
    fn new(agent: &[&str]) -> Self {
        let (crowd, server) = Namespace::pair("agent", HERE, THERE).unwrap();
        let stage = Stage::start(Some(&server), &format!("{THERE}:{PORT}"), &["--listen-any"]);
        let agent = Agent::start(&server, agent);
        Self { crowd, server, stage, agent, folder: tempfile::tempdir().unwrap() }
    }

    /// Begins a run of 40 joins within 8 s, with the change `change`.
    fn begin(&self, change: impl FnOnce(String) -> String) -> Running {
        let Agent { address, fingerprint, .. } = &self.agent;
        let scenario = change(format!(
            "[target]\nurl = \"{}\"\n[crowd]\nsize = 40\narrival = {{ every = \"200ms\" }}\n\
             [run]\nduration = \"12s\"\nwarm_up = \"2s\"\n\
             [[watch]]\nname = \"media one\"\nagent = \"{address}\"\ntoken = \"{TOKEN}\"\n\
             fingerprint = \"{fingerprint}\"\nprofile = [\"baseline\", {{ at = \"3s\", for = \"5s\" }}]\n",
            self.stage.target()
        ));
        let file = self.folder.path().join("run.toml");
        std::fs::write(&file, scenario).unwrap();
        Running::start(Some(&self.crowd), &["run", file.to_str().unwrap()])
    }

    /// A run that an event at the agent ends while participants still join. Returns why it ended,
    /// how long after the event the last join was offered, and how long after the event the last
    /// participant was gone; seconds.
    fn ended_by(&self, happens: impl FnOnce(&Agent)) -> (String, f64, f64, Ran) {
        let mut running = self.begin(|scenario| scenario);
        running.when_playing(15);
        happens(&self.agent);
        let happened =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as f64;
        let ran = running.wait();
        let run = throng_store::RunFolder::read(ran.folder()).unwrap();
        let happened = (happened - run.info.started_at_unix_us as f64) / 1e6;
        let abort = run
            .events
            .iter()
            .find(|event| event.kind == "abort")
            .unwrap_or_else(|| panic!("{ran}"));
        let stopped = abort.at.as_secs_f64();
        let gone = run.participants.iter().filter_map(|row| row.ended_at).map(RunTime::as_secs_f64);
        let gone = gone.fold(0.0, f64::max);
        assert!(
            run.participants.iter().all(|row| row.intended_at.as_secs_f64() <= stopped + 0.3),
            "{ran}"
        );
        (abort.detail.to_string(), stopped - happened, gone - stopped, ran)
    }
}

/// Twenty-five seconds: the idle server for five, a run with two profiles, a browser for the page.
#[test]
fn a_server_elsewhere_is_seen_through_its_agent_whose_presence_is_the_consent() {
    if !requires_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("server.log");
    std::fs::write(&log, "").unwrap();
    let fixture = Fixture::new(&["--allow-load", LOAD, "--log", log.to_str().unwrap()]);
    let (ran, ()) = valid(|| {
        let mut running = fixture.begin(|scenario| scenario);
        running.when_playing(5);
        let mut log = std::fs::File::options().append(true).open(&log).unwrap();
        log.write_all("Too many open files\n".repeat(30).as_bytes()).unwrap();
        (running.wait(), ())
    });
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    let server = &summary["hosts"][0];
    assert_eq!(
        (&server["name"], &server["processes"][0]["name"]),
        (&"media one".into(), &"throng".into()),
        "{ran}"
    );
    let hottest = &server["hottest_thread"];
    assert!(
        hottest["name"].as_str().is_some_and(|name| name.contains("worker")),
        "{hottest:#}\n{ran}"
    );
    assert!(hottest["help"].as_str().is_some_and(|help| help.contains("--workers")), "{hottest:#}");
    assert!(server["log_lines"].to_string().contains("too_many_open_files"), "{server:#}");

    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    let error_us = run.host.hosts[0].clock_error_us;
    assert!((1..20_000).contains(&error_us), "the clock may be {error_us} µs off");
    let moments: Vec<_> = run.host.profiles.iter().map(|profile| profile.moment.as_str()).collect();
    assert_eq!(moments, ["baseline", "3s"], "{:?}", run.host.events);
    let at: Vec<f64> = run.host.samples.iter().map(|sample| sample.at.as_secs_f64()).collect();
    assert!(
        at.iter().any(|at| *at < -1.0) && at.iter().all(|at| (-6.0..20.0).contains(at)),
        "times of the run"
    );
    // The server sends from the first join on, in the run's time: the clocks agree.
    let is_sent = |id| run.host.series.iter().any(|s| s.id == id && s.metric == "nic.tx_bytes");
    let sends = run.host.samples.iter().filter(|s| is_sent(s.series) && s.value > 2e6);
    let from = sends.map(|sample| sample.at.as_secs_f64()).fold(f64::INFINITY, f64::min);
    assert!((0.0..9.0).contains(&from), "the server sends from {from} s on\n{ran}");

    let mut browser = page::opened(&fixture.server, &ran);
    let said = browser.evaluate("document.body.innerText.includes('media one')").unwrap();
    assert_eq!(said, Value::Bool(true));
    page::fits(&mut browser, "watched-by-agent");
}

#[test]
fn without_the_right_agent_a_private_target_is_not_reached() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new(&["--allow-load", "7080", "--max-users", "39"]);
    let digits = fixture.agent.fingerprint.clone();
    let other = format!("{}{}", if digits.starts_with('0') { "1" } else { "0" }, &digits[1..]);
    let port = fixture.agent.address.rsplit(':').next().unwrap().to_owned();
    let cases: [(&dyn Fn(String) -> String, &str); 5] = [
        (&|text| text.replace(TOKEN, "another-token-here"), "the token is wrong"),
        (&|text| text.replace(&digits, &other), "is not the one with fingerprint"),
        (&|text| text.replace(&format!(":{port}\""), ":9\""), "no agent answers"),
        (&|text| text, "consent does not cover 40 users"),
        (&|text| text.split("[[watch]]").next().unwrap().to_owned(), "--allow-target 10.79.4.2"),
    ];
    for (change, why) in cases {
        let ran = fixture.begin(change).wait().expect_code(3);
        assert!(ran.stderr.contains(why), "{why}: {ran}");
        assert!(!ran.folder().exists(), "nothing was begun");
    }
    drop(fixture.agent);
    let agent = Agent::start(&fixture.server, &["--allow-load", "8188"]);
    let ran = Fixture { agent, ..fixture }.begin(|text| text).wait().expect_code(3);
    assert!(ran.stderr.contains("does not allow load on port 7080"), "{ran}");
}

#[test]
fn an_agent_that_names_only_the_port_of_signalling_gets_no_media() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new(&["--allow-load", "7080"]);
    let ran = fixture.begin(|text| text).wait();
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), 0.0, "{ran}");
    assert!(figure(&summary, "events.refused_ice_candidate") > 0.0, "{ran}");
    let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("--allow-load") && detail.contains("/udp"), "{detail}\n{ran}");
}

#[test]
fn an_agent_that_is_killed_ends_the_run_within_a_second() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new(&["--allow-load", LOAD]);
    let (why, stopped_after, gone_after, ran) = fixture.ended_by(|agent| agent.signal("KILL"));
    assert!(why.contains("consent") && why.contains("is gone"), "{why}\n{ran}");
    assert!((0.0..1.0).contains(&stopped_after), "joins were offered for {stopped_after} s\n{ran}");
    assert!(gone_after < 5.0, "participants were there for {gone_after} s\n{ran}");
    assert_eq!(ran.summary()["ending"], "aborted", "{ran}");
}

#[test]
fn an_agent_that_falls_silent_ends_the_run_after_five_seconds() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new(&["--allow-load", LOAD]);
    // Nothing is sent or closed: only the heartbeat is missing.
    let (why, stopped_after, gone_after, ran) = fixture.ended_by(|agent| agent.signal("STOP"));
    assert!(why.contains("is gone"), "{why}\n{ran}");
    assert!((3.5..6.0).contains(&stopped_after), "joins were offered for {stopped_after} s\n{ran}");
    assert!(gone_after < 5.0, "participants were there for {gone_after} s\n{ran}");
}
