//! Whatever a server says, an adapter neither panics nor goes on after it has failed.

use super::super::janus::{Config, MountpointId, SessionConfig, Streaming};
use super::super::{ome, whep};
use super::*;
use crate::participant::{FetchId, Response};

/// How many mutated dialogues per adapter; each is a few messages.
const ROUNDS: u64 = 3_000;

/// Changes, drops, doubles or splices bytes.
fn mutated(random: &mut fastrand::Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.usize(0..6) {
        if bytes.is_empty() {
            break;
        }
        let at = random.usize(0..bytes.len());
        match random.u8(0..5) {
            0 => bytes[at] = random.u8(..),
            1 => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => {
                let copy = bytes[at..].to_vec();
                bytes.extend(copy.iter().take(40));
            }
            _ => {
                let spice: &[&[u8]] =
                    &[b"null", b"-1", b"1e99", b"[[", b"\"\"", b"99999999999999999999", b"{}"];
                let spice = spice[random.usize(0..spice.len())];
                bytes.splice(at..at, spice.iter().copied());
            }
        }
    }
    bytes
}

/// Feeds mutated messages, with our own inputs between them, and checks that nothing follows a failure.
fn survive(random: &mut fastrand::Rng, mut stand: Stand, messages: &[&str]) {
    let mut failed = false;
    stand.open(Some("janus-protocol"));
    for message in messages {
        let bytes = mutated(random, message.as_bytes());
        let message = Message::Text(String::from_utf8_lossy(&bytes).into_owned());
        let mut lines = stand.tell(SignalInput::Message(&message));
        lines.extend(stand.tell(SignalInput::Answer("v=0".into())));
        lines.extend(stand.tell(SignalInput::Candidate("candidate:1")));
        if random.u8(0..8) == 0
            && let Some((at, _)) = stand.adapter.next_timeout()
        {
            stand.now = at;
            lines.extend(stand.tell(SignalInput::Timeout));
        }
        assert!(!failed || lines.is_empty(), "after a failure: {lines:?}");
        failed |= lines.iter().any(|line| line.starts_with("failed "));
        assert!(lines.len() < 200);
    }
    stand.tell(SignalInput::Leave);
}

#[test]
fn mutated_messages_of_janus_are_survived() {
    let transcript = include_str!("../janus/testdata/h264.txt");
    let messages: Vec<&str> = transcript.lines().filter_map(|line| line.strip_prefix("< ")).collect();
    for seed in 0..ROUNDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let url = "ws://10.0.0.1/".parse().unwrap();
        let (mountpoint, session) = (MountpointId::Number(1), SessionConfig::default());
        let adapter = Streaming::new(Config { url, mountpoint, pin: None, session });
        survive(&mut random, Stand::new(adapter), &messages);
    }
}

#[test]
fn mutated_messages_of_ome_are_survived() {
    let sdp = serde_json::to_string(SDP).unwrap();
    let offer = format!(
        r#"{{"command":"offer","id":7,"peer_id":0,"code":200,"sdp":{{"type":"offer","sdp":{sdp}}},"candidates":[{{"candidate":"candidate:0 1 UDP 50 10.0.0.1 1 typ host","sdpMLineIndex":0}}],"iceServers":[{{"urls":["turn:a"],"username":"u","credential":"c"}}]}}"#
    );
    let notification = r#"{"command":"notification","type":"playlist","message":{}}"#;
    let candidate = r#"{"command":"candidate","candidates":[{"candidate":"candidate:0"}]}"#;
    for seed in 0..ROUNDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let adapter = ome::Ome::new(ome::Config::new("ws://10.0.0.1/".parse().unwrap()));
        survive(&mut random, Stand::new(adapter), &[&offer, notification, candidate, &offer]);
    }
}

#[test]
fn mutated_responses_of_whep_are_survived() {
    let link = r#"<turn:a?transport=udp>; rel="ice-server"; username="u"; credential="p\"w""#;
    for seed in 0..ROUNDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stand =
            Stand::new(whep::Whep::new(whep::Config::new("http://10.0.0.1/whep".parse().unwrap())));
        stand.tell(SignalInput::Start);
        stand.tell(SignalInput::Offer(SDP.into()));
        let mut failed = false;
        for fetch in 0..4 {
            let status = [201, 406, 307, 204, 404][random.usize(0..5)];
            let mut response = http::Response::builder().status(status);
            for (name, value) in [("location", "http://10.0.0.1/s/1"), ("link", link), ("etag", "\"x\"")] {
                let value = mutated(&mut random, value.as_bytes());
                if let Ok(value) = http::HeaderValue::from_bytes(&value) {
                    response = response.header(name, value);
                }
            }
            let (head, ()) = response.body(()).unwrap().into_parts();
            let body = mutated(&mut random, SDP.as_bytes());
            let response = Response { head, body, opening: Opening::default() };
            let mut lines = stand.tell(SignalInput::Fetched(FetchId(fetch), Ok(&response)));
            lines.extend(stand.tell(SignalInput::Answer(SDP.into())));
            lines.extend(stand.tell(SignalInput::Candidate("candidate:1 1 udp 1 10.0.0.2 9 typ host")));
            assert!(!failed || lines.is_empty(), "after a failure: {lines:?}");
            failed |= lines.iter().any(|line| line.starts_with("failed "));
        }
        stand.tell(SignalInput::Leave);
    }
}
