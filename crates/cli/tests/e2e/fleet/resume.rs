//! A run whose coordinator is killed is collected: every second once, every participant, and
//! nothing twice.

use super::*;
use throng_observation::fleet::{COORDINATOR_GONE_EVENT, WORKER_ENDED_EVENT};

/// `throng run --resume FOLDER`; its exit code, and what it said.
fn resume(folder: &str, bus: &str, more: &[&str]) -> (Option<i32>, String) {
    let output = plain(&[&["run", "--resume", folder, "--fleet", bus], more].concat());
    let (said, printed) =
        (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    (output.status.code(), format!("{said}\n{printed}"))
}

/// Each second once and none left out.
fn seconds_are_whole(run: &RunData) {
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(seconds, (0..seconds.len() as i64).collect::<Vec<_>>());
}

/// 25 s: a fleet starts, and its workers stop 8 s after their coordinator was killed.
#[test]
fn what_workers_have_measured_after_their_coordinator_was_killed_completes_the_folder_once() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&["--once"], &["--once"]]);
    let bus = fixture.nats.url();
    let mut running = fixture.run("6", "90s", &[]);
    running.when_playing(6);
    running.signal("KILL");
    let ran = running.wait();
    let folder = ran.folder();
    let before = RunFolder::read(&folder).unwrap();
    assert_eq!(before.ending, Ending::Unfinished);
    for worker in &mut fixture.workers {
        worker.ended_within(Duration::from_secs(25));
    }
    assert_eq!(fixture.nats.streams(), 1, "the bus keeps what they sent");

    let shown = folder.display().to_string();
    let (code, said) = resume(&shown, &bus, &[]);
    assert_eq!(code, Some(130), "{said}");
    assert!(
        said.contains("worker a ended early: nothing was heard from the coordinator for 8 s"),
        "{said}"
    );
    let run = RunFolder::read(&folder).unwrap();
    all_are_there(&run, 6);
    assert!(
        run.participants.iter().all(|row| row.outcome.is_some() && row.failure().is_none()),
        "{said}"
    );
    seconds_are_whole(&run);
    let last =
        |run: &RunData| run.crowd.iter().filter(|row| row.playing > 0).map(|row| row.second).max();
    assert!(
        last(&run) >= last(&before).map(|second| second + 6),
        "{:?} {:?}",
        last(&before),
        last(&run)
    );
    assert_eq!(run.ending, Ending::Interrupted);
    for kind in [WORKER_ENDED_EVENT, COORDINATOR_GONE_EVENT] {
        assert!(run.events.iter().any(|event| event.kind == kind), "{kind} in {:?}", run.events);
    }
    let reasons = ran.summary()["generator"]["reasons"].to_string();
    assert!(reasons.contains("worker b ended early"), "{reasons}");
    assert!(folder.join("report.html").is_file());
    assert_eq!(fixture.nats.streams(), 0, "all of it was collected");

    // Once more changes nothing, and says so.
    let bytes = std::fs::read(folder.join("run.db")).unwrap();
    let (code, said) = resume(&shown, &bus, &[]);
    assert!(code == Some(0) && said.contains("of the bus: nothing is missing"), "{said}");
    assert_eq!(std::fs::read(folder.join("run.db")).unwrap(), bytes);
}

/// Over 20 s: three runs in turn, for two of which a fleet starts.
#[test]
fn what_cannot_be_resumed_is_named() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&[]]);
    let bus = fixture.nats.url();
    let (code, error) = resume("/nowhere/run", &bus, &[]);
    assert!(code == Some(2) && error.contains("/nowhere/run: no such run folder"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone").display().to_string();
    let target = fixture.stage.target();
    plain(&["view", &target, "-n", "1", "--for", "2s", "--quiet", "--output", &alone]);
    let (code, error) = resume(&alone, &bus, &[]);
    assert!(code == Some(2) && error.contains("no fleet played this run"), "{error}");
    let output = plain(&["run", "--resume", &alone]);
    assert_eq!(output.status.code(), Some(2), "it needs a bus");

    let ran = fixture.run("2", "3s", &[]).wait().expect_code(0);
    let (code, error) = resume(&ran.folder().display().to_string(), &bus, &[]);
    assert!(
        code == Some(2) && error.contains("ended as planned: there is nothing to resume"),
        "{error}"
    );

    // A run that is led; then one whose rows the bus has lost; then no bus.
    let mut running = fixture.run("2", "60s", &[]);
    running.when_playing(2);
    let led = running.run_folder().display().to_string();
    let (code, error) = resume(&led, &bus, &[]);
    assert!(code == Some(2) && error.contains("a coordinator leads the run"), "{error}");
    running.signal("KILL");
    let ran = running.wait();
    let shown = ran.folder().display().to_string();
    let other = Nats::start("").unwrap();
    let (code, error) = resume(&shown, &other.url(), &[]);
    assert!(code == Some(4) && error.contains("has no rows of the run"), "{error}");
    fixture.nats.kill();
    let (code, error) = resume(&shown, &bus, &[]);
    assert!(code == Some(4) && error.contains("cannot be used"), "{error}");
    // Of another program.
    let file = ran.folder().join("fleet.json");
    let record = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, record.replace(env!("CARGO_PKG_VERSION"), "0.0.0")).unwrap();
    let (code, error) = resume(&shown, &bus, &[]);
    assert!(code == Some(2) && error.contains("was begun by throng 0.0.0"), "{error}");
}
