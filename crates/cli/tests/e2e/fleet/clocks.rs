//! Delays between participants whose hosts have other clocks and a long way to each other.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use throng_observation::fleet::{WORKER_CLOCK_EVENT, WorkerInfo};
use throng_observation::run::RunData;
use throng_sim::chrony::Chrony;
use throng_sim::janus::{Janus, ROOM};
use throng_sim::link::{Conditions, Link};
use throng_sim::namespace::Namespace;
use throng_sim::nats::Nats;
use throng_sim::requires_root;

use super::{Worker, all_are_there, is_there, rows};
use crate::throng::{Ran, Running, Stage, THRONG, figure, run, throng_link, valid};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
const WAY_MS: f64 = 30.0;

/// The shortest bound that exchanges with worker b can have: half of the round trip.
const HALF_US: u64 = 28_000;

/// Worker, wall clock, and how far it is behind, milliseconds. The kernel's stamps of datagrams
/// cannot be faked: by a clock that is behind they are in the future, which counts as now; by one
/// that is ahead each datagram would look seconds old.
const CLOCKS: [(&str, &str, i64); 2] = [("a", "-4s", 4000), ("b", "-2s", 2000)];

/// Lets a program's wall clock be off by so much.
fn plant(command: &mut Command, clock: &str) {
    command.env("LD_PRELOAD", library()).env("FAKETIME", clock).env("DONT_FAKE_MONOTONIC", "1");
}

fn library() -> String {
    format!("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", std::env::consts::ARCH)
}

/// Janus, bus, coordinator and worker a are here; worker b is 30 ms away. Of the twelve pairs of
/// four participants, eight are between the workers: one way of 30 ms each. Two are within a, with
/// none, and two within b, over Janus and back. 20 s: workers measure their clocks and begin 2 s
/// later, and the run takes 14 s.
#[test]
fn one_way_delays_over_thirty_milliseconds_are_right_within_their_bound_though_clocks_differ_by_seconds()
 {
    let library = library();
    if !requires_root() || !Nats::is_installed() || !is_there(&library) {
        return;
    }
    let (here, there) = (Namespace::new("clocksa").unwrap(), Namespace::new("clocksb").unwrap());
    let _link =
        Link::start(&throng_link(), (&here, HERE), (&there, THERE), Conditions::delay(WAY_MS))
            .unwrap();
    let _janus = Janus::start(&here, HERE).unwrap();
    let nats = Nats::start_in(&here, (HERE, 4222).into()).unwrap();
    let bus = nats.url();
    let network = ["--allow-target", "10.98.0.0/24"];
    let _workers: Vec<Worker> = CLOCKS
        .iter()
        .zip([&here, &there])
        .map(|((name, clock, _), namespace)| {
            let mut command = namespace.command(THRONG);
            plant(&mut command, clock);
            Worker::spawn(command, &bus, name, &network)
        })
        .collect();
    let url = format!("janus+ws://{HERE}:8188/videoroom/{ROOM}");
    let view = ["view", &url, "-n", "4", "--every", "200ms", "--for", "14s", "--warm-up", "4s"];
    let fleet = ["--fleet", &bus, "--workers", "2"];
    let ran = run(Some(&here), &[&view[..], &fleet, &network].concat()).expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "conference.video.playing"), 12.0, "{ran}");
    for (worker, (name, _, planted_ms)) in rows(&ran).info.workers.iter().zip(CLOCKS) {
        let off_ms = worker.clock_offset_us / 1000 - planted_ms;
        let bound_ms = worker.clock_bound_us as i64 / 1000;
        assert!(
            off_ms.abs() <= bound_ms + 1,
            "{name}: off by {off_ms} ms, bound {bound_ms} ms\n{ran}"
        );
    }
    // The bound is half of the longest round trip to the coordinator, and of both workers together.
    let bound_ms = figure(&summary, "clock_error.bound_ms");
    assert!(bound_ms > 0.0 && bound_ms < 2.0 * WAY_MS + 30.0, "{bound_ms}\n{ran}");
    // Most pairs have one way. The frame's last packet, and Janus, come on top.
    let delay_ms = figure(&summary, "video.one_way_delay_ms_p50");
    assert!(
        (WAY_MS - bound_ms..WAY_MS + bound_ms + 40.0).contains(&delay_ms),
        "{delay_ms} ± {bound_ms}\n{ran}"
    );
    assert!(
        (delay_ms - WAY_MS).abs() < 2.0 * WAY_MS,
        "{delay_ms}: seconds of the clocks show\n{ran}"
    );
}

/// A run of four viewers by worker a, which is here, and b, which is 30 ms away; both hosts, and
/// that of the coordinator, have this chrony.
fn run_with_chrony(chrony: &Chrony, is_planted: bool) -> Ran {
    let (here, there) = (Namespace::new("chronya").unwrap(), Namespace::new("chronyb").unwrap());
    let _link =
        Link::start(&throng_link(), (&here, HERE), (&there, THERE), Conditions::delay(WAY_MS))
            .unwrap();
    let stage = Stage::start(Some(&here), &format!("{HERE}:7080"), &["--listen-any"]);
    let nats = Nats::start_in(&here, (HERE, 4222).into()).unwrap();
    let (bus, target) = (nats.url(), stage.target());
    let network = ["--allow-target", "10.98.0.0/24"];
    let _workers: Vec<Worker> = CLOCKS
        .iter()
        .zip([&here, &there])
        .map(|((name, clock, _), namespace)| {
            let mut command = namespace.command(THRONG);
            command.env("PATH", chrony.path());
            if is_planted {
                plant(&mut command, clock);
            }
            Worker::spawn(command, &bus, name, &network)
        })
        .collect();
    let view = ["view", &target, "-n", "4", "--every", "200ms", "--for", "6s", "--warm-up", "2s"];
    let args = [&view[..], &["--fleet", &bus, "--workers", "2"], &network].concat();
    let once = || {
        let mut command = here.command(THRONG);
        command.env("PATH", chrony.path());
        (Running::spawn(command, &args).wait(), ())
    };
    valid(once).0.expect_code(0)
}

/// The offset that was measured is the planted one, within its bound.
fn is_right(worker: &WorkerInfo, planted_us: i64, ran: &Ran) {
    let off_us = worker.clock_offset_us.abs_diff(planted_us);
    // The steady clocks begin as the wall clocks are, to within what a busy machine puts between
    // two readings.
    assert!(off_us <= worker.clock_bound_us + 5_000, "off by {off_us} us: {worker:?}\n{ran}");
}

fn is_contradicted(run: &RunData, name: &str) -> bool {
    let of_worker = format!("worker {name} ");
    run.events
        .iter()
        .any(|event| event.kind == WORKER_CLOCK_EVENT && event.detail.contains(&of_worker))
}

#[test]
fn chrony_bounds_a_clock_that_is_far_away_better_than_the_round_trip() {
    if !requires_root() || !Nats::is_installed() || !Chrony::is_installed() {
        return;
    }
    let chrony = Chrony::start().unwrap();
    let ran = run_with_chrony(&chrony, false);
    let run = rows(&ran);
    run.info.workers.iter().for_each(|worker| is_right(worker, 0, &ran));
    let far = &run.info.workers[1];
    assert!(far.round_trip_us > 2 * HALF_US, "{far:?}");
    assert_eq!(far.clock_basis, "chrony on both hosts", "{far:?}\n{ran}");
    assert!(far.clock_bound_us < 5_000, "{far:?}\n{ran}");
    assert!(!is_contradicted(&run, "a") && !is_contradicted(&run, "b"), "{ran}");
    // It was asked again, or its first word has aged by little.
    let at_end = far.clock_end_error_us();
    assert!(at_end.is_some_and(|us| us < 10_000), "{far:?}\n{ran}");
    let summary = ran.summary();
    assert_eq!(summary["generator"]["workers"][1]["clock_basis"], "chrony on both hosts", "{ran}");
    assert!(figure(&summary, "generator.workers.1.clock_end_bound_ms") < 10.0, "{ran}");
}

#[test]
fn a_chrony_that_contradicts_the_exchanges_is_told_and_does_not_count() {
    if !requires_root() || !Nats::is_installed() || !Chrony::is_installed() || !is_there(&library())
    {
        return;
    }
    let chrony = Chrony::start().unwrap();
    let ran = run_with_chrony(&chrony, true);
    let run = rows(&ran);
    for (worker, (name, _, planted_ms)) in run.info.workers.iter().zip(CLOCKS) {
        is_right(worker, planted_ms * 1000, &ran);
        assert!(worker.clock_basis.contains("contradict"), "{worker:?}\n{ran}");
        assert!(is_contradicted(&run, name), "{name}: {:?}\n{ran}", run.events);
    }
    assert!(run.info.workers[1].clock_bound_us > HALF_US, "{ran}");
}

/// Replaces the file at once: a clock that reads half of it would be any.
fn set(file: &Path, clock: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{clock}\n")).unwrap();
    std::fs::rename(&new, file).unwrap();
}

#[test]
fn a_wall_clock_that_jumps_during_a_run_is_told_and_moves_nothing() {
    if !Nats::is_installed() || !is_there(&library()) {
        return;
    }
    let nats = Nats::start("").unwrap();
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    set(&clock, "-2s");
    let mut jumps = Command::new(THRONG);
    jumps.env("LD_PRELOAD", library()).env("DONT_FAKE_MONOTONIC", "1");
    jumps.env("FAKETIME_TIMESTAMP_FILE", &clock).env("FAKETIME_NO_CACHE", "1");
    let bus = nats.url();
    let _workers = [Worker::spawn(jumps, &bus, "a", &[]), Worker::start(&bus, "b", &[])];
    let target = stage.target();
    let view = ["view", &target, "-n", "4", "--every", "100ms", "--for", "12s"];
    let fleet = ["--fleet", &bus, "--workers", "2"];
    let (ran, ()) = valid(|| {
        set(&clock, "-2s");
        let mut running = Running::start(None, &[&view[..], &fleet].concat());
        running.when_playing(4);
        std::thread::sleep(Duration::from_secs(2));
        set(&clock, "-5s");
        (running.wait(), ())
    });
    let ran = ran.expect_code(0);
    let run = rows(&ran);
    all_are_there(&run, 4);
    assert!(
        run.participants.iter().all(|row| row.failure().is_none() && row.ended_at.is_some()),
        "{ran}"
    );
    let told: Vec<&str> = run
        .events
        .iter()
        .filter(|event| event.kind == "worker_clock_set")
        .map(|event| event.detail.as_str())
        .collect();
    assert!(matches!(told[..], [one] if one.contains("worker a was set")), "{told:?}\n{ran}");
    assert!(ran.stderr.contains("the wall clock of worker a was set"), "{ran}");
    // Each second once, and all of both workers.
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(seconds, (0..seconds.len() as i64).collect::<Vec<_>>(), "{ran}");
    let whole =
        run.crowd.iter().filter(|row| (2..11).contains(&row.second) && row.playing == 4).count();
    assert_eq!(whole, 9, "{ran}");
    for worker in 0..2 {
        let has =
            |second| run.generator.iter().any(|row| row.worker == worker && row.second == second);
        assert!((0..12).all(has), "worker {worker}\n{ran}");
    }
    // Runs count by the steady clock, which was 2 s behind at the start and stayed so.
    let a = &run.info.workers[0];
    is_right(a, 2_000_000, &ran);
    assert!(a.clock_end_error_us().is_some_and(|us| us < 100_000), "{a:?}\n{ran}");
}
