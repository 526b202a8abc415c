//! One crowd from several worker processes over a real nats-server.

mod experiments;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use throng_observation::FailureReason;
use throng_observation::run::{Ending, ParticipantId, RunData};
use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;
use throng_sim::nats::Nats;
use throng_sim::priority::BeforeOthers as _;
use throng_sim::requires_root;
use throng_sim::sshd::Sshd;
use throng_store::RunFolder;

use crate::conference::ADDRESS;
use crate::metrics::scrape;
use crate::throng::{Ran, Running, Stage, THRONG, figure, plain, run};

mod clocks;
mod credentials;
mod losses;
mod resume;
mod spool;

/// A worker process; it is killed when dropped.
struct Worker {
    child: Child,
    /// What it said.
    log: PathBuf,
    _folder: TempDir,
}

impl Worker {
    fn start(bus: &str, name: &str, more: &[&str]) -> Self {
        Self::spawn(Command::new(THRONG), bus, name, more)
    }

    /// By a command that starts throng.
    fn spawn(mut command: Command, bus: &str, name: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let said = std::fs::File::create(&log).unwrap();
        let child = command
            .args(["worker", "--fleet", bus, "--name", name])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn_before_others()
            .unwrap();
        Self { child, log, _folder: folder }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended; its exit code.
    fn ended_within(&mut self, within: Duration) -> Option<i32> {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it did not end within {within:?}:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn waits_until_it_says(&self, text: &str, within: Duration) {
        let until = Instant::now() + within;
        while !self.said().contains(text) {
            assert!(Instant::now() < until, "not said within {within:?}: {text}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A bus, a stage, and workers named `a`, `b`, ….
struct Fixture {
    nats: Nats,
    stage: Stage,
    workers: Vec<Worker>,
}

impl Fixture {
    fn of(workers: &[&[&str]]) -> Self {
        let nats = Nats::start("").unwrap();
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let names = ["a", "b", "c"];
        let workers =
            names.iter().zip(workers).map(|(name, more)| Worker::start(&nats.url(), name, more));
        let workers = workers.collect();
        Self { nats, stage, workers }
    }

    fn run(&self, viewers: &str, duration: &str, more: &[&str]) -> Running {
        let (target, bus, count) =
            (self.stage.target(), self.nats.url(), self.workers.len().to_string());
        let view =
            ["view", &target, "-n", viewers, "--every", "100ms", "--for", duration, "--plain"];
        Running::start(None, &[&view[..], &["--fleet", &bus, "--workers", &count], more].concat())
    }
}

fn rows(ran: &Ran) -> RunData {
    RunFolder::read(ran.folder()).unwrap()
}

/// Each participant has one row, whoever played it.
fn all_are_there(run: &RunData, count: u32) {
    let mut numbers: Vec<u32> = run.participants.iter().map(|row| row.participant.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
}

#[test]
fn two_workers_play_one_crowd_in_shares_of_their_weights_and_leave_one_report() {
    if !Nats::is_installed() {
        return;
    }
    let fixture = Fixture::of(&[&["--weight", "3"], &["--weight", "1"]]);
    let ran =
        fixture.run("12", "8s", &["--objective", "video.loss p95 < 5%"]).wait().expect_code(0);
    let run = rows(&ran);
    all_are_there(&run, 12);
    assert!(
        run.participants.iter().all(|row| row.failure().is_none() && row.ended_at.is_some()),
        "{ran}"
    );
    let shares: Vec<u32> = run.info.workers.iter().map(|worker| worker.participants).collect();
    assert_eq!(shares, [9, 3], "{ran}");
    // One machine, whose steady clocks differ by what an exchange can know.
    for worker in &run.info.workers {
        let within = i64::try_from(worker.clock_bound_us).unwrap();
        assert!(worker.clock_offset_us.abs() <= within.max(50_000), "{worker:?}");
    }
    let most = run.crowd.iter().map(|row| row.playing).max();
    assert_eq!(most, Some(12), "the crowd of both in one row\n{ran}");
    let mut of_workers: Vec<u16> = run.generator.iter().map(|row| row.worker).collect();
    of_workers.sort_unstable();
    of_workers.dedup();
    assert_eq!(of_workers, [0, 1]);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.intended"), 12.0);
    assert!(figure(&summary, "video.fps_p50") > 20.0, "{ran}");
    assert!(ran.stderr.contains("worker a: 9 joins"), "{ran}");
    assert_eq!(fixture.nats.streams(), 0, "the bus keeps nothing of a run that is over");
}

/// Half a minute: a fleet starts, and the others play to the end of a run of 20 s.
#[test]
fn a_worker_that_is_killed_is_told_at_once_and_its_viewers_are_not_failures() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&[], &[]]);
    let more = ["--on-loss", "go-on", "--prometheus", "127.0.0.1:0"];
    let mut running = fixture.run("8", "20s", &more);
    let url = running.says("metrics");
    let address = url.trim_start_matches("http://").trim_end_matches("/metrics");
    let of =
        |name: &str, worker: &str| format!("throng_fleet_worker_{name}{{worker=\"{worker}\"}}");
    running.when_playing(8);
    let both = scrape(address, |series| series.get(&of("participants", "b")) == Some(&4.0));
    for worker in ["a", "b"] {
        assert!(both[&of("clock_error_seconds", worker)] < 0.5, "{both:?}");
        assert!(both[&of("cpu_ratio", worker)] > 0.0, "{both:?}");
        assert!(both.contains_key(&of("rows_age_seconds", worker)), "{both:?}");
    }
    fixture.workers[1].child.kill().unwrap();
    let killed_at = Instant::now();
    let after = scrape(address, |series| series.get(&of("lost", "b")) == Some(&1.0));
    assert_eq!(after[&of("participants", "b")], 0.0);
    assert_eq!(after["throng_fleet_workers{state=\"playing\"}"], 1.0, "{after:?}");
    let ran = running.wait();
    assert!(killed_at.elapsed() < Duration::from_secs(40));
    let run = rows(&ran);
    all_are_there(&run, 8);
    let lost = |row: &&throng_observation::run::ParticipantRow| matches!(&row.outcome, Some(throng_observation::Outcome::Failed(why)) if why.reason == FailureReason::WorkerLost);
    let of_b: Vec<ParticipantId> =
        run.participants.iter().filter(lost).map(|row| row.participant).collect();
    assert_eq!(of_b.len(), 4, "{ran}");
    assert_eq!(run.participants.iter().filter(|row| row.failure().is_some()).count(), 0, "{ran}");
    assert!(ran.stderr.contains("worker b is lost: nothing was heard from it for 4 s"), "{ran}");
    // The crowd was not the one that was asked for.
    assert_eq!(ran.code, Some(4), "{ran}");
    let reasons = ran.summary()["generator"]["reasons"].to_string();
    assert!(reasons.contains("b was lost: 4 participants"), "{reasons}");
    // The others went on to the end.
    let last =
        run.crowd.iter().rev().find(|row| row.playing > 0).map(|row| (row.second, row.playing));
    assert!(last.is_some_and(|(second, playing)| second >= 18 && playing == 4), "{last:?}\n{ran}");
}

/// 25 s: a worker is lost after 4 s, and once it wakes it waits 8 s for its coordinator.
#[test]
fn a_frozen_worker_ends_the_run_unless_others_may_go_on_and_leaves_when_it_wakes() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&["--once"], &["--once"]]);
    let mut running = fixture.run("4", "60s", &[]);
    running.when_playing(4);
    fixture.workers[0].signal("STOP");
    let ran = running.wait();
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("worker a is lost"), "{ran}");
    let run = rows(&ran);
    all_are_there(&run, 4);
    assert!(run.ended_at.is_some_and(|at| at.as_secs_f64() < 40.0), "{ran}");
    fixture.workers[0].signal("CONT");
    fixture.workers[0].ended_within(Duration::from_secs(30));
    let said = fixture.workers[0].said();
    // By the coordinator's abort, or without a word of it.
    let ended = said.split("ended: ").nth(1);
    assert!(ended.is_some_and(|why| why.contains("the coordinator")), "{said}");
}

/// Half a minute: a fleet starts, and its run takes 16 s, in 3 s of which the bus is away.
#[test]
fn a_bus_that_is_killed_and_started_again_loses_no_row() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&[], &[]]);
    let mut running = fixture.run("6", "16s", &[]);
    running.when_playing(6);
    fixture.nats.kill();
    std::thread::sleep(Duration::from_secs(3));
    fixture.nats.start_again().unwrap();
    let ran = running.wait();
    if ran.spoiled_by().is_none() {
        assert_eq!(ran.code, Some(0), "{ran}");
    }
    let run = rows(&ran);
    all_are_there(&run, 6);
    assert!(
        run.participants.iter().all(|row| row.outcome.is_some() && row.failure().is_none()),
        "{ran}"
    );
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(
        seconds,
        (0..seconds.len() as i64).collect::<Vec<_>>(),
        "each second once, none left out\n{ran}"
    );
    // Nobody stopped for it.
    let (playing, whole) = run.crowd.iter().fold((0, 0), |(playing, whole), row| {
        let counts = (3..15).contains(&row.second);
        (playing + u32::from(counts && row.playing == 6), whole + u32::from(counts))
    });
    assert_eq!(playing, whole, "{ran}");
}

#[test]
fn workers_stop_when_their_coordinator_is_gone() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&["--once"], &["--once"]]);
    let mut running = fixture.run("4", "60s", &[]);
    running.when_playing(4);
    running.signal("KILL");
    let _ = running.wait();
    let killed_at = Instant::now();
    for worker in &fixture.workers {
        worker.waits_until_it_says(
            "ended: nothing was heard from the coordinator for 8 s",
            Duration::from_secs(12),
        );
    }
    assert!(killed_at.elapsed() < Duration::from_secs(13));
    for worker in &mut fixture.workers {
        worker.ended_within(Duration::from_secs(20));
    }
}

#[test]
fn an_interrupt_stops_everybody_and_keeps_what_was_measured() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&["--once"], &["--once"]]);
    let mut running = fixture.run("6", "60s", &[]);
    running.when_playing(6);
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(130), "{ran}");
    all_are_there(&rows(&ran), 6);
    for worker in &mut fixture.workers {
        worker.ended_within(Duration::from_secs(10));
    }
}

#[test]
fn what_a_fleet_cannot_do_is_refused_by_name() {
    if !Nats::is_installed() {
        return;
    }
    let said = |args: &[&str]| {
        let output = plain(args);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let view = |more: &[&str]| {
        said(
            &[
                &["view", &target, "-n", "4", "--for", "5s", "--quiet", "--output", "/nowhere/run"],
                more,
            ]
            .concat(),
        )
    };
    let (code, error) = view(&["--fleet", "nats://127.0.0.1:9", "--workers", "1"]);
    assert!(code == Some(4) && error.contains("nats://127.0.0.1:9 cannot be used"), "{error}");
    let (code, error) = view(&["--fleet", "nats://192.0.2.1", "--workers", "1"]);
    assert!(
        code == Some(4) && error.contains("is not encrypted and 192.0.2.1 is not this host"),
        "{error}"
    );
    let bare = Nats::without_jetstream().unwrap();
    let (code, error) = view(&["--fleet", &bare.url(), "--workers", "1"]);
    assert!(code == Some(4) && error.contains("has no JetStream"), "{error}");
    let locked = Nats::start("authorization { user: ada, password: right }").unwrap();
    let (code, error) = view(&["--fleet", &locked.url_of("ada", "wrong"), "--workers", "1"]);
    assert!(
        code == Some(4) && error.contains("cannot be used") && !error.contains("wrong"),
        "{error}"
    );

    let (code, error) =
        view(&["--fleet", &locked.url_of("ada", "right"), "--workers", "1", "--fleet-wait", "1s"]);
    assert!(code == Some(4) && error.contains("0 of 1 workers came"), "{error}");

    let nats = Nats::start("").unwrap();
    let bus = nats.url();
    let (code, error) = view(&["--fleet", &bus, "--workers", "0"]);
    assert!(code == Some(2), "{error}");
    let (code, error) = view(&["--fleet", &bus, "--workers", "5"]);
    assert!(code == Some(2) && error.contains("there are 4 joins"), "{error}");
    let (code, error) = view(&["--fleet", &bus, "--workers", "1", "--fleet-wait", "1s"]);
    assert!(code == Some(4) && error.contains("0 of 1 workers came within 1 s"), "{error}");
    let _small = Worker::start(&bus, "small", &["--max-users", "3"]);
    let (code, error) = view(&["--fleet", &bus, "--workers", "1"]);
    assert!(code == Some(4) && error.contains("worker small does not play"), "{error}");
    assert!(error.contains("this worker plays at most 3"), "{error}");
    // The flag can be pasted, whatever the plan says (docs/security.md).
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("a token; touch y");
    std::fs::write(&token, "token").unwrap();
    let token = format!("file:{}", token.display());
    let (code, error) = view(&["--fleet", &bus, "--workers", "1", "--token", &token]);
    assert!(code == Some(4) && error.contains("worker small does not play"), "{error}");
    assert!(error.contains(&format!("with --allow-secret '{token}'")), "{error}");
}

#[test]
fn what_one_machine_must_know_of_all_is_not_spread() {
    if !Nats::is_installed() {
        return;
    }
    let nats = Nats::start("").unwrap();
    let chat = [
        "view",
        "xmpp+ws://127.0.0.1:9/xmpp-websocket?room=r@room.localhost",
        "-n",
        "4",
        "--for",
        "5s",
    ];
    let fleet = ["--quiet", "--output", "/nowhere/run", "--fleet", &nats.url(), "--workers", "2"];
    let output = plain(&[&chat[..], &fleet].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && error.contains("chats and peers need all"),
        "{error}"
    );
}

#[test]
fn a_plan_cannot_allow_what_the_owner_of_a_worker_did_not() {
    if !Nats::is_installed() {
        return;
    }
    let nats = Nats::start("").unwrap();
    let bus = nats.url();
    let _worker = Worker::start(&bus, "careful", &[]);
    // The coordinator allows the network, the worker's owner does not.
    let output = plain(&[
        "view",
        "whep+http://10.255.0.1/whep",
        "-n",
        "2",
        "--for",
        "5s",
        "--quiet",
        "--output",
        "/nowhere/run",
        "--allow-target",
        "10.255.0.0/24",
        "--fleet",
        &bus,
        "--workers",
        "1",
    ]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(4) && error.contains("worker careful does not play"),
        "{error}"
    );
    assert!(error.contains("10.255.0.1"), "{error}");
    // Nor take what is secret there.
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let view = [
        "view",
        &target,
        "-n",
        "2",
        "--for",
        "5s",
        "--quiet",
        "--output",
        "/nowhere/run",
        "--token",
        "env:HOME",
    ];
    let output = plain(&[&view[..], &["--fleet", &bus, "--workers", "1"]].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(4) && error.contains("the plan uses env:HOME of this machine"),
        "{error}"
    );
}

/// Two minutes: a search, in which the server recovers after each load that failed.
#[test]
fn a_search_grows_and_shrinks_all_shares_together() {
    if !Nats::is_installed() {
        return;
    }
    let nats = Nats::start("").unwrap();
    let stage = Stage::start(None, "127.0.0.1:0", &["--max-viewers", "12"]);
    let _workers = ["a", "b"].map(|name| Worker::start(&nats.url(), name, &[]));
    let (target, bus) = (stage.target(), nats.url());
    let find = ["find", &target, "--start", "9", "--ceiling", "40", "--budget", "1m", "--quiet"];
    let fleet = ["--objective", "connect p99 < 1s", "--fleet", &bus, "--workers", "2"];
    let ran = run(None, &[&find[..], &fleet].concat()).expect_code(0);
    let summary = ran.summary();
    let said = (figure(&summary, "capacity.users"), figure(&summary, "capacity.first_failing"));
    assert_eq!(said, (12.0, 13.0), "{ran}");
    let of_both: std::collections::BTreeSet<u16> =
        rows(&ran).generator.iter().map(|row| row.worker).collect();
    assert_eq!(of_both.len(), 2);
}

/// Wall clocks of workers that are seconds apart, as hosts without NTP have them; none ahead (see
/// [`clocks`]).
const CLOCKS: [&str; 3] = ["-4s", "-2s", "+0s"];

/// 20 s: workers measure their clocks and begin 2 s later, and the run takes 14 s.
#[test]
fn a_conference_spans_workers_whose_clocks_differ_by_seconds() {
    confer(6);
}

/// Takes a whole core.
mod long {
    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn a_lesson_of_twelve_spans_three_workers() {
        super::confer(12);
    }
}

/// A conference of so many on a real Janus, from three workers: every pair is there.
fn confer(people: u32) {
    let library =
        format!("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", std::env::consts::ARCH);
    if !requires_root() || !Nats::is_installed() || !is_there(&library) {
        return;
    }
    let namespace = Namespace::with_veth("fleet", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let nats = Nats::start_in(&namespace, "127.0.0.1:4222".parse().unwrap()).unwrap();
    let bus = nats.url();
    let _workers: Vec<Worker> = ["a", "b", "c"]
        .iter()
        .zip(CLOCKS)
        .map(|(name, clock)| {
            let mut command = namespace.command(THRONG);
            command
                .env("LD_PRELOAD", &library)
                .env("FAKETIME", clock)
                .env("DONT_FAKE_MONOTONIC", "1");
            Worker::spawn(command, &bus, name, &[])
        })
        .collect();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}");
    let ran = run(
        Some(&namespace),
        &[
            "view",
            &url,
            "-n",
            &people.to_string(),
            "--every",
            "200ms",
            "--for",
            "14s",
            "--warm-up",
            "4s",
            "--fleet",
            &bus,
            "--workers",
            "3",
        ],
    )
    .expect_code(0);
    let summary = ran.summary();
    let pairs = f64::from(people * (people - 1));
    for kind in ["video", "audio"] {
        for what in ["expected", "playing"] {
            assert_eq!(
                figure(&summary, &format!("conference.{kind}.{what}")),
                pairs,
                "{kind} {what}: {ran}"
            );
        }
    }
    // The workers knew how far their clocks were off, and told delays by the coordinator's.
    let offsets: Vec<i64> =
        rows(&ran).info.workers.iter().map(|worker| worker.clock_offset_us / 1000).collect();
    for (offset_ms, planted_ms) in offsets.iter().zip([4000, 2000, 0]) {
        assert!((offset_ms - planted_ms).abs() < 100, "{offsets:?}\n{ran}");
    }
    let bound_ms = figure(&summary, "clock_error.bound_ms");
    assert!(bound_ms > 0.0 && bound_ms < 50.0, "{bound_ms}\n{ran}");
    // Delays of a loopback are below what is known of the clocks: some are negative by less than
    // that. Seconds would show.
    let delay_ms = figure(&summary, "video.one_way_delay_ms_p95");
    assert!(delay_ms > -bound_ms && delay_ms < 300.0 + bound_ms, "{delay_ms}\n{ran}");
    assert!(figure(&summary, "video.clock_disagrees_ratio") < 0.95, "{ran}");
}

fn is_there(library: &str) -> bool {
    let is_there = std::path::Path::new(library).exists();
    if !is_there {
        throng_sim::skipped("faketime is not installed (scripts/setup.sh test)");
    }
    is_there
}

#[test]
fn workers_are_started_over_ssh_for_one_run_and_leave_nothing() {
    if !requires_root() || !Nats::is_installed() || !Sshd::is_installed() {
        return;
    }
    let sshd = Sshd::start().unwrap();
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let (target, ssh) = (stage.target(), sshd.ssh());
    let view = ["view", &target, "-n", "6", "--every", "100ms", "--for", "6s"];
    let on = ["--on", "127.0.0.1,localhost", "--ssh", &ssh, "--remote-throng", THRONG];
    let ran = run(None, &[&view[..], &on].concat()).expect_code(0);
    let run = rows(&ran);
    all_are_there(&run, 6);
    let names: Vec<&str> = run.info.workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["127.0.0.1", "localhost"]);
    // Neither workers nor a bus are left, and no address of it was in arguments.
    let until = Instant::now() + Duration::from_secs(15);
    loop {
        let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        let left = String::from_utf8_lossy(&listed.stdout).into_owned();
        let is_ours = |line: &&str| line.contains("throng-bus-") || line.contains("'--fleet' '-'");
        let ours: Vec<&str> = left.lines().filter(is_ours).collect();
        if ours.is_empty() {
            break;
        }
        assert!(Instant::now() < until, "{ours:?}");
        std::thread::sleep(Duration::from_millis(200));
    }

    let output = plain(&[
        "view",
        &target,
        "-n",
        "2",
        "--for",
        "5s",
        "--quiet",
        "--output",
        "/nowhere/run",
        "--fleet-wait",
        "4s",
        "--on",
        "127.0.0.1",
        "--ssh",
        &ssh,
        "--remote-throng",
        "/no/such/throng",
    ]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && error.contains("/no/such/throng"), "{error}");
}

#[test]
fn a_bus_with_tls_is_used_by_those_who_know_its_certificate_only() {
    if !Nats::is_installed() {
        return;
    }
    let nats = Nats::start_encrypted().unwrap();
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let (bus, certificate, target) = (nats.encrypted_url(), nats.certificate(), stage.target());
    let _worker = Worker::start(&bus, "a", &["--fleet-ca", &certificate]);
    let view = ["view", &target, "-n", "2", "--for", "4s"];
    let fleet = ["--fleet", &bus, "--fleet-ca", &certificate, "--workers", "1"];
    let ran = run(None, &[&view[..], &fleet].concat()).expect_code(0);
    all_are_there(&rows(&ran), 2);
    let output = plain(
        &[&view[..], &["--fleet", &bus, "--workers", "1", "--output", "/nowhere/run"]].concat(),
    );
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && error.contains("cannot be used"), "{error}");
    // An address without tls:// is no way around.
    let plainly = nats.url();
    let output = plain(
        &[
            &view[..],
            &[
                "--fleet",
                &plainly,
                "--workers",
                "1",
                "--fleet-wait",
                "2s",
                "--output",
                "/nowhere/run",
            ],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
}
