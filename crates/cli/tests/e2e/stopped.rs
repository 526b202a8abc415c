//! A server that is stopped for a while: its freeze has a cause, and the burst that it sends afterwards is not
//! blamed on the generator. A run without problems has no explanations.

use std::process::Command;
use std::time::Duration;

use throng_observation::limits::BURST_DROPS_EVENT;

use crate::throng::{Running, Stage, valid};

/// Stops the stage for a while.
fn stop(stage: &Stage, time: Duration) {
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &stage.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    std::thread::sleep(time);
    signal("-CONT");
}

fn port(stage: &Stage) -> String {
    let authority = stage.whep.split('/').nth(2).unwrap_or_default();
    format!("port={}", authority.rsplit(':').next().unwrap_or_default())
}

/// 25 s: 5 s of the idle server, and a run of 20 s, in 6 s of which it is stopped.
#[test]
fn a_server_that_was_stopped_is_named_and_the_run_is_valid() {
    let (ran, ()) = valid(|| {
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let watch = port(&stage);
        let view = ["view", &stage.target(), "-n", "6", "--for", "20s", "--watch", &watch];
        let mut running = Running::start(None, &view);
        running.when_playing(6);
        std::thread::sleep(Duration::from_secs(3));
        stop(&stage, Duration::from_secs(6));
        (running.wait(), ())
    });
    let summary = ran.summary();
    let found = &summary["bottleneck"];
    assert_eq!(found["finding"], "process_stopped", "{found:#}\n{ran}");
    assert!(found["title"].as_str().is_some_and(|title| title.contains("was stopped for")), "{found:#}");
    assert_eq!(summary["generator"]["limited"], false, "{ran}");
    // Datagrams that did not fit into the generator's buffers arrived in the burst after the silence.
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    assert_eq!(run.generator.iter().map(|row| row.socket_drops).sum::<u64>(), 0, "{ran}");
    let bursts = run.events.iter().filter(|event| event.kind == BURST_DROPS_EVENT);
    assert!(bursts.clone().all(|event| event.detail.contains("had been silent for")), "{ran}");
}

#[test]
fn a_clean_run_explains_nothing() {
    // A key frame each second: a viewer waits for one for up to a second after its join.
    let (ran, ()) = valid(|| {
        let stage = Stage::start(None, "127.0.0.1:0", &[]);
        let view = ["view", &stage.target(), "-n", "6", "--every", "700ms", "--for", "12s"];
        (Running::start(None, &view).wait(), ())
    });
    let ran = ran.expect_code(0);
    assert!(ran.summary()["bottleneck"].is_null(), "{ran}");
    assert!(ran.stdout.starts_with("6 viewers played cleanly for 12 s"), "{ran}");
}
