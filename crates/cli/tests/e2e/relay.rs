//! Media over a TURN relay only: the real coturn with the real Janus and LiveKit, over UDP, TCP and
//! TLS.

use std::io::Write;
use std::net::Ipv4Addr;
use std::process::Stdio;

use serde_json::json;
use throng_sim::coturn::{Coturn, PASSWORD, RELAYED_PORTS, TLS_PORT, USER};
use throng_sim::janus::{Janus, PORT as JANUS_PORT, ROOM};
use throng_sim::livekit::{LiveKit, PORT};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::conference::pairs;
use crate::livekit::{access, can_run};
use crate::throng::{Ran, Running, figure};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 87, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 87, 0, 2);
/// Outside the ports that the relay allocates on the same host.
const JANUS_PORTS: std::ops::RangeInclusive<u16> = *RELAYED_PORTS.end() + 1..=29_999;

/// A client whose UDP can reach the TURN server, but nothing else on the server's host.
fn relayed() -> (Namespace, Namespace) {
    let (client, server) = Namespace::pair("relay", CLIENT, SERVER).unwrap();
    let rules = format!(
        "table ip relay {{\ncounter direct {{ }}\nchain arrive {{\ntype filter hook prerouting priority -300;\n\
         ip saddr {CLIENT} udp dport != 3478 counter name direct drop\n}}\n}}\n"
    );
    let mut nft = server.command("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success());
    server.when_running().unwrap();
    (client, server)
}

/// Datagrams that did not go to the TURN server.
fn direct(server: &Namespace) -> u64 {
    let reported = server
        .command("nft")
        .args(["-j", "list", "counter", "ip", "relay", "direct"])
        .output()
        .unwrap();
    let reported: serde_json::Value = serde_json::from_slice(&reported.stdout).unwrap();
    let counters =
        reported["nftables"].as_array().unwrap().iter().find_map(|entry| entry.get("counter"));
    counters.unwrap()["packets"].as_u64().unwrap()
}

/// The scenario keys for the TURN server.
fn turn(uri: &str) -> [String; 6] {
    let set = "--set".to_owned();
    [
        set.clone(),
        format!("target.turn={uri}"),
        set.clone(),
        format!("target.turn_username={USER}"),
        set,
        format!("target.turn_password={PASSWORD}"),
    ]
}

fn view(client: &Namespace, url: &str, users: u32, more: &[&[String]]) -> Ran {
    let users = users.to_string();
    let mut view =
        vec!["view", url, "-n", &users, "--every", "100ms", "--for", "8s", "--tls-insecure"];
    view.extend(["--allow-target", "10.87.0.0/24", "--set", "target.ice_transport_policy=relay"]);
    view.extend(more.iter().flat_map(|more| more.iter()).map(String::as_str));
    Running::start(Some(client), &view).wait().expect_code(0)
}

/// Every pair plays audio and video, over this path.
fn every_pair_plays(ran: &Ran, users: u32, path: &str) {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "participants.playing"), f64::from(users), "{ran}");
    assert_eq!(summary["media_paths"], json!({ path: users }), "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    assert_eq!(pairs(&run).len(), (users * (users - 1) * 2) as usize, "{:?}\n{ran}", pairs(&run));
}

/// 25 s: a run of 8 s for each of three ways to the relay.
#[test]
fn a_video_room_plays_through_the_relay_of_the_scenario_over_udp_tcp_and_tls() {
    if !requires_root() {
        return;
    }
    let (client, server) = relayed();
    let _janus = Janus::start_on_ports(&server, SERVER, JANUS_PORTS).unwrap();
    let coturn = Coturn::start_in(&server, SERVER).unwrap();
    let url = format!("janus+ws://{SERVER}:{JANUS_PORT}/videoroom/{ROOM}");
    for transport in ["udp", "tcp", "tls"] {
        let ran = view(&client, &url, 3, &[&turn(&coturn.uri(transport))]);
        every_pair_plays(&ran, 3, &format!("relay_{transport}"));
        let written = RunFolder::read(ran.folder()).unwrap().info.scenario;
        assert!(written.contains("turn_username") && !written.contains(PASSWORD), "{written}");
    }
    assert_eq!(direct(&server), 0, "datagrams went past the relay");
}

/// 35 s: four runs of 8 s, two for each way to the relay.
#[test]
fn livekits_own_relays_carry_a_conference_and_the_scenarios_a_publisher_by_whip() {
    if !can_run() {
        return;
    }
    let (client, server) = relayed();
    let coturn = Coturn::start_in(&server, SERVER).unwrap();
    let access = access();
    for (transport, port) in [("udp", 3478), ("tls", TLS_PORT)] {
        let announced = format!(
            "{{ host: {SERVER}, port: {port}, protocol: {transport}, username: {USER}, credential: {PASSWORD} }}"
        );
        let _livekit = LiveKit::start_announcing(&server, SERVER, &announced).unwrap();
        let ran = view(&client, &format!("livekit+ws://{SERVER}:{PORT}/relayed"), 3, &[&access]);
        every_pair_plays(&ran, 3, &format!("relay_{transport}"));
        let only_sends = ["target.room=studio", "crowd.subscribe=none"];
        let only_sends = only_sends.map(|set| ["--set".to_owned(), set.to_owned()]).concat();
        let whip = format!("whip+http://{SERVER}:{PORT}/whip/v1");
        let ran = view(&client, &whip, 2, &[&access, &turn(&coturn.uri(transport)), &only_sends]);
        let summary = ran.summary();
        assert_eq!(figure(&summary, "participants.connected"), 2.0, "{ran}");
        assert_eq!(summary["media_paths"], json!({ format!("relay_{transport}"): 2 }), "{ran}");
    }
    assert_eq!(direct(&server), 0, "datagrams went past the relay");
}

#[test]
fn a_relay_that_is_not_allowed_is_asked_nothing() {
    if !requires_root() {
        return;
    }
    let (client, server) = relayed();
    let _janus = Janus::start_on_ports(&server, SERVER, JANUS_PORTS).unwrap();
    let url = format!("janus+ws://{SERVER}:{JANUS_PORT}/videoroom/{ROOM}");
    let elsewhere = turn("turn:10.99.0.1:3478");
    let mut view = vec!["view", &url, "-n", "2", "--every", "100ms", "--for", "14s"];
    view.extend(["--allow-target", "10.87.0.0/24", "--set", "target.ice_transport_policy=relay"]);
    view.extend(elsewhere.iter().map(String::as_str));
    let ran = Running::start(Some(&client), &view).wait().expect_code(3);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 2.0, "{ran}");
    assert!(figure(&summary, "events.refused_ice_server") >= 2.0, "{ran}");
    assert_eq!(direct(&server), 0, "datagrams went past the relay");
}
