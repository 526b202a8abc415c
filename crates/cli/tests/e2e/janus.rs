//! Fifty viewers on the real Janus agree with its own counters and with the feed.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use throng_observation::{FailureReason, Phase};
use throng_sim::janus::{self, Janus};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::throng::{Running, figure, run, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

fn fifty_viewers_agree_with_janus(mountpoint: u64) {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let _feed = janus.feed().unwrap();
    let url = format!("janus+ws://127.0.0.1:8188/streaming/{mountpoint}");
    let view =
        ["view", &url, "-n", "50", "--every", "50ms", "--for", "15s", "--warm-up", "4s", "--csv"];
    let (ran, (bytes_by_janus, asked_at)) = valid(|| {
        let running = Running::start(Some(&namespace), &view);
        // Ask Janus near the end, while all viewers are still connected.
        std::thread::sleep(Duration::from_secs(13));
        let asked_from = SystemTime::now();
        let bytes_by_janus = janus.bytes_sent().unwrap();
        let asked_at = asked_from + asked_from.elapsed().unwrap() / 2;
        (running.wait(), (bytes_by_janus, asked_at))
    });
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), 50.0, "{ran}");
    assert_eq!(figure(&summary, "video.loss_ratio"), 0.0, "{ran}");
    let fps = figure(&summary, "video.fps_p50");
    assert!((fps - f64::from(janus::FEED_FPS)).abs() < 1.0, "{fps} fps");
    // Janus completes ICE later than the viewer and drops the first DTLS flight. A retransmission
    // after a second, as in RFC 6347 but in no browser, would be most of a join.
    let connect_ms = figure(&summary, "connect_ms_p50");
    assert!(connect_ms < 500.0, "{connect_ms} ms\n{ran}");

    let received = bytes_received_until(&ran.folder(), asked_at);
    let ratio = received / bytes_by_janus as f64;
    assert!(
        (0.98..=1.02).contains(&ratio),
        "received {received}, Janus sent {bytes_by_janus}: {ratio}"
    );
}

/// RTP bytes (headers and payload, as Janus counts them) of all tracks in seconds before `until`,
/// the last one in part. The run begins some tenths of a second after its process, so its own clock
/// is used.
fn bytes_received_until(folder: &std::path::Path, until: SystemTime) -> f64 {
    let run = throng_store::RunFolder::read(folder).unwrap();
    let until_us = until.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as f64;
    let until_s = (until_us - run.info.started_at_unix_us as f64) / 1e6;
    let whole = until_s as i64;
    run.series
        .iter()
        .map(|row| {
            let bytes = (row.counters.payload_bytes + row.counters.header_bytes) as f64;
            match row.second.cmp(&whole) {
                std::cmp::Ordering::Less => bytes,
                std::cmp::Ordering::Equal => bytes * (until_s - whole as f64),
                std::cmp::Ordering::Greater => 0.0,
            }
        })
        .sum()
}

#[test]
fn fifty_viewers_of_h264_agree_with_janus() {
    fifty_viewers_agree_with_janus(janus::H264);
}

#[test]
fn fifty_viewers_of_vp8_agree_with_janus() {
    fifty_viewers_agree_with_janus(janus::VP8);
}

/// 25 s: the crowd of the example joins within 10 s, and is judged from 14 s to 25 s.
#[test]
fn the_example_for_janus_meets_its_objectives() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let _feed = janus.feed().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/janus-viewers.toml");
    let shorter = ["--set", "run.duration=25s", "--set", "run.warm_up=14s"];
    let ran = run(Some(&namespace), &[&["run", example][..], &shorter].concat()).expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), 50.0, "{ran}");
    let objectives = summary["objectives"].as_array().unwrap();
    assert_eq!(objectives.len(), 5, "{ran}");
    assert!(objectives.iter().all(|objective| objective["met"] == true), "{objectives:#?}\n{ran}");
}

#[test]
fn janus_refusals_are_named() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let viewers = ["-n", "3", "--every", "100ms", "--for", "2s"];
    for path in ["streaming/99".to_owned(), format!("streaming/{}?pin=wrong", janus::H264_WITH_PIN)]
    {
        let url = format!("janus+ws://127.0.0.1:8188/{path}");
        let ran = run(Some(&namespace), &[&["view", &url][..], &viewers].concat()).expect_code(3);
        assert_eq!(figure(&ran.summary(), "failures.refused"), 3.0, "{ran}");
    }
}

#[test]
fn a_janus_that_dies_mid_run_is_a_named_failure_and_the_run_continues() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let feed = janus.feed().unwrap();
    let url = "janus+ws://127.0.0.1:8188/streaming/1";
    let mut running = Running::start(
        Some(&namespace),
        &["view", url, "-n", "4", "--every", "100ms", "--for", "8s"],
    );
    running.when_playing(4);
    drop(feed);
    drop(janus);
    let ran = running.wait();
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.connected"), 4.0, "{ran}");
    assert_eq!(figure(&summary, "participants.failed"), 4.0, "{ran}");
    // A server that shuts down closes both; which of them a participant detects first is chance.
    let failures = |reason: &str| summary["failures"][reason].as_f64().unwrap_or(0.0);
    assert_eq!(failures("signalling_closed") + failures("media_lost"), 4.0, "{ran}");
}

/// 20 s: four viewers join 5 s apart, before and after the restart.
#[test]
fn a_janus_that_restarts_loses_its_viewers_and_serves_later_ones() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", ADDRESS).unwrap();
    let mut janus = Janus::start(&namespace, ADDRESS).unwrap();
    let feed = janus.feed().unwrap();
    let url = "janus+ws://127.0.0.1:8188/streaming/1";
    // They join at 0, 5, 10 and 15 s; Janus restarts between the second and the third.
    let exactly = ["--every", "5s", "--set", "crowd.arrival.jitter=false", "--for", "20s"];
    let mut running =
        Running::start(Some(&namespace), &[&["view", url, "-n", "4"][..], &exactly].concat());
    running.when_playing(2);
    janus.restart().unwrap();
    drop(feed);
    let _feed = janus.feed().unwrap();
    let ran = running.wait().expect_code(1);
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    assert_eq!(run.participants.len(), 4, "{ran}");
    for row in &run.participants {
        let was_there = row.participant.0 < 2;
        assert!(row.ms_to(Phase::FirstFrame).is_some(), "{row:?}\n{ran}");
        match row.failure() {
            Some(FailureReason::SignallingClosed | FailureReason::MediaLost) => {
                assert!(was_there, "{row:?}\n{ran}");
            }
            other => assert!(other.is_none() && !was_there, "{row:?}\n{ran}"),
        }
    }
    assert_eq!(figure(&ran.summary(), "participants.failed"), 2.0, "{ran}");
}
