//! The stage as a target: the run reports the limits that the stage was started with.

use crate::throng::{Stage, figure, run};

#[test]
fn viewers_of_an_unlimited_stage_play_cleanly() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let objectives = ["--objective", "video.loss < 0.1%", "--objective", "connect p99 < 3s"];
    let view =
        ["view", &stage.target(), "-n", "10", "--every", "50ms", "--for", "6s", "--warm-up", "2s"];
    let ran = run(None, &[&view[..], &objectives].concat()).expect_code(0);
    let summary = ran.summary();
    assert_eq!(summary["outcome"], "met", "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), 10.0);
    assert!((figure(&summary, "video.fps_p50") - 30.0).abs() < 1.0, "{ran}");
}

#[test]
fn a_full_line_shows_as_delay_and_then_loss() {
    let stage =
        Stage::start(None, "127.0.0.1:0", &["--egress-cap", "6Mbit/s", "--egress-queue-ms", "300"]);
    let objectives = ["--objective", "video.delay p95 < 100ms", "--objective", "video.loss < 1%"];
    let view = [
        "view",
        &stage.target(),
        "-n",
        "12",
        "--every",
        "100ms",
        "--for",
        "10s",
        "--warm-up",
        "3s",
    ];
    let ran = run(None, &[&view[..], &objectives].concat()).expect_code(1);
    let summary = ran.summary();
    assert_eq!(summary["outcome"], "missed", "{ran}");
    assert!(
        figure(&summary, "video.loss_ratio") > 0.2,
        "twice the line's rate was asked for\n{ran}"
    );
    let delay = figure(&summary, "video.delay_ms_p95");
    assert!((150.0..600.0).contains(&delay), "a queue of 300 ms shows as {delay} ms\n{ran}");
    let received = figure(&summary, "received_bps");
    assert!((5.0e6..6.6e6).contains(&received), "a line of 6 Mbit/s carried {received}");
}

#[test]
fn viewers_beyond_the_limit_fail_with_the_status() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--max-viewers", "3"]);
    let ran = run(
        None,
        &[
            "view",
            &stage.target(),
            "-n",
            "5",
            "--every",
            "100ms",
            "--for",
            "4s",
            "--objective",
            "failed < 1%",
        ],
    );
    let ran = ran.expect_code(1);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "failures.http_503"), 2.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), 3.0, "{ran}");
}

#[test]
fn an_overloaded_worker_still_handles_joins_and_leaves() {
    // Twelve viewers are too many on any machine, and one is few enough on a slow one.
    let stage = Stage::start(None, "127.0.0.1:0", &["--workers", "1", "--work-per-packet", "4000"]);
    let view = ["view", &stage.target(), "--every", "100ms"];
    let crowd = run(
        None,
        &[&view[..], &["-n", "12", "--for", "10s", "--objective", "failed < 50%"]].concat(),
    );
    assert_eq!(figure(&crowd.summary(), "participants.failed"), 0.0, "{crowd}");
    assert!(figure(&crowd.summary(), "video.fps_p50") < 25.0, "it was not too much\n{crowd}");
    // The others have left, so that the capacity is enough for one viewer at once: most packets of
    // a worker that is still behind are late, while other tests make some of them late.
    let one = run(None, &[&view[..], &["-n", "1", "--for", "5s", "--warm-up", "2s"]].concat());
    let summary = one.summary();
    assert!((figure(&summary, "video.fps_p50") - 30.0).abs() < 1.5, "{one}");
    assert!(figure(&summary, "video.delay_ms_p50") < 100.0, "{one}");
}
