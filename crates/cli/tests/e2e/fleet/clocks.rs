//! Delays between participants whose hosts have other clocks and a long way to each other.

use std::net::Ipv4Addr;

use throng_sim::janus::{Janus, ROOM};
use throng_sim::link::{Conditions, Link};
use throng_sim::namespace::Namespace;
use throng_sim::nats::Nats;
use throng_sim::requires_root;

use super::{Worker, is_there, rows};
use crate::throng::{THRONG, figure, run, throng_link};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
const WAY_MS: f64 = 30.0;

/// Worker, wall clock, and how far it is behind, milliseconds. The kernel's stamps of datagrams cannot be faked: by a clock that is
/// behind they are in the future, which counts as now; by one that is ahead each datagram would look seconds old.
const CLOCKS: [(&str, &str, i64); 2] = [("a", "-4s", 4000), ("b", "-2s", 2000)];

/// Janus, bus, coordinator and worker a are here; worker b is 30 ms away. Of the twelve pairs of four participants, eight are between
/// the workers: one way of 30 ms each. Two are within a, with none, and two within b, over Janus and back.
#[test]
fn one_way_delays_over_thirty_milliseconds_are_right_within_their_bound_though_clocks_differ_by_seconds() {
    let library = format!("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", std::env::consts::ARCH);
    if !requires_root() || !Nats::is_installed() || !is_there(&library) {
        return;
    }
    let (here, there) = (Namespace::new("clocksa").unwrap(), Namespace::new("clocksb").unwrap());
    let _link =
        Link::start(&throng_link(), (&here, HERE), (&there, THERE), Conditions::delay(WAY_MS)).unwrap();
    let _janus = Janus::start(&here, HERE).unwrap();
    let nats = Nats::start_in(&here, (HERE, 4222).into()).unwrap();
    let bus = nats.url();
    let network = ["--allow-target", "10.98.0.0/24"];
    let _workers: Vec<Worker> = CLOCKS
        .iter()
        .zip([&here, &there])
        .map(|((name, clock, _), namespace)| {
            let mut command = namespace.command(THRONG);
            command.env("LD_PRELOAD", &library).env("FAKETIME", clock).env("DONT_FAKE_MONOTONIC", "1");
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
        assert!(off_ms.abs() <= bound_ms + 1, "{name}: off by {off_ms} ms, bound {bound_ms} ms\n{ran}");
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
    assert!((delay_ms - WAY_MS).abs() < 2.0 * WAY_MS, "{delay_ms}: seconds of the clocks show\n{ran}");
}
