//! Signalling on one address and media on another, as every default install has it whose signalling is asked on loopback:
//! who offers first has a candidate that the media can reach. And media from an address that nobody named plays to nobody.

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::Stdio;

use throng_sim::janus::Janus;
use throng_sim::livekit::{LiveKit, PORT};
use throng_sim::namespace::Namespace;
use throng_sim::nginx::Nginx;
use throng_sim::requires_root;

use crate::livekit::{access, can_run};
use crate::throng::{Ran, Stage, figure, run};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);

fn expect_playing(ran: &Ran, count: u32, path: &str) {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), f64::from(count), "{ran}");
    assert_eq!(summary["paths"][path], count, "{ran}");
}

#[test]
fn the_lesson_of_ten_plays_as_shipped_on_a_janus_of_this_host() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/janus-lesson-10.toml");
    let shorter =
        ["--set", "crowd.arrival.every=300ms", "--set", "run.duration=15s", "--set", "run.warm_up=8s"];
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
    let only_sends = ["--set", "target.room=studio", "--set", "crowd.subscribe=none"];
    let ran = run(Some(&namespace), &[&publish[..], &set, &only_sends].concat()).expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.connected"), 2.0, "{ran}");
    assert_eq!(summary["paths"]["host"], 2, "{ran}");
}

#[test]
fn whep_behind_a_proxy_has_its_media_elsewhere() {
    if !requires_root() || !Nginx::is_installed() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    let media = ADDRESS.to_string();
    let stage = Stage::start(Some(&namespace), "127.0.0.1:0", &["--listen-any", "--media-ip", &media]);
    let view = ["-n", "3", "--every", "50ms", "--for", "5s"];
    let ran = run(Some(&namespace), &[&["view", &stage.target()][..], &view].concat()).expect_code(0);
    expect_playing(&ran, 3, "host");
    let upstream = stage.whep.trim_end_matches("/whep").to_owned();
    let nginx = namespace.enter(|| Nginx::before(&upstream)).unwrap().unwrap();
    let target = format!("whep+https://{}/whep", nginx.address());
    let proxied = ["view", &target, "--tls-insecure"];
    let ran = run(Some(&namespace), &[&proxied[..], &view].concat()).expect_code(0);
    expect_playing(&ran, 3, "host");
}

#[test]
fn media_on_an_address_that_nobody_allowed_is_not_sent_to() {
    if !requires_root() {
        return;
    }
    let (here, there) = (Ipv4Addr::new(10, 84, 0, 1), Ipv4Addr::new(10, 84, 0, 2));
    let (client, server) = Namespace::pair("address", here, there).unwrap();
    client.ip(&["addr", "add", "10.85.0.1/24", "dev", "v0"]).unwrap();
    server.ip(&["addr", "add", "10.85.0.2/24", "dev", "v0"]).unwrap();
    let stage = Stage::start(Some(&server), "10.84.0.2:0", &["--listen-any", "--media-ip", "10.85.0.2"]);
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
    let table = namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/udp")).unwrap().unwrap();
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    table.lines().skip(1).filter_map(port).collect()
}

/// Everything that leaves `ports` says that it came from `source`.
fn send_from(namespace: &Namespace, ports: &[u16], source: &str) {
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    let rules = format!(
        "table ip astray {{\nchain output {{\ntype filter hook output priority -300;\n\
         udp sport {{ {} }} ip saddr set {source}\n}}\n}}\n",
        ports.join(", ")
    );
    let mut nft = namespace.command("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success());
}

#[test]
fn where_chromium_fails_for_answers_from_another_address_nobody_plays() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("address", ADDRESS).unwrap();
    namespace.ip(&["addr", "add", "10.83.0.9/24", "dev", "v0"]).unwrap();
    let stage = Stage::start(Some(&namespace), &format!("{ADDRESS}:0"), &["--listen-any"]);
    send_from(&namespace, &udp_ports(&namespace), "10.83.0.9");
    let target = stage.target();
    let view = ["view", &target, "-n", "3", "--every", "50ms", "--for", "20s", "--set", "canary.browsers=1"];
    let ran = run(Some(&namespace), &view).expect_code(3);
    let summary = ran.summary();
    assert!(ran.stdout.contains("0 of 1 browsers showed a picture"), "{ran}");
    assert_eq!(summary["failures"]["ice"], 3, "{ran}");
    let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("answered from another address, 10.83.0.9:"), "{detail}");
}
