//! Signalling on one address and media on another, as in a default install whose signalling is used
//! over loopback: a client that offers first has a candidate that the media can reach. Media from
//! an address without a candidate is not played. A client behind a NAT offers the address that a
//! STUN server sees.

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::Stdio;

use throng_sim::coturn::Coturn;
use throng_sim::janus::{Janus, PORT as JANUS_PORT, ROOM};
use throng_sim::livekit::{LiveKit, PORT};
use throng_sim::namespace::Namespace;
use throng_sim::nginx::Nginx;
use throng_sim::requires_root;

use crate::livekit::{access, can_run};
use crate::throng::{Ran, Running, Stage, figure, run};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);

fn expect_playing(ran: &Ran, count: u32, path: &str) {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), f64::from(count), "{ran}");
    assert_eq!(summary["media_paths"][path], count, "{ran}");
}

#[test]
fn the_lesson_of_ten_plays_as_shipped_on_a_janus_of_this_host() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/janus-lesson-10.toml");
    let shorter = [
        "--set",
        "crowd.arrival.every=300ms",
        "--set",
        "run.duration=15s",
        "--set",
        "run.warm_up=8s",
    ];
    let ran = run(Some(&namespace), &[&["run", example][..], &shorter].concat());
    assert!(ran.code == Some(0) || ran.code == Some(1), "{ran}");
    expect_playing(&ran, 10, "host");
}

#[test]
fn livekit_is_asked_on_loopback_and_sends_from_elsewhere() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    let _server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let access = access();
    let set: Vec<&str> = access.iter().map(String::as_str).collect();
    let meeting = format!("livekit+ws://127.0.0.1:{PORT}/meeting");
    let view = ["view", meeting.as_str(), "-n", "3", "--every", "200ms", "--for", "8s"];
    let ran = run(Some(&namespace), &[&view[..], &set].concat()).expect_code(0);
    expect_playing(&ran, 3, "host");
    let whip = format!("whip+http://127.0.0.1:{PORT}/whip/v1");
    let publish = ["view", whip.as_str(), "-n", "2", "--every", "200ms", "--for", "6s"];
    let is_send_only = ["--set", "target.room=studio", "--set", "crowd.subscribe=none"];
    let ran = run(Some(&namespace), &[&publish[..], &set, &is_send_only].concat()).expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.connected"), 2.0, "{ran}");
    assert_eq!(summary["media_paths"]["host"], 2, "{ran}");
}

#[test]
fn whep_behind_a_proxy_has_its_media_elsewhere() {
    if !requires_root() || !Nginx::is_installed() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    let media = ADDRESS.to_string();
    let stage =
        Stage::start(Some(&namespace), "127.0.0.1:0", &["--listen-any", "--media-ip", &media]);
    let view = ["-n", "3", "--every", "50ms", "--for", "5s"];
    let ran =
        run(Some(&namespace), &[&["view", &stage.target()][..], &view].concat()).expect_code(0);
    expect_playing(&ran, 3, "host");
    let upstream = stage.whep.trim_end_matches("/whep").to_owned();
    let nginx = namespace.enter(|| Nginx::before(&upstream)).unwrap().unwrap();
    let target = format!("whep+https://{}/whep", nginx.address());
    let proxied = ["view", &target, "--tls-insecure"];
    let ran = run(Some(&namespace), &[&proxied[..], &view].concat()).expect_code(0);
    expect_playing(&ran, 3, "host");
}

#[test]
fn media_on_an_address_that_is_not_allowed_gets_no_packet() {
    if !requires_root() {
        return;
    }
    let (here, there) = (Ipv4Addr::new(10, 84, 0, 1), Ipv4Addr::new(10, 84, 0, 2));
    let (client, server) = Namespace::pair("address", here, there).unwrap();
    client.ip(&["addr", "add", "10.85.0.1/24", "dev", "v0"]).unwrap();
    server.ip(&["addr", "add", "10.85.0.2/24", "dev", "v0"]).unwrap();
    let stage =
        Stage::start(Some(&server), "10.84.0.2:0", &["--listen-any", "--media-ip", "10.85.0.2"]);
    let target = stage.target();
    let view = ["view", &target, "-n", "3", "--every", "50ms", "--allow-target", "10.84.0.0/24"];
    let ran = run(Some(&client), &[&view[..], &["--for", "14s"]].concat()).expect_code(3);
    let summary = ran.summary();
    assert_eq!(summary["failures"]["ice"], 3, "{ran}");
    assert_eq!(summary["events"]["refused_ice_candidate"], 3, "{ran}");
    let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("--allow-target 10.85.0.2"), "{detail}");
    let both = ["--allow-target", "10.85.0.2", "--for", "5s"];
    let ran = run(Some(&client), &[&view[..], &both].concat()).expect_code(0);
    expect_playing(&ran, 3, "host");
}

/// The ports of the UDP sockets in `namespace`.
fn udp_ports(namespace: &Namespace) -> Vec<u16> {
    let table =
        namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/udp")).unwrap().unwrap();
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    table.lines().skip(1).filter_map(port).collect()
}

/// Everything that leaves `ports` gets the source address `source`.
fn send_from(namespace: &Namespace, ports: &[u16], source: &str) {
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    let rule = format!("udp sport {{ {} }} ip saddr set {source}", ports.join(", "));
    add_rules(
        namespace,
        &format!("chain output {{\ntype filter hook output priority -300;\n{rule}\n}}"),
    );
}

/// Others see the datagrams of `inside` as those of `outside`, and reach `inside` there: a NAT that
/// keeps ports.
fn translate(namespace: &Namespace, inside: Ipv4Addr, outside: Ipv4Addr) {
    add_rules(
        namespace,
        &format!(
            "chain leave {{\ntype filter hook postrouting priority 0;\n\
             meta l4proto udp ip saddr {inside} ip saddr set {outside}\n}}\n\
             chain arrive {{\ntype filter hook prerouting priority -300;\n\
             meta l4proto udp ip daddr {outside} ip daddr set {inside}\n}}"
        ),
    );
}

fn add_rules(namespace: &Namespace, chains: &str) {
    let rules = format!("table ip astray {{\n{chains}\n}}\n");
    let mut nft = namespace.command("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success());
}

#[test]
fn answers_from_another_address_fail_in_chromium_and_here() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    namespace.ip(&["addr", "add", "10.83.0.9/24", "dev", "v0"]).unwrap();
    let stage = Stage::start(Some(&namespace), &format!("{ADDRESS}:0"), &["--listen-any"]);
    send_from(&namespace, &udp_ports(&namespace), "10.83.0.9");
    let target = stage.target();
    let view = [
        "view",
        &target,
        "-n",
        "3",
        "--every",
        "50ms",
        "--for",
        "20s",
        "--set",
        "canary.browsers=1",
    ];
    let ran = run(Some(&namespace), &view).expect_code(3);
    let summary = ran.summary();
    assert!(ran.stdout.contains("0 of 1 browsers showed a picture"), "{ran}");
    assert_eq!(summary["failures"]["ice"], 3, "{ran}");
    let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("answered from another address, 10.83.0.9:"), "{detail}");
}

/// Twenty seconds: three crowds that play, behind no NAT, behind one, and without an answer.
#[test]
fn behind_a_nat_the_address_that_a_stun_server_sees_is_offered() {
    if !requires_root() {
        return;
    }
    let (here, there) = (Ipv4Addr::new(10, 86, 0, 1), Ipv4Addr::new(10, 86, 0, 2));
    let outside = Ipv4Addr::new(10, 99, 0, 1);
    let (client, server) = Namespace::pair("reflexive", here, there).unwrap();
    server.ip(&["route", "add", &outside.to_string(), "via", &here.to_string()]).unwrap();
    server.when_running().unwrap();
    let janus = Janus::start(&server, there).unwrap();
    let _coturn = Coturn::start_in(&server, there).unwrap();
    let room = format!("janus+ws://{there}:{JANUS_PORT}/videoroom/{ROOM}");
    let stun = format!("target.stun=stun:{there}");
    let join = [
        "view",
        &room,
        "-n",
        "2",
        "--every",
        "100ms",
        "--for",
        "6s",
        "--allow-target",
        "10.86.0.0/24",
    ];
    let joined = || {
        let mut running = Running::start(Some(&client), &[&join[..], &["--set", &stun]].concat());
        running.when_connected(2);
        let known = serde_json::to_string(&janus.handles().unwrap()).unwrap();
        (running.wait().expect_code(0), known)
    };
    let (ran, known) = joined();
    expect_playing(&ran, 2, "host");
    assert!(known.contains("typ host") && !known.contains("typ srflx"), "{known}");

    translate(&client, here, outside);
    let (ran, known) = joined();
    expect_playing(&ran, 2, "srflx");
    let srflx = known
        .split('"')
        .find(|text| text.contains("typ srflx"))
        .unwrap_or_else(|| panic!("{known}"));
    assert!(srflx.contains(&format!(" {outside} ")), "{srflx}");

    // No server listens there: a join takes half a second longer, and nothing else changes.
    let nobody = format!("{stun}:9");
    let silent = run(Some(&client), &[&join[..], &["--set", &nobody]].concat()).expect_code(0);
    expect_playing(&silent, 2, "srflx");
    let [answered_ms, silent_ms] =
        [&ran, &silent].map(|ran| figure(&ran.summary(), "connect_ms_p50"));
    assert!(silent_ms >= 500.0 && answered_ms < silent_ms, "{answered_ms} ms, {silent_ms} ms");
}
