//! Memory-mapped receive rings on interfaces with loss, jitter, firewalls, fragments, long frames
//! and checksum offload, without the right to them, and for a crowd beyond the limits of the
//! machine.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::Value;
use throng_sim::link::{Conditions, Link};
use throng_sim::namespace::Namespace;
use throng_sim::{requires_root, skipped};

use crate::throng::{Ran, Running, Stage, THRONG, figure, run, throng_link};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 87, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 87, 0, 2);
const NETWORK: [&str; 2] = ["--allow-target", "10.87.0.0/24"];

/// What the report says of the way in which datagrams came.
fn ways(summary: &Value) -> String {
    summary["generator"]["receive"].to_string()
}

/// The share of video and audio packets that came from a ring.
fn by_ring(summary: &Value) -> f64 {
    let packets =
        figure(summary, "video.packets_original") + figure(summary, "audio.packets_original");
    figure(summary, "generator.ring_datagrams") / packets
}

/// Fails unless all packets came once, and none was dropped by the generator.
#[track_caller]
fn expect_all(ran: &Ran) {
    let summary = ran.summary();
    for media in ["video", "audio"] {
        assert!(figure(&summary, &format!("{media}.packets_original")) > 100.0, "{ran}");
        for count in ["packets_lost", "packets_duplicate", "packets_unreadable"] {
            let path = format!("{media}.{count}");
            assert_eq!(figure(&summary, &path), 0.0, "{path}\n{ran}");
        }
    }
    assert_eq!(figure(&summary, "generator.socket_drops"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing_max"), 4.0, "{ran}");
}

/// Datagrams that were put together from fragments in `namespace` (`ReasmOKs` of `/proc/net/snmp`).
fn put_together(namespace: &Namespace) -> u64 {
    let read = namespace.command("cat").arg("/proc/net/snmp").output().unwrap();
    let text = String::from_utf8_lossy(&read.stdout).into_owned();
    let mut ip =
        text.lines().filter(|line| line.starts_with("Ip: ")).map(str::split_ascii_whitespace);
    let (names, values) = (ip.next().unwrap(), ip.next().unwrap());
    let found = names.zip(values).find(|(name, _)| *name == "ReasmOKs");
    found.and_then(|(_, count)| count.parse().ok()).unwrap()
}

/// Two namespaces joined by a veth pair that carries packets, and a stage in the second.
fn staged(
    purpose: &str,
    prepare: impl FnOnce(&Namespace, &Namespace),
) -> (Namespace, Namespace, Stage) {
    let (here, there) = Namespace::pair(purpose, HERE, THERE).unwrap();
    prepare(&here, &there);
    here.when_running().unwrap();
    let stage = Stage::start(Some(&there), &format!("{THERE}:7080"), &["--listen-any"]);
    (here, there, stage)
}

fn view(target: &str, seconds: u32, receive: &str) -> Vec<String> {
    let duration = format!("{seconds}s");
    [
        "view",
        target,
        "-n",
        "4",
        "--every",
        "100ms",
        "--for",
        &duration,
        "--warm-up",
        "3s",
        "--receive",
        receive,
    ]
    .into_iter()
    .chain(NETWORK)
    .map(str::to_owned)
    .collect()
}

fn viewed(namespace: &Namespace, target: &str, seconds: u32, receive: &str) -> Ran {
    let words = view(target, seconds, receive);
    run(Some(namespace), &words.iter().map(String::as_str).collect::<Vec<_>>()).expect_code(0)
}

/// Half a minute: two runs of 16 s, one after the other.
#[test]
fn rings_and_sockets_measure_the_same_over_a_path_with_loss_and_jitter() {
    if !requires_root() {
        return;
    }
    let (here, there) = (Namespace::new("ringa").unwrap(), Namespace::new("ringb").unwrap());
    let path = Conditions { loss_percent: 2.0, jitter_ms: 20.0, ..Conditions::delay(30.0) };
    let _link = Link::start(&throng_link(), (&here, HERE), (&there, THERE), path).unwrap();
    let stage = Stage::start(Some(&there), &format!("{THERE}:7080"), &["--listen-any"]);
    let [ring, sockets] =
        ["ring", "sockets"].map(|receive| viewed(&here, &stage.target(), 16, receive));
    let (of_ring, of_sockets) = (ring.summary(), sockets.summary());
    assert!(
        by_ring(&of_ring) > 0.7 && by_ring(&of_sockets) == 0.0,
        "{}\n{ring}",
        by_ring(&of_ring)
    );
    assert!(ways(&of_ring).contains("memory-mapped ring"), "{}", ways(&of_ring));
    // What the path drops and delays, within its spread; counts as shares, since viewers connect a
    // second earlier or later.
    let shares = ["video.nack_sent", "video.packets_recovered", "video.packets_reordered"]
        .map(|path| (path, "video.packets_original", 0.8, 1.25));
    let figures = [("video.one_way_delay_ms_p50", 0.9, 1.1), ("video.jitter_ms_p50", 0.7, 1.4)];
    for (path, of, least, most) in shares {
        let share = |summary: &Value| figure(summary, path) / figure(summary, of);
        let ratio = share(&of_ring) / share(&of_sockets);
        assert!((least..most).contains(&ratio), "{path}: {ratio}\n{ring}\n{sockets}");
    }
    for (path, least, most) in figures {
        let ratio = figure(&of_ring, path) / figure(&of_sockets, path);
        assert!((least..most).contains(&ratio), "{path}: {ratio}\n{ring}\n{sockets}");
    }
}

/// 40 s: three runs, of 9 s, 12 s and 16 s, one after the other.
#[test]
fn a_firewall_behind_the_ring_is_found_and_its_drops_are_measured() {
    if !requires_root() {
        return;
    }
    let (here, there) = Namespace::pair("ringf", HERE, THERE).unwrap();
    here.when_running().unwrap();
    let stage = Stage::start(Some(&there), &format!("{THERE}:7080"), &["--listen-any"]);
    // What a path loses, the ring loses as well.
    here.lose(100, None).unwrap();
    let lossy = viewed(&here, &stage.target(), 9, "ring").summary();
    assert!(
        by_ring(&lossy) > 0.5 && !ways(&lossy).contains("sockets"),
        "{} {}",
        by_ring(&lossy),
        ways(&lossy)
    );
    assert!(figure(&lossy, "video.nack_sent") > 50.0, "{}", ways(&lossy));
    here.lose_in_firewall(100, None).unwrap();
    let ran = viewed(&here, &stage.target(), 12, "auto");
    let summary = ran.summary();
    assert!(ways(&summary).contains("firewall"), "{}\n{ran}", ways(&summary));
    assert_eq!(figure(&summary, "generator.ring_datagrams"), 0.0, "{ran}");
    assert!(figure(&summary, "video.nack_sent") > 50.0, "{ran}");
    // A rule that comes during the run is found by the checks of every second.
    here.lose_nothing().unwrap();
    let words = view(&stage.target(), 16, "auto");
    let mut running =
        Running::start(Some(&here), &words.iter().map(String::as_str).collect::<Vec<_>>());
    running.when_playing(4);
    std::thread::sleep(Duration::from_secs(3));
    here.lose_in_firewall(200, None).unwrap();
    let ran = running.wait().expect_code(0);
    let summary = ran.summary();
    assert!(
        ways(&summary).contains("firewall") && by_ring(&summary) > 0.1,
        "{}\n{ran}",
        ways(&summary)
    );
}

#[test]
fn an_interface_that_goes_down_and_comes_back_ends_no_run_and_doubles_no_packet() {
    if !requires_root() {
        return;
    }
    let (here, there) = Namespace::pair("ringd", HERE, THERE).unwrap();
    here.when_running().unwrap();
    let stage = Stage::start(Some(&there), &format!("{THERE}:7080"), &["--listen-any"]);
    let words = view(&stage.target(), 16, "ring");
    let mut running =
        Running::start(Some(&here), &words.iter().map(String::as_str).collect::<Vec<_>>());
    running.when_playing(4);
    std::thread::sleep(Duration::from_secs(3));
    here.ip(&["link", "set", "v0", "down"]).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    here.ip(&["link", "set", "v0", "up"]).unwrap();
    let ran = running.wait();
    let summary = ran.summary();
    assert!(ways(&summary).contains("by v0"), "{}\n{ran}", ways(&summary));
    assert_eq!(figure(&summary, "video.packets_duplicate"), 0.0, "{ran}");
    let connected = summary["joins"].to_string();
    assert!(figure(&summary, "generator.ring_datagrams") > 100.0, "{connected}\n{ran}");
}

#[test]
fn without_the_right_to_a_ring_sockets_are_used_or_the_run_is_refused() {
    if !requires_root() {
        return;
    }
    let (here, _there, stage) = staged("ringc", |_, _| ());
    let without = |receive: &str| {
        here.command("setpriv")
            .args(["--bounding-set", "-net_raw", "--inh-caps", "-net_raw", THRONG])
            .args([
                "view",
                &stage.target(),
                "-n",
                "2",
                "--for",
                "4s",
                "--receive",
                receive,
                "--json",
                "--quiet",
            ])
            .args(NETWORK)
            .args([
                "-o",
                &std::env::temp_dir()
                    .join(format!("ring-{receive}-{}", std::process::id()))
                    .to_string_lossy(),
            ])
            .output()
            .unwrap()
    };
    let refused = without("ring");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("CAP_NET_RAW"), "{said}");
    let played = without("auto");
    let said = String::from_utf8_lossy(&played.stderr).into_owned();
    assert!(played.status.success(), "{said}");
    let summary: Value = serde_json::from_slice(&played.stdout).unwrap();
    assert!(ways(&summary).contains("CAP_NET_RAW"), "{}", ways(&summary));
    assert!(figure(&summary, "video.packets_original") > 100.0);
}

#[test]
fn fragments_come_by_sockets_once_each_and_are_no_drops() {
    if !requires_root() {
        return;
    }
    // The stage's datagrams of 1,200 bytes leave in two fragments: its sockets have Linux's default
    // IP_PMTUDISC_WANT.
    let (here, _there, stage) = staged("ringg", |_, there| there.set_mtu("v0", 700).unwrap());
    let words = view(&stage.target(), 10, "ring");
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    // Drops would make the run invalid, and are what this is about: it is not repeated.
    let ran = Running::start(Some(&here), &words).wait();
    assert!(put_together(&here) > 1000, "{} datagrams came in fragments", put_together(&here));
    expect_all(&ran);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "generator.ring_datagrams"), 0.0, "{ran}");
    assert!(ways(&summary).contains("fragments"), "{}", ways(&summary));
    ran.expect_code(0);
}

#[test]
fn fragments_from_mid_run_on_end_the_ring_and_what_that_costs_is_the_generators() {
    if !requires_root() {
        return;
    }
    let (here, there, stage) = staged("ringh", |_, _| ());
    let words = view(&stage.target(), 14, "ring");
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let mut running = Running::start(Some(&here), &words);
    running.when_playing(4);
    std::thread::sleep(Duration::from_secs(2));
    there.set_mtu("v0", 700).unwrap();
    let ran = running.wait();
    let summary = ran.summary();
    assert!(put_together(&here) > 1000, "{} datagrams came in fragments", put_together(&here));
    assert_eq!(figure(&summary, "video.packets_duplicate"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "audio.packets_duplicate"), 0.0, "{ran}");
    let share = by_ring(&summary);
    assert!(share > 0.05 && share < 0.9, "{share}\n{ran}");
    // Until a socket takes all again its filter drops what was put together for it: not the
    // server's loss.
    assert!(figure(&summary, "generator.socket_drops") > 0.0, "{ran}");
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ways(&summary).contains("fragments"), "{}", ways(&summary));
    let reasons = summary["generator"]["reasons"].to_string();
    assert!(reasons.contains("datagrams were dropped by the generator"), "{reasons}");
}

#[test]
fn jumbo_frames_come_by_the_ring() {
    if !requires_root() {
        return;
    }
    let (here, _there, stage) = staged("ringj", |here, there| {
        here.set_mtu("v0", 9000).unwrap();
        there.set_mtu("v0", 9000).unwrap();
    });
    let ran = viewed(&here, &stage.target(), 8, "ring");
    expect_all(&ran);
    assert!(by_ring(&ran.summary()) > 0.2, "{}\n{ran}", by_ring(&ran.summary()));
}

#[test]
fn frames_with_and_without_a_checksum_are_taken_alike() {
    if !requires_root() {
        return;
    }
    let (here, there, stage) = staged("ringk", |_, _| ());
    // On: a checksum for a card to compute, and joined frames. Off: the ring checks each datagram.
    for is_on in [true, false] {
        if let Err(error) = there.set_send_offload("v0", is_on) {
            skipped(&format!("checksum offload cannot be set ({error}): {is_on}"));
            continue;
        }
        let ran = viewed(&here, &stage.target(), 8, "ring");
        expect_all(&ran);
        let summary = ran.summary();
        assert!(by_ring(&summary) > 0.2, "offload: {is_on}, {}\n{ran}", by_ring(&summary));
        assert!(!ways(&summary).contains("by sockets"), "offload: {is_on}, {}", ways(&summary));
    }
}

#[test]
fn a_crowd_beyond_descriptors_and_ports_is_told_before_the_start() {
    if !requires_root() {
        return;
    }
    let (here, _there, stage) =
        staged("ringn", |here, _| here.set_local_ports(&(40_000..=40_511)).unwrap());
    let mut command = here.command("prlimit");
    command.args(["--nofile=4096:4096", THRONG]);
    let target = stage.target();
    let words =
        ["view", &target, "-n", "20000", "--every", "100ms", "--for", "40m", "--receive", "ring"];
    let words = words.into_iter().chain(["--set", "caps.users=20000"]);
    let words: Vec<_> = words.into_iter().chain(NETWORK).collect();
    let mut running = Running::spawn(command, &words);
    running.when_playing(3);
    running.signal("INT");
    let ran = running.wait();
    assert_eq!(ran.code, Some(130), "{ran}");
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "warning: 40064 file descriptors are needed and 4096 are allowed: about 2016 of 20000 participants",
        "warning: 20000 local ports are needed, but only 512 are available: about 512 participants",
    ] {
        assert!(said.contains(words), "{words}\n{ran}");
    }
    assert!(!said.contains("panicked"), "{ran}");
    assert!(figure(&ran.summary(), "participants.playing") >= 3.0, "{ran}");
    assert_eq!(figure(&ran.summary(), "participants.failed"), 0.0, "{ran}");
}

#[test]
fn what_sockets_leave_to_a_ring_is_no_drop_of_a_watched_server_on_the_same_host() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::new("ringo").unwrap();
    let stage = Stage::start(Some(&namespace), "127.0.0.1:0", &[]);
    let watch = format!("pid={}", stage.pid());
    let view =
        ["view", &stage.target(), "-n", "20", "--for", "14s", "--warm-up", "3s", "--watch", &watch];
    let ran = run(Some(&namespace), &view).expect_code(0);
    assert!(by_ring(&ran.summary()) > 0.7, "{}\n{ran}", ways(&ran.summary()));
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    let of = |metric: &str| run.host.series.iter().filter(|series| series.metric == metric).count();
    assert!(of("udp.in_errors") > 0 && of("socket.drops") == 0, "{ran}");
}
