//! Message exchanges with OvenMediaEngine.

use super::super::ome::{Config, Ome};
use super::*;

fn fixture() -> Fixture {
    Fixture::new(Ome::new(Config::new(
        "ws://10.0.0.1:3333/app/stream?transport=tcp".parse().unwrap(),
    )))
}

fn asked() -> Fixture {
    let mut fixture = fixture();
    fixture.open(None);
    fixture
}

fn offer(more: &str) -> String {
    let sdp = serde_json::to_string(SDP).unwrap();
    format!(
        r#"{{"command":"offer","id":7,"peer_id":0,"code":200,"sdp":{{"type":"offer","sdp":{sdp}}}{more}}}"#
    )
}

#[test]
fn a_session_is_asked_for_answered_and_stopped() {
    let mut fixture = fixture();
    let lines = fixture.open(None);
    assert!(lines[0].starts_with("open WebSocket"), "{lines:?}");
    assert_eq!(lines[1], r#"say {"command":"request_offer"}"#);
    let lines = fixture.receives(&offer(
        r#","candidates":[{"candidate":"candidate:0 1 UDP 50 10.0.0.1 10000 typ host generation 0","sdpMLineIndex":0},{"candidate":"candidate:1 1 UDP 50 10.0.0.1 10001 typ host","sdpMid":"x"}]"#,
    ));
    assert_eq!(
        lines,
        [
            "offer",
            "candidate:0 1 UDP 50 10.0.0.1 10000 typ host generation 0",
            "candidate:1 1 UDP 50 10.0.0.1 10001 typ host"
        ]
    );
    let answer = fixture.tell(SignalInput::Answer("v=0".into()));
    assert_eq!(
        answer,
        [r#"say {"command":"answer","id":7,"peer_id":0,"sdp":{"type":"answer","sdp":"v=0"}}"#]
    );
    let candidate = fixture.tell(SignalInput::Candidate("candidate:1 1 udp 1 10.0.0.2 9 typ host"));
    assert!(
        candidate[0].contains(r#""candidates":[{"candidate":"candidate:1 1 udp"#),
        "{candidate:?}"
    );
    assert!(fixture.adapter.next_timeout().is_none());
    let leave = fixture.tell(SignalInput::Leave);
    assert_eq!(leave, [r#"say {"command":"stop","id":7}"#, "close", "goodbye"]);
}

#[test]
fn relays_come_before_the_offer_once_in_either_spelling() {
    let both = r#","iceServers":[{"urls":["turn:10.0.0.1:3478?transport=tcp","stun:x"],"username":"u","credential":"c"}],"ice_servers":[{"urls":["turn:10.0.0.1:3478?transport=tcp"],"user_name":"u","credential":"c"}]"#;
    let older = r#","ice_servers":[{"urls":"turn:10.0.0.1:3478?transport=tcp","user_name":"u","credential":"c"}]"#;
    for more in [both, older] {
        assert_eq!(
            asked().receives(&offer(more)),
            ["relay turn:10.0.0.1:3478?transport=tcp u c", "offer"],
            "{more}"
        );
    }
}

#[test]
fn what_does_not_concern_a_viewer_is_passed_over() {
    let mut fixture = asked();
    assert!(
        fixture
            .receives(r#"{"command":"notification","type":"playlist","message":{"a":[1]}}"#)
            .is_empty()
    );
    for (said, expect) in [
        (r#"{"command":"request_offer_p2p","id":1,"peer_id":3}"#, "declined request_offer_p2p"),
        (r#"{"command":"dance"}"#, "unknown command dance"),
    ] {
        let lines = fixture.receives(said);
        assert!(
            lines.len() == 1 && lines[0].starts_with("anomaly ") && lines[0].contains(expect),
            "{lines:?}"
        );
    }
}

#[test]
fn refusals_and_rubbish_are_named() {
    use FailureReason::{NoSuchRoom, Protocol, Refused, SignallingClosed};
    for (said, reason, says) in [
        (
            r#"{"code":404,"error":"Cannot find stream"}"#,
            NoSuchRoom,
            "code 404, Cannot find stream",
        ),
        (r#"{"code":400,"error":{"x":1}}"#, Refused, "code 400"),
        (r#"{"error":"no"}"#, Refused, "refused: no"),
        (r#"{"command":"stop","id":7}"#, SignallingClosed, "stopped"),
        ("{}", Protocol, "without command"),
        ("not json", Protocol, "not json"),
        (r#"{"command":"offer","id":"seven"}"#, Protocol, "malformed JSON"),
        (r#"{"command":"offer","code":200}"#, Protocol, "without id"),
        (r#"{"command":"offer","id":1,"code":200}"#, Protocol, "without sdp"),
        (
            r#"{"command":"offer","id":1,"sdp":{"type":"answer","sdp":"v=0"}}"#,
            Protocol,
            "type answer",
        ),
        (r#"{"command":"offer","id":1,"sdp":{"type":"offer","sdp":"<html>"}}"#, Protocol, "<html>"),
    ] {
        failed(&asked().receives(said), &reason, says);
    }
    let opening = || {
        let mut opening = fixture();
        opening.tell(SignalInput::Start);
        opening
    };
    closes_are_named(opening, asked);
}

#[test]
fn a_silent_server_is_named_by_the_step() {
    let mut opening = fixture();
    opening.tell(SignalInput::Start);
    failed(
        &opening.wait_for("OME: the WebSocket to open"),
        &FailureReason::SignallingTimeout,
        "WebSocket to open",
    );
    let lines = asked().wait_for("OME: an offer after request_offer");
    failed(&lines, &FailureReason::SignallingTimeout, "an offer after request_offer");
}
